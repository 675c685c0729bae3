"""The content of the pages of a site: words, links and pictures, from the release's folder.

Every text is escaped here. Blocks of text and tables are those of reports.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from discreet.audit.identification import Identification, in_several
from discreet.pages.numbers import percent, plural, text
from discreet.pages.page import Block, Heading, Note, Page, PageWriter, Prose, Table, document
from discreet.privacy.assurance import Assurance, titled
from discreet.publication.imprint import Imprint
from discreet.release.folder import PublishedTable, ReleaseFolder, by_data_set
from discreet.report.alarms import AlarmTable
from discreet.report.alarms import blocks as alarm_blocks
from discreet.report.protection import PRIORS
from discreet.tables.quality import NOISE, NONE, QUALITY, SUPPRESSED

if TYPE_CHECKING:
    import pyarrow as pa

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'self'"
FEW, MANY = 2, 400
"""Categories of an attribute that can be chosen from a list."""

FLAGS = (*QUALITY, NOISE, NONE, SUPPRESSED)
REACH = {
    "good": "the interval reaches at most 10 % from the number",
    "fair": "at most a third",
    "poor": "at most the number itself",
    NOISE: "further than the number itself: it says little",
    NONE: "an end of the interval is missing",
    SUPPRESSED: "a rule of the agency leaves the number out",
}
OPENINGS = {"individuals": "A worker", "employer size": "An employer's size", "employer shape": "An employer's make-up"}


def style() -> str:
    """The style of all pages: that of reports, and additions for a site."""
    return "\n".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, name in STYLES)


STYLES = (("discreet.pages", "page.css"), ("discreet.publication", "site.css"))


def overview(
    releases: Sequence[ReleaseFolder],
    tables: Sequence[tuple[PublishedTable, pa.Table]],
    downloads: Sequence[tuple[str, int]],
    imprint: Imprint,
    found: Mapping[str, Identification],
    version: str,
    *,
    alarms: Sequence[AlarmTable] = (),
) -> str:
    """The first page; `found` is by data set."""
    cards = "".join(_card(of, table) for of, table in tables)
    blocks: list[Block | str] = [
        Heading("Tables"),
        f'<ul class="tables">{cards}</ul>',
        *(block for each in alarms for block in alarm_blocks(each)),
        *_quality(tables),
        Heading("Downloads"),
        _downloads(downloads),
        *_method(releases, found),
        *_learnt(found),
    ]
    title = imprint.title or ", ".join(release.name for release in releases)
    return _page(title, _lead(releases, imprint, found), blocks, imprint, version)


def table_page(
    release: ReleaseFolder,
    of: PublishedTable,
    table: pa.Table,
    about: Mapping[str, Any],
    downloads: Sequence[tuple[str, int]],
    imprint: Imprint,
    version: str,
) -> str:
    """The page of one table."""
    crumbs = '<nav class="crumbs" aria-label="Where this page is"><a href="index.html">All tables</a></nav>'
    told = {**about, "interval": _interval(release)}
    # In a script no text may end it, and none may begin a comment.
    data = json.dumps(told, ensure_ascii=True).replace("<", "\\u003c")
    blocks: list[Block | str] = [
        crumbs,
        _explorer(of, about),
        f'<script type="application/json" id="about-table">{data}</script>',
        *map(Prose, release.rules(of.form)),
        *_quality([(of, table)]),
        Heading("Downloads"),
        _downloads(downloads),
        Heading("What the columns are"),
        Table(
            ("Column", "What it is"),
            [(name, "attribute" if name in of.attributes else meaning or name) for name, meaning in of.columns.items()],
            f"Columns of {of.name}",
        ),
        Heading("Guarantee"),
        Prose(release.promise),
    ]
    lead = f"{plural(len(table), 'row')} of release {release.name}, data {release.dataset!r}."
    return _page(headline(of), lead, blocks, imprint, version, script="site.js")


def headline(of: PublishedTable) -> str:
    """What a table is, in words."""
    what = ", ".join(name.replace("_", " ") for name in of.numbers)
    if len(of.numbers) == 1:
        what = "jobs" if what == "count" else of.columns[of.numbers[0]].partition(",")[0] or what
    by = ", ".join(name.replace("_", " ") for name in of.attributes)
    return f"{what[:1].upper()}{what[1:]} by {by}" if by else f"{what[:1].upper()}{what[1:]} in all"


def address(of: PublishedTable) -> str:
    """The file of a table's page."""
    return f"table-{of.name}.html"


