"""Standard errors of a perturbed objective: sums by brute force, closed forms, coverage, and what is said before."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.models.bayes.curvature import STEPS, FitRows, Paid, Told, errors, noise_norm, shortened, tell, whole_gram
from discreet.models.bayes.erm import calibrate, minimise, objective_perturbation, release
from discreet.models.bayes.predictor import supposed
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account

TAU, NORM = 16.0, 2.0
SETS = 300
LOW = stats.binom(SETS, 0.95).ppf(1e-4) / SETS  # a right 95 % interval holds more rarely in one of 10,000 runs


def test_the_gram_matrix_is_a_sum_of_whole_steps() -> None:
    X = shortened(np.random.default_rng(0).normal(size=(500, 3)), NORM)
    brute = sum(np.outer(row, row) for row in np.trunc(X * STEPS / NORM).astype(object))
    assert np.array_equal(whole_gram(X, NORM), brute.astype(np.int64))
    np.testing.assert_allclose(whole_gram(X, NORM) * (NORM / STEPS) ** 2, X.T @ X, atol=500 * 4 * NORM / STEPS)


def test_a_row_has_no_more_than_its_steps_whatever_it_holds() -> None:
    """The sensitivity: one row's entries of X'X, the upper triangle, add up to STEPS^2 at most, and reach it."""
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=5) * 10.0 ** rng.integers(-3, 8) for _ in range(300)]
    rows += [np.eye(5)[0] * 1e99, np.array([1e9, 1.0, 1.0, 1.0, 1.0])]
    sizes = [np.abs(np.triu(whole_gram(shortened(row[None, :], NORM), NORM))).sum() for row in rows]
    assert max(sizes) == STEPS**2


@pytest.mark.parametrize("p", [1, 3, 30])
def test_noise_in_a_gram_matrix_is_within_its_allowance(p: int) -> None:
    rng = np.random.default_rng(7)
    half = np.triu(rng.laplace(size=(400, p, p)))
    within = np.linalg.eigvalsh(half + np.swapaxes(np.triu(half, 1), 1, 2))[:, -1] <= noise_norm(p)
    assert 0.90 < within.mean() <= (0.985 if p < 12 else 1.0)


def test_errors_are_those_of_the_formula_where_everything_is_known() -> None:
    """One coefficient, no noise in the sums: H = w g + penalty, variance (2 s^2 + tau^2 q g) / H^2."""
    q, g, penalty, scale = 0.01, 300.0, 4.0, 7.0
    told = Told(np.array([[g]]), 0.0, q * 1000, 0.0)
    found = errors(np.array([2.0]), told, rows=1000, tau=TAU, penalty=penalty, scale=scale, smoothing=0.0)
    bend = 0.99**1.5 * g
    by_noise, by_rows = 2 * scale**2, TAU**2 * q * g
    assert found.std_error[0] == pytest.approx(math.sqrt(by_noise + by_rows) / (bend + penalty))
    off, rng = 2.0 * penalty / bend, np.random.default_rng(3)
    drawn = (rng.laplace(scale=scale, size=10**6) + math.sqrt(by_rows) * rng.normal(size=10**6)) / (bend + penalty)
    assert np.mean(np.abs(off + drawn) <= found.reach[0]) == pytest.approx(0.95, abs=0.002)


KINDS = {  # columns and errors that are symmetric, so that the coefficients are 1 and 2 whatever the loss is
    "normal": lambda rng, n: (rng.uniform(-1, 1, n), rng.normal(size=n)),
    "heavy tails": lambda rng, n: (rng.uniform(-1, 1, n), rng.standard_t(3, size=n)),
    "one in a hundred ten times as far": lambda rng, n: (
        rng.uniform(-1, 1, n),
        rng.normal(size=n) * np.where(rng.random(n) < 0.01, 10, 1),
    ),
    "a tenth": lambda rng, n: ((rng.random(n) < 0.1).astype(float), rng.normal(size=n)),
}


def fit_rows(X: np.ndarray, y: np.ndarray) -> FitRows:
    """Rows that are all there."""
    return FitRows(X, y, np.ones(len(y), dtype=np.bool_))


def coverage(kind: str, n: int, epsilon: str, *, allowed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """How often intervals hold, and the error over the standard error; noise of `allowed` times what is supposed."""
    share = Fraction(epsilon) / 10
    paid = Paid.of(share, public=False)
    constants = calibrate(n, 2, tau=TAU, largest=8.0, norm=NORM, penalty=1.0, epsilon=Fraction(epsilon) - share)
    source, held, scaled = SeededSource(5), [], []
    for number in range(SETS):
        x, e = KINDS[kind](np.random.default_rng([number, n]), n)
        X, y = shortened(np.column_stack([np.ones(n), x]), NORM), np.clip(1 + 2 * x + e, -8, 8)
        f = release(X, y, constants, source=source)
        told = tell(fit_rows(X, y), f, paid, known=None, norm=NORM, tau=TAU, source=source)
        found = errors(f, told, rows=n, **constants.law | {"scale": constants.scale * allowed})
        off = f - np.array([1.0, 2.0])
        held.append(np.abs(off) <= found.reach)
        scaled.append(off / found.std_error)
    return np.mean(held, axis=0), np.array(scaled)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in ("heavy tails", "a tenth") else [pytest.mark.full_size]) for kind in KINDS],
)
def test_intervals_hold_and_errors_are_as_large_as_they_say(kind: str) -> None:
    held, scaled = coverage(kind, 6000, "2")
    assert (held >= LOW).all()
    assert (np.abs(scaled.mean(axis=0)) < 4 / math.sqrt(SETS) + 0.15).all(), "no bias beyond what the penalty takes"
    assert (scaled.std(axis=0) < 1.15).all() and (scaled.std(axis=0)[0] > 0.8 or kind == "a tenth")


def test_errors_that_leave_out_noise_are_found_out() -> None:
    assert (coverage("normal", 6000, "1/2", allowed=0.3)[0] < LOW).any()


def test_intervals_hold_where_responses_are_missing() -> None:
    """Half of them are. Columns are public and count in X'X, which must not tell of them; such rows curve nothing.

    Errors are not much too large either.
    """
    held, off, told, sets, unit = [], [], [], 80, Rows(-8, 8, "y")
    for number in range(sets):
        rng = np.random.default_rng([9, number])
        x, ask = rng.uniform(-1, 1, 2000), {"bounds": (-8, 8), "norm": 2, "penalty": 1, "epsilon": 20}
        data = {"x": x, "y": np.where(rng.random(2000) < 0.5, np.nan, 1 + 2 * x + rng.normal(0, 2, 2000))}
        account = Account.open(None, dataset="rows", unit=unit, budget=Pure(20), seed=number)
        found = objective_perturbation("y ~ x", data, **ask, account=account, public=["x"]).value
        held.append([low <= right <= high for low, right, high in zip(found.low, (1, 2), found.high, strict=True)])
        off.append(np.subtract(found.value, (1, 2)))
        told.append(found.std_error)
    assert (np.mean(held, axis=0) >= stats.binom(sets, 0.95).ppf(1e-4) / sets).all()
    assert (np.median(told, axis=0) < 1.6 * np.std(off, axis=0)).all()


def test_a_row_without_a_response_pulls_nowhere_wherever_the_bounds_lie() -> None:
    """It is zeros beside responses that are told from the middle of the bounds: zero may be far from there."""
    rng = np.random.default_rng(5)
    x, missing, told = rng.uniform(-1, 1, 2000), rng.random(2000) < 0.5, []
    y = np.where(missing, np.nan, 1 + 2 * x + rng.normal(0, 0.5, 2000))
    for far in (0, 1000):
        unit = Rows(far - 8, far + 8, "y")
        account = Account.open(None, dataset="rows", unit=unit, budget=Pure(20), seed=1)
        ask = {"bounds": (far - 8, far + 8), "norm": 2, "penalty": 1, "epsilon": 20}
        released = objective_perturbation("y ~ x", {"x": x, "y": y + far}, **ask, account=account, public=["x"])
        told.append(released.value.std_error)
    np.testing.assert_allclose(told[0], told[1], rtol=1e-6)


def test_rows_without_a_response_are_as_if_they_were_not_there() -> None:
    """With half of the rows missing in a design of like rows: the errors of the other half by itself."""
    gram, f = np.diag([900.0, 300.0]), np.array([1.0, 2.0])
    asked = {"tau": TAU, "penalty": 4.0, "scale": 7.0, "smoothing": 0.0}
    half = errors(f, Told(gram, 0.0, 150.0, 0.0, missing=500.0), rows=1000, **asked)
    alone = errors(f, Told(gram / 2, 0.0, 150.0, 0.0), rows=500, **asked)
    np.testing.assert_allclose(half.std_error, alone.std_error)
    np.testing.assert_allclose(half.reach, alone.reach)


def test_where_noise_hides_the_rows_there_is_no_interval_and_the_penalty_bounds_the_error() -> None:
    told = Told(np.diag([900.0, 10.0]), 40.0, 3.0, 1.0)
    found = errors(np.array([1.0, 2.0]), told, rows=1000, tau=TAU, penalty=8.0, scale=30.0, smoothing=0.0)
    assert np.isfinite(found.reach).tolist() == [True, False]
    assert found.std_error[1] >= math.sqrt(2) * 30 / 8


def test_more_doubt_is_never_a_smaller_error() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(800, 3)) @ np.array([[1, 0.7, 0], [0, 0.3, 0], [0, 0, 1]])
    gram, f = X.T @ X, np.array([1.0, -2.0, 3.0])
    asked = {"rows": 800, "tau": TAU, "penalty": 3.0, "scale": 20.0, "smoothing": 0.0}
    sizes = [errors(f, Told(gram, a, 8.0, b), **asked).std_error for a, b in ((0, 0), (3, 0), (3, 20), (12, 60))]
    assert (np.diff(sizes, axis=0) > 0).all()


def test_check_tells_the_width_before_paying() -> None:
    """On the design that is supposed it is the width that releases have."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 8000)
    data = {"x": x, "y": 1 + 2 * x + rng.normal(0, 0.8, 8000)}  # a twentieth of the range
    ask = {"bounds": (-8, 8), "norm": 2, "penalty": 1, "epsilon": 2}
    check = objective_perturbation.check("y ~ x", data, **ask)
    expected = check.expected
    found = [objective_perturbation("y ~ x", data, seed=s, **ask).value for s in range(20)]
    widths = np.median([np.subtract(one.high, one.low) / 2 for one in found], axis=0)
    np.testing.assert_allclose(expected.half_width, widths, rtol=0.15)
    assert expected.flag == ("", "") and found[0].flag == ("", "")
    assert "one variance" in str(check) and found[0].tidy()["std_error"].null_count == 0


