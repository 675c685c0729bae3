"""The reviewer's bundle: one zip file with the released files, the report, the request and the ledger's lines.

A bundle alone proves three things: its files are the published ones, its lines are as sealed and add up, and the
guarantees are those that the mechanisms give. To prove that the lines are from the agency's ledger, one needs the
ledger, or a hash of it known from elsewhere. The zip file has the same bytes whenever it is made from the same things.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from discreet.archive.findings import RefutedError
from discreet.archive.packing import LEDGER, MANIFEST, as_json, pack
from discreet.archive.unpacking import opened, text
from discreet.ledger import Entry, Head
from discreet.pages.carried import published_files
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.alarms import alarm_files
from discreet.plan.kinds.registry import kind_of
from discreet.plan.requests import has_public_list
from discreet.plan.shape import ALONE, as_first_written

FORMAT = "discreet bundle, format 2"
SEVERAL = "discreet bundle, format 3"
"""For plans with several sources, which older versions of discreet cannot read."""
ALARMED = "discreet bundle, format 4"
"""Of plans with alarms."""
FORMATS = (FORMAT, SEVERAL, ALARMED)
PER_PERIOD = ("per_year", "per_quarter", "per_month")
BUNDLE, REPORT, REQUEST = "bundle.zip", "report.html", "request.json"


def write_bundle(
    folder: Path, file: PlanFile, lines: Iterable[Entry], *, head: Head, ledger: str, published: Mapping[str, Entry]
) -> Path:
    """Pack the output folder of a plan that was carried out: the published files and nothing else that lies there.

    `ledger` is the hash of the ledger's first line: with it the lines are anchors.
    """
    texts = {
        REPORT: (folder / REPORT).read_bytes(),
        REQUEST: as_json(request(file)),
        LEDGER: as_json({"head": head._asdict(), "ledger": ledger, "lines": [line.to_row() for line in lines]}),
    }
    texts |= {name: (folder / name).read_bytes() for name in alarm_files(folder, file.plan.alarms)}
    hashes = {name: sha256(content).hexdigest() for name, content in texts.items()} | _files(published)
    texts[MANIFEST] = as_json({"format": _format(file), "releases": list(published), "files": hashes})
    partial = folder / f".{BUNDLE}.partial"
    pack(partial, hashes, lambda name: texts[name] if name in texts else (folder / name).read_bytes())
    return partial.replace(folder / BUNDLE)


def _format(file: PlanFile) -> str:
    if file.plan.alarms:
        return ALARMED
    return FORMAT if ALONE in file.plan.source else SEVERAL


def set_aside(folder: Path, published: Mapping[str, Entry]) -> None:
    """Give the bundle and the report of an earlier run names of their own where they tell of other releases.

    A plan that was changed is run into the same folder: what was published before keeps its papers. They are named
    after the bundle's bytes, or after the report's if there is no bundle, so a run that was killed in between finishes
    the same names.
    """
    report, bundle, files = folder / REPORT, folder / BUNDLE, _files(published).items()
    if bundle.is_file() and not packed_releases(bundle).items() <= files:
        _marked(bundle, report, bundle)
    elif report.is_file():
        told = published_files(report.read_text(encoding="utf-8", errors="replace"))
        if told is None or not told.items() <= files:  # one that carries no list may be about anything
            _marked(report, report)


def _marked(named_after: Path, *papers: Path) -> None:
    with named_after.open("rb") as file:
        mark = file_digest(file, "sha256").hexdigest()[:12]
    for path in papers:
        if path.is_file():
            path.rename(path.with_name(f"{path.stem}-{mark}{path.suffix}"))


PAPER = re.compile(r"(report|bundle)(-[0-9a-f]{12})?\.(html|zip)")
"""Names of reports and bundles, those of earlier runs included."""


def packed_releases(bundle: Path) -> dict[str, str]:
    """The released files of a bundle, with their hashes; what is no bundle has nothing that must be kept apart."""
    try:
        with opened(bundle) as packed:
            listed = json.loads(text(packed, MANIFEST))["files"]
        return {name: str(digest) for name, digest in listed.items() if "/" in name}
    except (LookupError, ValueError, TypeError, AttributeError, OSError, zipfile.BadZipFile, zlib.error, RefutedError):
        return {}


def _files(published: Mapping[str, Entry]) -> dict[str, str]:
    return {
        f"{name}/{path}": digest for name, entry in published.items() for path, digest in entry.payload["files"].items()
    }


def request(file: PlanFile) -> dict[str, Any]:
    """The public part of a plan: what was asked for, without paths and addresses."""
    whole = file.plan.model_dump(mode="json", by_alias=True)
    sources = {source.name: _public_part(source, whole["source"][source.name]) for source in file.sources}
    public = sources.pop(ALONE, {"sources": sources})
    columns = {key: public.pop(key) for key in ("public_columns",) if key in public}
    return {
        "title": whole["title"],
        **({} if whole["people"] is None else {"people": whole["people"]}),
        **public,
        "releases": [_without_path(as_first_written(release)) for release in whole["release"]],
        **columns,
        **({"alarms": [_public_alarms(each) for each in whole["alarms"]]} if whole["alarms"] else {}),
    }


def _public_alarms(alarms: dict[str, Any]) -> dict[str, Any]:
    """Alarms as bundles before false discovery rates have them, and an earlier folder by its name alone."""
    if alarms["fdr"] is None:
        alarms = {key: each for key, each in alarms.items() if key != "fdr"} | {"rate": alarms["rate"] or "1/10"}
    return alarms if alarms["folder"] is None else alarms | {"folder": Path(alarms["folder"]).name or "."}


def _without_path(release: dict[str, Any]) -> dict[str, Any]:
    """A release whose file to compare with is known by its name alone."""
    asked = release.get("compare")
    return release if asked is None else release | {"compare": asked | {"file": Path(asked["file"]).name}}


def _public_part(source: PlanSource, whole: Mapping[str, Any]) -> dict[str, Any]:
    """The same of one source."""
    models = [release for release in source.releases if not kind_of(release).of_jobs]
    named = {column for release in models for column in kind_of(release).columns(release)}
    used = named | {*getattr(source.tables.unit, "by", ())}
    counts = len(models) < len(source.releases)
    return {
        "schema": replace(source.schema(), unused=()).to_dict() if counts else None,
        "public_list": counts and has_public_list(source),
        "allow_multiple": whole["data"]["allow_multiple"],
        **({key: whole["data"][key] for key in ("quarters", "time")} if source.tables.data.quarters else {}),
        "unit": whole["unit"],
        **({} if source.tables.data.period is None else {"period": whole["data"]["period"]}),
        "budget": {key: whole["budget"][key] for key in ("epsilon", "delta", "dataset")}
        | {key: whole["budget"][key] for key in PER_PERIOD if whole["budget"][key] is not None},
        **({"public_columns": sorted(used & {*source.tables.data.public})} if models else {}),
    }


def replace_file(path: Path, content: bytes) -> Path:
    """Put a file in place at once. After a crash the next run finds the same name beside it, and overwrites that."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    return partial.replace(path)
