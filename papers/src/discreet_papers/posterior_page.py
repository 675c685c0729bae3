"""The page of the posterior study: the thesis's figures, tables of means, the curve of the private centre's gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.audit.blackbox import AuditVerdict
from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Note, Prose, Table
from discreet_papers.posterior_kinds import SUMMARIES, unsaid

DEVIATIONS = np.arange(-4.0, 4.5, 1.0)  # cut-offs, in posterior deviations from the true slope
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
BAND = (5, 95)
HEADINGS = {
    "partitions": "parts",
    "rms_private": "error",
    "away": "quantile / deviation",
    "zero": "around zero",
    "private_centre": "private centre",
    "times_less": "times less",
    "half_width": "half-width",
}

Answers = dict[str, list[Vector]]
"""Vectors of answers, one for each data set: full, partitioned and private."""


def blocks(
    results: Mapping[str, Any],
    probabilities: Mapping[tuple[Any, ...], Answers],
    quantiles: Mapping[tuple[Any, ...], Answers],
    audit: Mapping[str, AuditVerdict],
) -> list[Block]:
    found: list[Block] = [_findings(results, audit)]
    figures = {"normality": ("3.1", "3.2"), "-2 log p": ("3.3", "3.4")}
    for method, numbers in figures.items():
        mine = {f"{key[1]}, {key[2]:,} parts": value for key, value in probabilities.items() if key[0] == method}
        rows = [row for row in results["probability"] if row["method"] == method]
        found += [
            Heading(f"Probabilities: {'the normality method' if method == 'normality' else 'the -2 log p method'}"),
            Prose(NOTES[method]),
            *_pictures(mine, DEVIATIONS, numbers, "posterior deviations from the true slope", "P(slope <= b)"),
            _means(rows, f"Means over data sets, {method}.", method),
        ]
    mine = {f"{key[1]} centre, {key[2]:,} parts": value for key, value in quantiles.items()}
    found += [
        Heading("Quantiles"),
        Prose(NOTES["quantiles"]),
        *_pictures(mine, LEVELS, ("4.1", "4.2"), "probability", "quantile of the slope"),
        _means(results["quantile"], "Means over data sets of quantiles of the slope.", "quantiles"),
        Heading("How far is far?"),
        Prose(
            "Bounds around zero must reach the quantile; bounds around a private centre need only reach as far as the "
            "parts' answers scatter, which is sqrt(M) posterior deviations. The gain is the ratio of the two, so it "
            "grows with the quantile's distance from zero in units of that scatter. 2.4 deviations, found to an "
            f"eighth octave, against a doubled bound: from **{results['far']:g} deviations of the parts** on, noise "
            "is at least 3 times smaller. Nearer to zero the gain is smaller, up to one deviation it is a loss."
        ),
        _gain(results["noise"], results["far"]),
        _headed(
            results["noise"],
            "Scale of the Laplace noise: the thesis's bounds around zero and bounds around a private centre, for the "
            "same parts and the same epsilon; medians over data sets.",
            "noise",
        ),
        Heading("Credible intervals"),
        Prose(
            "A location and a half-width, released together at epsilon 0.9; the noise can be covered by the interval."
        ),
        _headed(results["coverage"], "How often intervals at level 0.95 hold the true slope.", "coverage"),
        Heading("Other data than the thesis's"),
        Prose(KINDS.format(rows=results["kinds_rows"], sets=results["kinds_data_sets"])),
        *_kinds(results["kinds"]),
        Heading("Is it private?"),
        Prose(
            "The black-box audit runs each mechanism on two data sets in which one row turns one part's probability "
            "from 1 to 0. Its bound is a fact with confidence 0.9999; finding nothing is no proof. The proof is in "
            "`docs/proofs/posterior.md`."
        ),
        Table.of(
            [
                {
                    "mechanism": name,
                    "claimed epsilon": verdict.claimed,
                    "epsilon is at least": verdict.epsilon,
                    "claim": "refuted" if verdict.refuted else "not refuted",
                }
                for name, verdict in audit.items()
            ],
            "Lower bounds on epsilon.",
            "audit",
        ),
        Note(
            "limitation", "Simulated data only; the answers hold for normal regression with enough rows in each part."
        ),
    ]
    return found


def _headed(rows: Sequence[Mapping[str, Any]], caption: str, name: str) -> Table:
    return Table.of([{HEADINGS.get(key, key): value for key, value in row.items()} for row in rows], caption, name)


def _kinds(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Coverage, warnings, widths and bias of answers, by kind, coefficient and epsilon."""
    first = {"data": "data", "coefficient": "coefficient", "epsilon": "epsilon"}
    titles = {"interval": "interval", "quantile": "quantile"}
    titles |= {"probability_0.5": "probability, 0.5 away", "probability_2": "probability, 2 away"}
    held = [
        {title: row[key] for key, title in first.items()}
        | {"all rows' own": row["all_rows"]}
        | {title: f"{100 * row[key]:.1f} % ± {100 * (row[f'{key}_error']):.1f} %" for key, title in titles.items()}
        | {"said before paying": said_before(row), "noted": max(row[f"{key}_noted"] for key in titles)}
        for row in rows
    ]
    size = first | {"interval_width": "interval", "quantile_width": "quantile's ends"}
    size |= {"interval_bias": "bias of the interval", "interval_bias_error": "its standard error"}
    size |= {"quantile_bias": "bias of the quantile", "quantile_bias_error": "standard error of that"}
    size |= {"quantile_allowed": "allowed for"}
    missing = unsaid(rows)
    verdict = "\n".join(f"- {line}" for line in missing) or (
        "Where nothing is said before anything is paid, ends hold at least what they say less 1.5 points. Answers are "
        "off by no more than is allowed for, within the errors of this study."
    )
    return [
        Note("result", verdict),
        Table.of(
            held,
            "Share of data sets in which ends at level 0.95 hold what they are for (intervals the truth, others the "
            "answer of all rows), with its standard error; what is said before anything is paid; and how often a note "
            "comes with the answer.",
            "kinds",
        ),
        replace(
            Table.of(
                [{title: row[key] for key, title in size.items()} for row in rows],
                "Half-widths and bias, in posterior deviations.",
                "kinds-widths",
            ),
            folded=True,
        ),
    ]


