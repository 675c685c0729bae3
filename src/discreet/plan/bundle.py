"""What a reviewer gets: one zip file with the released files, the report, the request and the ledger's lines.

A bundle proves by itself that its files are the published ones, that its lines are as sealed and add up, and that the
guarantees are what the mechanisms give. That the lines are those of the agency's ledger is proved with the ledger, or
with a hash of it known from elsewhere. The zip file has the same bytes whenever it is made from the same things.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from discreet.plan.shape import Plan
from discreet.privacy.ledger import Entry, Head

FORMAT = "discreet bundle, format 1"
BUNDLE, REPORT, MANIFEST, LEDGER, REQUEST = "bundle.zip", "report.html", "bundle.json", "ledger.json", "request.json"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time in every entry of a zip file, so that the time of packing does not change its bytes."""


def write_bundle(folder: Path, plan: Plan, lines: Iterable[Entry], *, head: Head, releases: Sequence[str]) -> Path:
    """Pack the output folder of a plan that was carried out."""
    texts = {
        REQUEST: _json(request(plan)),
        LEDGER: _json({"head": head._asdict(), "lines": [line.to_row() for line in lines]}),
    }
    paths = [folder / REPORT]
    for name in releases:
        paths += sorted(path for path in (folder / name).rglob("*") if path.is_file())
    hashes = {name: sha256(text).hexdigest() for name, text in texts.items()}
    for path in paths:
        with path.open("rb") as file:
            hashes[path.relative_to(folder).as_posix()] = _digest(file)
    texts[MANIFEST] = _json({"format": FORMAT, "releases": list(releases), "files": hashes})
    partial = folder / f".{BUNDLE}.partial"
    with zipfile.ZipFile(partial, "w") as packed:
        for name, text in texts.items():
            _pack(packed, name, text)
        for path in paths:
            _pack(packed, path.relative_to(folder).as_posix(), path.read_bytes())
    return partial.replace(folder / BUNDLE)


def request(plan: Plan) -> dict[str, Any]:
    """The public part of a plan: what was asked for, without paths and addresses."""
    whole = plan.model_dump(mode="json", by_alias=True)
    schema = whole["data"]["schema"]
    return {
        "title": whole["title"],
        "schema": schema if isinstance(schema, dict) else None,
        "unit": whole["unit"],
        "budget": {key: whole["budget"][key] for key in ("epsilon", "delta", "dataset")},
        "releases": whole["release"],
    }


def replace_file(path: Path, content: bytes) -> Path:
    """Put a file in place at once. After a crash the next run finds the same name beside it, and overwrites that."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    return partial.replace(path)


def _pack(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = 0o644 << 16
    # Parquet is compressed already.
    entry.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    packed.writestr(entry, content, compresslevel=1)


def _digest(file: Any) -> str:
    from hashlib import file_digest

    return file_digest(file, "sha256").hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
