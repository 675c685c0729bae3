"""What a release reveals about one worker: that they exist, which of two employers they have, and their kind.

Presence is one step of the definition; an employer or a kind are two, one worker less and one more. The figures are
exact for the integers that are published, at an establishment of the size that tells most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.privacy.identification import sure
from discreet.privacy.losses import half
from discreet.privacy.neighbours import neighbouring_cells
from discreet.privacy.verify import CountMechanism, examine

LARGEST = 150


@dataclass(frozen=True, slots=True)
class OneWorker:
    """Log odds that a release moves at most.

    Attributes
    ----------
    presence : between having a job at an establishment and not having it.
    employer : between two establishments in cells of their own, whose noise is independent.
    kind : between two kinds that are counted together; None where a mechanism counts one kind.
    """

    presence: float
    employer: float
    kind: float | None

    def __str__(self) -> str:
        known = {
            "sure that they are there": self.presence,
            "of their employer": self.employer,
            "of their kind": self.kind,
        }
        told = [f"{sure(odds)} % {what}" for what, odds in known.items() if odds is not None]
        return f"somebody undecided ends at most {', '.join(told)}"


def one_worker(mechanism: CountMechanism) -> OneWorker:
    """The worst case for one worker, of a mechanism without a delta."""
    pairs = neighbouring_cells(mechanism.unit, largest=LARGEST).of_one_worker()
    found = examine(mechanism, pairs, half(mechanism.loss))
    presence = found.worst_loss if found.worst_rounded_loss is None else found.worst_rounded_loss
    return OneWorker(presence, 2 * presence, _another_kind(mechanism) if mechanism.law.dimension > 1 else None)


def _another_kind(mechanism: CountMechanism) -> float:
    """Between one worker of the first kind and one of the second, over outputs around both."""
    scale = float(mechanism.scale(np.array([1.0]))[0])
    span = np.arange(-12, 13) if scale < 12 else np.rint(np.linspace(-1, 1, 25) * scale)
    outputs = np.zeros((span.size**2, mechanism.law.dimension))
    outputs[:, :2] = np.stack(np.meshgrid(span, span), axis=-1).reshape(-1, 2)
    first, second = np.eye(mechanism.law.dimension)[:2]
    ratio = mechanism.law.probability(outputs - first, scale) / mechanism.law.probability(outputs - second, scale)
    return float(np.abs(np.log(ratio)).max())
