"""Bundles forged with care: every hash, seal and link of the changed files agrees again."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from discreet.archive.findings import Finding
from discreet.archive.packing import as_json, pack
from discreet.ledger.entries import GENESIS, canonical, seal
from discreet.review.verdict import verify_bundle

Files = dict[str, bytes]


def unpacked(path: Path) -> Files:
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def verdict(path: Path, files: Files) -> dict[str, Finding]:
    """What is found in a bundle of these files, whose own list of hashes agrees with them."""
    about = json.loads(files["bundle.json"])
    about["files"] = {name: sha256(content).hexdigest() for name, content in files.items() if name != "bundle.json"}
    files = {**files, "bundle.json": as_json(about)}
    pack(path, files, files.__getitem__)
    return {finding.subject: finding for finding in verify_bundle(path)}


def written(about: dict) -> bytes:
    """release.json as a run writes it."""
    return (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()


def resealed(files: Files) -> None:
    """Make release.json, the ledger's lines and their chain agree with the files."""
    book = json.loads(files["ledger.json"])
    previous, charges = GENESIS, {}
    for row in book["lines"]:
        name = row["release"]
        if row["kind"] == "publish":
            about, payload = json.loads(files[f"{name}/release.json"]), json.loads(row["payload"])
            about["ledger"] = charges.get(name, about["ledger"])  # the line of a charge may be gone
            about["files"] = {file: sha256(files[f"{name}/{file}"]).hexdigest() for file in about["files"]}
            files[f"{name}/release.json"] = written(about)
            payload["charge"] = about["ledger"]["seq"]
            payload["files"] = {file: sha256(files[f"{name}/{file}"]).hexdigest() for file in payload["files"]}
            row["payload"] = canonical(payload)
        row["previous"] = previous
        previous = row["hash"] = seal({column: value for column, value in row.items() if column != "hash"})
        if row["kind"] == "charge":
            charges[name] = {"seq": row["seq"], "hash": row["hash"]}
    book["head"] = {"seq": book["lines"][-1]["seq"], "hash": previous}
    files["ledger.json"] = as_json(book)


def said(name: str, change: Callable[[dict], object]) -> Callable[[Files], None]:
    """A forgery of a JSON file."""

    def forge(files: Files) -> None:
        content = json.loads(files[name])
        change(content)
        files[name] = written(content) if name.endswith("release.json") else as_json(content)

    return forge
