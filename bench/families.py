"""Mixed models of counts and shares beside glmer and glmmTMB, and of residuals by stratum or series beside glmmTMB.

Both sides get the same simulated rows in memory and one thread; a time is the best of two fits in processor seconds.
Both maximise Laplace's approximation of the likelihood (the restricted one for residuals), so ours must be at least as
high, to 1e-6 of itself: other programs stop their search about there. Everybody has his own defaults, and glmer leaves
out its derivatives at the optimum, as in `bench.terms`. MixedModels.jl needs Julia, which is measured where it is.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, Row, beside

CLOSE = 1e-6
ROWS, GROUPS, OTHERS = 100_000, 1_000, 60
SERIES, PERIODS = 400, 25


@dataclass(frozen=True)
class Case:
    """A model: its name, table, formula and family; other settings of ours and of glmmTMB; who else fits it."""

    name: str
    table: str
    formula: str
    family: str = "gaussian"
    ours: str = ""
    theirs: str = ""
    glmer: bool = False
    tmb: str = ""


CASES = (
    Case("shares", "counts", "yes ~ x + z + (1 | g)", "binomial", glmer=True),
    Case("counts", "counts", "count ~ x + z + (1 | g)", "poisson", glmer=True),
    Case("shares, crossed", "few", "yes ~ x + z + (1 | g) + (1 | h)", "binomial", glmer=True),
    Case("counts, a slope", "few", "count ~ x + z + (x | g)", "poisson", glmer=True),
    Case("counts, overdispersed", "few", "many ~ x + z + (1 | g)", "negative-binomial"),
    Case("counts with more zeros", "few", "some ~ x + z + (1 | g)", "zero-inflated-poisson", "", "ziformula = ~ 1"),
    Case("residual variances by stratum", "few", "y ~ x + (1 | g)", ours="residual_by=s", theirs="dispformula = ~ s"),
    Case(
        "autoregressive residuals",
        "series",
        "y ~ x + (1 | g)",
        ours="series=g time=t",
        theirs="dispformula = ~ 0",
        tmb="y ~ x + (1 | g) + ar1(0 + factor(t) | g)",
    ),
)
QUICK = ("shares, crossed", "residual variances by stratum")

OURS = """
import warnings
warnings.simplefilter("ignore")
import pyarrow as pa, pyarrow.compute, duckdb, narwhals.stable.v2, scipy.optimize
import pyarrow.csv as csv
from discreet import mixed
path, formula, family, settings = sys.argv[1:]
text = {name: pa.string() for name in ("g", "h", "s")}
table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text))
asked = dict(each.split("=") for each in settings.split()) if settings else {}
asked |= {} if family == "gaussian" else {"family": family}
time_, fit = measured(lambda: mixed(formula, table, **asked), 2)
report(**time_, loglik=float(-fit.criterion / 2 if family == "gaussian" else fit.loglik))
"""

READ = r"""
d <- read.csv(arguments[1])
for (name in intersect(names(d), c("g", "h", "s"))) d[[name]] <- factor(d[[name]])
best <- function(run) {
  least <- Inf
  quiet <- function() suppressWarnings(suppressMessages(run()))
  for (i in 1:2) { gc(); found <- clock(quiet); least <- min(least, found$cpu) }
  list(cpu = least, result = found$result)
}
"""

GLMER = (
    READ
    + r"""
quickly <- glmerControl(calc.derivs = FALSE)
found <- best(function() glmer(as.formula(arguments[2]), d, arguments[3], control = quickly))
report(seconds = found$cpu, loglik = as.numeric(logLik(found$result)), version = as.character(packageVersion("lme4")))
"""
)

TMB = (
    READ
    + r"""
