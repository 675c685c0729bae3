"""Odd panels, drawn from a seed, and what must hold of what is read from them, forecast, compared and reported.

Panels are on every calendar: hours, days, working days, weeks, half months, months, quarters and years, as dates, text
and numbers. Series begin and end at different times, lack periods, are constant, zero, huge or full of ties, and have
odd names; values are missing or infinite. What is read is compared with a plain table, forecasts with their definition,
areas with counts of pairs, and reports with those of shuffled rows, renamed series, other units and other frames.
"""

from __future__ import annotations

import datetime
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.changes.panel import read_panel, spelled
from worlds import small
from worlds.kinds import KINDS, arrow
from worlds.small import Found, agrees, answer, refused

AHEAD = 4
"""Periods after the panel's last of which the calendar knows the names."""


@dataclass(frozen=True)
class World:
    """A panel, the calendar that its periods are on (later ones too), and the keywords of its doors."""

    calendar: Sequence[Any]
    columns: Mapping[str, Sequence[Any]]
    names: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def at(self, rows: Sequence[int]) -> World:
        return replace(self, columns={name: [values[i] for i in rows] for name, values in self.columns.items()})

    def of(self, role: str) -> Sequence[Any]:
        return self.columns[self.names.get(role, role)]

    def having(self, role: str, values: Sequence[Any]) -> World:
        return replace(self, columns={**self.columns, self.names.get(role, role): list(values)})


def script(world: World) -> str:
    """A program that repeats what a world shows."""
    return (
        "# from the folder tests, with the package on the path\n"
        "import datetime\nfrom math import inf, nan\n\n"
        "from worlds.panels import World, look\n\n"
        f"look({world!r})\n"
    )


# Drawing

DAY = datetime.timedelta(days=1)


def _days(start: datetime.date, step: int) -> Callable[[int], datetime.date]:
    return lambda k: start + k * step * DAY


