"""Widely dispersed counts against glmmTMB: `dispersed.R` made the numbers, from data that this file writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc

PUBLISHED = json.loads((Path(__file__).parent / "dispersed.json").read_text())
CLOSE = 1e-5  # glmmTMB stops its search about there
ZEROS, LARGE = (0, 6, 12), (0, 4, 10)


def counts(seed: int, *, rows: int, groups: int, constant: float, spread: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g, k, x = rng.integers(0, groups, rows), rng.integers(0, 3, rows), rng.normal(size=rows)
    mean = np.exp(constant + 0.4 * x + spread * rng.normal(size=groups)[g])
    y = rng.poisson(mean * rng.gamma(0.4, 1, rows))
    return {"y": y, "x": x, "g": np.strings.add("g", g.astype(str)), "k": np.strings.add("k", k.astype(str))}


def zeros(seed: int) -> dict[str, Any]:
    return counts(seed, rows=400, groups=30, constant=3, spread=2)


def large(seed: int) -> dict[str, Any]:
    return counts(seed, rows=800, groups=40, constant=6, spread=2.5)


@pytest.mark.parametrize("seed", ZEROS)
def test_a_few_extra_zeros_are_found_from_several_starts(seed: int) -> None:
    """Red before: the search ended where there are none, and the likelihood is flat."""
    theirs = PUBLISHED[f"zeros {seed}"]
    fit = dc.mixed("y ~ x + (1 | g)", zeros(seed), family="zero-inflated-negative-binomial")
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-6)
    assert fit.fixed == pytest.approx(theirs["fixed"], rel=10 * CLOSE)
    assert fit.se == pytest.approx(theirs["se"], rel=10 * CLOSE)
    assert fit.own["extra zeros"] == pytest.approx(theirs["zeros"], rel=1e-3)  # the likelihood is flat in it
    assert fit.own["size"] == pytest.approx(theirs["size"], rel=10 * CLOSE)


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
@pytest.mark.parametrize("seed", LARGE)
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e4])
def test_errors_of_large_counts_are_theirs_in_any_unit(seed: int, unit: float) -> None:
    """Red before: 0.08, 0.11 and 0.64 for 0.48, 0.39 and 0.35, or not a number."""
    theirs, data = PUBLISHED[f"large {seed}"], large(seed)
    fit = dc.mixed("y ~ x + (1 | g) + (1 | k)", data | {"x": unit * data["x"]}, family="negative-binomial")
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-6)
    assert fit.fixed["x"] * unit == pytest.approx(theirs["fixed"]["x"], rel=CLOSE)
    assert fit.se["x"] * unit == pytest.approx(theirs["se"]["x"], rel=10 * CLOSE)
    assert fit.se["(Intercept)"] == pytest.approx(theirs["se"]["(Intercept)"], rel=10 * CLOSE)


if __name__ == "__main__":
    for made in (zeros, large):
        for seed in ZEROS if made is zeros else LARGE:
            pa.csv.write_csv(pa.table(made(seed)), Path(sys.argv[1]) / f"{made.__name__} {seed}.csv")
