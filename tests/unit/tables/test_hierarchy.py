"""Declared hierarchies: tables of several levels add up, and what is not drawn is a sum of what is."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data.hierarchy import covers
from discreet.data.jobs import Jobs
from discreet.data.lineage import with_levels
from discreet.data.schema import Schema
from discreet.noise.source import SeededSource
from discreet.tables.derived import sums_of
from discreet.tables.workload import agreed
from discreet.words.errors import DataError, Infeasible
from faults_of import about

INDUSTRY = {"levels": ["naics6", "naics4", "naics2"], "prefix": [6, 4, 2]}
LEVELS = ["naics6", "naics4", "naics2"]
TABLES = (
    ["naics6", "county", "ownership"],
    ["naics4", "county"],
    ["naics2", "state", "ownership"],
    ["naics2", "county"],
    ["state"],
    [],
)
REPEATS = 20
LEVEL = 0.95


@cache
def rows(n: int = 4000) -> dict[str, Any]:
    """One row per establishment; codes have two, four and six digits, counties a state."""
    rng = np.random.default_rng(3)
    code = rng.choice([f"{a}{b}{c}" for a in (11, 23, 52) for b in (11, 23, 41) for c in (10, 21, 30)], n)
    county = rng.integers(0, 24, n)
    return {
        "workplace": np.arange(n),
        "naics6": code,
        "county": np.char.add("c", county.astype(str)),
        "state": np.char.add("s", (county // 6).astype(str)),
        "ownership": rng.choice(["private", "public"], n, p=[0.9, 0.1]),
        "n": np.exp(rng.normal(1.5, 1.4, n)).astype(int),
    }


def schema(**hierarchy: Any) -> Schema:
    given = hierarchy or {"industry": INDUSTRY, "place": ["county", "state"]}
    return Schema(["naics6", "county", "state", "ownership"], {}, size="n", hierarchy=given)


@cache
def jobs() -> Jobs:
    return dc.read_jobs(rows(), schema=schema())


def session(seed: int | None = 1) -> dc.Session:
    return dc.Session(jobs(), unit=dc.Establishments("0.1"), budget=1000, seed=seed)


def truth(by: list[str]) -> dict[tuple[str, ...], int]:
    """Counted in Python, from the rows."""
    columns = rows() | {"naics4": [c[:4] for c in rows()["naics6"]], "naics2": [c[:2] for c in rows()["naics6"]]}
    found: dict[tuple[str, ...], int] = {}
    keys = zip(*(columns[name] for name in by), strict=True) if by else [()] * 4000
    for key, n in zip(keys, columns["n"], strict=True):
        found[tuple(map(str, key))] = found.get(tuple(map(str, key)), 0) + int(n)
    return found


def counted(table: Any) -> dict[tuple[str, ...], int]:
    keys = zip(*(table.keys[name].to_pylist() for name in table.by), strict=True) if table.by else [()]
    return dict(zip(keys, table.counts[:, 0].tolist(), strict=True))


def summed(fine: dict[tuple[str, ...], int], by: list[str]) -> dict[tuple[str, ...], int]:
    """Sums of the finest table, by Python."""
    found: dict[tuple[str, ...], int] = {}
    state = dict(zip(rows()["county"], rows()["state"], strict=True))
    for (code, county, ownership), n in fine.items():
        known = {"naics6": code, "naics4": code[:4], "naics2": code[:2], "county": county, "state": state[county]}
        key = tuple(str((known | {"ownership": ownership})[name]) for name in by)
        found[key] = found.get(key, 0) + n
    return found


def test_a_table_is_a_sum_of_one_with_levels_below() -> None:
    chains = schema().hierarchies
    assert covers(["naics6", "county"], ["state", "naics4"], chains)
    assert not covers(["naics4", "county"], ["naics6"], chains)
    assert not covers(["naics6", "county"], ["ownership"], chains)


@pytest.mark.parametrize("by", TABLES, ids=lambda by: "-".join(by) or "total")
def test_levels_that_are_no_columns_are_counted(by: list[str]) -> None:
    query = session().count(by)
    cells = query.statistics(query.prepare(epsilon=1))
    keys = list(zip(*(cells.keys[name].to_pylist() for name in by), strict=True)) if by else [()]
    assert dict(zip(keys, cells.counts[:, 0].tolist(), strict=True)) == truth(by)


@pytest.mark.parametrize("measure", [None, "finest", [TABLES[0], TABLES[3]]], ids=["all", "finest", "two"])
def test_all_levels_add_up_in_whole_numbers(measure: Any) -> None:
    tables = session().marginals(*TABLES, measure=measure).release(epsilon=6, add_up=True)
    fine = counted(tables[0])
    assert min(fine.values()) >= 0
    for by, table in zip(TABLES, tables, strict=True):
        assert list(table.by) == by
        assert counted(table) == summed(fine, by)
        assert {*counted(table)} == {*truth(by)}


def test_what_is_not_drawn_costs_nothing() -> None:
    """Twelve tables at a total epsilon of 1: refused where each is drawn."""
    many = [*TABLES, *(["naics6", "state"], ["naics4", "state"], ["naics2"], ["county"], ["ownership"], ["naics4"])]
    open_session = session()
    with pytest.raises(Infeasible):
        open_session.marginals(*many).release(epsilon=1)
    tables = open_session.marginals(*many, measure="finest").release(epsilon=1, add_up=True)
    assert len(tables) == 12 and str(open_session.remaining) == "epsilon=999"
    assert all(table.guarantee.loss == tables[0].guarantee.loss for table in tables)


def test_totals_have_no_bias_and_no_table_is_worse_than_its_draws() -> None:
    work, before, after = session().marginals(*TABLES), [], []
    ready = [query.prepare(epsilon=1) for query in work.queries]
    cells = [query.statistics(part) for query, part in zip(work.queries, ready, strict=True)]
    source = SeededSource(5)
    for _ in range(REPEATS):
        raw = [
            query._wrap(part, cell, query.drawn(part, cell, source), level=LEVEL)
            for query, part, cell in zip(work.queries, ready, cells, strict=True)
        ]
        before.append(raw)
        after.append(agreed(work.queries, ready, raw, level=LEVEL))
    error = np.array([tables[0].counts.sum() for tables in after]) - sum(truth([]).values())
    assert abs(error.mean()) <= 3 * error.std(ddof=1) / np.sqrt(REPEATS)
    for i, cell in enumerate(cells):
        off = [np.array([((t[i].counts - cell.counts) ** 2).mean() for t in found]) for found in (before, after)]
        chance = 2 * (off[1] - off[0]).std(ddof=1) / np.sqrt(REPEATS)
        assert off[1].mean() <= off[0].mean() + 0.1 + chance, TABLES[i]
        held = np.mean([((t[i].lower <= cell.counts) & (cell.counts <= t[i].upper)).mean() for t in after])
        assert held >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / (REPEATS * cell.counts.size))


@pytest.mark.parametrize("mechanism", [pytest.param("polynomial", marks=pytest.mark.full_size), "ladder"])
def test_intervals_of_sums_hold_the_truth(mechanism: str) -> None:
    """Chebyshev's: wide, and right for any law. For a fiftieth of the noise they must not be wide enough."""
    query = session().count(TABLES[0])
    ready = query.prepare(epsilon=1, mechanism=mechanism)
    cells, source, held, failed = query.statistics(ready), SeededSource(6), [], []
    for _ in range(REPEATS):
        drawn = query._wrap(ready, cells, query.drawn(ready, cells, source), level=LEVEL)
        for by in TABLES[1:]:
            table = sums_of(drawn, session().count(by), ready.mechanism, bounded=True, level=LEVEL)
            real = truth(by)
            true = np.array([real[tuple(key)] for key in counted(table)])
            held.append(((table.lower[:, 0] <= true) & (true <= table.upper[:, 0])).mean())
            assert np.isfinite(table.upper).all()
            if mechanism == "polynomial":
                less = sums_of(drawn, session().count(by), ready.mechanism.scaled(0.02), bounded=True, level=LEVEL)
                failed.append(((less.lower[:, 0] <= true) & (true <= less.upper[:, 0])).mean())
    assert np.mean(held) >= LEVEL > np.mean(failed or 0)


