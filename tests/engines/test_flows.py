"""Flows of several quarters on every engine, beside a loop over jobs in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.histories import read_histories
from discreet.data.schema import Schema
from discreet.tables.movement import flow_cells
from discreet.tables.movement.flow_cells import statistics

QUARTERS = [f"q{i}" for i in range(6)]
PLACES = {100 + firm: (f"c{firm % 3}", f"s{firm % 2}") for firm in range(12)}
SCHEMA = Schema(["county", "sector"], {})


def table(*, twice: bool) -> pa.Table:
    """Workers who come, stay, leave, come back and have two employers; a third of all rows are there `twice`."""
    rng = np.random.default_rng(23)
    rows = []
    for worker in range(150):
        for firm in {int(12 * rng.random() ** 2) + 100 for _ in range(2)} - {111}:  # which has no job at all
            rows += [(worker, firm, quarter, *PLACES[firm]) for quarter in QUARTERS if rng.random() < 0.6]
    rows += rows[::3] * twice
    names = ("worker", "workplace", "quarter", "county", "sector")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def by_loop(rows: list[dict[str, Any]], quarters: list[str], firms: set[int]) -> dict[Any, Any]:
    """Cell -> the five numbers over quarters, the largest workforce of each quarter, establishments."""
    there = {(row["worker"], row["workplace"], row["quarter"]) for row in rows}
    found: dict[Any, Any] = defaultdict(lambda: [[0] * 5, [0] * len(quarters), 0])
    for firm in firms:
        vector, largest, _ = cell = found[PLACES[firm]]
        cell[2] += 1
        for i, quarter in enumerate(quarters):
            at = QUARTERS.index(quarter)
            kinds: Counter[tuple[bool, bool]] = Counter(
                ((worker, firm, QUARTERS[at - 1]) in there, (worker, firm, QUARTERS[at + 1]) in there)
                for worker, place, now in there
                if (place, now) == (firm, quarter)
            )
            jobs = [kinds[True, True], kinds[False, False], kinds[False, True], kinds[True, False]]
            for k, n in enumerate([*jobs, max(jobs[2] - jobs[3], 0)]):
                vector[k] += n
            largest[i] = max(largest[i], sum(jobs))
    return dict(sorted(found.items()))


@pytest.mark.parametrize(("listed", "per_pass"), [(False, 12), (True, 3)], ids=["rows", "list, two passes"])
def test_flows_of_all_quarters(into: Any, listed: bool, per_pass: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_cells, "QUARTERS_PER_PASS", per_pass)
    rows, asked = table(twice=True), QUARTERS[1:-1]
    columns = list(zip(*((firm, *place) for firm, place in PLACES.items()), strict=True))
    names = ("workplace", "county", "sector")
    firms = pa.table(dict(zip(names, map(list, columns), strict=True)))
    given: dict[str, Any] = {"workplaces": into(firms, "firms")} if listed else {}
    source = into(rows.drop_columns(["county", "sector"]) if listed else rows, "jobs")
    histories = read_histories(source, quarters=QUARTERS, schema=SCHEMA, allow_multiple=2, **given)
    found = statistics(histories, asked, ["county", "sector"])
    known = {*PLACES} if listed else {*rows["workplace"].to_pylist()}
    wanted = by_loop(rows.to_pylist(), asked, known)
    assert [*zip(*(column.to_pylist() for column in found.keys.columns), strict=True)] == [*wanted]
    told = zip(found.vectors.tolist(), found.largest.tolist(), found.establishments.tolist(), strict=True)
    assert [list(each) for each in told] == [*wanted.values()]


def test_repetitions_and_quarters_that_are_not_asked_for_change_nothing(into: Any) -> None:
    """Also where rows were not validated, and one quarter is asked for."""
    found = []
    for twice in (False, True):
        source = into(table(twice=twice), f"jobs{int(twice)}")
        histories = read_histories(source, quarters=QUARTERS, schema=SCHEMA, allow_multiple=True, validate=False)
        found.append(statistics(histories, "q3", []))
    once, again = found
    wanted = by_loop(table(twice=False).to_pylist(), ["q3"], {*table(twice=False)["workplace"].to_pylist()})
    assert once.vectors.tolist() == again.vectors.tolist() == [np.sum([c[0] for c in wanted.values()], axis=0).tolist()]
    assert once.largest.tolist() == again.largest.tolist() == [[max(c[1][0] for c in wanted.values())]]


def test_establishments_are_those_of_all_quarters_where_they_have_no_attribute() -> None:
    """Which of them have a job in the quarter is confidential; before, their number was that of the quarter."""
    rows = {"worker": [1, 1, 1, 2], "workplace": [5, 5, 5, 6], "quarter": ["q0", "q1", "q2", "q0"]}
    histories = read_histories(rows, quarters=["q0", "q1", "q2"], schema=Schema([], {}))
    found = statistics(histories, "q1", [])
    assert found.establishments.tolist() == [2] and found.vectors.tolist() == [[1, 0, 0, 0, 0]]
