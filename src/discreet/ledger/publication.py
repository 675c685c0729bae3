"""The order of steps by which a release can be killed at any instant and carried on without harm.

0. The place of release is taken: another process with the same request waits, and then finds the release made.
1. Files that earlier attempts drew and never published are deleted. A new private staging folder is made beside the
   place of release: a path that cannot be written costs nothing.
2. The loss is charged, which gives the number of the draw. Durable before any noise exists.
3. The noise is drawn into the staging folder, which only this user can read and which is named after that number.
4. The hashes of the files are published with the number: from now on this draw, and no other, is the release.
5. The folder is renamed into place, in one step.

Publishing comes before the renaming because a charge pays for one draw. Were the files shown first, a crash, or a
second process with the same request, would show a second draw of the same release for the same price. Deleting comes
before the drawing so that there is at most one draw that nobody has published, however often a run is killed. If
processes cannot see each other's lock (in other folders, on other machines), the ledger alone decides: the draw begun
last is the release, and others are dropped. A draw is known by its number. Its files are never compared with those of
another draw, because whether two draws coincide is worth money.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.ledger.book import Ledger
from discreet.ledger.draws import DrawNumber, Superseded, superseded
from discreet.ledger.entries import Entry, canonical
from discreet.ledger.lock import alone
from discreet.privacy.losses import Loss
from discreet.privacy.units import Unit
from discreet.words.errors import PlanError, PrivacyError


def release_once(
    ledger: Ledger,
    *,
    dataset: str,
    unit: Unit,
    release: str,
    loss: Loss,
    folder: str | Path,
    draw: Callable[[Entry, Path], object],
    details: Mapping[str, Any] | None = None,
    by: str | None = None,
) -> Entry:
    """Charge, draw, publish, show: the files of `release` are in `folder` when this returns its publication.

    `draw(entry, staging)` draws the noise and writes every file of the release into `staging`; `entry.reference` is
    what the release stores about itself. Calling again after a crash carries on; calling again after success gives
    the same publication and draws nothing. `draw` must not release into a folder beside this one: it would wait for
    itself.
    """
    folder, details = Path(folder), details or {}
    if ledger.published(dataset, release) is None:
        _make(folder, release)
    with alone(folder.parent) as locked:
        # What is looked for before the ledger is asked cannot have come from a publication that it does not know.
        taken, unpublished = folder.exists(), _staged(dataset, release, folder) if locked else []
        published = ledger.published(dataset, release)
        if published is not None:
            _same_request(ledger, published, unit=unit, loss=loss, details=details)
            return _shown(published, folder)
        if taken:
            raise PrivacyError(
                f"Release {release!r} cannot be put in {str(folder)!r}: what is there was not released by this ledger.",
                "Nothing was spent.",
                "Choose another folder, or move that away.",
                about="folder",
            )
        for earlier in unpublished:
            shutil.rmtree(earlier, ignore_errors=True)
        staging = _staging(folder, dataset, release)
        try:
            entry = ledger.charge(dataset=dataset, unit=unit, release=release, loss=loss, details=details, by=by)
            assert entry.draw is not None, entry
            staging = staging.rename(staging.with_name(_prefix(dataset, release) + entry.draw.kept))
            draw(entry, staging)
            _to_disk(staging)
            files = fingerprints(staging)
        except BaseException as error:
            shutil.rmtree(staging, ignore_errors=True)
            if isinstance(error, OSError | PrivacyError):
                _give_way(ledger, dataset, release, unit=unit, loss=loss, details=details)
            raise
        try:
            published = ledger.publish(entry, files=files, by=by)
        except (Superseded, PrivacyError):  # another draw is the release; after any other failure this one may be
            shutil.rmtree(staging, ignore_errors=True)
            raise
        return _shown(published, folder, drawn=staging)


def fingerprints(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder`, by its path from there."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def check_release(ledger: Ledger, manifest: Path) -> str:
    """The faults of the release described by `manifest`; empty when its files are the published ones.

    The manifest is a JSON file among the release's files that holds `entry.reference` of its charge under "ledger".
    """
    try:
        seal = str(json.loads(manifest.read_text(encoding="utf-8"))["ledger"]["hash"])
    except (OSError, ValueError, KeyError, TypeError):
        raise PlanError(
            f"{str(manifest)!r} does not say which ledger entry paid for it.",
            "A release has a JSON file with the hash of its charge.",
            "Give the path of that file, usually release.json.",
            about="manifest",
        ) from None
    charge = ledger.find(seal)
    if charge is None or not charge.pays:
        return f"{manifest}: the ledger has no charge {seal}; the chain was cut off or rewritten, or is another ledger"
    published = ledger.published(charge.dataset, str(charge.release))
    if published is None:
        return f"{manifest}: entry {charge.seq} was charged, and never published"
    found = fingerprints(manifest.parent)
    changed = [name for name, digest in published.payload["files"].items() if found.get(name) != digest]
    return f"{manifest}: not as published in entry {published.seq}: {', '.join(changed)}" if changed else ""


def _same_request(ledger: Ledger, published: Entry, *, unit: Unit, loss: Loss, details: Mapping[str, Any]) -> None:
    charge = ledger.charged(published.dataset, str(published.release))
    if charge is None or not charge.pays_for(unit=unit.key, loss=loss, details=details):
        raise PrivacyError(
            f"Release {published.release!r} of {published.dataset!r} is already released (entry "
            f"{published.seq}) with another loss, unit or details.",
            "A name stands for one request.",
            "Choose another name.",
            about="release",
        )


def _give_way(ledger: Ledger, dataset: str, release: str, **request: Any) -> None:
    """Say so if another process, unseen by this one, has published its draw of the same request."""
    published = ledger.published(dataset, release)
    if published is not None:
        _same_request(ledger, published, **request)
        raise superseded(published)


def _prefix(dataset: str, release: str | None) -> str:
    """Staging folders of one release share this, and no other release has it."""
    return f".staged-{hashlib.sha256(canonical([dataset, release]).encode()).hexdigest()[:16]}-"


def _make(folder: Path, release: str) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, release, error) from None


def _staging(folder: Path, dataset: str, release: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_prefix(dataset, release), dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, release, error) from None


def _unwritable(folder: Path, release: str, error: OSError) -> PrivacyError:
    return PrivacyError(
        f"Release {release!r} cannot be written to {str(folder)!r}: {error.strerror}.",
        "Nothing was spent.",
        "Choose a folder that this user can write.",
        about="folder",
    )


def _to_disk(folder: Path) -> None:
    """A hash in the ledger must not outlive its file, even when the power fails."""
    for path in (*folder.rglob("*"), folder, folder.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def is_kept(published: Entry, folder: Path) -> bool:
    """Whether `folder`, or a staging folder beside it after a crash, holds the published files unchanged.

    A run that goes on meanwhile moves one to the other, so the folder is looked at last.
    """
    staged = [] if folder.exists() else _drawn_as(published, folder)
    return any(_holds(place, published) for place in (*staged, folder))


def _holds(place: Path, published: Entry) -> bool:
    try:
        return bool(published.payload["files"].items() <= fingerprints(place).items())
    except FileNotFoundError:  # moved meanwhile
        return False


def others(published: Entry, folder: Path) -> list[str]:
    """Files in the release's folder that were not published with it."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(set(found) - published.payload["files"].keys())


