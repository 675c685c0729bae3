"""What tables of jobs answer alike, be they counts at one time or flows and changes between several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from discreet.data.jobs import first_limit
from discreet.plan.agency import PublicTable
from discreet.plan.file import PlanSource
from discreet.plan.shape import Compare
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.release.files import SAMPLER


class PlannedTables:
    """Tables of jobs: their promise is known without data, and an agency's table may stand beside them."""

    __slots__ = ()
    source: PlanSource
    release: Any
    guarantee: Guarantee

    @property
    def compare(self) -> Compare | None:
        asked: Compare | None = self.release.compare
        return asked

    def shown_beside(self, found: PublicTable) -> Self:
        return replace(self, beside=found)  # type: ignore[type-var]

    @property
    def responses(self) -> tuple[str, ...]:
        return ()

    @property
    def sampler(self) -> str:
        return SAMPLER

    def promise(self, claim: Mapping[str, Any], loss: Loss) -> Guarantee:
        """Also with its first words on several jobs of one worker, which older files have."""
        first = tuple(map(first_limit, self.guarantee.notes))
        return replace(self.guarantee, notes=first) if claim["notes"] == list(first) else self.guarantee
