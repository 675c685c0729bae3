"""Sums of a declared magnitude: a count whose workers add up to a cap each, in place of one.

An establishment's amount v may grow to max((1 + alpha) v, v + cap) between neighbours. In units of the cap that is the
growth of a workforce, so the laws and proofs of counts apply, unless they need whole workers
(docs/proofs/magnitudes.md).
"""

from __future__ import annotations

from dataclasses import replace

from discreet.data.magnitude import Magnitude
from discreet.data.schema import Schema
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.units import BY_ESTABLISHMENTS, Establishments, Unit
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.words.cases import case_of
from discreet.words.errors import DataError, PrivacyError

PROOF = "docs/proofs/magnitudes.md"
CLIPPED = "Amounts above the cap of a row's jobs were cut to it, so sums are of cut amounts"
WHOLE_UNITS = "Amounts are counted in whole units, rounded row by row"


def refuse_amounts(schema: Schema, name: object, unit: Unit) -> None:
    """Refuse a magnitude that was not declared, and units under which no sum is proved."""
    if not isinstance(name, str) or name not in schema.magnitudes:
        raise DataError(
            f"{name!r:.60} is not a declared magnitude.",
            f"There are: {', '.join(schema.magnitudes) or 'none'}.",
            "Declare it in the schema with its cap, the most that one worker adds: magnitudes = {'payroll': 250000}.",
            about="of",
        )
    if not isinstance(unit, Establishments):
        raise PrivacyError(
            f"Sums of {name} cannot be released under {unit.key}.",
            "They protect establishments and their workers.",
            ("To release them, ", BY_ESTABLISHMENTS, "."),
            about="unit",
        )


def of_amounts(mechanism: Mechanism, cap: int, *, weakly: bool) -> Mechanism:
    """The mechanism for sums of which one worker adds at most `cap`."""
    found = mechanism.of_amounts(cap)
    if weakly and mechanism.unit.strength == "weak":
        raise PrivacyError(
            "Sums by kinds of workers are not proved for the weak definition.",
            "The strong one has them.",
            "Leave worker attributes out, or use the strong definition.",
            about="by",
        )
    return found


def amounts_hidden(guarantee: Guarantee, name: str, magnitude: Magnitude) -> Guarantee:
    """The promise about sums: amounts are hidden up to a share or the cap, by a proof of their own."""
    notes = (WHOLE_UNITS, CLIPPED) if case_of(magnitude.beyond, {"clip": True, "refuse": False}) else (WHOLE_UNITS,)
    return replace(guarantee.noted(*notes), proof=PROOF, magnitude=(name, magnitude.cap))
