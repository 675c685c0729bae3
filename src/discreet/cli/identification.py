"""`discreet audit identification`: what a release lets an attacker find out, at most and in simulated attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.faults import faults_as_json
from discreet.cli.publication import AsJson, LedgerPath


def identification_command(
    release: Annotated[
        list[Path],
        typer.Argument(help="Folders of releases, output folders of plans; or one synthetic file.", show_default=False),
    ],
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
    knows everything but one establishment or one response. Data sets are reported one by one, and then the sum of their
    losses, which is what covers somebody who is in several. Where nothing is promised no bound is given. Only the
    folders of the releases are read.

    Example: `discreet audit identification out`
    """
    from rich.console import Console
    from rich.table import Table

    with faults_as_json(as_json):
        from discreet.audit.identification import Identification, in_several, of_data_sets, of_synthetic
        from discreet.pages.page import Block, Heading, Note, Page, Prose
        from discreet.pages.page import Table as Shown
        from discreet.publication.pages import identification_blocks, people_blocks
        from discreet.release.folder import open_all

        synthetic = len(release) == 1 and release[0].is_file()
        folders = None if synthetic and of is None else open_all([of] if of is not None else release, ledger=ledger)
        found: dict[str, Identification]
        if synthetic:
            found = {release[0].name: of_synthetic(release[0], folders, seed=seed)}
        else:
            found = of_data_sets(folders or [], seed=seed)
        blocks: dict[str, list[Block]] = {name: list(identification_blocks(each)) for name, each in found.items()}
        people, several = list(people_blocks(found)), len(found) > 1
        if out is not None:
            whole = [part for name, each in blocks.items() for part in ([Heading(name)] if several else []) + each]
            known = {name: each.said.loss for name, each in found.items() if each.said.promised}
            losses = "; ".join(f"{name}: {loss}" if several else str(loss) for name, loss in known.items())
            title = f"What {', '.join(each.name for each in release)} lets somebody find out"
            Page(title, [*whole, *people], losses).write(out)
    if as_json:
        told = {name: each.to_dict() for name, each in found.items()}
        summed = in_several(found)
        more = {} if summed is None else {"in_several": summed.to_dict()}
        typer.echo(json.dumps({"datasets": told} | more if several else next(iter(told.values())), indent=2))
        return
    console = Console(highlight=False)
    for name, each in [*blocks.items(), ("", people)]:
        if several and name:
            typer.echo(f"Data set {name}")
        for block in each:
            if isinstance(block, Shown):
                shown = Table(*block.columns, title=block.caption, title_justify="left")
                for row in block.rows:
                    shown.add_row(*("" if value is None else str(value) for value in row))
                console.print(shown)
            elif isinstance(block, Note) or (
                isinstance(block, Prose) and not found[name].said.beliefs and block.text == found[name].said.informed
            ):
                typer.echo(block.text)
        for note in found[name].notes if name else ():
            typer.echo(note)
    if out is not None:
        typer.echo(f"Page: {out}")
