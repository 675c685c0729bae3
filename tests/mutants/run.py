"""Break the privacy core on purpose, one line at a time, and see whether the tests notice.

`make mutants` applies every mutation of the tables beside this file to a copy of the tree and runs the tests that
should notice it. A mutation that no test notices is a missing test. One that changes nothing anybody could see is
listed as equivalent, with the reason; its tests must pass. A text that is not found once is a fault of the table.
What was found is kept in out/mutants.json and used again while neither source nor tests have changed.

    python tests/mutants/run.py [--only PATTERN] [--workers 2] [--fresh]
"""

from __future__ import annotations

import argparse
import compileall
import fnmatch
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "out" / "mutants.json"
PATIENCE = 600  # seconds: what hangs is noticed too

SERVE = "--serve"
LOADED = ("numpy", "scipy.special", "scipy.optimize", "scipy.stats", "pyarrow.parquet", "duckdb", "flint", "pydantic")
LOADED += ("narwhals.stable.v2", "sqlalchemy")

KILLED, SURVIVED, STALE, BROKEN, EQUIVALENT = "killed", "survived", "stale", "broken", "equivalent"
GOOD = (KILLED, EQUIVALENT)


@dataclass(frozen=True)
class Mutation:
    """One change of one file.

    Attributes
    ----------
    file : below src/discreet.
    text, becomes : what is replaced, which the file has once, and by what.
    tests : the tests that should notice, as pytest names them.
    why : what an attacker or a careless maintainer would gain.
    equivalent : why nobody can notice, where that is so.
    """

    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]
    why: str
    equivalent: str = ""

    @property
    def path(self) -> str:
        return f"src/discreet/{self.file}"

    @property
    def name(self) -> str:
        return f"{self.file}: {self.why}"

    def applied(self, source: str) -> str | None:
        """The file's text with the change in it; None where the text is not there once."""
        return source.replace(self.text, self.becomes) if source.count(self.text) == 1 else None


def mutations() -> list[Mutation]:
    """All of them, in the order of the tables: [["file.py"]] with text, becomes, tests and why."""
    found = []
    for table in sorted(HERE.glob("*.toml")):
        for file, changes in tomllib.loads(table.read_text(encoding="utf-8")).items():
            found += [Mutation(file, **{**change, "tests": tuple(change["tests"])}) for change in changes]
    return found


def tree() -> Iterator[Path]:
    """Every file of the project that is not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    yield from (Path(name) for name in sorted(listed.split("\0")) if name and (ROOT / name).is_file())


def state_of(files: list[Path]) -> str:
    """A digest of source and tests: an answer holds for as long as it does."""
    digest = hashlib.sha256()
    for path in files:
        if path.parts[0] in ("src", "papers", "tests") and path.parent != Path("tests/mutants"):
            digest.update(str(path).encode() + b"\0" + (ROOT / path).read_bytes())
    return digest.hexdigest()


def copied(files: list[Path], into: Path) -> Path:
    for path in files:
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, into / path)
    compileall.compile_dir(into / "src", quiet=1)
    return into


class Tester:
    """A copy of the tree, and a process that has loaded what all tests need and forks to run some of them."""

    def __init__(self, copy: Path, loaded: Sequence[str] = LOADED) -> None:
        self.copy = copy
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, str(Path(__file__).resolve()), SERVE, *loaded]
        self.process = subprocess.Popen(
            command, cwd=copy, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, tests: Sequence[str]) -> tuple[int, str]:
        """Exit code and output of the tests; -1 when they did not end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(list(tests)) + "\n")
        self.process.stdin.flush()
        code, output = json.loads(self.process.stdout.readline())
        return code, output

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(loaded: Sequence[str]) -> None:
    """For every line of test names run them in a child; nothing of discreet is loaded here."""
    import pytest

    for module in loaded:
        importlib.import_module(module)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as told:
            child = os.fork()
            if not child:
                for stream in (1, 2):
                    os.dup2(told.fileno(), stream)
                os.setpgid(0, 0)
                options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not full_size"]
                code = int(pytest.main([*options, *json.loads(line)]))
                sys.stdout.flush()
                os._exit(code)
            code = _ended(child)
            told.seek(0)
            output = told.read().decode(errors="replace")
        print(json.dumps([code, output[-20_000:]]), flush=True)


