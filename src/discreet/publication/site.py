"""A web site of a release: pages, scripts and downloads in one folder, for any web server or none."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from discreet.audit.identification import of_data_sets
from discreet.publication.explorer import write_rows
from discreet.publication.imprint import Imprint
from discreet.publication.pages import address, overview, table_page
from discreet.publication.place import LIST, new_folder, refuse_place
from discreet.publication.publish import Publication, data_of, publish_files
from discreet.release.alarms import open_alarms
from discreet.release.folder import open_releases, refuse_inside
from discreet.report.alarms import AlarmTable

DATA, DOWNLOADS, SCRIPT, INDEX = "data", "downloads", "site.js", "index.html"


def site(
    release: str | Path,
    out: str | Path,
    *,
    formats: Sequence[str] = ("csv", "parquet", "csvw", "sdmx"),
    form: str | None = None,
    imprint: Imprint | None = None,
    ledger: str | Path | None = None,
    force: bool = False,
) -> Publication:
    """Write a web site of a release, or of all releases of a plan.

    Its pages work from a disk and without a network. Only the release's folder is read. The arguments are those of
    `publish_files`.
    """
    out, imprint = Path(out), imprint or Imprint()
    refuse_inside(out, release)
    refuse_place(out, force=force)
    releases = open_releases(release, ledger=ledger)
    tables = [(known, of, of.read()) for known in releases for of in known.tables(form)]
    made = version("discreet")
    found = of_data_sets(releases)
    about = {"data": data_of(releases), "imprint": imprint.to_dict(), "kind": "site"}
    with new_folder(out, about=about, force=force) as folder:
        done = publish_files(release, folder / DOWNLOADS, formats=formats, form=form, imprint=imprint, ledger=ledger)
        names = [*done.files, LIST]
        sizes = [(f"{DOWNLOADS}/{name}", (folder / DOWNLOADS / name).stat().st_size) for name in names]
        for known, of, table in tables:
            told = write_rows(folder / DATA, of.name, of, table)
            own = [pair for pair in sizes if pair[0].startswith(f"{DOWNLOADS}/{of.name}.")]
            html = table_page(known, of, table, told, own, imprint, made)
            (folder / address(of)).write_text(html, encoding="utf-8")
        pairs = [(of, table) for _, of, table in tables]
        alarms = [AlarmTable(name, *each) for name, each in open_alarms(release).items()]
        html = overview(releases, pairs, sizes, imprint, found, made, alarms=alarms)
        (folder / INDEX).write_text(html, encoding="utf-8")
        script = files("discreet.publication").joinpath(SCRIPT).read_text(encoding="utf-8")
        (folder / SCRIPT).write_text(script, encoding="utf-8")
        written = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    return Publication(out, written, len(tables), done.cells)
