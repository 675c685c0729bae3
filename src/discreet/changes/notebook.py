"""The list of a report as notebooks show it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from discreet.pages.sparkline import sparkline

if TYPE_CHECKING:
    from discreet.changes.exceptions import ExceptionReport

SHOWN = 25


def listing(report: ExceptionReport) -> str:
    """The list of a report as HTML."""
    titles = ("", "series", "recent, and forecast", "chance", "why", "alarms so far")
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = []
    for row, detail in list(zip(report.flagged, report.details, strict=True))[:SHOWN]:
        cells = (
            str(row["rank"]),
            escape(row["series"]),
            sparkline(detail["recent"], detail["forecast"], name=row["series"]),
            f"{100 * row['chance']:.0f} % ({100 * row['low']:.0f} % to {100 * row['high']:.0f} %)",
            escape(detail["reason"]),
            f"{detail['alarms']}, {detail['right']} right" if detail["alarms"] else "none",
        )
        body.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    more = f"<p>The first {SHOWN} of {len(report.flagged):,} on the list.</p>" if len(report.flagged) > SHOWN else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f"<p>{escape(report.summary())}</p>{table}{more}"
