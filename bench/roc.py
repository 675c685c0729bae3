"""1,000 paired bootstraps of the partial area, 20 methods on 474 series: ours beside pROC's.

Run `python -m bench roc`, or `python bench/roc.py [results.json]`. pROC (R) tests one pair at a time, so the best
method against the 19 others is 19 calls; one is timed and multiplied. Both sides are timed in processor seconds,
best of several runs; their partial areas must agree, and both test statistics are written down.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.change.bootstrap import replicate

METHODS, SERIES, RESAMPLES, RUNS = 20, 474, 1000, 5
PROC = """
suppressMessages(library(pROC))
d <- read.csv("roc.csv")
curve <- function(k) roc(d$g, d[[k]], direction = "<", quiet = TRUE)
a <- curve("x0"); b <- curve("x1")
test <- function() roc.test(a, b, method = "bootstrap", boot.n = 1000, partial.auc = c(1, .8), reuse.auc = FALSE,
                            alternative = "greater", progress = "none")
times <- sapply(1:RUNS, function(i) sum(system.time(test())[1:2]))
t <- test()
cat(min(times), t$statistic, unlist(t$estimate), as.character(packageVersion("pROC")))
"""


def main(path: Path | None = None) -> None:
    """Measure, print the ratios, and write them to `path` as JSON."""
    if not shutil.which("Rscript"):
        raise RuntimeError("Rscript is not installed; this comparison needs R with pROC.")
    with tempfile.TemporaryDirectory() as folder, Console(stderr=True).status("Paired bootstraps"):
        found = bootstrap(Path(folder))
    table = Table("task", "ours, s", "pROC, s", "times faster")
    times = (f"{found['ours']:.3f}", f"{found['proc']:.1f}", f"{found['ratio']:.0f}")
    table.add_row("the best of 20 methods against 19, 1,000 resamples", *times)
    Console().print(table)
    if path is not None:
        path.write_text(json.dumps(found, indent=2) + "\n")


def bootstrap(folder: Path) -> dict[str, Any]:
    """The best of 20 methods tested against the other 19, in processor seconds, and both statistics."""
    rng = np.random.default_rng(0)
    positive = np.arange(SERIES) < 57
    quality = np.linspace(1.6, 0.6, METHODS)[:, None]
    scores = rng.normal(size=SERIES) + rng.normal(size=(METHODS, SERIES)) + quality * positive
    data = np.column_stack([positive, scores[0], scores[1]])
    np.savetxt(folder / "roc.csv", data, delimiter=",", header="g,x0,x1", comments="", fmt="%.17g")
    seconds, statistic, first, second, version = r(PROC, folder)
    result = replicate(positive, scores, resamples=RESAMPLES)
    if not np.allclose(result.area[:2], [float(first), float(second)], atol=1e-10):
        raise RuntimeError("pROC and discreet disagree on the partial areas.")
    ours = best(lambda: replicate(positive, scores, resamples=RESAMPLES))
    proc = float(seconds) * (METHODS - 1)
    return {
        "ours": ours,
        "proc": proc,
        "ratio": proc / ours,
        "statistic": result.test(0, 1)[0],
        "proc_statistic": float(statistic),
        "pROC": version,
    }


def best(run: Callable[[], object]) -> float:
    """Processor seconds of the fastest of several runs, threads included."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def r(code: str, folder: Path) -> list[str]:
    code = code.replace("RUNS", str(RUNS))
    done = subprocess.run(["Rscript", "-e", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
