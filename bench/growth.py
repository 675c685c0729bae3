"""How time and memory grow with the size of every job, with fitted exponents: 1 means twice the rows, twice the time.

Each point is the least of three fresh processes, or one that takes longer than 20 seconds; seconds are of the
processor, all threads together, which is what a cluster bills. Exponents are least-squares slopes of logarithms over
the upper half of the sizes, where what a call costs whatever its size no longer counts; where rows grow, more than 1.1
is a failure. Jobs run in DuckDB within 8 GiB, spilling allowed, up to 150 million; `bench.cluster` has the same plan on
Spark. A hash table that outgrows the cache costs more per row, whoever fills it, so releases of jobs stand beside the
bare query in SQL on the same engine: an exponent above 1.1 fails only where it is more than 0.05 above the query's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import cluster, data, engine, exceptions, national, peers
from bench.comparison import Comparison
from discreet.simulate import histories

PROCESSES, LONG = 3, 20.0
"""Fresh processes for a point; after one that took so many seconds, no other: its own noise is small by then."""

STEEPEST = 1.1  # exponent of time where rows grow
BESIDE = 0.05  # what it may have more than the bare query's: a ratio that grows by 1.15 while sizes grow 15 times
LIMIT = "6GB"  # of DuckDB; the process has 8 GiB
HIERARCHY = ("naics6+county+ownership", "naics4+county", "naics2+county+ownership", "naics2+state")
FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"

RELEASE = """
import discreet as dc
from discreet.data import engines
from discreet.data.schema import LODES
folder, limit, scratch, *more = sys.argv[1:]
engine = engines.open("duckdb", memory_limit=limit, temp_directory=scratch)
checked, jobs = measured(lambda: dc.read_jobs(folder, schema=LODES, engine=engine, validate=not more))
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=10)
query = session.count(by=["place", "sector", "ownership", *more])
time_, release = measured(lambda: query.release(epsilon=2), 2)
report(**time_, cells=release.counts.size, check=checked["cpu"], check_clock=checked["seconds"])
"""

BARE = (
    engine.BY_HAND
    + """
import duckdb
folder, limit, scratch, *more = sys.argv[1:]
connection = duckdb.connect(config={"memory_limit": limit, "temp_directory": scratch})
plan = sql(folder, more)
time_, _ = measured(lambda: connection.sql(plan).to_arrow_table(), 2)
report(**time_)
"""
)

MIXED = """
from discreet.models.linear import mixed
formula, path = sys.argv[1:]
time_, fit = measured(lambda: mixed(formula, path), 2)
report(**time_, rows=fit.rows)
"""

AUDIT = """
import discreet as dc
from discreet.models.bayes.blmm import bayes_mixed
formula, path = sys.argv[1:]
model = bayes_mixed(formula, path)
time_, audit = measured(lambda: dc.audit_posterior(model, rows="all"))
report(**time_, rows=model.fit.rows)
"""

COUNTIES = """
import numpy as np
from discreet.models.bayes.blmm import bayes_mixed
from discreet.models.linear import mixed
counties, rows = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
g, x = rng.integers(counties, size=rows), rng.normal(size=rows)
table = {"y": x + rng.normal(size=counties)[g] + rng.normal(size=rows), "x": x, "g": g}
time_, fit = measured(lambda: mixed("y ~ x + (1 | g)", table), 2)
exact, model = measured(lambda: bayes_mixed("y ~ x + (1 | g)", table))
report(**time_, posterior=exact["cpu"])
"""

CELLS = """
import numpy as np, pyarrow as pa
import discreet as dc
cells = int(sys.argv[1])
rng = np.random.default_rng(0)
table = pa.table({"workplace": np.arange(cells), "place": rng.permutation(cells), "size": 1 + rng.poisson(20, cells)})
schema = dc.Schema(workplace_attributes=["place"], worker_attributes={}, size="size")
session = dc.Session(dc.read_jobs(table, schema=schema), unit=dc.Establishments("0.1"), budget=100)
query = session.count(by=["place"])
time_, release = measured(lambda: query.release(epsilon=2), 3)
report(**time_)
"""

BLOCKS = """
from discreet.models.linear import fit_blocks
formula, path, blocks = sys.argv[1:]
time_, fits = measured(lambda: fit_blocks(formula, path, blocks=int(blocks), seed=1))
report(**time_)
"""

AREAS = """
import numpy as np
from discreet.roc.curve import partial_auc
rows = int(sys.argv[1])
rng = np.random.default_rng(0)
positive = rng.random(rows) < 0.1
score = rng.normal(size=rows) + positive
time_, _ = measured(lambda: partial_auc(positive, score), 3)
report(**time_)
"""

QUANTILES = """
import numpy as np
from discreet.changes.quantile import quantile_regression
rows = int(sys.argv[1])
rng = np.random.default_rng(0)
X = np.column_stack([np.ones(rows), rng.normal(size=(rows, 5))])
y = X.sum(axis=1) + rng.standard_t(3, size=rows)
time_, _ = measured(lambda: quantile_regression(X, y, [0.95]), 2)
report(**time_)
"""

ADDED_UP = """
import discreet as dc
folder, of = sys.argv[1:]
jobs = dc.read_jobs(folder, validate=False)
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=100)
tables = [list(by.split("+")) for by in TABLES]
workload = session.marginals(*tables, measure=[tables[0], tables[2], tables[3]], of=of or None, establishments=True)
time_, release = measured(lambda: workload.release(epsilon=2, add_up=True))
report(**time_, cells=sum(len(each.counts) for each in release))
""".replace("TABLES", repr(HIERARCHY))

FLOWS = """
import discreet as dc
folder, *quarters = sys.argv[1:]
table = dc.read_histories(f"{folder}/job.parquet", quarters=quarters, workplaces=f"{folder}/workplace.parquet",
                          schema=dc.Schema(["state", "county", "industry"], {}), validate=False)
