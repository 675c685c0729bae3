"""Alarms between two private models: false as seldom as promised, and a county that fell is found."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.utility.between import changes_between
from discreet.utility.model_changes import quantile
from discreet.words.errors import DataError
from faults_of import about

COUNTIES, ROWS, FELL = 24, 3_000, 3
NAMES = [f"c{i:02d}" for i in range(COUNTIES)]
RATE = 0.1


def released(
    effects: np.ndarray, rng: np.random.Generator, epsilon: float, seed: int, formula: str = "y ~ 1 + (1 | county)"
):
    county = rng.integers(0, COUNTIES, ROWS)
    y = np.clip(1 + effects[county] + rng.normal(0, 0.5, ROWS), -3, 5)
    data = {"y": y, "county": [NAMES[k] for k in county], "side": [("east", "west")[k % 2] for k in county]}
    return dc.mixed(formula, data).release(epsilon=epsilon, public=["county", "side"], bounds=(-3, 5), seed=seed)


def pair(rng: np.random.Generator, epsilon: float, seed: int, fall: float = 0.0):
    effects = rng.normal(0, 0.4, COUNTIES)
    later = effects - fall * (np.arange(COUNTIES) < FELL)
    return [released(each, rng, epsilon, 2 * seed + k) for k, each in enumerate((effects, later))]


@pytest.mark.parametrize(
    ("epsilon", "pairs"), [(4, 2), *(pytest.param(epsilon, 60, marks=pytest.mark.full_size) for epsilon in (1, 2, 4))]
)
def test_false_alarms_are_as_seldom_as_promised(epsilon: int, pairs: int) -> None:
    rng, false, found = np.random.default_rng(epsilon), [], 0
    for seed in range(pairs):
        false.append(changes_between(*pair(rng, epsilon, seed), rate=RATE).alarm.mean())
        fell = changes_between(*pair(rng, epsilon, seed, fall=3.0), rate=RATE, direction="decline")
        found += sum(alarm and cell[0] in NAMES[:FELL] for cell, alarm in zip(fell.cells, fell.alarm, strict=True))
    print(
        f"epsilon {epsilon}: {100 * np.mean(false):.1f} % of effects without a change, {found / pairs / FELL:.0%} found"
    )
    assert np.mean(false) <= RATE + 2 * np.std(false) / np.sqrt(pairs) and found > 0.9 * FELL * pairs


def test_terms_shares_and_ends() -> None:
    both = pair(np.random.default_rng(0), 4, 0, fall=3.0)
    listed = changes_between(*both, by=["county"], rate=RATE)
    one, other = (fit.effects["county"] for fit in both)
    k = NAMES.index(listed.cells[0][0])
    assert listed.after[0] - listed.before[0] == pytest.approx(other.values[k] - one.values[k])
    spread = np.hypot(one.std_errors[k], other.std_errors[k])
    assert listed.high[0] - listed.low[0] == pytest.approx(2 * quantile(RATE) * spread)
    few = changes_between(*both, fdr=0.1)
    assert few.fdr == 0.1 and few.rate < RATE and 0 < few.alarm.sum() <= listed.alarm.sum()
    fixed = changes_between(*both, by=["term"])
    assert fixed.cells == [("(Intercept)",)] and fixed.rate == pytest.approx(0.1)


def test_published_tables_of_models_have_the_same_alarms(tmp_path) -> None:
    """By two intervals, so none that the models themselves do not raise; variances have no error and raise none."""
    both = pair(np.random.default_rng(0), 4, 0, fall=3.0)
    for k, fit in enumerate(both):
        pq.write_table(fit.published(), tmp_path / f"{k}.parquet")
    tables = [tmp_path / f"{k}.parquet" for k in range(2)]
    listed = changes_between(*tables, by=["group", "term"], value="estimate")
    alarms = {cell[1] for cell, alarm in zip(listed.cells, listed.alarm, strict=True) if alarm}
    assert {*NAMES[:FELL]} <= alarms <= {cell[0] for cell in changes_between(*both).cells} | {"(Intercept)"}
    assert len(listed.cells) == COUNTIES + 3 and listed.rate == pytest.approx(0.1)


@pytest.mark.parametrize("rate", [0.2, 0.1, 0.05, 0.01, 1e-4, 1e-8])
def test_ends_hold_normal_and_laplace_errors(rate: float) -> None:
    from scipy.stats import laplace, norm

    ends = [norm.isf(rate / 2), laplace.isf(rate / 2, scale=1 / np.sqrt(2))]
    assert quantile(rate) == pytest.approx(max(ends))


def test_refusals() -> None:
    rng = np.random.default_rng(1)
    fit, other = pair(rng, 4, 0)
    table = {"county": ["a"], "count": [1.0], "lower": [0.0], "upper": [2.0]}
    slopes = released(np.zeros(COUNTIES), rng, 4, 3, "y ~ side + (1 | county)")
    for late, asked, name in ((table, {}, "late"), (slopes, {}, "late"), (other, {"by": ["state"]}, "by")):
        with pytest.raises(DataError, check=about(name)):
            changes_between(fit, late, **asked)
    with pytest.raises(DataError, check=about("rate")):
        changes_between(fit, other, rate=2.0)
