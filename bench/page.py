"""What readers see of the bench: a sentence in the README, the tables of two pages of docs/explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench import peers
from bench.comparison import TIE, Accuracy, Comparison, Row, accuracies, markdown
from bench.growth import exponent

PROGRAMS = (
    *(peer.name for peer in (peers.TUMULT, peers.OPENDP, peers.SMARTNOISE, peers.DIFFPRIVLIB, peers.STATSMODELS)),
    *(peer.name for peer in (peers.PYMER4, peers.PYMC, peers.BAMBI, peers.NUMPYRO, peers.SKLEARN)),
    *(peers.STATSFORECAST.name, "DuckDB", "lme4", "glmmTMB", "pROC", "quantreg"),
)
CORES = 32
NATION, EMPLOYERS = 1.5e8, 1.05e7
"""Jobs and establishments of a national quarter."""

QUARTERLY = {"tables that add up": True, "sums of payroll that add up": True, "flows of six quarters": False}
"""What else a quarter has, by establishments; whether a least-squares fit on the driver is most of it."""

WORDS = {
    "_seam.py: submit": "DuckDB runs the query",
    "_seam.py: bind": "DuckDB plans the query",
}


def in_short(rows: Sequence[Row]) -> str:
    """The README's sentence."""
    measured, _, programs = _sorted(rows)
    return (
        f"Beside {len(programs)} other programs, on the {len(measured)} jobs where another did the same work, discreet "
        f"took {counted(measured, 'time')} and {counted(measured, 'memory')}: `make bench`, "
        "[all rows](docs/explanation/bench.md)."
    )


def _sorted(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[str]]:
    """The measured rows of the same work, the others, and the programs of the first."""
    measured = [row for row in rows if row.time is not None and row.same_work]
    others = [row for row in rows if row.time is not None and not row.same_work]
    return measured, others, [name for name in PROGRAMS if any(name in row.peer for row in measured)]


def side_by_side(rows: Sequence[Row], errors: Sequence[Accuracy], *, absent: Sequence[str] = (), codes: int = 1) -> str:
    """The tables of the comparison; `absent` ones have no result, and all came from `codes` states of the code."""
    measured, others, programs = _sorted(rows)
    parts = [
        f"Side by side with {len(programs)} other programs on one machine (`make bench`). On the {len(measured)} rows "
        f"where another program did the same work, discreet took {counted(measured, 'time')} and "
        f"{counted(measured, 'memory')}; the others say why. The {len(others)} rows marked * are not the same work: "
        f"{counted(others, 'time')} and {counted(others, 'memory')}. A tie is a difference below {100 * TIE:.0f} %. "
        "Above 1 x, "
        "discreet needs less.",
        markdown(rows),
    ]
    if absent:
        parts.append(f"Not measured in the last run: {', '.join(absent)}.")
    if codes > 1:
        parts.append(f"The comparisons were measured with {codes} states of the code.")
    if errors:
        parts += [
            "Error at equal privacy, drawn on both sides, the libraries' by OpenDP; above 1 x, the peer's is larger:",
            accuracies(errors),
        ]
    return "\n\n".join(parts)


def by_themselves(found: Mapping[str, Comparison]) -> list[str]:
    """What has no peer, on the same page: distances to limits, private summaries, reports; if they were measured."""
    parts = []
    if "laws" in found:
        parts += ["## Beside the least error of any law", limits(found["laws"].facts)]
    if "summaries" in found:
        parts += ["## Private summaries beside all rows", summaries(found["summaries"].facts)]
    if "exceptions" in found:
        parts += ["## Exception reports", reports(found["exceptions"].facts)]
    if "cluster" in found and "check" in found["cluster"].facts:
        parts += ["## The check of rows on Spark", check_on_spark(found["cluster"].facts["check"])]
    return parts


def limits(facts: Mapping[str, Any]) -> str:
    """Our laws over what linear programmes say is possible."""
    lines = [
        "| law | counts together | epsilon | workers of the establishment | error over the least, median | largest | "
        "drawn, standard errors from its law |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{row['law']}` | {row['counts']} | {row['epsilon']} | {row['sizes']} | {row['median']:.3f} | "
        f"{row['worst']:.3f} | {row['off']:+.1f} |"
        for row in facts["limits"]
    ]
    small = ", ".join(f"{ratio:.2f} at epsilon {epsilon}" for epsilon, ratio in facts["unions over joint"].items())
    return (
        "The least error is that of the best law with mean zero that follows the largest establishment, by a linear "
        "programme; for counts together, of the best that follows a radius. `two-sizes` knows that a lone one has no "
        "second and may lie below. Alpha is 0.1.\n\n" + "\n".join(lines) + "\n\nWhere cells have three "
        f"establishments of 60 workers of eight kinds, `weak-unions` errs by {small} of `weak-joint`."
    )


