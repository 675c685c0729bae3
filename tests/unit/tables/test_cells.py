"""The order of cells against Python's own sort: codes are text, and whole numbers if all of them are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from discreet.tables.order import order_of


def text(values: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
    return pa.array(values, mask=mask).cast(pa.string())


COLUMNS = {
    "places": lambda rng, n: text(rng.integers(-40, 40, n)),
    "zeros": lambda rng, n: text(rng.choice(["7", "07", "007", "10", "-1", "0", "00"], n)),
    "codes": lambda rng, n: text(rng.choice(rng.integers(-(10**18) + 1, 10**18, 12), n)),
    "longer codes": lambda rng, n: text(rng.choice(rng.integers(2**62, 2**63 - 1, 12), n)),
    "almost numbers": lambda rng, n: text(rng.choice(["9", "10", "x"], n)),
    "text": lambda rng, n: text(rng.choice(["b", "a", "ç", "Z", "é", "aa", ""], n)),
    "truth": lambda rng, n: text(rng.random(n) < 0.5),
    "gaps": lambda rng, n: text(rng.choice(["x", "y", "z"], n), mask=rng.random(n) < 0.2),
    "numbers with gaps": lambda rng, n: text(rng.integers(0, 19, n), mask=rng.random(n) < 0.2),
}


def ranks(column: list[str | None]) -> list[tuple]:
    """The order of a column's values: nulls come last."""
    known = [value for value in column if value is not None]
    whole = all(value.lstrip("-").isdigit() and len(value.lstrip("-")) <= 18 for value in known)
    return [(1,) if value is None else (0, int(value) if whole else 0, value.encode()) for value in column]


@pytest.mark.parametrize(
    "names",
    [
        ["places"],
        ["text"],
        ["codes"],
        ["zeros"],
        ["longer codes", "almost numbers"],
        ["text", "places"],
        ["places", "truth", "text"],
        ["codes", "longer codes", "places"],
        ["gaps", "numbers with gaps", "places"],
        list(COLUMNS),
    ],
)
@pytest.mark.parametrize("rows", [0, 1, 3, 5000])
def test_cells_are_in_the_order_of_a_sort(names: list[str], rows: int) -> None:
    rng = np.random.default_rng(rows)
    table = pa.table({name: COLUMNS[name](rng, rows) for name in names})
    table = table.group_by(names).aggregate([])
    table = table.take(pa.array(rng.permutation(len(table))))

    order = order_of([table[name].combine_chunks() for name in names], len(table))

    keys = list(zip(*(ranks(table[name].to_pylist()) for name in names), strict=True))
    assert order.tolist() == sorted(range(len(table)), key=lambda row: keys[row])


def test_codes_that_fill_their_range_and_others_are_sorted() -> None:
    keys = np.random.default_rng(1).permutation(20_000)
    for spread in (1, 3, 1000):
        assert np.array_equal(keys[order_of([text(keys * spread)], len(keys))], np.arange(20_000))


def test_no_key_is_one_cell() -> None:
    assert order_of([], 1).tolist() == [0]
