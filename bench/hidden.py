"""Mixed models that nobody has seen: data sets and formulas are drawn by chance, from a new seed in every run.

A design is realistic in what makes fits slow or wrong: groups of very different sizes, variances that are zero,
covariates far from zero, factors, heavy tails, terms that are nested or crossed. Both sides fit all of them in one
process each, on one thread; a time is the best of three in processor seconds. `SEED=7 python -m bench hidden` repeats a
run.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import peers
from bench.comparison import Agreement, Comparison, Row, beside

MANY, FEW = 40, 8
"""Designs of a run, and of its quick form."""

ROWS = (200, 30_000)
STOPPED = 0.01  # above the least criterion, from where a fit is another fit
SHAPES = {
    "intercept": "(1 | g)",
    "slope": "({x} | g)",
    "separate": "({x} || g)",
    "nested": "(1 | a / g)",
    "nested slope": "({x} | a) + (1 | a:g)",
    "crossed": "(1 | g) + (1 | h)",
    "crossed three ways": "(1 | g) + (1 | h) + (1 | m)",
    "crossed slope": "({x} | g) + (1 | h)",
}

OURS = """
import warnings
warnings.simplefilter("ignore")
import pyarrow as pa, duckdb, narwhals.stable.v2, scipy.optimize
import pyarrow.csv as csv
from discreet.models.linear import mixed
cpu, criterion = [], []
text = {name: pa.string() for name in ("a", "g", "h", "m", "kind")}
designs = json.load(open(sys.argv[1]))
mixed(designs[0]["formula"], csv.read_csv(designs[0]["path"], convert_options=csv.ConvertOptions(column_types=text)))
for design in designs:
    table = csv.read_csv(design["path"], convert_options=csv.ConvertOptions(column_types=text))
    time_, fit = measured(lambda: mixed(design["formula"], table, method="REML" if design["reml"] else "ML"), 3)
    cpu.append(time_["cpu"]); criterion.append(float(fit.criterion))
