"""The command tree and the one place where errors become words and exit codes."""

from __future__ import annotations

import os
import sys

import typer
from rich.console import Console

from discreet.cli.audit import audit
from discreet.cli.change import app as changes
from discreet.cli.demo import demo
from discreet.cli.fit import fit
from discreet.cli.ledger import ledger
from discreet.cli.plan import check, plan, run, verify
from discreet.cli.serve import serve
from discreet.cli.simulate import app as simulate
from discreet.cli.study import study
from discreet.errors import DataError, DiscreetError, FormulaError, MissingExtra, PlanError, PrivacyError

USAGE, FAILURE = 2, 1

app = typer.Typer(
    name="discreet",
    help="Publish statistics from confidential data: privacy proved, cost in accuracy shown first.",
    epilog="Example: `discreet demo --out out/demo` tells the whole story in under a minute.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo)
app.command("check")(check)
app.command("run")(run)
app.command("verify")(verify)
app.command("fit")(fit)
app.command("study")(study)
app.command("serve")(serve)
app.add_typer(plan, name="plan")
app.add_typer(simulate, name="simulate")
app.add_typer(audit, name="audit")
app.add_typer(changes, name="changes")
app.add_typer(ledger, name="ledger")


def main() -> None:
    """Run the command line. Wrong requests end with 2, failures with 1, and no traceback hides the reason."""
    try:
        app()
    except (DataError, FormulaError, PlanError, PrivacyError, MissingExtra) as error:
        _fail(error, USAGE)
    except DiscreetError as error:
        _fail(error, FAILURE)


def _fail(error: DiscreetError, code: int) -> None:
    if os.environ.get("DISCREET_TRACEBACK"):
        raise error
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"discreet: {error}")
    sys.exit(code)
