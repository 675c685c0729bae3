"""A proof names the source that it covers, and a hash of it: neither changes without the other being read again."""

from __future__ import annotations

import ast
import importlib.util
import sys
from functools import cache
from inspect import getfile
from pathlib import Path
from typing import Any

import pytest

from discreet.privacy.source_code import Module
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import OURS
from discreet.tables.sizes import NoisySizes

ROOT = Path(__file__).parents[2]


@cache
def proofs() -> Any:
    spec = importlib.util.spec_from_file_location("proofs", ROOT / "tests" / "proofs.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["proofs"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_a_proof_covers_is_what_it_was_read_against() -> None:
    parted = {}
    for proof in sorted(proofs().PROOFS.glob("*.md")):
        for file, stated in proofs().covered(proof).items():
            if proofs().hashed(file) != stated:
                parted[proof.name] = [*parted.get(proof.name, []), file]
    assert not parted, f"Read these proofs against the changed source, then run tests/proofs.py: {parted}"


def test_every_proof_covers_the_source_that_states_it() -> None:
    """A module with a proof's path among its values, such as `PROOF`, promises what the proof says."""
    covered = {f"docs/proofs/{proof.name}": proofs().covered(proof) for proof in proofs().PROOFS.glob("*.md")}
    assert not [proof for proof, files in covered.items() if not files]
    stated = {
        (node.value, path.relative_to(proofs().SOURCE).as_posix())
        for path in proofs().SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in covered
    }
    assert len(stated) > 10
    assert not [(proof, file) for proof, file in sorted(stated) if file not in covered[proof]]


@pytest.mark.parametrize("kind", [*OURS, NoisySizes], ids=lambda kind: kind.name)
def test_every_mechanism_is_covered_with_all_that_it_is_built_on(kind: type[Mechanism]) -> None:
    covered = proofs().covered(ROOT / kind.proof)
    built_on = [each for each in kind.__mro__ if each.__module__.startswith("discreet.")]
    needed = {Path(getfile(each)).relative_to(proofs().SOURCE).as_posix() for each in built_on}
    assert needed <= covered.keys()


@pytest.mark.parametrize("kind", [*OURS, NoisySizes], ids=lambda kind: kind.name)
def test_every_mechanism_is_covered_with_what_decides_how_much_it_hides(kind: type[Mechanism]) -> None:
    """The law of the noise is a mechanism's own. What it is scaled by, and its part of epsilon, are decided outside."""
    covered = proofs().covered(ROOT / kind.proof)
    assert not [each for each in proofs().DECIDES if each not in covered]


def test_less_noise_parts_a_proof_from_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, changed = proofs().SOURCE, tmp_path / "tables" / "query.py"
    query = (source / "tables" / "query.py").read_text(encoding="utf-8")
    hidden = "tables/query.py::CountQuery._hidden"
    stated = proofs().hashed(hidden)
    changed.parent.mkdir()
    monkeypatch.setattr(proofs(), "SOURCE", tmp_path)
    for text, becomes, same in (
        ("        return cells.largest\n", "        return cells.largest // 2\n", False),
        ("if strong and self.concerns_workers:", "if strong:", False),
        ("def bounds_size(", "def bounding_size(", True),
        ("times what it has in the cell.", "times its share of the cell.", True),
    ):
        assert query.count(text) == 1, text
        changed.write_text(query.replace(text, becomes), encoding="utf-8")
        assert (proofs().hashed(hidden) == stated) is same
    changed.write_text(query.replace("def _hidden(", "def _concealed("), encoding="utf-8")
    with pytest.raises(LookupError):
        proofs().hashed(hidden)


MODULE = '''"""Words."""
from a import b

X = 2  # a reason
"""More words."""


def f(x):
    """It is doubled."""
    if x:
        x = b(x)
    return X * x
'''


@pytest.mark.parametrize(
    ("text", "becomes", "same"),
    [
        ("Words", "Other words", True),
        ("a reason", "a cause", True),
        ("It is doubled.", "Twice as much.", True),
        ("from a ", "from a.c ", True),
        ("\n\n\n", "\n\n", True),
        ("X = 2", "X = 3", False),
        ("X * x", "X + x", False),
        ("import b", "import c as b", False),
        ("    return", "        return", False),
    ],
)
def test_a_hash_follows_what_is_computed_and_not_the_words(text: str, becomes: str, same: bool) -> None:
    changed = MODULE.replace(text, becomes)
    assert changed != MODULE
    assert (Module.of(changed, words=True).text == Module.of(MODULE, words=True).text) is same
