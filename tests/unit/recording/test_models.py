"""Mixed models: the losses of all draws of a release add up to what the ledger was charged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.models.formula.rows import ModelRows
from discreet.models.linear.private import offers as private
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.partition import BlockEstimates
from discreet.models.linear.private.public import PublicDesign

Panel = dict[str, np.ndarray]
NEARLY = Fraction(97, 100)  # some responses come close to the one that moves the squares most
LOWER, UPPER = 0.0, 2.0
LOSSES = {"epsilon": {"epsilon": "1/3"}, "rho": {"rho": "0.2"}}
FORMULAS = {
    "linear": "y ~ x",
    "one term": "y ~ x + kind + (1 | g)",
    "nested": "y ~ x + kind + (1 | g) + (1 | g:h)",
}
TERMS = FORMULAS | {"slope": "y ~ x + (1 + x | g)", "crossed": "y ~ x + (1 | g) + (0 + x | h)"}
SUMS = {"linear": 2, "one term": 4, "nested": 4, "slope": 4, "crossed": 4}
"""How many kinds of sums are drawn, those by group included."""
THIRDS = dict.fromkeys(("groups", "fixed", "squares"), "1/3")  # with few rows the default leaves sums by group out


def panel() -> Panel:
    """Responses near the upper end, so that the centre of the squares is far from the middle of the range."""
    rng = np.random.default_rng(4)
    n = 72
    return {
        "x": np.append(rng.uniform(-1, 1, n - 1), 3.0),
        "kind": np.array(["a", "b", "c"])[np.arange(n) % 3],
        "g": np.array([f"g{i}" for i in np.arange(n) // 18]),
        "h": np.array([f"h{i}" for i in np.arange(n) % 2]),
        "y": 1.7 + 0.2 * rng.uniform(-1, 1, n),
    }


def replaced(data: Panel, row: int, value: float) -> Panel:
    return data | {"y": np.where(np.arange(len(data["y"])) == row, value, data["y"])}


def responses(row: int) -> Iterator[Panel]:
    """One row's response anywhere in its bounds, and beyond them."""
    for value in (1.55, 1.65, 1.75, 1.85, UPPER, -5.0, 9.0):
        yield replaced(panel(), row, value)


def door(formula: str, **ask: Any) -> Any:
    def release(data: Panel) -> tuple[Any, Any]:
        fit = release_mixed(formula, data, bounds=(LOWER, UPPER), public=["x", "kind", "g", "h"], seed=1, **ask)
        assert fit.guarantee.loss == fit.entry.loss
        (charged,) = fit.entry.loss.amounts.values()
        assert charged <= Fraction(next(ask[name] for name in ("epsilon", "rho") if name in ask))
        effects = [(term.values, term.std_errors) for term in fit.random]
        return (fit.released, fit.beta, fit.sigma2, effects, fit.notes, str(fit.guarantee)), fit.entry.loss

    return release


@pytest.mark.parametrize("ask", LOSSES)
@pytest.mark.parametrize("formula", TERMS)
def test_moments_lose_what_they_are_charged(formula: str, ask: str, losses, amount) -> None:
    """The last row has the largest x, so its response moves every sum as far as a response can."""
    data = replaced(panel(), 71, LOWER)
    split = THIRDS if "|" in TERMS[formula] else None
    worst, told = losses(door(TERMS[formula], split=split, **LOSSES[ask]), data, responses(71))
    charged = amount(told.charged)
    assert len(worst) == 2 and abs(told.public[0].centre) > 1000
    assert len(told.public[0].sums) == SUMS[formula]
    assert NEARLY * charged <= sum(worst) <= charged


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("ask", [{"epsilon": 8}, {"rho": 5}], ids=["epsilon", "rho"])
def test_a_look_and_what_it_decides_lose_what_they_are_charged(ask: Any, seen: bool, losses, amount) -> None:
    """Groups that differ by most of the range, or not at all; the row moves the length nearly as far as its sum."""
    mine = np.arange(72) >= 54
    at = panel() | {"y": np.where(mine, 0.2, 1.9) if seen else np.where(np.arange(72) == 71, LOWER, 1.6)}
    at = replaced(at, 71, LOWER)
    worst, told = losses(door("y ~ 1 + (1 | g)", **ask), at, (replaced(at, 71, v) for v in (1.0, UPPER, 9.0)))
    charged, released = amount(told.charged), told.public[0]
    assert released.looked is not None and len(released.sums) == (2 if seen else 1)
    assert len(worst) == 3 and Fraction(75, 100) * charged <= sum(worst) <= charged


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_families_lose_what_they_are_charged(family: str, losses, amount) -> None:
    """Shares and counts draw the sums of the linear model, and nothing else."""
    data = replaced(panel() | {"y": np.round(panel()["y"] / 2)}, 71, 0.0)
    high = 1.0 if family == "binomial" else 2.0

    def release(rows: Panel) -> tuple[Any, Any]:
        asked: Any = {"epsilon": "1/3", "bounds": (0, high), "public": ["x", "g"], "seed": 1, "family": family}
        fit = release_mixed("y ~ x + (1 | g)", rows, **asked)
        return (fit.released, fit.beta, fit.notes, str(fit.guarantee)), fit.entry.loss

    worst, told = losses(release, data, (replaced(data, 71, value) for value in (0.25, 0.5, high, -3.0, 9.0)))
    charged = amount(told.charged)
    assert len(worst) == 2 and Fraction(9, 10) * charged <= sum(worst) <= charged


