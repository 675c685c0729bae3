"""Expected errors of whole numbers against sums over all integers, exact draws and every possible cell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate

import discreet as dc
from discreet.noise.law import TERMS, WIDE
from discreet.noise.laws import GeneralisedCauchy, Laplace, Polynomial
from discreet.noise.sampler import draw_integers
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Pure
from discreet.tables.calibration import MOST_NOISE, calibrate
from discreet.tables.cells import Cells
from discreet.tables.expected import (
    ByLargest,
    spans,
    told,
)
from discreet.words.errors import PrivacyError
from faults_of import about

SCHEMA = dc.Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})
JOBS = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "place": ["P", "P", "Q"], "sex": ["f", "m", "f"]}
PLACES = {"workplace": [1, 2], "place": ["P", "Q"]}


def session(unit: object) -> dc.Session:
    return dc.Session(dc.read_jobs(JOBS, workplaces=PLACES, schema=SCHEMA), unit=unit, budget=10, seed=1)


@pytest.mark.parametrize(
    "law", [Laplace(), GeneralisedCauchy(4), Polynomial(22.0, 0.1), Polynomial(8.0, 0.3), Polynomial(2000.0, 2.0)]
)
@pytest.mark.parametrize("width", [0.05, 0.3, 1.0, 5.0, 20.0])
def test_means_are_sums_over_all_integers(law: Laplace, width: float) -> None:
    scale = width / law.mean_abs
    j = np.arange(1.0, 400_000.0)
    brute = 2 * float(j @ law.probability(j, scale))
    assert law.mean(np.array([scale]))[0] == pytest.approx(brute, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "told"), [(1, "0.85092"), (10, "9.08e-05"), (2, "0.27572")])
def test_counts_of_workers(epsilon: int, told: str) -> None:
    """The Laplace law of integers has the mean 1 / sinh(epsilon), and so have its draws."""
    mechanism = calibrate("edge-laplace", unit=dc.Establishments(1), epsilon=epsilon)
    expected = float(mechanism.integer_error(np.zeros(1), np.zeros(1))[0])
    assert f"{expected:.5g}" == told
    assert expected == pytest.approx(1 / math.sinh(epsilon), rel=1e-9)
    drawn = np.abs(mechanism.draw(np.full(400_000, 7), np.full(400_000, 7), SeededSource(2)) - 7)
    error = drawn.std() / math.sqrt(drawn.size)
    assert abs(drawn.mean() - expected) < 5 * error < abs(1 / epsilon - expected)


@pytest.mark.parametrize(("cells", "epsilon", "largest"), [(2, 2, 1.0), (8, 4, 1.0), (8, 4, 30.0)])
def test_means_of_joint_noise_are_those_of_draws(cells: int, epsilon: int, largest: float) -> None:
    mechanism = calibrate("joint-polynomial", unit=dc.Establishments("0.1"), epsilon=epsilon, cells=cells)
    size = np.array([largest])
    expected = float(mechanism.integer_error(size, size)[0])
    drawn = draw_integers(mechanism.law, scale=np.repeat(mechanism.scale(size), 100_000), source=SeededSource(4))
    each = np.abs(drawn).mean(axis=1)
    error = each.std() / math.sqrt(each.size)
    assert abs(each.mean() - expected) < 5 * error < abs(mechanism.expected_error(size, size)[0] - expected)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", 2), ("0.1", "0.5"), ("0.1", 12), ("0.01", 4)])
def test_means_of_multiplied_counts_are_sums_over_all_integers(alpha: str, epsilon: object, calibration: str) -> None:
    """P(J = j) of round(m e^(l L) - 1/alpha) from the Laplace law's distribution function, j by j."""
    mechanism = calibrate("log-laplace", unit=dc.Establishments(alpha), epsilon=epsilon, calibration=calibration)  # type: ignore[arg-type]
    offset, j = 1 / float(mechanism.unit.alpha), np.arange(-120.0, 4_000_000.0)
    edges = np.log(np.maximum(np.append(j - 0.5, np.inf) + offset, 1e-300))
    for count in (0.0, 1.0, 7.0, 100.0):
        median = mechanism.shrink * (count + offset)
        x = (edges - math.log(median)) / mechanism.exponent
        tail = np.exp(-np.abs(x)) / 2
        chance = np.diff(np.where(x < 0, tail, 1 - tail))
        told = mechanism.integer_error(np.array([count]), np.array([count]))[0]
        assert told == pytest.approx(np.abs(j - count) @ chance, rel=2e-4)
        # Before rounding: the mean of |m e^(l L) - 1/alpha - count| by quadrature, from kink to kink.
        kink = math.log(1 / mechanism.shrink) / mechanism.exponent
        before = sum(
            integrate.quad(
                lambda t, m=median, n=count: (
                    abs(m * math.exp(mechanism.exponent * t) - offset - n) * math.exp(-abs(t)) / 2
                ),
                *ends,
                limit=500,
            )[0]
            for ends in itertools.pairwise([-60, 0, kink, 5, 60, 400])
        )
        assert mechanism.expected_error(np.array([count]), np.array([count]))[0] == pytest.approx(before, rel=1e-5)