def _page(
    title: str, lead: str, blocks: Iterable[Block | str], imprint: Imprint, version: str, script: str | None = None
) -> str:
    blocks = list(blocks)
    writer = PageWriter(Page(title, [block for block in blocks if not isinstance(block, str)]))
    body = "\n".join(
        block
        if isinstance(block, str)
        else writer.heading(block, writer.anchor(block.text))
        if isinstance(block, Heading)
        else writer.block(block)
        for block in blocks
    )
    loaded = f'<script src="{script}"></script>\n' if script else ""
    policy = POLICY if script else POLICY.replace("script-src 'self'", "script-src 'none'")
    return document(title, lead, body, style=style(), policy=policy, after=f"{_footer(imprint, version)}\n{loaded}")


def _lead(releases: Sequence[ReleaseFolder], imprint: Imprint, found: Mapping[str, Identification]) -> str:
    by = f"Published by {imprint.publisher}. " if imprint.publisher else ""
    period = f" {imprint.period}." if imprint.period else ""
    data = " and ".join(map(repr, by_data_set(releases)))
    return f"{by}Statistics of {data}{titled(each.said for each in found.values())}.{period}"


def _card(of: PublishedTable, table: pa.Table) -> str:
    shares = _flags([table])
    return (
        f'<li><a href="{escape(address(of))}">{escape(headline(of))}</a><p>{escape(plural(len(table), "row"))}</p>'
        f"{_stack(shares, 'stack') if shares else ''}</li>"
    )


def _flags(tables: Iterable[pa.Table]) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in tables:
        if "quality" in table.column_names:
            for pair in table["quality"].value_counts().to_pylist():
                found[str(pair["values"])] = found.get(str(pair["values"]), 0) + int(pair["counts"])
    return {flag: found[flag] for flag in FLAGS if flag in found}


def _stack(shares: Mapping[str, int], name: str) -> str:
    """A bar of the shares of quality flags."""
    whole, at, parts = sum(shares.values()) or 1, 0.0, []
    for flag, number in shares.items():
        width = 100 * number / whole
        parts.append(f'<rect class="q{FLAGS.index(flag)}" x="{at:.3f}" y="0" width="{width:.3f}" height="10"/>')
        at += width
    told = ", ".join(f"{flag} {percent(number / whole)}" for flag, number in shares.items())
    return (
        f'<svg class="{name}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(f"Quality: {told}")}">{"".join(parts)}</svg>'
    )


def _quality(tables: Sequence[tuple[PublishedTable, pa.Table]]) -> Iterator[Block | str]:
    shares = _flags(table for _, table in tables)
    if not shares:
        return
    whole = sum(shares.values())
    items = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="q{FLAGS.index(flag)}" width="10" height="10" '
        f'rx="2"/></svg><strong>{escape(flag)}</strong>: {escape(REACH[flag])} '
        f"({escape(text(number))}{escape(f', {percent(number / whole)}' if number else '')})</li>"
        for flag, number in {flag: shares.get(flag, 0) for flag in FLAGS}.items()
        if number or flag != SUPPRESSED
    )
    yield Heading("Quality flags")
    yield Prose("Every number has noise. A flag says how far its interval reaches, so read numbers with their flags.")
    yield f'{_stack(shares, "stack")}<ul class="legend">{items}</ul>'


def _downloads(names: Sequence[tuple[str, int]]) -> str:
    items = "".join(
        f'<li><a href="{escape(name)}" download>{escape(_file(name))} ({_bytes(size)})</a></li>' for name, size in names
    )
    return f'<ul class="downloads">{items}</ul>'


def _file(name: str) -> str:
    return name.partition("/")[2]


