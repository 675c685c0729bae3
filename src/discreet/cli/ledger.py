"""`discreet ledger`: what was spent, what may still be spent, and whether the book was changed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.faults import faults_as_json
from discreet.words.errors import PlanError

if TYPE_CHECKING:
    from discreet.ledger import Budget, Entry, Ledger
    from discreet.ledger.anchors import Lacking, Place
    from discreet.ledger.entries import Row
    from discreet.ledger.periods import Step
    from discreet.privacy.losses import Loss

ledger = typer.Typer(
    name="ledger",
    help="A ledger of privacy losses: show what was spent and what remains, check the chain, change a budget.",
    epilog="Example: `discreet ledger show out/demo/ledger.db --last 5`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

EMPTY = (
    "The ledger is EMPTY, which proves nothing: a new one looks like one whose entries were removed. "
    "Give --release or --expect-head with something that must be in it."
)
SHOWN = 20  # lines of a book that fit on a screen
WIDE = 110  # columns of a screen that has room for all of an entry
WHOLE = ("entry", "kind", "when (UTC)")  # columns that are never broken over lines
AMOUNTS, SHORT = ("loss", "total", "spent", "remaining"), 16  # nor these, where all of them are short
Where = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://user@host/database.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Places = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PLACE]...", help="Where lines were seen: output folders, a desk's folder, bundles, copies."
    ),
]


@ledger.command()
def show(
    where: Where,
    last: Annotated[
        int | None, typer.Option(min=0, help=f"Show only the last entries; 0 for all. Tables show {SHOWN} by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every budget with its total, spent and remaining loss, then the entries and the head.

    A ledger holds names, losses and public parameters. Nothing confidential is in it, so it may be handed to an
    auditor. Keep the head (its hash) elsewhere: `discreet ledger verify --expect-head` proves with it that nothing was
    cut off later.

    Example: `discreet ledger show out/demo/ledger.db --last 5`
    """
    from discreet.ledger.claims import in_several

    with faults_as_json(as_json), _opened(where) as book:
        head, lost = book.head, book.lost()
        entries = book.entries(last=(last or None) if last is not None or as_json else SHOWN)
        if as_json:
            budgets = [_told(budget, lost) for budget in book.budgets()]
            rows = [entry.to_dict() | {"not_proved": _flaw(entry) or None} for entry in entries]
            told = {
                "head": head._asdict(),
                "lost": [str(each) for each in lost],
                "not_proved": _unproved(book),
                "budgets": budgets,
                "entries": rows,
            }
            several = in_several(book.budgets(), book.entries())
            told |= {} if several is None else {"in_several": several.to_dict()}
            typer.echo(json.dumps(told, indent=2))
            return
        _print_tables(book, entries, lost)
        if unproved := _unproved(book):
            typer.echo(
                f"{unproved} {'entry is' if unproved == 1 else 'entries are'} not proved (seeded noise, or a claim "
                "that was only published or measured): the total is no bound on the loss."
            )
        if (several := in_several(book.budgets(), book.entries())) is not None:
            typer.echo(several.covered)
        for each in lost:
            typer.echo(f"UNKNOWN what was spent on {each.anchor.dataset!r}: {each}.")
        typer.echo(f"Head: entry {head.seq}, {head.hash}")
        typer.echo("A ledger holds nothing confidential: only names, losses and public parameters.")