def summaries(facts: Mapping[str, Any]) -> str:
    """Private medians and intervals of a slope beside those of all rows."""
    lines = [
        "| epsilon | private median, posterior deviations from the full one | length over the full interval | "
        "holds the slope |",
        "|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {float(epsilon):g} | {row['off']:.2f} | {row['length']:.2f} | {100 * row['holds']:.0f} % |"
        for epsilon, row in facts["summaries"].items()
    ]
    return (
        f"A slope from {facts['rows']:,} rows, means over {facts['releases']} data sets, intervals of "
        f"{100 * facts['level']:.0f} %:\n\n" + "\n".join(lines)
    )


def reports(facts: Mapping[str, Any]) -> str:
    """What a report on so many series costs."""
    lines = ["| series | processor seconds | peak memory | ranked |", "|---:|---:|---:|---:|"]
    lines += [
        f"| {int(series):,} | {row['cpu']:,.3g} | {row['mib']:,.0f} MiB | {row['ranked']:,} |"
        for series, row in facts["reports"].items()
    ]
    return "Six methods, 24 past months and the coming one, from a Parquet file to a ranked list:\n\n" + "\n".join(
        lines
    )


def check_on_spark(facts: Mapping[str, Any]) -> str:
    """The check of every row over releases of the same jobs."""
    again, first = facts["check over release"], facts["check over release, first in a process"]
    lines = ["| release | check over it, warm | first in a process |", "|---|---:|---:|"]
    lines += [f"| {name} | {ratio:.2g} x | {first[name]:.2g} x |" for name, ratio in again.items()]
    return "Processor seconds of the check of every row over those of a release:\n\n" + "\n".join(lines)


def counted(rows: Sequence[Row], what: str) -> str:
    """How many rows are ahead in time or memory, and how many are ties."""
    ratios = [getattr(row, what) for row in rows if row.agrees and getattr(row, what) is not None]
    less, ties = sum(ratio > 1 + TIE for ratio in ratios), sum(abs(ratio - 1) <= TIE for ratio in ratios)
    return f"less {what} on {less} (ties: {ties})" if ties else f"less {what} on {less}"


def growth_and_cost(found: Mapping[str, Comparison]) -> str:
    """Exponents, what a nation's run costs, what a plan adds, the desk and profiles; each only if it was measured."""
    parts = []
    curves = curves_of(found)
    if curves:
        parts += ["## How it grows", growth(curves)]
        spark = found["growth"].facts.get("spark", {})
        if "cpu" in spark:
            parts += ["## What a cluster costs", cost(curves, spark)]
    if "plan" in found:
        parts += ["## What a plan adds", plan(found["plan"].facts)]
    if "desk" in found:
        parts += ["## The desk under load", desk(found["desk"].facts)]
    if "startup" in found:
        parts += ["## Starting up", startup(found["startup"].facts)]
    if "profiles" in found:
        parts += ["## Where the time goes", profiles(found["profiles"].facts)]
    return "\n\n".join(parts)


def curves_of(found: Mapping[str, Comparison]) -> list[Mapping[str, Any]]:
    """The measured curves, if there are any."""
    return list(found["growth"].facts["curves"]) if "growth" in found else []


def growth(curves: Sequence[Mapping[str, Any]]) -> str:
    """The largest size of each curve and how time and memory grow up to there."""
    lines = [
        "| job | grows with | from | to | exponent of time | of its last step | of the bare query in SQL | exponent of "
        "memory | processor seconds at the largest | peak memory there |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {curve['job']} | {curve['by']} | {min(curve['sizes']):,.0f} | {max(curve['sizes']):,.0f} | "
        f"{curve['exponent']:.2f} | {exponent(curve['sizes'][-2:], curve['seconds'][-2:]):.2f} | "
        f"{bare(curve)} | {curve['exponent of memory']:.2f} | {curve['seconds'][-1]:,.3g} | "
        f"{curve['mib'][-1]:,.0f} MiB |"
        for curve in curves
    ]
    return "\n".join(lines)


def bare(curve: Mapping[str, Any]) -> str:
    """The exponent of the bare query's time, where there is one."""
    return f"{curve['exponent of bare']:.2f}" if "exponent of bare" in curve else ""