def test_a_mean_square_is_at_most_what_a_mechanism_says() -> None:
    for mechanism in ("polynomial", "ladder"):
        found = dc.calibrate(mechanism, unit=dc.Establishments("0.1"), epsilon=1)
        slope, least = found.square_bound
        for x in (1, 8, 19, 40, 300):
            size = np.full(20_000, x)
            square = (found.draw(np.zeros_like(size), size, SeededSource(x)).astype(float) ** 2).mean()
            assert 0.2 * ((slope * x) ** 2 + least**2) <= square <= 1.05 * ((slope * x) ** 2 + least**2), (mechanism, x)


def test_parents_are_looked_up_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "codes.csv"
    codes = sorted({*rows()["naics6"].tolist()})
    file.write_text("naics6,sector\n" + "".join(f"{code},{'goods' if code < '5' else 'services'}\n" for code in codes))
    declared = schema(industry={"levels": ["naics6", "sector"], "lookup": str(file)}, place=["county", "state"])
    found = dc.Session(dc.read_jobs(rows(), schema=declared), unit=dc.Establishments("0.1"), budget=9, seed=1)
    fine, coarse = found.marginals(["naics6"], ["sector"], measure="finest").release(epsilon=1)
    assert coarse.keys["sector"].to_pylist() == ["goods", "services"]
    assert coarse.counts.sum() == fine.counts.sum()
    assert declared.to_dict()["hierarchy"]["industry"]["lookup"] == "codes.csv"
    file.write_text("naics6,sector\n" + "".join(f"{code},goods\n" for code in codes[1:]))
    with pytest.raises(DataError, check=about("hierarchy.industry")) as caught:
        dc.read_jobs(rows(), schema=declared)
    assert codes[0] in str(caught.value)
    file.write_text("naics6,sector\n" + "".join(f"{code},goods\n{code},services\n" for code in codes[:1]))
    with pytest.raises(DataError, check=about("hierarchy.industry")) as caught:
        dc.read_jobs(rows(), schema=declared)
    assert codes[0] in str(caught.value)
    file.write_text("naics6,field\n111110,goods\n")
    with pytest.raises(DataError, check=about("hierarchy.industry")):
        dc.read_jobs(rows(), schema=declared)


