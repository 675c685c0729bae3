"""The files of a publication: tables in the formats asked for, their metadata, and a list of all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from discreet.publication.codes import CodeList, code_lists
from discreet.publication.csvw import METADATA, csvw
from discreet.publication.imprint import Imprint
from discreet.publication.place import new_folder, refuse_place
from discreet.publication.sdmx import STRUCTURE, sdmx_csv, structure, with_total
from discreet.release.alarms import open_alarms
from discreet.release.files import MANIFEST
from discreet.release.folder import PublishedTable, ReleaseFolder, by_data_set, open_releases, refuse_inside
from discreet.release.tables import write_table
from discreet.results import EXCEL_HOLDS, EXCEL_ROWS, changed_in_excel, write_excel
from discreet.words.errors import DataError
from discreet.words.faults import Key
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa

PublicationFormat: TypeAlias = Literal["csv", "parquet", "xlsx", "csvw", "sdmx"]
FORMATS: dict[PublicationFormat, str] = {
    "csv": "comma-separated text",
    "parquet": "Apache Parquet",
    "xlsx": "an Excel book, with a sheet about the guarantee",
    "csvw": "CSV with W3C metadata and code lists",
    "sdmx": "SDMX-CSV 2.0 with an SDMX-ML 3.0 structure",
}
CODES = "codes"


@dataclass(frozen=True, slots=True)
class Publication:
    """What was written."""

    folder: Path
    files: tuple[str, ...]
    tables: int
    cells: int


def publish_files(
    release: str | Path,
    out: str | Path,
    *,
    formats: Sequence[str] = ("csv", "parquet", "csvw"),
    form: str | None = None,
    imprint: Imprint | None = None,
    ledger: str | Path | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Publication:
    """Write a release, or all releases of a plan, in formats that an agency's site takes.

    Only the release's folder is read: this costs no privacy. A release whose files were changed is refused.

    Parameters
    ----------
    release : the folder of a release, or the output folder of a plan.
    out : a new folder.
    formats : some of `FORMATS`.
    form : "basic", with labels and rounded counts, or "research", as drawn; the former where there is one.
    imprint : who publishes, under which licence, whom to ask.
    ledger : the ledger that paid; it finds a forged `release.json`.
    force : replace what an earlier call wrote at `out`, if nobody changed it.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The folder and its files.
    """
    chosen, out, imprint = _chosen(formats), Path(out), imprint or Imprint()
    refuse_inside(out, release)
    refuse_place(out, force=force)
    releases = open_releases(release, ledger=ledger)
    tables = [(known, of, of.read()) for known in releases for of in known.tables(form)]
    alarms = open_alarms(release)
    _fits(tables, chosen)
    lists = code_lists(releases, [(of, table) for _, of, table in tables])
    about = {
        "data": data_of(releases),
        "imprint": imprint.to_dict(),
        "releases": {known.name: {MANIFEST: _ledger_line(known), "guarantee": known.promise} for known in releases},
    }
    with new_folder(out, about=about, force=force) as folder:
        for done, (known, of, table) in enumerate(tables):
            progress(of.name, done / len(tables))
            _write(folder, known, of, table, chosen)
        for name, (_, table) in alarms.items():
            for kind in [kind for kind in ("csv", "parquet") if kind in chosen]:
                write_table(table, folder / f"alarms-{name}.{kind}")
        if "csvw" in chosen:
            _write_csvw(folder, releases, tables, lists, imprint)
        if "sdmx" in chosen:
            _write_sdmx(folder, releases, tables, lists, imprint)
        files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    return Publication(out, files, len(tables), sum(len(table) for _, _, table in tables))


def data_of(releases: Sequence[ReleaseFolder]) -> str | list[str]:
    """The name of the data that releases are of; of several, all names."""
    names = list(by_data_set(releases))
    return names[0] if len(names) == 1 else names


_Tables: TypeAlias = "Sequence[tuple[ReleaseFolder, PublishedTable, pa.Table]]"


def _chosen(formats: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        known = "; ".join(f"{name}, {words}" for name, words in FORMATS.items())
        raise DataError(
            f"There is no format {', '.join(map(repr, unknown)) or 'in an empty list'}.",
            f"The formats are: {known}.",
            ("Give ", Key("formats"), " csv,xlsx for example."),
            about="formats",
        )
    both = [*formats, "csv"] if "csvw" in formats else list(formats)
    return tuple(dict.fromkeys(both))


def _fits(tables: _Tables, chosen: Sequence[str]) -> None:
    if "xlsx" not in chosen:
        return
    long = [of.name for _, of, table in tables if len(table) > EXCEL_ROWS]
    if long:
        raise DataError(
            f"{long[0]!r} has more rows than an Excel sheet.",
            f"A sheet has room for {EXCEL_ROWS:,}.",
            ("Leave xlsx out of ", Key("formats"), "."),
            about="formats",
        )
    for _, of, table in tables:
        column = changed_in_excel(table)
        if column is not None:
            raise DataError(
                f"A label of column {column!r} of {of.name!r} does not fit in an Excel file.",
                EXCEL_HOLDS,
                ("Leave xlsx out of ", Key("formats"), "."),
                about="formats",
            )


def _ledger_line(release: ReleaseFolder) -> Any:
    return release.about.get("ledger")


def about_table(release: ReleaseFolder, of: PublishedTable) -> dict[str, str]:
    """Notes that a reader of one table needs."""
    level = {} if release.level is None else {"interval level": str(float(release.level))}
    columns = {f"column {name}": meaning for name, meaning in of.columns.items() if meaning}
    return {
        "release": release.name,
        "data": release.dataset,
        "form": of.form,
        "guarantee": release.promise,
        **level,
        **columns,
    }


def _write(folder: Path, release: ReleaseFolder, of: PublishedTable, table: pa.Table, chosen: Sequence[str]) -> None:
    about = about_table(release, of)
    if "csv" in chosen:
        write_table(table, folder / f"{of.name}.csv")
    if "parquet" in chosen:
        told = {f"discreet {name}": text for name, text in about.items()}
        write_table(table.replace_schema_metadata(told), folder / f"{of.name}.parquet")
    if "xlsx" in chosen:
        write_excel(table, folder / f"{of.name}.xlsx", about)


def _write_csvw(
    folder: Path, releases: Sequence[ReleaseFolder], tables: _Tables, lists: Sequence[CodeList], imprint: Imprint
) -> None:
    import pyarrow as pa

    (folder / CODES).mkdir()
    files = {}
    for number, codes in enumerate(lists, start=1):
        table = pa.table(
            {codes.attribute: pa.array(codes.values), **{k: pa.array(v) for k, v in codes.parents.items()}}
        )
        url = f"{CODES}/{number}-{_plain(codes.attribute)}.csv"
        write_table(table, folder / url)
        files[url] = codes, table
    published = {f"{of.name}.csv": (of, table) for _, of, table in tables}
    text = json.dumps(csvw(releases, published, files, imprint), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / METADATA).write_text(text + "\n", encoding="utf-8")


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name).strip("-").lower() or "attribute"


def _write_sdmx(
    folder: Path, releases: Sequence[ReleaseFolder], tables: _Tables, lists: Sequence[CodeList], imprint: Imprint
) -> None:
    pairs = [(of, table) for _, of, table in tables]
    known = with_total(lists, [of for of, _ in pairs])
    for release, of, table in tables:
        write_table(sdmx_csv(release, of, table, known, imprint), folder / f"{of.name}.sdmx.csv")
    (folder / STRUCTURE).write_text(structure(releases, pairs, known, imprint), encoding="utf-8")
