"""The use of synthetic jobs: what they keep of the data behind a release, in simulation only.

Jobs are simulated, three tables of them are released and a synthetic file is drawn from the release. Then the file is
compared with the jobs behind it, which nobody could do outside a simulation: margins that were released, margins that
were not, and regressions. A release with hardly any noise is shown too: no epsilon restores what the file lacks there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.data.frames import connect
from discreet.data.jobs import Jobs, read_jobs
from discreet.pages.page import Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.release.account import Account
from discreet.release.folder import open_releases
from discreet.simulate import lodes
from discreet.synthetic import Synthetic, synthesize
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

Row: TypeAlias = dict[str, Any]
TITLE = "What synthetic jobs keep of the data"
ALPHA = "0.1"
SHARE, QUICK_SHARE = 0.05, 0.005
EPSILONS, QUICK_EPSILONS = (1, 2, 4, 200), (4, 200)
"""The epsilon of each table; the last has hardly any noise."""

RELEASED = (("county", "sector"), ("sector", "sex", "education"), ("sector", "age"))
NOT_RELEASED = (
    ("county",), ("sector",), ("sector", "sex"), ("sex", "education"),  # sums of what was released
    ("county", "sex"), ("county", "sector", "sex", "education"), ("age", "education"), ("age", "sex"),  # across tables
    ("race",), ("ownership",),  # in no table
)  # fmt: skip
LARGE = 50
"""Jobs of an establishment that counts as large."""

WORDS = """
Three tables are released under employer-employee privacy (alpha {alpha}), each at the epsilon that is shown: jobs by
county and sector, by sector, sex and education, and by sector and age. One synthetic file is drawn from each release.
`apart` is the share of jobs that would have to change their cell to turn the shares of the file into those of the data
(half the sum of absolute differences). At epsilon {most} there is hardly any noise: what is apart there is what the
tables do not say, and no epsilon buys it. A margin with an attribute that no table has is not in the file at all.
"""
MET = """
All are met within their intervals, but where intervals of different tables contradict each other: each holds with a
probability of 95 %, so of many some do not hold. `met by the data` are those that hold. A sector is at odds where no
numbers at all would meet every interval; few numbers then give way, so that the file meets all others there.
"""
SLOPES = """
Least squares on single jobs, with an intercept for each sector. The first model needs only what one released table has
together: noise alone moves it. The second asks how education goes with age, which no table has together: in the file
they are independent given the sector, and the coefficient is near zero whatever the data say. `error` is the standard
error in the data.
"""


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Simulate, release, draw, compare; `quick` does so with fewer jobs and two epsilons."""
    if data is not None:
        raise DataError(
            "The study of synthetic jobs was given data, which a synthetic file must never be compared with.",
            "It simulates its own.",
            "Leave --data out.",
            about="data",
        )
    share, epsilons = (QUICK_SHARE, QUICK_EPSILONS) if quick else (SHARE, EPSILONS)
    met, margins, slopes, sizes = list[Row](), list[Row](), list[Row](), list[Row]()
    with tempfile.TemporaryDirectory(prefix="discreet-synthetic-") as place:
        folder = Path(place)
        progress("simulating jobs", 0.0)
        lodes.write(folder / "lodes", seed=seed, share=share)
        truth = folder / "lodes" / "jobs.parquet"
        jobs = read_jobs(folder / "lodes", validate=False)
        for i, epsilon in enumerate(epsilons):
            progress(f"epsilon {epsilon}", (i + 1) / (len(epsilons) + 1))
            done = drawn(jobs, folder / f"at-{epsilon}", epsilon=epsilon, seed=seed)
            at_odds = contradictions(folder / f"at-{epsilon}" / "release")
            holding = met_by(truth, folder / f"at-{epsilon}" / "release")
            row = {"epsilon": epsilon, **_met(done.margins), "met by the data": holding, "sectors at odds": at_odds}
            met.append(row)
            margins += [
                {"epsilon": epsilon, "margin": " by ".join(by), "kind": kind(by), "apart": apart(truth, done.path, by)}
                for by in (*RELEASED, *NOT_RELEASED)
            ]
            slopes += regressions(truth, done.path, epsilon=epsilon)
            sizes.append({"epsilon": epsilon, "data": large(truth), "synthetic": large(done.path)})
        total = _scalar(f"SELECT count(*) FROM '{truth}'")
    results = {"jobs": total, "met": met, "margins": margins, "regressions": slopes, "large": sizes}
    return Study(name="synthetic", title=TITLE, results=results, page=_page(results, epsilons))


