"""The crime study for people: its tables and figures in order. Every number comes from `crime`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet import chart
from discreet.changes.rolling import Schedule
from discreet.pages import charts
from discreet.pages.look import NARROW
from discreet.pages.page import Block, Figure, Heading, Note, Prose, Table

COLUMNS = {
    "model": "model",
    "pauc": "PAUC",
    "statistic": "statistic",
    "p_vs_pmf": "p",
    "improvement": "PMF over it",
    "paper": "paper's PAUC",
    "paper_p": "paper's p",
}


def blocks(
    results: Mapping[str, Any],
    *,
    schedule: Schedule,
    curves: Sequence[Mapping[str, Any]],
    tracts: Sequence[Mapping[str, Any]],
    where: str,
) -> list[Block]:
    """`curves` are points of smoothed ROC curves, `tracts` counts of two tracts in the test months."""
    simulated: list[Block] = [
        _result(results),
        Heading("Data"),
        Prose(
            f"Simulated counts of 175 tracts in 144 months. {schedule.initialise} months start the models, "
            f"{schedule.train} choose their metaparameters, {schedule.burn_in} pass, {schedule.test} test them. "
            "Positives are the five largest counts of each month after standardising by a smoothed Poisson mean."
        ),
        Table.of(results["summary"], "Counts per tract and month (the paper's Table 2.1).", "table-2-1"),
        Heading("The five models"),
        Table.of(results["metaparameters"], "Metaparameters chosen in training (Table 2.2).", "table-2-2"),
        _areas(
            results["pauc"],
            "Partial area of the test months; p: is PMF better than the row's model? (Table 2.3)",
            "table-2-3",
        ),
        _curves(curves),
        Table.of(results["correlation"], "Correlation of scores with the gold standard (Table 2.4).", "table-2-4"),
        Prose(
            "The simulated city is easier than the paper's: its counts have the paper's moments, but least squares "
            "correlates with the gold standard about three times as much. It shows what the models do when indicators "
            "lead, not how large the paper's effects are."
        ),
        _tracts(tracts),
        Prose(
            f"Where the models rank the large increases of these tracts among all {schedule.test} test months. In the "
            "paper PMF has rank 1 and least squares 11 in the low-crime tract, 29 and 30 against 21 and 40 in the "
            "high-crime one: three increases of two tracts, which decide nothing."
        ),
        *(
            [Table.of(results["tract_ranks"], "Ranks of large increases within two tracts.", "tract-ranks")]
            if results["tract_ranks"]
            else []
        ),
        Heading("What changes the result"),
        Prose(
            "The gold standard marks counts that are large for their own tract. An index of raw indicators mostly "
            "tells large tracts from small ones. Standardised: indicators in deviations from their own smoothed "
            "means, the standardised count as the outcome, and the level of the tract as two further columns."
        ),
        _areas(results["further"], "Beyond the paper; p: is the paper's PMF better than the row's model?", "further"),
        Table.of(
            results["over_panels"],
            f"Over {results['panels']} simulated panels: PAUC, and its ratio to OLS minus one.",
            "over-panels",
        ),
        *_range(results),
        Heading("Real Pittsburgh counts"),
    ]
    real = results["real"]
    if real is None:
        return [*simulated, Note("note", f"Not run. {where}")]
    return [
        *simulated,
        Prose(
            f"{real['tracts']} tracts, January 1990 to June 2000, lags of robbery and aggravated assault as "
            f"indicators, {real['schedule'].test} test months. The paper's indicators are not in this file."
        ),
        _areas(real["pauc"], "The five models on real counts.", "real-table-2-3"),
        _areas(real["further"], "Beyond the paper, on real counts.", "real-further"),
        Table.of(real["metaparameters"], "Metaparameters on real counts.", "real-table-2-2"),
        Table.of(real["correlation"], "Correlations on real counts.", "real-table-2-4"),
    ]


def _result(results: Mapping[str, Any]) -> Note:
    """What the page shows, first."""
    over = [row["PMF over OLS"] for row in results["trials"]]
    return Note(
        "result",
        f"The model fitted to the partial area (PMF) finds large changes better than least squares in "
        f"{sum(x > 0 for x in over)} of {len(over)} choices of city and window, by {100 * min(over):+.0f} % to "
        f"{100 * max(over):+.0f} %.",
    )


def _range(results: Mapping[str, Any]) -> list[Block]:
    """What PMF's advantage depends on."""
    over = [row["PMF over OLS"] for row in results["trials"]]
    percent = ("least", "median", "most")
    listed = [{**row, **{name: f"{100 * row[name]:+.0f} %" for name in percent}} for row in results["advantage"]]
    blocks: list[Block] = [
        Heading("How much better is PMF than least squares?"),
        Prose(
            f"It depends: {100 * min(over):+.0f} % to {100 * max(over):+.0f} % over {len(over)} choices of city, "
            "test window, and "
            f"constant and first months of the smoothed mean; PMF is ahead in {sum(x > 0 for x in over)}."
        ),
        Table.of(listed, "PMF over OLS, partial areas: the least, the median and the most of each city.", "advantage"),
        Table.of(results["trials"], "Every choice.", "trials"),
    ]
    if results["cities"]:
        blocks.append(Table.of(results["cities"], "Partial areas of the five models in further cities.", "cities"))
    return blocks


def _areas(rows: Sequence[Mapping[str, Any]], caption: str, name: str) -> Table:
    shown = [key for key in COLUMNS if any(row[key] is not None for row in rows)]
    p_values = {"p_vs_pmf", "paper_p"}
    return Table(
        [COLUMNS[key] for key in shown],
        [
            [f"{row[key]:.3f}" if key in p_values and row[key] is not None else row[key] for key in shown]
            for row in rows
        ],
        caption,
        name,
    )


def _curves(points: Sequence[Mapping[str, Any]]) -> Figure:
    titles = {"fpr": "False positive rate", "tpr": "True positive rate"}
    return Figure(
        charts.lines(points, "fpr", "tpr", "model", points=False, titles=titles),
        alt="Smoothed ROC curves of the five models up to a false positive rate of 0.2.",
        caption="Smoothed (binormal) ROC curves over the test months (Figure 2.1).",
        name="figure-2-1",
    )


def _tracts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    axes = {"x": chart.number("month", "Test month"), "y": chart.number("crimes", "Violent crimes")}
    large = {"transform": [{"filter": "datum.positive"}], **chart.mark("point", axes, filled=True, size=80)}
    width, height = NARROW
    return Figure(
        {
            "data": {"values": list(rows)},
            "facet": {"column": chart.name("tract", None)},
            "spec": {"layer": [chart.mark("line", axes), large], "width": width, "height": height},
            "resolve": {"scale": {"y": "independent"}},
        },
        alt="Counts of two tracts over the test months; points mark the large increases.",
        caption="Violent crimes in two tracts, large increases marked (Figure 2.2).",
        name="figure-2-2",
    )
