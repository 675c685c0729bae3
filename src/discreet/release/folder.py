"""A release as it lies in its folder: opened, its files compared with `release.json`, its tables read.

Only the folder is read, so everything made from it costs no privacy. `release.json` has the hash of every other file; a
ledger has its own. With a ledger, a forged `release.json` is also found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from discreet.ledger import Ledger
from discreet.ledger.publication import check_release, fingerprints
from discreet.privacy.assurance import Claim
from discreet.privacy.losses import Loss, from_dict
from discreet.privacy.units import Unit, unit_of
from discreet.release.files import FORMAT, MANIFEST
from discreet.release.tables import column_names, read_table
from discreet.results import KEYS
from discreet.words.errors import DataError, DiscreetError, PrivacyError
from discreet.words.faults import Key

if TYPE_CHECKING:
    import pyarrow as pa

ATTRIBUTE = "attribute"
WHEN = {
    "quarter": "the quarter, or the first and the last",
    "from": "the earlier quarter",
    "to": "the later quarter",
}
"""Names of the columns that give the time of a row of flows or changes; they identify rows, as attributes do."""
FORMS = ("basic", "research", "value")
"""The forms of a table, those for readers first."""

VALUES = ("count", "sum", "estimate", "value")
"""Columns that hold a published number, of which a table has one; what has several lists them in `columns`."""

BESIDE = ("lower", "upper", "quality", "flag", "std_error", "largest", "at_most", "establishments")
"""Columns that say something about a published number, or are public."""

QUERY = ("by", "where", "of", "cap", "mechanism", "calibration", "levels")
"""The description of a single table that no plan made."""

PARENTS = "parents-"
AGENCY = "agency"
"""The file with the agency's own numbers beside a release; they are not ours."""


@contextmanager
def whole_or_not(out: Path) -> Iterator[None]:
    """Say of an output that appears whole or not at all why it did not appear."""
    try:
        yield
    except OSError as error:
        raise DiscreetError(
            f"{str(out)!r} could not be written: {error.strerror or type(error).__name__}.",
            "Nothing is left of it; what was there before is unchanged.",
            "Make room or give the right to write, then ask again.",
            about="out",
        ) from None


def refuse_inside(out: Path, release: str | Path) -> None:
    """Refuse to write into the folder that is read: a release has the files that it lists and no others."""
    if out.resolve().is_relative_to(Path(release).resolve()):
        raise DataError(
            f"{str(out)!r} is inside the release {str(release)!r}.",
            "What is made of a release stands outside of its folder, which never changes.",
            ("Choose another ", Key("out"), "."),
            about="out",
        )


def left_out(*, below: int | None, quality: Sequence[str]) -> str:
    """Which numbers a rule of the agency leaves out, in words."""
    return " or ".join(
        [*([] if below is None else [f"below {below:,}"]), *(f"of quality {flag!r}" for flag in quality)]
    )


