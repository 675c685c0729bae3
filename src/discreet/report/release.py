"""The report on a release: who was protected and how, what it cost, how far off it may be, what it does not promise.

Everything on the page is published or public: released tables, constants of mechanisms, lines of the ledger, and a
simulation made from these. The page is built from values; nothing is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.pages.numbers import percent as percent
from discreet.pages.numbers import plural, text, unbroken
from discreet.pages.page import Block, Code, Figure, Heading, Note, Page, Prose, Table
from discreet.privacy.assurance import APART, DIFFERENT, Assurance, Claim, People
from discreet.privacy.losses import Loss
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit
from discreet.report import agency, alarms, belief, budget, comparison, counts
from discreet.report.agency import AgencyTable
from discreet.report.alarms import AlarmTable
from discreet.report.comparison import SimulatedErrors
from discreet.report.protection import protection, several
from discreet.report.shown import ShownTable
from discreet.tables.expected import ByLargest, spans, three_digits
from discreet.tables.quality import NOISE

if TYPE_CHECKING:
    from discreet.arrays import Vector
    from discreet.tables.release import CountRelease

FOLLOWS = {
    "largest": "The expected error of a {0} depends on the largest establishment of its cell, whose size is "
    "confidential.",
    "count": "The expected error of a {0} grows with the {0} itself, which is confidential.",
    "left out": "The noise is the same for every {0}. The jobs of establishments that are left out add to this "
    "error, and their number is confidential.",
    "nothing": "The expected error is the same for every {0}, whatever its cell.",
}
"""The quantity on which the expected error of a count or a sum depends."""


@dataclass(frozen=True, slots=True)
class TableOfCounts:
    """A published table of counts with what is publicly known about its noise.

    Attributes
    ----------
    comparison : beside noise infusion, or why there is none.
    sized : noisy sizes of the largest establishments were paid for.
    notes : about expected errors.
    beliefs : what is typically believed afterwards about lone establishments of some sizes.
    """

    table: CountRelease
    mechanism: str
    loss: Loss
    expected: ByLargest
    comparison: SimulatedErrors | str
    notes: Sequence[str] = ()
    sized: bool = False
    beliefs: Mapping[int, Vector] | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """The output of a release: tables of counts, or answers that fit on a page; `limits` of what these say.

    `flagged` must be read before the answers, `short` is their summary in one line, `agency` is the agency's own table.
    `shown` are all tables as readers see them, drawn ones first and then their sums; `ruled` is how rules changed them.
    """

    counts: Sequence[TableOfCounts] = ()
    answers: Sequence[Block] = ()
    limits: Sequence[str] = ()
    flagged: Sequence[str] = ()
    short: Sequence[str] = ()
    agency: AgencyTable | None = None
    shown: Sequence[ShownTable] = ()
    ruled: Sequence[str] = ()

    @property
    def tables(self) -> list[ShownTable]:
        """All tables as readers see them; as drawn where nothing else was released."""
        return list(self.shown) or [ShownTable.as_drawn(part.table) for part in self.counts]


@dataclass(frozen=True, slots=True)
class Release:
    """A published release; `changed` is what a revision says of the release that it replaces."""

    name: str
    title: str
    loss: Loss
    claim: Claim
    entry: int
    when: str
    results: Results
    files: Mapping[str, str]
    changed: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set with its budget and releases.

    `jobs` is the most that one worker may have, None without a bound; `periods` is what each period has spent and left.
    `others` is what the ledger says of all releases of these data, those of other plans too.
    """

    dataset: str
    unit: Unit
    total: Loss
    remaining: Loss
    releases: Sequence[Release]
    jobs: int | None = 1
    periods: Sequence[tuple[str, str, str]] = ()
    others: Sequence[Claim] = ()

    @property
    def spent(self) -> Loss:
        return self.total - self.remaining

    @property
    def said(self) -> Assurance:
        """What may be said about all releases of these data."""
        known = {claim.release: claim for claim in self.others}
        mine = {release.name: release.claim for release in self.releases}
        return Assurance.of((known | mine).values(), spent=self.spent, jobs=self.jobs)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page says."""

    title: str
    datasets: Sequence[DataSet]
    head: str
    version: str
    alarms: Sequence[AlarmTable] = ()
    people: People | None = None

    @property
    def releases(self) -> list[Release]:
        """Those of all data sets."""
        return [release for data in self.datasets for release in data.releases]


def page(facts: Facts, *, more: Sequence[Block] = ()) -> Page:
    """The report; `more` is put before the limits."""
    blocks: list[Block] = [
        *_summary(facts),
        *(block for release in facts.releases for block in _release(release)),
        *(block for each in facts.alarms for block in alarms.blocks(each)),
        *_trust(facts),
        *_by_data_set("What was protected, and how", facts, _protection),
        *_people(facts),
        *_by_data_set("Budget", facts, budget.blocks),
        *_comparisons(facts),
        *agency.blocks(_agencies(facts)),
        *more,
        *_limits(facts),
        *_verification(facts),
    ]
    names = ", ".join(release.name for release in facts.releases)
    quoted = " and ".join(repr(data.dataset) for data in facts.datasets)
    lead = f"{plural(len(facts.releases), 'release')} of {quoted}: {names}. Made with discreet {facts.version}."
    return Page(facts.title or f"Releases of {quoted.replace(QUOTE, '')}", blocks, lead, published=_published(facts))


def _published(facts: Facts) -> dict[str, str]:
    return {f"{each.name}/{path}": digest for each in facts.releases for path, digest in each.files.items()}


QUOTE = "'"


def _by_data_set(title: str, facts: Facts, part: Callable[[DataSet], Iterator[Block]]) -> Iterator[Block]:
    """A part of the page for each data set; of several, each under its name."""
    yield Heading(title)
    for data in facts.datasets:
        if len(facts.datasets) == 1:
            yield from part(data)
            continue
        yield Heading(f"{title}: {data.dataset}", 3)
        for block in part(data):
            if isinstance(block, Figure | Table):
                name = f"{block.name or block.caption} {data.dataset}"
                block = replace(block, name=name, caption=f"{block.caption} ({data.dataset})")
            yield block


def _summary(facts: Facts) -> Iterator[Block]:
    """What somebody reads who reads nothing else."""
    flagged = [line for release in facts.releases for line in release.results.flagged]
    if flagged:
        yield Note("warning", "\n".join(f"- {line}" for line in flagged))
    tables = [table for release in facts.releases for table in release.results.tables]
    lines = [line for release in facts.releases for line in release.results.short]
    lines += [*filter(None, (table.largest() for table in tables if table.drawn)), *_numbers(tables)]
    lines += [line for release in facts.releases for line in release.results.ruled]
    for data in facts.datasets:
        of = f" of {data.dataset!r}" * (len(facts.datasets) > 1)
        lines.append(f"All releases{of} cost {data.spent} of {data.total}; {data.remaining} is left.")
    found = {label: each.ratio for label, each in _compared(facts).items() if each.ratio is not None}
    if found:
        told = "; ".join(f"{label} {ratio:.2f} times" for label, ratio in found.items())
        lines.append(f"Error over that of noise infusion, which has no proof, on simulated data: {told}.")
    lines += [alarms.in_short(each) for each in facts.alarms]
    lines += [agency.in_short(name, each) for name, each in _agencies(facts).items()]
    yield Note("in short", "\n".join(f"- {line}" for line in lines))


def _numbers(tables: Sequence[ShownTable]) -> Iterator[str]:
    """The number of results, and how many of them are larger than noise."""
    if not tables:
        return
    one = "count" if all(table.of is None for table in tables) else "number"
    whole = sum(table.values.size for table in tables)
    gone, noisy, bounded = (
        sum(int(chosen.sum()) for chosen in found)
        for found in (
            [table.left_out for table in tables],
            [table.flags == NOISE for table in tables],
            [np.isfinite(table.lower + table.upper) for table in tables],
        )
    )
    left = whole - gone
    which = "each" if bounded == left else f"{text(bounded)} of them" if bounded else "none"
    computed = " that was computed from published numbers alone" * bool(bounded)
    yield f"{plural(left, one)} in {plural(len(tables), 'table')}, {which} with an interval{computed}."
    sums = sum(not table.drawn for table in tables)
    if sums:
        yield f"{plural(sums, 'table')} {'is' if sums == 1 else 'are'} sums of drawn ones, and cost nothing."
    if noisy:
        yield f"{plural(noisy, one)} {'is' if noisy == 1 else 'are'} mostly noise, and flagged so."


def _compared(facts: Facts) -> dict[str, SimulatedErrors]:
    """The comparisons by the names of their tables."""
    return {
        _label(release, number): part.comparison
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
        if isinstance(part.comparison, SimulatedErrors)
    }


def _agencies(facts: Facts) -> dict[str, AgencyTable]:
    """The agency's tables by the names of the releases that they are beside."""
    return {each.name: each.results.agency for each in facts.releases if each.results.agency is not None}


