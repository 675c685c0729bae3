"""Contrasts: how the levels of a factor become columns beside an intercept, as R's `contr.treatment` and others.

A model is always computed with treatment contrasts. Every coding spans the same columns if the model has the margins of
its products, and `models.linear.origin` gives the coefficients of the requested coding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

import numpy as np

from discreet.arrays import Matrix
from discreet.words.cases import case_of
from discreet.words.errors import DataError, FormulaError

if TYPE_CHECKING:
    from discreet.models.formula.formula import Formula

Contrast: TypeAlias = Literal["", "treatment", "sum", "helmert"]
Contrasts: TypeAlias = str | Mapping[str, str]
CONTRASTS = ("treatment", "sum", "helmert")


def coding(contrast: Contrast, levels: int) -> Matrix:
    """The value of each level (row) in each column, shape (levels, levels - 1)."""
    every = np.arange(levels)
    match contrast:
        case "sum":
            return np.vstack([np.eye(levels - 1), np.full((1, levels - 1), -1.0)])
        case "helmert":
            row, column = every[:, None], every[None, :-1]
            return np.where(row == column + 1, row, np.where(row <= column, -1.0, 0.0))
        case "" | "treatment":
            return np.eye(levels)[:, 1:]
        case _:
            assert_never(contrast)


def recodes(contrast: Contrast) -> bool:
    """Whether a coding differs from treatment contrasts, whose columns are indicators of levels."""
    return case_of(contrast, {"": False, "treatment": False, "sum": True, "helmert": True})


def asked_of(contrasts: Any, categorical: list[str]) -> dict[str, Contrast]:
    """The coding by column, from one for all factors or from a mapping."""
    if isinstance(contrasts, str):
        contrasts = dict.fromkeys(categorical, contrasts) or {"": contrasts}
    if not isinstance(contrasts, Mapping):
        raise DataError(
            f"contrasts={contrasts!r} is neither a coding nor a mapping.",
            f"Codings are {', '.join(CONTRASTS)}, for all factors or by column.",
            'Use "sum", or {"sex": "sum"}.',
            about="contrasts",
        )
    for column, contrast in contrasts.items():
        if contrast not in CONTRASTS:
            raise DataError(
                f"contrasts={contrast!r} is no coding.",
                f"There are {', '.join(CONTRASTS)}.",
                "Use one of them.",
                about="contrasts",
            )
        if column and column not in categorical:
            raise DataError(
                f"contrasts names {column!r}, which is not a factor of the fixed terms.",
                f"Factors are {', '.join(categorical) or 'none'}; numbers become one by C(...).",
                "Name one of them.",
                about="contrasts",
            )
    return dict(contrasts)


def with_contrasts(model: Formula, kinds: Collection[str], contrasts: Contrasts | None) -> Formula:
    """The formula with the codings of an option, which are of the fixed terms, as in lme4."""
    factors = [f for term in model.fixed for f in term if f.coded(kinds)]
    inside = [f for random in model.random for term in random.terms for f in term]
    if contrasts is None and (own := [f for f in (*factors, *inside) if f.contrast]):
        raise FormulaError(
            f"{own[0]} was asked of a private release or of fits to many blocks.",
            "They have treatment contrasts; fits of `dc.mixed` have others too.",
            f"Write {own[0].column}, and combine the coefficients afterwards.",
        )
    asked = asked_of(contrasts or {}, list(dict.fromkeys(f.column for f in factors)))
    coded = {f: replace(f, contrast=asked[f.column]) for f in factors if f.column in asked and not f.contrast}
    model = replace(model, fixed=tuple(tuple(coded.get(f, f) for f in term) for term in model.fixed))
    for terms in (model.fixed, *(random.terms for random in model.random)):
        found = {f.column: f for term in terms for f in term if f.contrast}
        for factor in (f for term in terms for f in term if f.column in found and f != found[f.column]):
            raise FormulaError(
                f"{found[factor.column]} and {factor} stand side by side.",
                "A column has one coding within the fixed terms, and one within each random term.",
                "Write it the same way everywhere.",
            )
    return model
