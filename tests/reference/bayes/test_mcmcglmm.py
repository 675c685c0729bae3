"""Our exact posterior beside MCMCglmm's draws on the Exam data: every stored figure within 3 Monte Carlo errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.models.bayes.blmm import BayesMixed, bayes_mixed

HERE = Path(__file__).parent
EXAM = HERE.parents[3] / "shared" / "data" / "lmm" / "mlmRev_Exam.csv.gz"
REFERENCE = json.loads((HERE / "mcmcglmm_exam.json").read_text())
LEVELS = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
ERRORS = 3.0


@pytest.fixture(scope="module")
def exam() -> BayesMixed:
    if not EXAM.exists():
        pytest.skip("the Exam data are not in ../shared/data/lmm")
    return bayes_mixed("normexam ~ standLRT + (1 | school)", EXAM, draws=2_000, seed=3)


def deviations(law: object, stored: dict[str, float], share: float) -> dict[str, float]:
    """Each stored figure's distance from ours in its own Monte Carlo errors; `share` is effective draws per draw."""
    size = REFERENCE["draws"] * share
    found = {
        "mean": (law.mean - stored["mean"]) / (law.sd / np.sqrt(size)),
        "sd": (law.sd - stored["sd"]) / (law.sd / np.sqrt(2 * size)),
    }
    for name, level in LEVELS.items():
        at = law.quantile(np.array([level]))
        error = np.sqrt(level * (1 - level) / size) / law.pdf(at)
        found[name] = float(((at - stored[name]) / error)[0])
    return found


def cases(exam: BayesMixed):
    effective = {name: size / exam.chains.count for name, size in exam.chains.effective.items()}
    for i, (name, ours) in enumerate({"intercept": "(Intercept)", "standLRT": "standLRT"}.items()):
        yield name, exam.coefficient(ours), REFERENCE["beta"][name], effective["beta"][i]
    for i, (name, ours) in enumerate({"residual": "Residual", "school": "school"}.items()):
        yield name, exam.variance(ours), REFERENCE["variances"][name], effective["variances"][i]
    for stored in REFERENCE["u"]:
        level = stored["name"].removeprefix("school.")
        yield stored["name"], exam.effect(level), stored, effective["u"][exam.levels.index(level)]


def test_every_stored_figure(exam: BayesMixed) -> None:
    found = {
        (name, figure): value
        for name, law, stored, share in cases(exam)
        for figure, value in deviations(law, stored, min(float(share), 1.0)).items()
    }
    assert len(found) == 45
    assert {key: value for key, value in found.items() if abs(value) > ERRORS} == {}


def test_the_comparison_would_see_another_prior(exam: BayesMixed) -> None:
    from discreet.models.bayes.blmm import Prior
    from discreet.models.bayes.blmm.estimate import of_fit

    other = of_fit(exam.fit, prior=Prior(V=0.104, nu=24))
    found = deviations(other.variance("school"), REFERENCE["variances"]["school"], 1.0)
    assert abs(found["sd"]) > ERRORS


def test_sampler_agrees_with_quadrature(exam: BayesMixed) -> None:
    """All 65 schools, both effects and both variances: no mean is 4.5 errors away (72 comparisons)."""
    from discreet.models.bayes.blmm.diagnostics import standard_error

    assert exam.chains.converged
    u = exam.chains.u.reshape(-1, 65)
    assert np.abs((u.mean(axis=0) - exam.posterior.effects.mean) / standard_error(exam.chains.u)).max() < 4.5
    spread = u.std(axis=0) / exam.posterior.effects.sd - 1
    assert np.abs(spread * np.sqrt(2 * exam.chains.effective["u"])).max() < 4.5
    drawn = exam.chains.variances.reshape(-1, 2).mean(axis=0)
    exact = [exam.posterior.variance(0).mean, exam.posterior.variance(1).mean]
    assert np.abs((drawn - exact) / standard_error(exam.chains.variances)).max() < 4.5
