"""Pictures of the bench: every ratio on one axis, and time and memory against size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any

from bench.comparison import Row
from discreet.pages import charts
from discreet.pages.svg import svg


def draw(folder: Path, rows: Sequence[Row], curves: Sequence[Mapping[str, Any]]) -> None:
    """Write the pictures to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    timed = [row for row in rows if row.time is not None]
    if timed:
        told = f"Ratios of time against {len(timed)} peers and jobs, on a logarithmic axis with a line at 1."
        _save(folder / "bench-time.svg", ratios(timed), told)
    if curves:
        told = "Seconds against size on logarithmic axes, one panel per job."
        _save(folder / "bench-growth.svg", growth(curves, "seconds"), told)
        told = "Peak memory against size on logarithmic axes, one panel per job."
        _save(folder / "bench-memory.svg", growth(curves, "mib"), told)


def ratios(rows: Iterable[Row]) -> Any:
    """The peers' seconds over ours, the largest first."""
    found = [
        {"job": f"{row.job.split(', ')[0]}: {row.peer.split(', ')[0]}", "ratio": row.time, "one": 1.0, "to": row.time}
        for row in sorted(rows, key=lambda row: -(row.time or 0))
    ]
    titles = {"ratio": "the peer's time over ours"}
    return charts.points_with_intervals(found, "ratio", "job", "to", "one", log_x=True, titles=titles, reference=1.0)


def growth(curves: Iterable[Mapping[str, Any]], what: str) -> Any:
    """One panel per curve, with the fitted exponent in its name."""
    key = "exponent" if what == "seconds" else "exponent of memory"
    found = [
        {"size": log10(size), what: value, "panel": f"{curve['job']}, by {curve['by']} (exponent {curve[key]:.2f})"}
        for curve in curves
        for size, value in zip(curve["sizes"], curve[what], strict=True)
    ]
    titles = {"size": "size, as a power of ten", "seconds": "processor seconds", "mib": "MiB"}
    return charts.lines(found, "size", what, log_y=True, facet="panel", titles=titles)


def _save(path: Path, chart: Any, told: str) -> None:
    path.write_text(svg(chart, alt=told, name=path.stem, standalone=True) + "\n", encoding="utf-8")