def drawn(jobs: Jobs, folder: Path, *, epsilon: int, seed: int) -> Synthetic:
    """Release all tables of simulated jobs, and draw a synthetic file from the release."""
    unit = Establishments(ALPHA)
    account = Account.open(None, dataset="simulated", unit=unit, budget=Pure(len(RELEASED) * epsilon), seed=seed)
    for number, by in enumerate(RELEASED):
        offer = CountQuery.of(jobs, account, by=by).offer(epsilon=epsilon, scale_share="3/20")
        account.publish(offer, jobs, folder / "release" / f"table-{number}", name=f"table-{number}")
    return synthesize(folder / "release", folder / "jobs-synthetic.parquet", seed=seed)


def contradictions(release: Path) -> int:
    """The sectors in which no numbers of jobs at all meet every interval.

    The tables have only the sector in common. So they can be met together if, in each sector, one number of jobs lies
    between the sums of all lower ends and the sums of all upper ends of each table.
    """
    ends: dict[str, list[tuple[float, float]]] = {}
    for known in open_releases(release):
        for of in known.tables():
            table = of.read()
            sector = np.array(table["sector"].to_pylist())
            lower = np.maximum(np.ceil(table["lower"].to_numpy().astype(float)), 0)
            upper = np.floor(table["upper"].to_numpy().astype(float))
            for name in np.unique(sector):
                ends.setdefault(str(name), []).append((lower[sector == name].sum(), upper[sector == name].sum()))
    return sum(max(low for low, _ in each) > min(high for _, high in each) for each in ends.values())


def met_by(jobs: Path, release: Path) -> int:
    """The released numbers whose intervals hold what a file of jobs has."""
    found = 0
    with connect() as connection:
        for known in open_releases(release):
            for of in known.tables():
                connection.register("published", of.read())
                keys = ", ".join(of.attributes)
                own = f"SELECT {keys}, count(*) AS n FROM '{jobs}' GROUP BY {keys}"
                query = f"SELECT count(*) FROM published LEFT JOIN ({own}) USING ({keys})"
                found += int(connection.sql(f"{query} WHERE coalesce(n, 0) BETWEEN lower AND upper").fetchall()[0][0])
    return found


def kind(by: Sequence[str]) -> str:
    """How a margin stands to what was released."""
    if tuple(by) in RELEASED:
        return "released"
    if any({*by} <= {*table} for table in RELEASED):
        return "sum of a released table"
    known = {name for table in RELEASED for name in table}
    return "across tables" if {*by} <= known else "in no table"


def apart(truth: Path, synthetic: Path, by: Sequence[str]) -> float | None:
    """Half the sum of absolute differences between shares of cells; None where the file lacks an attribute."""
    with connect() as connection:
        columns = connection.read_parquet(str(synthetic)).columns
        if not {*by} <= {*columns}:
            return None
        keys = ", ".join(by)
        shares = (
            f"SELECT {keys}, count(*) / sum(count(*)) OVER () AS share FROM '{path}' GROUP BY {keys}"
            for path in (truth, synthetic)
        )
        one, other = shares
        query = (
            f"SELECT sum(abs(coalesce(a.share, 0) - coalesce(b.share, 0))) / 2 "
            f"FROM ({one}) a FULL JOIN ({other}) b USING ({keys})"
        )
        return float(connection.sql(query).fetchall()[0][0])


