"""Small pictures of series, and the list of a report for notebooks: HTML and SVG, no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.changes.exceptions import ExceptionReport

WIDTH, HEIGHT, PAD = 120, 28, 3
SHOWN = 25


def sparkline(recent: Sequence[float], forecast: float, *, name: str) -> str:
    """The recent values as a line and the forecast as a point, with words for those who cannot see it."""
    values = [*recent, forecast]
    low, high = min(values), max(values)
    step = (WIDTH - 2 * PAD) / max(len(values) - 1, 1)
    scale = (HEIGHT - 2 * PAD) / (high - low if high > low else 1)
    points = [(PAD + k * step, HEIGHT - PAD - (value - low) * scale) for k, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[:-1])
    x, y = points[-1]
    words = (
        f"{name}: {len(recent)} periods from {min(recent):.4g} to {max(recent):.4g}, last {recent[-1]:.4g}, "
        f"forecast {forecast:.4g}"
    )
    return (
        f'<svg class="spark" role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{escape(words, quote=True)}">'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.2"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="#c2410c"/></svg>'
    )


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