def rules_of(parameters: Mapping[str, Any], form: str) -> list[str]:
    """How a form of a release with these parameters differs from the drawn numbers; the research form does not."""
    if form != "basic":
        return []
    to, rule = int(parameters.get("round_to") or 1), parameters.get("suppress")
    told = [f"Numbers are rounded to multiples of {to:,}, and their intervals outwards."] * (to > 1)
    return told + ([] if rule is None else [f"By a rule of the agency numbers {left_out(**rule)} are left out."])


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One published table in one form.

    Attributes
    ----------
    release : the name of its release.
    place : the folder inside the release; empty where it is at the top.
    form : "basic", "research" or "value".
    path : the file that is read.
    attributes : the columns that span it, in order.
    columns : what each column is.
    about : what `release.json` says of this table: mechanism, domains, loss.
    """

    release: str
    place: str
    form: str
    path: Path
    attributes: tuple[str, ...]
    columns: Mapping[str, str]
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        """A name for files and links: the release's, and the table's where it has several."""
        which = self.place or ("" if self.form in FORMS else self.form)
        return f"{self.release}-{which}" if which else self.release

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of published numbers."""
        one = next((name for name in VALUES if name in self.columns), None)
        others = tuple(name for name in self.columns if name not in (*self.attributes, *BESIDE))
        return (one,) if one is not None else others

    @property
    def numbers(self) -> tuple[str, ...]:
        """The published numbers without the columns of their ends and flags."""
        return tuple(
            name
            for name in self.values
            if not (name.endswith(("_lower", "_upper", "_quality")) and name.rpartition("_")[0] in self.columns)
        )

    def read(self) -> pa.Table:
        """The table as published."""
        table = read_table(self.path, kind=self.path.suffix[1:], attributes=self.attributes)
        return table.select(list(self.columns))


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """A release whose files are those that its `release.json` lists.

    Attributes
    ----------
    folder : where it lies.
    about : the content of `release.json`.
    """

    folder: Path
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def dataset(self) -> str:
        return str(self.about["dataset"])

    @property
    def kind(self) -> str:
        """What was released: count, counts, sum, sums, model, ..."""
        return str(self._parameters.get("kind", "value"))

    @property
    def period(self) -> str | None:
        """The year, quarter or month that it is about; None where that was not said."""
        return self._parameters.get("period")

    @property
    def level(self) -> Fraction | None:
        """The probability of the intervals; None where there are several, or none."""
        level = self._parameters.get("level")
        return Fraction(str(level)) if isinstance(level, str | int | float) else None

    @property
    def claim(self) -> Claim:
        """What it states of itself, and why it promises nothing where it does not."""
        return Claim.stated(self.about["guarantee"], release=self.name, dataset=self.dataset)

    @property
    def promise(self) -> str:
        """The guarantee in a sentence."""
        return self.claim.sentence

    @property
    def jobs(self) -> int | None:
        """The most jobs that one worker may have; None where that is not bounded, or not said."""
        told = self._parameters.get("allow_multiple", False if "kind" in self._parameters else None)
        return 1 if told is False else told if isinstance(told, int) and told is not True else None

    def rules(self, form: str) -> list[str]:
        """How a form differs from the drawn numbers, by rules of the agency."""
        return rules_of(self._parameters, form)

    @property
    def definition(self) -> str:
        """The guarantee by its name and parameters."""
        return self.claim.definition

    @property
    def unit(self) -> Unit:
        """Whom it protects."""
        return unit_of(str(self.about["guarantee"]["unit"]))

    @property
    def loss(self) -> Loss:
        """What it cost."""
        return from_dict(dict(self.about["guarantee"]["loss"]))

    @property
    def files(self) -> dict[str, str]:
        """Every published file with its hash."""
        return dict(self.about["files"])

    @property
    def _parameters(self) -> Mapping[str, Any]:
        return dict(self.about["parameters"])

    def tables(self, form: str | None = None) -> list[PublishedTable]:
        """Every table in one form; without a form, in the one for readers where there is one."""
        places: dict[str, dict[str, Path]] = {}
        for name in sorted(self.files, key=lambda name: (not name.endswith(".parquet"), name)):
            path = PurePosixPath(name)
            if path.suffix in (".csv", ".parquet") and not (path.name.startswith(PARENTS) or path.stem == AGENCY):
                place = "" if str(path.parent) == "." else str(path.parent)
                places.setdefault(place, {}).setdefault(path.stem, self.folder / name)
        found = []
        for place, forms in sorted(places.items(), key=lambda item: _in_order(item[0])):
            chosen = [each for each in forms if form is None or each == form or each not in FORMS]
            stems = sorted(chosen, key=_form)[:1] if set(forms) & set(FORMS) else sorted(chosen)
            found += [self._table(place, stem, forms[stem]) for stem in stems]
        if not found:
            there = sorted({stem for forms in places.values() for stem in forms})
            raise DataError(
                f"Release {self.name!r} has no table in the form {form!r}.",
                f"It has: {', '.join(there) or 'no tables'}.",
                "Choose one of these, or leave the form out.",
                about="form",
            )
        return found

    def _table(self, place: str, form: str, path: Path) -> PublishedTable:
        listed = [*self._parameters.get("tables", ()), *self._parameters.get("derived", ())]
        about = next((table for table in listed if isinstance(table, dict) and table.get("folder") == place), {})
        about = about or {name: value for name, value in self._parameters.items() if name in QUERY}
        told, there = dict(self.about["columns"]), column_names(path)
        by = [name for name in there if told.get(name) == ATTRIBUTE] or [
            name for name in there if name in (*KEYS, *about.get("by", ()))
        ]
        by += [name for name in there if name not in by and name in WHEN and told.get(name) == WHEN[name]]
        columns = {name: told.get(name, "") for name in there}
        return PublishedTable(self.name, place, form, path, tuple(by), columns, about)

    def parents(self) -> dict[str, pa.Table]:
        """Codes of hierarchies with their parents, by the name of the hierarchy; the finest level is first."""
        found: dict[str, pa.Table] = {}
        for name in sorted(self.files, reverse=True):  # Parquet before CSV
            path = PurePosixPath(name)
            if path.name.startswith(PARENTS) and path.suffix in (".csv", ".parquet") and path.stem not in found:
                place = self.folder / name
                found[path.stem] = read_table(place, kind=path.suffix[1:], attributes=column_names(place))
        return {name.removeprefix(PARENTS): table for name, table in found.items()}


