"""Time effects by industry and county, the slides' first future direction: what trends and autoregression add.

Job creation rates on simulated flows: a random effect for each county, a trend for each, autoregressive residuals
within the series of a county and an industry, and both. Fits are by maximum likelihood, so AIC can compare them. The
axis is the documents': the correlation of the response with what a model expects, given effects and, where residuals
are autoregressive, the residual of the period before. The private counterpart of the last is `lag(jcr, 1)` in
`release_mixed`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.linear.estimate import mixed
from discreet.models.linear.fit import MixedFit, MixedWarning
from discreet.models.linear.private import release_mixed
from discreet.models.linear.residuals import Autoregression
from discreet.noise.source import SeededSource
from discreet.pages.page import Block, Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.words.progress import Progress, silent
from discreet_papers.lmm import QUICK_SHARE, flows_file, read_flows

TITLE = "Time effects by industry and county"
COLUMNS = ["county", "industry", "quarter", "jcr"]
SERIES = ["county", "industry"]
FIXED = "jcr ~ 0 + industry + time"
MODELS: dict[str, tuple[str, bool]] = {
    "no effects of counties": (f"{FIXED} + (1 | county)", False),
    "county": (f"{FIXED} + (1 | county)", False),
    "county with a trend": (f"{FIXED} + (time | county)", False),
    "county, autoregressive": (f"{FIXED} + (1 | county)", True),
    "county with a trend, autoregressive": (f"{FIXED} + (time | county)", True),
}
EPSILONS = (0.1, 1.0, 4.6)


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Fit and compare; `quick` simulates a fiftieth of the rows."""
    with flows_file(data, seed=seed, share=QUICK_SHARE if quick else 1.0, progress=progress) as path:
        table = in_time(read_flows(path, COLUMNS))
    rows: list[dict[str, Any]] = []
    for i, (name, (formula, autoregressive)) in enumerate(MODELS.items()):
        progress(name, 0.1 + 0.6 * i / len(MODELS))
        asked: dict[str, Any] = {"series": SERIES, "time": "time"} if autoregressive else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)
            fit = mixed(formula, table, method="ML", **asked)
        rows.append(told(name, fit, marginal=name == "no effects of counties"))
    private = []
    for k, epsilon in enumerate(EPSILONS):
        progress(f"private lags, epsilon {epsilon:g}", 0.7 + 0.1 * k)
        private.append(with_lags(table, epsilon, SeededSource(seed + k)))
    results = {"rows": table.num_rows, "models": rows, "private": private}
    return Study(name="time", title=TITLE, results=results, page=_page(results))


def in_time(table: Any) -> Any:
    """The table with quarters counted from 1."""
    import pyarrow as pa

    quarters = np.unique(np.array(table["quarter"].to_pylist(), dtype=object).astype(str), return_inverse=True)[1]
    return table.append_column("time", pa.array(quarters.astype(np.int64) + 1))


def told(name: str, fit: MixedFit, *, marginal: bool) -> dict[str, Any]:
    expected = fit.predict(level="marginal") if marginal else fit.fitted
    found: dict[str, Any] = {"model": name, "loglik": fit.loglik, "aic": fit.aic, "rho": fit.autocorrelation}
    if marginal:
        found |= {"loglik": None, "aic": None}
    found["correlation"] = float(np.corrcoef(expected, fit.response)[0, 1])
    found["one step ahead"] = found["correlation"]
    if fit.residual is not None and isinstance(law := fit.residual.law, Autoregression):
        found["one step ahead"] = float(np.corrcoef(ahead(fit, law, expected), fit.response)[0, 1])
    return found


def ahead(fit: MixedFit, law: Autoregression, expected: Vector) -> Vector:
    """Expectations given the residual of the period before, where there is one."""
    found, left = expected.copy(), fit.response - expected
    pairs: dict[int, tuple[Integers, Integers]] = law.pairs
    for distance, (later, before) in pairs.items():
        found[later] += (fit.autocorrelation or 0.0) ** distance * left[before]
    return found


def with_lags(table: Any, epsilon: float, source: SeededSource) -> dict[str, Any]:
    """A private model with the response of the quarter before, inside the guarantee."""
    ask: dict[str, Any] = {"epsilon": f"{epsilon:g}", "public": ["industry", "time", "county"]}
    formula = f"{FIXED} + lag(jcr, 1) + (1 | county)"
    offer = release_mixed.ask(formula, series=SERIES, time="time", **ask).offer(table)
    drawn = offer.draw(offer.read(None), source)
    y, before = earlier(table)
    known = np.isfinite(before)
    import pyarrow as pa

    there = table.append_column("lag(jcr, 1)", pa.array(np.where(known, before, 0.0)))
    expected = drawn.fitted(there)[known]
    return {"epsilon": epsilon, "one step ahead": float(np.corrcoef(expected, y[known])[0, 1])}


def earlier(table: Any) -> tuple[Vector, Vector]:
    """The response, and that of the period before in the same series; NaN if there is none."""
    from discreet.data.frames import open_frame
    from discreet.models.linear.residuals import read_series

    y = np.asarray(table["jcr"].to_numpy(), dtype=np.float64)
    law = read_series(open_frame(table, ordered=True), SERIES, "time", table.num_rows)
    found = np.full(len(y), np.nan)
    later, before = law.pairs.get(1, (np.empty(0, dtype=np.int64),) * 2)
    found[later] = y[before]
    return y, found


def _page(results: dict[str, Any]) -> Page:
    def shown(value: Any, digits: str) -> str:
        return "" if value is None else format(value, digits)

    rows = [
        [
            row["model"],
            shown(row["loglik"], ",.1f"),
            shown(row["aic"], ",.1f"),
            shown(row["rho"], ".3f"),
            shown(row["correlation"], ".4f"),
            shown(row["one step ahead"], ".4f"),
        ]
        for row in results["models"]
    ]
    private = [[f"{row['epsilon']:g}", f"{row['one step ahead']:.4f}"] for row in results["private"]]
    blocks: list[Block] = [
        Heading("Without privacy"),
        Prose(f"{results['rows']:,} rows, maximum likelihood. Correlations are with the response."),
        Table(["model", "log-likelihood", "AIC", "rho", "fitted", "one step ahead"], rows, "What time effects add"),
        Heading("Under privacy"),
        Prose("Noisy sums with the response of the quarter before as a term, protected like all others."),
        Table(["epsilon", "one step ahead"], private, "Private models with a lag"),
    ]
    return Page(TITLE, blocks, "Trends and autoregression within series of a county and an industry.")