@pytest.mark.parametrize(("norm", "penalty", "epsilon"), [(2, 1, 8), (4, 50, 2), (1.5, 1, 2), (10, 1, 2)])
def test_expected_errors_of_a_supposed_design_are_a_range_that_holds(norm: float, penalty: float, epsilon: int) -> None:
    """A third of the rows has a 1: other columns than are supposed, and norms that are too large for them."""
    x, off = (np.random.default_rng(99).uniform(size=1200) < 0.33) * 1.0, []
    ask: dict[str, Any] = {"bounds": (-10, 10), "norm": norm, "penalty": penalty, "epsilon": epsilon}
    for seed in range(12):
        data = {"x": x, "y": 1 + 0.5 * x + np.random.default_rng(seed).normal(size=1200)}
        found = objective_perturbation("y ~ x", data, seed=seed, **ask)
        off.append(np.subtract(found.value.value, [1, 0.5]))
    expected, observed = found.check.expected, np.sqrt(np.mean(np.square(off), axis=0))
    assert (observed > expected.lowest).all() and (observed < expected.highest).all()
    assert (expected.std_error >= np.array(expected.lowest)).all()
    assert (expected.std_error <= np.array(expected.highest) * (1 + 1e-9)).all()
    assert f"x: at least {expected.lowest[1]:.3g} and at most {expected.highest[1]:.3g}" in str(found.check)
    if "+-" in str(expected):  # an interval is told of, so the release has one
        assert np.isfinite(found.value.low).all()
    assert ("+-" in str(expected)) is (norm == 2)


