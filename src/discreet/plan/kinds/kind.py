"""What every kind of release of a plan answers: its price, its promise, its files, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.shape import AnyRelease
from discreet.privacy.guarantee import Guarantee
from discreet.release.offer import Offer
from discreet.report.release import Results


class PlannedRelease(Protocol):
    """One release of a plan, priced without its data, and the way to its offer."""

    @property
    def source(self) -> PlanSource: ...

    @property
    def release(self) -> AnyRelease: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def details(self) -> dict[str, Any]:
        """Everything that decides the published files, for the ledger."""

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The release as an offer about these data; only what is public of them is read for it."""

    def results(self, folder: Path) -> Results:
        """What the report says, from the published files."""
