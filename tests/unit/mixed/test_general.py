"""Families of counts and shares: derivatives against differences, integrals against brute force, and bad input."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.models.linear import MixedWarning
from discreet.models.linear.families.binomial import NOT_WHOLE, ONE_TRIAL
from discreet.models.linear.families.registry import family, fitted
from discreet.models.linear.generalised import NO_ERRORS, NO_ZEROS
from discreet.models.linear.laplace import Problem, Term, laplace, quadrature
from discreet.words.errors import DataError, FitError, Unidentified
from faults_of import about

N = 300


def problem(name: str) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(5)
    g, h, x = rng.integers(0, 12, N), rng.integers(0, 9, N), rng.normal(size=N)
    law = family(name)
    own = np.array([parameter.first - 0.3 for parameter in law.own])
    eta = 0.3 + 0.5 * x + 0.6 * rng.normal(size=12)[g]
    y = law.draw(eta, own, np.ones(N), rng)
    ones = np.ones((N, 1))
    terms = Term(np.column_stack([ones, x]), g, 12), Term(ones, h, 9)
    return Problem(y, np.column_stack([ones, x]), terms, np.full(N, 0.1), law, rng.uniform(0.5, 2, N)), own


@pytest.mark.parametrize("name", fitted())
def test_derivatives_of_a_law_are_differences(name: str) -> None:
    at, own = problem(name)
    eta, step = np.random.default_rng(6).normal(size=N), 1e-5

    def change(of: str, by: np.ndarray, in_eta: float) -> np.ndarray:
        up, down = at.law(eta + in_eta, own + by), at.law(eta - in_eta, own - by)
        return (getattr(up, of) - getattr(down, of)) / (2 * step)

    law, none = at.law(eta, own), np.zeros(len(own))
    np.testing.assert_allclose(law.slope, change("density", none, step), atol=1e-7)
    np.testing.assert_allclose(law.curve, -change("slope", none, step), atol=1e-7)
    np.testing.assert_allclose(law.change, change("curve", none, step), atol=1e-7)
    for by, found in zip(step * np.eye(len(own)), law.own, strict=True):
        for of, value in zip(("density", "slope", "curve"), found, strict=True):
            np.testing.assert_allclose(value, change(of, by, 0.0), atol=1e-7)


@pytest.mark.parametrize("name", fitted())
def test_slopes_of_the_approximation_are_differences(name: str) -> None:
    at, own = problem(name)
    point = np.array([0.2, 0.4, 0.7, 0.1, 0.3, 0.5, *own])

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        return laplace(at, x[:2], x[2:6], x[6:])

    found = value(point)[1]
    ends = [(value(point + step)[0] - value(point - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(point))]
    np.testing.assert_allclose(found, ends, atol=1e-6)


def test_quadrature_is_the_integral() -> None:
    from scipy.integrate import quad

    at, own = problem("binomial")
    one = Problem(at.y, at.X, (at.terms[1],), at.offset, at.family, at.weights)
    beta, theta = np.array([0.2, 0.4]), 0.9
    total = 0.0
    for level in range(9):
        rows = at.terms[1].level == level

        def density(u: float, rows: np.ndarray = rows) -> float:
            law = one.law(one.X @ beta + one.offset + theta * u, own)
            return float(np.exp(law.density[rows].sum() + 15 - u**2 / 2) / np.sqrt(2 * np.pi))

        total += np.log(quad(density, -9, 9, epsabs=1e-14, points=[-2, 0, 2])[0]) - 15
    assert quadrature(one, beta, np.array([theta]), own, 25) == pytest.approx(-total, rel=1e-9)
    assert quadrature(one, beta, np.array([theta]), own, 1) == pytest.approx(
        laplace(one, beta, np.array([theta]), own)[0], rel=1e-10
    )


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    g, x = np.repeat(np.arange(10), 20), rng.normal(size=200)
    return {"y": rng.poisson(np.exp(0.5 * x)), "b": (rng.random(200) < 0.5) * 1, "x": x, "g": g, "e": np.ones(200)}


def test_a_fit_predicts_what_it_fitted() -> None:
    data = rows()
    fit = dc.mixed("y ~ x + (1 | g)", data, family="poisson", exposure="e")
    np.testing.assert_allclose(fit.predict(data), fit.fitted, rtol=1e-10)
    np.testing.assert_allclose(np.log(fit.predict(data, level="marginal")), fit.predict(level="marginal", scale="link"))
    new = {"x": [0.5], "g": [99]}
    with pytest.raises(DataError, check=about("data")):
        fit.predict(new)
    assert fit.predict(new, new_levels="zero") == pytest.approx(fit.predict(new, level="marginal"))
    assert "poisson" in fit.summary() and fit.tidy().num_rows == 4


def test_effects_of_levels_have_the_errors_that_their_law_has() -> None:
    """Against the joint law of a level's effect and the fixed effects, which Laplace's approximation makes normal."""
    data, rng = rows(), np.random.default_rng(1)
    effects = rng.normal(size=(10, 2))[data["g"]]
    link = effects[:, 0] + effects[:, 1] * data["x"]
    fit = dc.mixed("b ~ x + (x | g)", data | {"b": (rng.logistic(size=200) < link) * 1}, family="binomial")
    (term,), mean = fit.random, fit.fitted
    Z = np.zeros((200, 20))
    for column, values in enumerate((np.ones(200), data["x"])):
        Z[np.arange(200), 2 * data["g"] + column] = values
    weight, X = mean * (1 - mean), np.stack([np.ones(200), data["x"]], axis=1)
    known = np.linalg.inv((Z.T * weight) @ Z + np.kron(np.eye(10), np.linalg.inv(term.covariance)))
    moved = known @ (Z.T * weight) @ X
    whole = np.diag(known + moved @ fit.covariance @ moved.T).reshape(10, 2)
    told = [r["std_error"] for r in fit.to_arrow().to_pylist() if r["effect"] == "random"]
    np.testing.assert_allclose(np.array(told).reshape(2, 10).T, np.sqrt(whole), rtol=1e-6)
    assert (whole > np.diag(known).reshape(10, 2)).all()


@pytest.mark.parametrize(
    ("changed", "formula", "asked", "kind", "of"),
    [
        ({}, "y ~ x + (1 | g)", {"family": "weibull"}, FitError, "family"),
        ({"y": np.zeros(200)}, "y ~ x + (1 | g)", {"family": "poisson"}, Unidentified, "formula"),
        ({"y": np.full(200, -1)}, "y ~ x + (1 | g)", {"family": "poisson"}, DataError, "formula"),
        ({"y": np.full(200, 0.5)}, "y ~ x + (1 | g)", {"family": "negative-binomial"}, DataError, "formula"),
        ({"b": np.full(200, 2)}, "b ~ x + (1 | g)", {"family": "binomial"}, DataError, "formula"),
        ({"b": np.ones(200)}, "b ~ x + (1 | g)", {"family": "binomial"}, Unidentified, "formula"),
        ({"b": (rows()["x"] > 0) * 1}, "b ~ x + (1 | g)", {"family": "binomial"}, Unidentified, "formula"),
        ({"e": np.zeros(200)}, "y ~ x + (1 | g)", {"family": "poisson", "exposure": "e"}, DataError, "exposure"),
        ({"e": np.zeros(200)}, "y ~ x + (1 | g)", {"family": "poisson", "weights": "e"}, DataError, "weights"),
        ({"e": np.full(200, np.inf)}, "y ~ x + (1 | g)", {"family": "poisson", "offset": "e"}, DataError, "offset"),
        ({}, "y ~ x + (1 | g)", {"family": "poisson", "offset": "nowhere"}, DataError, "offset"),
        ({}, "b ~ x + (1 | g)", {"family": "binomial", "exposure": "e"}, FitError, "exposure"),
        ({"e": np.tile([0.0, 1e6], 100)}, "y ~ x + (1 | g)", {"family": "poisson", "offset": "e"}, DataError, "offset"),
        ({"y": np.tile([0, 1e300], 100)}, "y ~ x + (1 | g)", {"family": "poisson"}, DataError, "formula"),
        ({"x": np.tile([0, 1e300], 100)}, "y ~ x + (1 | g)", {"family": "poisson"}, FitError, "formula"),
        ({"x": np.tile([0, 1e300], 100)}, "b ~ 1 + (x | g)", {"family": "binomial"}, FitError, "formula"),
        ({}, "y ~ x + (x | g)", {"family": "poisson", "points": 5}, FitError, "points"),
        ({}, "y ~ x + (1 | g)", {"family": "poisson", "points": 0}, FitError, "points"),
        ({}, "log(y) ~ x + (1 | g)", {"family": "poisson"}, FitError, "formula"),
        ({}, "y ~ x + (1 | g)", {"family": "poisson", "method": "REML"}, FitError, "method"),
        ({}, "y ~ x + (1 | g)", {"points": 5}, FitError, "points"),
    ],
)
def test_bad_input_is_refused(changed: dict, formula: str, asked: dict, kind: type, of: str) -> None:
    with pytest.raises(kind, check=about(of)):
        dc.mixed(formula, rows() | changed, **asked)


@pytest.mark.parametrize("size", [0.3, 40.0, 999.0, 1001.0, 3e6, 2e8, 1e13])
def test_densities_of_nearly_poisson_counts_keep_their_digits(size: float) -> None:
    """Against sums of logs; red before from 3e6 on, where differences of log-gammas were off by 1e-9 a row and more."""
    y, eta = np.array([0.0, 1.0, 7.0, 60.0]), np.array([0.5, -2.0, 1.0, 4.0])
    mu = np.exp(eta)
    rising = np.array([math.fsum(math.log1p(j / size) for j in range(int(count))) for count in y])
    logs = np.array([math.lgamma(count + 1) for count in y])
    exact = rising - logs + y * eta - (y + size) * np.log1p(mu / size)
    found = family("negative-binomial").law(y, eta, np.array([math.log(size)]))
    assert found.density == pytest.approx(exact, rel=1e-11)
    slopes = np.array([math.fsum(1 / (size + j) for j in range(int(count))) for count in y])
    by_size = size * (slopes - np.log1p(mu / size)) + size * (mu - y) / (mu + size)
    assert found.own[0][0] == pytest.approx(by_size, rel=1e-6, abs=1e-9)


def test_counts_without_overdispersion_have_the_estimates_of_poisson() -> None:
    """Red before: the search followed rounding errors of the likelihood to 0.0001 above its limit."""
    rng = np.random.default_rng(1)
    g, x = rng.integers(0, 30, 600), rng.normal(size=600)
    y = rng.binomial(20, np.clip(np.exp(0.4 + 0.4 * x + rng.normal(0, 0.3, 30)[g]) / 20, 0, 1))  # less than Poisson's
    data = {"y": y, "x": x, "g": g.astype(str)}
    poisson, other = (dc.mixed("y ~ x + (1 | g)", data, family=name) for name in ("poisson", "negative-binomial"))
    assert other.loglik <= poisson.loglik + 1e-7
    assert list(other.fixed.values()) == pytest.approx(list(poisson.fixed.values()), abs=1e-5)


def dispersed(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g, k, x = rng.integers(0, 30, 400), rng.integers(0, 3, 400), rng.normal(size=400)
    mean = np.exp(3 + 0.4 * x + 2 * rng.normal(size=30)[g])
    return {"y": rng.poisson(mean * rng.gamma(0.4, 1, 400)), "x": x, "g": g.astype(str), "k": k.astype(str)}


ZEROS = "zero-inflated-negative-binomial"


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_extra_zeros_and_terms_never_make_a_fit_worse() -> None:
    """Red before: another term took 0.01 from the likelihood."""
    formula = "y ~ x + (1 | g)"
    fit = dc.mixed(formula, dispersed(19), family=ZEROS)
    assert dc.mixed(f"{formula} + (1 | k)", dispersed(19), family=ZEROS).loglik >= fit.loglik - 1e-7


@pytest.mark.parametrize("base", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("points", [1, 5])
def test_a_fit_without_extra_zeros_says_so_and_is_that_of_its_base(base: str, points: int) -> None:
    """These counts have fewer zeros than either law."""
    rng = np.random.default_rng(3)
    data = {"y": 1 + rng.binomial(4, 0.4, 200) + rng.poisson(0.5, 200) // 2, "g": np.arange(200) % 10}
    data["y"][:3] = 0
    asked: dict[str, Any] = {"points": points}
    with pytest.warns(MixedWarning) as noted:
        fit = dc.mixed("y ~ 1 + (1 | g)", data, family=f"zero-inflated-{base}", **asked)
    assert fit.own["extra zeros"] < 1e-12 and NO_ZEROS in {str(note.message) for note in noted}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        plain = dc.mixed("y ~ 1 + (1 | g)", data, family=base, **asked)
    assert fit.loglik == pytest.approx(plain.loglik, abs=1e-7)
    assert fit.se == pytest.approx(plain.se, rel=1e-3)


@pytest.mark.parametrize("mean", [1e3, 1e8, 1e13])
def test_densities_of_large_counts_keep_their_digits(mean: float) -> None:
    """Against balls of 200 bits. Red before: differences of log-gammas left none, nor had the slopes any."""
    import flint

    log_size, eta = math.log(0.4), math.log(mean)
    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        r, mu = flint.arb(log_size).exp(), flint.arb(eta).exp()
        for y in (0.0, 1.0, float(np.rint(0.3 * mean)), float(np.rint(2 * mean))):
            law = family("negative-binomial").law(np.array([y]), np.array([eta]), np.array([log_size]))
            choose = (y + r).lgamma() - r.lgamma() - (flint.arb(y) + 1).lgamma()
            density = choose + y * (mu / (mu + r)).log() + r * (r / (mu + r)).log()
            slope, curve = y - (y + r) * mu / (mu + r), (y + r) * r * mu / (mu + r) ** 2
            assert law.density[0] == pytest.approx(float(density), abs=1e-8)
            assert law.slope[0] == pytest.approx(float(slope), abs=1e-13)
            assert law.curve[0] == pytest.approx(float(curve), rel=1e-12)
    finally:
        flint.ctx.prec = before


def test_a_fit_without_errors_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second derivatives of the wrong sign, as a search that failed would have. Red before: NaN without a word."""
    from discreet.models.linear import likelihood

    whole = likelihood._second
    monkeypatch.setattr(likelihood, "_second", lambda *args: -whole(*args))
    with pytest.warns(MixedWarning) as noted:
        fit = dc.mixed("y ~ x + (1 | g)", rows(), family="poisson")
    assert NO_ERRORS in {str(note.message) for note in noted} and NO_ERRORS in fit.summary()
    assert all(math.isnan(error) for error in fit.se.values())
    monkeypatch.undo()
    low, high = fit.confint()["x"]
    assert low < fit.fixed["x"] < high


