"""The posterior audit against posteriors recomputed row by row, and the published Monte Carlo method against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.influential import counts, draw_bins, monte_carlo_audit
from discreet.audit.posterior import audit_posterior, benchmark_bins, bins_without, own_epsilon, sensitivity
from discreet.models.bayes.blmm import BayesMixed, Prior, bayes_mixed
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.linear.influence import Influential
from discreet.words.errors import DataError
from faults_of import about


@pytest.fixture(scope="module")
def fit() -> BayesMixed:
    """120 rows in 12 groups of 2 to 18; one row far out in a small group."""
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(12), [2, 3, 3, 5, 7, 9, 11, 13, 15, 16, 18, 18])
    x = rng.normal(size=120)
    y = 0.3 * x + 0.3 * rng.normal(size=12)[group] + 0.5 * rng.normal(size=120)
    y[3] += 1.5
    return bayes_mixed("y ~ x + (1 | g)", {"y": y, "x": x, "g": group})


@pytest.fixture(scope="module")
def audit(fit):
    return audit_posterior(fit, examined=16)


def test_epsilon_is_that_of_posteriors_computed_anew(fit, audit) -> None:
    edges = benchmark_bins(fit.posterior, 20)
    origin = fit.fit.origin
    for row in [0, 3, 60, 119]:
        group, x, y = fit.design(np.array([row]))
        left = fit.fit.moments.downdate(group=group, x=x, y=y)
        anew = Posterior.of(
            PosteriorModel.of(left, Prior(), restore=origin.restore, offset=origin.offset), tolerance=1e-6
        )
        ratio = np.abs(np.log(20 * anew.effects.bins(edges)))
        assert audit.own[row] == pytest.approx(ratio[group[0]].max(), abs=1e-3)
        assert np.delete(ratio, group[0], axis=0).max() <= audit.elsewhere[row] + 1e-3
    assert audit.epsilon >= audit.own.max()


def test_what_the_audit_says(fit, audit) -> None:
    worst = audit.findings[0]
    assert worst.row == 3
    assert worst.group == "1"
    assert worst.group_rows == 3
    assert worst.own == pytest.approx(audit.own[3], abs=1e-9)
    assert abs(np.log(20 * worst.probability)) == pytest.approx(worst.own, abs=1e-9)
    assert worst.elsewhere <= audit.elsewhere[3]
    moved = bins_without(fit, 3)
    assert moved.sum() == pytest.approx(1) and moved[worst.bin] == pytest.approx(worst.probability, abs=1e-9)
    assert audit.noise_floor < 1e-3
    assert audit.bound >= audit.epsilon
    told = audit.to_dict()
    assert told["kind"] == "empirical"
    assert "not a privacy guarantee" in told["note"]
    assert told["rows_audited"] == 120
    assert "empirical epsilon" in str(audit)


def test_chosen_rows_get_the_figures_that_all_rows_get(fit, audit) -> None:
    few = audit_posterior(fit, rows=[60, 3, 3], examined=16)
    assert few.rows.tolist() == [3, 60]
    np.testing.assert_allclose(few.own, audit.own[[3, 60]], atol=1e-9)
    np.testing.assert_allclose(few.elsewhere, audit.elsewhere[[3, 60]], atol=1e-9)
    assert few.bound == few.epsilon == pytest.approx(audit.epsilon, abs=1e-9)
    influential = audit_posterior(fit, rows="influential", examined=16)
    assert 30 <= len(influential.rows) <= 32 and influential.epsilon <= audit.epsilon + 1e-9


def test_groups_are_ranked_by_their_worst_row(fit, audit) -> None:
    ranked = audit.groups(12)
    assert ranked[0]["group"] == "1" and ranked[0]["row"] == 3 and ranked[0]["rows"] == 3
    figures = [row["epsilon"] for row in ranked]
    assert figures == sorted(figures, reverse=True)
    assert sum(row["above_0.1"] for row in ranked) == (audit.own > 0.1).sum()
    assert audit.to_dict()["groups"][0]["group"] == "1"


def test_a_fit_by_draws_is_audited_by_its_exact_posterior(fit, audit) -> None:
    sampled = replace(fit, method="gibbs", found=None)
    assert audit_posterior(sampled, rows=[3], examined=2).epsilon == pytest.approx(audit.epsilon, abs=1e-4)


@pytest.mark.parametrize("rows", ["some", [], [120], [-1], [0.5], [[1]]])
def test_rows_that_do_not_exist(fit, rows) -> None:
    with pytest.raises(DataError, check=about("rows")):
        audit_posterior(fit, rows=rows)


def test_published_method_finds_the_exact_figure_within_its_noise(fit, audit) -> None:
    rows = Influential(np.array([3, 60]), ("extreme residual", "none"))
    found = monte_carlo_audit(fit, rows=rows, draws=4_000, warmup=200, seed=5)
    assert found.worst_row == 3
    assert found.kind == "empirical"
    assert 0.05 < found.noise_floor < 0.5
    assert abs(found.epsilon - audit.findings[0].epsilon) < 0.7  # a tail bin of few draws
    assert found.extremes[0, 0] < found.extremes[1, 0]
    assert (found.replicate.sum(axis=1) == 4_000).all()
    assert found.to_dict()["largest_count"] == found.extremes[:, 1].max()


def test_bins_of_draws() -> None:
    draws = np.random.default_rng(0).normal(size=(1_000, 300))
    edges = draw_bins(draws, 20)
    assert (counts(draws, edges) == 50).all()
    assert counts(draws + 10, edges)[:, -1].min() == 1_000


def test_more_degrees_of_freedom_change_the_figure(fit) -> None:
    rows = np.arange(120)
    found = sensitivity(fit, rows, (12.0, 60.0))
    assert [row["nu"] for row in found] == [12.0, 60.0]
    assert found[0]["epsilon"] == pytest.approx(own_epsilon(fit, rows).max(), rel=0.01)  # sd 0.998 instead of 1
    assert found[1]["epsilon"] != pytest.approx(found[0]["epsilon"], rel=0.01)


def test_a_model_without_fixed_effects() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 5)
    y = 0.3 * rng.normal(size=10)[group] + rng.normal(size=50)
    fit = bayes_mixed("y ~ 0 + (1 | g)", {"y": y, "g": group})
    found = audit_posterior(fit)
    without = bayes_mixed("y ~ 0 + (1 | g)", {"y": np.delete(y, 2), "g": np.delete(group, 2)})
    ratio = np.abs(np.log(20 * without.posterior.effects.bins(benchmark_bins(fit.posterior, 20))))
    assert found.own[2] == pytest.approx(ratio[0].max(), abs=1e-3)
    drawn = monte_carlo_audit(fit, rows=Influential(np.array([2]), ("chosen",)), draws=2_000, seed=1)
    assert np.isfinite(drawn.epsilon)


def test_the_published_method_in_words(fit) -> None:
    shares: list[float] = []
    rows = Influential(np.array([3]), ("extreme residual",))
    found = monte_carlo_audit(fit, rows=rows, draws=2_000, seed=5, progress=lambda _, share: shares.append(share))
    told = str(found)
    assert f"empirical epsilon {found.epsilon:.4g} by 2,000 draws" in told and "not a privacy guarantee" in told
    assert f"chance alone gives {found.noise_floor:.4g}" in told and "100 are expected" in told
    assert shares[-1] == 1.0 and shares == sorted(shares)


def test_bad_requests(fit) -> None:
    for wrong in ({"bins": 2.5}, {"bins": True}, {"bins": "20"}, {"examined": 1.5}, {"refinements": -1}):
        with pytest.raises(DataError, check=about(*wrong)):
            audit_posterior(fit, **wrong)
    for door in (audit_posterior, monte_carlo_audit):
        with pytest.raises(DataError, check=about("model")):
            door(fit.fit)
    with pytest.raises(DataError) as refused:
        audit_posterior(fit, bins=1)
    assert refused.value.about == "bins"
    with pytest.raises(DataError, check=about("bins")):
        monte_carlo_audit(fit, draws=10)
