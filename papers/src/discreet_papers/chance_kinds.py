"""Chances, operating points and areas of large changes on kinds of panels: what is said beside what then happened.

An exception report is made of all periods but the last, whose outcomes then judge it: right alarms among the flags and
among all ranked series, and the shares of large changes found and of false positives. Intervals of partial areas are
judged by the area of very many cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes import standards
from discreet.changes.exceptions import exception_report
from discreet.roc import curve as roc
from discreet.roc.bootstrap import replicate

SERIES, PERIODS, PAST = 120, 60, 12
WEIGHTS = {"slow": 0.2, "fast": 0.7}  # of exponential smoothing
NEGATIVES, RESAMPLES = 600, 400
MANY = 200_000
RIGHT = 0.9  # of the limits of the number of right alarms


def _white(rng: np.random.Generator, n: int, months: int) -> Matrix:
    return rng.standard_normal((n, months))


PANELS: dict[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "white noise": _white,
    "random walk": lambda rng, n, months: _white(rng, n, months).cumsum(axis=1),
    "heavy tails (t, 3 degrees)": lambda rng, n, months: rng.standard_t(3, (n, months)),
    "skewed (lognormal)": lambda rng, n, months: rng.lognormal(size=(n, months)),
    "counts": lambda rng, n, months: rng.poisson(rng.gamma(2, 2, (n, 1)) + 1, (n, months)).astype(np.float64),
    "mostly zero": lambda rng, n, months: (
        rng.poisson(0.5, (n, months)).astype(np.float64) * rng.integers(1, 9, (n, months))
    ),
    "seasons": lambda rng, n, months: _white(rng, n, months) + rng.normal(0, 2, (n, 12))[:, np.arange(months) % 12],
    "variances of their own": lambda rng, n, months: _white(rng, n, months) * rng.lognormal(0, 1, (n, 1)),
    "one in a hundred ten times as far": lambda rng, n, months: (
        _white(rng, n, months) * np.where(rng.random((n, months)) < 0.01, 10, 1)
    ),
}
AREAS: dict[str, Callable[[np.random.Generator, int, int], tuple[Vector, Vector]]] = {
    "normal scores": lambda rng, up, down: (rng.normal(1, 1, up), rng.normal(0, 1, down)),
    "skewed scores": lambda rng, up, down: (rng.lognormal(0.8, 1, up), rng.lognormal(0, 1, down)),
    "heavy tails": lambda rng, up, down: (1 + rng.standard_t(3, up), rng.standard_t(3, down)),
    "few values": lambda rng, up, down: (
        rng.poisson(3, up).astype(np.float64),
        rng.poisson(1.5, down).astype(np.float64),
    ),
}
POSITIVES = (5, 15, 60)


def smoothed(y: Matrix, t: int) -> dict[str, Vector]:
    """Forecasts of period t from what came before."""
    found = {}
    for name, weight in WEIGHTS.items():
        power = weight * (1 - weight) ** np.arange(t)[::-1]
        found[name] = np.asarray(y[:, :t] @ power / power.sum())
    return found


def panels(kind: str, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], Matrix]:
    """A panel without its last period, forecasts of past periods and of that one, and all values."""
    y = PANELS[kind](rng, SERIES, PERIODS)
    names, last = [f"s{i:03d}" for i in range(SERIES)], PERIODS - 1
    panel = {"series": np.repeat(names, last), "t": np.tile(np.arange(last), SERIES), "value": y[:, :last].ravel()}
    parts = [(t, name, found) for t in range(last - PAST, last + 1) for name, found in smoothed(y, t).items()]
    forecasts = {
        "series": np.array(names * len(parts)),
        "method": np.repeat([name for _, name, _ in parts], SERIES),
        "t": np.repeat([t for t, _, _ in parts], SERIES),
        "forecast": np.concatenate([found for _, _, found in parts]),
    }
    return panel, forecasts, y


def chances(kind: str, sets: int, rng: np.random.Generator) -> dict[str, Any]:
    """Predictions of reports of many panels, and the outcomes: alarms, and the rates of the rule."""
    seen: dict[str, list[float]] = {key: [] for key in ("flags", "ranked", "tpr", "fpr")}
    within = []
    for _ in range(sets):
        panel, forecasts, y = panels(kind, rng)
        report = exception_report(panel, forecasts)
        base = standards.baseline(list(y[:, :-1]))
        positive = standards.large_changes(base, y[:, -1]).positive
        for name, rows in (("flags", report.flagged), ("ranked", report.rows)):
            seen[name].append(_right(rows, positive) - sum(row["chance"] for row in rows))
        all_positive = _right(report.rows, positive)
        flagged = _right(report.flagged, positive)
        within.append(report.right[0] <= flagged <= report.right[1])
        if all_positive:
            seen["tpr"].append(flagged / all_positive - report.left_out[1])
        negatives = len(report.rows) - all_positive
        seen["fpr"].append((len(report.flagged) - flagged) / max(negatives, 1) - report.left_out[0])
    row: dict[str, Any] = {"data": kind, "sets": sets, "within": float(np.mean(within))}
    for name, values in seen.items():
        row[name] = float(np.mean(values))
        row[f"{name}_error"] = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return row


def _right(rows: list[dict[str, Any]], positive: Mask) -> float:
    return float(sum(positive[int(row["series"][1:])] for row in rows))


def areas(kind: str, positives: int, sets: int, rng: np.random.Generator) -> dict[str, Any]:
    """How often the interval of a partial area contains that of very many cases."""
    make = AREAS[kind]
    up, down = make(np.random.default_rng(3), MANY, MANY)
    true = roc.partial_area_of(up, down, 0.0, 0.2)
    truth = np.repeat([True, False], [positives, NEGATIVES])
    held, off, half = [], [], []
    for _ in range(sets):
        score = np.concatenate(make(rng, positives, NEGATIVES))[None, :]
        found = replicate(truth, score, fpr=(0.0, 0.2), resamples=RESAMPLES, rng=int(rng.integers(2**31)))
        low, high = found.interval()[0]
        held.append(bool(low <= true <= high))
        off.append(float(found.area[0]) - true)
        half.append((high - low) / 2)
    return {
        "data": kind,
        "positives": positives,
        "sets": sets,
        "held": float(np.mean(held)),
        "held_error": float(np.sqrt(0.95 * 0.05 / sets)),
        "times": float(np.mean(half) / np.quantile(np.abs(off), 0.95)),
        "bias": float(np.mean(off)),
        "bias_error": float(np.std(off, ddof=1) / np.sqrt(sets)),
    }


def off(row: Mapping[str, Any], name: str) -> bool:
    """Whether prediction and outcome differ by more than three standard errors."""
    return bool(abs(row[name]) > 3 * row[f"{name}_error"])
