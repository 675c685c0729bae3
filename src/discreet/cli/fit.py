"""`discreet fit`: a linear mixed model from the command line, as it is or under differential privacy."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from discreet.models.linear.families import registry
from discreet.words.cases import case_of
from discreet.words.progress import part, silent, watched

PRIVATE = "Private release"
UNCOUNTED = (
    "No ledger was named, so this release is counted nowhere: the next one of these data adds to its loss, and nothing "
    "will stop it. Add --ledger book.db --dataset flows --budget 4."
)


def fit(
    formula: Annotated[str, typer.Argument(help="lme4's syntax, quoted: 'y ~ x + (1 | g)'.")],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file; scanned once, never loaded whole.")],
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of REML.")] = False,
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95 % profile intervals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimates as JSON.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write a page with tests, residuals, quantiles, effects and influential rows; its folders are made.",
            metavar="HTML",
        ),
    ] = None,
    family: Annotated[
        str, typer.Option(help=f"gaussian, or by maximum likelihood: {', '.join(registry.fitted())}.")
    ] = "gaussian",
    exposure: Annotated[
        str | None, typer.Option(help="With counts and amounts: the column they are proportional to.")
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(help="By maximum likelihood: points of the adaptive quadrature; 1 is Laplace's approximation."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="The column of prior weights; with shares, of the numbers of trials.")
    ] = None,
    missing: Annotated[
        Literal["error", "drop"],
        typer.Option(
            help="Rows with missing values (empty, or NA among the numbers of a CSV file) are an error, or left out."
        ),
    ] = "error",
    contrasts: Annotated[
        list[str] | None,
        typer.Option(help="Coding of factors: sum, helmert, or of one: sex=sum. Repeat for several."),
    ] = None,
    residual_by: Annotated[
        str | None, typer.Option(help="A column; each of its levels gets its own residual variance.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Answer by the posterior under this prior: 'sd=10; county=half-t(3, 0.5); Residual=pc(1, 0.05)'."
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Release privately: the loss of everything printed.", rich_help_panel=PRIVATE)
    ] = None,
    rho: Annotated[
        str | None, typer.Option(help="The same with Gaussian noise (zCDP).", rich_help_panel=PRIVATE)
    ] = None,
    draw: Annotated[
        str | None,
        typer.Option(
            help="Release one posterior draw under declared variances: 'Residual=0.03, county=0.01, sd=1'.",
            rich_help_panel=PRIVATE,
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(help="A column that everybody may know; once for each of the formula's.", rich_help_panel=PRIVATE),
    ] = None,
    method: Annotated[
        Literal["moments", "strict", "paper"],
        typer.Option(help="Noisy sums, or sub-sample and aggregate, proved or as published.", rich_help_panel=PRIVATE),
    ] = "moments",
    bounds: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="LOW HIGH", help="The range of responses, known without the data.", rich_help_panel=PRIVATE
        ),
    ] = None,
    clip: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="LOW HIGH", help="Pull responses into this tighter range.", rich_help_panel=PRIVATE),
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(help="A column that names a series: of autoregressive residuals, or of lag(y, 1); once for each."),
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column that counts periods of series.")] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that names who is protected, with all their rows; otherwise single rows are. Repeat for "
            "several.",
            rich_help_panel=PRIVATE,
        ),
    ] = None,
    blocks: Annotated[
        str, typer.Option(help="With strict or paper: optimal, most or a number.", rich_help_panel=PRIVATE)
    ] = "optimal",
    check: Annotated[
        bool,
        typer.Option("--check", help="Report expected errors and warnings; nothing is paid.", rich_help_panel=PRIVATE),
    ] = False,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger that pays: a file or a PostgreSQL address.", rich_help_panel=PRIVATE)
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Total loss that opens the data's budget there.", rich_help_panel=PRIVATE)
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data's name in the ledger, which needs one.", rich_help_panel=PRIVATE)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The release's name; a name is drawn once.", rich_help_panel=PRIVATE)
    ] = None,
) -> None:
    """Fit a linear mixed model by REML, with lme4's syntax and lme4's numbers; with --epsilon, release it privately.

    Example: `discreet fit 'jcr ~ 0 + industry + quarter + (1 | county)' flows/qwi.parquet`

    Example: `discreet fit 'jcr ~ 1 + (1 | county)' flows/qwi.parquet --epsilon 1 --public county --check`

    Example: `discreet fit 'jcr ~ quarter + (1 | county)' flows/qwi.parquet --report report.html`

    Example: `discreet fit 'jcr ~ quarter + (1 | county)' flows/qwi.parquet --missing drop`

    Example: `discreet fit 'jcr ~ 1 + (1 | county)' flows/qwi.parquet --epsilon 1 --public county`
    """
    named = {
        "public": public or None,
        "bounds": bounds,
        "clip": clip,
        "protect": protect or None,
        "series": series or None,
        "time": time,
        "ledger": ledger,
        "budget": budget,
        "dataset": dataset,
        "name": name,
        "method": None if method == "moments" else method,
        "blocks": None if blocks == "optimal" else int(blocks) if blocks.isdigit() else blocks,
        "check": check or None,
    }
    given = {option: value for option, value in named.items() if value is not None}
    drops = case_of(missing, {"drop": True, "error": False})
    if draw is not None:
        others = {"method", "blocks", "protect", "series", "time"} & set(given)
        plain = (epsilon, ml, intervals, report, prior, contrasts, residual_by, points is not None, drops)
        if others or not registry.named(family).linear or any(plain):
            raise typer.BadParameter(
                "--draw goes with --rho, --public, --bounds, --clip and a ledger. Drop the others."
            )
        _draw(formula, data, as_json=as_json, declared=draw, asked=given | ({} if rho is None else {"rho": rho}))
        return
    if epsilon is None and rho is None:
        laws = {"residual_by": residual_by, "series": given.pop("series", None), "time": given.pop("time", None)}
        if given:
            raise typer.BadParameter(
                f"--{next(iter(given))} belongs to a private release, and no loss was named. Add --epsilon 1."
            )
        linear = registry.named(family).linear
        if linear and (exposure or points is not None):
            raise typer.BadParameter("--exposure and --points are not of the gaussian family. Add --family.")
        if not linear:
            if ml or prior or any(laws.values()):
                raise typer.BadParameter(
                    "--ml, --prior, --residual-by, --series and --time are of the gaussian family. Drop them."
                )
            asked: dict[str, Any] = {
                "exposure": exposure,
                "weights": weights,
                "contrasts": _contrasts(contrasts),
                "family": family,
            }
            asked |= {"missing": missing, "points": 1 if points is None else points}
            _fit(formula, data, intervals=intervals, as_json=as_json, report=report, asked=asked)
            return
        if prior is not None:
            if ml or intervals or report or weights or contrasts or missing == "drop" or any(laws.values()):
                raise typer.BadParameter("--prior goes with a formula and data alone. Drop the other options.")
            _posterior(formula, data, as_json=as_json, prior=prior)
            return
        if intervals and any(laws.values()):
            raise typer.BadParameter(
                "--intervals are of residuals that are independent, with one variance. Fixed effects have standard "
                "errors without them. Drop --intervals, or --residual-by, --series and --time."
            )
        own = {"method": "ML" if ml else "REML", "weights": weights, "contrasts": _contrasts(contrasts), **laws}
        _fit(formula, data, intervals=intervals, as_json=as_json, report=report, asked=own | {"missing": missing})
        return
    if points is not None or any((ml, intervals, report, weights, contrasts, residual_by, prior, drops)):
        raise typer.BadParameter(
            "--ml, --intervals, --report, --weights, --contrasts, --residual-by, --prior, --points and --missing are "
            "of the fit itself, not of a private release. Drop them."
        )
    given["family"] = family
    given |= {} if exposure is None else {"exposure": exposure}
    if given.pop("check", False):
        _check(formula, data, as_json=as_json, asked={"epsilon": epsilon, "rho": rho, **given})
        return
    _release(formula, data, as_json=as_json, asked={"epsilon": epsilon, "rho": rho, **given})


def _contrasts(given: list[str] | None) -> str | dict[str, str] | None:
    """One coding for all factors, or one for each that is named."""
    if not given:
        return None
    pairs = [text.partition("=") for text in given]
    if any(not equals for _, equals, _ in pairs):
        if len(given) > 1:
            raise typer.BadParameter("--contrasts is one coding for all factors, or sex=sum once for each factor.")
        return given[0]
    return {column.strip(): coding.strip() for column, _, coding in pairs}


def _fit(
    formula: str, data: Path, *, intervals: bool, as_json: bool, report: Path | None, asked: dict[str, Any]
) -> None:
    from discreet.models.linear import MixedWarning
    from discreet.models.mixed import mixed

    with watched(silent, "fitting") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # the summary and the JSON carry the same notes
        whole = 0.4 if intervals else 0.9 if report is not None else 1.0
        found = mixed(formula, data, progress=part(progress, 0.0, whole), **asked)
        ends = found.intervals(progress=part(progress, whole, 0.9)) if intervals else {}
        if report is not None:
            from discreet.report.diagnostics import fit_page

            progress("writing the report", 0.9)
            fit_page(found).write(report)
    if as_json:
        typer.echo(json.dumps(found.to_dict() | ({"intervals": ends} if intervals else {}), indent=2))
        return
    typer.echo(found.summary())
    if intervals:
        typer.echo("\n95 % profile intervals:")
        for name, (low, high) in ends.items():
            typer.echo(f" {name}  {low:.5g}  {high:.5g}")


def _posterior(formula: str, data: Path, *, as_json: bool, prior: str) -> None:
    from discreet.models.bayes.blmm import ConvergenceWarning, bayes_mixed
    from discreet.models.bayes.blmm.prior import prior_of_text

    law = prior_of_text(prior)
    with watched(silent, "computing the posterior") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the first line of the summary says it
        found = bayes_mixed(formula, data, prior=law, progress=progress)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())


def _check(formula: str, data: Path, *, as_json: bool, asked: dict[str, Any]) -> None:
    """The price and the expected error of a release, whoever pays."""
    from discreet.models.linear.private import release_mixed

    payer = ("ledger", "budget", "dataset", "name")
    with Console(stderr=True).status("Checking"):
        found = release_mixed.check(formula, data, **{key: value for key, value in asked.items() if key not in payer})
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


def _draw(formula: str, data: Path, *, as_json: bool, declared: str, asked: dict[str, Any]) -> None:
    """One posterior draw under declared variances."""
    from discreet.models.bayes.posterior_draw import release_draw

    known: dict[str, float] = {}
    for one in declared.split(","):
        name, _, number = (piece.strip() for piece in one.partition("="))
        try:
            known[name] = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"--draw has {one.strip()!r}. It has a number for each variance and for sd: 'Residual=0.03, sd=1'."
            ) from None
    if "sd" not in known:
        raise typer.BadParameter("--draw needs sd, the prior's deviation of the fixed effects: add sd=1.")
    sd = known.pop("sd")
    if asked.pop("check", False):
        kept = {key: value for key, value in asked.items() if key not in ("ledger", "budget", "dataset", "name")}
        found = release_draw.check(formula, data, variances=known, sd=sd, **kept)
        typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
        return
    with Console(stderr=True).status("Releasing"):
        drawn = release_draw(formula, data, variances=known, sd=sd, **asked)
    if "ledger" not in asked:
        typer.echo(UNCOUNTED, err=True)
    typer.echo(json.dumps(drawn.to_dict(), indent=2) if as_json else drawn.summary())


def _release(formula: str, data: Path, *, as_json: bool, asked: dict[str, Any]) -> None:
    from discreet.models.linear.private import release_mixed

    with Console(stderr=True).status("Releasing") as status:

        def progress(step: str, share: float) -> None:
            status.update(f"Releasing: {step}")

        found = release_mixed(formula, data, progress=progress, **asked)
    if "ledger" not in asked:
        typer.echo(UNCOUNTED, err=True)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())
