"""`discreet fit`: a linear mixed model from the command line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def fit(
    formula: Annotated[str, typer.Argument(help="lme4's syntax, quoted: 'y ~ x + (1 | g)'.")],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file; scanned once, never loaded whole.")],
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of REML.")] = False,
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95 % profile intervals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimates as JSON.")] = False,
) -> None:
    """Fit a linear mixed model by REML, with lme4's syntax and lme4's numbers.

    Example: `discreet fit 'jcr ~ 0 + industry + quarter + (1 | county)' flows/qwi.parquet`
    """
    from discreet.mixed import MixedWarning, mixed

    with Console(stderr=True).status("Fitting"), warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # the summary and the JSON carry the same notes
        found = mixed(formula, data, method="ML" if ml else "REML")
        ends = found.intervals() if intervals else {}
    if as_json:
        typer.echo(json.dumps(found.to_dict() | ({"intervals": ends} if intervals else {}), indent=2))
        return
    typer.echo(found.summary())
    if intervals:
        typer.echo("\n95 % profile intervals:")
        for name, (low, high) in ends.items():
            typer.echo(f" {name}  {low:.5g}  {high:.5g}")