def large(path: Path) -> float:
    """The share of jobs in large establishments."""
    sizes = f"SELECT count(*) AS n FROM '{path}' GROUP BY workplace"
    with connect() as connection:
        query = f"SELECT sum(n) FILTER (n >= {LARGE}) / sum(n) FROM ({sizes})"
        return float(connection.sql(query).fetchall()[0][0] or 0)


@dataclass(frozen=True, slots=True)
class AskedSlope:
    """Least squares of a truth of each job on another, with an intercept for each sector."""

    name: str
    response: str
    on: str
    tables: str


REGRESSIONS = (
    AskedSlope("woman, by education", "sex = 'female'", "education = 'bachelor or more'", "released together"),
    AskedSlope("degree, under 22", "education = 'bachelor or more'", "age IN ('14-18', '19-21')", "not together"),
)


def regressions(truth: Path, synthetic: Path, *, epsilon: int) -> list[Row]:
    """Coefficients in the data and in the file."""
    rows = []
    for each in REGRESSIONS:
        (true, error), (found, _) = (slope(path, each) for path in (truth, synthetic))
        row = {"epsilon": epsilon, "model": each.name, "in the tables": each.tables, "data": true, "error": error}
        rows.append(row | {"synthetic": found})
    return rows


def slope(path: Path, asked: AskedSlope) -> tuple[float, float]:
    """The coefficient and its standard error, from the counts of (sector, x, y): both are 0 or 1."""
    query = f"""
        SELECT sector, ({asked.on})::int AS x, ({asked.response})::int AS y, count(*) AS n
        FROM '{path}' GROUP BY ALL ORDER BY ALL
    """
    with connect() as connection:
        sectors, x, y, n = zip(*connection.sql(query).fetchall(), strict=True)
    names = sorted(set(sectors))
    design = np.array([[*(name == one for name in names), at] for one, at in zip(sectors, x, strict=True)], dtype=float)
    return weighted(design, np.array(y, dtype=float), np.array(n, dtype=float))


def weighted(X: Matrix, y: Vector, n: Vector) -> tuple[float, float]:
    """The last coefficient of least squares on rows that stand for n jobs each, and its standard error."""
    gram = X.T @ (X * n[:, None])
    beta = np.linalg.lstsq(gram, X.T @ (n * y), rcond=None)[0]
    residual = float(n @ (y - X @ beta) ** 2 / (n.sum() - X.shape[1]))
    return float(beta[-1]), float(np.sqrt(residual * np.linalg.pinv(gram)[-1, -1]))


def _met(margins: Sequence[Mapping[str, Any]]) -> Row:
    total = {key: sum(int(margin[key]) for margin in margins) for key in ("sums", "met", "without interval")}
    return {"numbers with an interval": total["sums"], "met": total["met"], "without": total["without interval"]}


def _scalar(query: str) -> int:
    with connect() as connection:
        return int(connection.sql(query).fetchall()[0][0])


def _page(results: Mapping[str, Any], epsilons: Sequence[int]) -> Page:
    by_margin: dict[str, Row] = {}
    for row in results["margins"]:
        named = by_margin.setdefault(row["margin"], {"margin": row["margin"], "kind": row["kind"]})
        named[f"apart at {row['epsilon']}"] = row["apart"]
    return Page(
        TITLE,
        [
            Prose(f"{results['jobs']:,} simulated jobs. Nothing here is about anybody's data."),
            Prose(WORDS.format(alpha=ALPHA, most=max(epsilons))),
            Heading("Released numbers"),
            Prose(MET),
            Table.of(results["met"], "Released numbers that the file meets within their intervals.", "met"),
            Heading("Margins"),
            Table.of(by_margin.values(), "How far shares of cells of the file are from the data's.", "margins"),
            Heading("Regressions"),
            Prose(SLOPES),
            Table.of(results["regressions"], "Coefficients in the data and in the file.", "regressions"),
            Heading("Establishments"),
            Prose("Sizes of establishments follow a declared shape, and the noisy largest one where it was released."),
            Table.of(results["large"], f"Share of jobs in establishments of {LARGE} and more.", "large"),
        ],
    )