def said_before(row: Mapping[str, Any]) -> str:
    """The warnings that are known before answers are paid for; all of them mention that a line is assumed."""
    words = [row[f"{summary}_before"] for summary in SUMMARIES]
    said = [f"{word} ({words.count(word)} of {len(words)})" for word in dict.fromkeys(words) if word]
    return "; ".join([*said, *(["a straight line is assumed"] if not row["straight"] else [])])


def _findings(results: Mapping[str, Any], audit: Mapping[str, AuditVerdict]) -> Note:
    """What the page shows, first."""
    published, corrected = audit["-2 log p, paper"], audit["-2 log p, tight"]
    private, thesis = (
        np.mean([row["rms_private"] for row in results["quantile"] if row["centre"] == centre][:count])
        for centre, count in (("private", None), ("zero", len(LEVELS)))
    )
    full, covered = (row["coverage"] for row in results["coverage"][:2])
    return Note(
        "result",
        f"The published noise of -2 log p is **not private**: it promises epsilon {published.claimed:g} and has "
        f"at least {published.epsilon:.2g}; for the corrected noise the audit finds {corrected.epsilon:.2g}. A private "
        f"quantile errs by {private:.2g} with a private centre and by {thesis:.2g} in the thesis's setting. Private "
        f"intervals at level 0.95 hold the slope in {100 * covered:.1f} % of data sets, those of all rows in "
        f"{100 * full:.1f} %.",
    )


