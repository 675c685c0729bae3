"""Reports on large changes as pages: comparisons of forecasts, exception reports, backtests."""

from __future__ import annotations

from typing import Any

from discreet.changes.backtest import Backtest
from discreet.changes.compare import Comparison
from discreet.changes.cutoffs import ByCutoff
from discreet.changes.exceptions import ExceptionReport
from discreet.changes.listed import chance
from discreet.changes.standards import spelled_cutoff
from discreet.chart import mark, number
from discreet.pages.page import Block, Figure, Heading, Listed, Note, Page, Prose, Table


def comparison_page(found: Comparison) -> Page:
    """A comparison for people."""
    titles: tuple[str, ...] = ("method", "partial area", "95 %, from", "to", "standardised", "whole area", "z", "p")
    columns = ("method", "pauc", "low", "high", "mcclish", "auc", "statistic")
    listed = [[*(row[name] for name in columns), _p(row["p"])] for row in found.rows()]
    if found.drawn:
        titles = (*titles, "p without drawing")
        listed = [[*cells, _p(row["p_plain"])] for cells, row in zip(listed, found.rows(), strict=True)]
    lo, hi = found.fpr
    shown = found.methods[:5]
    return Page(
        "Which forecasts foresee large changes?",
        [
            Note(
                "result",
                f"{found.best} ranks the {found.positive.sum()} large changes among {len(found.positive)} cases best: "
                f"partial area {found.replicates.area[0]:.4f} for false positive rates {lo:g} to {hi:g}, where chance "
                f"has {(hi**2 - lo**2) / 2:g} and perfection {hi - lo:g}.",
            ),
            Prose(
                "Standardised: chance 0.5, perfection 1. z: the best's lead in standard deviations; p: how often "
                "equally good methods would differ by as much, the choice of the best included."
            ),
            *([Prose(found.note)] if found.note else []),
            *([Note("warning", found.warning)] if found.warning else []),
            Table(titles, listed, "Methods by partial area.", "methods"),
            Figure(
                found.plot_roc(shown),
                alt=f"ROC curves of {', '.join(shown)}, best first, with the line of chance.",
                caption="ROC curves of the best methods.",
                name="roc",
            ),
        ],
    )


def cutoffs_page(found: ByCutoff) -> Page:
    """A comparison at several cutoffs for people."""
    lo, hi = found.comparisons[0].fpr
    near = ", ".join(found.always_near_the_best) or "No method"
    rows = []
    for name in found.methods:
        cells: list[Any] = [name]
        for each in found.comparisons:
            k = each.methods.index(name)
            cells += [float(each.replicates.area[k]), _p(float(each.undrawn[k])) if k else "best"]
        rows.append(cells)
    titles = ["method"]
    for each in found.comparisons:
        titles += [f"{spelled_cutoff(each.cutoff)}: area", f"{spelled_cutoff(each.cutoff)}: p"]
    counts = ", ".join(f"{int(each.positive.sum())} at {spelled_cutoff(each.cutoff)}" for each in found.comparisons)
    notes = {each.note: None for each in found.comparisons if each.note}
    return Page(
        "Which forecasts foresee large changes, at several cutoffs?",
        [
            Note("result", f"{near}: not told from the best at any cutoff (p above 0.05)."),
            Prose(
                f"Partial areas for false positive rates {lo:g} to {hi:g}, where chance has {(hi**2 - lo**2) / 2:g} "
                f"and perfection {hi - lo:g}. Large changes: {counts}. p: how often equally good methods would differ "
                "by as much as the best and this one, the choice of the best included."
            ),
            *(Prose(note) for note in notes),
            *(
                Note("warning", f"Cutoff {spelled_cutoff(each.cutoff)}: {each.warning}")
                for each in found.comparisons
                if each.warning
            ),
            Table(titles, rows, "Methods by partial area at each cutoff, best first by mean rank.", "methods"),
        ],
    )


