"""One posterior draw as a release: its law against dense algebra, its price against brute force over neighbours."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.models.bayes.draw_law import DrawLaw
from discreet.models.bayes.posterior_draw import release_draw
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Concentrated
from discreet.words.errors import DiscreetError
from faults_of import about

KNOWN = {"Residual": 0.04, "g": 0.02}
ASK: dict[str, Any] = {"variances": KNOWN, "sd": 2.0, "public": ["x", "kind", "g"], "bounds": (0, 2)}
FORMULA = "y ~ x + kind + (1 | g)"


def panel(n: int = 90) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    g, x = np.arange(n) % 7, rng.uniform(-1, 1, n)
    y = np.clip(1 + 0.3 * x + 0.15 * rng.normal(size=7)[g] + 0.2 * rng.normal(size=n), 0, 2)
    return {"y": y, "x": x, "kind": np.array(list("ab"))[np.arange(n) % 2], "g": np.array([f"g{k}" for k in g])}


def dense(data: dict[str, Any], power: float) -> tuple[Any, Any, Any]:
    """Posterior mean and covariance of (effects, intercept, x, kindb), and the design."""
    Z = np.equal.outer(data["g"], np.unique(data["g"])).astype(float)
    A = np.column_stack([Z, np.ones(len(data["y"])), data["x"], data["kind"] == "b"])
    s2 = KNOWN["Residual"] / power
    P = np.diag([1 / KNOWN["g"]] * 7 + [1 / 2.0**2] * 3)
    covariance = np.linalg.inv(A.T @ A / s2 + P)
    return covariance @ A.T @ data["y"] / s2, covariance, A


def test_draws_have_the_mean_and_covariance_of_the_posterior() -> None:
    data = panel()
    offer = release_draw.ask(FORMULA, **ASK).offer(data)
    reading, source = offer.read(None), SeededSource(7)
    found = [offer.draw(reading, source) for _ in range(400)]
    draws = np.array([np.append([each.effects["g"][f"g{k}"] for k in range(7)], each.beta) for each in found])
    mean, covariance, _ = dense(data, 1.0)
    assert found[0].power == 1
    assert np.abs((draws.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / 400)).max() < 4.5
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    white = (draws - mean) @ root.T
    assert np.abs(np.cov(white.T) - np.eye(10)).max() < 5 * np.sqrt(2 / 400)
    assert np.abs(np.cov((1.3 * white).T) - np.eye(10)).max() > 5 * np.sqrt(2 / 400)  # it would notice
    np.testing.assert_allclose(found[0].std_error, np.sqrt(np.diag(covariance))[7:], rtol=1e-4)


@pytest.mark.parametrize("rho", [None, 0.3])
def test_the_price_is_the_largest_leverage(rho: float | None) -> None:
    data = panel()
    drawn = release_draw(FORMULA, data, **ASK, rho=rho, seed=1)
    _, covariance, A = dense(data, drawn.power)
    s2 = KNOWN["Residual"] / drawn.power
    leverage = np.einsum("ri,ij,rj->r", A, covariance, A) / s2
    charged = drawn.guarantee.loss
    assert isinstance(charged, Concentrated)
    assert float(charged.rho) == pytest.approx(0.5 * 2**2 * leverage.max() / s2, rel=1e-3)
    assert float(charged.rho) >= 0.5 * 2**2 * leverage.max() / s2
    if rho:
        assert charged.rho <= Fraction(3, 10) and drawn.power < 1


def test_less_noise_would_cost_more() -> None:
    """Brute force: of all rows and ends of the range the farthest pair of posterior means, in the law's own metric."""
    data = panel()
    law_power = release_draw(FORMULA, data, **ASK, rho=0.3, seed=1).power
    worst = 0.0
    for row in range(len(data["y"])):
        ends = [data["y"] * 1.0 for _ in range(2)]
        ends[0][row], ends[1][row] = 0.0, 2.0
        (low, covariance, _), (high, _, _) = (dense(data | {"y": y}, law_power) for y in ends)
        worst = max(worst, 0.5 * (high - low) @ np.linalg.solve(covariance, high - low))
    assert 0.299 < worst <= 0.3