def open_release(folder: str | Path, *, ledger: str | Path | None = None) -> ReleaseFolder:
    """The release in `folder`, or an error that says what is wrong with it.

    Parameters
    ----------
    folder : the folder that holds `release.json`.
    ledger : the ledger that paid for it; its hashes find a forged `release.json`.
    """
    folder = Path(folder)
    about = _manifest(folder)
    listed = dict(about["files"])
    odd = [name for name in listed if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    there = {} if odd else fingerprints(folder)
    links = [name for name in there if (folder / name).is_symlink()]
    missing = [name for name in listed if name not in there]
    changed = [name for name in listed if name in there and there[name] != listed[name]]
    for what, names in (
        ("names files outside its folder", odd),
        ("has links for files", links),
        ("lacks files that it lists", missing),
        ("has files that were changed after they were released", changed),
    ):
        if names:
            some = f"{', '.join(map(repr, names[:3]))}{', ...' * (len(names) > 3)}"
            raise DataError(
                f"The release in {str(folder)!r} {what}: {some}.",
                "Only files as they were released are published further.",
                "Copy the folder again from where it was released.",
                about="release",
            )
    if ledger is not None:
        with Ledger.open(ledger, read_only=True) as book:
            wrong = check_release(book, folder / MANIFEST)
        if wrong:
            raise PrivacyError(
                f"The ledger does not confirm the release: {wrong}.",
                "A release is published further as its ledger line has it.",
                "Copy the folder again from where it was released.",
                about="release",
            )
    return ReleaseFolder(folder, about)


def open_releases(folder: str | Path, *, ledger: str | Path | None = None) -> list[ReleaseFolder]:
    """The release in `folder`; or, where that is the output of a plan, every release below it."""
    folder = Path(folder)
    below = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}")) if os.path.isdir(folder) else []  # noqa: PTH112
    if not below or os.path.isfile(folder / MANIFEST):  # noqa: PTH113
        return [open_release(folder, ledger=ledger)]
    return [open_release(place, ledger=ledger) for place in below if not place.name.startswith(".")]


def open_all(folders: Sequence[str | Path], *, ledger: str | Path | None = None) -> list[ReleaseFolder]:
    """The releases in several folders; one that is in two of them is one release."""
    found: dict[str, ReleaseFolder] = {}
    for release in (release for folder in folders for release in open_releases(folder, ledger=ledger)):
        found.setdefault(json.dumps(release.about, sort_keys=True), release)
    return list(found.values())


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        whole = about["format"] == FORMAT and isinstance(about["parameters"], dict) and about["files"].items()
        whole = whole and all(isinstance(text, str) for pair in about["files"].items() for text in pair)
        texts = (about["name"], about["dataset"], about["guarantee"]["sentence"], about["guarantee"]["definition"])
        whole = whole and isinstance(about["columns"], dict) and all(isinstance(text, str) for text in texts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DataError(
            f"{str(folder)!r} is not a release: it has no {MANIFEST} that can be read.",
            "A release is a folder that `discreet run` wrote, whole, or the output folder of a plan.",
            "Give for example out/jobs.",
            about="release",
        )
    return dict(about)


def _form(stem: str) -> int:
    return FORMS.index(stem) if stem in FORMS else len(FORMS)


def _in_order(place: str) -> tuple[int, str]:
    """Tables as the plan lists them: 2-place before 10-sector."""
    number = place.partition("-")[0]
    return (int(number) if number.isdigit() else 0, place)


def by_data_set(releases: Sequence[ReleaseFolder]) -> dict[str, list[ReleaseFolder]]:
    """The releases of each data set: a plan may have several sources."""
    found: dict[str, list[ReleaseFolder]] = {}
    for release in releases:
        found.setdefault(release.dataset, []).append(release)
    return found


def most_jobs(releases: Sequence[ReleaseFolder]) -> int | None:
    """The most jobs that one worker may have in any of the releases; None where that is not bounded, or not said."""
    every = [release.jobs for release in releases]
    return None if None in every else max(filter(None, every), default=1)


def one_data_set(releases: Sequence[ReleaseFolder]) -> str:
    """The data set that all releases are of."""
    names = sorted(by_data_set(releases))
    if len(names) > 1:
        raise DataError(
            f"The releases are of different data: {', '.join(map(repr, names))}.",
            "What is put together is of one data set, also where a plan has several sources.",
            "Give the folder of one release.",
            about="release",
        )
    return names[0]
