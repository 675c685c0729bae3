"""One part's number is a function of that part's rows only, to the last bit: whatever one row holds, all others stay.

Every proof by parts or blocks rests on it. One row is replaced by something hostile, and what reaches the noise is
compared byte by byte; nothing may be raised or warned of, for that would tell what the row holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, stdtr, stdtrit

from discreet.data.frames import open_frame
from discreet.models.bayes import agreement, clipped, combination
from discreet.models.bayes import interval as intervals
from discreet.models.bayes.conjugate import Conjugate, GPrior, Parts, SemiConjugate
from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.halves import corrects
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.bayes.selection import Cell
from discreet.models.bayes.summation import LaplaceSums, whole_steps
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear.private import release_mixed, strict
from discreet.models.linear.private.partition import BlockEstimates, fit_partition, partition
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.sums import HALF
from discreet.privacy.losses import Concentrated, Pure
from discreet.privacy.units import AnyRow
from discreet.release.payer import Payer

Data = dict[str, np.ndarray]

ROWS, PARTS, SEED, CHANGED = 605, 22, 3, 417
PRIORS = (GPrior(), Conjugate(covariance=1e4), SemiConjugate(), SemiConjugate(covariance=1e-3, nu=0.1))
HOSTILE = ((0.0, 0.0), (5.0, -300.0), (1e8, 1e8), (1e99, 1e99), (-1e50, 1e30), (1e-300, 1e300), (np.nan, np.inf))
MODEL = {"formula": "y ~ x", "coefficient": ["(Intercept)", "x"], "epsilon": 60, "partitions": PARTS, "seed": SEED}
ASKED: dict[str, Callable[..., Any]] = {
    "probability": lambda **k: posterior_probability(**MODEL, **k, at=[1.0, 2.0]),
    "-2 log p": lambda **k: posterior_probability(**MODEL, **k, at=[1.0, 2.0], method="-2 log p"),
    "quantile": lambda **k: posterior_quantile(**MODEL, **k, probability=[0.975, 0.3]),
    "quantile around zero": lambda **k: posterior_quantile(**MODEL, **k, probability=[0.5, 0.01], centre="zero"),
    "interval": lambda **k: posterior_interval(**MODEL, **k, level=[0.95, 0.5]),
}


def lines() -> Iterator[Data]:
    """Ordinary rows, a flat response, rows that are all the same, large numbers, and huge slopes."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=ROWS)
    yield {"x": x, "y": 1 + 2 * x + rng.normal(size=ROWS)}
    yield {"x": x, "y": np.full(ROWS, 0.3)}
    yield {"x": np.ones(ROWS), "y": np.ones(ROWS)}
    yield {"x": 1e90 * x, "y": 1e99 * rng.normal(size=ROWS)}
    yield {"x": 1e-100 * x, "y": 1e99 * rng.normal(size=ROWS)}


def part_of(row: int) -> int:
    """The part that a row is in, whatever the row holds."""
    place = int(np.flatnonzero(np.random.default_rng(SEED).permutation(ROWS) == row)[0])
    rows = ROWS // PARTS
    return place // rows if place < PARTS * rows else place - PARTS * rows


class Free:
    """An account that draws at once and books nothing."""

    unit = AnyRow()

    def compare(self, *public: Any) -> None:
        """Nothing was taken as public before."""

    def release(self, offer: Any, data: Any, *, name: str | None) -> Any:
        return offer.draw(offer.read(data), None)


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """What every stage of a posterior summary is given, in order; bounds are held, so that clipped values compare."""
    given: list[np.ndarray] = []

    def watch(module: Any, name: str, answer: Any) -> None:
        def watched(values: np.ndarray, *rest: Any, **named: Any) -> Any:
            given.append(np.array(values).reshape(PARTS, -1))
            return answer

        monkeypatch.setattr(module, name, watched)

    for module in (combination, clipped):
        watch(module, "noisy_sums", LaplaceSums(np.ones(2), np.ones(2)))
    watch(agreement, "noisy_sums", LaplaceSums(np.ones(1), np.ones(1)))
    watch(clipped, "find_centre", Cell(0.5, 2.5))
    watch(clipped, "find_width", 1.25)
    watch(clipped, "doubling_bound", 4.0)
    watch(intervals, "find_magnitude", 0.1)
    monkeypatch.setattr(Payer, "opened", lambda payer, *asked: Free())
    return given


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full_size)])
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: f"{type(prior).__name__}, nu {prior.nu}")
@pytest.mark.parametrize("door", ASKED)
def test_a_hostile_row_moves_its_own_part_only(door: str, prior: Any, every: int, stages: list[np.ndarray]) -> None:
    """Three data sets share the hostile rows; with `every` 1 each has them all."""
    others = np.arange(PARTS) != part_of(CHANGED)
    assert corrects(ROWS, PARTS, 2)  # halves of the part are looked at too
    for number, data in enumerate(lines()):

        def seen(row: tuple[float, float] | None, data: Data = data) -> list[np.ndarray]:
            changed = {name: column.copy() for name, column in data.items()}
            if row:
                changed["x"][CHANGED], changed["y"][CHANGED] = row
            stages.clear()
            with loud():
                ASKED[door](data=changed, prior=prior)
            return list(stages)

        before = seen(None)
        assert before
        for row in HOSTILE[number % every :: every]:
            for a, b in zip(before, seen(row), strict=True):
                assert np.isfinite(b).all()
                assert a[others].tobytes() == b[others].tobytes(), row