def test_it_goes_through_the_one_door(tmp_path: Path) -> None:
    data, ledger = panel(), tmp_path / "book.db"
    check = release_draw.check(FORMULA, data, **ASK, rho=0.5)
    assert "posterior draw" in str(check)
    paid = {"ledger": ledger, "budget": Concentrated(1), "dataset": "panel"}
    first = release_draw(FORMULA, data, **ASK, rho=0.5, name="first", **paid)
    assert first.entry.loss == first.guarantee.loss and first.guarantee.basis == "proved"
    with pytest.raises(DiscreetError):
        release_draw(FORMULA, data, **ASK, rho=0.9, name="second", **paid)
    assert "effects" in first.to_dict() and first.summary().startswith("One draw")
    published = np.append([first.effects["g"][f"g{k}"] for k in range(7)], first.beta)
    assert first.fitted(data) == pytest.approx(dense(data, 1.0)[2] @ published, rel=1e-12)
    assert len(first.tidy(levels=True)) == 10


def test_refusals_do_not_depend_on_responses() -> None:
    data = panel()
    strange = data | {"y": np.where(np.arange(90) == 3, np.nan, 1e9)}
    assert release_draw(FORMULA, strange, **ASK, seed=1).power == 1
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"variances": {"Residual": 0.1}}, "variances"),
        ({"variances": {"Residual": 0.0, "g": 1}}, "variances"),
        ({"sd": np.inf}, "sd"),
        ({"public": ["x"]}, "public"),
        ({"bounds": None}, "bounds"),
        ({"rho": 0}, "rho"),
    ]
    for change, of in wrong:
        with pytest.raises(DiscreetError, check=about(of)):
            release_draw(FORMULA, data, **(ASK | change))
    for formula in ("y ~ x", "y ~ x + (1 | g) + (1 | kind)", "y ~ x + (x | g)"):
        with pytest.raises(DiscreetError, check=about("formula")):
            release_draw(formula, data, **ASK)


def test_the_law_without_numbers_in_the_design_is_that_of_its_cells() -> None:
    data = panel()
    ask = ASK | {"public": ["kind", "g"]}
    cells = release_draw("y ~ kind + (1 | g)", data, **ask, seed=3)
    number = data | {"b": (data["kind"] == "b").astype(float)}
    rows = release_draw("y ~ b + (1 | g)", number, **(ask | {"public": ["b", "g"]}), seed=3)
    assert float(cells.guarantee.loss.rho) == pytest.approx(float(rows.guarantee.loss.rho), rel=1e-4)


def test_smaller_power_widens_every_deviation() -> None:
    data = panel()
    g = np.unique(data["g"], return_inverse=True)[1]
    X = np.column_stack([np.ones(90), data["x"]])
    Z = np.eye(7)[g]
    laws = [DrawLaw(Z.sum(axis=0), Z.T @ X, X.T @ X, np.eye(2) / 4, 0.04, 0.02, power) for power in (1.0, 0.3)]
    prices = [law.rho(g, X, reach=2.0, slack=0.0) for law in laws]
    assert prices[1] < prices[0]
    assert all((b > a).all() for a, b in zip(laws[0].deviations(), laws[1].deviations(), strict=True))


def test_public_name() -> None:
    assert dc.release_draw is release_draw


@pytest.mark.parametrize("rho", [None, "1/100"])
def test_variances_that_no_arithmetic_holds_beside_the_responses_are_refused_before_paying(rho: str | None) -> None:
    """Below the square of a step, rounding of responses is wider than the posterior; farther off, integers overflow."""
    step = 2 / 2**14
    extremes = ((1e-300, 1e-300), (1e-40, 1e-40), (0.9 * step**2, 0.02), (0.04, 1e-60), (1e300, 0.02), (1e90, 1e90))
    for residual, group in extremes:
        far = {"variances": {"Residual": residual, "g": group}, "rho": rho}
        with pytest.raises(DiscreetError, check=about("variances")):
            release_draw.check(FORMULA, panel(), **(ASK | far))
    for sd in (1e-300, 1e300):
        with pytest.raises(DiscreetError, check=about("sd")):
            release_draw.check(FORMULA, panel(), **(ASK | {"sd": sd, "rho": rho}))
    near = {"variances": {"Residual": 1.1 * step**2, "g": 0.02}, "rho": rho}
    assert np.isfinite(release_draw(FORMULA, panel(), **(ASK | near), seed=1).beta).all()
