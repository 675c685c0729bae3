"""Mixed models beside lme4, statsmodels and pymer4: 2,428,452 rows, 8,945 blocks, every leave-one-county-out refit.

Everybody gets the same simulated rows and one thread for linear algebra. Seconds are of the processor, so that DuckDB's
threads are counted against us, except for the blocks, where lme4 runs on two cores and the clock counts. The whole is
fitted twice by everybody: the first fit of a process beside the first, the second beside the second; smaller jobs are
the best of three warm runs on both sides. The block loop of lme4 is timed on a sample of the very blocks that ours fits
and scaled up. statsmodels and pymer4 get every fiftieth row as a file of its own, as do ours and lme4 there. lme4
leaves out its derivatives at the optimum, as its vignette on speed advises (pymer4 cannot: it reads what the check of
them says); its checks of rank and scale stay on, for ours has them too. Criteria must agree to eight digits, also those
of three refits without a county, which lme4 fits anew on the smaller file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, Row, beside

FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"
BLOCKS, SAMPLED = 8_945, 150

OURS = """
import duckdb, narwhals.stable.v2, pyarrow.compute  # R, too, has loaded its package before the clock starts
import numpy as np, pyarrow.parquet as pq
from discreet.models.linear import estimate, fit_blocks, leave_groups_out, mixed
job, path, formula, blocks, sampled, *left_out = sys.argv[1:]
columns = ["jcr", "industry", "quarter", "county"]
data = path if job in ("parquet", "cold") else None if job == "crossed" else pq.read_table(path, columns=columns)
facts = {}
if job == "crossed":
    run = lambda: mixed("y ~ service + (1 | s) + (1 | d)", path)
elif job == "refits":
    whole = mixed(formula, data)
    run = lambda: leave_groups_out(whole)
elif job == "blocks":
    run = lambda: fit_blocks(formula, data, blocks=int(blocks), seed=1)
else:
    run = lambda: mixed(formula, data)
if job == "cold":
    time_, fit = measured(run)
    facts["process"] = time.process_time()
else:
    run()
    time_, fit = measured(run, 3 if job in ("part", "blocks", "crossed") else 1)
if job == "blocks":
    group, residual = fit.variances[:int(sampled)].T
    facts["theta"] = np.nan_to_num(np.sqrt(group / residual), nan=-1.0).tolist()
elif job != "refits":
    facts["criterion"] = float(fit.criterion)
if job == "part":
    which = np.array([fit.random[0].levels.index(county) for county in left_out])
    facts["without"] = leave_groups_out(fit, which).criterion.tolist()
report(**time_, **facts)
"""

LME4 = r"""
job <- arguments[1]; folder <- arguments[2]; n <- as.integer(arguments[3]); size <- as.integer(arguments[4])
sampled <- as.integer(arguments[5])
best <- function(run) {
  run(); least <- list(seconds = Inf, cpu = Inf)
  for (i in 1:3) {
    kept <- NULL; gc()  # one result at a time in memory
    kept <- clock(run)
    for (name in names(least)) least[[name]] <- min(least[[name]], kept[[name]])
  }
  kept[names(least)] <- least
  kept
}
facts <- list(version = as.character(packageVersion("lme4")))
quickly <- lmerControl(calc.derivs = FALSE)
if (job == "crossed") {
  d <- read.csv(folder); d$s <- factor(d$s); d$d <- factor(d$d)
  t <- best(function() lmer(y ~ service + (1 | s) + (1 | d), d, control = quickly))
} else {
  column <- function(name, what) readBin(file.path(folder, name), what, n)
  d <- data.frame(jcr = column("jcr", "double"), industry = factor(column("industry", "integer")),
                  quarter = column("quarter", "double"), county = factor(column("county", "integer")))
  formula <- jcr ~ 0 + industry + quarter + (1 | county)
  fit <- function(rows) suppressWarnings(suppressMessages(lmer(formula, rows, control = quickly)))
  if (job == "blocks") {
    order <- readBin(file.path(folder, "order"), "integer", size * sampled)
    rows <- lapply(seq_len(sampled), function(b) d[order[(b - 1) * size + seq_len(size)], ])
    one <- function(part) tryCatch(fit(part), error = function(e) NULL)
    t <- best(function() parallel::mclapply(rows, one, mc.cores = 2))
    theta <- readBin(file.path(folder, "theta"), "double", sampled)
    whole <- function(part) lmer(formula, part, control = quickly, devFunOnly = TRUE)
    quiet <- function(part) suppressWarnings(suppressMessages(whole(part)))
    both <- Filter(function(b) theta[b] >= 0 && !is.null(t$result[[b]]), seq_len(sampled))
    facts$above <- sapply(both, function(b) quiet(rows[[b]])(theta[b]) - REMLcrit(t$result[[b]]))
  } else if (job == "part") {
    t <- best(function() fit(d))
    facts$without <- sapply(1:3 - 1, function(code) REMLcrit(fit(d[d$county != code, ])))
  } else {
    first <- clock(function() fit(d))
    facts$first <- first$cpu; facts$process <- sum(proc.time()[1:2])
    t <- clock(function() fit(d))
  }
}
if (job != "blocks") facts$criterion <- REMLcrit(t$result)
facts$seconds <- t$seconds; facts$cpu <- t$cpu
do.call(report, facts)
"""

READ = """
import numpy as np, pyarrow.parquet as pq
some = pq.read_table(sys.argv[1], columns=["jcr", "industry", "quarter", "county"]).to_pandas()
"""

STATSMODELS = (
    READ
    + """
