"""What several releases cost together.

Proofs and the counter-example are in docs/proofs/composition.md. The Tables paper claims parallel composition
over distinct workers of the same establishments for its strong definition. It is wrong. Hiring one man and one woman is
a single neighbouring step of an establishment with 2 / alpha workers or more, and it changes both a release about men
and one about women. The claim stays available as `calibration="paper"`; joint mechanisms get one epsilon for the whole
vector by a proof of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal, TypeAlias

from discreet.privacy.guarantee import Calibration, is_tight
from discreet.privacy.losses import Approximate, Loss, Pure, total
from discreet.privacy.units import Establishments, Unit, is_weak
from discreet.words.cases import case_of
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

Disjoint: TypeAlias = Literal["establishments", "workers"]


def sequential(losses: Sequence[Loss]) -> Loss:
    """Releases about the same data: losses add."""
    return total(losses)


def parallel(losses: Sequence[Loss], *, unit: Unit, over: Disjoint, calibration: Calibration = "tight") -> Loss:
    """Releases about disjoint parts of the data.

    Parts with distinct establishments cost the largest loss, for every unit. Parts with distinct workers of the
    same establishments cost the largest loss when single jobs are protected, and the sum when establishments are.
    """
    if over not in ("establishments", "workers"):
        raise PrivacyError(
            (Argument("over", over), " is unknown."),
            "Parts are disjoint in 'establishments' or in 'workers'.",
            "Name one.",
            about="over",
        )
    as_published = not is_tight(calibration) and isinstance(unit, Establishments) and not is_weak(unit.strength)
    shared = case_of(over, {"workers": True, "establishments": False}) and unit.key != "workers"
    nothing: Loss = Pure(0)
    return sequential(losses) if shared and not as_published else reduce(_larger, losses, nothing)


def same_unit(units: Sequence[Unit]) -> Unit:
    """The one unit that all releases of a budget must share; alphas do not mix."""
    keys = {unit.key for unit in units}
    if len(keys) != 1:
        raise PrivacyError(
            f"These releases protect different units: {', '.join(sorted(keys))}.",
            "One budget counts one unit.",
            "Open a budget for each, or release everything under the same alpha and strength.",
            about="unit",
        )
    return units[0]


def _larger(a: Loss, b: Loss) -> Loss:
    if a <= b:
        return b
    if b <= a:
        return a
    assert isinstance(a, Approximate) and isinstance(b, Approximate), (a, b)
    return Approximate(max(a.epsilon, b.epsilon), max(a.delta, b.delta))
