"""A claim is a value: what a release promises, to whom, and on what ground."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from discreet.privacy.losses import Loss, Pure, odds, shown
from discreet.privacy.units import Establishments, Unit
from discreet.words.cases import case_of

Basis: TypeAlias = Literal["proved", "as published", "empirical"]
Calibration: TypeAlias = Literal["tight", "paper"]


def is_proved(basis: Basis) -> bool:
    """Whether a proof stands behind a promise."""
    return case_of(basis, {"proved": True, "as published": False, "empirical": False})


def is_empirical(basis: Basis) -> bool:
    """Whether a figure was measured on these data, and is no promise."""
    return case_of(basis, {"empirical": True, "proved": False, "as published": False})


def is_tight(calibration: Calibration) -> bool:
    """Whether constants are the least that keep the promise, and not those of a paper."""
    return case_of(calibration, {"paper": False, "tight": True})


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised.

    Attributes
    ----------
    unit : whose change is hidden.
    loss : how much the release may reveal about such a change.
    calibration : "tight" for the least noise the definition allows, "paper" for the document's own constants.
    basis : "proved" (see `proof`), "as published" (somebody's claim that we could not prove, or refute; so is one of
        which nothing is said), or "empirical" (measured on these data; not a promise).
    proof : the document in docs/proofs that shows it.
    notes : what was done to the output, and every limit of the claim.
    private : False when the noise was seeded, because anyone who knows the seed can remove it, or when there is a
        `caution`.
    magnitude : the name and the cap of the amounts, if amounts were added up: the definition then covers them too.
    caution : why the release is not private although its noise is, for example because the published noise is too
        small.

    Examples
    --------
    >>> from discreet.privacy.losses import Pure
    >>> from discreet.privacy.units import Establishments
    >>> Guarantee(Establishments(0.1), Pure(2)).definition
    'strong (alpha=0.1, epsilon=2)-employer-employee privacy'
    """

    unit: Unit
    loss: Loss
    calibration: Calibration = "tight"
    basis: Basis = "as published"
    proof: str = ""
    notes: tuple[str, ...] = ()
    private: bool = True
    caution: str = ""
    magnitude: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "private", self.private and not self.caution)

    @property
    def definition(self) -> str:
        """The definition's name with its parameters, as the literature writes them."""
        amounts = ", ".join(f"{name}={value}" for name, value in _amounts(self))
        if is_empirical(self.basis):
            return f"an empirical figure ({amounts}), which is not differential privacy"
        if isinstance(self.unit, Establishments):
            exchanged = " with substitution" * self.unit.substitution
            capped = "" if self.magnitude is None else f" for {self.magnitude[0]} with the cap {self.magnitude[1]:,}"
            return f"{self.unit.strength} ({amounts})-employer-employee privacy{exchanged}{capped}"
        return f"({amounts})-differential privacy"

    def __repr__(self) -> str:
        return f"<Guarantee of {self.loss} for {self.unit.key}: {self.basis if self.private else 'not private'}>"

    def noted(self, *notes: str) -> Guarantee:
        """The same guarantee with more said about the output; post-processing never weakens it."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        if self.caution:
            return f"NOT PRIVATE. {self.caution}. {self._claim()}"
        if not self.private:
            if is_empirical(self.basis):
                return f"NOT PRIVATE: the noise was seeded. {self._claim()}"
            return f"NOT PRIVATE: the noise was seeded; without the seed it would have been {self._claim()}"
        return self._claim()

    def _claim(self) -> str:
        effect = ""
        if isinstance(self.loss, Pure) and self.private and is_proved(self.basis):
            effect = f": no event becomes more than {odds(self.loss.epsilon)} times as likely"
        ground = f"{self.basis} ({self.proof})" if is_proved(self.basis) and self.proof else self.basis
        notes = f". {'. '.join(self.notes)}" if self.notes else ""
        if is_empirical(self.basis):
            return f"NO PROMISE: {self.definition}{notes}."
        claimed = "" if is_proved(self.basis) else "NOT PROVED FOR THE WHOLE RELEASE: only claimed, as published, is "
        return (
            f"{claimed}{self.definition}{effect} between {self.unit}{self._amount()}; {self.calibration} calibration, "
            f"{ground}{notes}."
        )

    def _amount(self) -> str:
        """What the definition says of amounts: they are hidden up to a share, or up to the cap, and no further."""
        if self.magnitude is None or not isinstance(self.unit, Establishments):
            return ""
        name, cap = self.magnitude
        share = shown(self.unit.alpha * 100)
        return (
            f", and its {name} by at most {share} % or {cap:,}, the most that one worker adds (a larger change of "
            f"{name}, by however few workers, is not hidden)"
        )

    def to_dict(self) -> dict[str, object]:
        """What is stored with a release."""
        return {
            "definition": self.definition,
            "unit": self.unit.key,
            "loss": self.loss.to_dict(),
            "calibration": self.calibration,
            "basis": self.basis,
            "proof": self.proof,
            "notes": list(self.notes),
            "private": self.private,
            "sentence": str(self),
        }


def _amounts(guarantee: Guarantee) -> list[tuple[str, str]]:
    alpha = [("alpha", shown(guarantee.unit.alpha))] if isinstance(guarantee.unit, Establishments) else []
    return alpha + [(name, shown(value)) for name, value in guarantee.loss.amounts.items()]
