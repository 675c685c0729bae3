"""Plans on Spark: the same numbers as DuckDB's, reviewed without Spark; and what is refused with nothing spent."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.data.engines import spark as spark_engine
from discreet.data.engines.spark_settings import OURS, is_secret, properties_of
from discreet.plan import confidential
from discreet.plan.bundle import request
from discreet.plan.check import check
from discreet.plan.confidential import Confidential
from discreet.plan.engine import EngineSection, at_work, refuse_changed
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.release import account
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DataError, EngineError, MissingExtra, PlanError
from faults_of import about

sys.path.insert(0, str(Path(__file__).parent))
import programme

HERE = programme.SPARK.format(master="local[2]", more="")


def some(*names: str) -> str:
    """The programme with these releases alone, and the sources that they are of."""
    head, *releases = programme.PLAN.partition("[output]")[0].split("[[release]]\n")
    kept = "".join(f"[[release]]\n{each}" for each in releases if each.split('"')[1] in names)
    if not {"model", "slope"} & {*names}:
        head = head.partition("[source.panel")[0]
    if not {"levels", "sexes", "payroll"} & {*names}:
        head = 'title = "A model"\n\n[source.panel' + head.partition("[source.panel")[2]
    return f'{head}{kept}[output]\nfolder = "out"\n'


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes the data and a plan with some releases, on an engine."""

    def write(name: str, *releases: str, engine: str = "") -> Path:
        plan = programme.write(tmp_path / name, jobs=300)
        plan.write_text(some(*releases) + engine, encoding="utf-8")
        return plan

    return write


def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has neither PySpark nor Java."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_plan_on_spark_releases_what_duckdb_does_and_is_reviewed_without_it(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "SystemSource", lambda: programme.Same(programme.SEED))
    engines = {"duckdb": "", "spark": HERE}
    plans = {name: written(name, "sexes", "model", engine=engine) for name, engine in engines.items()}
    asked = [request(read_plan(plan)) for plan in plans.values()]
    assert asked[0] == asked[1]  # what is paid for and reviewed does not name an engine
    for plan in plans.values():
        run(plan)
    found = [programme.numbers(plan.parent / "out") for plan in plans.values()]
    assert len(found[0]) == 4 and found[0] == found[1]
    # What was begun on Spark is reviewed, and ended, where there is none: nothing is paid again.
    plan = plans["spark"]
    without_spark(monkeypatch)
    assert not [each for each in verify_bundle(plan.parent / "out" / "bundle.zip") if each.wrong]
    for text in (plan.read_text(), plan.read_text().replace(HERE, "")):
        plan.write_text(text)
        again = run(plan)
        assert [known.state for known in again.check.releases] == ["released", "released"]
        assert [str(budget.spent) for budget in again.budgets] == ["epsilon=2", "epsilon=4"]


@pytest.mark.parametrize(
    ("setting", "about_it"),
    [
        ('"spark.authenticate.secret" = "hunter2"', "spark.authenticate.secret"),
        ('"spark.hadoop.fs.s3a.access.key" = "hunter2"', "spark.hadoop.fs.s3a.access.key"),
        ('"spark.hadoop.fs.azure.account.key.a.net" = "hunter2"', "spark.hadoop.fs.azure.account.key.a.net"),
        ('"spark.ssl.keyPassword" = "hunter2"', "spark.ssl.keyPassword"),
        ('"spark.hadoop.fs.x.endpoint" = "https://me:hunter2@host"', "spark.hadoop.fs.x.endpoint"),
        ('"spark.hadoop.fs.x.options" = "password=hunter2"', "spark.hadoop.fs.x.options"),
        ('"spark.sql.ansi.enabled" = false', "spark.sql.ansi.enabled"),
        ('"spark.sql.files.ignoreCorruptFiles" = true', "spark.sql.files.ignoreCorruptFiles"),
        ('"spark.jars" = "hunter2.jar"', "spark.jars"),
        ('"spark.driver.extraJavaOptions" = "-javaagent:hunter2"', "spark.driver.extraJavaOptions"),
        ('"spark.sql.extensions" = "hunter2"', "spark.sql.extensions"),
        ('"spark.driver.memory" = "1g"', "spark.driver.memory"),
    ],
)
def test_a_plan_states_no_secret_no_code_and_nothing_that_changes_results(
    written: Callable[..., Path], setting: str, about_it: str
) -> None:
    plan = written("plan", "sexes", engine=f'\n[engine]\nkind = "spark"\n[engine.settings]\n{setting}\n')
    with pytest.raises(PlanError) as caught:
        read_plan(plan)
    [fault] = caught.value.faults
    assert fault.place == ("engine", "settings", about_it)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('kind = "dask"', ("engine", "kind")),
        ('kind = "duckdb"\nmaster = "local[2]"', ("engine", "master")),
        ('kind = "spark"\nmaster = "spark://me:hunter2@host:7077"', ("engine", "master")),
        ('kind = "spark"\nmaster = "mesos://host"', ("engine", "master")),
        ('kind = "spark"\npassword = "hunter2"', ("engine", "password")),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused_at_its_key(
    written: Callable[..., Path], text: str, place: tuple[str, ...]
) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(written("plan", "sexes", engine=f"\n[engine]\n{text}\n"))
    assert caught.value.faults[0].place == place
    assert "hunter2" not in str(caught.value)