def _month(start: datetime.date, step: int, day: int) -> Callable[[int], datetime.date]:
    def at(k: int) -> datetime.date:
        year, month = divmod(start.year * 12 + start.month - 1 + k * step, 12)
        after = datetime.date(year + month // 11, (month + 1) % 12 + 1, 1)
        return after - DAY if day == 0 else datetime.date(year, month + 1, day)

    return at


def _working(start: datetime.date) -> Callable[[int], datetime.date]:
    monday = start - start.weekday() * DAY
    return lambda k: monday + (k // 5 * 7 + k % 5) * DAY


def _half(start: datetime.date) -> Callable[[int], datetime.date]:
    of_month = _month(start, 1, 1)
    return lambda k: of_month(k // 2) + (k % 2) * 15 * DAY


def _spelled(form: str, of: Callable[[int], datetime.date]) -> Callable[[int], str]:
    return lambda k: of(k).strftime(form).replace("%q", str((of(k).month + 2) // 3))


def calendars(start: datetime.date) -> dict[str, Callable[[int], Any]]:
    """Labels of periods by their number, for every calendar."""
    months, monday = _month(start, 1, 1), start - start.weekday() * DAY
    moment = datetime.datetime(start.year, start.month, start.day, 6)
    return {
        "days": _days(start, 1),
        "days as text": _spelled("%Y-%m-%d", _days(start, 1)),
        "days as numbers": lambda k: int(_days(start, 1)(k).strftime("%Y%m%d")),
        "days with slashes": _spelled("%d/%m/%Y", _days(start, 1)),
        "working days": _working(start),
        "weeks": _days(start, 7),
        "weeks as text": lambda k: "{}-W{:02d}".format(*(monday + k * 7 * DAY).isocalendar()[:2]),
        "half months": _half(start),
        "months": months,
        "ends of months": _month(start, 1, 0),
        "months as text": _spelled("%Y-%m", months),
        "months as numbers": lambda k: int(months(k).strftime("%Y%m")),
        "months in words": _spelled("%b %Y", months),
        "months with M": _spelled("%YM%m", months),
        "quarters": _month(start, 3, 1),
        "ends of quarters": _month(datetime.date(start.year, 3, 1), 3, 0),
        "quarters as text": _spelled("%YQ%q", _month(datetime.date(start.year, 1, 1), 3, 1)),
        "years": lambda k: 1950 + k,
        "ends of years": _month(datetime.date(1950, 12, 1), 12, 0),
        "numbers": lambda k: k + 1,
        "numbers by tens": lambda k: 10 * k,
        "hours": lambda k: moment + k * datetime.timedelta(hours=1),
        "days at six": lambda k: moment + k * DAY,
    }


def known_as(label: Any, kind: str) -> str:
    """How a period is called once it was read."""
    if isinstance(label, datetime.datetime):
        return label.strftime("%Y-%m-%dT%H:%M")
    for called, form in (("days with slashes", "%d/%m/%Y"), ("months in words", "%b %Y"), ("months with M", "%YM%m")):
        if kind == called:
            return datetime.datetime.strptime(label, form).strftime("%Y-%m-%d")
    return str(label)


NAMES: list[Callable[[int], Any]] = [
    lambda i: f"s{i:02d}",
    lambda i: f"s{i}",
    lambda i: i,
    lambda i: f"{i:03d}",
    lambda i: ["Zz", "aB", "öé"][i % 3] + str(i),
    lambda i: (
        ["", " ", "NA", "nan", "a:b", "TRUE", "é", "e\u0301", "None", "0", "'", '"', ",", "😀", "a\\b"][i % 15]
        + "x" * (i // 15)
    ),
    lambda i: "long " * 30 + str(i),
    lambda i: ["p", "P", "p ", " p"][i % 4] + str(i // 4),
]
CALLED = [
    {},
    {},
    {"series": "unique_id", "t": "ds", "value": "y"},
    {"series": "ID", "t": "Date", "value": "target"},
    {"series": "ställe", "t": "select", "value": "a b"},
    {"series": "value", "t": "series", "value": "t"},
]
"""What the columns are called; the last are told by `columns`."""


def _values(rng: np.random.Generator, count: int) -> np.ndarray:
    """One series."""
    kind, place = rng.integers(12), np.arange(count)
    noise = rng.normal(size=count)
    if kind == 0:
        return np.zeros(count)
    if kind == 1:
        return np.full(count, 7.25)
    if kind == 2:
        return rng.poisson(0.4, count).astype(float)
    if kind == 3:
        return rng.integers(0, 3, count).astype(float)
    if kind == 4:
        return 1e12 + 1e9 * noise.cumsum()
    if kind == 5:
        return 1e-9 * noise
    if kind == 6:
        return np.where(place < count // 2, 5.0, 50.0) + noise
    if kind == 7:
        return 100.0 + 10 * np.sin(place * 2 * np.pi / 12) + noise
    if kind == 8:
        return np.round(20 + noise.cumsum())
    return noise.cumsum() * rng.choice([1.0, 10.0]) + rng.choice([0.0, 100.0])


def drawn(seed: int) -> World:
    """The world of a seed."""
    rng = np.random.default_rng([39, seed])
    start = datetime.date(int(rng.integers(1990, 2016)), int(rng.integers(1, 13)), int(rng.integers(1, 28)))
    kinds = calendars(start)
    kind = str(rng.choice(list(kinds)))
    span = int(rng.integers(8, 48))
    labels = [kinds[kind](k) for k in range(span + AHEAD)]
    count = int(rng.choice([2, 3, 6, 12, 25]))
    lost = (
        set(rng.choice(span, int(rng.integers(0, 1 + span // 12)), replace=False).tolist())
        if rng.random() < 0.25
        else set()
    )
    name, rows = NAMES[int(rng.integers(len(NAMES)))], []
    order = rng.permutation(count)
    uneven, holes = rng.random() < 0.4, rng.random() < 0.5
    for i in range(count):
        first = int(rng.integers(0, span // 2)) if uneven and rng.random() < 0.5 else 0
        last = int(rng.integers(first + 2, span)) if uneven and rng.random() < 0.3 else span - 1
        y = _values(rng, span)
        missing = rng.random(span) < (rng.choice([0.0, 0.02, 0.08, 0.3]) if holes else 0.0)
        here = [k for k in range(first, last + 1) if k not in lost and (not missing[k] or rng.random() < 0.3)]
        rows += [(name(int(order[i])), labels[k], None if missing[k] else float(y[k])) for k in here]
    if rng.random() < 0.1 and rows:
        k = int(rng.integers(len(rows)))
        rows[k] = (*rows[k][:2], float(rng.choice([math.inf, -math.inf, 1e200, math.nan])))
    if rng.random() < 0.05 and rows:
        rows.append(rows[int(rng.integers(len(rows)))])
    if rng.random() < 0.5:
        rows = [rows[i] for i in rng.permutation(len(rows))]
    if (
        rows
        and rng.random() < 0.2
        and all(v is None or (math.isfinite(v) and v == round(v) and abs(v) < 2**53) for *_, v in rows)
    ):
        rows = [(s, t, None if v is None else int(v)) for s, t, v in rows]
    names = dict(CALLED[int(rng.integers(len(CALLED)))])
    columns = {names.get(role, role): [row[k] for row in rows] for k, role in enumerate(("series", "t", "value"))}
    asked = {
        "kind": kind,
        "horizon": int(rng.choice([1, 1, 2, 3])),
        "past": int(rng.choice([4, 8, 16])),
        "direction": str(rng.choice(["decline", "increase", "both"])),
        "regression": str(rng.choice(["negative", "drop", "keep"])),
        "cutoff": float(rng.choice([0.7, 0.9, 0.95])),
        "capacity": int(rng.choice([1, 3, 100])),
        "gaps": str(rng.choice(["skip", "skip", "zero", "carry"])),
    }
    return World(labels, columns, names, asked, seed)


def smaller(world: World) -> Iterator[World]:
    """Every way to a smaller world."""
    for name in sorted(set(map(str, world.of("series")))):
        kept = [i for i, each in enumerate(world.of("series")) if str(each) != name]
        if kept:
            yield world.at(kept)
    usual = {"horizon": 1, "past": 4, "direction": "decline", "regression": "negative", "capacity": 1, "gaps": "skip"}
    for key, value in usual.items():
        if world.asked[key] != value:
            yield replace(world, asked={**world.asked, key: value})
    if world.names:
        yield replace(world, columns={role: world.of(role) for role in ("series", "t", "value")}, names={})
    if len(world.of("t")):
        for end in (0, 1):
            gone = (min, max)[end](world.of("t"), key=world.calendar.index)
            kept = [i for i, t in enumerate(world.of("t")) if t != gone]
            if kept:
                yield world.at(kept)
    for rows in small.fewer(len(world.of("t"))):
        yield world.at(rows)


# The plain table


@dataclass(frozen=True)
class Plain:
    """What a panel is: places of periods on the calendar, and the value of each series there.

    `held` is the share of the periods between the first and the last that any row mentions.
    """

    values: dict[str, dict[int, float]]
    first: int
    last: int
    apart: set[str]
    held: float

    def of(self, name: str) -> dict[int, float]:
        return self.values[name]


def plain(world: World) -> Plain | None:
    """The panel as a dictionary; None if two rows are of one series and period, or nothing has a value."""
    place = {label: k for k, label in enumerate(world.calendar)}
    found: dict[str, dict[int, float]] = {}
    for s, t, v in zip(world.of("series"), world.of("t"), world.of("value"), strict=True):
        if v is None or v != v:
            continue
        own = found.setdefault(str(s), {})
        if place[t] in own:
            return None
        own[place[t]] = float(v)
    if not found:
        return None
    every = {k for own in found.values() for k in own}
    held = len(every) / (max(every) + 1 - min(every))
    apart = {name for name, own in found.items() if max(map(abs, own.values())) > 1e150}
    kept = {name: own for name, own in found.items() if name not in apart}
    if world.asked["gaps"] == "skip":
        for name, own in kept.items():
            steps = set(np.diff(sorted(own)).tolist())
            if len(own) > 2 and len(steps) == 1 and steps != {1}:
                apart.add(name)
    kept = {name: own for name, own in found.items() if name not in apart}
    every = {k for own in kept.values() for k in own} or every
    first, last = min(every), max(every)
    for name, own in kept.items():
        for k in range(min(own), (last if world.asked["gaps"] == "zero" else max(own)) + 1):
            if k not in own and world.asked["gaps"] != "skip":
                kept[name] = own = {**own, k: 0.0 if world.asked["gaps"] == "zero" else own[k - 1]}
    return Plain(dict(sorted(kept.items())), first, last, apart, held)


# Looking


def look(world: World) -> list[float]:
    """Break if a promise is broken."""
    _unknown(world)
    held = answer(lambda: read(world))
    table = plain(world)
    if table is None:
        agrees(refused(held), "a panel that is none was read", held)
        return []
    varied = any(len(set(own.values())) > 1 for own in table.values.values())
    if not varied or len(table.values) < 2:
        agrees(refused(held), "a panel that cannot be judged was read", held)
        return []
    known = table.held == 1 or world.asked["kind"] != "working days"  # a day that all lack is a holiday
    span = table.last - table.first + 1
    if refused(held):
        agrees(table.held < 1 or span < 8 or table.apart, "a whole panel was refused", held)
    elif known and span >= 8 and table.held > 0.8:
        _read(world, held, table)
        _forecast(world, table)
        _compared(world, table)
        _reported(world, table)
    return []


def _unknown(world: World) -> None:
    """A word that decides and that nobody knows is refused, and never taken for another."""
    key = ("gaps", "direction", "regression")[world.seed % 3]
    for word in ("Skip", "", "down"):
        given = report(replace(world, asked={**world.asked, key: word}))
        agrees(refused(given), f"an unknown {key} was taken for another", word, given)


def read(world: World, data: Any = None, **more: Any) -> Any:
    return read_panel(
        arrow(world.columns) if data is None else data, gaps=world.asked["gaps"], names=world.names, **more
    )


def called(world: World, place: int) -> str:
    return known_as(world.calendar[place], world.asked["kind"])


def _read(world: World, held: Any, table: Plain) -> None:
    """Series, periods, values and the series that are set aside are those of the plain table."""
    agrees({name for name, _ in held.set_aside} == table.apart, "series set aside", held.set_aside, table.apart)
    agrees(held.names.tolist() == list(table.values), "names of series", held.names, list(table.values))
    periods = [called(world, k) for k in range(table.first, table.last + 1)]
    agrees([spelled(t) for t in held.periods] == periods, "periods", held.periods, periods)
    for row, (name, own) in enumerate(table.values.items()):
        expected = [own.get(k, math.nan) for k in range(table.first, table.last + 1)]
        agrees(
            np.array_equal(held.values[row], expected, equal_nan=True),
            "values",
            name,
            held.values[row],
            expected,
        )
        ends = (held.first[row] + table.first, held.last[row] + table.first)
        agrees(ends == (min(own), max(own)), "first and last period", name, ends)
    later = answer(lambda: spelled(held.later(1)))
    agrees(
        refused(later) or later == called(world, table.last + 1),
        "the coming period",
        later,
        called(world, table.last + 1),
    )


METHODS = ("naive", "seasonal_naive", "ses", "theta", "tsb")


def forecasts(world: World, data: Any = None, methods: Sequence[str] = METHODS) -> Any:
    asked = {key: world.asked[key] for key in ("horizon", "past", "gaps")}
    ours = _in_our_names(world) if data is None else data
    return answer(lambda: dc.forecast_panel(ours, methods=list(methods), **asked))


def _in_our_names(world: World) -> Any:
    return arrow({role: world.of(role) for role in ("series", "t", "value")})


def _forecast(world: World, table: Plain) -> None:
    """Forecasts are made from what was known, by their definition, for the periods that were asked for."""
    found = forecasts(world)
    if refused(found):
        return
    place = {called(world, k): k for k in range(len(world.calendar))}
    horizon, past = world.asked["horizon"], world.asked["past"]
    made: dict[str, dict[tuple[str, int], float]] = {}
    for row in found.to_pylist():
        agrees(math.isfinite(row["forecast"]), "a forecast that is not finite", row)
        made.setdefault(row["method"], {})[row["series"], place[spelled_row(row["t"])]] = row["forecast"]
    expected: dict[tuple[str, int], float] = {}
    for name, own in table.values.items():
        for target in range(max(table.first + horizon, table.last - past + 1), table.last + 1):
            if target in own and target - horizon in own:
                expected[name, target] = own[target - horizon]
        if table.last in own:
            expected[name, table.last + horizon] = own[table.last]
    agrees(
        set(made["naive"]) <= set(expected),
        "a forecast of a period that was not asked for",
        lambda: set(made["naive"]) - set(expected),
    )
    for key, value in made["naive"].items():
        agrees(value == expected[key], "the naive forecast", key, value, expected[key])
    for key in set(expected) - set(made["naive"]):
        begun = key[1] - horizon - min(table.of(key[0]))
        agrees(begun < 4 or _torn(table.of(key[0])), "a forecast is missing", key, expected[key])


def _torn(own: Mapping[int, float]) -> bool:
    return len(own) < max(own) - min(own) + 1


def spelled_row(t: Any) -> str:
    """The label of a row of an Arrow table."""
    if isinstance(t, datetime.datetime):
        return t.strftime("%Y-%m-%dT%H:%M")
    return str(t)


def _standard(world: World, own: Mapping[int, float], origin: int) -> tuple[float, float, float] | None:
    """Last value, mean and deviation of changes up to an origin; None if the history cannot be judged."""
    known = sorted(k for k in own if k <= origin)
    changes = [own[k] - own[k - 1] for k in known if k - 1 in own]
    lacked = [k for k in range(known[0], origin + 1) if k not in own]
    if (
        len(known) < 3
        or len(changes) < 2
        or len(lacked) > 0.1 * (origin + 1 - known[0])
        or (lacked and origin - lacked[-1] < 6)
    ):
        return None
    sd = float(np.std(changes, ddof=1))
    if sd <= 1e-12 * max(abs(own[k]) for k in known):
        return None
    return own[origin], float(np.mean(changes)), sd


def _compared(world: World, table: Plain) -> None:
    """Large changes and areas are those of a plain count."""
    from scipy.stats import norm

    made = forecasts(world, methods=("naive", "tsb"))
    if refused(made):
        return
    asked = {key: world.asked[key] for key in ("horizon", "direction", "regression", "cutoff", "gaps")}
    found = answer(lambda: dc.compare_large_changes(_in_our_names(world), made, resamples=20, **asked))
    if refused(found):
        return
    place = {called(world, k): k for k in range(len(world.calendar))}
    limit, horizon = float(norm.ppf(asked["cutoff"])), asked["horizon"]
    cases: dict[tuple[str, int], dict[str, float]] = {}
    for row in made.to_pylist():
        cases.setdefault((row["series"], place[spelled_row(row["t"])]), {})[row["method"]] = row["forecast"]
    rows = []
    for (name, target), forecast in cases.items():
        own, origin = table.of(name), target - horizon
        at = _standard(world, own, origin) if target <= table.last else None
        if at is None:
            continue
        last, mean, sd = at

        def score(value: float, sign: int, last: float = last, mean: float = mean, sd: float = sd) -> float:
            return sign * (value - last - mean) / sd

        large, undone, sides = False, False, {"decline": [-1], "increase": [1], "both": [-1, 1]}[asked["direction"]]
        open_ = list(sides)
        for sign in sides:
            beyond, jump = score(own[target], sign), score(last + own[origin] - own.get(origin - 1, math.nan), -sign)
            if min(abs(beyond - limit), abs(jump - limit)) < 1e-6:
                return  # a matter of rounding
            rebound = beyond >= limit and jump >= limit
            large |= beyond >= limit and (asked["regression"] == "keep" or not rebound)
            undone |= rebound
            if jump >= limit and len(sides) > 1 and asked["regression"] != "keep":
                open_.remove(sign)  # a change that would be a return
        if undone and asked["regression"] == "drop":
            continue
        rows.append((tuple(max(score(forecast[method], sign) for sign in open_) for method in found.methods), large))
    agrees(len(rows) == len(found.positive), "cases that take part", len(rows), len(found.positive))
    agrees(sum(large for _, large in rows) == found.positive.sum(), "large changes", rows, found.positive.sum())
    for k, method in enumerate(found.methods):
        ours, theirs = sorted(scores[k] for scores, _ in rows), sorted(found.scores[k].tolist())
        agrees(np.allclose(ours, theirs, rtol=1e-6, atol=1e-6), "scores", method, ours, theirs)
        auc, pauc = areas(found.positive, found.scores[k], found.fpr)
        told, curve = found.rows()[k], found.curve(method)
        agrees(abs(np.trapezoid(curve.tpr, curve.fpr) - auc) < 1e-9, "the area under a curve", method, curve, auc)
        agrees(abs(told["auc"] - auc) < 1e-9, "area", method, told, auc)
        agrees(abs(told["pauc"] - pauc) < 1e-9, "partial area", method, told, pauc)
        agrees(told["low"] <= told["high"] and math.isfinite(told["low"] + told["high"]), "limits of an area", told)


def areas(positive: np.ndarray, score: np.ndarray, fpr: tuple[float, float]) -> tuple[float, float]:
    """The area by counting pairs, and the partial one under the curve through all thresholds."""
    up, down = score[positive], score[~positive]
    pairs = (up[:, None] > down).sum() + 0.5 * (up[:, None] == down).sum()
    points = [(0.0, 0.0)] + [((down >= c).mean(), (up >= c).mean()) for c in sorted(set(score.tolist()), reverse=True)]
    total, (lo, hi) = 0.0, fpr
    for (x0, y0), (x1, y1) in pairwise(points):
        a, b = max(x0, lo), min(x1, hi)
        if b > a:
            at = [y0 + (y1 - y0) * (x - x0) / (x1 - x0) for x in (a, b)]
            total += (b - a) * (at[0] + at[1]) / 2
    return float(pairs / (len(up) * len(down))), float(total)


def report(world: World, data: Any = None) -> Any:
    asked = {
        key: world.asked[key] for key in ("horizon", "past", "direction", "regression", "cutoff", "capacity", "gaps")
    }
    names = {"columns": world.names} if world.names else {}
    ours = arrow(world.columns) if data is None else data
    return answer(lambda: dc.exception_report(ours, methods=["naive", "ses", "tsb"], **asked, **names))


def _reported(world: World, table: Plain) -> None:
    """Every series is ranked or set aside with a reason, and the list says what it may."""
    found = report(world)
    _same_reports(world, found)
    if refused(found):
        return
    ranked, aside = [row["series"] for row in found.rows], [row["series"] for row in found.set_aside]
    agrees(
        sorted([*ranked, *aside]) == sorted({*table.values, *table.apart}),
        "series that are neither ranked nor set aside",
        ranked,
        aside,
    )
    agrees(len(found.flagged) == min(world.asked["capacity"], len(ranked)), "the length of the list", found)
    for row in found.rows:
        own = table.of(row["series"])
        agrees(0 <= row["low"] <= row["chance"] <= row["high"] <= 1, "a chance outside its limits", row)
        agrees(row["last"] == own[table.last], "the last value", row)
        agrees(row["t"] == called(world, table.last + world.asked["horizon"]), "the coming period", row)
    chances = [row["chance"] for row in found.rows]
    agrees(chances == sorted(chances, reverse=True), "a list out of order", chances)
    torn = {name for name in ranked if _torn(table.of(name))}
    agrees({row["series"] for row in found.gaps} == torn, "series with gaps", found.gaps, torn)
    for row in found.gaps:
        own = table.of(row["series"])
        agrees(row["missing"] == max(own) - min(own) + 1 - len(own), "missing periods", row)
    low, high = found.right
    agrees(0 <= low <= high <= len(found.flagged), "limits of right alarms", found.right)


def _same_reports(world: World, found: Any) -> None:
    """The same list from shuffled rows, from series of other names in the same order, and in another unit."""

    def same(given: Any, kind: str, *, unit: float = 1.0, rename: Callable[[str], str] = lambda name: name) -> None:
        agrees(refused(given) == refused(found), kind, found, given)
        if refused(found):
            agrees(found.kind == given.kind, kind, found, given)
            return
        agrees(found.method == given.method, kind, found.method, given.method)
        ours, theirs = ([(row["series"], row["t"], row["flag"]) for row in each.rows] for each in (found, given))
        agrees([(rename(s), *rest) for s, *rest in ours] == theirs, kind, ours, theirs)
        for mine, other in zip(found.rows, given.rows, strict=True):
            agrees(np.isclose(mine["chance"], other["chance"], rtol=1e-6), kind, (mine, other))
            agrees(
                np.isclose(mine["forecast"] * unit, other["forecast"], rtol=1e-6, atol=1e-9 * abs(unit * mine["last"])),
                kind,
                (mine, other),
            )

    order = np.random.default_rng(world.seed).permutation(len(world.of("t"))).tolist()
    same(report(world.at(order)), "shuffled rows")
    same(
        report(world.having("series", ["k" + str(name) for name in world.of("series")])),
        "renamed series",
        rename=lambda name: "k" + name,
    )
    values = [None if v is None else v * 1024.0 if abs(v) < 1e150 else v for v in world.of("value")]
    same(report(world.having("value", values)), "values in another unit", unit=1024.0)
    with tempfile.TemporaryDirectory() as path:
        kind = kind_of(world)
        same(report(world, KINDS[kind](world.columns, Path(path))), f"read from {kind}")


def kind_of(world: World) -> str:
    """A kind of frame that holds this panel: a CSV file has names with a letter, no spaces at the ends and no marks."""
    for kind in np.random.default_rng([1, world.seed]).permutation(list(KINDS)):
        if kind != "csv" or all(
            str(s).strip() == str(s)
            and str(s)[:1].isalpha()
            and str(s).isascii()
            and str(s).isalnum()
            and str(s).lower() not in ("na", "nan", "none", "true")
            for s in world.of("series")
        ):
            return str(kind)
    raise AssertionError


def many(seed: int, count: int, *, shrinking: bool = True) -> list[Found[World]]:
    """The faults of so many worlds from a seed on."""
    return small.many(drawn, look, smaller, script, seed, count, shrinking=shrinking)
