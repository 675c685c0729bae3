"""A refit from downdated moments must equal a fit of the data without the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from discreet.models.linear import MixedFit, MixedWarning, leave_groups_out, leave_rows_out, mixed
from discreet.words.errors import FitError
from faults_of import about

FORMULA = "y ~ 0 + industry + t + (1 | g)"


def without(panel: dict, gone: np.ndarray, method: str) -> MixedFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        return mixed(FORMULA, {name: values[~gone] for name, values in panel.items()}, method=method)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_leaving_out_each_group(panel: dict, method: str) -> None:
    fit = mixed(FORMULA, panel, method=method)  # type: ignore[arg-type]
    refits = leave_groups_out(fit)
    assert len(refits.criterion) == 18
    for index, group in enumerate(np.unique(panel["g"])):
        other = without(panel, panel["g"] == group, method)
        expected = np.array([other.fixed.get(name, np.nan) for name in fit.names])
        assert refits.criterion[index] == pytest.approx(other.criterion, rel=1e-10)
        np.testing.assert_allclose(refits.beta[index], expected, rtol=1e-8)
        np.testing.assert_allclose(refits.variances[index], list(other.variances.values()), rtol=1e-6, atol=1e-10)
        effects = refits.effects(np.array([index]))[0]
        assert np.isnan(effects[index])
        np.testing.assert_allclose(np.delete(effects, index), other.random[0].values[:, 0], atol=1e-8)
        moved = np.abs(effects - fit.random[0].values[:, 0])
        assert refits.effect_change[index] == pytest.approx(np.nanmax(moved))
        assert refits.effect_changed[index] == np.nanargmax(moved)
    assert np.isnan(refits.beta[7, 4])  # group 107 alone has industry i4
    assert np.isfinite(refits.beta).sum() == refits.beta.size - 1


def test_leaving_out_single_rows(panel: dict) -> None:
    fit = mixed(FORMULA, panel)
    rows = np.array([0, 7, 55, 399])
    refits = leave_rows_out(fit, rows)
    for index, row in enumerate(rows):
        other = without(panel, np.arange(400) == row, "REML")
        assert refits.criterion[index] == pytest.approx(other.criterion, rel=1e-10)
        np.testing.assert_allclose(refits.beta[index], other.beta, rtol=1e-8)
        np.testing.assert_allclose(refits.variances[index], list(other.variances.values()), rtol=1e-7)
        np.testing.assert_allclose(refits.effects(np.array([index]))[0], other.random[0].values[:, 0], atol=1e-8)


def test_the_ratio_may_fall_to_zero_or_stay_there(panel: dict) -> None:
    """One group carries all the variance: without it there is none, without another there still is."""
    noise, group = np.random.default_rng(0).normal(size=400), panel["g"] - 100
    means = np.bincount(group, noise) / np.bincount(group)
    y = noise - means[group] + 2.0 * (group == 3)
    fit = mixed("y ~ t + (1 | g)", panel | {"y": y})
    refits = leave_groups_out(fit)
    assert refits.variances[3, 0] == 0
    assert (np.delete(refits.variances[:, 0], 3) > 0.05).all()
    with pytest.warns(MixedWarning, match="boundary"):
        flat = mixed("y ~ t + (1 | g)", panel | {"y": noise - means[group]})
    assert (leave_groups_out(flat).variances[:, 0] == 0).all()


def test_some_groups_in_chunks(panel: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = mixed(FORMULA, panel)
    whole = leave_groups_out(fit)
    monkeypatch.setattr("discreet.models.linear.refits.CHUNK", 2)
    calls: list[tuple[str, float]] = []
    some = leave_groups_out(fit, np.array([4, 1, 9]), progress=lambda *told: calls.append(told))
    np.testing.assert_allclose(some.beta, whole.beta[[4, 1, 9]], rtol=1e-10)
    assert calls == [("2 of 3 refits", 2 / 3), ("3 of 3 refits", 1.0)]


def test_only_models_with_moments(panel: dict) -> None:
    with pytest.raises(FitError, check=about("formula")):
        leave_groups_out(mixed("y ~ t + (1 | g) + (1 | h)", panel))