def _label(release: Release, number: int) -> str:
    return release.name if len(release.results.tables) == 1 else f"{release.name}, table {number}"


def _protection(facts: DataSet) -> Iterator[Block]:
    said = facts.said
    yield from protection(
        said,
        f"Random noise was added to {_noisy(facts)}, exactly as much as the promise needs, drawn from the operating "
        "system and rounded to whole numbers without error.",
    )
    yield from belief.size_beliefs(said, _believed(facts))
    claims: dict[str, list[str]] = {}
    for release in facts.releases:
        claims.setdefault(unbroken(release.claim.sentence), []).append(f"**{release.name}**")
    yield Prose("\n\n".join(f"{', '.join(names)}: {claim}" for claim, names in claims.items()))


def _people(facts: Facts) -> Iterator[Block]:
    """What is said about somebody who is in several data sets."""
    if len(facts.datasets) == 1:
        return
    yield Heading("Somebody who is in several data sets")
    found = Assurance.in_several([data.said for data in facts.datasets], people=facts.people)
    yield from several(found)
    yield Prose(DIFFERENT if found is None else APART)


def _believed(facts: DataSet) -> dict[str, Mapping[int, Vector] | None]:
    """Typical beliefs by the names of the tables that they are from; None where there is none."""
    return {
        _label(release, number): part.beliefs
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
    }


