"""`discreet check`, `run` and `verify`: price a plan, carry it out, check what a reviewer was given."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from discreet.cli.faults import faults_as_json
from discreet.cli.new_plan import declare, join, new
from discreet.words.cases import case_of
from discreet.words.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table as RichTable

    from discreet.plan.check import PlanCheck
    from discreet.plan.run import RunResult
    from discreet.plan.sizes import TableCheck
    from discreet.tables.budget.division import BudgetAdvice

Error: TypeAlias = Literal["absolute", "relative"]
PlanPath = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan.toml.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

plan = typer.Typer(
    name="plan",
    help="Write, join and describe plans.",
    epilog="Example: `discreet plan schema > plan.schema.json`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


plan.command()(new)
plan.command()(join)
plan.command()(declare)


@plan.command()
def schema() -> None:
    """Print the JSON Schema of a plan, for editors that check while one types.

    Example: `discreet plan schema > plan.schema.json`
    """
    from discreet.plan.shape import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def check(
    path: PlanPath,
    owner: Annotated[
        bool, typer.Option("--owner", help="Also read the data, for their owner alone: no part of any release.")
    ] = False,
    advise: Annotated[
        Error | None,
        typer.Option("--advise", help="Also find the split of epsilon among tables with the least error of this kind."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price a plan: cost of every release, what the ledger has left, expected errors, feasibility.

    It spends nothing, and reads no confidential data without --owner. With --owner it looks for rows that are not as
    the plan says, for public columns that repeat the response, and for two sources with the same rows. It reports
    expected errors by the size of a cell's largest establishment; if the plan names a public table or an earlier
    release under [public], also for its cells. With --advise it reports, for releases of several tables, which to draw
    and what share of epsilon each should get, from these public sizes alone. The exit code is 2 when the plan cannot
    be run.

    Example: `discreet check out/demo/plan.toml`
    """
    from discreet.plan.check import check as checked
    from discreet.plan.reading import read_plan

    with faults_as_json(as_json, verdict="can_run"):
        found = checked(read_plan(path))
        notes = _owner_notes(found) if owner else []
        advice = _advice(found, advise) if advise else {}
    if as_json:
        told_advice = {name: each if isinstance(each, str) else each.to_dict() for name, each in advice.items()}
        more = ({"owner": notes} if owner else {}) | ({"advice": told_advice} if advise else {})
        verdict_there = {"can_run": False} if _refused(notes) else {}
        typer.echo(json.dumps(found.to_dict() | more | verdict_there, indent=2))
        if found.faults or _refused(notes):
            raise typer.Exit(2)
        return
    _print_check(found)
    if advise:
        nothing = {"": "no release of several tables is waiting; --advise divides epsilon among these."}
        for name, each in (advice or nothing).items():
            typer.echo(f"Advice{f' for {name}' if name else ''}: {each}\n")
    found.refuse()
    rows = f", if the data have enough rows for {', '.join(found.up_to_the_rows)}" if found.up_to_the_rows else ""
    verdict = "The plan cannot be run on these data." if _refused(notes) else f"The plan can be run{rows}."
    told = [found.file.document.located(fault).told() for fault in found.missing] or [verdict]
    read = "" if owner else "Nothing confidential was read; nothing"
    notes_first = [] if owner else [f"Note: {note}." for note in found.notes]
    typer.echo("\n".join([*notes_first, *told, f"{read or 'Nothing'} was written or spent."]))
    if owner:
        head = "For the owner of the data alone, and no part of any release:"
        typer.echo("\n".join(["", head, *(notes or ["no problem was found."])]))
    if _refused(notes):
        raise typer.Exit(2)


def _advice(found: PlanCheck, measure: Error) -> dict[str, BudgetAdvice | str]:
    """Advice takes a few seconds for each release."""
    from rich.console import Console

    from discreet.plan.advice import advice_of

    with Console(stderr=True).status("looking for the best split"):
        return advice_of(found, measure)


def _owner_notes(found: PlanCheck) -> list[str]:
    from discreet.plan.owner import owner_notes

    return [] if found.faults or found.missing else owner_notes(found.file)


def _refused(notes: list[str]) -> bool:
    from discreet.plan.owner import OwnerRefusal

    return any(isinstance(note, OwnerRefusal) for note in notes)


