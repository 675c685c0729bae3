"""`discreet audit posterior`: what does one row show in the posterior of a mixed model?"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.words.progress import progress_bar


def posterior_command(
    formula: Annotated[str, typer.Argument(help="One random intercept, quoted: 'y ~ x + (1 | g)'.")],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file.")],
    nu: Annotated[float, typer.Option(help="Degrees of freedom of both variances' priors.")] = 12.0,
    scale: Annotated[float, typer.Option("--v", help="Scale V of both variances' priors.")] = 0.104,
    sd: Annotated[float, typer.Option(help="Prior deviation of every fixed effect.")] = 1.0,
    bins: Annotated[int, typer.Option(help="Bins of equal probability.")] = 20,
    draws: Annotated[
        int, typer.Option(help="Also the published method, with so many draws and 32 influential rows; 0 for none.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Delete every row in turn and measure how far the posterior of each random effect moves.

    The result is an empirical epsilon: a figure about these data, never a guarantee. It names rows and groups, so it
    is as confidential as the data.

    Example: `discreet audit posterior 'jcr ~ 0 + industry + quarter + (1 | county)' flows/qwi.parquet`
    """
    from discreet.audit.influential import monte_carlo_audit
    from discreet.audit.posterior import audit_posterior, refuse_other_fits
    from discreet.models.bayes.blmm import BayesMixed, ConvergenceWarning, Prior, bayes_mixed
    from discreet.words.errors import FitError, PlanError

    try:
        prior = Prior(V=scale, nu=nu, sd=sd)
    except FitError as error:
        raise PlanError(*error.faults) from None  # a wrong option, not a fit that failed
    with progress_bar() as bar:
        task = bar.add_task("fitting", total=1.0)
        model = bayes_mixed(formula, data, prior=prior)
        refuse_other_fits(model)
        assert isinstance(model, BayesMixed)
        bar.update(task, description="deleting every row in turn")
        found = audit_posterior(model, bins=bins, progress=lambda _, share: bar.update(task, completed=share))
        told: dict[str, Any] = {"formula": formula, "prior": str(prior), **found.to_dict()}
        if draws:
            bar.update(task, description="sampling without influential rows", completed=0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the text and the JSON carry the same notes
                sampled = monte_carlo_audit(
                    model,
                    draws=draws,
                    bins=bins,
                    seed=seed,
                    progress=lambda _, share: bar.update(task, completed=share),
                )
            told["monte_carlo"] = sampled.to_dict()
    if as_json:
        from discreet.pages.numbers import finite

        typer.echo(json.dumps(finite(told)))
        return
    typer.echo(f"{formula}, {prior}\n{found}")
    typer.echo(f"{'row':>10}  {'group':<20}{'rows':>8}{'own':>10}{'elsewhere':>11}")
    for finding in found.findings[:10]:
        sizes = f"{finding.group_rows:>8,}{finding.own:>10.4f}{finding.elsewhere:>11.4f}"
        typer.echo(f"{finding.row:>10}  {finding.group:<20}{sizes}")
    if draws:
        typer.echo(f"published method: {sampled.epsilon:.4g}, of which chance alone gives {sampled.noise_floor:.4g}")
        for note in sampled.benchmark.notes:
            typer.echo(note)
