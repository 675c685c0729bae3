"""A real standalone cluster on loopback: the same numbers, a worker that dies, secrets, and what is refused."""

from __future__ import annotations

import re
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.plan.run import run
from discreet.release import account
from discreet.review.verdict import verify_bundle

sys.path.insert(0, str(Path(__file__).parent))
import programme
from standalone import Cluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "clusters.md"
pytestmark = [pytest.mark.spark, pytest.mark.full_size]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="needs discreet[spark]")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17")
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What DuckDB releases, with the same noise."""
    plan = programme.write(tmp_path_factory.mktemp("duckdb"))
    with pytest.MonkeyPatch.context() as same_noise:
        same_noise.setattr(account, "SystemSource", lambda: programme.Same(programme.SEED))
        run(plan)
    return without_parts(programme.numbers(plan.parent / "out"))


def without_parts(found: dict[str, bytes]) -> dict[str, bytes]:
    """Posterior summaries divide rows at random, whatever the engine."""
    return {name: table for name, table in found.items() if not name.startswith("slope/")}


class Running:
    """A run of a plan in a process of its own, which says its steps."""

    def __init__(self, plan: Path) -> None:
        command = [sys.executable, str(Path(programme.__file__)), str(plan)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []

    def until(self, step: str) -> None:
        assert self.process.stdout is not None
        while not self.said or self.said[-1] != step:
            line = self.process.stdout.readline()
            assert line, (self.said, self.process.stderr.read() if self.process.stderr else "")
            self.said.append(line.strip())

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=900)
        return self.process.returncode, "\n".join(self.said) + "\n" + out, err


def spent(plan: Path) -> list[str]:
    from discreet.ledger import Ledger

    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert sorted(str(entry.release) for entry in ledger.entries() if entry.kind == "charge") == sorted(
            ["levels", "sexes", "payroll", "model", "slope"]
        )
        return [str(budget.spent) for budget in ledger.budgets()]


def engine(master: str, more: str = "wait = 300\n") -> str:
    return programme.SPARK.format(master=master, more=more)


def test_a_cluster_gives_the_same_numbers_and_keeps_secrets(
    cluster: Cluster, expected: dict[str, bytes], tmp_path: Path
) -> None:
    secret = tmp_path / "cluster.properties"
    secret.write_text("spark.hadoop.fs.s3a.secret.key hunter2\n")
    secret.chmod(0o600)
    plan = programme.write(tmp_path / "plan", engine(cluster.master, f'wait = 300\nproperties = "{secret}"\n'))
    running = Running(plan)
    running.until("read for levels")
    told = b"".join(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))
    assert cluster.master.encode() in told and b"hunter2" not in told
    code, out, err = running.end()
    assert code == 0 and err == "", err
    assert without_parts(programme.numbers(plan.parent / "out")) == expected
    assert all(cluster.executors(name) for name in ("worker0", "worker1"))
    assert not [each for each in verify_bundle(plan.parent / "out" / "bundle.zip") if each.wrong]
    assert spent(plan) == ["epsilon=6", "epsilon=8"]
    ours = [path for path in plan.parent.rglob("*") if path.is_file()]
    assert not [path for path in ours if b"hunter2" in path.read_bytes()] and "hunter2" not in out + err


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(
    cluster: Cluster, expected: dict[str, bytes], tmp_path: Path
) -> None:
    plan = programme.write(tmp_path / "plan", engine(cluster.master))
    running = Running(plan)
    running.until("read for sexes")
    assert all(cluster.executors(name) for name in ("worker0", "worker1"))
    cluster.kill_worker("worker0")
    code, out, _ = running.end()
    cluster.add_worker("worker0")
    assert code == 0, out
    assert without_parts(programme.numbers(plan.parent / "out")) == expected
    assert spent(plan) == ["epsilon=6", "epsilon=8"]


def refused(plan: Path) -> str:
    """What a run says that is refused, with nothing spent."""
    code, out, _ = Running(plan).end()
    assert code == 2 and not (plan.parent / "ledger.db").exists() and not (plan.parent / "out").exists(), out
    return out.partition("refused: ")[2]


def test_a_file_that_workers_cannot_see_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    plan = programme.write(tmp_path / "plan", engine(cluster.master))
    mine = f"/proc/self/cwd/{(plan.parent / 'data' / 'jobs').relative_to('/')}"
    plan.write_text(plan.read_text().replace('"data/jobs"', f'"{mine}"'))
    command = [sys.executable, str(Path(programme.__file__)), str(plan)]
    found = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 2 and not (plan.parent / "ledger.db").exists(), found
    assert "worker" in found.stdout


def test_files_that_change_during_a_run_are_found(cluster: Cluster, tmp_path: Path) -> None:
    plan = programme.write(tmp_path / "plan", engine(cluster.master))
    running = Running(plan)
    running.until("read for sexes")
    (plan.parent / "data" / "places.parquet").touch()
    code, out, _ = running.end()
    assert code == 2 and not (plan.parent / "ledger.db").exists(), out
    assert "workplaces: " in out


def test_a_cluster_without_room_is_refused_in_bounded_time(tmp_path: Path) -> None:
    empty = Cluster(tmp_path / "cluster", workers=0)
    try:
        plan = programme.write(tmp_path / "plan", engine(empty.master, "wait = 5\n"))
        assert "5 seconds" in refused(plan)
    finally:
        empty.close()


def test_a_server_that_is_no_master_is_refused_in_bounded_time(tmp_path: Path) -> None:
    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        plan = programme.write(tmp_path / "plan", engine(f"spark://127.0.0.1:{server.server_address[1]}", "wait = 5\n"))
        begun = time.monotonic()
        assert refused(plan)
        assert time.monotonic() - begun < 300
        server.shutdown()


def test_the_how_to_is_followed_to_the_letter(tmp_path: Path) -> None:
    """Every block of the page in its order, in one shell, as a reader would type them."""
    blocks = re.findall(r"```(sh|toml|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["sh", "sh", "toml", "sh", "python"]
    parts = [f"set -e\ntrap 'kill $(jobs -p)' EXIT\ndiscreet() {{ {sys.executable} -m discreet \"$@\"; }}\n"]
    parts.append(f'python() {{ {sys.executable} "$@"; }}\n')
    for kind, text in blocks:
        if kind == "sh":
            parts.append(text)
        else:
            name = "plan.toml" if kind == "toml" else "session.py"
            (tmp_path / name).write_text(text, encoding="utf-8")
            parts += ["python session.py\n"] * (kind == "python")
    found = subprocess.run(
        ["bash", "-c", "".join(parts)], cwd=tmp_path, capture_output=True, text=True, timeout=1500, check=False
    )
    assert found.returncode == 0, (found.stdout, found.stderr)
    assert "The plan can be run" in found.stdout
    assert list(tmp_path.glob("worker1/app-*")) and list(tmp_path.glob("worker2/app-*"))
    assert (tmp_path / "out" / "bundle.zip").is_file() and (tmp_path / "ledger2.db").is_file()
