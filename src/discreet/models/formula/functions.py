"""Functions of one column in a term: what `center`, `scale`, `log`, `poly`, `bs` and `ns` make of its values.

A function learns on the rows that are fitted, and is applied to new ones as it was learned.
"""

from __future__ import annotations

from typing import Any, Literal, assert_never

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.basis import NaturalSplines, Polynomials, Splines
from discreet.models.formula.formula import ONE_COLUMN, Factor, Function
from discreet.words.cases import case_of
from discreet.words.errors import DataError

REACH = 150  # powers of ten whose squares are doubles, times rows


def learn(factor: Factor, x: Vector) -> dict[str, Any]:
    """What a function must know of its column before it can be applied to any."""
    match factor.function:
        case "center":
            return {"centre": x.mean(), "scale": 1.0}
        case "scale":
            refuse_reach(factor, float(x.min()), float(x.max()))
            return {"centre": x.mean(), "scale": x.std(ddof=1)}
        case "" | "C" | "log" | "poly" | "bs" | "ns" | "log_size" | "size_class" | "lag":
            return {}
        case _:
            assert_never(factor.function)


def apply(factor: Factor, x: Vector, state: dict[str, Any]) -> Matrix:
    """The factor's columns; polynomial and spline bases learn into an empty `state` on first use."""
    match factor.function:
        case "" | "C" | "log_size" | "size_class" | "lag":
            return x[:, None]
        case "log":
            return np.log(x)[:, None]
        case "center" | "scale":
            scaled: Vector = (x - state["centre"]) / state["scale"]
            return scaled[:, None]
        case "poly" | "bs" | "ns":
            return _basis(factor, factor.function, x, state)
        case _:
            assert_never(factor.function)


def _basis(factor: Factor, function: Literal["poly", "bs", "ns"], x: Vector, state: dict[str, Any]) -> Matrix:
    arguments = {name or "degree": int(value) for name, value in factor.arguments}
    if "basis" not in state:
        refuse_reach(factor, float(x.min()), float(x.max()))
    try:
        with np.errstate(all="ignore"):
            if "basis" not in state:
                match function:
                    case "poly":
                        state["basis"] = Polynomials.learn(x, arguments.get("degree", 1))
                    case "bs":
                        state["basis"] = Splines.learn(x, arguments.get("degree", 3), arguments.get("df"))
                    case "ns":
                        state["basis"] = NaturalSplines.learn(x, arguments.get("df", 1))
                    case _:
                        assert_never(function)
            found: Matrix = state["basis"].at(x)
    except ValueError:
        raise _impossible(factor, x) from None
    if not np.isfinite(found).all():
        raise DataError(
            f"{factor} cannot be computed: powers of {factor.column!r} are too small or too large for a double.",
            "A curve needs squares of as many powers as its degree.",
            "Use a smaller degree, or give the column in a unit in which its values are near 1.",
            about="formula",
        )
    return found


def refuse_reach(factor: Factor, least: float, most: float) -> None:
    """Refuse a scale or a curve of a column whose values are all one, or differ by what doubles cannot square."""
    if least == most:
        raise constant(factor)
    powers: dict[Function, float | None] = dict.fromkeys((*ONE_COLUMN, "ns"), 1.0)
    powers |= {"bs": None, "poly": factor.arguments[0][1] if factor.arguments else 1.0}
    degree = case_of(factor.function, powers)
    if degree is None:  # splines are of ratios of differences alone
        return
    reach = REACH // max(int(degree), 1)
    apart = most / 2 - least / 2
    if apart > 0 and abs(np.log10(apart)) <= reach:
        return
    little = apart < 1
    raise DataError(
        f"{factor} needs squares of {factor.column!r}, whose values differ by too {'little' if little else 'much'} for "
        "a double.",
        f"They may differ by {reach} powers of ten less or more than 1{' with this degree' * (degree > 1)}.",
        f"Give the column in a {'smaller' if little else 'larger'} unit, in which its values are near 1.",
        about="formula",
    )


def constant(factor: Factor) -> DataError:
    """The error for a function of a column that does not vary."""
    return DataError(
        f"{factor} was asked of {factor.column!r}, which has one value in every row.",
        "A curve or a scale needs a column that varies.",
        "Drop the term, or use another column.",
        about="formula",
    )


def _impossible(factor: Factor, x: Vector) -> DataError:
    if len(x) and x.min() == x.max():
        return constant(factor)
    return DataError(
        f"{factor} cannot be built: its size is impossible or values lie outside the range it was fitted on.",
        "A curve has fewer parts than its column has values.",
        "Use a smaller degree or df, and predict inside the old range.",
        about="formula",
    )
