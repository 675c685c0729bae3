"""The report on a release: what was protected and how, what it cost, how far off it may be, what it does not promise.

Everything on the page is published or public: released tables, constants of mechanisms, lines of the ledger, and a
simulation made from these. The page is built from values; nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.losses import Loss, Pure, total
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit
from discreet.report import belief, charts, comparison, counts
from discreet.report.bar import Bar
from discreet.report.comparison import SimulatedErrors
from discreet.report.numbers import minute, plural, text, unbroken
from discreet.report.numbers import percent as percent
from discreet.report.page import Block, Code, Figure, Heading, Note, Page, Prose, Table
from discreet.report.protection import plain_words, suspicions
from discreet.tables.expected import ByLargest, spans, three_digits
from discreet.tables.quality import NOISE

if TYPE_CHECKING:
    from discreet.arrays import Vector
    from discreet.tables.release import CountRelease

FOLLOWS = {
    "largest": "The expected error of a count depends on the largest establishment of its cell, whose size is "
    "confidential.",
    "count": "The expected error of a count grows with the count itself, which is confidential.",
    "left out": "The noise is the same for every count. The jobs of establishments that are left out come on top, and "
    "how many these are is confidential.",
    "nothing": "The expected error is the same for every count, whatever its cell.",
}
"""What the expected error depends on."""

BAND = (
    "The ends of posterior probabilities and quantiles hold what all rows at once would say, with a probability of "
    "95 %, if the model is right. Answers are put together from parts of the rows: where a line is fitted to a curve, "
    "or a few values are far from all others, they may be off by many posterior deviations and should not be trusted."
)
LIMITS = {
    "model": "Standard errors of a model include the noise. They suppose that the model is right, as without noise.",
    "probability": BAND,
    "quantile": BAND,
    "interval": "A posterior interval holds its coefficient with the stated probability, the noise included, if model "
    "and prior are right; several of them together do so less often. Where the parts of the rows scatter otherwise "
    "than the model says, a note says so, and the interval should not be trusted.",
}
"""What answers of each kind do not say."""

FLAGS = {
    "clipped": "The estimates lie on the limit to which blocks were pulled, and may be far too small.",
    "not found": "The variance is the least that is looked for, not an estimate: nothing was seen above the noise. "
    "What is computed with it is too certain.",
    "hardly seen": "The variance is not told from zero under this noise and may be far too large; the residual "
    "variance lacks what it takes, and standard errors of its effects are larger than they need be.",
    "small blocks": "An average over blocks of few rows, off by what fits of so few rows are off.",
    "noise": "The variance is more than the bounds of the response allow.",
    "lags hardly seen": "Noise hides what earlier responses vary by, or lasting differences between groups, which look "
    "like lags. Coefficients of lags may be far off, and their intervals hold less often than they say.",
    "small parts": "Few rows of a part carry the coefficient: with skewed errors the answer is off, and its ends hold "
    "too rarely. Known before it was paid for.",
    "not checked": "Parts are too small, or too few for this epsilon, to see whether the model is right. Known before.",
    "model in doubt": "Small pieces of the rows say otherwise than larger ones, as with a line fitted to a curve: do "
    "not trust the answer.",
    "wide scatter": "Parts scatter much more widely than the model says: the interval follows, its middle may be off.",
    "end of search": "The answer may lie beyond what was searched. Give a larger `scale`.",
    "no centre": "No private centre was found: the ends hold and are needlessly wide. Ask again.",
    "informative sizes": "Effects go with the public sizes of their groups, which the model does not know of. The "
    "estimate was moved to what groups would say that count as without noise. Add `log_size(group)`.",
}
"""What the words in the column `flag` mean, to be read before the estimates."""


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
    """What a release published: tables of counts, or answers that fit on a page; `limits` of what these say.

    `flagged` is what must be read before the answers, `short` what they say in a line.
    """

    counts: Sequence[TableOfCounts] = ()
    answers: Sequence[Block] = ()
    limits: Sequence[str] = ()
    flagged: Sequence[str] = ()
    short: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """A published release."""

    name: str
    title: str
    loss: Loss
    promise: str
    private: bool
    entry: int
    when: str
    results: Results
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page says. `jobs` is the most that one worker may have, None where there is no bound."""

    title: str
    dataset: str
    unit: Unit
    total: Loss
    remaining: Loss
    releases: Sequence[Release]
    head: str
    version: str
    jobs: int | None = 1