import statsmodels.api as sm
industry = np.unique(some.industry.astype(str), return_inverse=True)[1]
X = np.column_stack([np.eye(industry.max() + 1)[industry], some.quarter])
y, county = some.jcr.to_numpy(), some.county.astype(str).to_numpy()
time_, fit = measured(lambda: sm.MixedLM(y, X, groups=county).fit(reml=True), 3)
report(**time_, criterion=float(-2 * fit.llf), version=version("statsmodels"))
"""
)

PYMER4 = (
    READ
    + """
from pymer4.models import Lmer
some = some.astype({"industry": str, "county": str})
model = Lmer("jcr ~ 0 + industry + quarter + (1 | county)", data=some)
time_, _ = measured(lambda: model.fit(summarize=False, verbose=False), 3)
report(**time_, criterion=float(-2 * model.logLike), version=version("pymer4"))
"""
)


def compare(*, quick: bool) -> Comparison:
    """One fit, many blocks, all refits."""
    share, fraction = (0.02, 5) if quick else (1.0, 50)  # the slow peers fit every fifth or fiftieth row
    path = data.rows(share)
    folder, n = data.columns(path)
    few = data.every(path, fraction)
    few_folder, few_n = data.columns(few)
    blocks = max(1, int(BLOCKS * share))
    sampled = min(SAMPLED, blocks)
    size = n // blocks
    kept: dict[str, dict[str, Any]] = {}

    def ours(job: str, clock: str = "cpu") -> dict[str, Any]:
        source, left_out = (few, first_counties(few)) if job == "part" else (path, [])
        found = peers.ours(OURS, job, source, FORMULA, blocks, sampled, *left_out)
        return {**found, "seconds": found[clock]}

    def lme4(job: str, clock: str = "cpu") -> dict[str, Any]:
        if job not in kept:
            source, rows = (few_folder, few_n) if job == "part" else (folder, n)
            kept[job] = peers.r(LME4, job, source, rows, size, sampled, package="lme4")
        return {**kept[job], "seconds": kept[job][clock]}

    def refitted(_: Mapping[str, Any]) -> Agreement:
        off = np.abs(np.array(lme4("part")["without"]) / some["without"] - 1).max()
        return Agreement(bool(off < 1e-8), f"criteria of three refits of {few_n:,} rows by lme4 within {off:.0e}")

    whole, part = f"REML, {n:,} rows", f"REML, {few_n:,} rows"
    cold = ours("cold")
    some, fitted = ours("part"), ours("blocks", "seconds")
    np.array(fitted["theta"]).tofile(folder / "theta")
    base = (
        "Memory here is the base of Python with NumPy, SciPy, Arrow and DuckDB; "
        "loading fewer modules would remove the gap"
    )
    rows = [
        beside(f"{whole}, in memory", "lme4", mine := ours("memory"), lambda: lme4("whole"), agree=criterion(mine)),
        beside(f"{whole}, from Parquet", "lme4", mine := ours("parquet"), lambda: lme4("whole"), agree=criterion(mine)),
        beside(
            f"{whole}, from Parquet, a process's first", "lme4", cold, lambda: lme4("whole", "first"),
            agree=criterion(cold),
        ),
        beside(
            f"{whole}, whole process",
            "lme4",
            {**cold, "seconds": cold["process"]},
            lambda: lme4("whole", "process"),
            agree=criterion(cold),
        ),
        beside(
            "every refit without one county, beside one fit", "lme4", ours("refits"), lambda: lme4("whole"),
            agree=refitted, same_work=False,
        ),
        many(fitted, lambda: lme4("blocks", "seconds"), blocks, sampled, size),
        beside(part, "lme4", some, lambda: lme4("part"), agree=criterion(some), why=base),
    ]  # fmt: skip
    rows += [
        beside(part, peer.name, some, partial(of_cpu, peer.measure, script, few), agree=criterion(some))
        for peer, script in ((peers.STATSMODELS, STATSMODELS), (peers.PYMER4, PYMER4))
    ]
    if not quick:
        rows.append(crossed())
    return Comparison(tuple(rows))


def of_cpu(measure: Callable[..., dict[str, Any]], *arguments: object, **settings: str) -> dict[str, Any]:
    """What a process reported, its seconds those of the processor."""
    found = measure(*arguments, **settings)
    return {**found, "seconds": found["cpu"]}


def crossed() -> Row:
    """Students crossed with lecturers, in lme4's own data."""
    job = "REML, InstEval, 73,421 rows, students crossed with lecturers"
    try:
        path = data.insteval()
    except peers.Missing as reason:
        return Row(job, "lme4", None, None, "not measured", str(reason))
    mine = of_cpu(peers.ours, OURS, "crossed", path, "", 0, 0)
    lme4 = partial(of_cpu, peers.r, LME4, "crossed", path, 0, 0, 0, package="lme4")
    why = (
        "The factor of the 1,128 lecturers is nearly full on both sides; memory is the base of Python with its packages"
    )
    return beside(job, "lme4", mine, lme4, agree=criterion(mine), why=why)


