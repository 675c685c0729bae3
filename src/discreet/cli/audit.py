"""`discreet audit`: is the claim true? Verify a mechanism's loss exactly, or attack it as a black box."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from discreet.cli.blackbox import blackbox_command
from discreet.cli.posterior_audit import posterior_command
from discreet.privacy.guarantee import Calibration
from discreet.tables.calibration import PrivateName

audit = typer.Typer(
    help="Check privacy claims: exact verification of mechanisms, black-box lower bounds.",
    epilog="Example: `discreet audit verify --mechanism polynomial --alpha 0.1 --epsilon 2`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
audit.command("blackbox")(blackbox_command)
audit.command("posterior")(posterior_command)


@audit.command("verify")
def verify_command(
    mechanism: Annotated[PrivateName, typer.Option(help="Which count mechanism.")],
    alpha: Annotated[str, typer.Option(help="Share by which a workforce may change unnoticed, e.g. 0.1.")] = "0.1",
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one cell (of the vector, for a joint one).")] = "1",
    delta: Annotated[str | None, typer.Option(help="Failure probability; smooth-laplace only.")] = None,
    cells: Annotated[int, typer.Option(min=1, help="Counts of the same establishments; joint-polynomial only.")] = 1,
    calibration: Annotated[Calibration, typer.Option(help="Our constants, or the Tables paper's.")] = "tight",
    scale: Annotated[float, typer.Option(help="Share of the noise to keep: 0.95 must be found out.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find a count mechanism's worst privacy loss over all neighbouring data, exactly.

    Establishments of 0 to 1,000,000 workers, alone or beside others, are grown by alpha or by one worker; the worst
    log ratio over all outputs is compared with the claim. Ends with 1 when the claim is refuted.

    Example: `discreet audit verify --mechanism polynomial --alpha 0.1 --epsilon 2`
    """
    from discreet.errors import PrivacyError
    from discreet.privacy.units import Establishments
    from discreet.privacy.verify import verify
    from discreet.tables.calibration import calibrate

    if not 0 < scale < float("inf"):
        raise PrivacyError(f"--scale {scale} leaves no noise to verify. It is a share above 0. Use 1, or 0.95 to test.")
    unit = Establishments(alpha)
    built = calibrate(mechanism, unit=unit, epsilon=epsilon, delta=delta, calibration=calibration, cells=cells)
    verdict = verify(built.scaled(scale))
    result: dict[str, Any] = {"mechanism": mechanism, "alpha": alpha, "calibration": calibration, "scale": scale}
    result |= verdict.to_dict()
    if as_json:
        typer.echo(json.dumps(result))
    else:
        word = "holds" if verdict.holds else "VIOLATED"
        typer.echo(f"{mechanism} ({calibration}), alpha={alpha}, claimed {verdict.claimed}: {word}")
        typer.echo(f"  worst loss    {verdict.worst_loss:.7g}")
        if delta is not None:
            typer.echo(f"  worst delta   {verdict.worst_delta:.7g}")
        if verdict.worst_rounded_loss is not None:
            typer.echo(f"  as integers   {verdict.worst_rounded_loss:.7g}")
        typer.echo(f"  at            {verdict.witness}")
        typer.echo(f"  neighbours    {verdict.neighbours:,}")
    raise typer.Exit(0 if verdict.holds else 1)
