"""Examples in docstrings run and say what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from source_files import PACKAGE

MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if any(">>>" in line and "+SKIP" not in line for line in path.read_text(encoding="utf-8").splitlines())
]


def test_there_are_examples() -> None:
    assert len(MODULES) > 3


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert done.attempted and not done.failed
