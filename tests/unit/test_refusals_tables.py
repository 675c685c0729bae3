"""Whether a table is refused, and with which words, does not depend on protected data.

Each door answers the same requests on two neighbouring data sets. What may differ between neighbours depends on the
unit: without a public list of establishments a single job makes a workplace value appear, except under
`Establishments`, for which existence is public.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.plan.run import run
from discreet.words.errors import DiscreetError

SCHEMA = dc.Schema(
    workplace_attributes=["place", "sector"], worker_attributes={"sex": ["f", "m"], "skill": ["low", "high"]}
)
LIST = [("w1", "A", "x"), ("w2", "A", "y"), ("w3", "B", "x"), ("w4", "C", "y"), ("w5", "D", "z")]
PLACE = {name: (place, sector) for name, place, sector in LIST}
UNITS = {
    "workers": dc.Workers(),
    "nodes": dc.EstablishmentNodes(3),
    "strong": dc.Establishments("0.1"),
    "weak": dc.Establishments("0.1", "weak"),
}


def rows(sizes: Mapping[str, int], kinds: str = "fm") -> dict[str, list[str]]:
    """Jobs at establishments of these sizes, whose workers take turns in being of `kinds`."""
    at = [name for name, size in sizes.items() for _ in range(size)]
    return {
        "worker": [f"p{i}" for i in range(len(at))],
        "workplace": at,
        "place": [PLACE[name][0] for name in at],
        "sector": [PLACE[name][1] for name in at],
        "sex": [kinds[i % len(kinds)] for i in range(len(at))],
        "skill": ["low" if i % 3 else "high" for i in range(len(at))],
    }


BASE = {"w1": 4, "w2": 2, "w3": 3}
NEIGHBOURS: dict[str, list[Mapping[str, int]]] = {
    "workers": [BASE | {"w4": 1}, BASE | {"w5": 1}, BASE | {"w3": 2}],
    "nodes": [BASE | {"w4": 3}, BASE | {"w5": 1}, {"w1": 4, "w2": 2}],
    "strong": [BASE | {"w2": 3}],
    "weak": [BASE | {"w3": 2}],
}
PAIRS = [(unit, sizes, False) for unit, found in NEIGHBOURS.items() for sizes in found[::2]]
PAIRS += [(unit, found[0], True) for unit, found in NEIGHBOURS.items()]
LONG = [
    pytest.param(unit, found[1], False, marks=pytest.mark.full_size) for unit, found in NEIGHBOURS.items() if found[1:]
]
WHERE: list[dict[str, Any]] = [
    {},
    {"place": ["A", "C"]},
    {"place": "C"},
    {"place": ["D"]},
    {"place": ["nowhere"]},
    {"place": ["A", "nowhere"]},
    {"place": [7]},
    {"place": ["B"], "sector": ["y"]},
    {"sector": "z", "sex": ["f"]},
    {"sex": ["f"]},
    {"sex": ["other"]},
    {"place": ["C"], "skill": "high"},
]
REQUESTS = [*((["sex"], where) for where in WHERE), ([], {"place": ["C"]}), (["place"], {}), (["skill", "sex"], {})]


def outcome(call: Callable[[], object]) -> tuple[str, str]:
    try:
        call()
    except DiscreetError as error:
        return type(error).__name__, str(error)
    return "released", ""


def listed(jobs: dict[str, list[str]], *, public: bool) -> dc.Jobs:
    lists = dict(zip(("workplace", "place", "sector"), map(list, zip(*LIST, strict=True)), strict=True))
    if public:
        jobs = {name: column for name, column in jobs.items() if name not in ("place", "sector")}
    return dc.read_jobs(jobs, schema=SCHEMA, workplaces=lists if public else None)


def asked(jobs: dc.Jobs, unit: dc.Unit) -> Iterator[tuple[str, str]]:
    session = dc.Session(jobs, unit=unit, budget=10**6)
    for by, where in REQUESTS:
        yield outcome(lambda by=by, where=where: session.count(by=by, where=where).release(epsilon=4))  # type: ignore[misc]
    for where in WHERE[1:3]:
        yield outcome(lambda where=where: session.marginals(["sex"], [], where=where).release(epsilon=8))  # type: ignore[misc]


@functools.cache
def of_base(unit: str, *, public: bool) -> list[tuple[str, str]]:
    return list(asked(listed(rows(BASE), public=public), UNITS[unit]))


@pytest.mark.parametrize(("unit", "sizes", "public"), [*PAIRS, *LONG])
def test_neighbours_are_refused_alike_in_sessions(unit: str, sizes: Mapping[str, int], public: bool) -> None:
    found = of_base(unit, public=public)
    assert list(asked(listed(rows(sizes), public=public), UNITS[unit])) == found
    assert {"released"} < {kind for kind, _ in found}  # the requests are of both sorts


def test_a_kind_of_worker_that_nobody_is_changes_no_refusal() -> None:
    for name, unit in UNITS.items():
        assert list(asked(listed(rows(BASE, "f"), public=False), unit)) == of_base(name, public=False)


PLAN = """
[data]
source = "jobs.parquet"
{workplaces}
[data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = {{ sex = ["f", "m"], skill = ["low", "high"] }}
{labels}
[unit]
{unit}
[budget]
epsilon = 100
ledger = "ledger.db"
dataset = "jobs"
[output]
folder = "out"
[[release]]
name = "r"
kind = "count"
by = {by}
where = {{ {where} }}
epsilon = 4
"""
UNIT_TEXT = {
    "workers": 'kind = "workers"',
    "nodes": 'kind = "establishment-nodes"\ntheta = 3',
    "strong": 'kind = "establishments"\nalpha = "0.1"',
}
LABELS = {"": "", "labels": '[data.labels.place]\nA = "C"\n'}


def planned(folder: Path, jobs: dict[str, list[str]], **text: str) -> tuple[str, str]:
    folder.mkdir()
    pa.parquet.write_table(pa.table(jobs), folder / "jobs.parquet")
    (folder / "plan.toml").write_text(PLAN.format(**text), encoding="utf-8")
    kind, words = outcome(lambda: run(folder / "plan.toml", dry_run=True))
    return kind, words.replace(str(folder), "FOLDER")


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("unit", UNIT_TEXT)
def test_neighbours_are_refused_alike_in_plans(unit: str, labels: str, tmp_path: Path) -> None:
    asked = [(["sex"], {"place": ["A", "C"]}), (["sex"], {})]
    for i, (by, where) in enumerate(asked):
        text = {
            "unit": UNIT_TEXT[unit],
            "labels": LABELS[labels],
            "workplaces": "",
            "by": json.dumps(by),
            "where": ", ".join(f"{name} = {json.dumps(kept)}" for name, kept in where.items()),
        }
        found = {
            planned(tmp_path / f"{i}-{j}", rows(sizes), **text) for j, sizes in enumerate([BASE, NEIGHBOURS[unit][0]])
        }
        assert len(found) == 1
