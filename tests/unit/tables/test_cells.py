"""The order of cells against Arrow's own sort."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.tables.order import order_of

COLUMNS = {
    "places": lambda rng, n: pa.array(rng.integers(-40, 40, n)),
    "codes": lambda rng, n: pa.array(rng.choice(rng.integers(-(2**63), 2**63 - 1, 12), n)),
    "more codes": lambda rng, n: pa.array(rng.choice(rng.integers(-(2**40), 2**40, 30), n)),
    "text": lambda rng, n: pa.array(rng.choice(["b", "a", "ç", "Z", "é", "aa", ""], n)),
    "truth": lambda rng, n: pa.array(rng.random(n) < 0.5),
    "gaps": lambda rng, n: pa.array(rng.choice(["x", "y", "z"], n), mask=rng.random(n) < 0.2),
    "numbers with gaps": lambda rng, n: pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.2),
}


@pytest.mark.parametrize(
    "names",
    [
        ["places"],
        ["text"],
        ["codes"],
        ["text", "places"],
        ["places", "truth", "text"],
        ["codes", "more codes", "places"],
        ["more codes", "codes", "text", "truth"],
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

    assert np.array_equal(order, pc.sort_indices(table, [(name, "ascending") for name in names]).to_numpy())


def test_a_dense_range_is_put_in_place_and_a_sparse_one_is_sorted() -> None:
    keys = np.random.default_rng(1).permutation(20_000)
    for spread in (1, 3, 1000):
        assert np.array_equal(keys[order_of([pa.array(keys * spread)], len(keys))], np.arange(20_000))


def test_no_key_is_one_cell() -> None:
    assert order_of([], 1).tolist() == [0]
