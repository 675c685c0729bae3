"""The tables of mutations fit the code as it is, so that `make mutants` cannot go stale in silence."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("name", list(mutations()))
def test_a_mutation_fits_its_file_and_names_tests_that_exist(name: str) -> None:
    mutation = mutations()[name]
    changed = mutation.applied(source(mutation.path))
    assert changed is not None, f"{mutation.text!r} is there {source(mutation.path).count(mutation.text)} times"
    assert changed != source(mutation.path)
    compile(changed, mutation.path, "exec")
    for test in mutation.tests:
        path, _, function = test.partition("::")
        assert f"def {function.partition('[')[0]}" in source(path)


def test_there_are_enough_of_them_and_few_are_equivalent() -> None:
    found = list(mutations().values())
    assert len(found) >= LEAST + sum(bool(m.equivalent) for m in found)


def test_the_harness_sees_what_becomes_of_a_mutation(tmp_path: Path) -> None:
    """A copy with one file and one test: noticed, not noticed, equivalent, stale and broken."""
    run = harness()
    (tmp_path / "src" / "discreet").mkdir(parents=True)
    (tmp_path / "src" / "discreet" / "core.py").write_text("noise = 2\n")
    (tmp_path / "test_core.py").write_text(
        "from pathlib import Path\n\n"
        "def test_noise():\n    assert 'noise = 2' in Path('src/discreet/core.py').read_text()\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = full_size\n")

    tester = run.Tester(tmp_path, loaded=())

    def outcome(text: str, becomes: str, equivalent: str = "") -> str:
        mutation = run.Mutation("core.py", text, becomes, ("test_core.py::test_noise",), "less noise", equivalent)
        return str(run.judged(mutation, tester)["outcome"])

    assert outcome("noise = 2", "noise = 1") == run.KILLED
    assert outcome("noise = 2", "noise = 2  # much") == run.SURVIVED
    assert outcome("noise = 2", "noise = 2  # much", "a remark") == run.EQUIVALENT
    assert outcome("noise = 2", "noise = 1", "it is not") == run.BROKEN
    assert outcome("noise = 3", "noise = 1") == run.STALE
    assert outcome("noise = 2", "noise = (") == run.BROKEN
    assert (tmp_path / "src" / "discreet" / "core.py").read_text() == "noise = 2\n"
    tester.close()