session = dc.Session(table, unit=dc.Establishments("0.1"), budget=100)
time_, release = measured(lambda: session.flows(quarters[1:-1], ["county", "industry"]).release(epsilon=4))
report(**time_)
"""

REPORTS = """
import discreet as dc
time_, found = measured(lambda: dc.exception_report(sys.argv[1], capacity=200))
report(**time_)
"""

TERMS = """
import numpy as np
from discreet.models.linear import mixed
rows = int(sys.argv[1])
rng = np.random.default_rng(0)
g, h, x = rng.integers(rows // 50, size=rows), rng.integers(100, size=rows), rng.normal(size=rows)
y = x * (1 + 0.3 * rng.normal(size=rows // 50)[g]) + rng.normal(size=rows // 50)[g] + rng.normal(size=100)[h]
table = {"y": y + rng.normal(size=rows), "x": x, "g": g.astype(str), "h": h.astype(str)}
time_, fit = measured(lambda: mixed("y ~ x + (x | g) + (1 | h)", table))
report(**time_)
"""


@dataclass(frozen=True)
class Curve:
    """Processor seconds and MiB of one job at growing sizes.

    Attributes
    ----------
    job, by : what was done, and what grew.
    sizes, seconds, mib : one point each.
    clock : seconds by the clock, for the record.
    bare : processor seconds of the bare query at the same sizes, where there is one.
    counts : how many counts the largest release had.
    rows : whether rows grew, so that the exponent of time is to stay at or below STEEPEST.
    """

    job: str
    by: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    mib: tuple[float, ...]
    clock: tuple[float, ...]
    rows: bool = True
    counts: int = 0
    bare: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "by": self.by,
            "sizes": [round(size) for size in self.sizes],
            "seconds": list(self.seconds),
            "mib": list(self.mib),
            "clock": list(self.clock),
            "rows": self.rows,
            "counts": self.counts,
            "exponent": exponent(self.sizes, self.seconds),
            "exponent of memory": exponent(self.sizes, self.mib),
            **({"bare": list(self.bare), "exponent of bare": exponent(self.sizes, self.bare)} if self.bare else {}),
        }


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of log value on log size over the upper half of the sizes, three of them where there are three."""
    order = np.argsort(sizes)
    upper = order[max(0, min(len(order) // 2, len(order) - 3)) :]
    x, y = np.log(np.asarray(sizes, float)[upper]), np.log(np.asarray(values, float)[upper])
    return float(np.polyfit(x, y, 1)[0])


def measured(
    job: str,
    by: str,
    points: Sequence[tuple[float, str, tuple[object, ...]]],
    *,
    rows: bool,
    also: Mapping[str, str],
    bare: str = "",
) -> list[Curve]:
    """The curve of a job from (size, script, arguments) of its points; `also` names others in the same report.

    `bare` is the script of the bare query, which takes the same arguments.
    """
    found = [(size, quietest(script, arguments, also=tuple(also.values()))) for size, script, arguments in points]
    sizes = tuple(float(point.get("rows", size)) for size, point in found)
    mib = tuple(point["mib"] for _, point in found)
    clock = tuple(point["seconds"] for _, point in found)
    counts, curves = found[-1][1].get("cells", 0), []
    query = tuple(quietest(bare, arguments, also=())["cpu"] for _, _, arguments in points) if bare else ()
    for name, key in {job: "cpu", **also}.items():
        seconds = tuple(point[key] for _, point in found)
        own = (clock, query) if key == "cpu" else ((), ())
        curves.append(Curve(name, by, sizes, seconds, mib, own[0], rows, counts, own[1]))
        print(f"   {name}: {sizes[-1]:,.0f} {by} in {seconds[-1]:.3g} s, {mib[-1]:,.0f} MiB", flush=True)
    return curves


def quietest(script: str, arguments: tuple[object, ...], *, also: tuple[str, ...]) -> dict[str, Any]:
    """The least of each figure over fresh processes, for this and other machines are never alone with one job."""
    found = [peers.ours(script, *arguments)]
    while len(found) < PROCESSES and found[-1]["seconds"] < LONG:
        found.append(peers.ours(script, *arguments))
    return {**found[0], **{key: min(point[key] for point in found) for key in ("cpu", "seconds", "mib", *also)}}


def compare(*, quick: bool) -> Comparison:
    """All curves, and the same plan on two engines."""
    spark = cluster.engines(1e5 if quick else 10.9e6)
    found = [curve.to_dict() for curve in curves(quick=quick)]
    return Comparison(facts={"curves": found, "spark": spark}, broken=tuple(steep(found)))


def steep(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    """What grows faster with its rows than it may."""
    return [
        f"{curve['job']} grows with its {curve['by']} to the power {curve['exponent']:.2f}, more than "
        f"{_steepest(curve):.2f}"
        for curve in curves
        if curve["rows"] and curve["exponent"] > _steepest(curve)
    ]


def _steepest(curve: Mapping[str, Any]) -> float:
    """The largest exponent that a curve may have."""
    return max(STEEPEST, float(curve.get("exponent of bare", 0.0)) + BESIDE)


def curves(*, quick: bool) -> list[Curve]:
    """The jobs, smallest sizes first; only the small ones in the quick form."""

    def upto(sizes: Sequence[float], most: float) -> list[float]:
        return [size for size in sizes if not quick or size <= most]

    scratch = data.HOME / "spill"
    scratch.mkdir(parents=True, exist_ok=True)
    shares = upto((0.0042, 0.042, 0.42, 1, 4, 10), 0.042)
    whole = data.rows(0.042 if quick else 1)
    found: list[Curve] = []

    def add(
        job: str,
        by: str,
        sizes: Sequence[float],
        script: str,
        arguments: Any,
        *,
        rows: bool = True,
        bare: str = "",
        **also: str,
    ) -> None:
        points = [(size, script, arguments(size)) for size in sizes]
        named = {key: value for value, key in also.items()}
        found.extend(measured(job, by, points, rows=rows, also=named, bare=bare))

    jobs: tuple[float, ...] = (1e5, 1e6, 1e7, 4e7, 1.5e8)
    add(
        "release of workload 1",
        "jobs",
        upto(jobs, 1e6),
        RELEASE,
        lambda n: (data.jobs(n), LIMIT, scratch),
        bare=BARE,
        check="check of every job",
    )
    wider = ("sex", "education")
    add(
        "release of workload 3",
        "jobs",
        upto(jobs if quick else jobs[1:], 1e6),
        RELEASE,
        lambda n: (data.jobs(n), LIMIT, scratch, *wider),
        bare=BARE,
    )
    if not quick:
        copies = (1, 2, 4, 10)
        add("mixed model, 3,111 counties", "rows", copies, MIXED, lambda copies: (FORMULA, data.longer(copies)))
    add("mixed model, counties in proportion", "rows", shares, MIXED, lambda share: (FORMULA, data.rows(share)))
    audited = [share for share in shares if share <= 1]
    add("posterior audit, every row", "rows", audited, AUDIT, lambda share: (FORMULA, data.rows(share)))
    nations = upto((0.003, 0.01, 0.1, 0.3, 1.0, 3.5), 0.01)  # 3.5: 10 million establishments, 150 million jobs
    for title, of in (("tables that add up", ""), ("sums of payroll that add up", "payroll")):
        sizes = nations if not of else [share for share in nations if share <= 1]
        add(title, "establishments", [3e6 * share for share in sizes], ADDED_UP,
            lambda n, of=of: (national.nation_of(n / 3e6), of))  # fmt: skip
    past = upto((0.01, 0.05, 0.2, 1.0), 0.05)
    add("flows of six quarters", "establishments", [1.6e5 * share for share in past], FLOWS,
        lambda n: (national.histories_of(n / 1.6e5), *histories.quarter_names()))  # fmt: skip
    add(
        "exception report",
        "series",
        upto((1e3, 5e3, 2.5e4, 1e5), 1e3),
        REPORTS,
        lambda n: (exceptions.panel_of(int(n)),),
    )
    add("mixed model, a slope and crossed", "rows", upto((1e4, 1e5, 1e6), 1e5), TERMS, lambda n: (int(n),))
    add("partial area", "rows", upto((1e4, 1e5, 1e6, 1e7), 1e5), AREAS, lambda n: (int(n),))
    add("quantile regression", "rows", upto((1e3, 1e4, 1e5, 1e6), 1e4), QUANTILES, lambda n: (int(n),))
    add("release", "cells", upto((1e2, 1e3, 1e4, 1e5, 1e6, 1e7), 1e5), CELLS, lambda n: (int(n),))
    counties = upto((10, 100, 1e3, 1e4, 1e5), 1e3)
    total = 100_000 if quick else 1_000_000
    add(
        "mixed model",
        "counties",
        counties,
        COUNTIES,
        lambda n: (int(n), total),
        rows=False,
        posterior="exact posterior",
    )
    add("blocks", "blocks", upto((10, 100, 1e3, 1e4), 100), BLOCKS, lambda n: (FORMULA, whole, int(n)), rows=False)
    return found