more <- eval(parse(text = paste0("list(", arguments[4], ")")))
family <- c(gaussian = "gaussian", binomial = "binomial", poisson = "poisson", nbinom2 = "nbinom2")[[arguments[3]]]
asked <- c(list(as.formula(arguments[2]), d, family = get(family, mode = "function")()), more)
found <- best(function() do.call(glmmTMB, c(asked, list(REML = arguments[3] == "gaussian"))))
version <- as.character(packageVersion("glmmTMB"))
report(seconds = found$cpu, loglik = as.numeric(logLik(found$result)), version = version)
"""
)


def compare(*, quick: bool) -> Comparison:
    """Every case beside everybody who fits it."""
    rows = [row for case in CASES if not quick or case.name in QUICK for row in beside_others(case)]
    return Comparison((*rows, julia()))


def beside_others(case: Case) -> list[Row]:
    """One model beside glmer, where it has it, and glmmTMB."""
    path = data.kept(data.HOME / f"families-{case.table}.csv", partial(_write, case.table))
    ours = peers.ours(OURS, path, case.formula, case.family, case.ours)
    ours["seconds"] = ours["cpu"]
    theirs = {"zero-inflated-poisson": "poisson", "negative-binomial": "nbinom2"}.get(case.family, case.family)
    formula = case.tmb if "~" in case.tmb else case.formula

    def agree(found: Any) -> Agreement:
        above = (ours["loglik"] - found["loglik"]) / abs(found["loglik"])
        return Agreement(above > -CLOSE, f"log-likelihood {above:+.0e} of its own above")

    job = f"{case.name}, {_rows(case.table):,} rows: {case.formula}"
    why = "Memory is the base of Python with NumPy, SciPy, Arrow and DuckDB"
    rows = []
    if case.glmer:
        glmer = partial(peers.r, GLMER, path, case.formula, case.family, package="lme4")
        rows.append(beside(job, "lme4, glmer", ours, glmer, agree=agree, why=why))
    tmb = partial(peers.r, TMB, path, formula, theirs, case.theirs, package="glmmTMB", seconds=600)
    rows.append(beside(job, "glmmTMB", ours, tmb, agree=agree, why=why))
    return rows


def julia() -> Row:
    """MixedModels.jl, where Julia is; it is in no package index that the bench installs from."""
    job = "REML in Julia"
    if shutil.which("julia") is None:
        why = (
            "Julia is in none of PyPI, npm and this Debian: packages such as juliacall and jill fetch it and "
            "MixedModels.jl from addresses of their own when they are first used"
        )
        return Row(job, "MixedModels.jl", None, None, "not measured", why)
    return Row(job, "MixedModels.jl", None, None, "not measured", "Julia is here, but the bench has no script for it")


def _rows(table: str) -> int:
    return {"counts": ROWS, "few": ROWS // 5, "series": SERIES * PERIODS}[table]


def _write(name: str, path: Any) -> None:
    import pyarrow as pa
    import pyarrow.csv as csv

    csv.write_csv(pa.table(simulated(name)), path)


def simulated(name: str) -> dict[str, Any]:
    """The rows of a case."""
    rng, rows = np.random.default_rng(23), _rows(name)
    if name == "series":
        g, t = np.repeat(np.arange(SERIES), PERIODS), np.tile(np.arange(1, PERIODS + 1), SERIES)
        noise = rng.normal(size=(SERIES, PERIODS))
        for k in range(1, PERIODS):
            noise[:, k] = 0.6 * noise[:, k - 1] + 0.8 * noise[:, k]
        x = rng.normal(size=rows)
        return {"y": 0.5 * x + 0.7 * rng.normal(size=SERIES)[g] + noise.ravel(), "x": x, "g": g, "t": t}
    groups = GROUPS if name == "counts" else GROUPS // 5
    g, h, s = (rng.integers(0, many, rows) for many in (groups, OTHERS, 4))
    x, z = rng.normal(size=rows), rng.normal(size=rows)
    eta = -0.2 + 0.5 * x - 0.3 * z + 0.7 * rng.normal(size=groups)[g]
    if name == "few":
        eta += 0.4 * rng.normal(size=OTHERS)[h] + 0.2 * x * rng.normal(size=groups)[g]
    count = rng.poisson(np.exp(eta))
    return {
        "yes": (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(int),
        "count": count,
        "many": rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, rows)),
        "some": np.where(rng.random(rows) < 0.2, 0, count),
        "y": eta + np.array([0.4, 0.7, 1.0, 1.6])[s] * rng.normal(size=rows),
        "x": x,
        "z": z,
        "g": g,
        "h": h,
        "s": s,
    }
