"""Designs drawn by chance are what was said of them, and both rows come from every one of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import hidden


def test_a_seed_repeats_a_run_and_others_do_not() -> None:
    first, again, other = (hidden.drawn(np.random.default_rng([seed, 0])) for seed in (5, 5, 6))
    assert first.formula == again.formula
    assert all(np.array_equal(first.columns[name], again.columns[name]) for name in first.columns)
    assert len(other.columns["y"]) != len(first.columns["y"])


def test_designs_are_of_every_shape_and_can_be_fitted() -> None:
    designs = [hidden.drawn(np.random.default_rng([0, number])) for number in range(60)]
    assert {design.shape for design in designs} == set(hidden.SHAPES)
    for design in designs:
        rows = len(design.columns["y"])
        assert hidden.ROWS[0] <= rows <= hidden.ROWS[1]
        assert all(len(column) == rows for column in design.columns.values())
        assert np.isfinite(design.columns["y"]).all()
        parents = {(g, a) for g, a in zip(design.columns["g"].tolist(), design.columns["a"].tolist(), strict=True)}
        assert len(parents) == len(np.unique(design.columns["g"]))


def test_the_worst_and_any_criterion_above_are_told() -> None:
    designs = [hidden.drawn(np.random.default_rng([0, number])) for number in range(3)]
    mine = {"cpu": [1.0, 1.0, 2.0], "criterion": [10.0, 20.0, 30.0], "mib": 100.0}
    theirs = {"cpu": [4.0, 3.0, 1.0], "criterion": [10.0, 20.0, 30.0], "mib": 100.0, "version": "1"}
    middle, worst = hidden._rows(designs, mine, theirs, 9)
    assert (middle.time, worst.time) == (3.0, 0.5)
    assert middle.agrees and "seed 9" in middle.agreement
    assert worst.behind and designs[2].formula in worst.why
    above, _ = hidden._rows(designs, {**mine, "criterion": [10.0, 20.001, 30.0]}, theirs, 9)
    assert not above.agrees and designs[1].formula in above.agreement


def test_a_table_is_written_for_every_design(tmp_path: Path) -> None:
    import json

    designs = [hidden.drawn(np.random.default_rng([3, number])) for number in range(2)]
    told = json.loads(hidden._written(designs, tmp_path).read_text())
    assert [one["formula"] for one in told] == [design.formula for design in designs]
    header = Path(told[0]["path"]).read_text().partition("\n")[0]
    assert header.replace('"', "").split(",") == list(designs[0].columns)


@pytest.mark.parametrize("seed", [1])
def test_no_covariate_is_constant(seed: int) -> None:
    for number in range(40):
        design = hidden.drawn(np.random.default_rng([seed, number]))
        assert all(len(np.unique(design.columns[name])) > 1 for name in design.columns if name.startswith("x"))
