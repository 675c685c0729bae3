"""`discreet publish` and `discreet site`: a release in the formats of agencies' sites, and as a site of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.faults import faults_as_json

if TYPE_CHECKING:
    from discreet.publication.publish import Publication

Release = Annotated[Path, typer.Argument(help="Folder of a release, or the output folder of a plan.")]
Out = Annotated[Path, typer.Option(help="A new folder.")]
Form = Annotated[
    str | None, typer.Option(help="basic: labels and rounded counts; research: as drawn. [default: basic, if released]")
]
Title = Annotated[str, typer.Option(help="What readers call it.")]
Publisher = Annotated[str, typer.Option(help="The agency's name.")]
Contact = Annotated[str, typer.Option(help="E-mail or web address for questions.")]
Licence = Annotated[str, typer.Option(help="Web address of the licence.")]
Agency = Annotated[str, typer.Option(help="The agency's identifier in SDMX.")]
Period = Annotated[str, typer.Option(help="What the numbers are about: 2026, 2026-Q1, 2026-03.")]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger that paid: finds a forged release.json too.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what this command wrote there before.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def publish(
    release: Release,
    out: Out,
    formats: Annotated[
        str, typer.Option(help="Some of csv, parquet, xlsx, csvw, sdmx, with commas between.")
    ] = "csv,parquet,csvw",
    form: Form = None,
    title: Title = "",
    publisher: Publisher = "",
    contact: Contact = "",
    licence: Licence = "",
    period: Period = "",
    agency: Agency = "DISCREET",
    ledger: LedgerPath = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a release as CSV, Parquet, Excel, CSVW or SDMX, with code lists, quality flags and guarantee.

    Only the folder of the release is read, so this costs no privacy. A release whose files were changed is refused. The
    output appears whole or not at all.

    Example: `discreet publish out/jobs --out site/data --formats csv,xlsx`

    For a statistics portal: `discreet publish out --out site/data --formats csvw,sdmx --period 2026-Q1`
    """
    with faults_as_json(as_json):
        from discreet.publication.imprint import Imprint
        from discreet.publication.publish import publish_files as written

        imprint = Imprint(title, publisher, contact, licence, period, agency)
        done = written(release, out, formats=_listed(formats), form=form, imprint=imprint, ledger=ledger, force=force)
    _say(done, as_json)


def site(
    release: Release,
    out: Out,
    formats: Annotated[
        str, typer.Option(help="Downloads: some of csv, parquet, xlsx, csvw, sdmx, with commas between.")
    ] = "csv,parquet,csvw,sdmx",
    form: Form = None,
    title: Title = "",
    publisher: Publisher = "",
    contact: Contact = "",
    licence: Licence = "",
    period: Period = "",
    agency: Agency = "DISCREET",
    ledger: LedgerPath = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a web site of a release: searchable tables, downloads, method, guarantee, risks.

    The pages work from a disk, without a network, and on any web server. Only the folder of the release is read, so
    this costs no privacy. The output appears whole or not at all.

    Example: `discreet site out --out site --title "Jobs 2026"`
    """
    with faults_as_json(as_json):
        from discreet.publication.imprint import Imprint
        from discreet.publication.site import site as written

        imprint = Imprint(title, publisher, contact, licence, period, agency)
        done = written(release, out, formats=_listed(formats), form=form, imprint=imprint, ledger=ledger, force=force)
    _say(done, as_json)
    if not as_json:
        typer.echo(f"Open {done.folder / 'index.html'} in a browser, or copy the folder to a web server.")


def _listed(formats: str) -> list[str]:
    return [name.strip() for name in formats.split(",") if name.strip()]


def _say(done: Publication, as_json: bool) -> None:
    """What was written."""
    if as_json:
        typer.echo(json.dumps({"folder": str(done.folder), "tables": done.tables, "files": list(done.files)}, indent=2))
        return
    typer.echo(f"{done.tables:,} tables with {done.cells:,} rows are in {done.folder}:")
    for name in done.files:
        typer.echo(f"  {name}")
