"""A look at how far groups differ: what one row can change, what is drawn after it, and what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.look import LookedNoise, _sensitivity, noise_for
from discreet.models.linear.private.moments import MomentNoise, solve
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.sums import HALF, response_sums, units_of
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Concentrated, Pure
from discreet.utility.model_curves import Case, Trials, by_moments

FORMULA = "y ~ 0 + kind + (1 | g)"
COLUMNS = ["kind", "g"]
DRAWS = 24


def table(spread: float, seed: int = 3) -> dict[str, np.ndarray]:
    """3,000 rows of 40 groups, whose effects vary by `spread`; residuals by 0.05 in a range of one."""
    rng, rows = np.random.default_rng(seed), 3000
    g, kind = rng.integers(0, 40, rows), rng.integers(0, 5, rows)
    y = 0.5 + rng.normal(0, 0.02, 5)[kind] + rng.normal(0, spread, 40)[g] + rng.normal(0, 0.05, rows)
    return {"y": np.clip(y, 0, 1), "kind": np.array([f"k{i}" for i in kind]), "g": np.array([f"g{i}" for i in g])}


def prepared(data: Any, **loss: Any) -> tuple[PublicDesign, Any, Any, MomentNoise | LookedNoise]:
    frame = open_frame(data, ordered=True)
    public = public_design(frame, read_formula(FORMULA))
    request = release_mixed.ask(FORMULA, public=COLUMNS, bounds=(0, 1), seed=1, **loss).request
    units = units_of(frame, public)
    return public, request, response_sums(frame, public, units, request.scale), noise_for(public, units, request, None)


@pytest.mark.parametrize(("epsilon", "looks"), [(0.3, False), (1, True), (1.5, True), (4, False)])
def test_a_look_is_had_where_the_design_leaves_it_open(epsilon: float, looks: bool) -> None:
    assert isinstance(prepared(table(0.0), epsilon=epsilon)[3], LookedNoise) is looks


@pytest.mark.parametrize("loss", [{"epsilon": Fraction(1)}, {"rho": Fraction(1, 8)}])
def test_both_ways_spend_the_whole_loss(loss: dict[str, Fraction]) -> None:
    noise = prepared(table(0.0), **loss)[3]
    assert isinstance(noise, LookedNoise)
    (amount,) = loss.values()
    for each in (noise.measured, noise.unmeasured):
        spent = [noise.look.loss, *(part.loss for part in each.parts), each.squares]
        amounts = [part.epsilon if isinstance(part, Pure) else part.rho for part in spent if part]
        assert sum(amounts) == amount
    assert noise.measured.sees_groups and not noise.unmeasured.sees_groups
    assert isinstance(noise.loss, Pure | Concentrated) and noise.loss == type(noise.loss)(amount)


def test_groups_of_rows_are_not_looked_at() -> None:
    """A group of rows moves the length by its size, for which this noise is not scaled."""
    data, own = table(0.0), [f"pair {i // 2}" for i in range(3000)]
    for epsilon in (1, 1.5, 2, 3, 4):
        asked = release_mixed.ask(FORMULA, public=[*COLUMNS, "own"], bounds=(0, 1), epsilon=epsilon, protect=["own"])
        assert "otherwise" not in asked.offer(data | {"own": np.array(own)}).details


def test_one_row_changes_the_length_by_what_it_changes_in_one_sum() -> None:
    """All 40 groups, from sums near and far from zero, by one row that moves from end to end; nearly attained."""
    public, _, _, noise = prepared(table(0.0), epsilon=1)
    assert isinstance(noise, LookedNoise)
    rng, far = np.random.default_rng(1), 0
    for _ in range(50):
        sums = np.rint(rng.normal(0, rng.choice([0, 1, 1e3, 1e6]), len(public.n))).astype(np.int64)
        for group in range(len(public.n)):
            moved = sums.copy()
            moved[group] += 2 * HALF
            far = max(far, abs(noise.look.of(moved) - noise.look.of(sums)))
    assert 0.9 * 2 * HALF < far <= _sensitivity(public.n)
    assert noise.look.scale >= _sensitivity(public.n) / Fraction(1, 10) >= 20 * HALF


def test_what_fixed_columns_explain_is_no_difference_of_groups() -> None:
    public, _, _, noise = prepared(table(0.0), epsilon=1)
    assert isinstance(noise, LookedNoise)
    explained = np.rint(public.Sx @ np.arange(1.0, 6.0) * 1000).astype(np.int64)
    assert noise.look.of(explained) < 10 < 1000 < np.linalg.norm(explained)


def test_large_effects_are_seen_and_small_ones_cost_nothing_of_the_fixed_part() -> None:
    """Drawn with effects of 12 % of the range, not with none; then the fixed part has the linear model's noise."""
    often = {}
    for spread in (0.0, 0.12):
        public, request, sums, noise = prepared(table(spread), epsilon=1)
        exact, source = noise.exact(sums, public), SeededSource(2)
        drawn = [noise.draw(exact, source) for _ in range(DRAWS)]
        often[spread] = sum(noise.chosen(each).sees_groups for each in drawn)
        at = solve(drawn[0], noise.chosen(drawn[0]), public, request)
        assert not at.failure and (np.any(at.estimate.effects[0]) == noise.chosen(drawn[0]).sees_groups)
    assert often[0.0] <= DRAWS // 4 and often[0.12] >= DRAWS - 2  # 2 and all but 0.3 expected
    unmeasured = noise.unmeasured if isinstance(noise, LookedNoise) else noise
    asked = release_mixed.ask("y ~ 0 + kind", public=COLUMNS, bounds=(0, 1), epsilon=1, seed=1)
    linear = asked.offer(table(0.0)).details["parts"]
    assert [float(part.scale.max()) for part in unmeasured.parts] == [part["scale"] for part in linear]


