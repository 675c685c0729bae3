"""Pages from templates: who is asking, where they are, numbers and charts as the reports print them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from discreet.desk import filters
from discreet.desk.accounts import Person
from discreet.desk.attempts import Attempts, Checks
from discreet.desk.audit_log import Counted, Repeats
from discreet.desk.desk import Desk
from discreet.desk.store import DeskStore
from discreet.models.linear.families.registry import named, released
from discreet.pages import numbers, ranked, svg
from discreet.pages.page import Figure, Table, inline, paragraphs
from discreet.tables.expected import told
from discreet.tables.intervals.widths import told_width
from discreet.words.errors import DiscreetError
from discreet.words.voices import FORM

NAVIGATION = (
    ("Prepare", (("data", "Data"), ("plans", "Plans"), ("utility", "Risk and utility"))),
    ("Decide", (("review", "Review"), ("runs", "Runs"))),
    ("Publish", (("releases", "Releases"), ("ledger", "Ledger"))),
    ("Analyse", (("changes", "Large changes"), ("models", "Models"))),
)


@dataclass
class Here:
    """Objects that every page needs: the desk, its database, the guard of passwords, the link's token.

    `desk` is another one when a source was added.
    `used` is taken once, by the first who comes with the token, and never given back.
    """

    desk: Desk
    store: DeskStore
    entrance: str | None = None
    attempts: Attempts = field(default_factory=Attempts)
    checks: Checks = field(default_factory=Checks)
    strangers: Counted = field(default_factory=Counted)
    repeats: Repeats = field(default_factory=Repeats)
    used: Lock = field(default_factory=Lock)


async def _here(request: Request) -> Here:
    found: Here = request.app.state.here
    return found


At = Annotated[Here, Depends(_here)]
First = Annotated[int, Query(ge=0, le=10**9)]
ROWS = 50
"""Rows of a list on one page; `first` is the number of the first one."""


def _when(text: str) -> Markup:
    return Markup(f'<time datetime="{escape(text)}">{escape(numbers.minute(text))}</time>')


@dataclass(frozen=True, slots=True)
class RenderedFigure:
    """A figure as a page shows it: picture, caption, and the same as a table."""

    name: str
    caption: str
    picture: Markup
    data: Table


def drawn(figure: Figure, name: str) -> RenderedFigure:
    """Draw a figure; `name` keeps its ids apart on the page."""
    picture = Markup(svg.svg(figure.chart, alt=figure.alt, name=f"{name}-picture"))
    return RenderedFigure(name, figure.caption, picture, figure.data)


@dataclass(frozen=True, slots=True)
class RankedTable:
    """A table that is its own chart, as a page shows it."""

    caption: str
    head: Markup
    body: Markup


def ranked_table(content: ranked.Ranked) -> RankedTable:
    return RankedTable(content.caption, *map(Markup, ranked.rows(content)))


environment = Environment(
    loader=PackageLoader("discreet.desk"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "when": _when,
    "number": numbers.text,
    "inline": lambda text: Markup(inline(text)),
    "paragraphs": lambda text: Markup(paragraphs(text)),
    "three": numbers.three,
    "share": numbers.percent,
    "fraction": lambda text: float(Fraction(text)),
    "column": numbers.column,
    "told": told,
    "width": told_width,
    "zip_same": lambda names: [(name, name) for name in names],
    "is_number": numbers.is_numeric,
    "filter_lines": filters.lines,
    "names": filters.names,
}
environment.globals |= {
    "navigation": NAVIGATION,
    "families": lambda: [("" if named(name).linear else name, each.choice) for name, each in released().items()],
}


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page of the desk."""
    here: Here = request.app.state.here
    parts = request.url.path.split("/")
    person = getattr(request.state, "person", None)
    text = environment.get_template(template).render(
        desk=here.desk,
        person=person,
        ledger_trouble="" if person is None else here.desk.ledger_trouble,
        section=parts[1] if len(parts) > 1 else "",
        **context,
    )
    return HTMLResponse(text, status_code=status)


def refused(request: Request, person: Person, error: DiscreetError) -> str:
    """The message above a form that is shown again; the log has a line for it."""
    here: Here = request.app.state.here
    here.repeats.record(here.store, person.name, "refused", request.url.path[:120], status=409)
    return error.said(FORM)
