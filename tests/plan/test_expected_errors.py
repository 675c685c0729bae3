"""`check` tells how far off a plan of each kind will be, and on simulated data it is: within 15 %.

A plan is checked, read and drawn as `run` does it, from a seeded source and without a ledger, many times over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.models.bayes.conjugate import UNIT_INFORMATION, Parts
from discreet.noise.source import SeededSource
from discreet.plan.check import ReleaseCheck, check
from discreet.plan.confidential import Confidential
from discreet.plan.reading import read_plan
from discreet.plan.shape import AnyRelease
from discreet.release.payer import Payer

WITHIN = 0.15
ROWS, GROUPS, SLOPE = 6_000, 50, 2.0
HEAD = """
[data]
source = "data.parquet"
{data}
[unit]
{unit}
[budget]
epsilon = 40
ledger = "ledger.db"
dataset = "line"
[output]
folder = "out"
[[release]]
name = "one"
"""
OF_ROWS = HEAD.format(data='public = ["z", "g"]', unit='kind = "rows"\nlower = -10\nupper = 10\nresponse = "y"')
OF_JOBS = HEAD.format(
    data='workplaces = "places.parquet"\n[data.schema]\nworkplace_attributes = ["place", "half"]\n'
    'worker_attributes = { sex = ["f", "m"] }\nmagnitudes = { pay = { cap = 100 } }',
    unit='kind = "establishments"\nalpha = 0.1',
)
OF_HISTORIES = HEAD.format(
    data='workplaces = "places.parquet"\nquarters = ["q1", "q2", "q3"]\n[data.schema]\n'
    'workplace_attributes = ["place", "half"]\nworker_attributes = {}',
    unit='kind = "establishments"\nalpha = 0.1',
)
SUMMARY = 'kind = "posterior"\nformula = "y ~ x"\ncoefficient = ["x"]\n'
PLANS = {
    "count": OF_JOBS + 'kind = "count"\nby = ["place"]\nepsilon = 2\n',
    "counts": OF_JOBS + 'kind = "counts"\ntables = [["place"], ["half"]]\nsplit = ["3/4", "1/4"]\nepsilon = 4\n',
    "sum": OF_JOBS + 'kind = "sum"\nof = "pay"\nby = ["place"]\nepsilon = 2\n',
    "sums": OF_JOBS + 'kind = "sums"\nof = "pay"\ntables = [["place"], ["half"]]\nepsilon = 4\n',
    "flows": OF_HISTORIES + 'kind = "flows"\nquarter = "q2"\nby = ["place"]\nepsilon = 2\n',
    "changes": OF_HISTORIES + 'kind = "changes"\nquarters = ["q1", "q2"]\nby = ["place"]\nepsilon = 2\n',
    "model": OF_ROWS + 'kind = "model"\nformula = "y ~ z + (1 | g)"\nepsilon = 8\n',
    "probability": OF_ROWS + SUMMARY + 'summary = "probability"\nat = [2]\nepsilon = 2\n',
    "quantile": OF_ROWS + SUMMARY + 'summary = "quantile"\nat = [0.5]\npartitions = 60\nepsilon = 10\n',
    "interval": OF_ROWS + SUMMARY + 'summary = "interval"\nat = [0.9]\npartitions = 60\nepsilon = 10\n',
}


def written(folder: Path, kind: str, **data: Any) -> ReleaseCheck:
    """The release of a plan of this kind about these data, as `check` finds it."""
    pq.write_table(pa.table(data), folder / "data.parquet")
    (folder / "plan.toml").write_text(PLANS[kind])
    found = check(read_plan(folder / "plan.toml"))
    found.refuse()
    return found.releases[0]


def drawn(folder: Path, known: ReleaseCheck, source: SeededSource) -> Any:
    """What a run would publish."""
    offer = known.offer or known.request.offer(Confidential(read_plan(folder / "plan.toml").sources[0]))
    ready = offer.at(None)
    return ready.draw(ready.read(None), source)


def line(rng: np.random.Generator) -> dict[str, Any]:
    x = rng.normal(size=ROWS)
    return {"x": x, "y": 1 + SLOPE * x + rng.normal(size=ROWS), "z": x, "g": ["a", "b"] * (ROWS // 2)}


def of_all_rows(data: dict[str, Any]) -> tuple[float, float]:
    """The median and the standard deviation of the slope's posterior."""
    rows = np.column_stack([np.ones(ROWS), data["x"], data["y"]])
    posterior = UNIT_INFORMATION.posterior(Parts.of(rows[None], np.array([ROWS])), np.array([1]))
    low, median, high = (float(posterior.quantile(np.array([q]))[0, 0]) for q in (0.1586553, 0.5, 0.8413447))
    return median, (high - low) / 2


def summaries(folder: Path, kind: str, sets: int) -> Iterator[tuple[float, float]]:
    """Expected and observed errors: of a probability at the posterior's median, or in posterior deviations."""
    rng, source = np.random.default_rng(4), SeededSource(5)
    for _ in range(sets):
        data = line(rng)
        median, deviation = of_all_rows(data)
        if kind == "probability":  # asked about at 2, which is then the median
            data["y"] = data["y"] - (median - 2) * data["x"]
        known = written(folder, kind, **data)
        [told] = known.expected.answers
        answer = drawn(folder, known, source).to_arrow()["answer"][0].as_py()
        away = abs(answer - 0.5) if kind == "probability" else abs(answer - median) / deviation
        assert not told.at_least
        yield told.error, away


