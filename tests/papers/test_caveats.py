"""What the study of intervals gives as a reason is printed: by a check before paying, or beside the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.changes.exceptions import exception_report
from discreet.data.histories import read_histories
from discreet.data.schema import Schema
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.linear.private import release_mixed
from discreet.models.mixed import mixed
from discreet.noise.source import SeededSource
from discreet.pages.page import Prose
from discreet.report.counts import intervals
from discreet.report.flags import LIMITS
from discreet.session import Session
from discreet.tables.derived import sums_of
from discreet.utility.between import changes_between
from discreet.words import caveats
from discreet_papers import amount_kinds, chance_kinds, fit_kinds, kinds
from discreet_papers.tables import UNIT

SESSION = Session(amount_kinds.paid("300, log-normal", "pay is log-normal"), unit=UNIT, budget=10**6)
RNG = np.random.default_rng(0)
ROWS = {"x": RNG.normal(size=3_000), "y": RNG.normal(size=3_000)}


def _check(question: Any) -> str:
    return str(question.offer(ROWS).check().expected)


def _summaries() -> list[str]:
    ask: dict[str, Any] = {"epsilon": 40, "seed": 0}
    return [
        _check(posterior_interval.ask("y ~ x", ["x"], **ask)),
        _check(posterior_quantile.ask("y ~ x", ["x"], probability=0.5, **ask)),
        _check(posterior_probability.ask("y ~ x", ["x"], at=0.0, **ask)),
    ]


def _answers() -> list[str]:
    ask: dict[str, Any] = {"epsilon": 40, "seed": 0}
    return [
        *(str(posterior_interval("y ~ x", ROWS, ["x"], **ask).value), LIMITS["interval"]),
        *(str(posterior_quantile("y ~ x", ROWS, ["x"], probability=0.5, **ask).value), LIMITS["quantile"].lower()),
        *(str(posterior_probability("y ~ x", ROWS, ["x"], at=0.0, **ask).value), LIMITS["probability"].lower()),
    ]


def _perturbed() -> list[str]:
    offer = objective_perturbation.ask("y ~ x", bounds=(-4, 4), norm=4, penalty=1, epsilon=50).offer(ROWS)
    return [str(offer.check().expected), str(offer.draw(offer.read(None), SeededSource(1)))]


def _counts() -> list[str]:
    table = SESSION.count("cell").release(epsilon=1)
    told = " ".join(block.text for block in intervals("A", table) if isinstance(block, Prose))
    return [str(SESSION.count("cell").check(epsilon=1).expected), told]


def _sums() -> list[str]:
    return [str(SESSION.sum("pay", "cell").check(epsilon=1).expected)]


def _means() -> list[str]:
    return [str(SESSION.mean("pay", "cell").release(epsilon=2))]


def _flows() -> list[str]:
    quarters = ["q1", "q2", "q3"]
    one = {"worker": [1, 1, 1], "workplace": [1, 1, 1], "quarter": quarters, "cell": ["0"] * 3}
    histories = read_histories(one, quarters=quarters, schema=Schema(["cell"], {}))
    return [str(Session(histories, unit=UNIT, budget=10).flows("q2", "cell").check(epsilon=1).expected)]


def _finest() -> list[str]:
    query = SESSION.count("cell")
    ready, table = query.prepare(epsilon=1), query.release(epsilon=1)
    return [str(sums_of(table, SESSION.count([]), ready.mechanism, bounded=True, level=0.95).guarantee)]


def _between() -> list[str]:
    return [str(changes_between(*(SESSION.count("cell").release(epsilon=1) for _ in range(2))))]


def _moments(epsilon: float = 8) -> list[str]:
    design = kinds.SimulatedDesign.of(np.random.default_rng(0))
    data = {"y": np.zeros(len(design.x)), "x": design.x, "g": design.g}
    check = release_mixed.check(kinds.FORMULA, data, epsilon=epsilon, public=["x", "g"], bounds=kinds.BOUNDS)
    return [str(check.expected), LIMITS["model"]]


def _unmeasured() -> list[str]:
    return _moments(0.5)[:1]


def _lags() -> list[str]:
    data = fit_kinds.panel("normal", np.random.default_rng(0))
    check = release_mixed.check(fit_kinds.LAGGED, data, epsilon=20, **fit_kinds.ASKED)
    return [
        str(check.expected),
        release_mixed(fit_kinds.LAGGED, data, epsilon=20, seed=1, **fit_kinds.ASKED).summary(),
    ]


def _bayesian() -> list[str]:
    data = {"y": RNG.normal(size=60), "x": RNG.normal(size=60), "g": np.arange(60) % 6}
    return [mixed(kinds.FORMULA, data, prior=Prior()).summary()]


def _alarms() -> list[str]:
    panel, forecasts, _ = chance_kinds.panels("white noise", np.random.default_rng(1))
    return [exception_report(panel, forecasts).summary()]


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (_counts, [caveats.CONFIDENTIAL]),
        (_sums, [caveats.CONFIDENTIAL]),
        (_means, [caveats.TWO]),
        (_flows, [caveats.CONFIDENTIAL, caveats.TWO]),
        (_finest, [caveats.CHEBYSHEV]),
        (_between, [caveats.TWO]),
        (_summaries, [caveats.A_LINE, caveats.A_TENTH, caveats.SKEWED, caveats.APART, caveats.NO_FAR]),
        (_answers, [caveats.APART]),
        (lambda: _answers()[::2], [caveats.NO_FAR]),
        (_perturbed, [caveats.DOUBT]),
        (lambda: _perturbed()[:1], [caveats.ONE_VARIANCE, caveats.APART, caveats.FLATTER]),
        (_moments, [caveats.DOUBT]),
        (_unmeasured, [caveats.NOT_MEASURED]),
        (lambda: _moments()[:1], [caveats.NOT_SEEN, caveats.ONE_SLOPE, caveats.NO_MEANS]),
        (_lags, list(fit_kinds.SAID.values())),
        (lambda: [_lags()[1].split("Variances:")[0]], list(fit_kinds.SAID.values())),  # before the estimates
        (lambda: [LIMITS["lags"].lower()], [caveats.ONE_MEAN, caveats.AS_CLIPPED]),
        (
            _bayesian,
            [caveats.NORMAL, caveats.A_LINE, caveats.ONE_VARIANCE, caveats.ABOVE_ZERO, caveats.PRIOR, caveats.LEANS],
        ),
        (_bayesian, [caveats.ONE_SLOPE]),
        (_alarms, [caveats.WHOLE]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_reasons_of_the_study_are_printed(printed: Callable[[], list[str]], words: list[str]) -> None:
    for text in printed():
        missing = [word for word in words if word not in " ".join(text.split())]
        assert not missing, text
