"""A private fit as a table, as text and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.linear.summary import _aligned, estimates
from discreet.words.caveats import CaveatNote

if TYPE_CHECKING:
    from discreet.models.linear.private.result import PrivateEffects, PrivateFit


def tidy(fit: PrivateFit, *, levels: bool) -> Any:
    """One row per fixed effect and variance, and per level's effect if asked."""
    rows: list[tuple[Any, ...]] = [
        ("fixed", None, name, None, value, fit.se[name]) for name, value in fit.fixed.items()
    ]
    for term in fit.random:
        rows.append(("variance", term.group, term.name, None, term.variance, None))
        rows += [("covariance", term.group, f"{term.name}, {name}", None, v, None) for name, v in _covariances(term)]
    if fit.law.linear:
        rows.append(("variance", "Residual", None, None, fit.sigma2, None))
    else:
        rows.append(("parameter", None, "dispersion", None, fit.sigma2, None))
    for term in fit.random if levels else ():
        errors = [None] * len(term.levels) if term.std_errors is None else term.std_errors.tolist()
        found = zip(term.levels, term.values.tolist(), errors, strict=True)
        rows += [("random", term.group, term.name, level, value, error) for level, value, error in found]
    return estimates(rows, flags=[_words(fit, effect, group, term) for effect, group, term, *_ in rows])


def _covariances(term: PrivateEffects) -> list[tuple[str, float]]:
    return list(term.covariances.items())


def published(fit: PrivateFit) -> Any:
    """The table of a plan's files: effect, group, term, estimate, std_error, flag."""
    import pyarrow as pa

    table = tidy(fit, levels=True)
    rows = table.select(["effect", "group", "term", "level"]).to_pylist()
    own = ("fixed", "parameter")
    terms = [row["term"] if row["effect"] in own else row["level"] or row["effect"] for row in rows]
    slopes = {(term.group, term.name): term.component for term in fit.random}
    groups = [
        f"{row['group']}: {row['term']}"
        if row["effect"] == "covariance"
        else slopes.get((row["group"], row["term"]), row["group"])
        for row in rows
    ]
    kept = table.select(["effect", "group", "term", "estimate", "std_error", "flag"])
    kept = kept.set_column(1, "group", pa.array(groups, pa.string()))
    return kept.set_column(2, "term", pa.array(terms, pa.string()))


def _words(fit: PrivateFit, effect: str, group: str | None, term: str | None) -> str | None:
    """The flags of one estimate; only those of fixed effects name a term, and those of slopes their component."""
    names = {group} | {each.component for each in fit.random if (each.group, each.name) == (group, term)}
    found = [
        flag.word
        for flag in fit.flags
        if flag.effect == effect and flag.group in names and flag.term in (None, term if effect == "fixed" else None)
    ]
    return ", ".join(dict.fromkeys(found)) or None


def to_dict(fit: PrivateFit) -> dict[str, Any]:
    return {
        "formula": fit.formula,
        "method": fit.method,
        **({} if fit.law.linear else {"family": fit.family}),
        **({"exposure": fit.exposure} if fit.exposure else {}),
        "rows": fit.rows,
        "fixed": _numbers(fit.fixed),
        "se": _numbers(fit.se),
        "variances": _numbers(fit.variances),
        "random": {
            term.component: _numbers(dict(zip(term.levels, term.values.tolist(), strict=True))) for term in fit.random
        },
        "release": fit.name,
        "guarantee": fit.guarantee.to_dict(),
        "flags": [flag._asdict() for flag in fit.flags],
        "notes": list(fit.notes),
    }


def _numbers(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """JSON has no nan: an estimate that could not be solved is null."""
    return {name: None if value is None or np.isnan(value) else value for name, value in values.items()}


def summary(fit: PrivateFit) -> str:
    """Text in the order of lme4's summary, and the promise at the end."""
    kind = "mixed model" if fit.random else "linear model"
    law = "" if fit.law.linear else f", family {fit.family}"
    law += f" per {fit.exposure}" if fit.exposure else ""
    lines = [f"Private {kind} (method {fit.method}{law})", f"Formula: {fit.formula}"]
    lines += [f"Warning: {note}" for note in dict.fromkeys(flag.note for flag in fit.flags)]
    said = {flag.note for flag in fit.flags}
    lines += [f"Assumed: {note}" for note in fit.notes if isinstance(note, CaveatNote) and note not in said]
    lines += [] if fit.law.linear else [f"Dispersion: {fit.sigma2:.5g}"]
    lines += ["", "Variances:"]
    table = [["group", "variance", "std. dev."]]
    for group, value in fit.variances.items():
        deviation = "" if value is None or ", " in group else f"{np.sqrt(value):.5g}"
        table.append([group, "" if value is None else f"{value:.6g}", deviation])
    lines += _aligned(table, left=1)
    counts = {term.group: len(term.levels) for term in fit.random}
    groups = "".join(f"; {group} {count:,}" for group, count in counts.items())
    lines += [f"Observations: {fit.rows:,}{groups}", "", "Fixed effects:"]
    table = [["", "estimate", "std. error"]]
    se = fit.se
    for name, value in fit.fixed.items():
        error = se[name]
        table.append([name, f"{value:.6g}", "" if error is None else f"{error:.5g}"])
    lines += _aligned(table, left=1)
    lines += [f"Note: {note}" for note in fit.notes if not isinstance(note, CaveatNote) and note not in said]
    return "\n".join([*lines, "", f"Release {fit.name}: {fit.guarantee}"])