@ledger.command()
def verify(
    where: Where,
    expect_head: Annotated[
        list[str] | None, typer.Option(metavar="HASH", help="A hash that the chain must contain; may be repeated.")
    ] = None,
    release: Annotated[
        list[Path] | None,
        typer.Option(metavar="RELEASE.JSON", help="A release that must be in the ledger, files unchanged; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay every entry from its text: seals, links, sums, budgets. The exit code is 0 when intact, else 1.

    The first bad entry is named. A tail that was cut off cannot be seen from inside. Give a hash you know from an
    earlier `show`, or a release: the chain must contain it, and the release's files must be the published ones. What
    this user has seen of the ledger must be in it, too.

    Example: `discreet ledger verify out/demo/ledger.db --release out/demo/release/jobs/release.json`
    """
    from discreet.ledger.publication import check_release

    with faults_as_json(as_json, verdict="intact"), _opened(where) as book:
        expected = [_hash(text) for text in expect_head or ()]
        verdict, empty = book.verify(contains=expected, watch=_progress), not book.head.seq
        faults = [fault for path in release or () if verdict and (fault := check_release(book, path))]
        lost = [str(each) for each in book.lost()] if verdict else []
    intact = verdict.intact and not (faults or lost)
    if as_json:
        more = {"intact": intact, "empty": empty, "releases": faults, "lost": lost}
        typer.echo(json.dumps(verdict.to_dict() | more, indent=2))
    else:
        typer.echo("\n".join([str(verdict), *faults, *(f"lines are lost: {each}" for each in lost), *[EMPTY] * empty]))
    if not intact:
        raise typer.Exit(1)


@ledger.command()
def budget(
    where: Where,
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="The data's name in the ledger.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The new total.")] = None,
    delta: Annotated[str | None, typer.Option(help="Its failure probability, where the budget has one.")] = None,
    rho: Annotated[str | None, typer.Option(help="The new total of a budget in rho.")] = None,
    per_year: Annotated[str | None, typer.Option(help="What releases about one year may cost together.")] = None,
    per_quarter: Annotated[str | None, typer.Option(help="The same about one quarter.")] = None,
    per_month: Annotated[str | None, typer.Option(help="The same about one month.")] = None,
    unit: Annotated[str | None, typer.Option(help="Which budget, where the data have several: as it is shown.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why it changes; stays in the ledger.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who changes it; this user unless named.")] = None,
    confirmed_by: Annotated[
        str | None, typer.Option(metavar="NAME", help="The second person, without whom nothing is raised.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the total loss that data may reach, with every change and its reason; or change it.

    Amounts for years, quarters or months change likewise. Two people raise a budget, and one may lower it, never below
    what is spent. The ledger keeps who they are as they
    say it: a person who may write the ledger can name anybody. The desk knows who is logged in.

    Example: `discreet ledger budget out/demo/ledger.db`

    Example: `discreet ledger budget ledger.db jobs --epsilon 6 --reason 'board, 3 March' --by anna --confirmed-by rita`
    """
    from discreet.ledger import Ledger, Policy
    from discreet.privacy.losses import loss

    divided: dict[Step, str | None] = {"year": per_year, "quarter": per_quarter, "month": per_month}
    limits = {each: limit for each, limit in divided.items() if limit is not None}
    amounts = [amount for amount in (epsilon, delta, rho) if amount is not None]
    if amounts or limits:
        with faults_as_json(as_json):
            if dataset is None:
                raise typer.BadParameter("A new total is that of one data set. Name it after the ledger.")
            if reason is None:
                raise typer.BadParameter("A budget changes for a reason, which stays in the ledger. Add --reason.")
            if len(limits) > 1:
                raise typer.BadParameter("A budget is divided one way. Name years, quarters or months.")
            policy = next((Policy.of({"each": each, "limit": limit}) for each, limit in limits.items()), None)
            new = loss(epsilon=epsilon, delta=delta, rho=rho) if amounts else None
            _opened(where).close()  # one that is not there is not made
            with Ledger.open(where) as book:
                book.change_budget(
                    dataset=dataset,
                    total=new,
                    policy=policy,
                    unit=unit,
                    reason=reason,
                    by=by,
                    confirmed_by=confirmed_by,
                )
    elif reason is not None or confirmed_by is not None or by is not None:
        raise typer.BadParameter("No new amount was named. Add --epsilon, or leave the reason and the people out.")
    with faults_as_json(as_json), _opened(where) as book:
        lost = book.lost()
        asked = [each for each in book.budgets() if dataset in (None, each.dataset) and unit in (None, each.unit)]
        kept = {(each.dataset, each.unit) for each in asked}
        lines = [each for each in book.entries() if each.kind == "budget" and (each.dataset, each.unit) in kept]
        if not asked and (dataset or unit):
            known = ", ".join(f"{each.dataset!r} under {each.unit}" for each in book.budgets()) or "none"
            raise PlanError(
                "There is no such budget.", f"The ledger has these: {known}.", "Name one of them.", about="dataset"
            )
    if as_json:
        changes = [each.to_dict() for each in lines]
        typer.echo(json.dumps({"budgets": [_told(each, lost) for each in asked], "changes": changes}, indent=2))
    else:
        _print_budgets(asked, lines, lost)


@ledger.command()
def backup(
    where: Where,
    copy: Annotated[str, typer.Argument(metavar="COPY", help="A file; one of an earlier copy is continued.")],
) -> None:
    """Copy the ledger as it is at this moment, also while charges run.

    A ledger that lacks lines which this user has seen is not copied.

    Example: `discreet ledger backup ledger.db /mnt/other/ledger-copy.db`
    """
    with _opened(where) as book:
        head = book.backup(copy)
    typer.echo(f"{copy} has entries 1 to {head.seq}, head {head.hash}")


@ledger.command()
def restore(
    copy: Annotated[str, typer.Argument(metavar="COPY", help="A copy that `backup` made.")],
    where: Where,
    place: Places = None,
) -> None:
    """Bring a ledger back from a copy, to a new place or to the beginning of it that is left.

    A copy that lacks lines which this user, or one of the places, has seen is refused. What was spent then counts only
    if the loss is declared: `discreet ledger declare-loss`, where the copy is one of the places.

    Example: `discreet ledger restore /mnt/other/ledger-copy.db ledger.db out/release`
    """
    from discreet.ledger import Ledger

    _opened(copy).close()
    head = Ledger.restore(copy, where, known=_places(place))
    typer.echo(f"{where} has entries 1 to {head.seq}, head {head.hash}")


@ledger.command()
def declare_loss(
    where: Where,
    place: Places = None,
    reason: Annotated[
        str | None, typer.Option(help="What was lost and who looked for it; stays in the ledger.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who declares it; this user unless named.")] = None,
    confirmed_by: Annotated[str | None, typer.Option(metavar="NAME", help="The second person.")] = None,
) -> None:
    """Write what is known of a lost ledger into a new chain, or into what is left of it, as spent.

    Known is what this user's note has, and what the places have. What nobody has seen is not written, so name every
    place there is. Releases that are not known to be published are never drawn again.

    Example: `discreet ledger declare-loss ledger.db out/release --reason 'disk failed' --by anna --confirmed-by rita`
    """
    from discreet.ledger import Ledger

    if reason is None:
        raise typer.BadParameter("A loss is declared for a reason, which stays in the ledger. Add --reason.")
    known = _places(place)
    added = Ledger.declare_loss(where, known=known, reason=reason, by=by, confirmed_by=confirmed_by)
    charges = sum(line.pays for line in added)
    typer.echo(f"Written as entries {added[0].seq} to {added[-1].seq}, {charges} of them charges.")
    with Ledger.open(where, read_only=True, places=known) as book:
        _print_budgets(book.budgets(), [], book.lost())


def _places(paths: list[str] | None) -> list[Place]:
    """Where anchors are; of a desk also its database."""
    from discreet.ledger.anchors import places_in

    found: list[Place] = []
    for path in paths or ():
        if "://" not in path and not os.path.exists(path):  # noqa: PTH110 (no error)
            raise PlanError(
                f"There is no {path!r}.", "A place is a folder, a bundle or a ledger.", "Name one.", about="place"
            )
        desk = Path(path) / "desk.db"
        if desk.is_file():
            from discreet.ledger.desk_anchors import DeskAnchors

            found.append(DeskAnchors(desk))
        found += places_in(path)
    return found


def _told(budget: Budget, lost: Sequence[Lacking]) -> dict[str, object]:
    """A budget as plain values; of one that lacks lines it is not known what was spent."""
    if budget.dataset not in {each.anchor.dataset for each in lost}:
        return budget.to_dict()
    unknown = dict.fromkeys(key for key in ("spent", "remaining", "periods") if key in budget.to_dict())
    return budget.to_dict() | unknown


def _print_budgets(budgets: list[Budget], lines: list[Entry], lost: Sequence[Lacking]) -> None:
    from discreet.ledger.budget import amounts
    from discreet.pages.numbers import minute

    for each in budgets:
        gone = [str(one) for one in lost if one.anchor.dataset == each.dataset]
        left = f"an UNKNOWN part is left ({gone[0]})" if gone else f"{amounts(each.remaining)} is left"
        typer.echo(f"{each.dataset}, {each.unit}: {left} of {amounts(each.total)}.")
        for line in lines:
            if (line.dataset, line.unit) != (each.dataset, each.unit) or line.loss is None:
                continue
            facts = line.payload
            people = " and ".join(str(facts[who]) for who in ("by", "confirmed_by") if who in facts)
            why = f": {facts['reason']}" if "reason" in facts else ""
            policy = facts.get("policy")
            divided = "" if policy is None else f", {policy['limit']} for each {policy['each']}"
            when = minute(str(facts["at"]))
            typer.echo(f"  entry {line.seq}, {when}: {amounts(line.loss)}{divided} by {people}{why}")
    if not budgets:
        typer.echo("No budget was opened here yet.")


def _opened(where: str) -> Ledger:
    from discreet.ledger import Ledger
    from discreet.ledger.anchors import refuse_absent
    from discreet.ledger.store import place_of

    if "://" not in where and not os.path.isfile(where):  # noqa: PTH113 (no error)
        refuse_absent(str(place_of(where)), repr(where))
        raise PlanError(
            f"There is no ledger {where!r}.",
            "It is a file, or postgresql://user@host/database.",
            "Name one.",
            about="ledger",
        )
    return Ledger.open(where, read_only=True)


def _unproved(book: Ledger) -> int:
    """The number of charges in the whole ledger that bound nothing."""
    return sum(bool(_flaw(entry)) for entry in book.entries())


def _flaw(entry: Entry) -> str:
    """Why a charge's loss is no bound: "seeded", "as published", "empirical", "unknown"; empty where it is one."""
    from discreet.ledger.claims import claim_of

    return ", ".join(dict.fromkeys(doubt.name for doubt in claim_of(entry).doubts)) if entry.pays else ""


def _hash(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise typer.BadParameter(
            f"{text!r} is not a hash of 64 hexadecimal digits; copy it from `discreet ledger show`."
        )
    return text


def _progress(rows: Iterable[Row], total: int) -> Iterable[Row]:
    from rich.console import Console
    from rich.progress import track

    return track(rows, "Replaying entries", total=total, console=Console(stderr=True), transient=True)


def _print_tables(book: Ledger, entries: list[Entry], lost: Sequence[Lacking]) -> None:
    from fractions import Fraction

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from discreet.ledger.budget import amounts, readable
    from discreet.pages.numbers import minute

    console, known = Console(highlight=False), book.budgets()
    wide = console.width >= WIDE

    def told(loss: Loss | None) -> str:
        return "" if loss is None else amounts(loss) if wide else amounts(loss).replace(", ", "\n")

    gone = {each.anchor.dataset for each in lost}
    losses = [
        (
            told(budget.total),
            *(["unknown"] * 2 if budget.dataset in gone else map(told, (budget.spent, budget.remaining))),
        )
        for budget in known
    ]
    costs = [told(entry.loss) for entry in entries]
    short = max(map(len, "\n".join([*(text for row in losses for text in row), *costs]).split("\n"))) <= SHORT

    def titled(title: str, *names: str) -> Table:
        """A table whose long words are folded, never cut."""
        whole = (*WHOLE, *(AMOUNTS if short else ()))
        columns = [Column(name, overflow="fold", no_wrap=name in whole) for name in names]
        return Table(*columns, title=title, title_justify="left")

    budgets = titled("Budgets", "data set", "unit", "total", "spent", "remaining")
    for budget, row in zip(known, losses, strict=True):
        budgets.add_row(escape(budget.dataset), escape(budget.unit), *row)
    more = ("proved", "by") if wide else ()
    lines = titled("Entries", "entry", "kind", "data set", "release", "loss", *more, "when (UTC)")
    for entry, cost in zip(entries, costs, strict=True):
        flaw, release = escape(_flaw(entry)), escape(entry.release or "")
        rest: tuple[str, ...] = (f"{release}\nnot proved: {flaw}" if flaw else release, cost)
        if wide:
            proved = f"NO: {flaw}" if flaw else "yes" * entry.pays
            rest = (release, cost, proved, escape(str(entry.payload["by"])))
        lines.add_row(str(entry.seq), entry.kind, escape(entry.dataset), *rest, minute(str(entry.payload["at"])))
    console.print(budgets)
    dated = [budget for budget in known if budget.policy is not None and budget.dataset not in gone]
    if dated:
        periods = titled("Periods", "data set", "period", "spent", "remaining")
        for budget in dated:
            for name, spent in sorted(budget.periods.items()):
                periods.add_row(
                    escape(budget.dataset), name, readable(spent), readable(budget.left_in(name) or Fraction(0))
                )
        console.print(periods)
    console.print(lines)
    if entries and entries[0].seq > 1:
        typer.echo(f"{entries[0].seq - 1} earlier entries; --last 0 shows all.")
    if entries and not wide:
        typer.echo(f"Who made an entry is shown in {WIDE} columns and more, and by --json.")
