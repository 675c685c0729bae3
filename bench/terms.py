"""Mixed models of every shape beside lme4: slopes, `||`, nested, crossed, singular, workers in firms.

Both sides get the same simulated rows in memory, one thread, and the best of three warm fits in processor seconds;
lme4 leaves out its derivatives at the optimum, as its vignette on speed advises. Criteria are compared with the digits
that sums of squares keep: 1e-8, or 1e-12 of the criterion where that is more.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, Row, beside

CASES = {
    "random intercept, 5,000 rows": ("plain", "y ~ x + (1 | g)"),
    "random slope, 5,000 rows": ("plain", "y ~ x + (x | g)"),
    "three separate effects, 600 rows": ("few", "y ~ x + k + (x + k || h)"),
    "three correlated effects, 600 rows": ("few", "y ~ x + k + (x + k | h)"),
    "singular slope, 600 rows": ("few", "y ~ x + (k | h)"),
    "nested, 5,000 rows": ("plain", "y ~ x + (1 | a / g)"),
    "nested slopes, 400 rows": ("wafer", "y ~ v + (v | a) + (v | a:s)"),
    "two crossed, 5,000 rows": ("plain", "y ~ x + (1 | g) + (1 | h)"),
    "three crossed, 10,000 rows": ("wide", "y ~ x + (1 | g) + (1 | h) + (1 | k)"),
    "crossed with a slope, 10,000 rows": ("wide", "y ~ x + (x | g) + (1 | h)"),
    "singular crossed, 10,000 rows": ("wide", "y ~ x + (1 | g) + (1 | nothing)"),
    "20,000 workers in 3,000 firms": ("few-firms", "y ~ x + (1 | w) + (1 | f)"),
    "100,000 workers in 10,000 firms": ("firms", "y ~ x + (1 | w) + (1 | f)"),
}
QUICK = tuple(case for case in CASES if "workers" not in case)

OURS = """
import warnings
warnings.simplefilter("ignore")
import pyarrow as pa, pyarrow.compute, duckdb, narwhals.stable.v2
import pyarrow.csv as csv
from discreet.models.linear import mixed
path, formula, times = sys.argv[1:]
text = {name: pa.string() for name in ("a", "g", "h", "s", "w", "f", "nothing")}
table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text))
if "(1 | k)" in formula:
    table = table.set_column(table.column_names.index("k"), "k", table["k"].cast(pa.string()))
run = lambda: mixed(formula, table)
if int(times) > 1:
    run()
time_, fit = measured(run, int(times))
report(**time_, criterion=float(fit.criterion))
"""

LME4 = r"""
formula <- arguments[2]; times <- as.integer(arguments[3])
d <- read.csv(arguments[1])
for (name in intersect(names(d), c("a", "g", "h", "s", "w", "f", "nothing"))) d[[name]] <- factor(d[[name]])
if (grepl("(1 | k)", formula, fixed = TRUE)) d$k <- factor(d$k)
quickly <- lmerControl(calc.derivs = FALSE)
fit <- function() suppressWarnings(suppressMessages(lmer(as.formula(formula), d, control = quickly)))
if (times > 1) fit()
least <- list(seconds = Inf, cpu = Inf)
for (i in seq_len(times)) {
  gc(); found <- clock(fit)
  for (name in names(least)) least[[name]] <- min(least[[name]], found[[name]])
}
report(seconds = least$seconds, cpu = least$cpu, criterion = REMLcrit(found$result),
       version = as.character(packageVersion("lme4")))
"""


def compare(*, quick: bool) -> Comparison:
    """Every case, and the median of their ratios."""
    rows = [case(name) for name in (QUICK if quick else CASES)]
    known = [(row.time, row.memory) for row in rows if row.time is not None and row.memory is not None]
    if known:
        times, memory = zip(*known, strict=True)
        words = f"over {len(known)} shapes of random terms; the least is {min(times):.2g} x"
        rows.append(Row("median of these", "lme4", median(times), median(memory), words, same_work=False))
    return Comparison(tuple(rows))


def case(name: str) -> Row:
    """One formula on one table, on both sides."""
    rows, formula = CASES[name]
    path, times = data.kept(data.HOME / f"terms-{rows}.csv", partial(_write, rows)), 1 if "workers" in name else 3
    mine = _of_cpu(peers.ours(OURS, path, formula, times))

    def agree(theirs: Any) -> Agreement:
        above = mine["criterion"] - theirs["criterion"]
        return Agreement(above <= max(1e-8, 1e-12 * abs(mine["criterion"])), f"criterion {above:+.0e} above")

    return beside(
        f"{name}: {formula}",
        "lme4",
        mine,
        lambda: _of_cpu(peers.r(LME4, path, formula, times, package="lme4")),
        agree=agree,
        why="Memory is the base of Python with NumPy, SciPy, Arrow and DuckDB",
    )


def _of_cpu(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "seconds": found["cpu"]}


def _write(name: str, path: Any) -> None:
    import pyarrow as pa
    import pyarrow.csv as csv

    csv.write_csv(pa.table(simulated(name)), path)


def simulated(name: str) -> dict[str, Any]:
    """The rows of a case."""
    rng = np.random.default_rng(21)
    if name.endswith("firms"):
        return _workers(rng, *((20_000, 3_000) if name == "few-firms" else (100_000, 10_000)))
    if name == "wafer":
        a, s = np.repeat(np.arange(10), 40), np.tile(np.repeat(np.arange(8), 5), 10)
        v, site = np.tile([0.8, 1.2, 1.6, 2.0, 2.4], 80), 8 * a + s
        y = 5 * v + rng.normal(size=10)[a] + v * rng.normal(size=10)[a] + 0.4 * rng.normal(size=80)[site]
        return {"y": y + 0.3 * v * rng.normal(size=80)[site] + 0.3 * rng.normal(size=400), "v": v, "a": a, "s": s}
    rows, levels = {"plain": (5_000, (400, 50, 1)), "few": (600, (1, 30, 1)), "wide": (10_000, (100, 60, 30))}[name]
    x, g, h, third = rng.normal(size=rows), *(rng.integers(0, count, rows) for count in levels)
    y = (
        x
        + rng.normal(size=levels[0])[g]
        + 0.5 * x * rng.normal(size=levels[1])[h]
        + 0.7 * rng.normal(size=levels[2])[third]
    )
    y += rng.normal(size=levels[1])[h] + rng.normal(size=rows)
    k = rng.normal(size=rows) if name == "few" else third
    return {"y": y, "x": x, "k": k, "g": g, "h": h, "a": g // 10, "nothing": rng.integers(0, 40, rows)}


def _workers(rng: np.random.Generator, workers: int, firms: int, years: int = 5, moves: float = 0.08) -> dict[str, Any]:
    """Workers who now and then move to a firm, large ones more often: their sizes follow Pareto's law."""
    share = rng.pareto(1.2, firms) + 0.2
    firm = np.empty((workers, years), dtype=np.int64)
    firm[:, 0] = rng.choice(firms, workers, p=share / share.sum())
    for year in range(1, years):
        moved = rng.choice(firms, workers, p=share / share.sum())
        firm[:, year] = np.where(rng.random(workers) < moves, moved, firm[:, year - 1])
    w, f, x = np.repeat(np.arange(workers), years), firm.ravel(), rng.normal(size=workers * years)
    y = 0.3 * x + 0.8 * rng.normal(size=workers)[w] + 0.4 * rng.normal(size=firms)[f] + 0.5 * rng.normal(size=len(x))
    return {"y": y, "x": x, "w": w, "f": f}
