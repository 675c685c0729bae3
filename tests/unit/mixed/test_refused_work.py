"""Work that cannot succeed is refused before it is tried, and refusals say what is true and what to do next."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.models.formula.memory import free_memory
from discreet.words.errors import DataError, DiscreetError, FitError


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    g, x = np.arange(240) % 12, rng.normal(size=240)
    effects = rng.normal(size=12)[g]
    return {
        "y": x + effects + rng.normal(size=240),
        "n": rng.poisson(np.exp(0.3 * x + 0.5 * effects)),
        "b": (rng.random(240) < 1 / (1 + np.exp(-x - effects))).astype(float),
        "k": np.array(["low", "middle", "high"])[np.arange(240) % 3],
        "x": x,
        "g": g.astype(str),
    }


def counts(family: str = "poisson") -> Any:
    return dc.mixed(f"{'b' if family == 'binomial' else 'n'} ~ x + (1 | g)", columns(), family=family)


@pytest.mark.parametrize("count", [10**8, 10**12])
def test_responses_that_memory_does_not_hold_are_refused_before_they_are_drawn(count: int) -> None:
    """They were drawn one by one until the machine had no memory left."""
    assert 16.0 * 240 * count > free_memory()
    for fit in (dc.mixed("y ~ x + (1 | g)", columns()), counts()):
        with pytest.raises(FitError) as caught:
            fit.simulate(count)
        assert caught.value.about == "count"
        assert "GiB" in str(caught.value)


def test_replicates_have_a_most() -> None:
    plain: Any = dc.mixed("y ~ x + (1 | g)", columns())
    for fit, method in ((plain, "parametric"), (plain, "residual"), (counts(), "parametric")):
        with pytest.raises(FitError) as caught:
            fit.confint(method=method, replicates=10**12)
        assert caught.value.about == "replicates"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_days_of_moments_with_a_time_zone_are_those_of_their_instants(zone: str) -> None:
    """Before, pandas' own error came through."""
    data = pd.DataFrame(columns())
    data["d"] = pd.date_range("2024-01-01", periods=240, freq="7h")
    plain = dc.mixed("y ~ days(d) + (1 | g)", data)
    data["d"] = data["d"].dt.tz_localize("UTC").dt.tz_convert(zone)
    for zoned in (data, pl.from_pandas(data)):
        fit = dc.mixed("y ~ days(d) + (1 | g)", zoned)
        assert fit.beta == pytest.approx(plain.beta, rel=1e-9)
        assert fit.predict(zoned) == pytest.approx(plain.predict(), rel=1e-9)


def test_a_far_offset_of_shares_is_blamed_itself() -> None:
    """The fixed effects were said to separate the outcomes."""
    with pytest.raises(DataError) as caught:
        dc.mixed("b ~ x + (1 | g)", columns() | {"o": np.full(240, 500.0)}, family="binomial", offset="o")
    assert caught.value.about == "offset"


@pytest.mark.parametrize("family", ["poisson", "binomial", "negative-binomial"])
def test_only_poisson_is_sent_to_the_negative_binomial(family: str) -> None:
    with pytest.raises(DataError) as caught:
        counts(family).confint(method="residual")
    assert ('fit "negative-binomial"' in str(caught.value)) == (family == "poisson")


def test_refusals_of_words_have_a_next_step() -> None:
    fit: Any = dc.mixed("y ~ x + (1 | g)", columns())
    for asked, setting in ((fit.residuals, "kind"), (fit.confint, "method"), (fit.predict, "level")):
        with pytest.raises(DiscreetError) as caught:
            asked(**{setting: "other"})
        assert caught.value.about == setting
        assert "Use '" in str(caught.value)


def test_an_unseen_level_is_refused_with_the_levels_that_are_known() -> None:
    fit = dc.mixed("y ~ k + (1 | g)", columns())
    with pytest.raises(DataError) as caught:
        fit.predict({"k": ["Low"], "g": ["1"]})
    assert all(level in str(caught.value) for level in ("'high'", "'low'", "'middle'", "fit again"))