def page(facts: Facts, *, more: Sequence[Block] = ()) -> Page:
    """The report; `more` is put before the limits."""
    blocks: list[Block] = [
        *_summary(facts),
        *(block for release in facts.releases for block in _release(release)),
        *_trust(facts),
        *_protection(facts),
        *_budget(facts),
        *_comparisons(facts),
        *more,
        *_limits(facts),
        *_verification(facts),
    ]
    names = ", ".join(release.name for release in facts.releases)
    lead = (
        f"{plural(len(facts.releases), 'release')} of {facts.dataset!r}: {names}. Made with discreet {facts.version}."
    )
    return Page(facts.title or f"Releases of {facts.dataset}", blocks, lead)


def _summary(facts: Facts) -> Iterator[Block]:
    """What somebody reads who reads nothing else."""
    flagged = [line for release in facts.releases for line in release.results.flagged]
    if flagged:
        yield Note("warning", "\n".join(f"- {line}" for line in flagged))
    tables = [part.table for release in facts.releases for part in release.results.counts]
    all_counts = sum(table.counts.size for table in tables)
    bounded = sum(int(np.isfinite(table.lower + table.upper).sum()) for table in tables)
    which = "each" if bounded == all_counts else f"{text(bounded)} of them" if bounded else "none"
    computed = " that was computed from published numbers alone" * bool(bounded)
    words = f"{plural(all_counts, 'count')} in {plural(len(tables), 'table')}, {which} with an interval{computed}."
    lines = [line for release in facts.releases for line in release.results.short]
    lines += [*(_largest(table) for table in tables), words] if tables else []
    noisy = sum(int((table.quality == NOISE).sum()) for table in tables)
    lines += [f"{plural(noisy, 'count')} {'is' if noisy == 1 else 'are'} mostly noise, and flagged so."] * bool(noisy)
    lines.append(f"All releases cost {facts.total - facts.remaining} of {facts.total}; {facts.remaining} is left.")
    found = {label: each.ratio for label, each in _compared(facts).items() if each.ratio is not None}
    if found:
        told = "; ".join(f"{label} {ratio:.2f} times" for label, ratio in found.items())
        lines.append(f"Error over that of noise infusion, which has no proof, on simulated data: {told}.")
    yield Note("in short", "\n".join(f"- {line}" for line in lines))


def _largest(table: CountRelease) -> str:
    """The finding of a table in one line: its largest count."""
    if not table.counts.size or not table.keys.column_names:
        return f"All jobs together: {text(int(table.counts.sum()))}."
    row, kind = np.unravel_index(int(np.argmax(table.counts)), table.counts.shape)
    values = [*table.keys.slice(int(row), 1).to_pylist()[0].values(), *table.levels[kind]]
    low, high = table.lower[row, kind], table.upper[row, kind]
    ends = f" ({text(int(low))} to {text(int(high))})" if np.isfinite(low + high) else ""
    return f"Most {_by(table)}: {', '.join(map(str, values))}, {text(int(table.counts[row, kind]))}{ends}."


def _compared(facts: Facts) -> dict[str, SimulatedErrors]:
    """The comparisons by the names of their tables."""
    return {
        _label(release, number): part.comparison
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
        if isinstance(part.comparison, SimulatedErrors)
    }


def _label(release: Release, number: int) -> str:
    return release.name if len(release.results.counts) == 1 else f"{release.name}, table {number}"


def _protection(facts: Facts) -> Iterator[Block]:
    yield Heading("What was protected, and how")
    if not all(release.private for release in facts.releases):
        yield Note("warning", "The noise was seeded. Whoever knows the seed can take it off: this is not private.")
    yield Prose(
        f"{plain_words(facts.unit, facts.jobs)}\n\nThis holds whatever else somebody knows, and it was paid for from a "
        f"budget: the more is published, the more the odds can move. Random noise was added to {_noisy(facts)}, "
        "exactly as much as the promise needs, drawn from the operating system and rounded to whole numbers "
        "without error."
    )
    spent = facts.total - facts.remaining
    if isinstance(spent, Pure) and spent:
        yield suspicions(facts.unit, float(spent.epsilon), facts.jobs)
    if "epsilon" in spent.amounts and spent:
        yield from belief.size_beliefs(facts.unit, spent, _believed(facts))
    promises: dict[str, list[str]] = {}
    for release in facts.releases:
        promises.setdefault(unbroken(release.promise), []).append(f"**{release.name}**")
    yield Prose("\n\n".join(f"{', '.join(names)}: {promise}" for promise, names in promises.items()))


