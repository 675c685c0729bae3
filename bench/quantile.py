"""Quantile regression: ours beside quantreg's fastest form for this size and statsmodels.

The same design, a heavy-tailed response whose spread depends on the columns. The check loss at the solution must be the
same to eight digits: below it nobody can be. Several quantiles at once are one call for ours and for quantreg's `pfnb`
(Frisch-Newton on few rows, then checked on all, in Fortran), a loop for statsmodels. Processor seconds, the best of
three runs each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, beside

TAUS = (0.05, 0.25, 0.5, 0.75, 0.95)

READ = """
import numpy as np
rows, columns = int(sys.argv[2]), int(sys.argv[3])
whole = np.fromfile(sys.argv[1]).reshape(columns + 1, rows).T
y, X, taus = np.ascontiguousarray(whole[:, 0]), np.ascontiguousarray(whole[:, 1:]), list(map(float, sys.argv[4:]))
def loss(betas):
    found = 0.0
    for tau, beta in zip(taus, betas):
        r = y - X @ np.asarray(beta)
        found += float((r * (tau - (r < 0))).sum())
    return found
"""

OURS = (
    READ
    + """
from discreet.changes.quantile import quantile_regression
quantile_regression(X[:500], y[:500], taus)
time_, betas = measured(lambda: quantile_regression(X, y, taus), 3)
report(seconds=time_["cpu"], loss=loss(betas))
"""
)

STATSMODELS = (
    READ
    + """
from statsmodels.regression.quantile_regression import QuantReg
time_, betas = measured(lambda: [QuantReg(y, X).fit(q=tau).params for tau in taus], 3)
report(seconds=time_["cpu"], loss=loss(betas), version=version("statsmodels"))
"""
)

QUANTREG = r"""
rows <- as.integer(arguments[2]); columns <- as.integer(arguments[3]); taus <- as.numeric(arguments[-(1:3)])
whole <- matrix(readBin(arguments[1], "double", rows * (columns + 1)), rows)
y <- whole[, 1]; X <- whole[, -1]
set.seed(1)
best <- list(cpu = Inf)
for (i in 1:3) { t <- clock(function() rq.fit.pfnb(X, y, taus)$coefficients)
                 if (t$cpu < best$cpu) best <- t }
losses <- sapply(seq_along(taus), function(k) { r <- y - X %*% best$result[, k]; sum(r * (taus[k] - (r < 0))) })
report(seconds = best$cpu, loss = sum(losses), version = as.character(packageVersion("quantreg")))
"""


def compare(*, quick: bool) -> Comparison:
    """Five quantiles of one design."""
    rows, columns = (5_000, 6) if quick else (100_000, 10)
    data.HOME.mkdir(parents=True, exist_ok=True)
    path = data.HOME / f"quantile-{rows}.bin"
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, columns - 1))])
    y = X @ rng.normal(size=columns) + (1 + np.abs(X[:, 1])) * rng.standard_t(3, size=rows)
    np.column_stack([y, X]).T.astype(float).tofile(path)
    arguments = (path, rows, columns, *TAUS)
    ours = peers.ours(OURS, *arguments)
    job = f"quantile regression, {len(TAUS)} quantiles, {rows:,} rows, {columns} columns"

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        off = (theirs["loss"] - ours["loss"]) / ours["loss"]
        return Agreement(abs(off) < 1e-8, f"check loss {off:+.0e} of ours")

    def quantreg() -> dict[str, Any]:
        return peers.r(QUANTREG, *arguments, package="quantreg")

    why = (
        "Both solve few rows and check the others; its steps are compiled, ours NumPy. Compiled steps, or "
        "starting each quantile from its neighbour's fit as it does, would remove the gap"
    )

    return Comparison(
        (
            beside(job, "quantreg, rq.fit.pfnb", ours, quantreg, agree=agree, why=why),
            beside(job, "statsmodels", ours, lambda: peers.STATSMODELS.measure(STATSMODELS, *arguments), agree=agree),
        )
    )