def _ended(child: int) -> int:
    """The exit code of a child of ours, -1 if it had to be ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def judged(mutation: Mutation, tester: Tester) -> dict[str, str]:
    """What became of a mutation, and the test that noticed it."""
    path = tester.copy / mutation.path
    source = path.read_text(encoding="utf-8") if path.is_file() else ""
    times, changed = path.stat() if source else None, mutation.applied(source)
    if changed is None or times is None:
        return {"outcome": STALE, "by": f"its text is there {source.count(mutation.text)} times"}
    try:
        compile(changed, str(path), "exec")
        path.write_text(changed, encoding="utf-8")
        code, output = tester.run(mutation.tests)
    except SyntaxError as error:
        return {"outcome": BROKEN, "by": str(error)}
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that what was compiled holds again
    if code == 0:
        return {"outcome": EQUIVALENT if mutation.equivalent else SURVIVED, "by": mutation.equivalent}
    noticed = [line.split()[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if code == -1:
        noticed = ["a test that did not end"]
    if code not in (1, -1) or not noticed:
        return {"outcome": BROKEN, "by": output[-2000:]}
    by = noticed[0]
    if mutation.equivalent:
        return {"outcome": BROKEN, "by": f"it is called equivalent, and {by} noticed"}
    return {"outcome": KILLED, "by": by}


def run(chosen: list[Mutation], *, workers: int, fresh: bool, console: Console) -> dict[str, dict[str, str]]:
    files = list(tree())
    state = state_of(files)
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() and not fresh else {}
    known = kept.get("found", {}) if kept.get("state") == state else {}
    answers = {m.name: known[_key(m)] for m in chosen if _key(m) in known}
    waiting = [m for m in chosen if m.name not in answers]
    with (
        tempfile.TemporaryDirectory(prefix="discreet-mutants-") as place,
        Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        ) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        testers: SimpleQueue[Tester] = SimpleQueue()
        for i in range(workers if waiting else 0):
            testers.put(Tester(copied(files, Path(place) / str(i))))
        task = bar.add_task("mutants", total=len(chosen), completed=len(answers))

        def judge(mutation: Mutation) -> dict[str, str]:
            tester, start = testers.get(), time.monotonic()
            try:
                return judged(mutation, tester) | {"seconds": f"{time.monotonic() - start:.1f}"}
            finally:
                testers.put(tester)

        if waiting:
            bar.update(task, description="the tests, without a mutation")
            tester = testers.get()
            code, output = tester.run(sorted({test for m in waiting for test in m.tests}))
            testers.put(tester)
            if code:
                raise SystemExit(f"The tests must pass before anything is broken.\n{output[-3000:]}")
        futures = {pool.submit(judge, mutation): mutation for mutation in waiting}
        for future in as_completed(futures):
            mutation = futures[future]
            answers[mutation.name] = known[_key(mutation)] = future.result()
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps({"state": state, "found": known}, indent=1))
            if future.result()["outcome"] not in GOOD:
                console.print(f"{future.result()['outcome']}: {mutation.name}", style="bold red", markup=False)
            bar.update(task, advance=1, description=f"{mutation.file:40.40}")
        while not testers.empty():
            testers.get().close()
    return answers


def _key(mutation: Mutation) -> str:
    return hashlib.sha256(json.dumps(asdict(mutation), sort_keys=True).encode()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="mutations whose 'file: why' matches, as in *erm*"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    asked = parser.parse_args()
    console = Console()
    chosen = [m for m in mutations() if fnmatch.fnmatch(m.name, asked.only)]
    answers = run(chosen, workers=asked.workers, fresh=asked.fresh, console=console)
    for mutation in chosen:
        found = answers[mutation.name]
        if found["outcome"] != KILLED:
            console.print(f"{found['outcome']}: {mutation.name}\n    {found['by']}", markup=False)
    counts = {
        outcome: sum(a["outcome"] == outcome for a in answers.values()) for outcome in (*GOOD, SURVIVED, STALE, BROKEN)
    }
    console.print(f"{len(chosen)} mutations: " + ", ".join(f"{n} {outcome}" for outcome, n in counts.items()))
    return 0 if all(a["outcome"] in GOOD for a in answers.values()) else 1


if __name__ == "__main__":
    sys.exit(serve(sys.argv[2:]) if sys.argv[1:2] == [SERVE] else main())
