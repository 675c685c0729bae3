"""What verification found of a claim, and on what ground: a complete check, a search, or neither."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet.privacy.losses import Approximate, Loss
from discreet.words.cases import case_of

TOLERANCE = 1e-9  # claims are exact, and a supremum found on doubles carries rounding errors of about 1e-13

Evidence: TypeAlias = Literal["proved", "searched", "unknown"]
Draws: TypeAlias = Literal["as stated", "not as stated", "not compared"]
Outcome: TypeAlias = Literal["holds", "VIOLATED", "searched, nothing found", "unknown"]


@dataclass(frozen=True, slots=True)
class Witness:
    """The neighbours and the output at which the worst loss occurs (`output` may be infinite)."""

    before: int
    after: int
    other: int
    rest: int
    output: float

    def __str__(self) -> str:
        others = f" beside one of {self.other:,}" if self.other else " alone in its cell"
        rest = f" and {self.rest:,} further workers" if self.rest else ""
        return (
            f"an establishment growing from {self.before:,} to {self.after:,}{others}{rest}, output {self.output:.6g}"
        )


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """What verification found.

    Attributes
    ----------
    claimed : the loss that the mechanism promises.
    worst_loss : supremum of the log density ratio; with a delta, the least epsilon that the exact delta allows.
    worst_delta : the largest exact delta at the claimed epsilon; zero for a pure claim.
    worst_rounded_loss : the supremum for the published integer; None where that is not count plus noise.
    witness : where the worst loss, or the worst delta, occurs.
    neighbours : how many neighbouring pairs were examined.
    evidence : "proved" by a check that is complete for this kind of noise (`closed_forms`), "searched" over neighbours
        and outputs, or "unknown" where drawn integers could not be compared either.
    drawn : whether drawn integers have the stated probabilities.
    """

    claimed: Loss
    worst_loss: float
    worst_delta: float
    worst_rounded_loss: float | None
    witness: Witness
    neighbours: int
    evidence: Evidence = "unknown"
    drawn: Draws = "not compared"

    @property
    def holds(self) -> bool:
        """Whether the claim is proved: a search that found nothing is no proof."""
        return case_of(
            self.outcome, {"holds": True, "VIOLATED": False, "searched, nothing found": False, "unknown": False}
        )

    @property
    def violated(self) -> bool:
        """Whether something refutes the claim: a larger loss, or draws that are not as stated."""
        return (
            case_of(self.drawn, {"not as stated": True, "as stated": False, "not compared": False}) or not self._within
        )

    @property
    def outcome(self) -> Outcome:
        """The verdict in a word or three."""
        if self.violated:
            return "VIOLATED"
        words: dict[Evidence, Outcome] = {
            "proved": "holds",
            "searched": "searched, nothing found",
            "unknown": "unknown",
        }
        return words[self.evidence]

    @property
    def _within(self) -> bool:
        """Whether no loss was found that exceeds the claim; one that is no number does."""
        if isinstance(self.claimed, Approximate):
            return self.worst_delta <= float(self.claimed.delta) * (1 + TOLERANCE)
        most = float(self.claimed.amounts["epsilon"]) * (1 + TOLERANCE)
        return self.worst_loss <= most and (self.worst_rounded_loss is None or self.worst_rounded_loss <= most)

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values, ready for JSON."""
        return {
            "claimed": {name: float(amount) for name, amount in self.claimed.amounts.items()},
            "holds": self.holds,
            "outcome": self.outcome,
            "evidence": self.evidence,
            "drawn": self.drawn,
            "worst_loss": _number(self.worst_loss),
            "worst_delta": _number(self.worst_delta),
            "worst_rounded_loss": _number(self.worst_rounded_loss),
            "witness": str(self.witness),
            "neighbours": self.neighbours,
        }


def _number(found: float | None) -> float | None:
    """What JSON can hold."""
    return found if found is not None and math.isfinite(found) else None
