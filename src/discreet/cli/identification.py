"""`discreet audit identification`: what a release lets an attacker find out, at most and in simulated attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.faults import faults_as_json
from discreet.cli.publication import AsJson, LedgerPath


def identification_command(
    release: Annotated[Path, typer.Argument(help="Folder of a release, output folder of a plan, or a synthetic file.")],
    of: Annotated[
        Path | None,
        typer.Option("--of", help="With a synthetic file: the folder it was drawn from, to attack that too."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated attacks.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write a page with both tables to this file.")] = None,
    ledger: LedgerPath = None,
    as_json: AsJson = False,
) -> None:
    """Report how sure somebody can become of a worker or an establishment, and what the paper's attacks achieve.

    The bounds follow from the guarantee and hold for everything that is computed from the release, such as a synthetic
    file. The attacks of Haney et al. (2017, section 5.2) run on a stand-in of the published shape, drawn again with
    the release's mechanism, and on noise infusion. Flows, models and posterior summaries are attacked by somebody who
    knows everything but one establishment or one response. Data sets of one plan are reported one by one: their losses
    are of different people. Only the folder of the release is read.

    Example: `discreet audit identification out`
    """
    from rich.console import Console
    from rich.table import Table

    with faults_as_json(as_json):
        from discreet.audit.identification import identification, of_synthetic
        from discreet.publication.pages import identification_blocks
        from discreet.release.folder import by_data_set, open_releases
        from discreet.report.page import Heading, Page
        from discreet.report.page import Table as Shown

        synthetic = release.is_file()
        folders = None if synthetic and of is None else open_releases(of or release, ledger=ledger)
        if synthetic:
            found = {release.name: of_synthetic(release, folders, seed=seed)}
        else:
            found = {data: identification(mine, seed=seed) for data, mine in by_data_set(folders or []).items()}
        blocks = {name: list(identification_blocks(each)) for name, each in found.items()}
        several = len(found) > 1
        if out is not None:
            whole = [part for name, each in blocks.items() for part in ([Heading(name)] if several else []) + each]
            losses = "; ".join(f"{name}: {each.loss}" if several else str(each.loss) for name, each in found.items())
            Page(f"What {release.name} lets somebody find out", whole, losses).write(out)
    if as_json:
        told = {name: each.to_dict() for name, each in found.items()}
        typer.echo(json.dumps({"datasets": told} if several else next(iter(told.values())), indent=2))
        return
    console = Console(highlight=False)
    for name, each in blocks.items():
        if several:
            typer.echo(f"Data set {name}")
        for block in each:
            if isinstance(block, Shown):
                shown = Table(*block.columns, title=block.caption, title_justify="left")
                for row in block.rows:
                    shown.add_row(*("" if value is None else str(value) for value in row))
                console.print(shown)
        for note in found[name].notes:
            typer.echo(note)
    if out is not None:
        typer.echo(f"Page: {out}")