def _noisy(facts: DataSet) -> str:
    """What the noise was added to."""
    tables = [bool(release.results.counts) for release in facts.releases]
    sized = any(part.sized for release in facts.releases for part in release.results.counts)
    kinds = dict.fromkeys(part.table.value for release in facts.releases for part in release.results.counts)
    what = [f"every {kind}" for kind in kinds] + ["the size of the largest establishment of every cell"] * sized
    what += ["the statistics from which all answers are computed"] * (not all(tables))
    return " and ".join(what)


def _release(release: Release) -> Iterator[Block]:
    """The statistics themselves."""
    title, tables = f": {release.title}" if release.title else "", release.results.tables
    alone = len(tables) == 1
    yield Heading(f"Release {release.name}{title or (': ' + tables[0].by() if alone else '')}")
    if release.changed:
        yield Note("revision", release.changed)
    for line in release.results.ruled:
        yield Prose(line)
    yield from release.results.answers
    for number, table in enumerate(tables, start=1):
        label = _label(release, number)
        if not alone:
            yield Heading(f"{label}: {table.by()}{'' if table.drawn else ', sums of a drawn table'}", 3)
        yield from table.cells(label)


def _trust(facts: Facts) -> Iterator[Block]:
    """The error of each table, and which of its counts are noise."""
    parts = [
        (_label(release, number), part, release.results.tables[number - 1])
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
    ]
    if not parts:
        return
    yield Heading("What to trust, and what not")
    for label, part, shown in parts:
        if len(parts) > 1:
            yield Heading(f"{label}: how far off", 3)
        yield from _table(label, part, shown)