def test_what_is_public_is_said_before_paying() -> None:
    x = np.linspace(-1, 1, 60)
    data = {"x": x, "y": x}
    few = objective_perturbation.check("y ~ x", data, bounds=(-8, 8), norm=2, penalty=1, epsilon=0.5)
    assert few.expected.flag == ("rows not seen, penalty holds",) * 2
    assert str(few.expected).startswith("Before paying: noise hides")
    large = {"x": np.linspace(-0.01, 0.01, 20_000), "y": np.zeros(20_000)}
    account = Account.open(None, dataset="rows", unit=Rows(-8, 8, "y"), budget=Pure(8))
    ask = {"bounds": (-8, 8), "norm": 2, "penalty": 1, "epsilon": 2, "public": ["x"], "account": account}
    told = objective_perturbation.check("y ~ x", large, **ask).expected
    assert told.public and told.flag == ("penalty holds",) * 2, "the rows of a narrow column weigh 0.67"
    wide = {"x": np.linspace(-1, 1, 20_000), "y": np.zeros(20_000)}
    assert objective_perturbation.check("y ~ x", wide, **ask).expected.flag == ("", "")


def test_a_supposed_design_has_the_mean_squares_of_its_columns() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(10**5), rng.uniform(-1, 1, 10**5), np.eye(4)[rng.integers(4, size=10**5)][:, 1:]])
    gram = supposed([False, True, False], [1, 1, 3], rows=10**5, norm=3.0)
    np.testing.assert_allclose(np.diag(gram), np.diag(X.T @ X), rtol=0.02)


def test_the_interval_is_of_the_coefficient_without_penalty() -> None:
    """A penalty as large as the rows weigh takes half of a slope; the ends still reach it."""
    n, x = 20_000, np.linspace(-1, 1, 20_000)
    X, y = np.column_stack([np.ones(n), x]), 3 * x
    penalty = float((x**2).sum())
    constants = calibrate(n, 2, tau=TAU, largest=8.0, norm=NORM, penalty=penalty, epsilon=Fraction(20))
    f = minimise(X, y, np.zeros(2), constants)
    assert 1.3 < f[1] < 1.7
    paid = Paid.of(Fraction(2), public=False)
    told = tell(fit_rows(X, y), f, paid, known=None, norm=NORM, tau=TAU, source=SeededSource(1))
    found = errors(f, told, rows=n, **constants.law)
    assert f[1] + found.reach[1] > 3.0 > f[1] + 5 * found.std_error[1]


def test_a_release_of_categories_has_errors_without_a_norm() -> None:
    rng = np.random.default_rng(8)
    data = {"s": rng.choice(["a", "b", "c"], size=6000), "y": rng.normal(size=6000)}
    found = objective_perturbation("y ~ s", data, bounds=(-4, 4), penalty=1, epsilon=4, public=["s"], seed=3).value
    assert np.isfinite(found.std_error).all() and (np.array(found.low) < 0).all() and (np.array(found.high) > 0).all()
