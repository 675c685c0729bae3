"""ROC analysis beside scikit-learn and pROC: one large partial area, and the paired bootstraps of 20 methods.

scikit-learn gives the partial area in McClish's scale, so ours does too. pROC tests one pair at a time: the best method
against the 19 others is 19 calls, of which one is timed and scaled up. Areas must agree to ten digits, the statistics
within four of the errors that the resamples of both sides leave. Processor seconds, the best of three warm runs each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, beside

METHODS, SERIES, RESAMPLES = 20, 474, 1000

AREA = """
import numpy as np
n = int(sys.argv[1])
rng = np.random.default_rng(0)
positive = rng.random(n) < 0.1
score = np.round(rng.normal(size=n) + positive, 4)
"""

OUR_AREA = (
    AREA
    + """
from discreet.roc.curve import partial_auc
run = lambda: partial_auc(positive, score, fpr=(0, 0.2), scale="mcclish")
run()
time_, area = measured(run, 3)
report(seconds=time_["cpu"], area=float(area))
"""
)

SKLEARN = (
    AREA
    + """
from sklearn.metrics import roc_auc_score
run = lambda: roc_auc_score(positive, score, max_fpr=0.2)
run()
time_, area = measured(run, 3)
report(seconds=time_["cpu"], area=float(area), version=version("scikit-learn"))
"""
)

BEST = r"""
best <- function(run) {
  least <- Inf
  for (i in 1:3) { kept <- NULL; gc(); kept <- clock(run); least <- min(least, kept$cpu) }
  kept$cpu <- least
  kept
}
"""

PROC_AREA = (
    BEST
    + r"""
n <- as.integer(arguments[2])
score <- readBin(arguments[1], "double", n); positive <- readBin(paste0(arguments[1], ".g"), "integer", n)
run <- function() as.numeric(auc(roc(positive, score, direction = "<", quiet = TRUE),
                                 partial.auc = c(1, .8), partial.auc.correct = TRUE))
run()
t <- best(run)
report(seconds = t$cpu, area = t$result, version = as.character(packageVersion("pROC")))
"""
)

OUR_TEST = """
import numpy as np
from discreet.roc.bootstrap import replicate
whole = np.load(sys.argv[1])
positive, scores = whole[0] > 0, whole[1:]
run = lambda: replicate(positive, scores, resamples=int(sys.argv[2]))
run()
time_, result = measured(run, 3)
report(seconds=time_["cpu"], statistic=float(result.test(0, 1)[0]), area=[float(a) for a in result.area[:2]])
"""

PROC_TEST = (
    BEST
    + r"""
d <- read.csv(arguments[1]); methods <- as.integer(arguments[3]); times <- as.integer(arguments[2])
curve <- function(k) roc(d$g, d[[k]], direction = "<", quiet = TRUE)
a <- curve("x0"); b <- curve("x1")
test <- function() roc.test(a, b, method = "bootstrap", boot.n = times, partial.auc = c(1, .8), reuse.auc = FALSE,
                            alternative = "greater", progress = "none")
set.seed(1)
test()
t <- best(test)
areas <- unname(unlist(t$result$estimate))
report(seconds = t$cpu * (methods - 1), statistic = unname(t$result$statistic), area = areas,
       version = as.character(packageVersion("pROC")))
"""
)


def compare(*, quick: bool) -> Comparison:
    """One area of many cases; one test of many methods."""
    n = 100_000 if quick else 1_000_000
    data.HOME.mkdir(parents=True, exist_ok=True)
    path = data.HOME / f"score-{n}"
    rng = np.random.default_rng(0)
    positive = rng.random(n) < 0.1
    np.round(rng.normal(size=n) + positive, 4).tofile(path)
    positive.astype("i4").tofile(f"{path}.g")
    area, tested = peers.ours(OUR_AREA, n), paired()
    ours = peers.ours(OUR_TEST, tested.with_suffix(".npy"), RESAMPLES)
    job, same = f"partial area, {n:,} cases", partial(same_area, area)

    return Comparison(
        (
            beside(job, "scikit-learn", area, lambda: peers.SKLEARN.measure(SKLEARN, n), agree=same),
            beside(job, "pROC", area, lambda: peers.r(PROC_AREA, path, n, package="pROC"), agree=same),
            beside(
                f"the best of {METHODS} methods against {METHODS - 1}, {RESAMPLES:,} paired bootstraps "
                f"(its time: one pair's, times {METHODS - 1})",
                "pROC",
                ours,
                lambda: peers.r(PROC_TEST, tested, RESAMPLES, METHODS, package="pROC"),
                agree=partial(same_test, ours),
            ),
        )
    )


def same_area(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Agreement:
    """Areas to ten digits."""
    off = theirs["area"] - ours["area"]
    return Agreement(abs(off) < 1e-10, f"area {off:+.0e} of ours")


def same_test(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Agreement:
    """A statistic's relative error is that of a standard deviation of RESAMPLES numbers; both sides have one."""
    off = max(abs(a - b) for a, b in zip(theirs["area"], ours["area"], strict=True))
    apart = abs(theirs["statistic"] / ours["statistic"] - 1)
    words = f"areas within {off:.0e}; statistics {theirs['statistic']:.2f}, ours {ours['statistic']:.2f}"
    return Agreement(off < 1e-10 and apart < 4 * RESAMPLES**-0.5, words)


def paired() -> Path:
    """Scores of 20 methods on 474 series, 57 of them large changes, for both sides."""
    path = data.HOME / "methods.csv"
    rng = np.random.default_rng(0)
    positive = np.arange(SERIES) < 57
    quality = np.linspace(1.6, 0.6, METHODS)[:, None]
    scores = rng.normal(size=SERIES) + rng.normal(size=(METHODS, SERIES)) + quality * positive
    np.save(path.with_suffix(".npy"), np.vstack([positive, scores]))
    few = np.column_stack([positive, scores[0], scores[1]])
    np.savetxt(path, few, delimiter=",", header="g,x0,x1", comments="", fmt="%.17g")
    return path
