"""Noise that follows the two largest establishments: checked rows, beside brute force over three establishments."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dc
from discreet.audit.blackbox import blackbox
from discreet.noise import row_search, rows
from discreet.noise.kept import BITS
from discreet.noise.source import SeededSource
from discreet.privacy.integers import OUTPUTS, SPAN, _Seen, _states
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.units import Establishments
from discreet.privacy.verify import verify
from discreet.tables.calibration import calibrate
from discreet.tables.expected import Kinds
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.two_sizes import TwoSizesNoise
from discreet.words.errors import PrivacyError
from faults_of import about

TENTH = Establishments("0.1")
ALL = Kinds(1, some=False, filtered=False)
PAIRS = [(5, 0), (59, 3), (60, 0), (66, 66), (100, 0), (100, 95), (1_000, 0), (1_000, 700), (1_000, 800), (1_000, 995)]
LONG = pytest.mark.full_size
ALPHAS, EPSILONS = ("0.05", "0.1", "0.2"), ("0.5", "0.75", "1", "1.37", "2", "2.85", "3", "4", "6")
GRID = [(a, e) for a in ALPHAS for e in EPSILONS if float(e) > 3.6 * math.log1p(float(a))]


@pytest.fixture(scope="module")
def one() -> TwoSizesNoise:
    return calibrate("two-sizes", unit=TENTH, epsilon=1)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def ladder() -> Mechanism:
    return calibrate("ladder", unit=TENTH, epsilon=1)


def pair(x: int, second: int, n: int) -> np.ndarray:
    return np.tile([x, second], (n, 1))


def test_cells_that_one_establishment_dominates_err_less_and_no_cell_more(
    one: TwoSizesNoise, ladder: Mechanism
) -> None:
    x = np.array([10.0, 59, 60, 80, 100, 1_000, 10_000])
    before = ladder.integer_error(x, x)
    for share in (0.0, 0.4, 0.6, 0.7, 0.8, 0.88, 0.95, 1.0):
        now = one.integer_error(x, np.stack([x, np.floor(share * x)], axis=-1))
        assert (now <= before * (1 + 1e-9)).all(), share
    alone = one.integer_error(x, np.stack([x, np.zeros_like(x)], axis=-1)) / before
    assert (alone[-2:] < 0.95).all() and (alone[:3] == 1).all()


def test_every_row_is_a_probability_with_mean_zero_and_the_rings_of_the_first(one: TwoSizesNoise) -> None:
    frame = row_search._frame(one.rows[0])
    for law in one.rows:
        (weights,) = law.weights
        assert sum(weights) == 2**BITS
        assert [weights[0], weights[-1]] == [one.law.weights[0, 0], one.law.weights[0, -1]]
        density = (weights / 2**BITS / frame.mass).astype(np.float64)
        assert abs(density @ frame.mean) < 1e-12 * (density @ np.abs(frame.mean))
    k = np.arange(-30_000, 30_001)
    for x, second in PAIRS:
        probability = one.integer_probability(k, x, second)
        assert abs(probability @ k) < 1e-2 * (probability @ np.abs(k))


def worst_loss(one: TwoSizesNoise, *, share: float = 1.0, seed: int = 0) -> float:
    """The largest loss of densities over three large establishments of which one grows, at both sides of all edges."""
    rng, law = np.random.default_rng(seed), one.rows[0]
    inner = law.cells.edges[1:-1]
    points = np.concatenate([inner - 1e-7, inner + 1e-7, np.linspace(-4, 4, 40) * inner[-1]])
    worst, ends = 0.0, law.ends
    for _ in range(150):
        x = 1e6
        second = np.floor(x * rng.choice([1.0, rng.uniform(0.85, 1), rng.uniform(0.3, 1), ends[rng.integers(1, 5)]]))
        sizes = np.array([x, second, np.floor(second * rng.choice([1.0, rng.uniform(0.8, 1), 0.1]))])
        grown = sizes.copy()
        who = rng.integers(3)
        grown[who] += np.floor(sizes[who] * 0.1 * rng.choice([1.0, rng.uniform(0.9, 1), rng.uniform(0, 1)]))
        shift, noise = grown.sum() - sizes.sum(), []
        for state in (sizes, grown):
            top = np.sort(state)[::-1]
            noise.append((int(one.row(top[:1], top[1:2])[0]), share * float(one.scale(top[:1])[0])))
        (i, s), (j, after) = noise
        outputs = np.concatenate([points * s, points * after + shift])
        before = one.rows[i].log_density(outputs / s) - np.log(s)
        later = one.rows[j].log_density((outputs - shift) / after) - np.log(after)
        worst = max(worst, float(np.abs(before - later).max()))
    return worst


def test_no_growth_of_any_of_three_establishments_is_told_by_more_than_epsilon(one: TwoSizesNoise) -> None:
    assert 0.99 < worst_loss(one) <= 1
    assert worst_loss(one, share=0.95) > 1.01


@pytest.mark.parametrize(
    ("alpha", "epsilon"), [("0.2", "4"), *(pytest.param(*each, marks=LONG) for each in GRID if each != ("0.2", "4"))]
)
def test_the_verifier_agrees_and_rejects_five_per_cent_less_noise(alpha: str, epsilon: str) -> None:
    unit = Establishments(alpha)
    mechanism = calibrate("two-sizes", unit=unit, epsilon=epsilon)
    end = mechanism.tabled
    rows = [
        (y, after, other, 0)
        for y in [1, end - 1, 3 * end]
        for after in {y + 1, unit.largest_neighbour(y)}
        for other in (0, y, 3 * y + 2)
    ]
    pairs = Neighbours(*(np.array(column) for column in zip(*rows, strict=True)))
    found = verify(mechanism, neighbours=pairs)
    assert found.holds and found.worst_loss > 0.95 * float(epsilon), found
    assert found.neighbours > 3 * len(pairs)
    worst = Neighbours(*(column[-6:] for column in (pairs.before, pairs.after, pairs.other, pairs.rest)))
    assert not verify(mechanism.scaled(0.95), neighbours=worst).holds  # beyond the table, by the most


def test_the_verifier_sees_a_row_that_is_taken_for_another(one: TwoSizesNoise, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that passes a row at once is found out: neighbours lie on both sides of every end."""
    sizes = [(y, y + y // 10, other, 0) for y in (300, 1_000) for other in (0, y // 2, y, 2 * y)]
    pairs = Neighbours(*(np.array(column) for column in zip(*sizes, strict=True)))
    assert verify(one, neighbours=pairs).holds
    own = TwoSizesNoise.row
    monkeypatch.setattr(
        TwoSizesNoise, "row", lambda self, x, second: np.where(own(self, x, second) > 0, len(self.rows) - 1, 0)
    )
    assert not verify(one, neighbours=pairs).holds


def test_the_verifier_sees_a_third_establishment(one: TwoSizesNoise) -> None:
    """One of 300 grows beside one of 1,000: the second largest is either that one or a third of every row."""
    grows = Neighbours(*(np.array([each]) for each in (300, 330, 1_000, 0))).of_three(one.shares)
    beside = grows.other == 1_000
    second = _states(one, grows, grows.before)[1][beside]
    assert {*second.tolist()} == {300, 1_000, *(int(1_000 * r) + more for r in one.shares for more in (0, 1))}
    assert {*_states(one, grows, grows.after)[2][beside].tolist()} == set(range(len(one.rows)))
    alone = grows.other < grows.before  # the larger other one lies on either side of every end, before and after
    assert {int(300 * r) + 1 for r in one.shares} | {int(330 * r) for r in one.shares} <= {*grows.other[alone].tolist()}


def test_the_verifier_shifts_what_it_knows(one: TwoSizesNoise) -> None:
    seen = _Seen(one, (1_000, 300))
    for shifts in ([1, 2, 100, SPAN], [3, SPAN + 1, 40_000]):
        wanted = [np.log(one.integer_probability(OUTPUTS - shift, 1_000, 300)) for shift in shifts]
        assert np.array_equal(seen.shifted(np.array(shifts)), np.stack(wanted))
    assert np.array_equal(seen.outputs, np.log(one.integer_probability(OUTPUTS, 1_000, 300)))


@pytest.mark.parametrize(
    ("alpha", "epsilon"),
    [("0.1", "5"), *(pytest.param(a, e, marks=LONG) for a in ALPHAS for e in ("0.9", "1.6", "4.4", "5.4", "7"))],
)
def test_no_row_errs_more_than_the_first_between_solved_epsilons(alpha: str, epsilon: str) -> None:
    rows_ = calibrate("two-sizes", unit=Establishments(alpha), epsilon=epsilon).rows
    assert all(law.mean_abs <= rows_[0].mean_abs * (1 + 1e-9) for law in rows_[1:])


@pytest.mark.parametrize(("x", "second"), PAIRS)
def test_draws_have_the_stated_probabilities(one: TwoSizesNoise, x: int, second: int) -> None:
    n, j = 40_000, np.arange(-2_500, 2_501)
    draws = one.draw(np.full(n, 7), pair(x, second, n), SeededSource(x + second)) - 7
    expected = n * one.integer_probability(j, x, second)
    seen = np.bincount(draws.clip(-2_500, 2_500) + 2_500, minlength=5_001)
    often = expected > 8
    assert chi2.sf(((seen - expected) ** 2 / np.maximum(expected, 1e-9))[often].sum(), often.sum()) > 1e-6


@LONG
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "1"), ("0.1", "2"), ("0.1", "4"), ("0.05", "1"), ("0.2", "4")])
@pytest.mark.parametrize("share", [0.0, 0.6, 0.75, 0.88, 1.0])
def test_a_million_draws_have_the_law_of_their_row_and_no_other(alpha: str, epsilon: str, share: float) -> None:
    mechanism, n, x = calibrate("two-sizes", unit=Establishments(alpha), epsilon=epsilon), 10**6, 1_000
    second = int(share * x)
    reach = int(400 * mechanism.scale(np.array([float(x)]))[0] / float(epsilon) / 10)
    j = np.arange(-reach, reach + 1)
    draws = mechanism.draw(np.zeros(n, dtype=np.int64), pair(x, second, n), SeededSource(11))
    seen = np.bincount(draws.clip(-reach, reach) + reach, minlength=len(j))

    def p_value(law: TwoSizesNoise) -> float:
        expected = n * law.integer_probability(j, x, second)
        often = expected > 20
        return float(chi2.sf(((seen - expected) ** 2 / np.maximum(expected, 1e-9))[often].sum(), often.sum()))

    assert p_value(mechanism) > 1e-6
    assert p_value(calibrate("two-sizes", unit=Establishments(alpha), epsilon=float(epsilon) * 1.05)) < 1e-20