def test_wide_noise_is_hardly_changed_by_rounding() -> None:
    for law in (Laplace(), GeneralisedCauchy(4), Polynomial(22.0, 0.1)):
        below, above = law.mean(np.array([0.999, 1.001]) * WIDE / law.mean_abs)
        assert above / below == pytest.approx(1.001 / 0.999, abs=1e-4)


def test_terms_matter() -> None:
    """With the first terms alone the sum would fall short: the rest is needed, and counted."""
    k = np.arange(TERMS) + 0.5
    assert np.exp(-k / 20).sum() < 0.6 * Laplace().mean(np.array([20.0]))[0]


def test_what_truncation_drops_by_every_possible_cell() -> None:
    """All cells of up to four establishments with up to six workers, theta = 3."""
    theta, seen = 3, {}
    for number in range(1, 5):
        for sizes in itertools.combinations_with_replacement(range(1, 7), number):
            seen.setdefault((sum(sizes), max(sizes)), set()).add(sum(size for size in sizes if size > theta))
    jobs, largest = (np.array(each, dtype=float) for each in zip(*seen, strict=True))
    most, exact = calibrate("node-truncation", unit=dc.Establishments(1), epsilon=1, theta=theta).left_out(
        jobs, largest
    )
    for found, bound, known in zip(seen.values(), most, exact, strict=True):
        assert max(found) <= bound
        assert not known or found == {bound}
    assert (exact & (most > 0)).any() and not exact.all()


def test_errors_of_truncated_counts() -> None:
    mechanism = calibrate("node-truncation", unit=dc.Establishments(1), epsilon=1, theta=3)
    j = np.arange(-400.0, 401.0)
    chance = mechanism.law.probability(j, 3.0)
    own = {b: float(np.abs(j - b) @ chance) for b in range(0, 21)}
    for b in (0, 1, 4, 20):
        assert mechanism.with_dropped(np.array([float(b)]), 1)[0] == pytest.approx(own[b], rel=1e-6)
    means = [(own[a] + own[b] + own[4 - a - b]) / 3 for a in range(5) for b in range(5 - a)]
    assert mechanism.with_dropped(np.array([4.0]), 3)[0] == pytest.approx(max(means), rel=1e-6)
    assert min(means) < max(means)


def test_check_counts_what_is_left_out() -> None:
    found = session(dc.EstablishmentNodes(200)).count(by=["place"]).check(epsilon=1).expected.error
    assert found[100] == pytest.approx(200, rel=1e-4)
    assert found[1000] == pytest.approx(1000 + 200 * math.exp(-5), rel=1e-4)


THREE = dc.Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m", "x"]})
ASKED = {
    "all": {"by": ["place"]},
    "kinds": {"by": ["place", "sex"]},
    "one kind": {"by": ["place"], "where": {"sex": ["m"]}},
    "two kinds": {"by": ["place", "sex"], "where": {"sex": ["f", "m"]}},
}
FIRMS = [  # workers of each kind in every establishment of a cell
    [[1, 0, 0]],
    [[4, 4, 2]],
    [[50, 50, 0]],
    [[100, 0, 0]],
    [[34, 33, 33]],
    [[100, 0, 0], [0, 100, 0], [0, 0, 100]],
    [[1000, 10, 0], [3, 3, 3]],
]
DRAWS = 3_000


@pytest.fixture(scope="module")
def source() -> SeededSource:
    return SeededSource(5)


