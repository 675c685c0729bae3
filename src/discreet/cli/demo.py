"""`discreet demo`: the main job, from nothing, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo writes.")] = Path("discreet-demo"),
    share: Annotated[float, typer.Option(help="Size of the simulated data; 1 is 10.9 million jobs.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data. The noise is never seeded.")] = 1,
) -> None:
    """Simulate jobs, carry out a plan, verify it, and attack the release beside noise infusion; in under a minute.

    Writes the data, a plan to play with, the ledger, the released tables, a reviewer's bundle and a report.

    Example: `discreet demo --out out/demo`
    """
    from discreet import demo as job

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with console.status("running the demo"):
        outcome = job.run(out, share=share, seed=seed, tell=console.print)
    folder = outcome.folder
    typer.echo(f"Open {folder / 'report.html'} in a browser. Then try:")
    typer.echo(f"  discreet ledger show {folder / 'ledger.db'}")
    typer.echo(f"  discreet verify {folder / 'release' / 'bundle.zip'}")
    typer.echo(f"  discreet check {folder / 'plan.toml'}        after changing it")
