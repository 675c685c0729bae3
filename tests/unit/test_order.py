"""No confidential value is read after a charge, by any door: whatever can be wrong with data is found before it costs.

At the instant of the charge the data are destroyed: files are deleted, arrays are overwritten. Every kind of release
must go on as if nothing had happened, to the same numbers from the same seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.ledger import Ledger
from discreet.models.bayes.audited_draw import release_audited_draw
from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.posterior_draw import release_draw
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.linear.private import release_mixed
from discreet.plan.run import run
from discreet.plan.shape import AnyRelease
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow
from discreet.release.account import Account
from discreet.release.canonical import tables_of
from discreet.release.offer import Offer
from walk import EFFECTS, walk

ROWS = 600
MIXED: dict[str, Any] = {"epsilon": 8, "public": ["x", "g", "h"], "bounds": (-10, 10), "seed": 1}
SUMMARY: dict[str, Any] = {"epsilon": 60, "seed": 1, "partitions": 12}
DOORS: dict[str, Callable[[Any], Any]] = {
    "moments": lambda data: release_mixed("y ~ x + (1 | g)", data, **MIXED),
    "moments with lags": lambda data: release_mixed(
        "y ~ x + lag(y, 1) + (1 | g)", data, **{**MIXED, "public": ["x", "g", "t"]}, series=["g"], time="t"
    ),
    "slopes and crossed factors": lambda data: release_mixed("y ~ x + (x | g) + (1 | h)", data, **MIXED),
    "shares": lambda data: release_mixed("b ~ x + (1 | g)", data, family="binomial", **{**MIXED, "bounds": (0, 1)}),
    "rare events": lambda data: release_mixed("n ~ x + (1 | g)", data, family="poisson", **{**MIXED, "bounds": (0, 9)}),
    "groups of rows": lambda data: of_groups(data),  # noqa: PLW0108 - it stands below
    "moments without groups": lambda data: release_mixed("y ~ x", data, **MIXED),
    "strict": lambda data: release_mixed("y ~ x + (1 | g)", data, method="strict", blocks=10, **MIXED),
    "paper": lambda data: release_mixed("y ~ x + (1 | g)", data, method="paper", blocks=10, **MIXED),
    "posterior draw": lambda data: release_draw(
        "y ~ x + (1 | g)", data, variances={"Residual": 1, "g": 1}, sd=3, public=["x", "g"], bounds=(-10, 10), seed=1
    ),
    "audited draw": lambda data: release_audited_draw(
        "y ~ x + (1 | g)", data, prior={"V": 1, "sd": 3}, audited=4, public=["x", "g"], bounds=(-10, 10), seed=1
    ),
    "probability": lambda data: posterior_probability("y ~ x", data, "x", at=2.0, **SUMMARY).value,
    "quantile": lambda data: posterior_quantile("y ~ x", data, "x", probability=0.5, **SUMMARY).value,
    "interval": lambda data: posterior_interval("y ~ x", data, "x", level=0.9, **SUMMARY).value,
    "objective perturbation": lambda data: (
        objective_perturbation("y ~ x", data, bounds=(-10, 10), norm=4, penalty=50.0, epsilon=2, seed=1).value
    ),
}


def of_groups(data: Any) -> Any:
    unit = dc.Groups("h", -10, 10, "y")
    account = Account.open(None, dataset="d", unit=unit, budget=Pure(8), seed=1)
    return release_mixed("y ~ x + (1 | g)", data, account=account, **{**MIXED, "seed": None})


TABLES: dict[str, Callable[[dc.Session], Any]] = {
    "table": lambda session: session.count(by=["place", "sex"]).release(epsilon=2),
    "table and sizes": lambda session: session.count(by=["place"]).release(epsilon=2, scale_share="0.1"),
    "sum": lambda session: session.sum("pay", by=["place"]).release(epsilon=2),
    "mean": lambda session: session.mean("pay", by=["place"]).release(epsilon=4).sums,
    "workload": lambda session: session.marginals(["place", "sex"], ["place"]).release(epsilon=4, add_up=True),
}


def line() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=ROWS).round(3)
    return {
        "x": x,
        "g": np.arange(ROWS) % 8,
        "h": np.arange(ROWS) // 8 % 5,
        "t": np.arange(ROWS) // 8,
        "y": np.clip(1 + 2 * x + rng.normal(size=ROWS), -10, 10),
        "b": (rng.uniform(size=ROWS) < 0.4).astype(float),
        "n": np.minimum(rng.poisson(2, size=ROWS), 9).astype(float),
    }


def numbers(released: Any) -> dict[str, Any]:
    return {name: table.to_pylist() for name, table in tables_of(released).items()}


@pytest.fixture
def at_the_charge(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[str]]:
    """Does something right after every charge; gives the names that were charged."""

    def arrange(act: Callable[[], object]) -> list[str]:
        charged: list[str] = []
        own = Ledger.charge

        def charge(self: Ledger, **asked: Any) -> Any:
            entry = own(self, **asked)
            charged.append(str(entry.release))
            act()
            return entry

        monkeypatch.setattr(Ledger, "charge", charge)
        return charged

    return arrange


@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
@pytest.mark.parametrize("form", ["file", "arrays"])
@pytest.mark.parametrize("door", DOORS)
def test_models_and_summaries_read_nothing_after_their_charge(
    door: str, form: str, tmp_path: Path, at_the_charge: Any
) -> None:
    columns, path = line(), tmp_path / "line.parquet"
    pq.write_table(pa.table(columns), path)
    data = path if form == "file" else columns
    before = numbers(DOORS[door](data))

    def destroy() -> None:
        path.unlink(missing_ok=True)
        for column in columns.values():
            column[:] = -7

    charged = at_the_charge(destroy)
    assert numbers(DOORS[door](data)) == before
    assert len(charged) == 1 and not path.exists()


def write_jobs(folder: Path) -> None:
    size = np.arange(12) + 3
    workplace = np.repeat(np.arange(12), size)
    jobs = {"workplace": workplace, "worker": np.arange(len(workplace)), "sex": np.where(workplace % 2, "f", "m")}
    jobs["pay"] = 10 + np.arange(len(workplace)) % 50
    places = {"workplace": np.arange(12), "place": [f"P{i % 4}" for i in range(12)]}
    pq.write_table(pa.table(jobs), folder / "jobs.parquet")
    pq.write_table(pa.table(places), folder / "places.parquet")
    there = [(worker, quarter) for worker in range(len(workplace)) for quarter in (1, 2, 3) if (worker + quarter) % 5]
    worker, quarter = np.array(there).T
    moved = {"worker": worker, "workplace": workplace[worker], "quarter": [f"q{each}" for each in quarter]}
    pq.write_table(pa.table(moved), folder / "moved.parquet")


@pytest.mark.parametrize("door", TABLES)
def test_tables_read_nothing_after_their_charge(door: str, tmp_path: Path, at_the_charge: Any) -> None:
    write_jobs(tmp_path)
    schema = dc.Schema(["place"], {"sex": ["f", "m"]}, magnitudes={"pay": 60})

    def released() -> Any:
        jobs = dc.read_jobs(tmp_path / "jobs.parquet", workplaces=tmp_path / "places.parquet", schema=schema)
        return numbers(TABLES[door](dc.Session(jobs, unit=dc.Establishments(0.1), budget=4, seed=3)))

    before = released()
    charged = at_the_charge(lambda: [path.unlink(missing_ok=True) for path in tmp_path.glob("*.parquet")])
    assert released() == before and len(charged) == 1


HEAD = """
[data]
source = "data/{source}"
{data}
[unit]
{unit}
[budget]
epsilon = 200
ledger = "ledger.db"
dataset = "d"
[output]
folder = "out"
"""
OF_ROWS = HEAD.format(
    source="line.parquet", data='public = ["g"]', unit='kind = "rows"\nlower = -10\nupper = 10\nresponse = "y"'
)
OF_JOBS = HEAD.format(
    source="jobs.parquet",
    data='workplaces = "data/places.parquet"\n[data.schema]\nworkplace_attributes = ["place"]\n'
    'worker_attributes = { sex = ["f", "m"] }\nmagnitudes = { pay = { cap = 60 } }',
    unit='kind = "establishments"\nalpha = 0.1',
)
OF_HISTORIES = HEAD.format(
    source="moved.parquet",
    data='quarters = ["q1", "q2", "q3"]\nworkplaces = "data/places.parquet"\n[data.schema]\n'
    'workplace_attributes = ["place"]\nworker_attributes = {}',
    unit='kind = "establishments"\nalpha = 0.1',
)
SECTION = '[[release]]\nname = "{0}"\nkind = "posterior"\nsummary = "{0}"\nformula = "y ~ x"\ncoefficient = ["x"]\n'
PLANS = {
    "tables": OF_JOBS + '[[release]]\nname = "one"\nkind = "count"\nby = ["place"]\nepsilon = 2\n'
    '[[release]]\nname = "two"\nkind = "counts"\ntables = [["place", "sex"], ["place"]]\nadd_up = true\nepsilon = 4\n'
    '[[release]]\nname = "three"\nkind = "sum"\nof = "pay"\nby = ["place"]\nepsilon = 2\n'
    '[[release]]\nname = "four"\nkind = "sums"\nof = "pay"\ntables = [["place", "sex"], ["place"]]\nepsilon = 4\n',
    "histories": OF_HISTORIES
    + '[[release]]\nname = "flows"\nkind = "flows"\nquarter = "q2"\nby = ["place"]\nepsilon = 4\n'
    '[[release]]\nname = "changes"\nkind = "changes"\nquarters = ["q1", "q2"]\nby = ["place"]\nepsilon = 4\n',
    "rows": OF_ROWS + '[[release]]\nname = "model"\nkind = "model"\nformula = "y ~ 1 + (1 | g)"\nepsilon = 2\n'
    + SECTION.format("probability") + "at = [2]\npartitions = 12\nepsilon = 40\n"
    + SECTION.format("quantile") + "at = [0.5]\npartitions = 12\nepsilon = 60\n"
    + SECTION.format("interval") + "at = [0.9]\npartitions = 12\nepsilon = 60\n",
}  # fmt: skip


def _several(**plans: str) -> str:
    """The tables of each plan as a source, and the releases of all."""
    sources, releases = "", ""
    for name, text in plans.items():
        head, mark, rest = text.replace('dataset = "d"', f'dataset = "{name}"').partition('[output]\nfolder = "out"\n')
        sources += re.sub(r"^\[(\w+)", rf"[source.{name}.\1", head, flags=re.MULTILINE)
        releases += rest.replace("[[release]]\n", f'[[release]]\nsource = "{name}"\n')
    return sources + mark + releases


PLANS["both"] = _several(tables=PLANS["tables"], rows=PLANS["rows"])


def test_the_plans_have_every_kind_of_release() -> None:
    known = {get_args(each.model_fields["kind"].annotation)[0] for each in get_args(get_args(AnyRelease)[0])}
    assert {*re.findall(r'kind = "(\w+)"', "".join(text.partition("[output]")[2] for text in PLANS.values()))} == known


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_reads_nothing_after_its_first_charge(kind: str, tmp_path: Path, at_the_charge: Any) -> None:
    (tmp_path / "data").mkdir()
    write_jobs(tmp_path / "data")
    pq.write_table(pa.table(line()), tmp_path / "data" / "line.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLANS[kind])
    charged = at_the_charge(lambda: [path.unlink(missing_ok=True) for path in (tmp_path / "data").iterdir()])
    outcome = run(plan)
    assert list(outcome.publications) == charged and len(charged) == PLANS[kind].count("[[release]]")
    assert not list((tmp_path / "data").iterdir())


def test_a_door_that_read_later_would_be_noticed(tmp_path: Path, at_the_charge: Any) -> None:
    path = tmp_path / "line.parquet"
    pq.write_table(pa.table({"y": [1]}), path)
    late: Offer[Path, Path, Any] = Offer(
        guarantee=Guarantee(AnyRow(), Pure(1)),
        details={},
        expected=dict,  # type: ignore[arg-type]
        read=lambda data: data,
        draw=lambda data, source: pq.read_table(data),
    )
    at_the_charge(path.unlink)
    with pytest.raises(FileNotFoundError):
        Account.open(None, dataset="d", unit=AnyRow(), budget=Pure(1)).release(late, path)


def test_few_files_stand_between_the_call_and_what_happens() -> None:
    """`tests/walk.py` prints them; data are read before the charge, noise is drawn after it, the hash comes last."""
    walk()  # what runs only the first time
    found = walk()
    assert list(found.ways) == list(EFFECTS)
    through = [{file for file, _ in way} for way in found.ways.values()]
    assert all("release/account.py" in files for files in through[1:5])
    assert len(found.opened()) <= 12, found.opened()