def test_cells_are_drawn_in_any_order_with_their_own_law(one: TwoSizesNoise) -> None:
    """Noise of one cell has the same law whatever the rows of others are."""
    n = 20_000
    both = np.stack([pair(1_000, 0, n), pair(1_000, 995, n)], axis=1)
    drawn = one.draw(np.zeros((n, 2), dtype=np.int64), both, SeededSource(2))
    means = np.abs(drawn).mean(axis=0)
    expected = one.integer_error(np.zeros(2), both[0].astype(float))
    assert means == pytest.approx(expected, rel=0.03)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03


@pytest.mark.parametrize(
    ("alpha", "epsilon"), [("0.1", "1"), *(pytest.param(*each, marks=LONG) for each in GRID if each != ("0.1", "1"))]
)
def test_an_audit_of_draws_finds_nothing(alpha: str, epsilon: str) -> None:
    mechanism, source = calibrate("two-sizes", unit=Establishments(alpha), epsilon=epsilon), SeededSource(3)

    def draw(cell: tuple[int, ...], n: int) -> np.ndarray:
        largest, second, *_ = sorted(cell, reverse=True)
        return mechanism.draw(np.full(n, sum(cell)), pair(largest, second, n), source)

    grown = mechanism.unit.largest_neighbour
    for cell in ((500, 0, 0), (500, 320, 0), (500, 460, 400)):
        for who in range(3) if cell[1] else (0,):
            after = tuple(grown(size) if place == who else size for place, size in enumerate(cell))
            found = blackbox(draw, cell, after, claimed=float(epsilon), many=True, trials=4_000, confidence=1 - 1e-6)
            assert not found.refuted, (cell, after, found)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_hold_whatever_the_second_size_is(one: TwoSizesNoise, level: float) -> None:
    j = np.arange(-20_000, 20_001)
    for x, second in PAIRS:
        reach = one.reach(np.array([float(x)]), level=level)[0]
        probability = one.integer_probability(j, x, second)
        assert probability[np.abs(j) <= reach].sum() >= level - 1e-9
    tail = one.tail.beyond(np.linspace(0, 20, 200))
    assert all((law.beyond(np.linspace(0, 20, 200)) <= tail).all() for law in one.rows)