def test_only_spark_reads_storage_of_clusters_and_only_duckdb_tables_of_databases(
    written: Callable[..., Path],
) -> None:
    plan = written("plan", "sexes")
    for source, engine in (("hdfs:///jobs", ""), ("jobs.duckdb::jobs", HERE), ("postgresql://me@db/x::jobs", HERE)):
        plan.write_text(some("sexes").replace("data/jobs", source) + engine)
        with pytest.raises(PlanError) as caught:
            read_plan(plan)
        assert caught.value.faults[0].place == ("source", "jobs", "data", "source")
    plan.write_text(some("sexes").replace("data/jobs", "hdfs:///jobs") + HERE)
    found = check(read_plan(plan))  # priced without a cluster
    assert not found.faults and not found.missing


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.spark
def test_a_master_that_does_not_answer_is_refused_at_once(written: Callable[..., Path]) -> None:
    pytest.importorskip("pyspark")
    engine = programme.SPARK.format(master=f"spark://127.0.0.1:{free_port()}", more="")
    for releases in (("sexes",), ("model",)):
        plan = written(releases[0], *releases, engine=engine)
        found = check(read_plan(plan))
        assert not found.faults  # it is priced all the same
        assert [fault.place for fault in found.missing] == [("engine", "master")] * (releases == ("model",))
        with pytest.raises(EngineError, check=about("engine.master")):
            run(plan)
        assert not (plan.parent / "ledger.db").exists() and not (plan.parent / "out").exists()


def test_what_is_not_installed_is_told_with_the_command_that_installs_it(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = written("plan", "sexes", engine=HERE)
    with monkeypatch.context() as bare:
        without_spark(bare)
        assert not check(read_plan(plan)).missing
        with pytest.raises(MissingExtra) as caught:
            run(plan)
    assert "[spark]" in str(caught.value)
    pytest.importorskip("pyspark")
    monkeypatch.setattr(spark_engine, "_running", lambda master: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtra) as caught:
        run(plan)
    assert "openjdk-17" in str(caught.value)
    assert not (plan.parent / "ledger.db").exists()


class Storage:
    """An engine whose files have the time that is set."""

    time = 0

    def stamp(self, path: str) -> dict[str, tuple[int, int]]:
        return {f"{path}/0.parquet": (10, self.time)}

    def close(self) -> None: ...


def test_files_of_a_cluster_that_change_during_a_run_are_found(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of this machine are in tests/plan/test_steady.py."""
    plan = written("plan", "sexes", engine=HERE)
    plan.write_text(plan.read_text().replace("data/jobs", "hdfs:///jobs"))
    file, storage = read_plan(plan), Storage()
    monkeypatch.setattr(EngineSection, "opened", lambda self, folder: storage)
    with at_work():
        assert Confidential(file.sources[0]).path == "hdfs:///jobs"
        refuse_changed(file)
        storage.time = 1
        with pytest.raises(EngineError, check=about("source")):
            refuse_changed(file)


@pytest.mark.spark
def test_what_is_written_to_has_another_stamp(spark: spark_engine.Spark, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "0.parquet")
    before = spark.stamp(tmp_path)
    assert len(before) == 1 and spark.stamp(tmp_path) == before
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "1.parquet")
    assert len(spark.stamp(tmp_path)) == 2


@pytest.mark.spark
def test_a_folder_of_which_spark_would_leave_files_out_is_refused(spark: spark_engine.Spark, tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2]})
    for place in ("0.parquet", "deeper/1.parquet", "_hidden.parquet"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / place)
    with pytest.raises(DataError, check=about("source")):
        spark.read(tmp_path)
    shutil.rmtree(tmp_path / "deeper")
    (tmp_path / "_hidden.parquet").unlink()
    assert spark.read(tmp_path).collect_schema().names() == ["x"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_rows_come_to_the_driver_up_to_a_bound(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Models by categories are sums of the cluster; posterior summaries need their rows."""
    monkeypatch.setattr(confidential, "MOST_VALUES", 100)
    plan = written("plan", "model", "slope", engine=HERE)
    found = check(read_plan(plan))
    assert [fault.place for fault in found.faults] == [("release", 1, "formula")]
    assert found.releases[0].expected is not None


def test_secrets_are_in_a_file_that_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.properties"
    path.write_text("# ours\nspark.authenticate.secret  hunter2\nspark.executor.memory=1g\n\n")
    path.chmod(0o644)
    with pytest.raises(EngineError, check=about("engine.properties")) as caught:
        properties_of(path)
    assert "hunter2" not in str(caught.value)
    path.chmod(0o600)
    assert properties_of(path) == {"spark.authenticate.secret": "hunter2", "spark.executor.memory": "1g"}
    with pytest.raises(EngineError, check=about("engine.properties")):
        properties_of(tmp_path / "none.properties")


@pytest.mark.spark
def test_a_process_has_one_spark_and_what_decides_results_is_ours(spark: spark_engine.Spark) -> None:
    with pytest.raises(EngineError, check=about("engine.master")):
        spark_engine.Spark(master="local[1]")
    spark.session.conf.set("spark.sql.ansi.enabled", "false")
    with spark_engine.Spark(master="local[2]") as again:
        assert {name: again.session.conf.get(name) for name in OURS} == OURS
    spark.session.conf.set("spark.sql.ansi.enabled", "true")
    assert spark.session.range(1).count() == 1  # it is not stopped with another's


@pytest.mark.parametrize("name", ["spark.ssl.keyStorePassword", "spark.hadoop.fs.gs.auth.client.secret", "a.api-key"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert not is_secret("spark.executor.memory") and not is_secret("spark.hadoop.fs.s3a.endpoint")
