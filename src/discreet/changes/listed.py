"""The parts of a report: ranked series, reasons for those listed, past lists, other thresholds, series set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.changes.alarms import Alarms, ListLength
from discreet.changes.calibration import right_alarms
from discreet.changes.cases import Cases
from discreet.changes.operating import operating_point
from discreet.changes.panel import spelled
from discreet.changes.scored import Scored
from discreet.changes.standards import Direction
from discreet.words.cases import case_of

RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Cost ratios that a report shows beside the requested one."""

SIZES = (5, 10, 20, 50, 100)
"""Capacities that a report shows beside the requested one."""

SHOWN = 36
"""Periods of a sparkline."""


def set_aside(every: Cases, scored: Scored, direction: Direction) -> list[dict[str, Any]]:
    """The series that are not ranked in the coming period, and the reason."""
    jumped = scored.select(scored.coming & scored.impossible).cases
    up, down = (
        ("rise", "fall")
        if case_of(direction, {"decline": True, "both": False, "increase": False})
        else ("fall", "rise")
    )
    returns = f"had a large {up} at the origin, and a {down} from there counts as a return"
    last = jumped.panel.values[jumped.row, jumped.origin]
    rows = [
        {"series": str(name), "t": spelled(t), "last": float(value), "why": returns, "kind": "return"}
        for name, t, value in zip(jumped.series, jumped.t, last, strict=True)
    ]
    rest = [
        ("unjudged", [(name, why) for name, why, gaps in scored.unjudged if not gaps]),
        ("gaps", [(name, why) for name, why, gaps in scored.unjudged if gaps]),
        ("unforecast", [(str(name), "has no forecast of the coming period") for name in _silent(every)]),
        ("ended", [(name, f"ended at {end}, before the panel") for name, end in every.ended]),
        ("apart", every.panel.set_aside),
    ]
    return rows + [
        {"series": name, "t": None, "last": None, "why": why, "kind": kind}
        for kind, listed in rest
        for name, why in listed
    ]


def _silent(every: Cases) -> np.ndarray:
    """The names of series that go on to the panel's end, and that nobody forecasts from there."""
    there = np.zeros(len(every.panel), bool)
    there[every.row[every.coming]] = True
    return np.asarray(every.panel.names[~there & (every.panel.last == len(every.panel.periods) - 1)])


def gaps(coming: Scored) -> list[dict[str, Any]]:
    """The ranked series that lack periods, which ones, and what was done."""
    of = coming.cases
    torn = np.flatnonzero(of.panel.torn[of.row])
    done = "ranked; the missing are passed over: no change is measured into them or out of them"
    return [{"series": str(of.series[k]), **of.panel.lacks(int(of.row[k])), "done": done} for k in torn]


def rows(coming: Scored, found: Alarms) -> list[dict[str, Any]]:
    """The coming cases, most alarming first, with what stopping at each of them would bring."""
    order = found.order
    right = np.cumsum(found.chance[order])
    of = coming.cases
    columns = {
        "rank": np.arange(1, len(order) + 1),
        "series": of.series[order],
        "t": np.array([spelled(t) for t in of.t[order]]),
        "last": of.panel.values[of.row, of.origin][order],
        "forecast": of.forecasts[found.chosen, order],
        "score": coming.scores[found.chosen, order],
        "chance": found.chance[order],
        "low": found.low[order],
        "high": found.high[order],
        "flag": np.arange(len(order)) < found.size,
        "true_so_far": right,
        "false_so_far": np.arange(1, len(order) + 1) - right,
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def details(teach: Scored, rank: Scored, found: Alarms, period: Integers) -> list[dict[str, Any]]:
    """For each series on the list: recent values, why it is there, its rank a period before, its alarms so far."""
    of, past = rank.cases, teach.cases
    flagged = np.concatenate([each.flagged for each in found.lists]) if found.lists else np.zeros(0, np.int64)
    times = np.bincount(past.row[flagged], minlength=len(of.panel))
    right = np.bincount(past.row[flagged], weights=teach.positive[flagged], minlength=len(of.panel))
    latest = np.flatnonzero(period == period.max())
    ranking = latest[np.argsort(-teach.scores[found.chosen, latest], kind="stable")]
    before = dict(zip(past.row[ranking].tolist(), range(1, len(ranking) + 1), strict=True))
    details = []
    for i in found.order[: found.size]:
        row, origin = int(of.row[i]), int(of.origin[i])
        spread, previous = float(rank.base.change_sd[i]), float(rank.base.previous[i])
        now, ahead = float(of.panel.values[row, origin]), float(of.forecasts[found.chosen, i])
        recent = of.panel.values[row, max(of.panel.first[row], origin - SHOWN + 1) : origin + 1]
        details.append(
            {
                "series": str(of.panel.names[row]),
                "recent": [float(value) for value in recent],
                "forecast": ahead,
                "reason": (
                    f"forecast {now:.4g} → {ahead:.4g}, {_signed((ahead - now) / spread)} of its usual changes; last "
                    f"change {_signed(previous / spread)}"
                ),
                "rank_before": before.get(row),
                "alarms": int(times[row]),
                "right": int(right[row]),
            }
        )
    return details


def chance(row: Mapping[str, Any]) -> str:
    """The chance of a row of the list with its limits, in words."""
    told, low, high = ("< 1 %" if row[key] < 0.005 else f"{100 * row[key]:.0f} %" for key in ("chance", "low", "high"))
    return told if high == "< 1 %" else f"{told} ({low.replace('< 1', '0')} to {high})"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def history(teach: Scored, found: Alarms, period: Integers) -> list[dict[str, Any]]:
    """The lists of past periods by the same rule, each with chances that were learnt without it."""
    large = np.bincount(period, weights=teach.positive)
    first = np.unique(period, return_index=True)[1]
    rows = []
    for each in found.lists:
        share = np.full(len(each.flagged), each.expected / max(len(each.flagged), 1))
        limits = right_alarms(share, spread=found.spread, periods=len(found.lists), known=found.learnt)
        rows.append(
            {
                "t": spelled(teach.cases.t[first[each.period]]),
                "flagged": len(each.flagged),
                "expected": each.expected,
                "low": limits.low,
                "high": limits.high,
                "right": each.right,
                "large": int(large[each.period]),
            }
        )
    return rows


def choices(score: Vector, found: Alarms, line: ListLength, limit: float) -> list[dict[str, Any]]:
    """Other lines, other lists."""
    if line.capacity is not None:
        sizes = sorted({*(size for size in SIZES if size <= len(score)), min(line.capacity, len(score))})
        picks: list[tuple[dict[str, Any], int]] = [({"capacity": size}, size) for size in sizes]
    else:
        picks = []
        for ratio in sorted({*RATIOS, line.cost_ratio}):
            point = operating_point(found.curve, prevalence=found.prevalence, cost_ratio=ratio, fpr_limit=limit)
            size = int((score >= point.threshold).sum())
            picks.append(({"cost_ratio": ratio, "tpr": point.tpr, "fpr": point.fpr}, size))
    rows = []
    for about, size in picks:
        right = found.expected(size)
        rows.append(
            {
                **about,
                "flagged": size,
                "expected_true": right.expected,
                "low": right.low,
                "high": right.high,
                "expected_false": size - right.expected,
            }
        )
    return rows