def simulated(query: dc.tables.query.CountQuery, firms: np.ndarray, theta: int | None) -> tuple[np.ndarray, Cells]:
    """The true counts of one cell, and what a mechanism sees of it, many times."""
    size, kinds = firms.sum(axis=1), THREE.worker_attributes["sex"]
    part = firms[:, [kind in query.where.get("sex", kinds) for kind in kinds]]
    part = part if query.worker_by else part.sum(axis=1, keepdims=True)
    seen = part if theta is None else part * (size <= theta)[:, None]
    many = [np.repeat(each[None], DRAWS, axis=0) for each in (seen.sum(axis=0), seen.max(axis=0), size.max())]
    keys, levels = pa.table({"place": np.arange(DRAWS)}), tuple((i,) for i in range(part.shape[1]))
    return part.sum(axis=0), Cells(keys, query.worker_by, levels, *many, np.full(DRAWS, len(firms)))


SOME = {"kinds", "one kind", "two kinds"}
BOUNDS = [
    (dc.Establishments("0.1", "weak"), "polynomial", SOME),
    (dc.Establishments("0.1", "weak"), "smooth-gamma", SOME),
    (dc.Establishments("0.1", "weak"), "log-laplace", SOME),
    (dc.Establishments("0.1", "weak"), "joint-polynomial", set()),
    (dc.Establishments("0.1"), "polynomial", set()),
    (dc.Establishments("0.1"), "joint-polynomial", set()),
    (dc.Workers(), None, set()),
    (dc.EstablishmentNodes(40), None, set(ASKED)),
]
"""Where errors are upper bounds although the largest establishment is known."""


@pytest.mark.parametrize(
    ("unit", "mechanism", "bounds", "asked"),
    [
        (*case, asked)
        for case, asked in itertools.product(BOUNDS, ASKED)
        if case[1] != "joint-polynomial" or "kinds" in asked
    ],
)
def test_no_error_is_larger_than_told_and_others_are_those_told(
    unit: object, mechanism: str | None, bounds: set[str], asked: str, source: SeededSource
) -> None:
    """Noise drawn for cells of every division into establishments and kinds; which errors are bounds is as listed."""
    opened = dc.Session(dc.read_jobs(JOBS, workplaces=PLACES, schema=THREE), unit=unit, budget=1000, seed=1)
    query = opened.count(**ASKED[asked])
    seen = set()
    prices = [epsilon * (query.levels if mechanism else 1) for epsilon in (2, 8)]
    prepared = [query.prepare(epsilon=price, mechanism=mechanism) for price in prices]
    for ready, firms in itertools.product(prepared, map(np.array, FIRMS)):
        truth, cells = simulated(query, firms, getattr(ready.mechanism, "theta", None))
        each = np.abs(query._draw(ready, cells, source) - truth).mean(axis=1)
        size = firms.sum(axis=1)
        for jobs, largest, known in ((size.sum(), size.max(), True), (size.sum(), size.sum(), False)):
            numbers = {"jobs": np.array([float(jobs)]), "largest": np.array([float(largest)])}
            (error,), (at_most,) = ready.mechanism.mean_error(query.kinds, **numbers, known=known)
            apart = 5 * math.sqrt(max(each.var(), min(error, 1.0)) / DRAWS)
            assert each.mean() <= error + apart, firms
            assert at_most or abs(each.mean() - error) <= apart + 0.01 * error, firms
            seen |= {at_most} if known else set()
    assert (True in seen) == (asked in bounds)


def test_errors_of_kinds_are_twice_too_large_no_more() -> None:
    """Cells of one establishment, half of it of either kind: the whole establishment would promise twice the error."""
    query = session(dc.Establishments("0.1", "weak")).count(by=["place", "sex"])
    ready = query.prepare(epsilon=4, mechanism="polynomial")
    size = np.array([200.0])
    (error,), (at_most,) = ready.mechanism.mean_error(query.kinds, jobs=size, largest=size)
    half, whole = (float(ready.mechanism.integer_error(size, size * share)[0]) for share in (0.5, 1))
    assert at_most
    assert half < error < 1.1 * half < whole
    assert query.expected_by_largest(ready)[1000] == pytest.approx(5 * whole, rel=1e-3)  # in a cell with others, too


