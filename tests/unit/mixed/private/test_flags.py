"""What must be read before the estimates stands at the top and beside them, and defaults are not silently wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.lmm.private import release_mixed, strict
from discreet.privacy.losses import Concentrated, Pure

Data = dict[str, np.ndarray]
SLOPE = 2.61


def sloped(rows: int = 12_000, spread: float = 1.0) -> Data:
    rng = np.random.default_rng(1)
    g, x = rng.integers(0, 40, rows), rng.normal(size=rows)
    return {"y": 5 + SLOPE * x + rng.normal(0, spread, 40)[g] + rng.normal(0, 1, rows), "x": x, "g": g}


def by_strict(data: Data, **asked: Any) -> Any:
    asked = {"bounds": (-10, 20), "seed": 1, "public": ["x", "g"], **asked}
    return release_mixed("y ~ x + (1 | g)", data, method="strict", **asked)


def flags(fit: Any) -> set[tuple[str, str | None, str]]:
    return {(flag.effect, flag.group, flag.word) for flag in fit.flags}


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"epsilon": 3}, {"epsilon": 100}, {"rho": 0.5}])
def test_default_sizes_do_not_clip_a_slope(loss: dict[str, float]) -> None:
    """Before, sizes of W / 40 made it 0.4 here, and 0.1 in a narrower range, at every loss and without a word."""
    fit = by_strict(sloped(), **loss)
    assert fit.fixed["x"] == pytest.approx(SLOPE, abs=0.25)
    assert "clipped" not in {flag.word for flag in fit.flags}
    assert any("no standard errors" in note for note in fit.notes) and "no standard errors" in fit.summary()


@pytest.mark.parametrize("width", [(3, 7), (-5, 15), (-500, 500)])
@pytest.mark.parametrize("slope", [0.0, 0.3, SLOPE])
def test_a_slope_is_near_the_fit_of_all_rows_or_flagged(width: tuple[int, int], slope: float) -> None:
    data = sloped()
    data["y"] = np.clip(data["y"] + (slope - SLOPE) * data["x"], *width)
    fit = by_strict(data, epsilon=10, bounds=width)
    aim = np.polyfit(data["x"], data["y"], 1)[0]
    clipped = ("fixed", None, "clipped") in flags(fit)
    assert clipped or fit.fixed["x"] == pytest.approx(aim, abs=0.02 + (width[1] - width[0]) / 1000)


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"epsilon": 100}, {"rho": 0.5}])
def test_stated_sizes_that_clip_are_flagged_at_the_top_and_in_the_table(loss: dict[str, float]) -> None:
    fit = by_strict(sloped(), sizes={"fixed": 0.3, "groups": 5}, **loss)
    assert fit.fixed["x"] < 0.3
    assert ("fixed", None, "clipped") in flags(fit) and ("random", "g", "clipped") not in flags(fit)
    assert fit.notes[0].startswith("the fixed effects were clipped")
    assert fit.summary().splitlines()[2].startswith("Warning: the fixed effects were clipped")
    words = {(row["effect"], row["flag"]) for row in fit.tidy().to_pylist()}
    assert ("fixed", "clipped") in words and ("fixed", None) not in words and ("random", None) in words
    assert fit.to_dict()["flags"][0]["word"] == "clipped"
    large = by_strict(sloped(), sizes={"fixed": 20, "groups": 5}, **loss)
    assert not any(word == "clipped" for _, _, word in flags(large))


def test_stated_sizes_cost_nothing_and_others_their_share() -> None:
    data = sloped(600)
    for sizes, parts in (({"fixed": 1, "groups": 1}, 0), ({"fixed": 1}, 1), ({"groups": 1}, 1), (None, 2)):
        fit = by_strict(data, epsilon=1, sizes=sizes, blocks=20)
        assert sum(tally is not None for tally in fit.released.tallies) == parts
        assert fit.guarantee.loss == Pure(1) == fit.entry.loss


@pytest.mark.parametrize("loss", [Pure(1), Concentrated(1)])
def test_one_block_leaves_one_count_of_the_tally_and_enters_another(loss: Pure | Concentrated) -> None:
    part = strict.BlockPart(loss, 8.0, 2 * strict.STEPS, 1.0, loss)
    block, values = np.repeat(np.arange(30), 4), np.random.default_rng(3).lognormal(0, 3, 120)
    before = part.tally(block, values, 30)
    moves = set()
    for hostile in (0.0, 0.3, 1e-300, 1e300, np.inf, np.nan, 8.0):
        other = values.copy()
        other[:4] = hostile
        moved = np.abs(part.tally(block, other, 30) - before)
        moves.add(int(moved.sum()))
        assert moved.max() <= 1 and moved.sum() <= 2
    assert 2 in moves
    scale = Fraction(part.tally_scale)
    spent = 2 / scale if isinstance(loss, Pure) else 2 / scale**2 / 2
    assert float(spent) == pytest.approx(1) and spent <= 1


def test_a_variance_that_was_not_found_is_flagged_at_the_top_and_in_the_table() -> None:
    data = sloped(2000, spread=0.0)
    found = [
        release_mixed("y ~ x + (1 | g)", data, epsilon=0.3, public=["x", "g"], bounds=(-10, 20), seed=seed)
        for seed in range(6)
    ]
    zero = [fit for fit in found if fit.variances["g"] == 0]
    assert zero, "no release found a variance of 0"
    for fit in zero:
        assert ("variance", "g", "not found") in flags(fit)
        assert "Warning: no variance of g was found" in fit.summary().split("Variances:")[0]
        rows = [row for row in fit.tidy().to_pylist() if row["effect"] == "variance" and row["group"] == "g"]
        assert rows[0]["flag"] == "not found"
