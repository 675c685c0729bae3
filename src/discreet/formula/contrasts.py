"""Contrasts: how the levels of a factor become columns beside an intercept, as R's `contr.treatment` and others.

A model is computed with treatment contrasts whatever was asked: every coding spans the same columns where the model has
the margins of its products, and `lmm.origin` gives the coefficients of the coding that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix
from discreet.errors import DataError

Contrast: TypeAlias = Literal["", "treatment", "sum", "helmert"]
Contrasts: TypeAlias = str | Mapping[str, str]
CONTRASTS = ("treatment", "sum", "helmert")


def coding(contrast: Contrast, levels: int) -> Matrix:
    """What each level (row) has in each column, shape (levels, levels - 1)."""
    every = np.arange(levels)
    if contrast == "sum":
        return np.vstack([np.eye(levels - 1), np.full((1, levels - 1), -1.0)])
    if contrast == "helmert":
        row, column = every[:, None], every[None, :-1]
        return np.where(row == column + 1, row, np.where(row <= column, -1.0, 0.0))
    return np.eye(levels)[:, 1:]


def recodes(contrast: Contrast) -> bool:
    """Whether a coding is another one than treatment contrasts, whose columns are indicators of levels."""
    return contrast in ("sum", "helmert")


def asked_of(contrasts: Any, categorical: list[str]) -> dict[str, str]:
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
                f"contrasts names {column!r}, which is no factor of the fixed terms.",
                f"Factors are {', '.join(categorical) or 'none'}; numbers become one by C(...).",
                "Name one of them.",
                about="contrasts",
            )
    return dict(contrasts)
