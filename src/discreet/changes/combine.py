"""Rules made of rules: flag a case when any, k or all of several methods would.

With every method on one standardised scale and one threshold, "at least k of n methods give an alarm" is itself a
score: the k-th largest of theirs. So a combination is compared with ROC analysis like any method. (For declines the
paper names them after the forecasts: Min is any, Median two of three, Max all.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.words.errors import DataError

Needed: TypeAlias = int | Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Fire when `needed` of `methods` fire."""

    methods: Sequence[str]
    needed: Needed = "any"

    def score(self, scores: Mapping[str, Vector]) -> Vector:
        absent = [name for name in self.methods if name not in scores]
        if absent:
            raise DataError(
                f"A rule combines {', '.join(map(repr, absent))}, which no forecast has.",
                f"Methods are: {', '.join(scores)}.",
                about="combinations",
            )
        return at_least(np.stack([scores[name] for name in self.methods]), self.needed)


def at_least(scores: Matrix, needed: Needed) -> Vector:
    """The score of "at least `needed` of the rows fire", shape (cases,)."""
    k = {"any": 1, "all": len(scores)}.get(needed, needed) if isinstance(needed, str) else needed
    if not isinstance(k, int) or not 1 <= k <= len(scores):
        raise DataError(
            f"A rule needs {needed!r} of {len(scores)} methods.",
            remedy=f"Give 'any', 'all' or 1 to {len(scores)}.",
            about="combinations",
        )
    return np.asarray(np.sort(scores, axis=0)[-k])
