"""Releases that protect groups of rows: intervals cover, and fitted values are no worse than with a divided loss."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed

RNG = np.random.Generator
POINTS = 0.02  # coverage within two points of nominal
KINDS: dict[str, Callable[[RNG, np.ndarray], np.ndarray]] = {
    "normal": lambda rng, x: rng.normal(size=len(x)),
    "skewed": lambda rng, x: rng.exponential(size=len(x)) - 1,
    "heteroskedastic": lambda rng, x: rng.normal(size=len(x)) * np.where(x > 0, 1.3, 0.55),
}


def errors(kind: str, epsilon: float, repeats: int) -> tuple[np.ndarray, int]:
    """Standardised errors of three fixed effects, where firms of one to nine rows are protected, and how often
    effects of counties were measured."""
    rng, rows, found, measured = np.random.default_rng(4), 4_000, [], 0
    firm = np.repeat(np.arange(800), rng.permutation(np.arange(800) % 9 + 1))[:rows]
    county, x = (firm * 7919) % 60, rng.uniform(-1, 1, len(firm)).round(3)
    big = firm % 2
    design = {"firm": firm, "county": county, "x": x, "big": np.where(big, "yes", "no")}
    for seed in range(repeats):
        y = 1 + 0.1 * big + 0.05 * x + rng.normal(0, 0.1, 60)[county] + 0.15 * KINDS[kind](rng, x)
        fit = release_mixed(
            "y ~ 0 + big + x + (1 | county)",
            {**design, "y": y},
            epsilon=epsilon,
            public=["firm", "county", "x", "big"],
            protect=["firm"],
            bounds=(-1, 3),
            seed=seed,
        )
        truth = {"bigno": 1.0, "bigyes": 1.1, "x": 0.05}
        found.append([(fit.fixed[name] - value) / fit.se[name] for name, value in truth.items()])
        measured += all(flag.word != "not measured" for flag in fit.flags)
    return np.array(found), measured


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", [1, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_where_groups_of_rows_are_protected(kind: str, epsilon: float) -> None:
    """Where effects are not measured intervals may cover too much: they allow for any variance of the effects."""
    found, measured = errors(kind, epsilon, repeats=400)
    assert measured == (0 if epsilon == 1 else 400)
    covered = float((np.abs(found) < 1.959964).mean())
    assert 0.95 - POINTS < covered < (0.95 + POINTS if measured else 1.0), covered


def kept(flows, epsilon: object, protect: list[str], repeats: int, **split: object) -> float:  # type: ignore[no-untyped-def]
    """The mean correlation of responses with fitted values."""
    formula, public = "jcr ~ 0 + industry + quarter + (1 | county)", ["industry", "quarter", "county"]
    found = []
    for seed in range(repeats):
        fit = release_mixed(formula, flows, epsilon=epsilon, public=public, protect=protect, seed=seed, **split)
        found.append(np.corrcoef(fit.fitted(flows), flows["jcr"].to_numpy())[0, 1])
    return float(np.mean(found))


def simulated(share: float):  # type: ignore[no-untyped-def]
    from discreet.simulate import qwi, stream

    table = stream.collect(qwi.batches(seed=0, share=share))["qwi"]
    return table.select(["jcr", "county", "industry", "quarter"]).unify_dictionaries()


def compared(share: float, epsilon: int, protect: list[str], repeats: int) -> tuple[float, float]:
    flows = simulated(share)
    largest = flows.group_by(protect).aggregate([("jcr", "count")])["jcr_count"].to_numpy().max()
    divided = Fraction(epsilon, int(largest))
    return kept(flows, epsilon, protect, repeats), kept(flows, divided, [], repeats)


def test_protected_industries_of_counties_keep_no_less_than_a_divided_loss() -> None:
    mine, divided = compared(0.01, 40, ["county", "industry"], repeats=8)
    assert mine > divided - 0.003, (mine, divided)


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("protect", [["county", "industry"], ["county"]], ids=str)
def test_at_full_size_fitted_values_are_no_worse_than_with_a_divided_loss(protect: list[str], epsilon: int) -> None:
    mine, divided = compared(1.0, epsilon, protect, repeats=8)
    assert mine > divided - 0.001, (mine, divided)
