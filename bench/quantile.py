"""Quantile regression: ours beside quantreg's Frisch-Newton (Fortran) and statsmodels.

The same design, a heavy-tailed response whose spread depends on the columns. The check loss at the solution must be the
same to eight digits: below it nobody can be. Several quantiles at once are one call for ours and quantreg, a loop for
statsmodels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Comparison, beside

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
from discreet.change.quantile import quantile_regression
quantile_regression(X[:500], y[:500], taus)
time_, betas = measured(lambda: quantile_regression(X, y, taus), 3)
report(**time_, loss=loss(betas))
"""
)

STATSMODELS = (
    READ
    + """
from statsmodels.regression.quantile_regression import QuantReg
time_, betas = measured(lambda: [QuantReg(y, X).fit(q=tau).params for tau in taus])
report(**time_, loss=loss(betas), version=version("statsmodels"))
"""
)

QUANTREG = r"""
rows <- as.integer(arguments[2]); columns <- as.integer(arguments[3]); taus <- as.numeric(arguments[-(1:3)])
whole <- matrix(readBin(arguments[1], "double", rows * (columns + 1)), rows)
y <- whole[, 1]; X <- whole[, -1]
best <- list(seconds = Inf)
for (i in 1:3) { t <- clock(function() sapply(taus, function(tau) rq.fit.fnb(X, y, tau)$coefficients))
                 if (t$seconds < best$seconds) best <- t }
losses <- sapply(seq_along(taus), function(k) { r <- y - X %*% best$result[, k]; sum(r * (taus[k] - (r < 0))) })
report(seconds = best$seconds, loss = sum(losses), version = as.character(packageVersion("quantreg")))
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

    def agree(theirs: Mapping[str, Any]) -> str:
        return f"check loss {(theirs['loss'] - ours['loss']) / ours['loss']:+.0e} of ours"

    return Comparison(
        (
            beside(job, "quantreg", ours, lambda: peers.r(QUANTREG, *arguments, package="quantreg"), agree=agree),
            beside(job, "statsmodels", ours, lambda: peers.STATSMODELS.measure(STATSMODELS, *arguments), agree=agree),
        )
    )
