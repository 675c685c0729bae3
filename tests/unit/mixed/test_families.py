"""A family is one file: it is found by being there, and nobody outside decides by its name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.models import linear
from discreet.models.linear import families
from discreet.models.linear.families import registry
from discreet.words.errors import FitError
from faults_of import about

SOURCE = Path(dc.__file__).parent
FILE = """
from dataclasses import replace

from discreet.models.linear.families.gamma import GAMMA

WAITS = replace(GAMMA, name="waits", of="waits")
"""


@pytest.fixture
def waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "waits.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    registry.known.cache_clear()
    yield
    registry.known.cache_clear()
    sys.modules.pop("discreet.models.linear.families.waits", None)


def test_a_file_is_a_family(waits: None) -> None:
    """Every door knows it, and the one that has no answer refuses it by its name."""
    rng = np.random.default_rng(1)
    data = {"y": rng.gamma(2.0, 1.0, 90), "g": np.arange(90) % 9, "x": rng.normal(size=90)}
    assert "waits" in registry.fitted()
    with pytest.warns(linear.MixedWarning):
        fit = dc.mixed("y ~ x + (1 | g)", data, family="waits")
    assert fit.family == "waits" and fit.refit(fit.simulate(seed=1)[:, 0]).own.keys() == {"shape"}
    with pytest.raises(FitError, check=about("family", naming=("waits",))):
        dc.mixed("y ~ x + (1 | g)", data, family="waiting")
    with pytest.raises(dc.errors.PrivacyError, check=about("family")):
        dc.release_mixed("y ~ x", data, epsilon=1, public=["x"], bounds=(0, 9), family="waits")


def decided(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines where something is compared with a name of a family, or chosen by it."""
    for node in ast.walk(tree):
        asked: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            asked = [each for side in node.comparators for each in getattr(side, "elts", [side])]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Dict):
            asked = [*node.keys]
        if any(isinstance(each, ast.Constant) and each.value in names for each in asked):
            yield node.lineno


def test_nobody_outside_decides_by_a_familys_name() -> None:
    names = set(registry.known()) - {"beta", "gamma"}  # which are also words for coefficients and parameters
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        if "families" not in path.parts
        for line in decided(ast.parse(path.read_text(encoding="utf-8")), names)
    ]
    assert not wrong, wrong
    asked = "a.family == 'poisson'", "{'poisson': 1}", "x in ('gaussian', 'b')", "match x:\n case 'binomial': pass"
    for text in asked:
        assert list(decided(ast.parse(text), names)), text
