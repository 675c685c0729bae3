"""One posterior draw as the release, what the LMM paper finally publishes, beside noisy sums at equal loss.

Job creation rates with a random effect for each county, on simulated flows of the documents' size. Utility is the
documents' axis: the correlation of the response with fitted values, as a share of that without privacy. The paper's
own draw, under its prior of the variances, has the exact audited epsilon of these data and no promise. Draws under
variances that were bought with a tenth of the loss are proved, like noisy sums.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.audit.posterior import audit_posterior
from discreet.models.bayes.blmm.estimate import bayes_mixed
from discreet.models.bayes.blmm.fit import BayesMixed
from discreet.models.bayes.blmm.gibbs import ConvergenceWarning
from discreet.models.bayes.posterior_draw import release_draw
from discreet.models.linear.estimate import mixed
from discreet.models.linear.matrix import linear, random_part
from discreet.models.linear.private import release_mixed
from discreet.noise.source import SeededSource
from discreet.pages.page import Block, Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.words.errors import DiscreetError
from discreet.words.progress import Progress, silent
from discreet_papers.lmm import COLUMNS, QUICK_SHARE, flows_file, read_flows

FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"
TITLE = "One posterior draw as the release"
PUBLIC = ["industry", "quarter", "county"]
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.6)
CLIPS: tuple[tuple[float, float] | None, ...] = (None, (0, 0.5))
SHARE = 0.1  # of rho, which buys the variances that a draw declares
TRIALS, QUICK_TRIALS = 5, 3
LEAST = 1e-3  # of the residual variance: what a county's is declared to be where noise left nothing of it
SD = 1.0
DELTA = 1e-6


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Draw, compare and audit; `quick` simulates a fiftieth of the rows."""
    with flows_file(data, seed=seed, share=QUICK_SHARE if quick else 1.0, progress=progress) as path:
        table = read_flows(path, COLUMNS)
    progress("fit without privacy", 0.1)
    fit = mixed(FORMULA, table)
    y = fit.response
    best = float(np.corrcoef(fit.fitted, y)[0, 1])
    progress("the paper's draw", 0.15)
    results: dict[str, Any] = {
        "rows": fit.rows,
        "counties": len(fit.random[0].levels),
        "correlation": best,
        "linear": float(np.corrcoef(fit.predict(level="marginal"), y)[0, 1]),
    }
    results["paper"] = papers_draw(table, y, best, seed, progress)
    trials, rows = QUICK_TRIALS if quick else TRIALS, list[dict[str, Any]]()
    points = [(clip, epsilon) for clip in CLIPS for epsilon in EPSILONS]
    for i, (clip, epsilon) in enumerate(points):
        progress(f"equal loss {i + 1} of {len(points)}", 0.5 + 0.5 * i / len(points))
        rows.append(beside(table, y, best, clip, epsilon, trials, SeededSource(seed + i)))
    results["curve"] = rows
    return Study(name="draw", title=TITLE, results=results, page=_page(results))


def papers_draw(table: Any, y: Vector, best: float, seed: int, progress: Progress) -> dict[str, Any]:
    """One draw from the posterior under the paper's prior, and the exact audit of every row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one draw is asked for, after a warm-up
        model = bayes_mixed(FORMULA, table, draws=4, warmup=200, chains=1, seed=seed)
    assert isinstance(model, BayesMixed) and model.chains is not None
    fit, chains = model.fit, model.chains
    beta = np.zeros(len(fit.design.names))
    beta[fit.kept] = chains.beta[0, -1]
    fitted = linear(fit.data, fit.design.layout.fixed, fit.design.levels, beta) + fit.design.layout.response.shift
    effects = chains.u[0, -1][:, None]
    fitted = fitted + random_part(fit.data, fit.design.random[0], fit.design.levels, effects, new_levels="error")
    progress("exact audit of every row", 0.2)
    audit = audit_posterior(model, progress=lambda _, share: progress("exact audit of every row", 0.2 + 0.3 * share))
    correlation = float(np.corrcoef(fitted, y)[0, 1])
    return {
        "correlation": correlation,
        "kept": correlation / best,
        "audited epsilon": audit.epsilon,
        "basis": "empirical",
    }


def beside(
    table: Any, y: Vector, best: float, clip: Any, epsilon: float, trials: int, source: SeededSource
) -> dict[str, Any]:
    """Noisy sums and a posterior draw at rho = epsilon^2 / 2, the loss that Gaussian noise has at pure epsilon."""
    rho = epsilon**2 / 2
    found: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "clip": clip, "approximate epsilon": approximate(rho)}
    offer = release_mixed.ask(FORMULA, rho=f"{rho:.6f}", public=PUBLIC, clip=clip).offer(table)
    reading = offer.read(None)
    found["moments"] = float(np.mean([_share(offer.draw(reading, source), table, y, best) for _ in range(trials)]))
    first = release_mixed.ask(FORMULA, rho=f"{SHARE * rho:.6f}", public=PUBLIC, clip=clip).offer(table)
    bought = first.draw(first.read(None), source)
    residual = max(bought.sigma2 or 0.0, 1e-6)
    known = {"Residual": residual, "county": max(bought.random[0].variance or 0.0, LEAST * residual)}
    asked = release_draw.ask(FORMULA, variances=known, sd=SD, rho=f"{(1 - SHARE) * rho:.6f}", public=PUBLIC, clip=clip)
    try:
        drawn = asked.offer(table)
    except DiscreetError:
        return found | {"draw": None, "power": None}
    reading = drawn.read(None)
    draws = [drawn.draw(reading, source) for _ in range(trials)]
    kept = float(np.mean([_share(one, table, y, best) for one in draws]))
    return found | {"draw": kept, "power": draws[0].power}


def _share(fit: Any, table: Any, y: Vector, best: float) -> float:
    return float(np.corrcoef(fit.fitted(table), y)[0, 1] / best)


def approximate(rho: float, delta: float = DELTA) -> float:
    """The epsilon that goes with delta (Bun and Steinke 2016)."""
    return float(rho + 2 * np.sqrt(rho * np.log(1 / delta)))


def _page(results: dict[str, Any]) -> Page:
    paper = results["paper"]
    rows = [
        [
            f"{row['epsilon']:g}",
            f"{row['rho']:.4g}",
            "none" if row["clip"] is None else "0 to 0.5",
            f"{row['approximate epsilon']:.3g}",
            f"{100 * row['moments']:.1f} %",
            "no draw" if row["draw"] is None else f"{100 * row['draw']:.1f} %",
            "" if row["power"] is None else f"{row['power']:.3g}",
        ]
        for row in results["curve"]
    ]
    told = (
        f"{results['rows']:,} rows of {results['counties']:,} counties. Without privacy fitted values have correlation "
        f"{results['correlation']:.4f} with the response; without effects of counties {results['linear']:.4f}. One "
        f"draw under the paper's prior has {paper['correlation']:.4f} ({100 * paper['kept']:.1f} % kept) and an "
        f"audited epsilon of {paper['audited epsilon']:.2f}, found on these data: no promise."
    )
    columns = ["epsilon", "rho", "clip", "epsilon at delta 1e-6", "moments keep", "one draw keeps", "power"]
    blocks: list[Block] = [Heading("What is kept"), Prose(told), Table(columns, rows, "Correlation kept at equal loss")]
    return Page(TITLE, blocks, "What the paper finally publishes, with a proved price.")