def _p(value: float | None) -> str | None:
    return None if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def exception_page(found: ExceptionReport) -> Page:
    """An exception report for people."""
    what = "change" if found.direction == "both" else found.direction
    return Page(
        f"Series to look at: large {what}s ahead",
        [
            *([Note("warning", found.warning)] if found.warning else []),
            Note("result", found.summary()),
            Heading("Series to look at"),
            Prose(
                "Most alarming first. Chance: how often past cases with such scores were large changes, between limits "
                "from other periods. Why: the forecast and the last change, in standard deviations of the series' own "
                "changes. Right so far: what to expect when stopping at that row. Alarms before: past lists that had "
                "the series, and how many of these alarms were right."
            ),
            _flagged(found),
            *_repeated(found),
            *_apart(found),
            *_gaps(found),
            *_history(found),
            *_line(found),
        ],
    )


def _flagged(found: ExceptionReport) -> Block:
    if not found.flagged:
        return Prose("None. No series is worth its false alarms at this cost.")
    periods = sorted({row["t"] for row in found.rows})
    span = f"period {periods[0]}" if len(periods) == 1 else f"periods {periods[0]} to {periods[-1]}"
    titles = ("rank", "series", "recent", "last value", "forecast", "chance", "why", "rank before", "alarms before",
              "right so far", "false so far")  # fmt: skip
    rows = [
        [
            row["rank"],
            row["series"],
            row["last"],
            row["forecast"],
            chance(row),
            detail["reason"],
            detail["rank_before"],
            f"{detail['alarms']}, {detail['right']} right" if detail["alarms"] else "none",
            f"{row['true_so_far']:.1f}",
            f"{row['false_so_far']:.1f}",
        ]
        for row, detail in zip(found.flagged, found.details, strict=True)
    ]
    sparks = [(detail["recent"], detail["forecast"]) for detail in found.details]
    table = Table([each for each in titles if each != "recent"], rows, "", "flagged")
    return Listed(table, sparks, f"{len(rows)} of {len(found.rows)} ranked series, {span}.", at=2)


def _repeated(found: ExceptionReport) -> list[Block]:
    if not found.repeated:
        return []
    rows = [
        {
            "series": row["series"],
            "level": row["level"],
            "repeats": row["repeats"],
            "chance": f"{100 * row['chance']:.0f} %",
        }
        for row in found.repeated
    ]
    return [
        Heading("Not listed twice"),
        Prose(
            "By their scores these would be on the list. Their change is mostly that of the one they repeat, which is "
            "above or below them: on the list, or set aside because it returns from a jump."
        ),
        Table.of(rows, f"{len(rows)} series and sums.", "repeated"),
    ]


def _apart(found: ExceptionReport) -> list[Block]:
    if not found.set_aside:
        return []
    rows = [{key: row[key] for key in ("series", "why", "t", "last")} for row in found.set_aside]
    return [
        Heading("Series that are not ranked"),
        Prose("They cannot be judged, cannot be large changes of the coming period, or have no such period."),
        Table.of(rows, f"{len(rows)} series, and why.", "not-ranked"),
    ]


def _gaps(found: ExceptionReport) -> list[Block]:
    if not found.gaps:
        return []
    return [
        Heading("Ranked series with gaps"),
        Prose("A period that a series lacks is passed over. No value was filled in."),
        Table.of(found.gaps, f"{len(found.gaps)} series, the periods that they lack, and what was done.", "gaps"),
    ]


def _history(found: ExceptionReport) -> list[Block]:
    if not found.history:
        return []
    lines = [
        {"period": row["t"], "number": row[key], "of": name}
        for row in found.history
        for key, name in (("right", "right"), ("expected", "expected"))
    ]
    figure = {
        "mark": {"type": "line", "point": True},
        "data": {"values": lines},
        "encoding": {
            "x": {"field": "period", "type": "ordinal", "title": "Period"},
            "y": {"field": "number", "type": "quantitative", "title": "Right alarms"},
            "color": {"field": "of", "type": "nominal", "title": None},
            "strokeDash": {"field": "of", "type": "nominal", "title": None},
        },
        "width": 520,
        "height": 220,
    }
    return [
        Heading("Past lists"),
        Prose("The lists that this rule would have made, each with chances that were learnt from the other periods."),
        Figure(
            figure,
            alt=f"Right alarms of {len(found.history)} past lists, found and expected, by period.",
            caption="Right alarms of past lists.",
            name="past-lists",
        ),
        Table.of(
            [
                {
                    "period": row["t"],
                    "flagged": row["flagged"],
                    "right, expected": f"{row['expected']:.1f} ({row['low']} to {row['high']})",
                    "right": row["right"],
                    "all large changes": row["large"],
                }
                for row in found.history
            ],
            "Past lists, and what happened.",
            "history",
        ),
    ]


