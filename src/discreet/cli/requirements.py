"""`discreet audit requirements`: what an informed attacker can learn at most, by scheme."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def requirements_command(
    alpha: Annotated[str, typer.Option(help="Share to which an establishment's size is to be hidden.")] = "0.1",
    epsilon: Annotated[str, typer.Option(help="Privacy loss of the chart of beliefs; --out only.")] = "1",
    out: Annotated[Path | None, typer.Option(help="Also write a page with tables and a chart to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Compute which schemes satisfy the requirements on individuals, employer size and employer shape.

    The requirements are Definitions 4.1 to 4.3 of Haney et al. (2017), and the answer their Table 1: the worst log
    Bayes factor of an attacker who knows everything but one thing, as a multiple of epsilon, under noise infusion, edge
    and node differential privacy and both employer-employee definitions. No data are read.

    Example: `discreet audit requirements --alpha 0.1`
    """
    from rich.console import Console
    from rich.table import Table

    from discreet.privacy.losses import Pure
    from discreet.privacy.requirements import PAPER, REQUIREMENTS, table_1
    from discreet.privacy.units import Establishments
    from discreet.report.requirements import NOTES, cell, requirements_page
    from discreet.words.errors import DataError

    Establishments(alpha), Pure(epsilon)  # refuse both before anything is computed
    if out is not None and (out.is_dir() or not out.resolve().parent.is_dir()):
        raise DataError(
            f"--out {str(out)!r} cannot be a file: it is a folder, or its folder does not exist.",
            "A page is one file in a folder that exists.",
            "Use for example --out requirements.html.",
            about="out",
        )
    with Console(stderr=True).status("computing"):
        rows = table_1(alpha=alpha)
    if out is not None:
        requirements_page(rows, alpha=alpha, epsilon=epsilon).write(out)
    if as_json:
        typer.echo(json.dumps({"alpha": alpha, "schemes": [row.to_dict() for row in rows]}, indent=2))
        return
    shown = Table("scheme", *REQUIREMENTS, "the paper", title="Worst log Bayes factor (Table 1)", title_justify="left")
    for row in rows:
        shown.add_row(row.name, *(cell(row, i) for i in range(len(REQUIREMENTS))), ", ".join(PAPER[row.name]))
    console = Console(highlight=False)
    console.print(shown)
    console.print(NOTES)
    if out is not None:
        typer.echo(f"Page: {out}")
