"""`dc.mixed(..., prior=...)`: both methods answer alike, marginals have their functions, wrong requests are refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import discreet as dc
from discreet.models.bayes.blmm import BayesMixed, ConvergenceWarning
from discreet.models.linear.fit import MixedFit
from discreet.words.errors import DataError, FitError
from faults_of import about

FORMULA = "y ~ x + (1 | g)"
LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture(scope="module")
def frame(data) -> dict[str, np.ndarray]:
    return {"y": data.y, "x": data.x[:, 1] + 5, "g": data.group}


@pytest.fixture(scope="module")
def exact(frame) -> BayesMixed:
    return dc.mixed(FORMULA, frame, prior=dc.Prior())


@pytest.fixture(scope="module")
def sampled(frame) -> BayesMixed:
    return dc.mixed(FORMULA, frame, prior={"nu": 12, "V": 0.104}, method="gibbs", draws=4_000, warmup=500, seed=6)


def test_the_call_is_reml_without_a_prior_and_a_posterior_with_one(frame, exact, sampled) -> None:
    assert isinstance(dc.mixed(FORMULA, frame), MixedFit)
    assert exact.method == "exact" and exact.chains is None
    assert sampled.method == "gibbs" and sampled.chains.converged and sampled.notes == ()
    assert sampled.prior == exact.prior


@pytest.mark.parametrize("name", ["(Intercept)", "x", "var g", "var Residual", "0", "7"])
def test_draws_and_quadrature_answer_alike(exact, sampled, name: str) -> None:
    def law(fit: BayesMixed):
        kind, _, rest = name.partition(" ")
        if kind == "var":
            return fit.variance(rest)
        return fit.coefficient(name) if name in fit.fit.names else fit.effect(name)

    ours, theirs = law(exact), law(sampled)
    assert abs(ours.mean - theirs.mean) < 4.5 * theirs.error
    assert theirs.sd == pytest.approx(ours.sd, rel=0.08)
    spread = np.sqrt(np.multiply(LEVELS, np.subtract(1, LEVELS)) / theirs.effective)
    assert (np.abs(ours.cdf(theirs.quantile(LEVELS)) - LEVELS) < 4.5 * spread).all()
    assert (np.abs(theirs.cdf(ours.quantile(LEVELS)) - LEVELS) < 4.5 * spread).all()
    at = ours.quantile([0.2, 0.5, 0.8])
    np.testing.assert_allclose(theirs.pdf(at), ours.pdf(at), rtol=0.12)
    assert theirs.rhat < 1.01


def test_densities_integrate_to_their_distribution_functions(exact, sampled) -> None:
    for law in (exact.coefficient("x"), exact.variance("g"), exact.effect("3"), sampled.coefficient("x")):
        low, high = law.quantile([0.1, 0.9])
        x = np.linspace(low, high, 2_001)
        assert np.trapezoid(law.pdf(x), x) == pytest.approx(0.8, abs=0.005)


def test_a_variance_is_positive(exact) -> None:
    assert exact.variance("g").cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]
    assert exact.variance("g").pdf([-1.0, 0.0]).tolist() == [0.0, 0.0]
    assert exact.variance("g").cdf(1e12) == pytest.approx(1)


def test_tables_and_texts_agree(exact, sampled) -> None:
    for fit in (exact, sampled):
        rows = fit.tidy(levels=True).to_pylist()
        assert [row["effect"] for row in rows] == ["fixed"] * 2 + ["variance"] * 2 + ["random"] * 8
        assert rows[1]["estimate"] == fit.coefficient("x").mean
        assert rows[4]["upper"] == pytest.approx(fit.effect("0").quantile(0.975)[0])
        assert ("rhat" in fit.table()[0]) == (fit.method == "gibbs")
        assert fit.to_dict()["posterior"] == fit.table()
        assert "var Residual" in fit.summary()
    assert "R-hat" in sampled.summary() and sampled.to_dict()["rhat_max"] < 1.01
    assert len(exact.tidy()) == 4


def test_charts(exact, sampled) -> None:
    for name in ("x", "g", "3"):
        density = exact.plot_density(name).to_dict()["data"]["values"]
        x, d = (np.array([row[key] for row in density]) for key in ("value", "density"))
        assert np.trapezoid(d, x) == pytest.approx(0.998, abs=0.002)
        traced = sampled.plot_trace(name).to_dict()["data"]["values"]
        assert traced[0]["draw"] == sampled.draws(name)[0, 0]
    with pytest.raises(DataError, check=about("name")):
        sampled.plot_trace("nobody")


def test_gibbs_needs_no_quadrature(frame, monkeypatch) -> None:
    """Where no rule settles, sampling still answers, as the error of the exact method says."""
    from discreet.models.bayes.blmm import exact, lattice

    monkeypatch.setattr(exact, "ORDERS", (2, 3))
    assert dc.mixed(FORMULA, frame, prior=dc.Prior()).posterior.order == 0  # equal steps instead
    monkeypatch.setattr(lattice, "POINTS", 3)
    with pytest.raises(FitError, check=about("prior")):
        dc.mixed(FORMULA, frame, prior=dc.Prior())
    assert dc.mixed(FORMULA, frame, prior=dc.Prior(), method="gibbs", draws=1_000).coefficient("x").sd > 0


def test_chains_that_did_not_converge_are_never_silent(frame) -> None:
    with pytest.warns(ConvergenceWarning, match="Raise"):
        fit = dc.mixed(FORMULA, frame, prior=dc.Prior(), method="gibbs", draws=20, warmup=0)
    assert fit.notes and fit.notes[0] in fit.summary() and fit.notes[0] in fit.to_dict()["notes"]


def test_a_prior_without_room_for_the_data_is_noted(frame) -> None:
    far = frame | {"y": 1_000 * frame["x"] + frame["y"]}
    assert "prior and data disagree on x" in str(dc.mixed(FORMULA, far, prior=dc.Prior()))
    assert dc.mixed(FORMULA, far, prior=dc.Prior(sd=5_000)).notes == ()


WRONG = {
    "keys": ({"prior": {"mu": 1}}, "prior"),
    "another model's prior": ({"prior": dc.GPrior()}, "prior"),
    "text": ({"prior": {"nu": "many"}}, "prior"),
    "no degrees of freedom": ({"prior": {"nu": 0}}, "prior"),
    "improper fixed effects": ({"prior": {"sd": np.inf}}, "prior"),
    "REML with a prior": ({"prior": dc.Prior(), "method": "REML"}, "method"),
    "a sampler without a prior": ({"method": "gibbs"}, "prior"),
}


@pytest.mark.parametrize(("asked", "about"), WRONG.values(), ids=WRONG)
def test_wrong_requests(frame, asked, about: str) -> None:
    with pytest.raises(FitError) as refused:
        dc.mixed(FORMULA, frame, **asked)
    assert refused.value.about == about


@pytest.mark.parametrize("levels", [0.0, 1.0, -0.1, [0.5, 2.0], np.nan])
def test_probabilities_outside_0_1(exact, sampled, levels) -> None:
    for law in (exact.coefficient("x"), exact.variance("g"), sampled.effect("3")):
        with pytest.raises(DataError, check=about("probability")):
            law.quantile(levels)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1e3, 1e9])
def test_a_prior_in_the_units_of_the_data_gives_the_same_posterior_in_those_units(frame, exact, size: float) -> None:
    scaled = dc.mixed(FORMULA, frame | {"y": size * frame["y"]}, prior=dc.Prior(V=0.104 * size**2, sd=size))
    assert scaled.coefficient("x").mean == pytest.approx(size * exact.coefficient("x").mean, rel=1e-5)
    assert scaled.effect("0").sd == pytest.approx(size * exact.effect("0").sd, rel=1e-4)
    assert scaled.variance("g").mean == pytest.approx(size**2 * exact.variance("g").mean, rel=1e-5)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_data_far_from_the_priors_units_still_have_a_posterior(frame, size: float) -> None:
    fit = dc.mixed(FORMULA, frame | {"y": size * frame["y"]}, prior=dc.Prior())
    assert np.isfinite(fit.posterior.effects.mean).all() and (fit.posterior.effects.sd > 0).all()


def test_the_door_shows_its_arguments() -> None:
    import inspect

    shown = inspect.signature(dc.mixed).parameters
    assert list(shown)[:4] == ["formula", "data", "method", "prior"] and {"draws", "chains", "warmup", "seed"} < set(
        shown
    )
    assert shown["method"].default is None and shown["prior"].default is None
    assert all(f"{name}" in dc.mixed.__doc__ for name in shown)


EXTREME = [{"sd": 1e-200}, {"sd": 1e200}, {"V": 1e250}, {"V": 1e-250}, {"nu": 1e200}, {"nu": 1e-200}]
EXTREME += [{"variances": {"g": law}} for law in ("half-t(3, 1e200)", "inverse-gamma(1e200, 1)", "pc(1e-200, 0.05)")]


@pytest.mark.parametrize("prior", EXTREME, ids=str)
def test_priors_beyond_doubles_are_refused(prior, frame) -> None:
    """Red before: ValueError, OverflowError and RuntimeWarning of NumPy."""
    with pytest.raises(FitError, check=about("prior")):
        dc.mixed(FORMULA, frame, prior=prior)


def test_a_prior_far_from_the_data_is_refused(frame) -> None:
    """Red before: LinAlgError."""
    with pytest.raises(FitError, check=about("prior")):
        dc.mixed("y ~ x + (x || g)", frame, prior={"V": 1e-50}, draws=20, chains=2, seed=1)


def test_a_group_of_several_terms_is_told_once(frame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = dc.mixed("y ~ x + (x || g)", frame, prior={"nu": 12}, draws=20, chains=2, seed=1)
    assert fit.summary().count("levels of g") == 1