report(seconds=sum(cpu), cpu=cpu, criterion=criterion)
"""

LME4 = r"""
designs <- jsonlite::fromJSON(arguments[1])
quickly <- lmerControl(calc.derivs = FALSE, check.conv.singular = "ignore")
cpu <- criterion <- numeric(0)
for (i in c(1, seq_len(nrow(designs)))) {
  d <- read.csv(designs$path[i])
  for (name in intersect(names(d), c("a", "g", "h", "m", "kind"))) d[[name]] <- factor(d[[name]])
  formula <- as.formula(designs$formula[i])
  fit <- function()
    suppressWarnings(suppressMessages(lmer(formula, d, REML = designs$reml[i], control = quickly)))
  least <- Inf
  for (k in 1:3) { gc(); found <- clock(fit); least <- min(least, found$cpu) }
  cpu <- c(cpu, max(least, 0.001))
  criterion <- c(criterion, if (designs$reml[i]) REMLcrit(found$result) else -2 * as.numeric(logLik(found$result)))
}
report(seconds = sum(cpu[-1]), cpu = cpu[-1], criterion = criterion[-1], version = as.character(packageVersion("lme4")))
"""


@dataclass(frozen=True)
class Design:
    """A formula and the rows that it is fitted to."""

    shape: str
    formula: str
    reml: bool
    columns: dict[str, NDArray[Any]]


def compare(*, quick: bool) -> Comparison:
    """The median and the worst of all designs."""
    seed = int(os.environ.get("SEED", secrets.randbelow(10**6)))
    print(f"   hidden mix: SEED={seed}", flush=True)
    designs = [drawn(np.random.default_rng([seed, number])) for number in range(FEW if quick else MANY)]
    with tempfile.TemporaryDirectory() as folder:
        listed = _written(designs, Path(folder))
        mine = peers.ours(OURS, listed)
        try:
            theirs = peers.r(LME4, listed, package="lme4")
        except peers.Missing as reason:
            return Comparison((Row(_job("median", designs), "lme4", None, None, "not measured", str(reason)),))
    return Comparison(_rows(designs, mine, theirs, seed), facts={"seed": seed})


def _job(which: str, designs: Sequence[Design]) -> str:
    return f"{which} of {len(designs)} mixed models drawn by chance"


def _rows(designs: Sequence[Design], mine: dict[str, Any], theirs: dict[str, Any], seed: int) -> tuple[Row, ...]:
    ratios = [b / a for a, b in zip(mine["cpu"], theirs["cpu"], strict=True)]
    above = [(a - b) / max(1e-8, 1e-12 * abs(a)) for a, b in zip(mine["criterion"], theirs["criterion"], strict=True)]
    worst, highest = int(np.argmin(ratios)), int(np.argmax(above))
    most = mine["criterion"][highest] - theirs["criterion"][highest]
    words = f"criteria at most {most:+.0e} above lme4's ({designs[highest].formula}); seed {seed}"
    slow, short = designs[worst], theirs["criterion"][worst] - mine["criterion"][worst]
    told = f"of shape {slow.shape!r}" + (f"; lme4 stopped {short:.3g} above our criterion" if short > STOPPED else "")
    why = f"{slow.formula}, {len(slow.columns['y']):,} rows; memory is the base of Python with its packages"

    def row(which: str, ratio: float, agreement: Agreement) -> Row:
        ours, other = {**mine, "seconds": 1.0}, {**theirs, "seconds": ratio}
        return beside(_job(which, designs), "lme4", ours, other, agree=lambda _: agreement, why=why)

    return (
        row("median", median(ratios), Agreement(above[highest] <= 1, words)),
        row("worst", ratios[worst], Agreement(True, told)),
    )


def _written(designs: Sequence[Design], folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.csv as csv

    told = []
    for number, design in enumerate(designs):
        path = folder / f"{number}.csv"
        csv.write_csv(pa.table(design.columns), path)
        told.append({"path": str(path), "formula": design.formula, "reml": design.reml})
    listed = folder / "designs.json"
    listed.write_text(json.dumps(told), encoding="utf-8")
    return listed


def drawn(rng: np.random.Generator) -> Design:
    """One design by chance."""
    shape = str(rng.choice(list(SHAPES)))
    rows = int(np.exp(rng.uniform(*np.log(ROWS))))
    covariates = {f"x{i}": _covariate(rng, rows) for i in range(1, rng.integers(1, 4) + 1)}
    groups = {name: _levels(rng, rows) for name in "ghm"}
    groups["a"] = groups["g"] % max(2, len(np.unique(groups["g"])) // 6)
    y = sum((rng.normal() * _standard(x) for x in covariates.values()), start=np.zeros(rows))
    for place in groups.values():
        y += _spread(rng) * rng.normal(size=place.max() + 1)[place]
    if "{x}" in SHAPES[shape]:
        y += _spread(rng) * rng.normal(size=groups["g"].max() + 1)[groups["g"]] * _standard(covariates["x1"])
    y += _errors(rng, rows)
    fixed = [*covariates]
    columns: dict[str, NDArray[Any]] = {"y": y * 10 ** rng.uniform(-2, 4), **covariates, **groups}
    if rng.random() < 0.3:
        columns["kind"] = rng.choice(np.array(["north", "south", "west"]), rows)
        fixed.append("kind")
    formula = f"y ~ {' + '.join(fixed)} + {SHAPES[shape].format(x='x1')}"
    return Design(shape, formula, bool(rng.random() < 0.7), columns)


def _levels(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Groups of one size, or of sizes by Pareto's law; six rows a group at least, on average."""
    many = int(np.exp(rng.uniform(np.log(5), np.log(max(6, rows // 6)))))
    share = np.ones(many) if rng.random() < 0.4 else rng.pareto(1.2, many) + 0.05
    return np.unique(rng.choice(many, rows, p=share / share.sum()), return_inverse=True)[1].astype(np.int64)


def _covariate(rng: np.random.Generator, rows: int) -> NDArray[Any]:
    return (
        rng.normal(size=rows),
        rng.integers(0, 2, rows),
        rng.integers(1990, 2021, rows),
        np.exp(rng.normal(size=rows)),
        50_000 + 10_000 * rng.normal(size=rows),
    )[rng.integers(5)]


def _standard(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray((x - x.mean()) / max(x.std(), 1e-12))


def _spread(rng: np.random.Generator) -> float:
    """A standard deviation, which is zero one time in ten."""
    return 0.0 if rng.random() < 0.1 else float(np.exp(rng.normal(-0.5, 0.8)))


def _errors(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    return (rng.normal(size=rows), rng.standard_t(3, rows), rng.exponential(size=rows) - 1)[rng.integers(3)]
