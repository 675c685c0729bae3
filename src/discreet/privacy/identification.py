"""How sure an informed attacker can become at most, by the guarantee alone.

The attacker knows everything but one thing (`privacy.requirements`). A release moves the log odds of two possibilities
by at most epsilon for each neighbouring step between them, whatever the attacker computes. The same bound covers
everything computed from the release, such as a synthetic file. A delta is a probability with which this may fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from discreet.privacy.losses import Loss
from discreet.privacy.requirements import Attacker, requirements
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Groups, Rows, Unit, Workers

ALPHA = Fraction(1, 10)
"""The share to which sizes are to be hidden, where the unit says none."""

MOST = 700.0
"""Log odds beyond which a probability is 1 in double precision."""

MOST_DIGITS = 11
"""Digits of a percentage; what is nearer to certainty is told as certainty."""


@dataclass(frozen=True, slots=True)
class BeliefBound:
    """What the guarantee implies for one kind of knowledge.

    Attributes
    ----------
    about : "individuals", "employer size", "employer shape" or "one row".
    attacker : who asks; see `privacy.requirements.Attacker`.
    pair : the two possibilities that can be distinguished best, in words.
    log_factor : the most that log odds can move; infinite where nothing is promised.
    delta : the probability with which this may fail.
    """

    about: str
    attacker: Attacker
    pair: str
    log_factor: float
    delta: float = 0.0

    def at_most(self, prior: float) -> float:
        """How sure somebody can become, given how sure they were before."""
        return posterior(prior, self.log_factor)

    def to_dict(self) -> dict[str, object]:
        """For machines; an unbounded factor is null."""
        known = math.isfinite(self.log_factor)
        return {
            "about": self.about,
            "attacker": self.attacker,
            "pair": self.pair,
            "log_factor": self.log_factor if known else None,
            "delta": self.delta,
        }


def belief_bounds(unit: Unit, loss: Loss) -> tuple[BeliefBound, ...]:
    """The most that everything that cost `loss` together can reveal; empty for losses without an epsilon."""
    if "epsilon" not in loss.amounts:
        return ()
    epsilon, delta = float(loss.amounts["epsilon"]), float(loss.amounts.get("delta", 0))
    if isinstance(unit, Rows | AnyRow):
        return (BeliefBound("one row", "informed", "two responses of one row", epsilon, delta),)
    if isinstance(unit, Groups):
        whose = " and ".join(unit.by)
        return (BeliefBound(f"one {whose}", "informed", "two sets of responses of its rows", epsilon, delta),)
    match unit:
        case Establishments():
            share = unit.alpha
        case Workers() | EstablishmentNodes():
            share = ALPHA
        case _:
            assert_never(unit)
    return tuple(
        BeliefBound(
            found.requirement, found.attacker, found.pair, found.steps * epsilon, _failing(loss, found.steps, delta)
        )
        for found in requirements(unit, alpha=share)
    )


def _failing(loss: Loss, steps: float, delta: float) -> float:
    """The probability with which a bound over so many steps may fail: it grows with each of them."""
    if not delta:
        return 0.0
    return float(loss.at_distance(math.ceil(steps)).amounts["delta"]) if math.isfinite(steps) else 1.0


def posterior(prior: float, log_factor: float) -> float:
    """The largest probability of something after log odds moved this far."""
    if not math.isfinite(log_factor):
        return 1.0
    odds = prior / (1 - prior) * math.exp(min(log_factor, MOST))
    return odds / (1 + odds)


def sure(log_odds: float) -> str:
    """How sure an undecided person becomes, in per cent, rounded up, with two digits of the remaining doubt."""
    share = 1 - posterior(0.5, log_odds) if log_odds > MOST else 1 / (1 + math.exp(log_odds))
    digits = max(1, -math.floor(math.log10(100 * share))) if share else MOST_DIGITS + 1
    if digits > MOST_DIGITS:
        return "100"
    return f"{100 - math.floor(100 * share * 10**digits * (1 + 1e-9)) / 10**digits:.{digits}f}"
