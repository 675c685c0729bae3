"""An output folder that appears whole or not at all, and replaces only what was made here.

Files are written into a hidden folder beside the place, which is renamed at the end. A full disk, a fault or a kill in
the middle leaves what was there before. `publication.json` lists every file with its hash; with `force` a folder is
replaced only if it holds such a list and nothing else.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.ledger.publication import fingerprints
from discreet.release.folder import whole_or_not
from discreet.words.errors import DataError
from discreet.words.faults import Key

LIST = "publication.json"
FORMAT = "discreet publication, format 1"


@contextmanager
def new_folder(out: Path, *, about: Mapping[str, Any], force: bool = False) -> Iterator[Path]:
    """A folder to write in, which is at `out` when the block ends well."""
    refuse_place(out, force=force)
    staging = _staging(out)
    try:
        with whole_or_not(out):
            yield staging
            listed = {"format": FORMAT, **about, "files": fingerprints(staging)}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (staging / LIST).write_text(text + "\n", encoding="utf-8")
            staging.chmod(0o755)
            _exchange(staging, out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_place(out: Path, *, force: bool) -> None:
    """Refuse a place that holds something else, before anything is computed."""
    if not out.exists() and not out.is_symlink():
        return
    if out.is_dir() and not out.is_symlink():
        if not any(out.iterdir()):
            return
        if force and _is_ours(out):
            return
    ours = "with --force it replaces what it wrote there earlier and nobody changed"
    raise DataError(
        f"{str(out)!r} is there already{', and was not written by this command, or was changed since' * force}.",
        f"The output is a new folder; {ours}.",
        ("Choose another ", Key("out"), ", or move that away."),
        about="out",
    )


def _is_ours(folder: Path) -> bool:
    """Whether every file of a folder is on its list and unchanged."""
    try:
        known = json.loads((folder / LIST).read_text(encoding="utf-8"))
        found = fingerprints(folder)
        del found[LIST]
        return bool(known["format"] == FORMAT and known["files"] == found)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _staging(out: Path) -> Path:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise DataError(
            f"No folder can be made beside {str(out)!r}: {error.strerror}.",
            "The output is a new folder that this user can write.",
            ("Choose another ", Key("out"), "."),
            about="out",
        ) from None


def _exchange(staging: Path, out: Path) -> None:
    """Put a folder in its place; what was there is removed when the new one is there."""
    before = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    if out.exists():
        out.rename(before)
    try:
        staging.rename(out)
    except OSError:
        if before.exists():
            before.rename(out)
        raise
    shutil.rmtree(before, ignore_errors=True)