def _line(found: ExceptionReport) -> list[Block]:
    point = found.point
    drawn = (
        f"You can look at {found.capacity} series, so the list has as many. "
        if found.capacity is not None
        else f"A missed large change counts as {point.cost_ratio:g} false alarms and {100 * point.prevalence:.1f} % "
        "of cases "
        f"are large, so the best point of the ROC curve is where its slope falls to {point.slope:.2f}: "
        f"{100 * point.tpr:.0f} % "
        f"of large changes found at {100 * point.fpr:.1f} % false positives{found.expected_rates}. "
    )
    return [
        Heading("How the line was drawn"),
        Prose(
            f"{drawn}Partial area of {found.method} on {found.past} past cases, those that could be large changes: "
            f"{found.pauc:.4f}, between {found.pauc_limits[0]:.4f} and {found.pauc_limits[1]:.4f} (periods resampled). "
            f"Drawing lots has {(found.fpr[1] ** 2 - found.fpr[0] ** 2) / 2:.4f}."
        ),
        Figure(
            _roc_with_point(found),
            alt=f"ROC curve of {found.method} on past cases above the line of chance; the rule lies at a false "
            f"positive rate of {point.fpr:.3f} and a true positive rate of {point.tpr:.3f}.",
            caption="Past cases: the curve, chance (dashed) and the rule by costs (point).",
            name="roc",
        ),
        Table(
            ("line", "flagged", "right", "false"),
            [
                [
                    f"{row['capacity']} series"
                    if "capacity" in row
                    else f"a miss costs {row['cost_ratio']:g} false alarm{'s' if row['cost_ratio'] != 1 else ''}",
                    row["flagged"],
                    f"{row['expected_true']:.1f} ({row['low']} to {row['high']})",
                    f"{row['expected_false']:.1f}",
                ]
                for row in found.choices
            ],
            "Other lines, other lists: series flagged, and how many of them to expect to be right and false.",
            "choices",
        ),
    ]


def _roc_with_point(found: ExceptionReport) -> Any:
    curve, point = found.curve, found.point
    step = max(1, len(curve.fpr) // 400)
    kept = [*range(0, len(curve.fpr) - 1, step), len(curve.fpr) - 1]
    points = [{"fpr": float(curve.fpr[k]), "tpr": float(curve.tpr[k])} for k in kept]
    chance = [{"fpr": 0.0, "tpr": 0.0}, {"fpr": 1.0, "tpr": 1.0}]
    rule = [{"fpr": point.fpr, "tpr": point.tpr}]
    axes = {"x": number("fpr", "False positive rate"), "y": number("tpr", "True positive rate")}
    layers = [
        mark("line", axes, points),
        mark("line", axes, chance, strokeDash=[4, 4], color="grey"),
        mark("point", axes, rule, filled=True, size=120, color="currentColor"),
    ]
    return {"layer": layers, "width": 420, "height": 300}


def backtest_page(found: Backtest) -> Page:
    """A backtest for people."""
    rankings = {"right": "this report", "naive": "naive forecast", "last_change": "last change", "by_lot": "at random"}
    return Page(
        "What the lists would have been worth",
        [
            Note("result", found.summary()),
            Prose(
                "Each list is the one that the report would have made at its time, with the panel up to then: method "
                "and chances were learnt on the periods before it. Other lists have the same size."
            ),
            Table(
                ("ranking", "right alarms", "precision"),
                [
                    [name, f"{sum(row[key] for row in found.rows):.0f}", f"{100 * found.precision(key):.1f} %"]
                    for key, name in rankings.items()
                ],
                "Right alarms of lists by several rankings.",
                "rankings",
            ),
            Table.of([{**row, "series": ", ".join(row["series"])} for row in found.rows], "Each past list.", "lists"),
        ],
    )