def shares() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    g, x, trials = np.repeat(np.arange(10), 20), rng.normal(size=200), rng.integers(2, 12, 200)
    return {"share": rng.binomial(trials, 1 / (1 + np.exp(-x))) / trials, "x": x, "g": g, "trials": trials}


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_shares_without_trials_or_of_no_whole_successes_are_noted() -> None:
    """As R's "non-integer #successes". Red before: each share counted as one trial, in silence."""
    formula, data = "share ~ x + (1 | g)", shares()
    alone = dc.mixed(formula, data, family="binomial")
    assert ONE_TRIAL in alone.notes
    known = dc.mixed(formula, data, family="binomial", weights="trials")
    assert not {ONE_TRIAL, NOT_WHOLE} & set(known.notes)
    assert known.se["x"] < 0.6 * alone.se["x"]
    assert ONE_TRIAL not in alone.refit((data["share"] > 0.5) * 1.0).notes
    odd = dc.mixed(formula, data | {"trials": data["trials"] + 0.5}, family="binomial", weights="trials")
    assert NOT_WHOLE in odd.notes
    near = dc.mixed(formula, data | {"share": data["share"].round(6)}, family="binomial", weights="trials")
    assert NOT_WHOLE not in near.notes


def test_the_note_of_shares_without_trials_is_a_warning() -> None:
    with pytest.warns(MixedWarning):
        dc.mixed("share ~ x + (1 | g)", shares() | {"share": shares()["share"] * 0.5 + 0.2}, family="binomial")