def run(
    path: PlanPath,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, the data included; write and spend nothing.")
    ] = False,
    changed_data: Annotated[
        bool,
        typer.Option("--changed-data", help="Resume a run although its data have changed since it was interrupted."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Carry a plan out: check, pay, draw, publish, report.

    Everything that can be wrong is found before anything is spent. A run that was interrupted is resumed by the same
    command: nothing is paid twice and nothing that was released changes.

    Example: `discreet run out/demo/plan.toml --dry-run`
    """

    from discreet.plan.run import run as carry_out

    with faults_as_json(as_json, verdict="can_run"), progress_bar() as bar:
        task = bar.add_task("read the plan", total=None)
        outcome = carry_out(
            path,
            dry_run=dry_run,
            changed_data=changed_data,
            progress=lambda step, share: bar.update(task, description=step, completed=share, total=1.0),
        )
    if as_json:
        typer.echo(json.dumps(outcome.to_dict(), indent=2))
    else:
        _print_outcome(outcome)


def verify(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A bundle.zip that `discreet run` wrote.")],
    ledger: Annotated[
        str | None, typer.Option(help="Also demand that this ledger is intact and contains the bundle's lines.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a reviewer's bundle: files, ledger lines, request, guarantees, mechanisms, tables, report.

    It needs no data and trusts nothing: it computes again all hashes and sums, the worst loss of every mechanism, the
    intervals and the report. The exit code is 1 when something is wrong. What a bundle cannot decide is listed as "not
    checked". Without --ledger it checks that the lines are sealed and consistent. Only the agency's ledger, or a hash
    of it that you know, proves that they are the agency's lines.

    Example: `discreet verify out/demo/release/bundle.zip --ledger out/demo/ledger.db`
    """
    from rich.console import Console

    from discreet.review.verdict import verify_bundle

    with faults_as_json(as_json, verdict="holds"), Console(stderr=True).status("verifying") as status:
        findings = verify_bundle(
            bundle, ledger=ledger, progress=lambda subject, _: status.update(f"verifying {subject}")
        )
    wrong, open_claims = (sum(found.state == state for found in findings) for state in ("WRONG", "not checked"))
    if as_json:
        rows = [
            {
                "subject": found.subject,
                "state": found.state.lower(),
                "holds": None
                if case_of(found.state, {"not checked": True, "WRONG": False, "holds": False})
                else found.holds,
                "finding": found.words,
            }
            for found in findings
        ]
        typer.echo(json.dumps({"holds": not wrong, "not_checked": open_claims, "findings": rows}, indent=2))
    else:
        for found in findings:
            typer.echo(f"{found.state:11}  {found.subject}: {found.words}")
        checked = len(findings) - wrong - open_claims
        typer.echo(
            f"{checked} {'claim holds' if checked == 1 else 'claims hold'}, {wrong} {'is' if wrong == 1 else 'are'} "
            f"wrong, {open_claims} {'was' if open_claims == 1 else 'were'} not checked."
        )
    raise typer.Exit(1 if wrong else 0)


def _print_check(found: PlanCheck) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from discreet.ledger.budget import amounts
    from discreet.tables.expected import SIZES, spans
    from discreet.tables.intervals.widths import AT, MANY, told_width, told_widths

    console = Console(highlight=False)
    costs = Table(
        "release", "cost", "state", "table by, or formula", "mechanism", "kinds", title="Releases", title_justify="left"
    )
    counts = [table for known in found.releases for table in known.tables if table.errors.magnitude is None]
    sizes = spans([table.errors.error for table in counts])
    by_largest = Table(
        "release", *sizes, title_justify="left", min_width=56,
        title="Expected error of one count, " + (
            "the same in any cell" if "any" in sizes else "by the size of the cell's largest establishment"
        ),
    )  # fmt: skip
    public = Table(
        "release", "public cells", "how many", "expected error of a count", "half-width", "mostly noise",
        title="Expected error and interval of one count, on publicly known sizes", title_justify="left",
    )  # fmt: skip
    reaches = [table.errors.widths for table in counts]
    apart = any(len({*reach.values()}) > 1 for reach in reaches)
    widths = Table(
        "release", *((f"{size:,}" for size in SIZES) if apart else ["any"]), title_justify="left",
        title=f"Typical half-width of an interval, by that size: alone in its cell, among {MANY} times as many jobs",
    )  # fmt: skip
    trades = Table(
        "release", "scale_share", "error", "half-width alone", "among many", "its mean", title_justify="left",
        title=f"What a part of epsilon for narrow intervals changes, where the largest establishment has {AT} workers",
    )  # fmt: skip
    sums: list[str] = []
    for known in found.releases:
        name, cost, asked = escape(known.name), amounts(known.loss), known.request.release
        if not known.tables:
            costs.add_row(name, cost, known.state, escape(asked.asked), asked.kind, "")
        for i, table in enumerate(known.tables, start=1):
            ahead, by = table.errors, escape(", ".join(table.by) or "no attribute")
            kinds = str(ahead.cells_per_workplace_cell)
            costs.add_row(name, amounts(table.loss), known.state, by, ahead.mechanism, kinds)
            label = name if len(known.tables) == 1 else f"{known.name}, table {i}"
            if ahead.magnitude is not None:
                sums.append(f"{label}: expected error of a sum, by the largest {ahead.magnitude}: {ahead.error}.")
                sums.append(f"{label}: {told_widths(ahead.widths, (), ahead.magnitude)}")
                continue
            by_largest.add_row(escape(label), *map(ahead.error.told, sizes.values()))
            both = [", ".join(map(told_width, pair)) for pair in ahead.widths.values()]
            widths.add_row(escape(label), *both if apart else both[:1])
            for trade in ahead.tradeoff if len(ahead.tradeoff) > 1 else ():
                told = map(told_width, (trade.error, trade.alone, trade.among, trade.mean))
                trades.add_row(escape(label), trade.share, *told)
            for row in _on_public_sizes(table):
                public.add_row(escape(label), *row)
    for caution in dict.fromkeys(each for known in found.releases for table in known.tables for each in table.cautions):
        typer.echo(f"Note: {caution}\n")
    console.print(costs)
    for errors in (by_largest, widths, trades, public):
        if errors.rows:
            console.print(errors)
    for beside in _beside_agencies(found):
        console.print(beside)
    for line in sums:
        typer.echo(line)
    for name, words in found.alarms.items():
        typer.echo(f"alarms {name}: {words}")
    for known in found.releases:
        if known.expected is not None:
            typer.echo(f"{known.name}: {known.expected}")
    for note in dict.fromkeys(note for known in found.releases for table in known.tables for note in table.notes):
        typer.echo(note)
    for each in found.spending:
        typer.echo(f"The plan costs {each}")
    if len(found.spending) > 1:
        typer.echo(f"All {len(found.spending)} data sets together: {amounts(found.cost)}.")
    if (several := found.in_several) is not None:
        typer.echo(several.covered)


def _beside_agencies(found: PlanCheck) -> Iterator[RichTable]:
    """The facts about each public table of the agency that is shown beside a release."""
    from rich.markup import escape
    from rich.table import Table

    from discreet.tables.expected import told

    for known in found.releases:
        beside = known.agency
        if beside is None:
            continue
        table = Table(
            f"{beside.number} there", "cells", "our expected error", "theirs", title_justify="left",
            title=escape(f"{known.name} beside {beside.title}, by {', '.join(beside.by) or 'no attribute'}"),
        )  # fmt: skip
        for low, cells, mean, error, bound in beside.by_size:
            theirs = "unknown" if beside.off is None else f"at most about {told(beside.off * mean)}"
            table.add_row(f"from {low:,} on, mean {mean:,.0f}", f"{cells:,}", told(error, bound), theirs)
        if not beside.by_size:
            theirs = "unknown" if beside.off is None else f"at most about {beside.off:.0%} of a number"
            table.add_row("published", f"{beside.cells - beside.suppressed:,}", "see above", theirs)
        table.add_row("suppressed", f"{beside.suppressed:,}", "published here", "no number")
        yield table


def _on_public_sizes(table: TableCheck) -> list[tuple[str, ...]]:
    """Expected errors by class of cell; upper bounds where what they depend on is not public."""
    from discreet.tables.expected import told
    from discreet.tables.intervals.widths import told_width

    known = table.expected
    if known is None:
        return []
    rows = [
        (
            f"{low:,} {'job' if low == 1 else 'jobs'} and more" if low else "no jobs",
            f"{n:,}", told(error, at_most), told_width(width), f"{noisy:,}",
        )
        for (low, n, error, at_most), width, noisy in zip(
            known.by_size, known.half_widths, known.mostly_noise, strict=True
        )
    ]  # fmt: skip
    share = (
        f"at most {100 * (math.ceil(known.share * 1e4) / 1e4):.2f} %"
        if known.is_bound
        else f"{100 * known.share:.2f} %"
    )
    overall = f"{told(known.mean, known.is_bound)}; together {share} of all jobs"
    return [*rows, ("all", f"{known.cells:,}", overall, "", f"{sum(known.mostly_noise):,}")]


def _print_outcome(outcome: RunResult) -> None:
    from discreet.ledger.budget import amounts

    for known in outcome.check.releases:
        name, cost = known.name, amounts(known.loss)
        if not outcome.publications:
            words = "is released already" if known.released else f"would be released for {cost}"
        elif known.released:
            words = f"was released before, unchanged in {outcome.folder / name}"
        else:
            words = f"released for {cost} in {outcome.folder / name}"
        if extra := outcome.other_files(name):
            words += f", beside what was not released: {', '.join(extra[:3])}{', ...' * (len(extra) > 3)}"
        typer.echo(f"{name}: {words}")
    if outcome.publications:
        for budget in outcome.budgets:
            typer.echo(f"{amounts(budget.remaining)} is left for {budget.dataset!r}.")
    for name, told in outcome.alarms.items():
        typer.echo(f"alarms {name}: {told['alarms']:,} of {told['cells']:,} cells, for nothing, in alarms-{name}.*")
    for label, path in (("Report", outcome.report), ("For a reviewer", outcome.bundle)):
        if path is not None:
            typer.echo(f"{label}: {path}")
    if not outcome.publications:
        typer.echo("A dry run: nothing was written or spent.")