def test_a_lookup_of_numbers_gives_their_spelling(tmp_path: Path) -> None:
    file = tmp_path / "codes.parquet"
    codes = sorted({int(code) for code in rows()["naics6"].tolist()})
    pq.write_table(pa.table({"naics6": codes, "sector": [1 + (code > 500_000) for code in codes]}), file)
    declared = schema(industry={"levels": ["naics6", "sector"], "lookup": str(file)}, place=["county", "state"])
    found = dc.Session(dc.read_jobs(rows(), schema=declared), unit=dc.Establishments("0.1"), budget=9, seed=1)
    fine, coarse = found.marginals(["naics6"], ["sector"], measure="finest").release(epsilon=1)
    assert fine.keys["naics6"].to_pylist() == [str(code) for code in codes]
    drawn = found.count("sector").release(epsilon=1, mechanism="polynomial")
    assert coarse.keys["sector"].to_pylist() == drawn.keys["sector"].to_pylist() == ["1", "2"]
    public = with_levels(fine.keys.select(["naics6"]), declared)  # the same for a table that others published
    assert public["sector"].to_pylist() == [str(1 + (code > 500_000)) for code in codes]


@pytest.mark.parametrize("odd", ["1111", "11111199", "111111 ", ""])
def test_ragged_codes_have_no_prefix_of_a_level(odd: str) -> None:
    """A code of another length belongs to another level: which, its first characters do not say."""
    data = {"workplace": [1, 2], "worker": [1, 2], "naics6": ["111111", odd]}
    declared = dc.Schema(["naics6"], {}, hierarchy={"industry": INDUSTRY})
    with pytest.raises(DataError, check=about("hierarchy.industry", naming=(repr(odd),))):
        dc.read_jobs(data, schema=declared)