def loud() -> Any:
    """Anything that arithmetic would warn of, by default or if asked to, is an error."""
    return np.errstate(divide="raise", over="raise", invalid="raise")


def test_no_unit_can_tell_parts_that_others_moved(stages: list[np.ndarray]) -> None:
    """The attack: all rows equal, and `unit` the last bit of a part's answer, which one row must move in its part only.

    Choices count values below public limits, and whatever the limit, a replaced row may change the count by one.
    """
    asked = {"probability": [0.01], "prior": SemiConjugate(), **MODEL, "formula": "y ~ 1"}
    asked |= {"coefficient": ["(Intercept)"], "scale": 2.0**-52}
    for level in (1.0, 7.7):
        seen = []
        for last in (level, 50.0, -300.0, 1e99):
            stages.clear()
            posterior_quantile(data={"y": np.append(np.full(3 * PARTS - 1, level), last)}, **asked)
            seen.append(stages[0][:, 0])
        for other in seen[1:]:
            limits = np.concatenate([seen[0], other])
            before, after = ((values[:, None] <= limits).sum(axis=0) for values in (seen[0], other))
            assert np.abs(before - after).max() <= 1


def test_a_part_without_singular_values_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK's search for them may fail, and NumPy then raises; here it fails for large numbers."""
    found = np.linalg.svd

    def svd(matrices: np.ndarray) -> Any:
        if np.abs(matrices).max() > 1e30:
            raise np.linalg.LinAlgError
        return found(matrices)

    monkeypatch.setattr(np.linalg, "svd", svd)
    blocks = np.random.default_rng(4).normal(size=(9, 12, 3))
    answers = []
    for value in (0.0, 1e40):
        blocks[4, 1, 1] = value
        posterior = SemiConjugate().posterior(Parts.of(blocks, np.full(9, 12)), np.arange(2))
        answers.append((posterior.cdf(np.zeros(2)), posterior.quantile(np.full(2, 0.9))))
    for a, b, fixed in zip(*answers, (0.5, 0.0), strict=True):
        assert (b[4] == fixed).all()
        assert np.delete(a, 4, axis=0).tobytes() == np.delete(b, 4, axis=0).tobytes()


def test_whatever_a_part_answers_its_steps_are_within_the_span() -> None:
    with loud():
        found = whole_steps(np.array([[np.nan, np.inf, -np.inf, 1e308, -1.0, 0.3, 0.7]]), 2.0**-300, 9)
    assert found.tolist() == [[0, 9, 0, 9, 0, 9, 9]]


@pytest.mark.parametrize(
    "function", [np.exp, np.log, np.log1p, np.sqrt, ndtr, partial(stdtr, 7.0), lambda x: stdtrit(7.0, 1 / (1 + x))]
)
def test_functions_do_not_look_at_neighbours(function: Callable[..., np.ndarray]) -> None:
    """What the proofs assume of libraries: the same bits at the same place, whatever the other entries are."""
    rng = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        for length in (1, 2, 7, 8, 16, 41, 64, 127):
            values = rng.gamma(0.2, 50.0, size=length)
            for odd in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324):
                at = rng.random(length) < 0.3
                found, other = function(values), function(np.where(at, odd, values))
                assert found[~at].tobytes() == other[~at].tobytes()


PUBLIC = ["industry", "quarter", "county", "state"]
FORMULAS = {
    "linear": "rate ~ industry + quarter",
    "one intercept": "rate ~ 0 + industry + quarter + (1 | county)",
    "nested": "rate ~ 1 + (1 | county) + (1 | state)",
}
BLOCK_ROWS = 240
RESPONSES = (0.0, 2.0, 1.0, 1e-300, 1e160, -1e308, np.nan, np.inf)


def panel(base: str) -> Data:
    """Few rows a block, and responses that linear algebra dislikes."""
    rng = np.random.default_rng(7)
    n = BLOCK_ROWS
    industry, county, quarter = rng.integers(0, 2, n), rng.integers(0, 12, n), rng.integers(1, 40, n)
    responses = {
        "ordinary": rng.uniform(0, 2, n),
        "constant": np.full(n, 0.7),
        "highest": np.full(n, 2.0),
        "zero": np.zeros(n),
        "exact": 0.2 + 0.5 * industry,
        "few": rng.integers(0, 2, n).astype(float),
    }
    return {
        "rate": responses[base],
        "industry": np.array(["a", "b"])[industry],
        "quarter": quarter,
        "county": county,
        "state": county % 3,
    }


