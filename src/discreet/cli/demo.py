"""`discreet demo`: the main job, from nothing, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo writes.")] = Path("discreet-demo"),
    share: Annotated[float, typer.Option(help="Size of the simulated data; 1 is 10.9 million jobs.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data. The noise is never seeded.")] = 1,
) -> None:
    """Simulate jobs, check and release two tables of counts, and say where everything is.

    Example: `discreet demo --out my-demo`
    """
    from discreet import demo as job

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with console.status("running the demo"):
        outcome = job.run(out, share=share, seed=seed, tell=console.print)
    typer.echo(f"Open {outcome.folder / 'report.html'} in a browser; read the ledger with:")
    typer.echo(f"  discreet ledger show {outcome.folder / 'ledger.db'}")