def test_multiplied_counts_of_kinds_by_every_division() -> None:
    """All ways to divide up to 30 jobs into three kinds; without rounding they would have one error."""
    query = dc.Session(
        dc.read_jobs(JOBS, workplaces=PLACES, schema=THREE), unit=dc.Establishments("0.1", "weak"), budget=1000, seed=1
    ).count(by=["place", "sex"])
    flags = set()
    for epsilon, n in itertools.product((2, 20, 60), (0, 1, 7, 30)):
        ready = query.prepare(epsilon=3 * epsilon, mechanism="log-laplace")
        one = ready.mechanism.integer_error(np.arange(n + 1.0), np.arange(n + 1.0))
        means = [(one[a] + one[b] + one[n - a - b]) / 3 for a in range(n + 1) for b in range(n + 1 - a)]
        size = np.array([float(n)])
        (error,), (at_most,) = ready.mechanism.mean_error(query.kinds, jobs=size, largest=size)
        assert max(means) <= error * (1 + 1e-9)
        assert at_most or min(means) > 0.98 * error
        flags.add(bool(at_most))
    assert flags == {True, False}


def test_errors_are_told_in_three_digits_and_bounds_rounded_up() -> None:
    assert [told(x, False) for x in (10_000.4, 5049.6, 0.85092, 123_456.0, 9.08e-05)] == [
        "10,000", "5,050", "0.851", "123,000", "9.08e-05",
    ]  # fmt: skip
    assert told(6.731, True) == "at most 6.74"
    assert told(550.0, True) == "at most 550"


def test_sizes_with_one_error_are_told_together() -> None:
    one, other = ByLargest({1: 0.5, 10: 0.5, 100: 4.0}), ByLargest({1: 2.0, 10: 3.0, 100: 30.0}, frozenset({100}))
    assert str(one) == "1 to 10: 0.5; 100: 4"
    assert spans([one, other]) == {"1": 1, "10": 10, "100": 100}
    assert str(ByLargest({1: 0.5, 10: 0.5}, frozenset({10}))) == "1: 0.5; 10: at most 0.5"
    assert str(ByLargest({1: 0.5, 10: 0.5}, follows="nothing")) == "any: 0.5"
    assert spans([]) == {}


@pytest.mark.parametrize(
    ("unit", "epsilon"),
    [
        (dc.Workers(), "1e-25"),
        (dc.Workers(), "1e-300"),
        (dc.EstablishmentNodes(2**70), 1),
        (dc.EstablishmentNodes(2**2000), 1),
        (dc.EstablishmentNodes(2**30), "1e-9"),
        (dc.Establishments("1e-12"), 1),
        (dc.Establishments("1e300"), 10**5),
        (dc.Establishments("1e-300"), "1e-299"),
    ],
)
def test_noise_that_integers_cannot_hold_is_refused_before_it_is_paid(unit: object, epsilon: object) -> None:
    opened = session(unit)
    for ask in (opened.count(by=["place"]).check, opened.count(by=["place"]).release):
        with pytest.raises(PrivacyError, check=about("epsilon", "alpha")):
            ask(epsilon=epsilon)
    assert opened.remaining == Pure(10)


@pytest.mark.parametrize("mechanism", ["smooth-gamma", "log-laplace", "polynomial", "smooth-laplace"])
def test_tiny_amounts_are_refused_whatever_the_mechanism(mechanism: str) -> None:
    opened = session(dc.Establishments("1e-9"))
    delta = "1e-6" if mechanism == "smooth-laplace" else None
    with pytest.raises(PrivacyError):
        opened.count(by=["place"]).check(epsilon="1e-17", mechanism=mechanism, delta=delta)


def test_noise_without_end_is_refused() -> None:
    """Just above 2 ln(1 + alpha) the expected error of paper-calibrated log-laplace is finite, and boundless."""
    opened = session(dc.Establishments("0.1"))
    ask = {"mechanism": "log-laplace", "calibration": "paper"}
    with pytest.raises(PrivacyError, check=about("epsilon")):
        opened.count(by=["place"]).release(epsilon="0.190620359609", **ask)
    assert opened.remaining == Pure(10)
    assert opened.count(by=["place"]).check(epsilon="0.1907", **ask).affordable


def test_the_widest_noise_fits() -> None:
    opened = session(dc.EstablishmentNodes(MOST_NOISE))
    found = opened.count(by=["place"]).release(epsilon=1, level=0.999999)
    assert (np.abs(found.counts) < 2**60).all()
    assert (found.upper < 2.0**60).all()
    assert (np.abs(found.counts) > 2**40).any()
    with pytest.raises(PrivacyError, check=about("epsilon")):  # as asked, however many kinds there are
        opened.count(by=["place", "sex"]).check(epsilon="0.9")
    assert opened.count(by=["place", "sex"]).check(epsilon=1).guarantee.loss == Pure(1)