def _staged(dataset: str, release: str | None, folder: Path) -> list[Path]:
    return list(folder.parent.glob(f"{_prefix(dataset, release)}*"))


def _drawn_as(published: Entry, folder: Path) -> list[Path]:
    """The staged draw whose number was published. Publications of earlier versions have none: any may be it."""
    staged, number = _staged(published.dataset, published.release, folder), published.payload.get("draw")
    return [place for place in staged if number is None or place.name.endswith(DrawNumber(str(number)).kept)]


def _shown(published: Entry, folder: Path, *, drawn: Path | None = None) -> Entry:
    """Drop the draws that will never be shown, then rename the one published draw into place, unless it is there.

    `drawn` is the folder whose hashes this process has just published; they need not be taken again.
    """
    files = published.payload["files"].items()
    staged = _staged(published.dataset, published.release, folder)
    mine = _drawn_as(published, folder)
    chosen = [draw for draw in mine if draw == drawn or files <= fingerprints(draw).items()]
    for other in set(staged) - set(chosen):
        shutil.rmtree(other, ignore_errors=True)
    for draw in chosen[: not folder.exists()]:
        with suppress(FileNotFoundError):  # another process that resumes the same release was quicker
            draw.chmod(0o755)
            draw.rename(folder)
            return published
    if not files <= fingerprints(folder).items():
        raise PrivacyError(
            f"Release {published.release!r} of {published.dataset!r} was released (entry "
            f"{published.seq}), but {str(folder)!r} does not hold its files as they were.",
            "Drawing them again would reveal more than was paid for.",
            "Bring the files back, name the folder they are in, or pay for a release under another name.",
            about="release",
        )
    return published
