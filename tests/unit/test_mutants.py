"""The tables of mutations fit the code as it is, so that `make mutants` cannot go stale in silence."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LEAST = 100


@cache
def harness() -> Any:
    spec = importlib.util.spec_from_file_location("mutants_run", ROOT / "tests" / "mutants" / "run.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["mutants_run"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def mutations() -> dict[str, Any]:
    found = harness().mutations()
    named = {mutation.name: mutation for mutation in found}
    assert len(named) == len(found), "two mutations of a file have the same reason"
    return named


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_mutations_fit_their_files_and_name_tests_that_exist() -> None:
    faults = []
    for mutation in mutations().values():
        text = source(mutation.path)
        if mutation.applied(text) in (None, text):
            faults.append(f"{mutation.name}: {mutation.text!r} is there {text.count(mutation.text)} times")
        for test in mutation.tests:
            path, _, function = test.partition("::")
            if not (ROOT / path).is_file() or f"def {function.partition('[')[0]}" not in source(path):
                faults.append(f"{mutation.name}: there is no {test}")
    assert not faults, "\n".join(faults)


def test_there_are_enough_of_them_and_few_are_equivalent() -> None:
    found = list(mutations().values())
    assert len(found) >= LEAST + sum(bool(m.equivalent) for m in found)


class Fake:
    """Tests that pass, fail, hang or cannot start, as the mutated file says."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy

    def run(self, tests: tuple[str, ...]) -> tuple[int, str]:
        text = (self.copy / "src" / "discreet" / "core.py").read_text()
        if "noise = 2" in text:
            return 0, "1 passed"
        return (-1, "") if "while" in text else (1, "" if "crash" in text else f"FAILED {tests[0]} - assert 1 == 2")


def test_the_harness_sees_what_becomes_of_a_mutation(tmp_path: Path) -> None:
    run = harness()
    core = tmp_path / "src" / "discreet" / "core.py"
    core.parent.mkdir(parents=True)
    core.write_text("noise = 2\n")
    times = core.stat().st_mtime_ns

    def outcome(text: str, becomes: str, equivalent: str = "", tester: Any = None) -> str:
        mutation = run.Mutation("core.py", text, becomes, ("test_core.py::test_noise",), "less noise", equivalent)
        return str(run.judged(mutation, tester or Fake(tmp_path))["outcome"])

    assert outcome("noise = 2", "noise = 1") == run.KILLED
    assert outcome("noise = 2", "while True:\n    pass") == run.KILLED
    assert outcome("noise = 2", "noise = 2  # much") == run.SURVIVED
    assert outcome("noise = 2", "noise = 2  # much", "a remark") == run.EQUIVALENT
    assert outcome("noise = 2", "noise = 1", "it is not") == run.BROKEN
    assert outcome("noise = 2", "crash = 1") == run.BROKEN, "an end that no test explains is no notice"
    assert outcome("noise = 3", "noise = 1") == run.STALE
    assert outcome("noise = 2", "noise = (") == run.BROKEN
    assert (core.read_text(), core.stat().st_mtime_ns) == ("noise = 2\n", times)
    (tmp_path / "test_core.py").write_text(
        "def test_noise():\n    from discreet.core import noise\n    assert noise == 2\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = full_size\n")
    real = run.Tester(tmp_path, loaded=())
    assert outcome("noise = 2", "noise = 1", tester=real) == run.KILLED
    real.close()
