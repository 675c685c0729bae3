"""The errors that `check` foretells: with what truncation leaves out, and from sizes that can be sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run

THETA = 10


@pytest.fixture
def nodes(plan: Path) -> Path:
    """The toys under truncation; public sizes are named, not written."""
    text = plan.read_text().replace(
        'kind = "establishments"\nalpha = 0.1', f'kind = "establishment-nodes"\ntheta = {THETA}'
    )
    plan.write_text(text.replace("[[release]]", '[public]\nsizes = "sizes.csv"\n\n[[release]]', 1))
    return plan


def truth(plan: Path) -> tuple[dict[tuple[str, str], list[int]], float]:
    """The sizes in each cell, and the mean error by a sum over all integers: E|J - b|, b the jobs left out."""
    places = pq.read_table(plan.parent / "data" / "places.parquet").to_pydict()
    sizes = np.bincount(pq.read_table(plan.parent / "data" / "jobs.parquet")["workplace"].to_numpy(), minlength=40)
    cells: dict[tuple[str, str], list[int]] = {}
    for place, sector, size in zip(places["place"], places["sector"], sizes.tolist(), strict=True):
        cells.setdefault((place, sector), []).append(size)
    j, width = np.arange(-600, 601), THETA / 2
    chance = np.exp(-np.abs(j) / width)
    chance /= chance.sum()
    left_out = [sum(size for size in found if size > THETA) for found in cells.values()]
    return cells, float(np.mean([np.abs(j - b) @ chance for b in left_out]))


def test_what_is_left_out_is_part_of_the_error(nodes: Path) -> None:
    """A row for each establishment tells all; a row for each cell gives a bound."""
    cells, mean = truth(nodes)
    each = [(*cell, size, size) for cell, sizes in cells.items() for size in sizes]
    merged = [(*cell, sum(sizes), max(sizes)) for cell, sizes in cells.items()]
    told = []
    for rows in (each, merged, [row[:3] for row in merged]):
        header = "place,sector,jobs,largest\n" if len(rows[0]) == 4 else "place,sector,jobs\n"
        (nodes.parent / "sizes.csv").write_text(header + "".join(",".join(map(str, row)) + "\n" for row in rows))
        found = check(read_plan(nodes)).releases[0].tables[0]
        assert found.expected is not None
        told.append(found.expected)
        assert any("left out" in note for note in found.notes)
    assert [known.is_bound for known in told] == [False, True, True]
    assert told[0].mean == pytest.approx(mean, rel=1e-6)
    assert mean > 2 * THETA / 2  # the noise alone would be half of theta
    assert mean < told[1].mean <= told[2].mean


def test_a_release_that_left_jobs_out_tells_no_sizes(nodes: Path) -> None:
    first = nodes.read_text().replace('[public]\nsizes = "sizes.csv"\n', "")
    nodes.write_text(first)
    run(nodes)
    later = first.replace('"toys"', '"toys 2"').replace('"out"', '"out2"')
    nodes.write_text(later.replace("[[release]]", '[public]\nprevious = "out/places"\n\n[[release]]', 1))
    assert check(read_plan(nodes)).releases[0].tables[0].expected is None


def test_errors_of_rounded_counts_say_that_they_are_not(plan: Path, command) -> None:
    for forms, noted in (('["basic"]', True), ('["basic", "research"]', False)):
        changed = plan.with_name("changed.toml")
        changed.write_text(plan.read_text().replace('folder = "out"', f'folder = "out"\nforms = {forms}'))
        told = json.loads(command("check", changed, "--json")[1])["releases"]
        notes = [" ".join(table["notes"]) for release in told for table in release["tables"]]
        assert [("rounded to multiples of 5" in note) for note in notes] == [noted, noted, False, False]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("place,sector,jobs\nP0,farm,9\nP0,shop,-5\n", "jobs = -5 in row 2 of 'sizes.csv' is not a number of jobs"),
        ("place,sector,jobs\nP0,farm,nan\n", "jobs = nan in row 1"),
        ("place,sector,jobs\nP0,farm,inf\n", "'jobs' of 'sizes.csv' is not a number in every row"),
        ("place,sector,jobs,largest\nP0,farm,5,20\n", "largest = 20 in row 1 of 'sizes.csv' does not fit the cell"),
        ("place,sector,jobs,largest\nP0,farm,5,nan\n", "largest = nan"),
        ("place,sector,jobs,largest\nP0,farm,5,-1\n", "largest = -1"),
        ("place,sector,jobs,largest\nP0,farm,5,0\n", "largest = 0"),
    ],
)
def test_sizes_that_cannot_be_sizes(plan: Path, command, contents, rows: str, words: str) -> None:
    (plan.parent / "sizes.csv").write_text(rows)
    plan.write_text(plan.read_text().replace("[[release]]", '[public]\nsizes = "sizes.csv"\n\n[[release]]', 1))
    before = contents(plan.parent)
    line = plan.read_text().splitlines().index('sizes = "sizes.csv"') + 1
    for verb in ("check", "run"):
        code, _, err = command(verb, plan)
        assert code == 2
        assert words in " ".join(err.split()) and f"plan.toml:{line}:" in err
        assert "Correct it." in err
    assert contents(plan.parent) == before


def test_noise_beyond_integers_is_a_fault_of_epsilon(plan: Path, command, contents) -> None:
    unit = 'kind = "establishments"\nalpha = 0.1'
    for wrong, epsilon in (('kind = "workers"', '"1e-25"'), (f'kind = "establishment-nodes"\ntheta = {2**62}', "2")):
        text = plan.read_text().replace(unit, wrong).replace("epsilon = 2\n", f"epsilon = {epsilon}\n", 1)
        changed = plan.with_name("changed.toml")
        changed.write_text(text)
        before = contents(plan.parent)
        code, _, err = command("run", changed)
        assert code == 2
        assert "64-bit counts do not hold" in " ".join(err.split()) and "Raise epsilon" in " ".join(err.split())
        assert contents(plan.parent) == before
