"""The least noise that keeps a promise: one entry point for all mechanisms, and the checks that they share.

`calibrate` turns (mechanism, unit, loss) into constants before any data are read. "paper" gives the constants of the
Tables paper, which reproduce its figures; "tight" the smallest ones that the definition allows. The file of each
mechanism has the method, and the inequality that says when there is none; derivations are in docs/proofs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

import numpy as np

from discreet.privacy.guarantee import Basis, Calibration
from discreet.privacy.losses import Number, Pure, exact, half, loss, shown
from discreet.privacy.units import (
    BY_ESTABLISHMENTS,
    AnyRow,
    EstablishmentNodes,
    Establishments,
    Groups,
    Rows,
    Unit,
    Workers,
)
from discreet.tables.mechanisms import outside
from discreet.tables.mechanisms.mechanism import MARGIN, Mechanism, Request
from discreet.tables.mechanisms.nearest import LEAST_ALPHA, LEAST_DELTA, MOST_EPSILON, remedies
from discreet.tables.mechanisms.registry import OURS, named
from discreet.words.errors import Infeasible, PrivacyError
from discreet.words.faults import GIVE, WHOLE, Argument, Key, Phrase, Sentence, With
from discreet.words.voices import Symbol

MOST_WORKERS = 1e9
MOST_NOISE = 2**50
"""A mechanism's expected noise for an establishment of `MOST_WORKERS`, at most: sums of counts fit in 64 bits."""

MOST_AMOUNT = 2**53
"""Amounts of all establishments together are below this."""

HIDE_LESS = "Raise epsilon, or hide less."


def calibrate(
    name: str | type[Mechanism],
    *,
    unit: Establishments,
    epsilon: Number,
    delta: Number | None = None,
    calibration: Calibration = "tight",
    cells: int = 1,
    theta: int = 1000,
) -> Mechanism:
    """The mechanism `name` with constants that give `epsilon` (and `delta`) for one cell.

    Parameters
    ----------
    name : the mechanism's name, such as "log-laplace", "smooth-gamma" or "smooth-laplace", or its class.
    unit : the definition to satisfy.
    epsilon, delta : the loss of one cell; of the whole vector for a joint one. Only "smooth-laplace" uses delta.
    calibration : "tight" for the least noise the definition allows, "paper" for the document's own constants.
    cells : how many counts of the same establishments a joint mechanism covers.
    theta : the largest establishment that "node-truncation" keeps.

    Returns
    -------
    The mechanism, which `verify` checks.

    Examples
    --------
    >>> calibrate("log-laplace", unit=Establishments("0.1"), epsilon=2).name
    'log-laplace'
    """
    return part(
        name, unit=unit, epsilon=epsilon, delta=delta, calibration=calibration, cells=cells, theta=theta, within=1
    )


