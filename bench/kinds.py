"""Error at equal privacy of counts by kinds of workers: eight counts of the same establishments under one epsilon.

Both definitions of Haney et al. (2017) let an establishment gain a share alpha of its workers, the strong one of any
kinds, the weak one at most that share of every set of kinds. In either case the eight counts move by that share of the
size in sum, so a peer keeps the promise as in `bench.accuracy`: it counts at most theta jobs of an establishment and
states the sensitivity of theta. Jobs beyond theta are left out in proportion to the kinds, which is in the peer's
favour. OpenDP draws its noise on the very cells. Ours are the defaults, and `weak-joint` by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench import data, peers
from bench.comparison import Accuracy, Agreement
from discreet.arrays import Integers, Matrix

ALPHA, EPSILON = 0.1, 4
KINDS = ("sex", "education")
RELEASES = (("strong", "default"), ("weak", "default"), ("weak", "weak-joint"))
THETAS = 24
LEVEL = 0.95  # of our intervals, as they come

OURS = """
import duckdb
import discreet as dc
from discreet.data.schema import LODES
jobs, alpha, epsilon, strength, mechanism = sys.argv[1:]
session = dc.Session(dc.read_jobs(jobs, schema=LODES, validate=False), unit=dc.Establishments(alpha, strength),
                     budget=epsilon)
by = ["place", "sector", "ownership", "sex", "education"]
asked = {} if mechanism == "default" else {"mechanism": mechanism}
query = session.count(by=by)
release = query.release(epsilon=epsilon, **asked)
found = release.to_arrow()
names = ", ".join(by)
[(error, covered)] = duckdb.sql(f'''
    SELECT avg(abs(found.count - coalesce(known, 0))),
           avg((coalesce(known, 0) BETWEEN found.lower AND found.upper)::INT) FROM found LEFT JOIN
    (SELECT {names}, count(*) AS known FROM '{jobs}/jobs.parquet' GROUP BY ALL) USING ({names})''').fetchall()
report(error=error, covered=covered, mechanism=query.prepare(epsilon=epsilon, **asked).mechanism.name)
"""


def rows(folder: str, opendp: str) -> Iterator[Accuracy]:
    """Every definition of ours beside every way of the peers'; `opendp` is the script that draws their noise."""
    cell, firms = establishments(folder)
    true = summed(cell, firms)
    theta = best(cell, firms, true)
    ways = (
        (1, true, "as they come: noise for one row", "one job. Not this promise"),
        (stated(theta), summed(cell, truncated(firms, theta)), kept(theta), "the same"),
    )
    path = data.HOME / "kinds-counted.npy"
    np.save(path, np.stack([true, *(counted for _, counted, _, _ in ways)]).reshape(len(ways) + 1, -1))
    expected = [geometric(true - counted, sensitivity) for sensitivity, counted, _, _ in ways]
    drawn: list[float | None] = [None] * len(ways)
    try:
        found = peers.OPENDP.measure(opendp, path, EPSILON, 1, *(sensitivity for sensitivity, *_ in ways))
        drawn = found["errors"]
        said = [
            Agreement(bool(ok and abs(a / b - 1) < 10 / np.sqrt(true.size)), f"{a:.4g}, in closed form {b:.4g}")
            for a, b, ok in zip(found["errors"], expected, found["kept"], strict=True)
        ]
    except peers.Missing as reason:
        said = [Agreement(True, f"not drawn: {reason}")] * len(ways)
    for strength, mechanism in RELEASES:
        ours = peers.ours(OURS, folder, ALPHA, EPSILON, strength, mechanism)
        promise = f"{strength}, alpha {ALPHA}, epsilon {EPSILON}, 8 kinds, {ours['mechanism']}"
        for (_, _, way, protects), error, drew in zip(ways, drawn, said, strict=True):
            words = f"{drew.said}; ours {ours['error']:.4g}, its intervals cover {100 * ours['covered']:.0f} %"
            right = ours["covered"] > LEVEL - 5 * np.sqrt(LEVEL * (1 - LEVEL) / true.size)
            yield Accuracy(
                promise,
                f"OpenDP, Tumult Analytics: {way}",
                error and error / ours["error"],
                protects,
                words,
                drew.ok and right,
            )


def kept(theta: int) -> str:
    return f"at most theta jobs of an establishment, sensitivity {stated(theta):,}, best theta in hindsight ({theta:,})"


def establishments(folder: str) -> tuple[Integers, Integers]:
    """Of every establishment: its cell of workload 1 as a code, and its jobs of each kind."""
    import duckdb

    by, kinds = ", ".join(data.PLACES), ", ".join(KINDS)
    found = duckdb.sql(f"""
        WITH kinds AS (SELECT {kinds}, row_number() OVER (ORDER BY {kinds}) - 1 AS kind
                       FROM (SELECT DISTINCT {kinds} FROM '{folder}/jobs.parquet'))
        SELECT dense_rank() OVER (ORDER BY {by}) - 1 AS cell, dense_rank() OVER (ORDER BY workplace) - 1 AS firm,
               kind, count(*) AS n
        FROM '{folder}/jobs.parquet' JOIN kinds USING ({kinds}) GROUP BY workplace, kind, {by}""").fetchnumpy()
    firms = np.zeros((int(found["firm"].max()) + 1, int(found["kind"].max()) + 1), dtype=np.int64)
    firms[found["firm"].astype(np.int64), found["kind"].astype(np.int64)] = found["n"]
    cell = np.zeros(len(firms), dtype=np.int64)
    cell[found["firm"].astype(np.int64)] = found["cell"]
    return cell, firms


def summed(cell: Integers, firms: Integers) -> Integers:
    """Counts by cell and kind."""
    found = np.zeros((int(cell.max()) + 1, firms.shape[1]), dtype=np.int64)
    np.add.at(found, cell, firms)
    return found


def truncated(firms: Integers, theta: int) -> Integers:
    """At most theta jobs of each establishment, of its kinds in proportion."""
    size = np.maximum(firms.sum(axis=1, keepdims=True), 1)
    ends = np.cumsum(firms, axis=1) * np.minimum(size, theta) // size
    return np.asarray(np.diff(ends, axis=1, prepend=0))


def stated(theta: int) -> int:
    """By how many jobs, over all kinds, a truncated establishment can move: whole jobs, at least one."""
    return max(1, int(ALPHA / (1 + ALPHA) * theta + 1e-9))


def best(cell: Integers, firms: Integers, true: Integers) -> int:
    """The theta with the least mean error."""
    most = int(firms.sum(axis=1).max())
    thetas = np.unique(np.geomspace(1, most, THETAS).astype(np.int64)).tolist()
    return int(min(thetas, key=lambda theta: geometric(true - summed(cell, truncated(firms, theta)), stated(theta))))


def geometric(moved: Integers | Matrix, sensitivity: int) -> float:
    """Mean absolute error of geometric noise at loss EPSILON on counts that were moved down before."""
    p = np.exp(-EPSILON / sensitivity)
    return float(np.mean(moved + 2 * p ** (moved + 1.0) / (1 - p**2)))
