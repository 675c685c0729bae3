"""The Bayesian mixed model and its empirical epsilon: Abowd, Schneider and Vilhuber (2012), sections V and VI.B.

Job creation rates with 20 industries, four lagged rates and a random effect for each county, on simulated flows.
Figures 1, 8 and 9 of the paper, its convergence check and its Monte Carlo epsilon with 32 influential rows, and in
addition the exact posterior with every row deleted in turn. The paper's data are not public, so its numbers are shown
beside ours only for orientation.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.audit.influential import MonteCarloAudit, monte_carlo_audit
from discreet.audit.posterior import WARNING, PosteriorAudit, audit_posterior, bins_without, log_ratio, sensitivity
from discreet.models.bayes.blmm.diagnostics import standard_error
from discreet.models.bayes.blmm.estimate import bayes_mixed
from discreet.models.bayes.blmm.fit import BayesMixed
from discreet.models.bayes.blmm.gibbs import ConvergenceWarning
from discreet.models.formula.rows import encode
from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Note, Page, Prose, Table
from discreet.pages.study import Study
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent
from discreet_papers.beside import beside

LAGS = 4
FORMULA = "jcr ~ 0 + industry + lag1 + lag2 + lag3 + lag4 + (1 | county)"
QUICK_SHARE, QUICK_DRAWS, QUICK_WARMUP = 0.02, 2_000, 500
DRAWS = 10_000  # and as many before them, as in the paper
NUS = (5.0, 12.0, 30.0, 100.0, 300.0)
RELOOKED = 2_000  # rows audited again under other priors: the worst under the benchmark
TRACED = 500  # draws of a trace plot
HEADINGS = {
    "rhat_min": "R-hat, least",
    "rhat_max": "R-hat, largest",
    "effective_min": "effective draws, least",
    "group": "county",
    "group_rows": "its rows",
    "epsilon": "|ln(20 p)|",
    "own": "in its county",
    "elsewhere": "in any other",
    "above_0.1": "rows above 0.1",
    "above_1": "rows above 1",
    "nu": "degrees of freedom",
    "residual": "residual variance",
}
PAPER = {
    "empirical epsilon (32 rows, draws)": "3.2",
    "noise floor (replicate)": "0.27",
    "smallest count of 500": "21",
    "largest count of 500": "3458",
    "replicate, smallest count": "382",
    "replicate, largest count": "641",
    "largest R-hat": "1.2853",
}


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Repeat the paper's experiment; `data` is a `qwi.parquet` or its directory; `quick` takes 2 % of the rows."""
    progress("reading flows", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = data
        if path is None:
            from discreet.simulate import qwi

            qwi.write(folder, seed=seed, share=QUICK_SHARE if quick else 1.0)
            path = Path(folder)
        frame = lagged(path / "qwi.parquet" if path.is_dir() else path)
    progress("exact posterior", 0.1)
    model = bayes_mixed(FORMULA, frame)
    assert isinstance(model, BayesMixed)
    exact = audit_posterior(model, progress=lambda _, share: progress("deleting every row", 0.15 + 0.3 * share))
    draws, warmup = (QUICK_DRAWS, QUICK_WARMUP) if quick else (DRAWS, DRAWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the notes are shown on the page
        sampled = monte_carlo_audit(
            model,
            draws=draws,
            warmup=warmup,
            seed=seed,
            progress=lambda _, share: progress("sampling without influential rows", 0.45 + 0.45 * share),
        )
    progress("other priors", 0.92)
    worst_rows = np.argsort(-exact.own)[:RELOOKED]
    priors = sensitivity(model, worst_rows, NUS)
    results = _results(model, exact, sampled, priors)
    page = Page(
        "A Bayesian mixed model and its empirical epsilon",
        _blocks(model, exact, sampled, results),
        lead=f"Abowd, Schneider and Vilhuber (2012): {model.fit.rows:,} rows, {len(model.levels):,} counties.",
    )
    return Study(name="blmm", title=page.title, results=results, page=page)


def lagged(path: Path) -> dict[str, Any]:
    """County, industry, job creation rate and its four lags; rows without four earlier quarters are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = ["county", "industry", "quarter", "jcr"]
    try:
        table = pq.read_table(path, columns=wanted)
    except (OSError, ValueError):
        raise DataError(
            f"{path.name!r} is not a Parquet file with {', '.join(wanted)}.",
            "`discreet simulate qwi` writes one.",
            "Name that file or its directory.",
            about="data",
        ) from None
    (county, counties), (industry, industries) = (encode(table[name], name) for name in wanted[:2])
    quarter, rate = (table[name].to_numpy() for name in wanted[2:])
    order = np.lexsort([quarter, industry, county])
    county, industry, quarter, rate = (column[order] for column in (county, industry, quarter, rate))
    here, before = np.arange(LAGS, len(rate)), np.arange(len(rate) - LAGS)
    same = (county[here] == county[before]) & (industry[here] == industry[before])
    kept = here[same & (quarter[here] - quarter[before] == LAGS)]
    if not len(kept):
        raise DataError(
            f"No row of {path.name!r} has {LAGS} earlier quarters of its county and industry.",
            "The model needs them.",
            "Give longer series.",
            about="data",
        )
    columns = {
        "county": pa.DictionaryArray.from_arrays(county[kept], counties),
        "industry": pa.DictionaryArray.from_arrays(industry[kept], industries),
        "jcr": rate[kept],
    }
    return columns | {f"lag{k}": rate[kept - k] for k in range(1, LAGS + 1)}


def _results(
    model: BayesMixed, exact: PosteriorAudit, sampled: MonteCarloAudit, priors: list[dict[str, float]]
) -> dict[str, Any]:
    chains, worst = sampled.benchmark, exact.findings[0]
    u = chains.u.reshape(-1, chains.u.shape[2]).mean(axis=0)
    influential = exact.own[sampled.rows]
    return {
        "rows": model.fit.rows,
        "counties": len(model.levels),
        "fixed_effects": len(model.fit.names),
        "posterior": model.table(),
        "rhat_max": chains.rhat_max,
        "effective_min": chains.effective_min,
        "convergence": [
            {
                "parameters": name,
                "count": len(chains.rhat[part]),
                "rhat_min": float(chains.rhat[part].min()),
                "rhat_max": float(chains.rhat[part].max()),
                "effective_min": float(chains.effective[part].min()),
                "draws": chains.count,
            }
            for name, part in (("county effects", "u"), ("variances", "variances"), ("fixed effects", "beta"))
        ],
        "notes": list(model.notes + chains.notes),
        "gibbs_against_exact": float(np.abs((u - model.posterior.effects.mean) / standard_error(chains.u)).max()),
        "empirical_epsilon": {
            "kind": exact.kind,
            "note": WARNING,
            "monte_carlo": sampled.epsilon,
            "noise_floor": sampled.noise_floor,
            "exact": exact.epsilon,
            "exact_noise_floor": exact.noise_floor,
            "exact_on_influential_rows": float(influential.max()),
            "is_largest_over_all_groups": exact.exact,
            "bound": exact.bound,
            "rows_audited": len(exact.own),
            "rows_settled": exact.settled,
            "worst_row": worst.to_dict(),
        },
        "published_method": sampled.to_dict()
        | {
            "replicate_smallest_count": int(sampled.replicate.min()),
            "replicate_largest_count": int(sampled.replicate.max()),
        },
        "worst_rows": [finding.to_dict() for finding in exact.findings[:20]],
        "worst_counties": exact.groups(),
        "rows_above": {str(level): int((exact.own > level).sum()) for level in (0.1, 0.5, 1, 2, 3)},
        "sensitivity": priors,
    }


def _blocks(model: BayesMixed, exact: PosteriorAudit, sampled: MonteCarloAudit, results: dict[str, Any]) -> list[Block]:
    found, published = results["empirical_epsilon"], results["published_method"]
    expected = sampled.draws // sampled.replicate.shape[1]
    scale = 500 / expected
    ours = {
        "empirical epsilon (32 rows, draws)": sampled.epsilon,
        "noise floor (replicate)": sampled.noise_floor,
        "smallest count of 500": scale * published["smallest_count"],
        "largest count of 500": scale * published["largest_count"],
        "replicate, smallest count": scale * published["replicate_smallest_count"],
        "replicate, largest count": scale * published["replicate_largest_count"],
        "largest R-hat": results["rhat_max"],
        "empirical epsilon (every row, exact)": exact.epsilon,
        "noise floor (quadrature)": exact.noise_floor,
    }
    reach = (
        "No effect on another county can exceed it: a proved bound on every row not examined is smaller."
        if exact.exact
        else f"Effects on other counties are bounded, not computed, for most rows; no row exceeds {exact.bound:.4g}."
    )
    blocks: list[Block] = [
        Note(
            "result",
            f"The empirical epsilon is {exact.epsilon:.4g} over all {len(exact.own):,} rows, and "
            f"{found['exact_on_influential_rows']:.4g} on the {len(sampled.rows)} that the published method looks at. "
            "It is a property of these data, and no guarantee.",
        ),
        Note("warning", WARNING),
        Prose(
            "Each county effect's posterior is cut into 20 bins of equal probability. A row is deleted, and epsilon is "
            f"the largest log ratio of a bin's probability. Deleting each of {len(exact.own):,} rows in turn, without "
            f"Monte Carlo error, gives **{exact.epsilon:.4g}**; on the {len(sampled.rows)} influential rows alone "
            f"{found['exact_on_influential_rows']:.4g}. {reach}"
        ),
        beside(PAPER, ours, caption="The paper's figures and ours, on simulated flows; counts per 500 expected"),
        Heading("Convergence"),
        _table(results["convergence"], "Split R-hat and effective draws of two dispersed chains", "convergence"),
        _trace(model, sampled),
        Prose(
            "The sampler works on sums, so an iteration costs the same for any number of rows. Its means differ from "
            f"the exact ones by at most {results['gibbs_against_exact']:.2f} Monte Carlo errors over all counties; "
            f"chance alone gives about {_largest_of(len(model.levels)):.1f}."
        ),
        replace(
            _table(results["posterior"], "Exact posterior of fixed effects and variances", "posterior"), folded=True
        ),
        Heading("The published method"),
        Prose(
            f"Draws in the 20 bins of every county, where {expected:,} are expected: in a second chain with all "
            "rows, and in the chain without the row that shows most."
        ),
        _counts(sampled.replicate, "Figure 8 of the paper: a replicate with all rows", "figure-8"),
        _counts(sampled.worst, f"Figure 9 of the paper: without row {sampled.worst_row}", "figure-9"),
        _beyond(sampled, expected),
        Heading("Every row, exactly"),
        _exceeding(exact),
        _moved(model, exact),
        _table(results["worst_rows"], "The rows that show most; bins are counted from 0", "worst-rows"),
        _table(results["worst_counties"], "The counties in which a row of theirs shows most", "worst-counties"),
        Heading("Other priors"),
        Prose(
            f"The paper's prior family by degrees of freedom, on the {RELOOKED:,} rows that showed most at 12. "
            f"{_across(results['sensitivity'])}"
        ),
        _table(results["sensitivity"], "Epsilon and posterior mean variances by degrees of freedom", "sensitivity"),
        Note(
            "limitation",
            "A row's effect on its own county is exact. Its effect on other counties is exact for the rows listed and "
            "bounded from above for all others. Data that do not occur here are not covered: this is no guarantee.",
        ),
    ]
    blocks += [Note("warning", note) for note in results["notes"]]
    return blocks


def _across(priors: list[dict[str, float]]) -> str:
    """The conclusion of the table of priors, from its ends."""
    first, last = min(priors, key=lambda row: row["nu"]), max(priors, key=lambda row: row["nu"])
    return (
        f"From {first['nu']:g} to {last['nu']:g} degrees of freedom the mean of the county variance goes from "
        f"{first['group']:.3g} to {last['group']:.3g}, and the most that a row shows from {first['epsilon']:.3g} to "
        f"{last['epsilon']:.3g}."
    )


def _trace(model: BayesMixed, sampled: MonteCarloAudit) -> Figure:
    chains = sampled.benchmark
    county = int(chains.rhat["u"].argmax())
    at = np.unique(np.linspace(0, chains.u.shape[1] - 1, TRACED).astype(int))
    rows = [
        {"iteration": int(i), "effect": float(chains.u[c, i, county]), "chain": f"chain {c + 1}"}
        for c in range(2)
        for i in at
    ]
    return Figure(
        charts.lines(rows, "iteration", "effect", facet="chain", points=False),
        f"Draws of the effect of county {model.levels[county]} over iterations, two chains; both stay in one band.",
        f"Trace plots (Figure 1 of the paper): the county with the largest R-hat, {chains.rhat['u'][county]:.4f}",
        "figure-1",
    )


def _exceeding(exact: PosteriorAudit) -> Figure:
    ordered = np.sort(exact.own)
    levels = np.geomspace(1e-3, ordered[-1], 60)
    above = len(ordered) - np.searchsorted(ordered, levels)
    rows = [{"epsilon": float(e), "rows": int(n)} for e, n in zip(levels, above, strict=True) if n]
    return Figure(
        charts.lines(rows, "epsilon", "rows", log_x=True, log_y=True, points=False, titles={"epsilon": "|ln(20 p)|"}),
        f"Rows whose deletion moves a bin of their own county by at least a value, falling to {above[-1]}.",
        "Rows that show at least so much in the posterior of their own county",
        "rows",
    )


def _moved(model: BayesMixed, exact: PosteriorAudit) -> Figure:
    worst = exact.findings[0]
    probabilities = bins_without(model, worst.row, bins=exact.bins)
    rows = [{"bin": i, "probability": float(p)} for i, p in enumerate(probabilities)]
    return Figure(
        charts.bars(rows, "bin", "probability", reference=1 / exact.bins),
        f"Bins of county {worst.group} without row {worst.row}; with it all have {1 / exact.bins:g}.",
        f"Where the worst row shows: the posterior of its county without it, in bins of {1 / exact.bins:g} with it",
        "worst-row",
    )


def _counts(counts: Integers, caption: str, name: str) -> Figure:
    rows = [{"draws": int(value)} for value in counts.ravel()]
    return Figure(
        charts.histogram(rows, "draws", bins=40, titles={"draws": "draws in a bin", "count": "bins"}),
        f"Histogram of draws per bin over all counties, from {counts.min():,} to {counts.max():,}.",
        f"{caption}; counts from {counts.min():,} to {counts.max():,}",
        name,
    )


def _beyond(sampled: MonteCarloAudit, expected: int) -> Figure:
    """Both histograms' tails, which bars do not show."""
    levels = np.linspace(0.02, max(1.0, min(sampled.epsilon, 6.0)), 80)
    rows = []
    for name, counts in (("replicate, all rows", sampled.replicate), ("without the worst row", sampled.worst)):
        far = np.sort(log_ratio(counts / sampled.draws).ravel())
        above = len(far) - np.searchsorted(far, levels)
        rows += [{"x": float(x), "bins": int(n), "chain": name} for x, n in zip(levels, above, strict=True) if n]
    return Figure(
        charts.lines(
            rows, "x", "bins", "chain", log_y=True, points=False, titles={"x": f"|ln(draws / {expected:,})| at least"}
        ),
        f"Bins whose draws differ from {expected:,} by at least a log ratio: the replicate ends at "
        f"{sampled.noise_floor:.2f}, the chain without the worst row at {sampled.epsilon:.2f}.",
        "Both tails: what the replicate shows is chance, what goes on beyond it is the row",
        "tails",
    )


def _table(rows: list[dict[str, Any]], caption: str, name: str) -> Table:
    """The page's headings; the keys of `results.json` stay as they are."""
    return Table.of([{HEADINGS.get(key, key): value for key, value in row.items()} for row in rows], caption, name)


def _largest_of(count: int) -> float:
    """The median of the largest of so many absolute normal deviations."""
    from scipy.special import ndtri

    return float(ndtri((1 + 0.5 ** (1 / count)) / 2))