def part(
    name: str | type[Mechanism],
    *,
    unit: Establishments,
    epsilon: Number,
    delta: Number | None,
    calibration: Calibration,
    cells: int,
    theta: int = 1000,
    within: Fraction | int,
    counts: int = 1,
) -> Mechanism:
    """`calibrate` for a part of a table's epsilon, so that a refusal speaks of the whole.

    A share `within` pays for counts, of which `counts` are paid for one by one.
    """
    if not isinstance(calibration, str) or calibration not in ("tight", "paper"):
        raise PrivacyError(
            (Argument("calibration", calibration), " is unknown."),
            "It is 'tight' or 'paper'.",
            "Leave it out for tight.",
            about="calibration",
        )
    amount = above_zero(epsilon)
    if amount > MOST_EPSILON:
        raise PrivacyError(
            (Argument("epsilon", epsilon), " promises nothing."),
            f"At most {MOST_EPSILON:,} is taken.",
            "Use for example 1.",
            about="epsilon",
        )
    if not isinstance(unit, Establishments):
        raise PrivacyError(
            (Argument("unit", unit), " has no establishments."),
            "Mechanisms are calibrated for a definition that protects them.",
            "Use for example Establishments(alpha=0.1).",
            about="unit",
        )
    refuse_extremes(unit, amount)
    kind = name if isinstance(name, type) else named(name)
    cells = cells if isinstance(cells, int) else 0
    if cells != 1 and not kind.vector:
        raise PrivacyError(
            (f"{kind.name} with ", Argument("cells", cells), ": its noise is for one count."),
            "Only joint-polynomial, joint-rings, weak-joint and weak-unions cover several counts of one establishment.",
            "Use one of those, or leave cells out and pay for each count.",
            about="cells",
        )
    if cells < 1:
        raise PrivacyError(
            (Argument("cells", cells), " leaves nothing to count."),
            "It is a number of counts.",
            "Use 1 or more.",
            about="cells",
        )
    if kind.searched is not None and amount > kind.searched[1]:
        raise PrivacyError(
            (f"{kind.name} with ", Argument("epsilon", Symbol(shown(amount))), " for a count hides nothing."),
            f"Its constants are searched up to {kind.searched[1]:g}.",
            "Lower epsilon, or use polynomial.",
            about="epsilon",
        )
    if kind.searched is not None and amount < kind.searched[0]:
        raise PrivacyError(
            (
                f"{kind.name} with ",
                Argument("epsilon", Symbol(shown(amount))),
                " for a count needs more digits than a number has.",
            ),
            f"Its constants are searched from {kind.searched[0]:.2g} on.",
            "Raise epsilon, or count fewer kinds.",
            about="epsilon",
        )
    if kind.needs_delta:
        chance = exact(delta, name="delta") if delta is not None else exact(0)
        if not 0 < chance < 1:
            raise PrivacyError(
                (
                    f"{kind.name} ",
                    With(Argument("delta", delta)),
                    ": it promises (epsilon, delta) and needs 0 < delta < 1.",
                ),
                remedy=(GIVE, " ", Argument("delta", Symbol("1e-6")), ", say, or use polynomial, which needs none."),
                about="delta",
            )
        if chance < LEAST_DELTA or 1 - chance < MARGIN:
            raise PrivacyError(
                (
                    f"{kind.name} with ",
                    Argument("delta", Symbol(shown(chance))),
                    " for a count: so close to 0 or 1 it cannot be computed.",
                ),
                f"Between {float(LEAST_DELTA):g} and 1 - 1e-9 it can.",
                (GIVE, " ", Argument("delta", Symbol("1e-6")), ", say, or use polynomial, which needs none."),
                about="delta",
            )
        asked = loss(epsilon=amount, delta=chance)
    elif delta is not None and exact(delta, name="delta"):
        raise PrivacyError(
            (f"{kind.name} with ", Argument("delta", delta), ": it promises pure epsilon."),
            remedy="Leave delta out, or use smooth-laplace.",
            about="delta",
        )
    else:
        asked = Pure(amount)
    ask = Request(unit, asked, calibration, cells, theta, within=Fraction(within), counts=counts)
    if unit.substitution and kind.halves:
        halved = replace(ask, loss=half(asked), within=Fraction(within) / 2)
        return as_asked(kind.calibrate(halved).promising(asked), ask)
    return as_asked(kind.calibrate(ask), ask)


def as_asked(mechanism: Mechanism, ask: Request) -> Mechanism:
    """The mechanism, which is refused if its promise is of something else: it would be sold as what was asked for."""
    if (mechanism.unit, mechanism.loss, mechanism.law.dimension) != (ask.unit, ask.loss, ask.cells):
        raise PrivacyError(
            f"{mechanism.name} has noise for {mechanism.law.dimension} counts, {mechanism.loss} and "
            f"{mechanism.unit.key}; {ask.cells} counts, {ask.loss} and {ask.unit.key} were asked for.",
            "A promise is of what was asked.",
            "Leave mechanism out, or correct that package.",
            about="mechanism",
        )
    return mechanism


def basis_of(mechanism: Mechanism) -> Basis:
    """On what ground a mechanism keeps its promise; one from outside that the verifier refutes is refused."""
    return mechanism.basis if type(mechanism) in OURS else outside.basis_of(mechanism)


