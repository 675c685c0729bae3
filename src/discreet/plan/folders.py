"""The account whose releases are folders of files: charged, drawn, fixed in the ledger, then shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.account import Account
from discreet.noise.source import Source
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Entry, release_once

Write = Callable[[Source, Guarantee, Entry, Path], object]
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