def prepared(model: str, base: str, blocks: int) -> tuple[ModelRows, PublicDesign, np.ndarray, np.ndarray]:
    data = panel(base)
    frame = open_frame(data, ordered=True)
    public = public_design(frame, read_formula(FORMULAS[model], needs_random=False))
    rows = read_rows(frame, public.design.layout, public.learned)[0]
    return rows, public, partition(BLOCK_ROWS, blocks, np.random.default_rng(1)), data["rate"]


def numbers(found: BlockEstimates, keep: np.ndarray) -> list[bytes]:
    """All that is known of some blocks, bit by bit, and which entries there are at all."""
    entries = [entry[keep[effects[0]]] for effects in found.effects for entry in effects]
    shapes = [effects[0].tobytes() for effects in found.effects]
    return [a.tobytes() for a in (found.beta[keep], found.variances[keep], found.estimable[keep], *entries)] + shapes


@pytest.mark.parametrize("dither", [False, True], ids=["bare", "dithered"])
@pytest.mark.parametrize("base", ["ordinary", "constant", "highest", "zero", "exact", "few"])
@pytest.mark.parametrize(
    ("model", "size"),
    [
        *((model, size) for model in ("linear", "one intercept") for size in (6, 12)),
        *(pytest.param(model, 8, marks=pytest.mark.full_size) for model in ("linear", "one intercept")),
        ("nested", 12),
    ],
)
def test_a_hostile_row_moves_its_own_block_only(model: str, size: int, base: str, dither: bool) -> None:
    rows, public, every, y = prepared(model, base, BLOCK_ROWS // size)
    moved = strict.dithered(np.zeros(len(y)), 1 / HALF, np.random.default_rng(3)) if dither else np.zeros(len(y))

    def fitted(response: np.ndarray, chosen: np.ndarray) -> BlockEstimates:
        with loud():
            return fit_partition(strict.with_response(rows, public, response + moved), public, chosen)

    for chosen in (every, every[:2], every[1:3]):  # whatever a few blocks have in common, many may have anyway
        own = len(chosen) // 2
        left, before = np.arange(len(chosen)) != own, fitted(y, chosen)
        for value in RESPONSES[:: 3 if model == "nested" else 1]:
            other = y.copy()
            other[chosen[own, 2]] = value
            assert numbers(before, left) == numbers(fitted(other, chosen), left)


@pytest.mark.parametrize("loss", [Pure(1), Concentrated(1)])
@pytest.mark.parametrize("inside", [strict.INSIDE, 1.5])
def test_whatever_a_block_holds_its_integers_are_in_their_ball(
    loss: Pure | Concentrated, inside: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what no estimate can be, and if vectors were pulled too little: the integers that are added are checked."""
    monkeypatch.setattr(strict, "INSIDE", inside)
    part = strict.BlockPart(loss, 0.5, 2 * strict.STEPS, 1.0)
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -0.0, 0.5, -0.5, 3.0, 1e160]
    entries = np.random.default_rng(2).choice(odd, size=(500, 7))
    block = np.repeat(np.arange(500), 7)
    power = 1 if isinstance(loss, Pure) else 2
    with loud():
        whole = part.whole(block, entries.ravel(), 500).reshape(500, 7)
        box = strict.whole_deviations(entries, part)
    assert max(sum(abs(int(k)) ** power for k in row) for row in whole) <= strict.STEPS**power
    assert box.min() == 0 and box.max() == strict.STEPS
    assert (box[entries < 0] == 0).all() and (box[np.isnan(entries)] == 0).all()
    for at in (0, 250, 499):
        other = entries.copy()
        other[at] = 1.0
        left = np.arange(500) != at
        assert np.array_equal(part.whole(block, other.ravel(), 500).reshape(500, 7)[left], whole[left])


@pytest.mark.parametrize("model", FORMULAS)
@pytest.mark.parametrize(
    ("base", "method"),
    [
        *((base, "strict") for base in ("ordinary", "constant", "highest", "zero", "few")),
        ("zero", "moments"),
        ("few", "paper"),
    ],
)
def test_no_mixed_model_warns_of_what_a_row_holds(base: str, model: str, method: Any) -> None:
    data = panel(base)
    for value, seed in ((0.7, 2), (2.0, 3), (-1e300, 1)):
        data["rate"][3] = value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            asked = {"blocks": 20 if model == "nested" else 40} if method != "moments" else {}
            release_mixed(
                FORMULAS[model], data, epsilon=5, method=method, bounds=(0, 2), public=PUBLIC, seed=seed, **asked
            )


def test_objective_perturbation_warns_of_nothing() -> None:
    for data in lines():
        for row in HOSTILE:
            data["x"][CHANGED], data["y"][CHANGED] = row
            with loud(), warnings.catch_warnings():
                warnings.simplefilter("error")
                objective_perturbation("y ~ x", data, bounds=(-5, 5), norm=3, penalty=1, epsilon=1, seed=1)