def criterion(ours: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Agreement]:
    """How far the peer's minimum lies from ours."""

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        off = (theirs["criterion"] - ours["criterion"]) / abs(ours["criterion"])
        return Agreement(abs(off) < 1e-8, f"criterion {off:+.0e} of ours")

    return agree


def many(ours: dict[str, Any], lme4: Callable[[], dict[str, Any]], blocks: int, sampled: int, size: int) -> Row:
    """All blocks, lme4's sample scaled up. Blocks have about one row per county, so that criteria are nearly flat: they
    are compared, both by lme4's own function, and not the variances."""

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        above = np.array(theirs["above"])
        words = (
            f"criteria of {len(above)} blocks: ours at most {max(above.max(), 0):.0e} above, {-above.min():.0e} below"
        )
        return Agreement(bool(np.abs(above).max() < 1e-5), words)

    def scaled() -> dict[str, Any]:
        found = lme4()
        return {**found, "seconds": found["seconds"] * blocks / sampled}

    job = f"REML, {blocks:,} blocks of {size} rows (its time: {sampled} of them, scaled up)"
    why = (
        f"Its memory is that of {sampled} blocks, ours of all of them; "
        "fitting fewer blocks at once would remove the gap"
    )
    return beside(job, "lme4 on two cores", ours, scaled, agree=agree, why=why)


def first_counties(path: Path) -> list[str]:
    """The three counties that a file begins with, whose codes in `data.columns` are 0, 1 and 2."""
    import pyarrow.parquet as pq

    county = pq.read_table(path, columns=["county"])["county"].combine_chunks()
    return [str(name) for name in county.cast("string").dictionary_encode().dictionary[:3].to_pylist()]
