"""The content of the ledger and of the published folders; it is read after a change and not at every request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.desk.book import LedgerView, stamp
from discreet.desk.desk import NAME, DataSource, Desk
from discreet.plan.bundle import PAPER, packed_releases
from discreet.privacy.assurance import Claim
from discreet.release.files import MANIFEST
from discreet.release.folder import ATTRIBUTE
from discreet.release.tables import column_names, read_table
from discreet.words.errors import LedgerError

PREVIEW = 50
"""Rows of a published table on one page."""


def book(desk: Desk) -> LedgerView:
    """The ledger of a desk now."""
    return desk.book


def refuse_trouble(desk: Desk) -> None:
    """Refuse to say what was published where the ledger, which has it, cannot be believed."""
    if trouble := desk.ledger_trouble:
        raise LedgerError(trouble)


def standing(desk: Desk, source: DataSource) -> dict[str, Any]:
    """A source's budget in numbers, as the ledger knows it or as the desk's settings promise it; None is unknown."""
    found = book(desk)
    known = found.budget(source.dataset)
    whole = float(source.epsilon) if known is None else float(known.total.amounts["epsilon"])
    if found.trouble:
        return {"total": whole, "known": None} | dict.fromkeys(("spent", "left", "share"))
    spent = 0.0 if known is None else float(known.spent.amounts["epsilon"])
    return {
        "total": whole,
        "spent": spent,
        "left": whole - spent,
        "share": spent / whole if whole else 0.0,
        "known": known,
    }


@dataclass(frozen=True, slots=True)
class Published:
    """A release on disk."""

    plan: str
    name: str
    folder: Path
    about: dict[str, Any]

    @property
    def title(self) -> str:
        return str(self.about["name"])

    @property
    def claim(self) -> Claim:
        """What it states of itself, and why it promises nothing where it does not."""
        return Claim.stated(self.about.get("guarantee"), release=self.title, dataset=str(self.about["dataset"]))

    @property
    def files(self) -> list[tuple[str, int]]:
        """Files for download: the manifest and the files that it lists."""
        names = [MANIFEST, *sorted(self.about["files"])]
        return [(name, (self.folder / name).stat().st_size) for name in names if (self.folder / name).is_file()]

    @property
    def tables(self) -> list[str]:
        """The published tables, the basic form first."""
        best: dict[str, str] = {}
        for name in sorted(self.about["files"], key=lambda name: ("basic" not in name, not name.endswith("parquet"))):
            best.setdefault(str(Path(name).parent), name)
        return sorted(best.values())

    def table(self, name: str) -> Any:
        """A published table as arrow."""
        path = self.folder / name
        there = column_names(path)
        by = [column for column, words in self.about["columns"].items() if words == ATTRIBUTE and column in there]
        return read_table(path, kind=name.rsplit(".", 1)[1], attributes=by)


VALUES = ("count", "sum", "lower", "upper", "quality", "establishments")
"""Columns of a published table that are no attributes."""


def keys_of(table: Any) -> list[str]:
    """The attributes that span a published table."""
    return [name for name in table.column_names if name not in VALUES]


def published(desk: Desk, plan: str | None = None) -> list[Published]:
    """Every release on disk that the ledger published, latest first."""
    order = {(e.dataset, str(e.release)): e.seq for e in book(desk).entries if e.kind == "publish"}
    found = [each for each in _folders(desk, plan) if (each.about["dataset"], each.about["name"]) in order]
    return sorted(found, key=lambda each: -order[each.about["dataset"], each.about["name"]])


def _folders(desk: Desk, plan: str | None) -> Iterator[Published]:
    for folder in sorted(desk.releases.iterdir()):
        if (plan is not None and folder.name != plan) or not NAME.fullmatch(folder.name) or not folder.is_dir():
            continue
        for release in sorted(folder.iterdir()):
            manifest = release / MANIFEST
            if not release.name.startswith(".") and manifest.is_file():
                yield Published(folder.name, release.name, release, _manifest(manifest, stamp(manifest)))


@lru_cache(maxsize=512)
def _manifest(path: Path, _stamp: tuple[int, int]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def release(desk: Desk, plan: str, name: str) -> Published | None:
    found = next((each for each in published(desk, plan) if each.name == name), None)
    if found is None:
        refuse_trouble(desk)
    return found


def papers(desk: Desk, plan: str) -> dict[str, Path]:
    """The reports and bundles of a plan that was carried out; those of earlier runs have a mark in their names."""
    found = sorted((desk.releases / plan).glob("*")) if NAME.fullmatch(plan) else []
    return {path.stem: path for path in found if PAPER.fullmatch(path.name) and path.is_file()}


def mark(desk: Desk, plan: str, release: str) -> str:
    """The ending of the names of the report and the bundle that hold a release; empty for those of the last run."""
    for key, path in papers(desk, plan).items():
        if key.startswith("bundle") and release in _releases(path, stamp(path)):
            return key.removeprefix("bundle")
    return ""


@lru_cache(maxsize=512)
def _releases(bundle: Path, _stamp: tuple[int, int]) -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name in packed_releases(bundle))