def _believed(facts: Facts) -> dict[str, Mapping[int, Vector]]:
    """Typical beliefs by the names of the tables that they are from."""
    return {
        _label(release, number): part.beliefs
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
        if part.beliefs is not None
    }


def _noisy(facts: Facts) -> str:
    """What the noise was added to."""
    tables = [bool(release.results.counts) for release in facts.releases]
    sized = any(part.sized for release in facts.releases for part in release.results.counts)
    what = ["every count"] * any(tables) + ["the size of the largest establishment of every cell"] * sized
    what += ["the statistics from which all answers are computed"] * (not all(tables))
    return " and ".join(what)


def _budget(facts: Facts) -> Iterator[Block]:
    yield Heading("Budget")
    rows = [
        (release.name, str(release.loss), release.entry, f"{minute(release.when)} UTC") for release in facts.releases
    ]
    others = facts.total - facts.remaining
    for release in facts.releases:
        others = others - release.loss if release.loss <= others else others.zero()
    if others:
        rows.append(("other releases of the same data", str(others), None, None))  # type: ignore[arg-type]
    rows.append(("left", str(facts.remaining), None, None))  # type: ignore[arg-type]
    yield Table(
        ("Release", "Loss", "Ledger entry", "When"), rows, f"What {facts.total} of {facts.dataset!r} paid for", "budget"
    )
    name = next(iter(facts.total.amounts))
    first, rest = facts.releases[: charts.MAX_SERIES - 2], facts.releases[charts.MAX_SERIES - 2 :]
    others = total([release.loss for release in rest], zero=others)
    parts = {
        **{release.name: release.loss for release in first},
        "other releases": others,
        "left": facts.remaining,
    }
    bar = Bar(tuple((part, float(loss.amounts.get(name, 0))) for part, loss in parts.items() if loss), name)
    yield Figure(
        bar,
        "One bar with the loss of each release and what is left: "
        + "; ".join(f"{part} {length:.3g}" for part, length in bar.parts),
        f"How the budget of {facts.total} is used",
        "budget-used",
    )


def _release(release: Release) -> Iterator[Block]:
    """The statistics themselves."""
    title, tables = f": {release.title}" if release.title else "", release.results.counts
    if len(tables) == 1:
        yield Heading(f"Release {release.name}{title or ': ' + _by(tables[0].table)}")
        yield from counts.cells(release.name, tables[0].table)
        return
    yield Heading(f"Release {release.name}{title}")
    yield from release.results.answers
    for number, part in enumerate(tables, start=1):
        label = _label(release, number)
        yield Heading(f"{label}: {_by(part.table)}", 3)
        yield from counts.cells(label, part.table)


def _by(table: CountRelease) -> str:
    return f"jobs by {', '.join(table.by)}" if table.by else "all jobs"


def _trust(facts: Facts) -> Iterator[Block]:
    """How far off each table is, and which of its counts are noise."""
    parts = [
        (_label(release, number), part)
        for release in facts.releases
        for number, part in enumerate(release.results.counts, start=1)
    ]
    if not parts:
        return
    yield Heading("What to trust, and what not")
    for label, part in parts:
        if len(parts) > 1:
            yield Heading(f"{label}: how far off", 3)
        yield from _table(label, part)


def _table(label: str, part: TableOfCounts) -> Iterator[Block]:
    table = part.table
    cells, levels = (text(size) for size in table.counts.shape)
    kinds = "one in each workplace cell" if levels == "1" else f"{cells} workplace cells x {levels} kinds of workers"
    yield from counts.intervals(label, table)
    yield Prose(
        f"{plural(table.counts.size, 'count')}, {kinds}: {_by(table)}. Mechanism {part.mechanism}, {part.loss}. "
        f"{' '.join([FOLLOWS[part.expected.follows], *part.notes])}"
    )
    yield Table(
        ("Largest establishment of the cell", "Expected error of one count"),
        [(label, _error(part.expected, size)) for label, size in spans([part.expected]).items()],
        f"Expected absolute error, {label}",
        f"{label} expected error",
    )
    yield from counts.ranking(label, table)


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
    if isinstance(facts.unit, Establishments | EstablishmentNodes):
        told.insert(0, "That an establishment exists, where, in which sector and under which ownership is public.")
    if any(np.isfinite(table.lower).any() for table in tables):
        together = "all intervals together do so less often."
        told.append(f"An interval holds {counts.held(facts.unit)} with the stated probability; {together}")
    if tables:
        told.append("Counts of neighbouring tables need not add up unless the release says so.")
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
