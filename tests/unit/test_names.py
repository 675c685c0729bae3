"""Names of columns, levels and hierarchies: each works in every role, or is refused before data are opened."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.schema import Schema
from discreet.words.errors import DataError
from faults_of import about

REFUSED = [
    *(
        "../../n2",
        "a.b",
        ".",
        "..",
        "*",
        "",
        " ",
        " a",
        "a ",
        "a\nb",
        "a\tb",
        "a\0b",
        "a\u2028b",
        "\u202eab",
        "\u200bzero",
        "soft\u00adhyphen",
        "`id`",
        "x" * 101,
    ),
    *("__own", "Count", "LOWER"),
]
WORKING = ["a b", 'a"b', "a'b", "naïve-北京", "select", "a/b", "a;b", "{x}", "-1", "a,b", "rowid"]
WORKING += ["a::b", "jobs", "x" * 100]
ROLES = ("establishment", "worker", "place", "fine", "level", "sex", "pay")


def schema(**names: str) -> Schema:
    own = {role: names.get(role, role) for role in ROLES}
    return Schema(
        [own["place"], own["fine"]],
        {own["sex"]: ["F", "M"]},
        establishment=own["establishment"],
        worker=own["worker"],
        hierarchy={"industry": {"levels": [own["fine"], own["level"]], "prefix": [3, 1]}},
        magnitudes={own["pay"]: 100},
    )


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_an_engine_or_a_path_would_misread_is_refused(role: str, name: str) -> None:
    with pytest.raises(DataError, check=about("schema", "hierarchy.industry")) as caught:
        schema(**{role: name})
    assert all(fault.asked and fault.remedy for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("name", "better"),
    [("naics.6", "naics_6"), ("../../n2", "n2"), (".", None), ("Umsatz.€", "Umsatz"), (" a.b", "a_b"), ("`id`", "id")],
)
def test_a_name_with_dots_comes_with_one_without(name: str, better: str | None) -> None:
    with pytest.raises(DataError, check=about("schema")) as caught:
        schema(place=name)
    remedy = str(caught.value.faults[0].remedy)
    assert (f"to {better!r}" if better else "Rename it.") in remedy
    if better is not None:
        schema(place=better)


@pytest.mark.parametrize("name", ["a.b", "", "../x", "x" * 101, "a\nb"])
def test_a_hierarchy_has_a_name_that_can_be_part_of_a_path(name: str) -> None:
    with pytest.raises(DataError, check=about("hierarchy")):
        Schema(["county", "state"], {}, hierarchy={name: ["county", "state"]})


def test_names_that_differ_in_capitals_alone_are_one_column_of_a_database() -> None:
    with pytest.raises(DataError, check=about("schema", naming=("Place", "place"))):
        Schema(["Place", "place"], {})
    with pytest.raises(DataError, check=about("hierarchy")):
        Schema(["a", "b", "c", "d"], {}, hierarchy={"x": ["a", "b"], "X": ["c", "d"]})


def rows(**names: str) -> pa.Table:
    own = {role: names.get(role, role) for role in ROLES}
    columns: dict[str, list[Any]] = {
        own["establishment"]: [f"e{i % 8}" for i in range(40)],
        own["worker"]: list(range(40)),
        own["place"]: [f"p{i % 2}" for i in range(40)],
        own["fine"]: [f"{i % 4}0x" for i in range(40)],
        own["sex"]: ["FM"[i % 2] for i in range(40)],
        own["pay"]: list(range(40)),
    }
    return pa.table(columns)


@pytest.mark.parametrize("turn", range(len(ROLES)))
def test_every_other_name_works_in_every_role(turn: int) -> None:
    """Names take turns: each role has every name once, seven names at a time."""
    for start in range(0, len(WORKING), len(ROLES)):
        some = [*WORKING[start:], *WORKING[:start]]
        own = {role: some[(i + turn) % len(ROLES)] for i, role in enumerate(ROLES)}
        jobs = dc.read_jobs(rows(**own), schema=schema(**own))
        session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=100, seed=1)
        table = session.count([own["place"], own["sex"]]).release(epsilon=4, mechanism="polynomial")
        assert table.to_arrow().column_names[:2] == [own["place"], own["sex"]]
        by = [own["fine"], own["place"]]
        [_, coarse] = session.marginals(by, [own["level"]], of=own["pay"], measure="finest").release(epsilon=4)
        assert coarse.keys[own["level"]].to_pylist() == ["0", "1", "2", "3"]