def cost(curves: Sequence[Mapping[str, Any]], spark: Mapping[str, Any]) -> str:
    """A nation's run on a cluster, from the measured parts.

    The driver draws noise and computes intervals: its seconds per count are those of the release by cells, whose engine
    has next to nothing to do. The rest of a release is the engine's and spreads over cores. Tables that add up are
    counted as the driver's, whole, which is more than they are: their fit is there, and not their query.
    """
    by = {(curve["job"], curve["by"]): curve for curve in curves}
    factors = {step: spark["cpu"]["spark"][step] / spark["cpu"]["duckdb"][step] for step in ("check", "cells")}
    cells = by["release", "cells"]
    per_count = cells["seconds"][-1] / cells["sizes"][-1]
    lines = [
        f"| step, {NATION:,.0f} jobs in 50 states | core-seconds, DuckDB | core-seconds, Spark | "
        f"clock on {CORES} cores, Spark | of it on the driver |",
        "|---|---:|---:|---:|---:|",
    ]
    total = [0.0, 0.0, 0.0, 0.0]
    for job in ("check of every job", "release of workload 1", "release of workload 3"):
        curve = by[job, "jobs"]
        whole = curve["seconds"][-1] * NATION / curve["sizes"][-1]
        driver = min(per_count * curve["counts"], whole) if job.startswith("release") else 0.0
        engine, factor = whole - driver, factors["cells" if job.startswith("release") else "check"]
        numbers = [whole, engine * factor + driver, engine * factor / CORES + driver, driver]
        total = [a + b for a, b in zip(total, numbers, strict=True)]
        lines.append(f"| {job} | " + " | ".join(f"{number:,.3g}" for number in numbers) + " |")
    for job, on_driver in QUARTERLY.items():
        if (job, "establishments") in by:
            curve = by[job, "establishments"]
            whole = curve["seconds"][-1] * EMPLOYERS / curve["sizes"][-1]
            spread = 0.0 if on_driver else whole * factors["cells"]
            driver = whole if on_driver else 0.0
            numbers = [whole, spread + driver, spread / CORES + driver, driver]
            total = [a + b for a, b in zip(total, numbers, strict=True)]
            lines.append(f"| {job} | " + " | ".join(f"{number:,.3g}" for number in numbers) + " |")
    lines.append("| together | " + " | ".join(f"{number:,.3g}" for number in total) + " |")
    return (
        f"Spark on the same cores took {factors['cells']:.2g} times DuckDB's processor seconds for the cells of "
        f"workload 3, {factors['check']:.2g} times for the check of every job, and gave the same {spark['counts']:,} "
        f"counts. A national quarter from the measured parts, in proportion to {NATION:,.0f} jobs and "
        f"{EMPLOYERS:,.0f} establishments: {total[1] / 3600:.2g} core-hours, {total[2] / 60:.2g} minutes on {CORES} "
        "cores:\n\n" + "\n".join(lines)
    )


def plan(facts: Mapping[str, Any]) -> str:
    """What a plan costs above the bare computation of its tables."""
    low, high = (f"{100 * (ratio - 1):.0f} %" for ratio in (min(facts["ratios"]), max(facts["ratios"])))
    return (
        f"Two tables of {facts['jobs']:,.0f} jobs released by a plan take {100 * facts['overhead']:.0f} % more "
        "processor time "
        f"than reading, checking, counting, drawing and writing them without one "
        f"(median of {len(facts['ratios'])} pairs of runs, which lie between {low} and {high}). "
        "The plan adds its own checks, the ledger with its disk syncs, hashes, the report and the reviewer's bundle."
    )


def desk(facts: Mapping[str, Any]) -> str:
    """Answers of the release desk beside those of a bare page, and what became of the runs."""
    ratios = {page: ratio for page, ratio in facts["p95_ratio_to_hello"].items() if page != "worst"}
    slowest, quickest = max(ratios, key=lambda page: ratios[page]), min(ratios, key=lambda page: ratios[page])
    return (
        f"{facts['readers']} readers at once ({facts['people']} people) wait between {ratios[quickest]:.2g} "
        f"(`{quickest}`) and {ratios[slowest]:.2g} times (`{slowest}`) as long for a page of the desk as for a "
        f"FastAPI page that only says hello (95th percentiles, in turns). {sum(facts['runs'].values())} releases "
        f"started at once while they read on: {facts['runs'].get('done', 0)} ended well, "
        f"{facts['answers_while_running']:,} pages were answered meanwhile, and the ledger is intact and holds "
        f"{facts['ledger']['spent']}, exactly what was paid."
    )


def startup(facts: Mapping[str, Any]) -> str:
    """The first moments of a process, and what an install weighs."""
    sizes = [f"{name} {each['mb']:,.0f} MB in {each['packages']} packages" for name, each in facts["install"].items()]
    return (
        f"In processor time of a fresh process, `import discreet` takes {1e3 * facts['import']:.0f} ms and `discreet "
        f"--help` {1e3 * facts['help']:.0f} ms, of which Python itself takes {1e3 * facts['python']:.0f} ms. "
        f"Installed, without bytecode, with pip: {'; '.join(sizes)}. With every extra and all tools of the tests it is "
        f"{facts['everything']['mb']:,.0f} MB in {facts['everything']['packages']} packages."
    )


def profiles(facts: Mapping[str, Any]) -> str:
    """The largest shares of each main job."""
    lines = ["| job | function | share of the time |", "|---|---|---:|"]
    for job, found in facts.items():
        lines += [
            f"| {job} | {WORDS.get(entry['function'], '`' + entry['function'] + '`')} | {100 * entry['share']:.0f} % |"
            for entry in found["profile"][:5]
        ]
    return "\n".join(lines)
