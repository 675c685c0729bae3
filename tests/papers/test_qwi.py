"""What private releases keep on simulated flows of the documents' size: 2,428,452 rows, 3,111 counties."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed
from discreet.utility.model_curves import Case
from discreet_papers.lmm import MODELS

pytestmark = pytest.mark.full_size


@pytest.fixture(scope="module")
def flows():  # type: ignore[no-untyped-def]
    from discreet.simulate import qwi, stream

    table = stream.collect(qwi.batches(seed=0))["qwi"]
    return table.select(["jcr", "county", "industry", "quarter", "season"]).unify_dictionaries()


def kept(flows, model: str, **asked) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """The correlation of a private release, and the MLE's."""
    formula = MODELS[model].format(rate="jcr")
    fit = release_mixed(formula, flows, public=["industry", "quarter", "county", "season"], seed=1, **asked)
    return float(np.corrcoef(fit.fitted(flows), flows["jcr"].to_numpy())[0, 1]), Case.of(model, formula, flows).best


def test_counties_at_epsilon_one_keep_95_per_cent(flows) -> None:  # type: ignore[no-untyped-def]
    found, best = kept(flows, "LMM", epsilon=1)
    assert found > 0.95 * best
    clipped, _ = kept(flows, "LMM", epsilon=1, clip=(0, 0.5))
    assert clipped > 0.95 * best


def test_counties_at_a_tenth_beat_the_linear_model(flows) -> None:  # type: ignore[no-untyped-def]
    found, _ = kept(flows, "LMM", epsilon=0.1)
    linear, best = kept(flows, "LM", epsilon=0.1)
    assert found > best > linear * 0.999  # better than the linear model without any noise
    assert kept(flows, "LMM", epsilon=0.1, clip=(0, 0.5))[0] > found
    assert kept(flows, "LMM + season", epsilon=0.1)[0] > best
    assert kept(flows, "LMM + season", epsilon=0.05)[0] > best * 0.999  # groups are hidden, and do no harm


def test_county_by_season_is_estimable_at_epsilon_one(flows) -> None:  # type: ignore[no-untyped-def]
    found, best = kept(flows, "LMM + season", epsilon=1)
    counties = kept(flows, "LMM", epsilon=1)[1]
    assert found > 0.95 * best and found > counties