def test_the_error_that_is_told_is_never_too_small(one: TwoSizesNoise) -> None:
    x = np.full(40, 500.0)
    second = np.linspace(0, 500, 40).round()
    exact = one.integer_error(x, np.stack([x, second], axis=-1))
    told, bound = one.mean_error(ALL, jobs=x + second, largest=x)
    assert (told >= exact * (1 - 1e-12)).all() and not bound[0]
    assert told[0] == exact[0] and bound[-1]
    worst, at_most = one.mean_error(ALL, jobs=x, largest=x, known=False)
    assert (worst >= told).all() and at_most.all()
    assert one.variance == max(law.variance for law in one.rows)


def test_a_release_follows_both_sizes() -> None:
    """An establishment of 900 is alone in its place, or shares it with one of 890: alone it errs less."""
    places = [f"{kind}{place:03}" for kind in "ab" for place in range(400)]
    rows = {
        "workplace": list(range(1_200)),
        "place": places + places[400:],
        "n": [900] * 800 + [890] * 400,
    }
    schema = dc.Schema(workplace_attributes=["place"], worker_attributes={}, size="n")
    session = dc.Session(dc.read_jobs(rows, schema=schema), unit=TENTH, budget=1, seed=1)
    release = session.count("place").release(epsilon=1, mechanism="two-sizes")
    off = np.abs(release.counts[:, 0] - np.repeat([900, 1_790], 400)).reshape(2, 400).mean(axis=1)
    mechanism = calibrate("two-sizes", unit=TENTH, epsilon=1)
    expected = mechanism.integer_error(np.zeros(2), np.array([[900.0, 0], [900, 890]]))
    assert off == pytest.approx(expected, rel=0.2)
    assert expected[0] < 0.95 * expected[1]