@pytest.mark.parametrize(
    ("kind", "sets"),
    [
        *((kind, 60) for kind in ("probability", "quantile", "interval")),
        *(pytest.param(kind, 400, marks=pytest.mark.full_size) for kind in ("probability", "quantile", "interval")),
    ],
)
def test_summaries_are_as_far_off_as_expected(
    tmp_path: Path, kind: str, sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = np.random.default_rng(9)
    monkeypatch.setattr(Payer, "partition_seed", property(lambda payer: seeds))  # the parts of a plan are random
    expected, observed = np.array(list(summaries(tmp_path, kind, sets))).T
    assert observed.mean() == pytest.approx(expected.mean(), rel=WITHIN)


@pytest.mark.parametrize("sets", [25, pytest.param(400, marks=pytest.mark.full_size)])
def test_models_are_as_far_off_as_expected(tmp_path: Path, sets: int) -> None:
    """Residuals and effects have the sizes that `check` assumes: 5 % and 1 % of the range."""
    rng, source = np.random.default_rng(6), SeededSource(7)
    size = np.array([40, 100, 200])[np.arange(GROUPS) % 3]
    g, z = np.repeat(np.arange(GROUPS), size), rng.normal(size=size.sum()).round(2)
    fixed, effects = [], []
    for _ in range(sets):
        u = rng.normal(0, 0.2, GROUPS)
        y = 1 + 0.5 * z + u[g] + rng.normal(0, 1, len(g))
        known = written(tmp_path, "model", z=z, g=[f"g{i:02}" for i in g], y=y, x=z)
        fit = drawn(tmp_path, known, source)
        fixed.append((np.array([fit.fixed["(Intercept)"], fit.fixed["z"]]) - [1, 0.5]) / known.expected.error)
        told = {each.rows: each.error for each in known.expected.groups}
        effects += [(fit.random[0].values[i] - u[i]) / told[n] for i, n in enumerate(size.tolist())]
    assert len(told) == 3
    assert np.sqrt(np.mean(np.square(fixed))) == pytest.approx(1, rel=WITHIN)
    assert np.sqrt(np.mean(np.square(effects))) == pytest.approx(1, rel=WITHIN)


def test_the_plans_have_every_kind_of_release() -> None:
    known = {get_args(each.model_fields["kind"].annotation)[0] for each in get_args(get_args(AnyRelease)[0])}
    assert {re.findall(r'kind = "(\w+)"', text)[-1] for text in PLANS.values()} == known


def jobs(kind: str, place: Any) -> dict[str, Any]:
    """Every job of these workplaces, in one quarter or in three, in which nobody comes or goes."""
    times = 3 if kind in ("flows", "changes") else 1
    there = {"workplace": np.tile(place, times), "worker": np.tile(np.arange(len(place)), times)}
    if times == 3:
        return there | {"quarter": np.repeat(["q1", "q2", "q3"], len(place))}
    return there | {"sex": np.where(there["worker"] % 2, "f", "m"), "pay": np.full(len(place), 100)}


@pytest.mark.parametrize("kind", ["flows", "changes"])
def test_movements_are_as_far_off_as_expected(tmp_path: Path, kind: str) -> None:
    cells, workers = 400, 10
    places = {"workplace": np.arange(cells), "place": np.arange(cells), "half": np.arange(cells) % 2}
    pq.write_table(pa.table(places), tmp_path / "places.parquet")
    known = written(tmp_path, kind, **jobs(kind, np.repeat(np.arange(cells), workers)))
    found = [drawn(tmp_path, known, SeededSource(seed)) for seed in (1, 2, 3)]
    truth = {"employment": workers, "beginning": workers, "end": workers, "earlier": workers, "later": workers}
    for name, by_size in known.expected.errors.items():
        numbers = [each.values for release in found for each in release.statistics() if each.name == name]
        off = np.abs(np.concatenate(numbers) - truth.get(name, 0)).mean()
        assert off == pytest.approx(by_size[workers], rel=WITHIN), name


@pytest.mark.parametrize("kind", ["count", "counts", "sum", "sums"])
def test_tables_are_as_far_off_as_expected(tmp_path: Path, kind: str) -> None:
    """A cell is one establishment of ten workers; the halves have many such."""
    cells, workers = 400, 10
    place = np.repeat(np.arange(cells), workers)
    places = {"workplace": np.arange(cells), "place": np.arange(cells), "half": np.arange(cells) % 2}
    pq.write_table(pa.table(places), tmp_path / "places.parquet")
    known = written(tmp_path, kind, **jobs(kind, place))
    size = workers if kind.startswith("count") else 100 * workers
    tables = [drawn(tmp_path, known, SeededSource(seed))[0].counts for seed in (1, 2)]
    observed = np.abs(np.concatenate(tables) - size).mean()
    assert observed == pytest.approx(known.tables[0].errors.error[size], rel=WITHIN)


@pytest.mark.parametrize("kind", PLANS)
def test_check_prints_an_expected_error_and_reads_nothing_confidential(
    tmp_path: Path, command, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other responses, and other values of all columns that are not public, change not a letter of it."""
    rng, said = np.random.default_rng(8), []
    places = {"workplace": np.arange(8), "place": np.arange(8), "half": np.arange(8) % 2}
    pq.write_table(pa.table(places), tmp_path / "places.parquet")
    z, g = rng.normal(size=ROWS), [f"g{i}" for i in rng.integers(0, 20, ROWS)]
    for times in (1, -3):
        if "establishments" in PLANS[kind]:
            data: dict[str, Any] = jobs(kind, np.repeat(np.arange(8), 4 + times))
        else:
            data = {"x": times * rng.normal(size=ROWS), "y": times * rng.uniform(size=ROWS), "z": z, "g": g}
        written(tmp_path, kind, **data)
        code, out, err = command("check", tmp_path / "plan.toml")
        assert code == 0, err
        assert "xpected error" in out or "xpected standard errors" in out
        said.append(out)
    assert said[0] == said[1]
