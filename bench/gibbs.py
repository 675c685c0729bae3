"""A Gibbs iteration at the paper's size: on sufficient statistics, beside the textbook sampler that visits every row.

2,428,452 simulated rows, 3,111 counties, 24 fixed effects: 20 industries, a trend, three seasons. Both draw the same
blocks from the same posterior; the residual variance must agree within five of its standard deviations. Processor
seconds of one iteration of one chain, the best of three runs each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench import data, peers
from bench.comparison import Agreement, Comparison, beside

FORMULA = "jcr ~ 0 + industry + quarter + C(season) + (1 | county)"

MODEL = """
import numpy as np
from discreet.models.bayes.blmm import bayes_mixed
formula, path, iterations = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = bayes_mixed(formula, path)
"""

OURS = (
    MODEL
    + """
from discreet.models.bayes.blmm.gibbs import gibbs
time_, chains = measured(lambda: gibbs(model.posterior, draws=200, warmup=iterations - 200, chains=4, judge=False), 3)
report(seconds=time_["cpu"] / iterations / 4, residual=float(chains.variances[:, :, 0].mean()), rows=model.fit.rows)
"""
)

VISITING = (
    MODEL
    + """
def visiting():
    "beta given u, u given beta, in NumPy; residuals are computed from the rows."
    fit, prior, kept = model.fit, model.prior, []
    rng = np.random.default_rng(0)
    industry, season, county = (fit.data.codes[name] for name in ("industry", "season", "county"))
    quarter, y = (fit.data.evaluate(monomial) for monomial in fit.design.layout.monomials[-2:])
    moments, G = fit.moments, len(model.levels)
    u, (s2, su2) = np.zeros(G), (fit.sigma2, 0.001)
    for _ in range(iterations):
        left = y - u[county]
        Xy = np.concatenate([np.bincount(industry, left, 20), [quarter @ left], np.bincount(season, left, 4)[1:]])
        triangle = np.linalg.cholesky(moments.XX / s2 + np.eye(len(Xy)) / prior.sd**2)
        beta = np.linalg.solve(triangle.T, np.linalg.solve(triangle, Xy / s2) + rng.standard_normal(len(Xy)))
        left = y - beta[:20][industry] - beta[20] * quarter - np.append(0.0, beta[21:])[season]
        precision = moments.n / s2 + 1 / su2
        u = np.bincount(county, left, G) / s2 / precision + rng.standard_normal(G) / np.sqrt(precision)
        left -= u[county]
        s2 = (prior.nu * prior.V + left @ left) / rng.chisquare(prior.nu + len(y))
        su2 = (prior.nu * prior.V + u @ u) / rng.chisquare(prior.nu + G)
        kept.append(s2)
    return np.mean(kept)
model.fit.data  # rows are read before the clock starts
time_, residual = measured(visiting, 3)
report(seconds=time_["cpu"] / iterations, residual=float(residual))
"""
)


def compare(*, quick: bool) -> Comparison:
    """Seconds per iteration."""
    path = data.rows(0.042 if quick else 1)
    ours = peers.ours(OURS, FORMULA, path, 1_000 if quick else 2_000)

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        off = abs(theirs["residual"] / ours["residual"] - 1)
        words = f"residual variance {theirs['residual']:.5f}, ours {ours['residual']:.5f}"
        return Agreement(off < 5 * (2 / ours["rows"]) ** 0.5, words)

    row = beside(
        f"one Gibbs iteration, {ours['rows']:,} rows",
        "textbook sampler in NumPy, visiting every row",
        ours,
        lambda: peers.ours(VISITING, FORMULA, path, 10),
        agree=agree,
        same_work=False,
    )
    return Comparison((row,))