def test_noise_without_the_second_size_is_refused(one: TwoSizesNoise) -> None:
    with pytest.raises(PrivacyError, check=about("mechanism")):
        one.draw(np.zeros(3, dtype=np.int64), np.full(3, 100), SeededSource(0))


@pytest.mark.parametrize(
    "harm", ["cut", "weight", "row", "ring", "other ring", "lean", "swapped", "another", "epsilon"]
)
def test_damaged_rows_are_refused(harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each harm leaves rows that add up to one, but for a file that was cut."""
    law = calibrate("two-sizes", unit=Establishments("0.2"), epsilon=4).rows[0]
    weights = np.concatenate([each.weights for each in law.all_rows[1:]])
    rows.check(law, weights)
    middle = weights.shape[1] // 2
    if harm == "row":
        weights = weights[1:]
    elif harm == "ring":
        weights[0, 0] += 1  # within epsilon, and no longer the rings that the proof is for
        weights[0, 1] -= 1
    elif harm == "other ring":
        weights[1, -1] += 1
        weights[1, -2] -= 1
    elif harm == "lean":
        weights[2, middle:-1] = weights[2, middle:-1][::-1].copy()
    elif harm == "swapped":
        weights = weights[::-1]
    elif harm == "another":
        other = calibrate("two-sizes", unit=Establishments("0.2"), epsilon="4.1").rows
        weights = np.concatenate([each.weights for each in other[1:]])
    elif harm == "epsilon":  # right for more than is promised
        law = replace(law, epsilon=law.epsilon * 0.99)
        own = law.first.weights
        for row in weights:  # with the rings of the law, and one in all
            row[[0, -1]] = own[0, [0, -1]]
            row[middle] += 2**BITS - sum(row)
    elif harm == "weight":
        weights[1, middle] += weights[1, middle + 40] // 2
        weights[1, middle + 40] -= weights[1, middle + 40] // 2
    if harm != "cut":
        with pytest.raises(PrivacyError, check=about("mechanism")):
            rows.check(law, weights)
        return
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows._rows.cache_clear()
    try:
        law.all_rows[1].weights  # noqa: B018
        (path,) = (tmp_path / "discreet").glob("rows-*")
        path.write_text(path.read_text()[:2_000])
        rows._rows.cache_clear()
        with pytest.raises(PrivacyError, check=about("mechanism")):
            law.all_rows[1].weights  # noqa: B018
    finally:
        rows._rows.cache_clear()


def test_the_check_covers_every_move(one: TwoSizesNoise) -> None:
    """Brute force over points of cells, against the pairs of cells that are joined."""
    law, rng = one.rows[0], np.random.default_rng(0)
    edges = law.cells.edges
    joined = {(i, j, k, m) for i, j, met in rows.moves(law) for k, m in zip(met.here, met.there, strict=True)}
    for _ in range(1_500):
        i = int(rng.integers(0, 5))
        y = rng.uniform(edges[1], edges[-2])
        if rng.random() < 0.5 and 0 < (j := i + int(rng.integers(0, 2))) < 5:
            z = rng.uniform(1, 1 + law.growth) * (y + law.tip) - law.tip
        elif i > 0:
            j = i - int(rng.integers(0, 2))
            z = y + rng.uniform(0, law.shift * law.ends[j] * (1 - 2.0**-30))
        else:
            continue
        here, there = (int(np.searchsorted(edges, at, side="right")) - 1 for at in (z, y))
        assert (i, j, min(here, len(edges) - 2), there) in joined
