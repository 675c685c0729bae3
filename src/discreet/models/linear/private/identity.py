"""Separations from the identity JCR - JDR = AR - SR: three private models give a fourth for nothing more.

Estimates of SR = AR - JCR + JDR are sums of released numbers, so they cost what the three releases cost together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.models.linear.private.notes import Flag
from discreet.models.linear.private.result import PrivateFit
from discreet.privacy.composition import sequential
from discreet.privacy.guarantee import is_proved
from discreet.privacy.units import Groups, Rows, Unit
from discreet.words.errors import FitError

NOTE = "SR = AR - JCR + JDR of three releases; all three rates of what is protected may change"


def _lasting(fit: PrivateFit) -> list[Flag]:
    """Flags of estimates that the identity adds; variances do not follow from it."""
    return [flag for flag in fit.flags if flag.effect != "variance"]


def separation_rate(*, jcr: PrivateFit, jdr: PrivateFit, ar: PrivateFit) -> PrivateFit:
    """The private model of the separation rate; its variances and standard errors do not follow and are absent."""
    fits = (ar, jcr, jdr)
    shapes = {(fit.names, tuple((term.component, term.levels) for term in fit.random), fit.rows) for fit in fits}
    if len(shapes) > 1:
        raise FitError(
            "The three releases have different columns, groups or rows, so their estimates cannot be added.",
            "The identity needs one design.",
            "Release JCR, JDR and AR with the same formula on the same data.",
            about="releases",
        )
    random = tuple(
        replace(a, variance=None, values=a.values - b.values + c.values, std_errors=None, covariances={})
        for a, b, c in zip(*(fit.random for fit in fits), strict=True)
    )
    proved = all(is_proved(fit.guarantee.basis) for fit in fits)
    guarantee = replace(
        ar.guarantee,
        unit=_together([fit.guarantee.unit for fit in fits]),
        loss=sequential([fit.guarantee.loss for fit in fits]),
        basis="proved" if proved else "as published",
        notes=tuple(dict.fromkeys([NOTE, *(note for fit in fits for note in fit.guarantee.notes)])),
        private=all(fit.guarantee.private for fit in fits),
    )
    return replace(
        ar,
        formula=f"AR - JCR + JDR of {ar.formula!r}",
        beta=ar.beta - jcr.beta + jdr.beta,
        covariance=None,
        random=random,
        sigma2=None,
        guarantee=guarantee,
        name=" + ".join(fit.name for fit in fits),
        notes=tuple(dict.fromkeys(flag.note for fit in fits for flag in _lasting(fit))),
        flags=tuple(dict.fromkeys(flag for fit in fits for flag in _lasting(fit))),
        released=tuple(fit.released for fit in fits),
        centred=ar.centred - jcr.centred + jdr.centred,
    )


def _together(units: Sequence[Unit]) -> Rows | Groups:
    """One unit whose responses are those of all three."""
    found = [unit for unit in units if isinstance(unit, Rows | Groups)]
    by = {frozenset(unit.by) if isinstance(unit, Groups) else frozenset() for unit in found}
    if len(by) > 1:
        raise FitError(
            "The three releases protect different groups of rows, so nothing is promised of their sum.",
            "The identity needs one unit.",
            "Release JCR, JDR and AR under the same one.",
            about="releases",
        )
    lower, upper = min(unit.lower for unit in found), max(unit.upper for unit in found)
    names = list(dict.fromkeys(name for unit in found for name in unit.responses))
    first = found[0]
    return Groups(first.by, lower, upper, names) if isinstance(first, Groups) else Rows(lower, upper, names)
