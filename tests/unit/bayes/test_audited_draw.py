"""One draw from the whole posterior: its law against the exact posterior, its guarantee, and what it never shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.models.bayes.audited_draw import STATED, release_audited_draw
from discreet.noise.source import SeededSource
from discreet.words.errors import DiscreetError
from faults_of import about

PRIOR = dc.Prior(V=0.05, nu=8, sd=2)
ASK: dict[str, Any] = {"prior": PRIOR, "audited": "3.5", "public": ["x", "g"], "bounds": (0, 2)}
FORMULA = "y ~ x + (1 | g)"


def panel(n: int = 120) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    g, x = np.arange(n) % 8, rng.uniform(-1, 1, n)
    y = np.clip(1 + 0.3 * x + 0.2 * rng.normal(size=8)[g] + 0.2 * rng.normal(size=n), 0, 2)
    return {"y": y, "x": x, "g": np.array([f"g{k}" for k in g])}


def test_draws_follow_the_exact_posterior() -> None:
    data, count = panel(), 600
    exact = dc.mixed(FORMULA, data, prior=PRIOR)
    offer = release_audited_draw.ask(FORMULA, **ASK).offer(data)
    reading, source = offer.read(None), SeededSource(3)
    found = [offer.draw(reading, source) for _ in range(count)]
    for name in ("(Intercept)", "x"):
        law, drawn = exact.coefficient(name), np.array([each.fixed[name] for each in found])
        assert abs(drawn.mean() - law.mean) < 4.5 * law.sd / np.sqrt(count)
        ranks = law.cdf(drawn)
        assert np.abs(np.sort(ranks) - (np.arange(count) + 0.5) / count).max() < 2 / np.sqrt(count)
        assert (
            np.abs(np.sort(law.cdf(law.mean + 1.5 * (drawn - law.mean))) - (np.arange(count) + 0.5) / count).max()
            > 0.06
        )
    level, u = exact.effect("g3"), np.array([each.effects["g"]["g3"] for each in found])
    assert np.abs(np.sort(level.cdf(u)) - (np.arange(count) + 0.5) / count).max() < 2 / np.sqrt(count)


def test_the_ledger_is_charged_what_was_audited_and_says_that_it_is_empirical(tmp_path: Path) -> None:
    data = panel()
    figure = dc.audit_posterior(dc.mixed(FORMULA, data, prior=PRIOR)).epsilon
    stated = f"{np.ceil(100 * figure) / 100:.2f}"
    paid = {"ledger": tmp_path / "book.db", "budget": 10, "dataset": "panel", "name": "one"}
    drawn = release_audited_draw(FORMULA, data, **(ASK | {"audited": stated}), **paid)
    assert drawn.guarantee.basis == "empirical" and drawn.entry.loss == dc.Pure(stated)
    said = str(drawn.guarantee)
    assert "not a promise" in said and "times as likely" not in said
    assert said.startswith(f"NO PROMISE: {drawn.guarantee.definition}. {STATED}")
    assert "not differential privacy" in drawn.guarantee.definition
    assert drawn.entry.payload["details"]["epsilon_is"] == "stated by the caller, unchecked"
    assert drawn.to_dict()["deviations"] == {} and "deviation" not in drawn.summary()
    assert drawn.tidy(levels=True)["std_error"].null_count == 10


def test_draws_are_as_far_off_as_check_reports_from_the_public_columns() -> None:
    """Residuals and effects have the sizes that it supposes, 5 % and 1 % of the range; responses change nothing."""
    rng, source = np.random.default_rng(2), SeededSource(4)
    g, x = np.arange(1600) % 16, rng.uniform(-1, 1, 1600)
    data: dict[str, Any] = {"x": x, "g": g, "y": np.zeros(1600)}
    question = release_audited_draw.ask(FORMULA, **(ASK | {"prior": dc.Prior(V=0.0005, nu=1, sd=2)}))
    told = question.offer(data).check().expected
    off, effects = [], []
    for _ in range(20):
        u = 0.02 * rng.normal(size=16)
        data["y"] = np.clip(1 + 0.1 * x + u[g] + 0.1 * rng.normal(size=1600), 0, 2)
        offer = question.offer(data)
        assert str(offer.check().expected) == str(told)
        drawn = offer.draw(offer.read(None), source)
        off.append((drawn.beta - [1, 0.1]) / told.fixed)
        effects.append((drawn.random[0].values - u) / told.effects[0][1])
    assert [rows for rows, _ in told.effects] == [100]
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(1, rel=0.15)
    assert np.sqrt(np.mean(np.square(effects))) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("level", [0.0, 0.3, 1.0, 2.0])
def test_constant_responses_have_their_own_posterior(level: float) -> None:
    """One row must not decide whether the posterior or the prior is drawn from: the limit of nearly constant ones."""
    data, count = panel(), 300
    nearly = dc.mixed(FORMULA, data | {"y": level + 1e-7 * data["y"]}, prior=PRIOR)
    offer = release_audited_draw.ask(FORMULA, **ASK).offer(data | {"y": np.full(120, level)})
    reading, source = offer.read(None), SeededSource(3)
    found = [offer.draw(reading, source) for _ in range(count)]
    for name in ("(Intercept)", "x"):
        law, drawn = nearly.coefficient(name), np.array([each.fixed[name] for each in found])
        assert np.abs(np.sort(law.cdf(drawn)) - (np.arange(count) + 0.5) / count).max() < 2 / np.sqrt(count)
    u = np.array([each.effects["g"]["g3"] for each in found])
    assert np.abs(np.sort(nearly.effect("g3").cdf(u)) - (np.arange(count) + 0.5) / count).max() < 2 / np.sqrt(count)


def test_responses_that_have_no_posterior_stop_nothing() -> None:
    data = panel()
    for y in (np.full(120, 1.0), np.full(120, np.nan), np.where(np.arange(120) == 3, np.inf, 1e300)):
        assert np.isfinite(release_audited_draw(FORMULA, data | {"y": y}, **ASK, seed=1).beta).all()


def test_algebra_that_fails_on_some_responses_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a release is refused would tell about responses."""

    def fails(*args: object, **kwargs: object) -> None:
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("discreet.models.bayes.audited_draw.PosteriorModel.of", fails)
    assert np.isfinite(release_audited_draw(FORMULA, panel(), **ASK, seed=1).beta).all()


def test_refusals() -> None:
    data = panel()
    collapsing = {"prior": dc.Prior(variances={"Residual": "half-t(3, 0.5)"})}
    for change, of in (
        ({"audited": 0}, "epsilon"),
        ({"prior": {"nu": 0}}, "prior"),
        (collapsing, "prior"),
        ({"public": ["x"]}, "public"),
    ):
        with pytest.raises(DiscreetError, check=about(of)):
            release_audited_draw(FORMULA, data, **(ASK | change))
    with pytest.raises(DiscreetError, check=about("formula")):
        release_audited_draw("y ~ x + (1 | g) + (x | g)", data, **ASK)
