"""Plans on tables of a real PostgreSQL: the same numbers as from files, one moment, no secret anywhere."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from database_cases import (
    PASSWORD,
    desk_takes_an_address_and_no_password,
    driver_is_missed,
    jobs_are_those_of_the_files,
    refused_and_not_repeated,
    refused_at_its_place,
    rows_go_between_tables,
)
from discreet.data import databases
from discreet.data.databases import Address, moment
from discreet.plan import run as run_module
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DataError, PlanError
from faults_of import about
from interrupted import failing_after
from postgres_server import postgres, postgres_server, postgres_url

__all__ = ["postgres", "postgres_server", "postgres_url"]

COLUMNS = {"workplace": "bigint", "worker": "bigint", "sex": "varchar(1)", "place": "character(4)", "sector": "text"}


class Database:
    """A database with the toys in it, which a role that may only read sees through the network."""

    def __init__(self, owner: str, port: int) -> None:
        self.owner, self.role = owner.replace("+psycopg", ""), f"reader_{uuid4().hex[:8]}"
        self.name = re.search(r"@/(\w+)", owner)[1]  # type: ignore[index]
        self.port = port
        self.run(f"CREATE ROLE {self.role} LOGIN PASSWORD '{PASSWORD}'")

    def run(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.owner, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def fill(self, table: str, rows: pa.Table) -> None:
        import psycopg

        columns = ", ".join(f"{name} {COLUMNS.get(name, 'double precision')}" for name in rows.column_names)
        self.run(f"CREATE TABLE {table} ({columns})", f"GRANT SELECT ON {table} TO {self.role}")
        with (
            psycopg.connect(self.owner) as connection,
            connection.cursor().copy(f"COPY {table} FROM STDIN") as copy,
        ):
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                copy.write_row(row)

    def address(self, table: str, *, user: str | None = None) -> str:
        return f"postgresql://{user or self.role}@127.0.0.1:{self.port}/{self.name}::{table}"


@pytest.fixture
def database(
    postgres_url: str, postgres_server: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    toys: Callable[[Path], Path],
) -> Iterator[Database]:  # fmt: skip
    pytest.importorskip("adbc_driver_postgresql")
    toys(tmp_path / "toys")
    made = Database(postgres_url, postgres_server[1])
    made.fill("jobs", pq.read_table(tmp_path / "toys" / "data" / "jobs.parquet"))
    made.fill("places", pq.read_table(tmp_path / "toys" / "data" / "places.parquet"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    yield made


@pytest.fixture
def plan(database: Database, tmp_path: Path) -> Path:
    """The plan of the toys, on the server."""
    path = tmp_path / "toys" / "plan.toml"
    text = path.read_text().replace("data/jobs.parquet", database.address("jobs"))
    path.write_text(text.replace("data/places.parquet", database.address("public.places")))
    for file in (tmp_path / "toys" / "data").iterdir():
        file.rename(tmp_path / file.name)
    return path


pytestmark = pytest.mark.postgres


def test_a_plan_on_a_server_runs_to_a_verified_bundle(plan: Path) -> None:
    outcome = run(plan)
    assert outcome.remaining.epsilon == 0
    assert outcome.bundle is not None
    found = verify_bundle(outcome.bundle, ledger=plan.parent / "ledger.db")
    assert not [one for one in found if one.wrong], found


def test_jobs_are_those_of_the_files(database: Database, plan: Path, tmp_path: Path) -> None:
    assert jobs_are_those_of_the_files(database, tmp_path).name == "jobs"


def test_everything_of_a_run_is_read_at_one_moment(
    database: Database, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two tables, and between the check of rows and the release, rows go; the run sees none of it."""
    seen = rows_go_between_tables(database, monkeypatch)
    assert len(run(plan).publications) == 3
    assert seen[0] == 40
    assert len(seen) == 2
    assert seen[1] > 100