def above_zero(epsilon: Number) -> Fraction:
    """An epsilon above zero."""
    amount = exact(epsilon, name="epsilon")
    if amount <= 0:
        raise PrivacyError(
            (Argument("epsilon", epsilon), " buys nothing."),
            "It must be above 0.",
            ("Use for example ", Argument("epsilon", 1), "."),
            about="epsilon",
        )
    return amount


def baseline(
    unit: Workers | EstablishmentNodes,
    kind: type[Mechanism],
    only: type[Mechanism],
    *,
    epsilon: Number,
    delta: Number | None,
    calibration: Calibration,
) -> Mechanism:
    """Under other units the table's vector moves by at most 1, or theta, in L1, so all levels cost one epsilon."""
    if kind is not only:
        raise PrivacyError(
            f"{kind.name} does not protect {unit.key}.",
            ("This ", WHOLE, f"'s unit has one mechanism: {only.name}."),
            ("Leave ", Key("mechanism"), " out, or ", BY_ESTABLISHMENTS, "."),
            about="mechanism",
        )
    theta = moved(unit)
    return calibrate(kind, unit=Establishments(1), epsilon=epsilon, delta=delta, calibration=calibration, theta=theta)


def moved(unit: Unit) -> int:
    """The numbers of jobs by which one change moves a table, where noise does not follow sizes."""
    match unit:
        case EstablishmentNodes():
            return unit.theta
        case Workers() | Establishments() | Rows() | Groups() | AnyRow():
            return 1
        case _:
            assert_never(unit)


def refuse_extremes(unit: Unit, epsilon: Fraction) -> None:
    """Refuse amounts that double precision could not calibrate with."""
    sensitivity = moved(unit)
    if sensitivity > MOST_NOISE * epsilon:
        raise _too_wide(
            Argument("epsilon", Symbol(shown(epsilon))),
            f" for counts that one change moves by {shown(Fraction(sensitivity))}",
        )
    if isinstance(unit, Establishments) and not LEAST_ALPHA <= unit.alpha <= 1 / LEAST_ALPHA:
        raise Infeasible(
            (Argument("alpha", Symbol(shown(unit.alpha))), " is out of reach."),
            f"Noise is computed for {float(LEAST_ALPHA):g} to {float(1 / LEAST_ALPHA):g}.",
            ("Use for example ", Argument("alpha", 0.1), ", or unit=Workers() to protect single jobs only."),
            about="alpha",
        )


def refuse_overflow(
    mechanism: Mechanism, *, unit: Unit | None = None, kinds: int = 1, within: Fraction | int = 1
) -> None:
    """Refuse noise that 64-bit integers could not hold, before anything is spent.

    Of a table of so many `kinds` that promises `unit`, for whose counts a share `within` pays, what is near is named.
    """
    size, most = (MOST_WORKERS, MOST_NOISE) if mechanism.step == 1 else (float(MOST_AMOUNT), MOST_NOISE * 2**8)
    if not mechanism.expected_error(np.array([size]), np.array([size]))[0] <= most:
        remedy: Sentence = HIDE_LESS
        if isinstance(unit, Establishments) and mechanism.step == 1:
            kind = type(mechanism)
            cells, counts = (kinds, 1) if kind.vector else (1, kinds)
            ask = Request(unit, mechanism.loss, mechanism.calibration, cells, 1000, Fraction(within), counts)
            halved = replace(ask, loss=half(ask.loss), within=ask.within / 2)
            remedy = remedies(halved if unit.substitution and kind.halves else ask, kind)
        raise _too_wide(f"{mechanism.name} with {mechanism.loss}", remedy=remedy)


def _too_wide(*asked: str | Phrase, remedy: Sentence = HIDE_LESS) -> Infeasible:
    return Infeasible(
        (*asked, " needs noise that 64-bit counts do not hold with room to spare."),
        f"At most {float(MOST_NOISE):.2g} jobs are added to the count of an establishment of "
        f"{MOST_WORKERS:,.0f} workers.",
        remedy,
        about="epsilon",
    )
