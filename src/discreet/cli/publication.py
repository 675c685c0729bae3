"""`discreet publish` and `discreet site`: a release in the formats of agencies' sites, and as a site of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.faults import faults_as_json

if TYPE_CHECKING:
    from discreet.publication.publish import Publication

Release = Annotated[Path, typer.Argument(help="Folder of a release, or the output folder of a plan.")]
Out = Annotated[Path, typer.Option(help="A new folder.")]
Formats = Annotated[
    str,
    typer.Option(help="Some of csv, parquet, xlsx, csvw, sdmx, with commas between."),
]
Form = Annotated[
    str | None, typer.Option(help="basic: labels and rounded counts; research: as drawn. [default: basic, if released]")
]
Title = Annotated[str, typer.Option(help="Title for readers.")]
Publisher = Annotated[str, typer.Option(help="The agency's name.")]
Contact = Annotated[str, typer.Option(help="E-mail or web address for questions.")]
Licence = Annotated[str, typer.Option(help="Web address of the licence.")]
Agency = Annotated[str, typer.Option(help="The agency's identifier in SDMX.")]
Period = Annotated[str, typer.Option(help="The period of the numbers: 2026, 2026-Q1, 2026-03.")]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger that paid: finds a forged release.json too.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what this command wrote there before.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _command(written: str, default: str) -> Callable[[Callable[[Publication], None]], Callable[..., None]]:
    """A command that writes a release with `discreet.publication.{written}`, under the words of the function below.

    That function says what comes after it, only in text.
    """

    def command(after: Callable[[Publication], None]) -> Callable[..., None]:
        def run(
            release: Release,
            out: Out,
            formats: Formats = default,
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
            with faults_as_json(as_json):
                from discreet.publication.imprint import Imprint

                module, _, function = written.rpartition(".")
                write = getattr(import_module(f"discreet.publication.{module}"), function)
                imprint = Imprint(title, publisher, contact, licence, period, agency)
                chosen = [name.strip() for name in formats.split(",") if name.strip()]
                done = write(release, out, formats=chosen, form=form, imprint=imprint, ledger=ledger, force=force)
            _say(done, as_json)
            if not as_json:
                after(done)

        run.__doc__, run.__name__ = after.__doc__, after.__name__
        return run

    return command


@_command("publish.publish_files", "csv,parquet,csvw")
def publish(done: Publication) -> None:
    """Write a release as CSV, Parquet, Excel, CSVW or SDMX, with code lists, quality flags and guarantee.

    Only the folder of the release is read, so this costs no privacy. A release whose files were changed is refused. The
    output appears whole or not at all.

    Example: `discreet publish out/jobs --out site/data --formats csv,xlsx`

    For a statistics portal: `discreet publish out --out site/data --formats csvw,sdmx --period 2026-Q1`
    """


@_command("site.site", "csv,parquet,csvw,sdmx")
def site(done: Publication) -> None:
    """Write a web site of a release: searchable tables, downloads, method, guarantee, risks.

    The pages work from a disk, without a network, and on any web server. Only the folder of the release is read, so
    this costs no privacy. The output appears whole or not at all.

    Example: `discreet site out --out site --title "Jobs 2026"`
    """
    typer.echo(f"Open {done.folder / 'index.html'} in a browser, or copy the folder to a web server.")


def _say(done: Publication, as_json: bool) -> None:
    """What was written."""
    if as_json:
        typer.echo(json.dumps({"folder": str(done.folder), "tables": done.tables, "files": list(done.files)}, indent=2))
        return
    typer.echo(f"{done.tables:,} tables with {done.cells:,} rows are in {done.folder}:")
    for name in done.files:
        typer.echo(f"  {name}")
