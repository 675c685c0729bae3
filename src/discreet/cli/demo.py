"""`discreet demo`: the main job, from nothing, in under a minute."""

from __future__ import annotations

import shlex
import shutil
import sysconfig
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.words import extras


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo writes.")] = Path("discreet-demo"),
    share: Annotated[float, typer.Option(help="Size of the simulated data; 1 is 10.9 million jobs.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data. The noise is never seeded.")] = 1,
) -> None:
    """Simulate jobs, carry out a plan, verify it, and attack the release and noise infusion; in under a minute.

    Writes the data, a plan to play with, the ledger, the released tables, a reviewer's bundle and a report.

    Example: `discreet demo --out out/demo`
    """
    from discreet import demo as job

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with console.status("running the demo"):
        outcome = job.run(out, share=share, seed=seed, tell=console.print)
    folder = outcome.folder
    steps = {
        f"ledger show {_quoted(folder / 'ledger.db')}": "what was spent",
        f"verify {_quoted(folder / 'release' / 'bundle.zip')}": "what a reviewer checks",
        f"check {_quoted(folder / 'plan.toml')}": "what the plan would cost after you change it",
        "serve --demo": "the same in a browser",
    }
    width = max(map(len, steps)) + 4
    typer.echo(f"Open {folder / 'report.html'} in a browser. Then try:")
    for step, why in steps.items():
        typer.echo(f"  {program()} {step:<{width}}{why}")


def program() -> str:
    """The command that starts this program in the reader's shell: its name if the shell finds it, else the path."""
    scripts = sysconfig.get_path("scripts")
    own, found = shutil.which("discreet", path=scripts), shutil.which("discreet")
    if own is None:
        return f"{extras.python()} -m discreet"
    return "discreet" if found and Path(found).samefile(own) else _quoted(Path(own))


def _quoted(path: Path) -> str:
    return shlex.quote(extras.shown(path))