def test_a_model_is_checked_and_released_from_one_copy(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    rows = {"y": rng.normal(size=600), "g": np.repeat(np.arange(20.0), 30)}
    database.fill("panel", pa.table(rows))
    path = tmp_path / "model.toml"
    path.write_text(
        f"""
[data]
source = "{database.address("panel")}"
public = ["g"]
[unit]
kind = "rows"
lower = -10
upper = 10
response = "y"
[budget]
epsilon = 2
ledger = "ledger.db"
dataset = "panel"
[[release]]
name = "model"
kind = "model"
formula = "y ~ 1 + g"
epsilon = 2
[output]
folder = "out"
"""
    )
    reads: list[str] = []
    fetch = moment._fetch
    monkeypatch.setattr(moment, "_fetch", lambda c, a, n: (reads.append(a.table), fetch(c, a, n))[1])
    assert check(read_plan(path)).releases[0].expected is not None
    assert len(run(path).publications) == 1
    assert reads == ["panel", "panel"]  # one of the check, one of the run


def test_types_come_as_files_have_them(database: Database) -> None:
    database.run(
        "CREATE TYPE shade AS ENUM ('light', 'dark')",
        "CREATE DOMAIN code AS varchar(5)",
        "CREATE TABLE odd (a numeric(6,0), b numeric(12,2), c shade, d code, e char(4), f uuid, g boolean, h date, "
        'i smallint, "Two Words" text, j numeric)',
        "INSERT INTO odd VALUES (7, 12.25, 'dark', '007', 'ab', gen_random_uuid(), true, '2026-01-31', 3, 'é', 1.5), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        f"GRANT SELECT ON odd TO {database.role}",
    )
    table = pq.read_table(databases.copied(database.address("odd")))
    types = [str(kind) for kind in table.schema.types]
    assert types == [
        *("int64", "double", "string", "string", "string", "string", "bool", "date32[day]"),
        *("int16", "string", "double"),
    ]
    first = table.to_pylist()[0]
    assert (first["c"], first["d"], first["e"]) == ("dark", "007", "ab")
    assert (first["a"], first["b"], first["Two Words"], first["j"]) == (7, 12.25, "é", 1.5)
    assert set(table.to_pylist()[1].values()) == {None}


def test_an_empty_table_has_its_columns(database: Database) -> None:
    database.run("CREATE TABLE nobody (a int, b text)", f"GRANT SELECT ON nobody TO {database.role}")
    assert pq.read_table(databases.copied(database.address("nobody"))).schema.names == ["a", "b"]


def test_the_copy_has_no_name_and_no_other_reader(database: Database) -> None:
    path = databases.copied(database.address("jobs"))
    about_it = Path(path).stat()
    assert stat.S_IMODE(about_it.st_mode) == 0o600
    if path.startswith("/proc"):
        assert about_it.st_nlink == 0


def test_a_copy_is_gone_with_the_run(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, fetch = [], moment._fetch
    monkeypatch.setattr(moment, "_fetch", lambda *given: kept.append(fetch(*given)) or kept[-1])
    run(plan, dry_run=True)
    assert len(kept) == 2
    assert all(copy.closed for copy in kept)


def test_a_resumed_run_finds_a_changed_table(plan: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that only moved are no change."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_publish", failing_after(1))
        with pytest.raises(KeyboardInterrupt):
            run(plan)
    database.run("UPDATE jobs SET sex = sex WHERE worker % 3 = 0")
    assert len(run(plan, dry_run=True).check.releases) == 3
    database.run("UPDATE jobs SET sex = CASE sex WHEN 'f' THEN 'm' ELSE 'f' END WHERE worker = 7")
    with pytest.raises(PlanError) as refusal:
        run(plan)
    assert "--changed-data" in str(refusal.value)
    assert len(run(plan, changed_data=True).publications) == 3


def test_the_password_is_nowhere(plan: Path) -> None:
    """Nor are host and user, in what is handed on."""
    outcome = run(plan)
    files = [path for path in plan.parent.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        assert PASSWORD.encode() not in path.read_bytes(), path
        if path != plan:
            assert b"127.0.0.1" not in path.read_bytes(), path
    assert outcome.bundle is not None
    with zipfile.ZipFile(outcome.bundle) as bundle:
        for name in bundle.namelist():
            held = bundle.read(name)
            assert PASSWORD.encode() not in held
            assert b"postgresql://" not in held, name
    assert PASSWORD not in json.dumps(outcome.to_dict()) + repr(outcome)


FAILURES = {
    "wrong password": ({"PGPASSWORD": "an0ther-Pa55"}, "", "", "did not take the user or the password"),
    "no password": ({"PGPASSWORD": None, "PGPASSFILE": "/dev/null"}, "", "", "did not take the user or the password"),
    "no server": ({}, r"127.0.0.1:\d+", "127.0.0.1:9", "no server answers there"),
    "no host": ({}, r"127.0.0.1:\d+", "nowhere.invalid", "no server answers there"),
    "no database": ({}, r"/ledger_\w+::jobs", "/elsewhere::jobs", "there is no such database"),
    "no table": ({}, "::jobs", "::job", "Did you mean 'jobs'?"),
    "no right": ({}, "::jobs", "::hidden", "this user may not read it"),
    "no column": ({}, "::jobs", "::places", "Column 'worker' is not in places"),
    "no service": ({}, r"127.0.0.1:\d+/ledger_\w+::jobs", "/?service=nothing::jobs", "there is no such service"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_said_and_costs_nothing(
    failure: str, plan: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, old, new, words = FAILURES[failure]
    database.run("CREATE TABLE hidden (worker bigint, workplace bigint, sex text)")
    for name, value in environment.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    if old:
        plan.write_text(re.sub(old, new, plan.read_text(), count=1))
    refused_at_its_place(plan, words, PASSWORD, "an0ther-Pa55")


SECRETS = (
    "postgresql://reader:hunter2@host/db::jobs",
    "postgresql://reader:hunter2@host:99999999/db::jobs",
    "postgres://reader@host/db?password=hunter2::jobs",
    "postgresql://reader@host/db?sslpassword=hunter2::jobs",
    "postgresql://reader:hun/hunter2@host/db::jobs",
    "postgresql://reader:hunter2@[::1]/db::jobs",
    "postgresql+psycopg://reader:hunter2@host/db::jobs",
    "PostgreSQL://reader:hunter2@host/db::jobs",
    "mysql://reader:hunter2@host/db::jobs",
    "postgresql://reader@host/db?hunter2=1::jobs",
    "postgresql://reader@host/db::hunter2::jobs",
    "postgresql://hunter2",
    "postgresql://reader@host/db@hunter2::jobs",
    "postgresql://reader@host/db::jobs?password=hunter2",
    "postgresql://reader%3Ahunter2@host/db::jobs",
    " postgresql://reader:hunter2@host/db::jobs",
    "jdbc:postgresql://reader:hunter2@host/db::jobs",
    "postgresql:/reader:hunter2@host/db::jobs",
    "s3://key:hunter2@bucket/jobs.parquet",
    "https://reader:hunter2@host/jobs.parquet",
)


@pytest.mark.parametrize("address", SECRETS)
def test_an_address_with_a_secret_is_refused_and_not_repeated(
    address: str, toys: Callable[[Path], Path], tmp_path: Path
) -> None:
    refused_and_not_repeated(address, toys(tmp_path), here=not address.startswith("mysql"))


def test_an_address_without_a_table_says_how_it_is_named() -> None:
    with pytest.raises(DataError, check=about("source")):
        dc.read_jobs("postgresql://reader@[::1]/db", schema=dc.Schema(["place"], {}))


def test_two_names_of_one_table_are_one_data_set() -> None:
    one = Address.of("postgresql://a@localhost/db::jobs")
    assert one.same_as(Address.of("postgres://b@127.0.0.1:5432/db?sslmode=require::public.jobs"))
    assert not one.same_as(Address.of("postgresql://a@localhost/db::other"))
    assert not one.same_as(Address.of("postgresql://a@localhost:5433/db::jobs"))


def test_a_password_file_outside_the_plan_is_enough(
    plan: Path, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    keys = tmp_path / "pgpass"
    keys.touch(mode=0o600)
    keys.write_text(f"127.0.0.1:{database.port}:*:{database.role}:{PASSWORD}\n")
    monkeypatch.setenv("PGPASSFILE", str(keys))
    assert run(plan, dry_run=True).check.faults == ()


def test_a_missing_driver_says_how_to_get_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    driver_is_missed("adbc_driver_postgresql", "adbc_driver_postgresql", database, monkeypatch)


def test_a_full_disk_is_said_and_costs_nothing(plan: Path) -> None:
    """A file of the process may hold 4 KB."""
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from discreet.data.databases import copied; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); copied(sys.argv[1])"
    )
    address = re.search(r'"(postgresql:[^"]*::jobs)"', plan.read_text())[1]  # type: ignore[index]
    done = subprocess.run(
        [sys.executable, "-c", limited, address], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "could not be copied: File too large" in done.stderr
    assert "TMPDIR" in done.stderr


def test_the_transaction_can_write_nothing(database: Database) -> None:
    """Even the owner's own view that writes is refused by the transaction."""
    database.run(
        "CREATE TABLE log (n int)",
        "CREATE FUNCTION note() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO log VALUES (1) RETURNING n'",
        "CREATE VIEW noting AS SELECT note() AS n",
        f"GRANT SELECT ON noting TO {database.role}",
        f"GRANT ALL ON log TO {database.role}",
    )
    with pytest.raises(DataError) as refusal:
        databases.copied(database.address("noting"))
    assert "reading it would write" in str(refusal.value)


def test_a_desk_takes_an_address_and_no_password(database: Database, tmp_path: Path) -> None:
    desk_takes_an_address_and_no_password(database, "postgresql://reader:hunter2@host/db::jobs", tmp_path / "desk")


LARGE = """
[data]
source = {source!r}
workplaces = {workplaces!r}
schema = "schema.json"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 6
ledger = {ledger!r}
dataset = "large"
[[release]]
name = "workers"
kind = "count"
by = ["place", "sector", "ownership", "sex", "education"]
epsilon = 4
[output]
folder = {folder!r}
"""


def spent(command: list[str]) -> tuple[float, int]:
    """Processor seconds and most memory in KiB of a process, without the server's."""
    code = (
        "import json, resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=2); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, check=True)
    code_of_it, seconds, memory = json.loads(done.stdout)
    assert code_of_it == 0
    return seconds, memory


@pytest.mark.full_size
def test_ten_million_jobs_stream_in_bounded_memory(database: Database, tmp_path: Path) -> None:
    """Beside the same plan on files, and the same query by hand on the server."""
    import time

    import duckdb
    import psycopg

    from discreet.simulate import lodes

    lodes.write(tmp_path / "lodes", seed=0)
    schema = dc.Schema.beside(tmp_path / "lodes")
    assert schema is not None
    (tmp_path / "schema.json").write_text(json.dumps(schema.to_dict()))
    kinds = {"VARCHAR": "text", "BIGINT": "bigint", "INTEGER": "integer", "SMALLINT": "smallint", "TINYINT": "smallint"}
    for table in ("jobs", "workplace"):
        file = tmp_path / "lodes" / f"{table}.parquet"
        described = duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()
        columns = ", ".join(f'"{name}" {kinds.get(kind, "text")}' for name, kind, *_ in described)
        database.run(f"CREATE UNLOGGED TABLE large_{table} ({columns})")
        database.run(f"GRANT SELECT ON large_{table} TO {database.role}")
        duckdb.sql(f"COPY (SELECT * FROM '{file}') TO '{tmp_path / 'rows.csv'}' (HEADER false)")
        with (
            psycopg.connect(database.owner) as connection,
            (tmp_path / "rows.csv").open("rb") as rows,
            connection.cursor().copy(f"COPY large_{table} FROM STDIN (FORMAT csv)") as copy,
        ):
            while block := rows.read(1 << 20):
                copy.write(block)
        (tmp_path / "rows.csv").unlink()
    places = {
        "files": [str(tmp_path / "lodes" / f"{table}.parquet") for table in ("jobs", "workplace")],
        "server": [database.address(f"large_{table}") for table in ("jobs", "workplace")],
    }
    figures = {}
    for where, (source, workplaces) in places.items():
        plan = tmp_path / f"{where}.toml"
        filled = {"source": source, "workplaces": workplaces, "ledger": f"{where}.db", "folder": where}
        plan.write_text(LARGE.format(**filled))
        start = time.perf_counter()
        seconds, memory = spent([sys.executable, "-m", "discreet", "run", str(plan)])
        figures[where] = seconds, time.perf_counter() - start, memory / 2**20
    by = "w.place, w.sector, w.ownership, j.sex, j.education"
    query = f"SELECT {by}, count(*) FROM large_jobs j JOIN large_workplace w USING (workplace) GROUP BY {by}"
    start = time.perf_counter()
    with psycopg.connect(database.owner) as connection:
        rows = len(connection.execute(query).fetchall())
        by_hand = time.perf_counter() - start
        start = time.perf_counter()
        with connection.cursor().copy("COPY large_jobs TO STDOUT (FORMAT binary)") as copy:
            for _ in copy:
                pass
        stream = time.perf_counter() - start
    print("processor seconds, seconds, GiB of a run:", figures)
    print(f"by hand: {by_hand:.1f} s for the counts of {rows:,} cells in SQL; {stream:.1f} s to fetch all rows")
    assert figures["server"][2] < 1.5
