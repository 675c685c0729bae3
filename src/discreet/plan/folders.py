"""Accounts for releases that are folders of files: charged, drawn, fixed in the ledger, then shown.

Functions that release a value take an account and call its `release` once. In a plan the charge comes from
`FolderAccount`, which also keeps the files safe; so the function first meets a `Rehearsal`, which stops it before
anything is spent, and then, when the charge is in the ledger, a `Paid` account, which lets it draw exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from discreet.errors import PrivacyError
from discreet.ledger import Entry, release_once
from discreet.noise.source import Source
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released

T = TypeVar("T")

Write: TypeAlias = Callable[[Source, Guarantee, Entry, Path], object]
"""Draws with the source and writes every file of the release into the folder given, with what it promises."""


class FolderAccount(Account):
    """An account that gives nothing away but files."""

    def release_folder(
        self, name: str, *, guarantee: Guarantee, folder: Path, write: Write, details: Mapping[str, Any]
    ) -> Entry:
        """The publication of the release, whose files are in `folder` when this returns.

        After a crash the same call carries on. Released once, it draws and writes nothing.
        """
        promised = replace(guarantee, private=self.private)
        return release_once(
            self.ledger,
            dataset=self.dataset,
            unit=self.unit,
            release=name,
            loss=guarantee.loss,
            folder=folder,
            draw=lambda entry, staging: write(self._source, promised, entry, staging),
            details=details,
        )


class RehearsedError(Exception):
    """A release came as far as its charge."""

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee
        super().__init__(str(guarantee))


class Rehearsal(Account):
    """An account that ends every release where it would have been charged."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.dataset = unit, "rehearsal"

    def compare(self, details: Mapping[str, Any]) -> None:
        """Nothing: there is no ledger."""

    def release(
        self,
        name: str | None,
        *,
        guarantee: Guarantee,
        draw: Callable[[Source], T],
        details: Mapping[str, Any] | None = None,
    ) -> Released[T]:
        raise RehearsedError(guarantee)


class Paid(Account):
    """An account whose one release is in the ledger already: it may be drawn, once, and at no other price."""

    def __init__(self, unit: Unit, entry: Entry, source: Source) -> None:
        self.unit, self.dataset, self._entry, self._source = unit, entry.dataset, entry, source
        self._drawn = False
        self.constants: dict[str, Any] = {}
        """What the function says of its mechanism when it asks to draw: public, and published with the answer."""

    def compare(self, details: Mapping[str, Any]) -> None:
        """Nothing: the charge did."""

    def release(
        self,
        name: str | None,
        *,
        guarantee: Guarantee,
        draw: Callable[[Source], T],
        details: Mapping[str, Any] | None = None,
    ) -> Released[T]:
        paid = self._entry.loss
        if self._drawn or paid is None or guarantee.loss.to_dict() != paid.to_dict():
            raise PrivacyError(
                f"A draw for {guarantee.loss} was asked of entry {self._entry.seq}, which pays for one of {paid}. "
                "Nothing was drawn. Ask for what was paid, once."
            )
        self._drawn = True
        self.constants = dict(details or {})
        promised = replace(guarantee, private=self.private)
        return Released(draw(self._source), promised, self._entry, str(self._entry.release))
