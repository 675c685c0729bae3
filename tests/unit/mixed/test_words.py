"""Refusals of models name what was asked, what is possible and the next step, each in its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.models.bayes.blmm.prior import prior_of_text
from discreet.words.errors import DiscreetError
from faults_of import about

rng = np.random.default_rng(9)
g, x = np.arange(300) % 10, rng.normal(size=300)
y = np.clip(0.5 + 0.1 * rng.normal(size=10)[g] + 0.1 * rng.normal(size=300), 0, 1)
DATA = {"y": y, "x": x, "g": [f"c{i}" for i in g], "one": np.ones(300)}


def fit(formula: str = "y ~ x + (1 | g)", **asked: Any) -> Any:
    return dc.mixed(formula, DATA, **asked)


def release(formula: str = "y ~ x + (1 | g)", **asked: Any) -> Any:
    return dc.release_mixed(formula, DATA, **{"epsilon": 1, "public": ["x", "g"], "bounds": (0, 1), **asked})


REFUSED: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "root of negative": (lambda: fit("y ~ sqrt(x) + (1 | g)"), "data", ("sqrt(x)", "root", "logarithm")),
    "root of negative, grouped": (
        lambda: dc.mixed("y ~ sqrt(x) + (1 | g)", pl.DataFrame(DATA).lazy()),
        "data",
        ("sqrt(x)", "root"),
    ),
    "logarithm within": (lambda: fit("y ~ I(log(x) + 1) + (1 | g)"), "data", ("I(log(x) + 1)", "logarithm")),
    "logarithm": (lambda: fit("y ~ log(x) + (1 | g)"), "formula", ("log(x)",)),
    "natural spline of one value": (lambda: fit("y ~ ns(one, 3) + (1 | g)"), "formula", ("'one'", "one value")),
    "polynomial of one value": (lambda: fit("y ~ poly(one, 2) + (1 | g)"), "formula", ("'one'", "one value")),
    "scale of one value": (lambda: fit("y ~ scale(one) + (1 | g)"), "formula", ("'one'", "one value")),
    "family": (lambda: fit(family="tweedie"), "family", ("tweedie", "gaussian")),
    "weights of words": (lambda: fit(weights="g"), "weights", ("'g'",)),
    "method": (lambda: fit(method="nope"), "method", ("nope", "REML", "ML")),
    "method of a release": (lambda: release(method="nope"), "method", ("nope", "strict")),
    "nobody to protect": (lambda: release(protect=["zz"]), "public", ("'zz'", "protect")),
    "endless bounds": (lambda: release(bounds=(0, float("inf"))), "bounds", ("inf", "finite")),
    "prior": (lambda: prior_of_text("blah"), "prior", ("'blah'",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_has_three_parts_and_its_facts(case: str) -> None:
    ask, subject, facts = REFUSED[case]
    with pytest.raises(DiscreetError, check=about(subject, naming=facts)) as refused:
        ask()
    (fault,) = refused.value.faults
    assert fault.asked and fault.possible and fault.remedy
    assert case != "nobody to protect" or "is in the formula" not in str(refused.value)
    assert case != "endless bounds" or "loss" not in str(refused.value)