def _bytes(size: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or unit == "MB":
            return f"{size:,.0f} {unit}"
        size //= 1000
    raise AssertionError


def _interval(release: ReleaseFolder) -> str:
    return "Interval" if release.level is None else f"{percent(float(release.level))} interval"


def _explorer(of: PublishedTable, about: Mapping[str, Any]) -> str:
    """The form, the table and the pager, which the script fills; without it the page says where rows are."""
    boxes = "".join(
        f'<label>{escape(column["title"])}<select data-column="{i}"><option value="">all</option></select></label>'
        for i, column in enumerate(about["columns"])
        if column["kind"] == "attribute" and FEW <= len(column["values"]) <= MANY
    )
    buttons = "".join(
        f'<button type="button" data-go="{name}" disabled>{words}</button>'
        for name, words in (("first", "First"), ("back", "Back"), ("next", "Next"), ("last", "Last"))
    )
    caption = escape(headline(of))
    return (
        '<section id="explorer" aria-label="The table"><noscript><p>Searching and sorting need a script. The downloads '
        "below hold every row.</p></noscript>"
        '<form hidden><label>Search<input type="search" autocomplete="off" placeholder="any words"></label>'
        f"{boxes}</form>"
        '<div class="scroll" role="region" aria-labelledby="rows" tabindex="0" hidden><table>'
        f'<caption id="rows"><span>{caption}</span></caption><thead><tr></tr></thead><tbody></tbody></table></div>'
        f'<div class="pager" hidden><output>Loading</output>{buttons}</div></section>'
    )


def _method(releases: Sequence[ReleaseFolder], found: Mapping[str, Identification]) -> Iterator[Block | str]:
    yield Heading("Method and guarantee")
    for dataset, each in found.items():
        if each.said.promised:
            yield Prose(f"**{dataset}.** " * (len(found) > 1) + each.said.words)
        else:
            yield Note("warning", each.said.refusal)
    rows = []
    for release in releases:
        listed: Sequence[Mapping[str, Any]] = release.about["parameters"].get("tables", ()) or ({},)
        for table in listed:
            by = ", ".join(table.get("by", ())) or "nothing"
            rows.append(
                (release.name, by, table.get("mechanism"), ", ".join(f"{k} {v}" for k, v in _loss(table, release)))
            )
    yield Table(("Release", "By", "Mechanism", "Loss"), rows, "How each table was drawn")
    for release in releases:
        yield Prose(f"**{release.name}**: {release.promise}")


def _loss(table: Mapping[str, Any], release: ReleaseFolder) -> list[tuple[str, str]]:
    return list((table.get("loss") or release.about["guarantee"]["loss"]).items())


def identification_blocks(found: Identification) -> Iterator[Block]:
    """The bounds and the attacks as tables."""
    said = found.said
    yield Prose(said.informed)
    yield from belief_bound_table(said)
    if found.attacks:
        yield Prose(
            "The attacks of the Tables paper (Haney et al. 2017, section 5.2) on lone establishments, in simulation: "
            "the truth is a stand-in of the published shape, because nobody may score attacks on the real data. Chance "
            "is the best guess that is the same for every case. Counts without kinds of workers, sums, flows and "
            "changes are attacked by the p % rule: somebody who knows every other establishment of a cell decides "
            "whether the last one is larger than it is, by the share that the definition hides. Models and posterior "
            "summaries are attacked by somebody who knows all rows but one response and is undecided between its "
            "least and its largest value. This attacker sees the noisy sums that the published numbers come from."
        )
        yield Table(
            ("Table", "Attack", "On", "Tried", "Exactly right", "Right by chance", "Right, of those tried"),
            [
                (row["of"], row["attack"], row["table"], row["cases"], row["exact"], row["by_chance"],
                 percent(row["exact"] / row["cases"]) if row["cases"] else None)
                for row in found.attacks
            ],
            "What attacks achieve on this release, beside noise infusion, which has no guarantee",
        )  # fmt: skip
    if found.notes:
        yield Prose("\n".join(f"- {note}" for note in found.notes))


def belief_bound_table(said: Assurance) -> Iterator[Block]:
    """How far beliefs can move, where that is bounded."""
    rows = []
    for bound in said.beliefs:
        sure = [
            percent(bound.at_most(prior), up=True) if math.isfinite(bound.log_factor) else "no bound"
            for prior in PRIORS
        ]
        rows.append((OPENINGS.get(bound.about, bound.about), bound.pair, bound.attacker, *sure))
    if rows:
        heads = [f"Sure to {percent(prior)} before, then at most" for prior in PRIORS]
        yield Table(("About", "Told apart best", "Attacker", *heads), rows, said.beliefs_caption)


def people_blocks(found: Mapping[str, Identification]) -> Iterator[Block]:
    """About somebody who is in several data sets."""
    said = in_several(found)
    if said is not None:
        yield Heading("About somebody who is in several data sets", 3)
        yield Note("people", said.covered)
        yield from belief_bound_table(said)


def _learnt(found: Mapping[str, Identification]) -> Iterator[Block]:
    yield Heading("What somebody can find out at most")
    for dataset, each in found.items():
        if len(found) > 1:
            yield Heading(f"About {dataset}", 3)
        yield from identification_blocks(each)
    yield from people_blocks(found)


def _footer(imprint: Imprint, version: str) -> str:
    parts = [escape(imprint.publisher)] if imprint.publisher else []
    if imprint.contact:
        parts.append(f'Questions: <a href="{escape(imprint.contact_address)}">{escape(imprint.contact)}</a>')
    if imprint.licence:
        parts.append(f'<a href="{escape(imprint.licence)}" rel="license">Licence</a>')
    parts.append(f"Made with discreet {escape(version)}, from published numbers alone")
    return f"<footer>{' · '.join(parts)}</footer>"
