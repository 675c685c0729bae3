"""X without noise comes from public columns alone: who makes such a design, who takes it, and what cannot make one."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.regression import KnownDesign, public_facts
from discreet.models.linear.private import release_mixed
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Rows
from discreet.release.account import Account
from discreet.words.errors import DiscreetError, PrivacyError
from source_files import source_files

UNIT = Rows(0, 2, "y")
DATA = {"x": np.linspace(-1, 1, 40), "z": np.arange(40) % 3, "y": np.append(np.ones(39), np.nan)}
EXACT = {"models/bayes/curvature.py::known_gram", "models/bayes/doubts.py::of", "models/bayes/erm.py::longest_row"}
"""The functions that compute with X without noise; each takes the type that is public."""


@cache
def functions() -> list[tuple[str, ast.FunctionDef, list[ast.AST]]]:
    """Every function, by its file and name, with what is in it; one inside another is also a part of that one."""
    trees = {place: ast.parse(path.read_text(encoding="utf-8")) for place, path in source_files()}
    found = ((f"{name}::{node.name}", node) for name, tree in trees.items() for node in ast.walk(tree)
             if isinstance(node, ast.FunctionDef))  # fmt: skip
    return [(place, node, list(ast.walk(node))) for place, node in found]


def calling(name: str) -> set[str]:
    """The functions that call something of this name, whatever it is called on."""
    calls = ((place, each.func) for place, _, inside in functions() for each in inside if isinstance(each, ast.Call))
    return {place for place, called in calls if name in (getattr(called, "id", ""), getattr(called, "attr", ""))}


def test_one_function_makes_a_design_that_needs_no_noise() -> None:
    assert calling("KnownDesign") == {"models/bayes/regression.py::public_design"}
    assert calling("PublicDesign") == {"models/linear/private/public.py::public_design"}
    (made,) = (node for place, node, _ in functions() if place == "models/linear/private/public.py::public_design")
    before, _, after = ast.unparse(made).partition("shown = hidden(frame, model)")
    assert "collect_schema" in before and "frame" not in after, "what has the response is not looked at again"


def test_what_computes_with_a_design_exactly_takes_that_type() -> None:
    """A design has no other way out than `.X`, and X'X without noise none but `known_gram`."""
    for place, node, inside in functions():
        takes = {each.arg for each in [*node.args.args, *node.args.kwonlyargs]
                 if each.annotation and ast.unparse(each.annotation) == "KnownDesign"}  # fmt: skip
        assert (place in EXACT) == bool(takes), place
        if place in EXACT:
            reads = {each.value.id for each in inside if isinstance(each, ast.Attribute) and each.attr == "X"}
            assert reads == takes, place
    assert calling("whole_gram") == {"models/bayes/curvature.py::known_gram", "models/bayes/curvature.py::noisy_gram"}


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ 1", "y ~ x + C(z)"])
def test_a_design_is_made_from_public_columns_and_from_nothing_else(formula: str) -> None:
    public = [name for name in ("x", "z") if name in formula]
    facts = public_facts(formula, DATA, public=public, account=opened())
    design = facts.public_design(UNIT)
    assert design is not None and (np.abs(design.X).sum(axis=1) > 0).all(), "a missing response takes no row away"
    confidential = facts.read(facts.frame)
    assert not confidential.usable[-1] and not confidential.X[-1].any()
    for make in (lambda: KnownDesign(confidential.X), lambda: replace(design, X=confidential.X)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            make()


@pytest.mark.parametrize("value", [None, np.nan, np.inf, -np.inf, 1e100, -1e308])
def test_a_row_whose_response_is_no_usable_number_counts_as_zeros(value: float | None) -> None:
    """Confidential, and so in no design; beside 1e100 a number is still one."""
    facts = public_facts("y ~ x", {**DATA, "y": [1.0] * 39 + [value]})
    found = facts.read(facts.frame)
    assert found.usable.tolist() == [True] * 39 + [False] and not found.X[-1].any() and found.y[-1] == 0
    large = public_facts("y ~ x", {**DATA, "y": [1.0] * 39 + [9.9e99]})
    assert large.read(large.frame).usable.all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e100])
def test_a_row_whose_public_number_is_none_is_zeros_in_the_design_too(value: float) -> None:
    """It bends nothing, bounds nothing and leaves standard errors what they are."""
    data = {**DATA, "x": np.append(value, DATA["x"][1:])}
    facts = public_facts("y ~ x", data, public=["x"], account=opened())
    design = facts.public_design(UNIT)
    assert design is not None and not design.X[0].any() and (np.abs(design.X[1:]).sum(axis=1) > 0).all()
    found = objective_perturbation("y ~ x", data, bounds=(0, 2), penalty=1, epsilon=2, public=["x"], account=opened())
    assert np.isfinite(found.value.std_error).all()


@pytest.mark.parametrize(
    ("formula", "public", "unit"),
    [("y ~ x", [], UNIT), ("y ~ x", ["x"], AnyRow()), ("y ~ x + y", ["x"], UNIT), ("y ~ x", ["x"], Rows(0, 2, "x"))],
    ids=["a hidden column", "whole rows", "the response on the right", "another response"],
)
def test_other_columns_make_no_design(formula: str, public: list[str], unit: Any) -> None:
    facts = public_facts(formula, DATA, public=public)
    assert formula != "y ~ x + y" or facts.public_design(unit) is None
    with pytest.raises(PrivacyError) as refused:
        KnownDesign(facts, unit)
    assert refused.value.about == "public"


@pytest.mark.parametrize(
    "more",
    [
        {"exposure": "y", "family": "poisson"},
        {"protect": ["y"]},
        {"lagged": ["y"]},
        {"formula": "y ~ lag(y, 1)", "series": ["y"], "time": "t"},
        {"formula": "y ~ lag(y, 1)", "series": ["g"], "time": "y"},
        {"formula": "y ~ log_size(y)"},
        {"formula": "y ~ 1 + (1 | y)"},
        {"formula": "y ~ I(y * x)"},
        {"formula": "y ~ 1 + (1 + y | g)"},
        {"formula": "log(y) ~ x"},
    ],
    ids=lambda more: " ".join(map(str, more.values())),
)
@pytest.mark.parametrize("public", [["x", "g", "t"], ["x", "g", "t", "y"]], ids=["declared", "the response too"])
def test_no_other_part_of_a_model_reads_the_response(more: dict[str, Any], public: list[str]) -> None:
    number = np.arange(40)
    data = {**DATA, "g": [f"g{i}" for i in number % 4], "t": number // 4, "y": 1.0 + number % 2}
    with pytest.raises(DiscreetError):
        release_mixed(**{"formula": "y ~ x", "epsilon": 1, "bounds": (0, 2), "public": public, **more}, data=data)


def opened() -> Account:
    return Account.open(None, dataset="rows", unit=UNIT, budget=Pure(2))