@pytest.mark.parametrize("ask", LOSSES)
@pytest.mark.parametrize("formula", TERMS)
def test_groups_of_rows_lose_what_they_are_charged(formula: str, ask: str, losses, amount) -> None:
    """All 18 responses of the last group move from the lower to the upper end: every sum moves as far as it can.

    The centre of the squares is beside the middle, so that this costs the squares less than their share.
    """
    mine = np.arange(72) >= 54

    def neighbours() -> Iterator[Panel]:
        for value in (1.9, UPPER, 9.0):
            yield panel() | {"y": np.where(mine, value, panel()["y"])}

    x = np.where(mine, 1.0, panel()["x"])  # one sign, so that changes of one column add up
    split = THIRDS if "|" in TERMS[formula] else None
    release = door(TERMS[formula], protect=["g"], split=split, **LOSSES[ask])
    at = panel() | {"x": x, "y": np.where(mine, LOWER, panel()["y"])}
    worst, told = losses(release, at, (each | {"x": x} for each in neighbours()))
    charged = amount(told.charged)
    assert len(worst) == 2 and Fraction(80, 100) * charged <= sum(worst) <= charged


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_groups_of_rows_lose_what_a_family_is_charged(family: str, losses, amount) -> None:
    """All 18 responses of the last group move from one end to the other."""
    mine, high = np.arange(72) >= 54, 1.0 if family == "binomial" else 2.0
    data = panel() | {"x": np.where(mine, 1.0, panel()["x"]), "y": np.where(mine, 0.0, np.round(panel()["y"] / 2))}

    def release(rows: Panel) -> tuple[Any, Any]:
        asked: Any = {"epsilon": "1/3", "bounds": (0, high), "public": ["x", "g"], "seed": 1, "family": family}
        fit = release_mixed("y ~ x + (1 | g)", rows, protect=["g"], **asked)
        return (fit.released, fit.beta, fit.notes, str(fit.guarantee)), fit.entry.loss

    worst, told = losses(release, data, (data | {"y": np.where(mine, v, data["y"])} for v in (0.9, high, 9.0)))
    charged = amount(told.charged)
    assert len(worst) == 2 and Fraction(75, 100) * charged <= sum(worst) <= charged


BLOCKS = 6
EXTREMES = [
    (-1e9, 0.0),
    (1e9, 0.0),
    (1e9, 1e9),
    (0.02, 0.0),
    (np.nan, np.nan),
]  # a block's coefficients and effects; its variances


@pytest.mark.parametrize("ask", LOSSES)
@pytest.mark.parametrize("formula", FORMULAS)
def test_strict_loses_what_it_is_charged(formula: str, ask: str, losses, amount, monkeypatch) -> None:
    """A row may do anything to the estimates of its block, so one block's are set to the worst there are."""
    fit, extreme = private.fit_partition, list(EXTREMES[0])

    def fitted(data: ModelRows, public: PublicDesign, chosen: np.ndarray, **options: Any) -> BlockEstimates:
        found = fit(data, public, chosen, **options)
        size, variance = extreme
        mine = (chosen == 71).any(axis=1)
        effects = [(block, level, np.where(mine[block], size, u)) for block, level, u in found.effects]
        kept = [np.isfinite(size) | ~mine[block] for block, _, _ in effects]
        return replace(
            found,
            beta=np.where(mine[:, None] & (np.isfinite(found.beta) | np.isnan(size)), size, found.beta),
            variances=np.where(mine[:, None], variance, found.variances),
            effects=tuple(tuple(x[k] for x in entries) for entries, k in zip(effects, kept, strict=True)),
        )

    def neighbours() -> Iterator[Panel]:
        for extreme[:] in EXTREMES:
            yield replaced(panel(), 71, UPPER)

    monkeypatch.setattr(private, "fit_partition", fitted)
    asked = LOSSES[ask] | {"method": "strict", "blocks": BLOCKS}
    worst, told = losses(door(FORMULAS[formula], **asked), replaced(panel(), 71, LOWER), neighbours())
    charged = amount(told.charged)
    assert Fraction(95, 100) * charged <= sum(worst) <= charged  # deviations lie in a box, whose diameter is rounded up


def test_paper_draws_with_the_published_scales(record) -> None:
    """Lemma 1: the parts of one fitted value cost epsilon together; a standard deviation costs epsilon by itself."""
    release = door("y ~ x + kind + (1 | g)", epsilon="1/2", method="paper", blocks=BLOCKS)
    count = 1 + 3 + 4 + 2  # x; intercept and kinds; groups; deviations
    bare, moved = (record(lambda: release(panel()), script=[np.full(count, k)]) for k in (0, 1))
    flat = [np.concatenate([a.beta, *a.effects, a.deviations]) for (a,) in ((r.public[0],) for r in (bare, moved))]
    grid = flat[1] - flat[0]
    assert len(bare.draws) == 1 and np.all(grid > 0) and np.ptp(grid) < 1e-9 * grid[0]
    scale = bare.draws[0].scale * 2.0 ** np.round(np.log2(grid[0]))
    width = UPPER - LOWER
    names = ["(Intercept)", "x", "kindb", "kindc"]
    ranges = {"x": width / 200}
    fixed = {name: ranges.get(name, width) / (BLOCKS * s) for name, s in zip(names, scale, strict=False)}
    groups, deviations = width / (BLOCKS * scale[4:8]), width / 4 / (BLOCKS * scale[8:])
    assert fixed["kindb"] == fixed["(Intercept)"] and np.ptp(groups) == 0
    assert fixed["kindb"] + fixed["x"] + groups[0] == pytest.approx(0.5, rel=1e-12)
    assert deviations == pytest.approx(0.5, rel=1e-12)