def _means(rows: Sequence[Mapping[str, Any]], caption: str, name: str) -> Table:
    """The rows that fit on the page, folded: the figures show them; `results.json` has the rest."""
    shown = ("calibration", "centre", "partitions", "at", "full", "partitioned", "private", "rms_private")
    table = Table.of(
        [{HEADINGS.get(column, column): row[column] for column in shown if column in row} for row in rows],
        f"{caption} The last column is the private answers' root mean square error against the full posterior.",
        name,
    )
    return replace(table, folded=True)


KINDS = (
    "{sets} data sets of {rows:,} rows for each kind and epsilon, through the calls that users have. A curve is "
    "no line, which every summary assumes and says before it is paid for; there answers are off, and a note says so."
)
NOTES = {
    "normality": (
        "The mean of the parts' probabilities is turned into the whole's by a scale. The thesis uses sqrt(M) and sees "
        "answers drawn to one half. The parts' own estimates scatter as widely as their posteriors, so the scale is "
        "sqrt(2M - 1), here called tight; the noise is the same. With the best number of parts it is smaller."
    ),
    "-2 log p": (
        "Fisher's combination. One part can move the sum by -2 log(0.001) = 13.8. The published noise divides that by "
        "M once too often: its answers look better because they are **not private**. The tight noise is M times larger."
    ),
    "quantiles": (
        "The likelihood of each part counts M times; the mean of the parts' quantiles is released within bounds. "
        "Around zero the bounds must reach the quantile itself; around a private centre only the scatter of the parts."
    ),
}


def _pictures(
    found: Mapping[str, Answers], x: Vector, numbers: tuple[str, str], across: str, up: str
) -> tuple[Figure, Figure]:
    """The distributions of full, partitioned and private answers, and of their differences from the full ones."""
    answers, differences = [], []
    for setting, values in found.items():
        full = np.array(values["full"])
        for name in ("full", "partitioned", "private"):
            every = np.array(values[name])
            answers += _bands(every, x, setting, name)
            if name != "full":
                differences += _bands(full - every, x, setting, f"full less {name}")
    titles = {"x": across, "mean": up}

    def chart(rows: list[dict[str, Any]], **more: Any) -> Any:
        return charts.lines(
            rows, "x", "mean", "setting", facet="answer", low="low", high="high", titles={**titles, **more}
        )

    return (
        Figure(
            chart(answers),
            alt=f"Mean and 5 to 95 % band of {up} over data sets, by {across}: full, partitioned and private answers.",
            caption=f"The thesis's Figure {numbers[0]}: distributions over data sets; line the mean, band 5 to 95 %.",
            name=f"figure-{numbers[0].replace('.', '-')}",
        ),
        Figure(
            chart(differences, mean="difference"),
            alt=f"Mean and 5 to 95 % band of the differences from the full answers, by {across}.",
            caption=f"The thesis's Figure {numbers[1]}: differences within a data set from the answer of all rows.",
            name=f"figure-{numbers[1].replace('.', '-')}",
        ),
    )


def _gain(rows: Sequence[Mapping[str, Any]], far: float) -> Figure:
    shown = [{"away": row["away"], "times_less": row["times_less"]} for row in rows]
    enough = next(row["times_less"] for row in rows if row["away"] >= far)
    return Figure(
        charts.lines(
            shown,
            "away",
            "times_less",
            log_x=True,
            log_y=True,
            reference=3.0,
            titles={"away": "quantile / deviation of the parts' answers", "times_less": "times less noise"},
        ),
        f"Noise around zero over noise around a private centre, by the quantile's distance from zero: {enough:.1f} at "
        f"{far:g} deviations of the parts, {rows[-1]['times_less']:.0f} at {rows[-1]['away']:g}.",
        "What a private centre saves, by the quantile's distance from zero; the dashed line is 3",
        "gain",
    )


def _bands(values: Matrix, x: Vector, setting: str, name: str) -> list[dict[str, Any]]:
    low, high = np.percentile(values, BAND, axis=0)
    return [
        {"setting": setting, "answer": name, "x": float(at), "mean": float(m), "low": float(a), "high": float(b)}
        for at, m, a, b in zip(x, values.mean(axis=0), low, high, strict=True)
    ]