def test_check_and_the_release_say_what_a_look_decided() -> None:
    data = table(0.0)
    told = release_mixed.check(FORMULA, data, public=COLUMNS, bounds=(0, 1), epsilon=1)
    assert "a look with a tenth of the loss" in str(told.expected)
    fits = [release_mixed(FORMULA, data, public=COLUMNS, bounds=(0, 1), epsilon=1, seed=seed) for seed in range(1, 6)]
    unseen = [fit for fit in fits if not np.any(fit.effects["g"].values)]
    assert unseen and all(fit.released.looked is not None for fit in fits)
    assert all(any(flag.word == "not measured" for flag in fit.flags) for fit in unseen)
    stated = {"groups": "0.3", "fixed": "0.5", "squares": "0.2"}
    assert release_mixed(FORMULA, data, public=COLUMNS, bounds=(0, 1), epsilon=1, split=stated).released.looked is None


@pytest.mark.parametrize(("groups", "epsilons"), [(62, (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)), (300, (0.05, 0.1, 0.15))])
def test_small_effects_cost_next_to_nothing_beside_the_linear_model(groups: int, epsilons: tuple[float, ...]) -> None:
    """Effects of 0.6 % of the range, sizes of groups that differ tenfold: at 0.25, 3 % were lost before."""
    rng = np.random.default_rng(11)
    sizes = rng.permuted(np.geomspace(0.3, 3, groups))
    g = rng.choice(groups, 780 * groups, p=sizes / sizes.sum())
    kind = rng.integers(0, 20, len(g))
    y = 1 + rng.normal(0, 0.037, 20)[kind] + rng.normal(0, 0.012, groups)[g] + rng.normal(0, 0.11, len(g))
    data = {"y": np.clip(y, 0, 2), "kind": [f"k{i:02}" for i in kind], "g": [f"g{i}" for i in g]}
    frame = {name: np.array(values) for name, values in data.items()}
    found = {}
    for formula in ("y ~ 0 + kind", FORMULA):
        trials, case = Trials(40, SeededSource(5), 5), Case.of("", formula, frame, bounds=(0, 2))
        found[formula] = [row["correlation"] for row in by_moments(case, epsilons, trials)]
    kept = np.array(found[FORMULA]) / np.array(found["y ~ 0 + kind"])
    assert kept.min() > 0.985, kept
