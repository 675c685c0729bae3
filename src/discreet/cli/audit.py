"""`discreet audit`: is the claim true? Verify a mechanism's loss exactly, or attack it as a black box."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.blackbox import blackbox_command
from discreet.cli.identification import identification_command
from discreet.cli.posterior_audit import posterior_command
from discreet.cli.requirements import requirements_command
from discreet.privacy.guarantee import Calibration
from discreet.tables.mechanisms.registry import named, private_names
from discreet.words.cases import case_of

if TYPE_CHECKING:
    from discreet.tables.mechanisms.mechanism import Mechanism

audit = typer.Typer(
    help="Check privacy claims: verification of mechanisms, black-box lower bounds.",
    epilog="Example: `discreet audit verify --mechanism polynomial --alpha 0.1 --epsilon 2`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
audit.command("blackbox")(blackbox_command)
audit.command("identification")(identification_command)
audit.command("posterior")(posterior_command)
audit.command("requirements")(requirements_command)


GRID = {"alpha": ("0.01", "0.1", "0.5", "1", "3", "10"), "epsilon": ("0.5", "1", "2", "4", "8.31", "19.16", "22.41")}
SOLVED = {
    "alpha": ("0.05", "0.1", "0.2"),
    "epsilon": ("0.5", "0.75", "1", "1.37", "2", "2.39", "2.4", "3", "4", "6"),
}
"""For laws from tables: those of the package, between them, and where a longer table begins."""

DELTAS = ("0.05", "1e-6", "1e-12")
"""Up to where the Tables paper's constants for Smooth Laplace are not enough."""


def _known(name: str) -> str:
    """The name of a mechanism that is known when the command runs."""
    if name not in private_names():
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, private_names()))}.")
    return name


@audit.command("verify")
def verify_command(
    mechanism: Annotated[
        str, typer.Option(help="Which count mechanism.", metavar=f"<{'|'.join(private_names())}>", callback=_known)
    ],
    alpha: Annotated[
        str, typer.Option(help="Share by which a workforce may grow without being noticed, e.g. 0.1.")
    ] = "0.1",
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one cell (of the vector, for a joint one).")] = "1",
    delta: Annotated[str | None, typer.Option(help="Failure probability; smooth-laplace only.")] = None,
    cells: Annotated[int, typer.Option(min=1, help="Counts of the same establishments; joint ones only.")] = 1,
    calibration: Annotated[Calibration, typer.Option(help="Our constants, or the Tables paper's.")] = "tight",
    substitution: Annotated[
        bool,
        typer.Option(
            "--substitution", help="Exchanging one worker costs one epsilon; one worker more or less costs half."
        ),
    ] = False,
    scale: Annotated[float, typer.Option(help="Share of the noise to keep; with 0.95 the claim must fail.")] = 1.0,
    grid: Annotated[bool, typer.Option("--grid", help="Many alphas and epsilons, large ones too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, or one a line.")] = False,
) -> None:
    """Find a count mechanism's worst privacy loss, and whether its claim is proved.

    Establishments of 0 to 1,000,000 workers, alone or beside others, grow by alpha or by one worker. The worst log
    ratio over all outputs is compared with the claim. "holds" is said where a check leaves no neighbours and no outputs
    out; otherwise nothing was found by a search, which is no proof. Drawn integers are compared with the stated
    probabilities. The exit code is 0 only for "holds". --grid tries many alphas and epsilons (and deltas) on
    establishments of up to 150 workers; for `ladder` and `two-sizes` up to 270, beyond their tables.

    Example: `discreet audit verify --mechanism polynomial --alpha 0.1 --epsilon 2`
    """
    from discreet.privacy.exchange import one_worker
    from discreet.privacy.losses import Pure
    from discreet.privacy.neighbours import neighbouring_cells
    from discreet.privacy.units import Establishments
    from discreet.privacy.verify import verify
    from discreet.tables.calibration import calibrate
    from discreet.words.errors import Infeasible, PrivacyError

    if not 0 < scale < float("inf"):
        raise PrivacyError(
            f"--scale {scale} leaves no noise to verify.",
            "It is a share above 0.",
            "Use 1, or 0.95 to test.",
            about="scale",
        )

    def build(alpha: str, epsilon: str, delta: str | None) -> Mechanism:
        unit = Establishments(alpha, substitution=substitution)
        built = calibrate(mechanism, unit=unit, epsilon=epsilon, delta=delta, calibration=calibration, cells=cells)
        return built.scaled(scale)

    if grid:
        unproved = False
        deltas = DELTAS if named(mechanism).needs_delta else (None,)
        points, largest = (SOLVED, 270) if mechanism in ("ladder", "two-sizes") else (GRID, 150)
        for a, e, d in product(points["alpha"], points["epsilon"], deltas):
            point = {"mechanism": mechanism, "calibration": calibration, "alpha": a, "epsilon": e, "delta": d}
            found: dict[str, object]
            try:
                ready = build(a, e, d)
            except Infeasible as error:
                outcome, found = "refused", {"why": str(error)}
            else:
                verdict = verify(ready, neighbours=neighbouring_cells(ready.unit, largest=largest))
                outcome, found = verdict.outcome, verdict.to_dict()
                unproved |= not verdict.holds
            if as_json:
                typer.echo(json.dumps({**point, "outcome": outcome, **found}))
            else:
                asked = f"alpha {a:>5}  epsilon {e:>5}" + (f"  delta {d:>5}" if d else "")
                worst = f"worst loss {found['worst_loss']:.7g}" if "worst_loss" in found else ""
                worst += f", delta {found['worst_delta']:.4g}" if d and worst else ""
                typer.echo(f"{asked}  {outcome:8}  {worst}".rstrip())
        raise typer.Exit(1 if unproved else 0)

    built = build(alpha, epsilon, delta)
    verdict = verify(built)
    result: dict[str, Any] = {"mechanism": mechanism, "alpha": alpha, "calibration": calibration, "scale": scale}
    result |= verdict.to_dict()
    if as_json:
        typer.echo(json.dumps(result))
    else:
        typer.echo(f"{mechanism} ({calibration}), alpha={alpha}, claimed {verdict.claimed}: {verdict.outcome}")
        typer.echo(f"  worst loss    {verdict.worst_loss:.7g}")
        if delta is not None:
            typer.echo(f"  worst delta   {verdict.worst_delta:.7g}")
        if verdict.worst_rounded_loss is not None:
            typer.echo(f"  as integers   {verdict.worst_rounded_loss:.7g}")
        typer.echo(f"  at            {verdict.witness}")
        every = case_of(verdict.evidence, {"proved": " and all others", "searched": "", "unknown": ""})
        typer.echo(f"  neighbours    {verdict.neighbours:,}{every}")
        typer.echo(f"  drawn         {verdict.drawn}")
        if isinstance(built.loss, Pure) and verdict.holds:  # what a search found bounds nothing
            typer.echo(f"  one worker    {one_worker(built)}")
    raise typer.Exit(0 if verdict.holds else 1)