def _table(label: str, part: TableOfCounts, shown: ShownTable) -> Iterator[Block]:
    table = part.table
    cells, levels = (text(size) for size in table.counts.shape)
    kinds = "one in each workplace cell" if levels == "1" else f"{cells} workplace cells x {levels} kinds of workers"
    yield from counts.intervals(label, table)
    yield Prose(
        f"{plural(table.counts.size, table.value)}, {kinds}: {shown.by()}. Mechanism {part.mechanism}, {part.loss}. "
        f"{' '.join([FOLLOWS[part.expected.follows].format(table.value), *part.notes])}"
    )
    yield Table(
        (_sized(table), f"Expected error of one {table.value}"),
        [(label, _error(part.expected, size)) for label, size in spans([part.expected]).items()],
        f"Expected absolute error, {label}",
        f"{label} expected error",
    )
    yield from counts.ranking(label, table, shown.left_out)


def _sized(table: CountRelease) -> str:
    return "Largest establishment of the cell" + ("" if table.magnitude is None else f", by its {table.magnitude}")


def _comparisons(facts: Facts) -> Iterator[Block]:
    found = _compared(facts)
    why = [
        f"**{_label(release, number)}: not compared with noise infusion.** {part.comparison}"
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
        if not isinstance(part.comparison, SimulatedErrors)
    ]
    if not (found or why):
        return
    yield Heading("Beside noise infusion")
    yield from comparison.all_of(found)
    for label, each in found.items():
        yield from comparison.one(label, each, level=3)
    yield from map(Prose, why)


def _error(expected: ByLargest, size: int) -> float | str:
    at_most = size in expected.at_most
    error = three_digits(expected[size], up=at_most)
    return f"at most {text(error)}" if at_most else error


def _limits(facts: Facts) -> Iterator[Block]:
    tables = [part.table for release in facts.releases for part in release.results.counts]
    told = [
        "Losses add up over all releases about the same data. The budget above counts what its ledger knows; the same "
        "data under another name or in another ledger would be counted apart.",
        "A conclusion about a group (a sector, a place) may well become certain. Only single units are protected.",
        *dict.fromkeys(limit for release in facts.releases for limit in release.results.limits),
    ]
    units = {data.unit.key: data.unit for data in facts.datasets}.values()
    if any(isinstance(unit, Establishments | EstablishmentNodes) for unit in units):
        told.insert(0, "The existence, place, sector and ownership of an establishment are public.")
    if any(np.isfinite(table.lower).any() for table in tables):
        together = "all intervals together do so less often."
        kinds = dict.fromkeys(table.value for table in tables)
        held = " or ".join(dict.fromkeys(counts.held(unit, kind) for unit in units for kind in kinds))
        told.append(f"An interval holds {held} with the stated probability; {together}")
    if tables:
        told.append("Numbers of neighbouring tables need not add up unless the release says so.")
    yield Heading("What this does not promise")
    yield Prose(unbroken("\n".join(f"- {line}" for line in told)))


def _verification(facts: Facts) -> Iterator[Block]:
    yield Heading("How to check this")
    yield Prose(
        "The ledger was written before any noise was drawn, and fixes the SHA-256 of every file below. A reviewer's "
        "bundle can be checked without the data:"
    )
    yield Code("discreet verify bundle.zip\ndiscreet ledger verify LEDGER --expect-head " + facts.head)
    yield Table(
        ("File", "SHA-256"),
        [(f"{release.name}/{name}", digest) for release in facts.releases for name, digest in release.files.items()],
        "Published files",
        "files",
    )