@pytest.mark.parametrize(
    ("hierarchy", "name"),
    [
        ({"place": ["county", "state", "county"]}, "place"),
        ({"place": ["county", "state"], "again": ["state", "county"]}, "again"),
        ({"place": ["county"]}, "place"),
        ({"place": ["county", "nation"]}, "place"),
        ({"place": "county"}, "place"),
        ({"place": [1, 2]}, "place"),
        ({"industry": {"levels": ["naics6", "naics2"], "prefix": [2, 6]}}, "industry"),
        ({"industry": {"levels": ["naics6", "naics2"], "prefix": [6]}}, "industry"),
        ({"industry": {"levels": ["naics6", "naics2"], "prefix": "62"}}, "industry"),
        ({"industry": {"levels": ["naics6", "naics2"], "prefix": [6, 2], "lookup": "a.csv"}}, "industry"),
        ({"industry": {"levels": ["naics6", "naics2"], "parents": "a.csv"}}, "industry"),
    ],
)
def test_what_is_no_hierarchy_is_refused_before_data_are_read(hierarchy: Any, name: str) -> None:
    with pytest.raises(DataError, check=about(f"hierarchy.{name}")):
        schema(**hierarchy)


def test_a_missing_parent_is_named() -> None:
    broken = rows() | {"naics6": np.where(np.arange(4000) == 7, "11", rows()["naics6"])}
    with pytest.raises(DataError, check=about("hierarchy.industry")) as caught:
        dc.read_jobs(broken, schema=schema())
    assert "'11'" in str(caught.value)


def test_a_code_with_two_parents_is_named() -> None:
    torn = rows() | {"state": np.where(np.arange(4000) == 7, "s9", rows()["state"])}
    with pytest.raises(DataError, check=about("hierarchy.place")) as caught:
        dc.read_jobs(torn, schema=schema())
    assert str(rows()["county"][7]) in str(caught.value)
    with pytest.raises(DataError, check=about("hierarchy.place")):
        dc.read_jobs(rows(), schema=schema(place=["state", "county"]))


@pytest.mark.parametrize("add_up", [False, True])
def test_one_drawn_number_has_one_interval(add_up: bool) -> None:
    """A state of one county: the same draw, so the same interval and flag; a state of two has a wider one."""
    given = {"workplace": [1, 2, 3], "county": ["01001", "01003", "02001"], "jobs": [120, 8, 45]}
    place = {"levels": ["county", "state"], "prefix": [5, 2]}
    found = dc.read_jobs(given, schema=Schema(["county"], {}, size="jobs", hierarchy={"place": place}))
    work = dc.Session(found, unit=dc.Establishments("0.1"), budget=4, seed=1).marginals(
        "county", "state", measure="finest"
    )
    fine, coarse = (table.to_arrow().to_pylist() for table in work.release(epsilon=4, add_up=add_up))
    assert [*fine[2].values()][1:] == [*coarse[1].values()][1:]
    assert coarse[0]["upper"] - coarse[0]["lower"] > fine[0]["upper"] - fine[0]["lower"]


@pytest.mark.parametrize("measure", ["coarsest", [["naics2"]], [], 3, [["state"]]])
def test_what_cannot_be_derived_is_refused(measure: Any) -> None:
    with pytest.raises(DataError, check=about("measure")):
        session().marginals(*TABLES, measure=measure)


def test_a_schema_with_a_hierarchy_comes_back_from_its_dict() -> None:
    assert Schema.of(schema().to_dict()) == schema()
    assert schema().workplace_attributes[-2:] == ("naics4", "naics2")
    assert schema().listed == ("naics6", "county", "state", "ownership")
