"""Whether a model or a posterior summary is refused, and with which words, does not depend on protected data.

A model protects one row's response; a posterior summary protects a whole row, but for the levels of declared columns.
Each door answers the same request on data sets that differ in one row, which holds what data hold at their worst.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.linear.private import release_mixed
from discreet.plan.run import run
from discreet.words.errors import DiscreetError

ROWS = 300
ODD: list[float | None] = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 5.0, -3.0, 0.0, 1.0]
"""What one row's response, or one row's number, may hold; bounds are 0 and 1."""
WIDE = 10**37 + 1
ODD_NUMBERS: dict[pa.DataType, list[int | Decimal | None]] = {
    pa.int64(): [2**60 + 12345, -(2**53) - 1, None],
    pa.uint64(): [2**64 - 1, None],
    pa.int8(): [-128],
    pa.decimal128(38, 0): [Decimal(WIDE), Decimal(-WIDE), None],
    pa.decimal128(38, 4): [Decimal(10) ** 33],
}
"""The same in columns of other types than doubles: some are no doubles."""


@functools.cache
def base(kind: str = "ordinary") -> pa.Table:
    rng = np.random.default_rng(1)
    g, h = np.arange(ROWS) % 12, np.arange(ROWS) % 3
    y = {"ordinary": np.clip(0.5 + 0.05 * g / 12 + rng.normal(0, 0.1, ROWS), 0, 1), "constant": np.full(ROWS, 0.25)}
    return pa.table(
        {"y": y[kind], "x": rng.normal(size=ROWS), "g": [f"g{i}" for i in g], "h": [f"h{i}" for i in h], "k": h}
    )


def with_row(table: pa.Table, **row: Any) -> pa.Table:
    """The table with other values in one row."""
    for name, value in row.items():
        values = table[name].to_pylist()
        values[17] = value
        table = table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))
    return table


def in_type(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    """The table with zeros and ones of that type in a column."""
    values = [Decimal(i % 2) if pa.types.is_decimal(kind) else i % 2 for i in range(ROWS)]
    return table.set_column(table.column_names.index(name), name, pa.array(values, kind))


EVERY = [pytest.param(3, id="some"), pytest.param(1, id="every frame", marks=pytest.mark.full_size)]
"""The daily run takes every third kind of data, and begins with another one at every turn."""


def frames(table: pa.Table, path: Path, *, every: int = 1, turn: int = 0) -> Iterator[tuple[str, Any]]:
    """The table as every kind of data that a door takes and that has its types, or as some of them."""
    yield from islice(_frames(table, path), turn % every, None, every)


def _frames(table: pa.Table, path: Path) -> Iterator[tuple[str, Any]]:
    import duckdb
    import narwhals.stable.v2 as nw
    import pandas
    import polars

    pa.parquet.write_table(table, path / "table.parquet")
    yield "arrow", table
    yield "mapping of arrays", {name: table[name] for name in table.column_names}
    yield "pandas", table.to_pandas()
    yield "pandas, other index", table.to_pandas().set_index(np.arange(ROWS)[::-1])
    yield "pandas, nullable", table.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    yield "pandas, Arrow", table.to_pandas(types_mapper=pandas.ArrowDtype)
    yield "polars", polars.from_arrow(table)
    yield "polars, lazy", polars.from_arrow(table).lazy()
    yield "duckdb", duckdb.connect().from_arrow(table)
    yield "narwhals", nw.from_native(table)
    yield "narwhals, lazy", nw.from_native(table).lazy()
    yield "parquet", path / "table.parquet"


def outcome(call: Callable[[], object]) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # what another test left to the garbage collector
        try:
            call()
        except DiscreetError as error:
            return type(error).__name__, str(error)
    return "released", ""


LINEAR, ONE, NESTED = "y ~ x + h", "y ~ x + (1 | g)", "y ~ 1 + (1 | h/g)"
KNOWN = ["x", "g", "h", "k"]
MODELS: dict[str, dict[str, Any]] = {
    "moments": {"formula": ONE, "method": "moments"},
    "moments, rho": {"formula": NESTED, "method": "moments", "epsilon": None, "rho": "0.5"},
    "moments, clip": {"formula": "y ~ 0 + h", "method": "moments", "clip": (0, "0.5")},
    "moments, row by row": {"formula": "y ~ x", "method": "moments"},
    "strict": {"formula": ONE, "method": "strict", "blocks": 8},
    "strict, linear": {"formula": LINEAR, "method": "strict", "blocks": 20},
    "strict, nested": {"formula": NESTED, "method": "strict", "blocks": 4},
    "paper, nested": {"formula": NESTED, "method": "paper", "blocks": 4},
    "paper": {"formula": ONE, "method": "paper", "blocks": 8},
    "paper, linear": {"formula": LINEAR, "method": "paper", "blocks": 20},
    "no groups": {"formula": "y ~ 1 + (1 | missing)", "method": "moments"},
    "too many": {"formula": ONE, "method": "strict", "blocks": ROWS},
}


def modelled(data: Any, settings: Mapping[str, Any]) -> tuple[str, str]:
    asked = {"epsilon": 2, "bounds": (0, 1), "public": [*KNOWN, "missing"], "seed": 1} | dict(settings)
    return outcome(lambda: release_mixed(asked.pop("formula"), data, **asked))


@pytest.mark.parametrize("kind", ["ordinary", "constant"])
@pytest.mark.parametrize("door", MODELS)
def test_no_response_stops_a_model(door: str, kind: str) -> None:
    found = modelled(base(kind), MODELS[door])
    assert (found[0] == "released") == (door not in ("no groups", "too many"))
    for odd in ODD if kind == "ordinary" and door == "moments" else ODD[::4]:
        assert modelled(with_row(base(kind), y=odd), MODELS[door]) == found


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ODD_NUMBERS, ids=str)
def test_no_number_of_another_type_stops_a_model(kind: pa.DataType, every: int, tmp_path: Path) -> None:
    """Nor is it quoted: every kind of data counts it as the nearer end, or the middle where there is none."""
    table, turns = in_type(base(), "y", kind), count(list(ODD_NUMBERS).index(kind))
    for odd in ODD_NUMBERS[kind]:
        counted = with_row(in_type(base(), "y", pa.float64()), y=0.5 if odd is None else float(odd > 0))
        for door in ("moments", "moments, row by row", "strict", "paper")[: 4 if odd == ODD_NUMBERS[kind][0] else 1]:
            asked = {"epsilon": 2, "bounds": (0, 1), "public": KNOWN, "seed": 1} | MODELS[door]
            formula = asked.pop("formula")
            expected = release_mixed(formula, counted, **asked).fixed
            for name, data in frames(with_row(table, y=odd), tmp_path, every=every, turn=next(turns)):
                if door.startswith("moments") or name in ("arrow", "pandas, Arrow", "duckdb"):
                    assert release_mixed(formula, data, **asked).fixed == pytest.approx(expected), (name, door, odd)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ODD_NUMBERS, ids=str)
@pytest.mark.parametrize("formula", [ONE, "y ~ x"])
def test_no_public_number_is_quoted(kind: pa.DataType, formula: str, every: int, tmp_path: Path) -> None:
    odd = ODD_NUMBERS[kind][0]
    table = with_row(in_type(base(), "x", kind), x=odd)
    turn = list(ODD_NUMBERS).index(kind) + (formula == ONE)
    for name, data in frames(table, tmp_path, every=every, turn=turn):
        found = outcome(lambda data=data: release_mixed(formula, data, epsilon=2, bounds=(0, 1), public=KNOWN, seed=1))
        objects = pa.types.is_decimal(kind) and name.startswith("pandas") and name != "pandas, Arrow"
        assert str(odd) not in found[1] and (objects or found[0] == "released"), (name, found)


MIXED = [2**64, -(10**400), 2**60 + 1, "text", None, math.nan, True, Decimal("0.5"), np.int8(1), Fraction(10**400)]


@pytest.mark.parametrize("numbers", [[0, 1], [0.0, 1.0], [Decimal(0), Decimal(1)]], ids=["int", "float", "decimal"])
def test_no_entry_of_a_list_stops_a_door(numbers: list[Any]) -> None:
    """Arrow finds one type for a list, or none: one row would decide."""
    import pandas

    columns = base().to_pydict()
    for odd in MIXED:
        y = numbers * (ROWS // 2)
        y[17] = odd
        data = {**columns, "y": y}
        assert modelled(data, MODELS["moments"])[0] == "released", odd
        for door in SUMMARIES if odd == "text" else ["perturbation"]:
            assert (
                outcome(lambda door=door, data=data: SUMMARIES[door]("y ~ x", data, numbers=["x"]))[0] == "released"
            ), (
                odd,
                door,
            )
    for objects in (np.array(y, dtype=object), pandas.Series(y, dtype=object)):
        assert modelled({**columns, "y": objects}, MODELS["moments"])[0] == "released"
    frame = pandas.DataFrame({**columns, "y": pandas.Series(y, dtype=object)})
    assert modelled(frame, MODELS["moments"])[0] == "released"
    for data in ({**columns, "y": ["a"] * ROWS}, {**columns, "y": [True] * ROWS}):
        assert modelled(data, MODELS["moments"])[0] == "released"  # as with one number among them
    assert modelled({**columns, "y": np.full(ROWS, "a")}, MODELS["moments"])[0] == "DataError"  # a type of its own
    assert "'g'" in outcome(lambda: SUMMARIES["probability"]("y ~ x + g", columns))[1]


def test_no_response_in_a_file_stops_a_model(tmp_path: Path) -> None:
    """The rows of a CSV file decide the types of its columns, but not that of the response."""
    for i, odd in enumerate(["0.5", "", "text", "inf", "nan", "2020-01-01", "1e999"]):
        path = tmp_path / f"{i}.csv"
        write_csv(path, y=odd)
        assert modelled(path, MODELS["moments"])[0] == "released", odd


def write_csv(path: Path, **row: str) -> None:
    table = base()
    for name, value in row.items():
        values = [str(v) for v in table[name].to_pylist()]
        values[17] = value
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="none"))


SUMMARIES: dict[str, Callable[..., object]] = {
    "probability": lambda f, d, **k: posterior_probability(f, d, "x", at=0, epsilon=2, partitions=10, **k),
    "quantile": lambda f, d, **k: posterior_quantile(f, d, "x", probability=0.5, epsilon=40, partitions=10, **k),
    "interval": lambda f, d, **k: posterior_interval(f, d, "x", epsilon=40, partitions=10, **k),
    "perturbation": lambda f, d, **k: objective_perturbation(f, d, bounds=(0, 1), norm=5, penalty=10, epsilon=2, **k),
}


@pytest.mark.parametrize("door", SUMMARIES)
def test_no_row_stops_a_summary(door: str, tmp_path: Path) -> None:
    def asked(data: Any, formula: str = "y ~ x + h") -> tuple[str, str]:
        return outcome(lambda: SUMMARIES[door](formula, data, public=["h", "k"], numbers=["x"]))

    assert asked(base())[0] == "released"
    for odd, other in zip(ODD, ODD[3:] + ODD[:3], strict=True):
        assert asked(with_row(base(), y=odd, x=other))[0] == "released"
    assert asked(with_row(base(), h=None))[0] == asked(with_row(base(), h="h2"))[0] == "released"
    assert asked(base("constant")) == asked(with_row(base("constant"), y=1.0)) == ("released", "")
    refused = asked(base(), "y ~ x + g")
    assert refused == asked(with_row(base(), g="alone"), "y ~ x + g") and "'g'" in refused[1]
    for i, odd in enumerate(["0.5", "text", "2020-01-01"]):
        write_csv(tmp_path / f"{i}.csv", x=odd)
        assert asked(tmp_path / f"{i}.csv")[0] == "released"


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ODD_NUMBERS, ids=str)
@pytest.mark.parametrize("door", SUMMARIES)
def test_no_number_of_another_type_stops_a_summary(door: str, kind: pa.DataType, every: int, tmp_path: Path) -> None:
    table, turns = in_type(in_type(base(), "y", kind), "x", kind), count(list(ODD_NUMBERS).index(kind))
    for odd in ODD_NUMBERS[kind][:1] if door != "perturbation" else ODD_NUMBERS[kind]:
        for name, data in frames(with_row(table, y=odd, x=odd), tmp_path, every=every, turn=next(turns)):
            if door == "perturbation" or name in ("arrow", "pandas, Arrow", "duckdb"):
                told = outcome(lambda data=data: SUMMARIES[door]("y ~ x + h", data, public=["h"], numbers=["x"]))
                assert told[0] == "released", (name, odd, told)


PLAN = """
[data]
source = "rows.parquet"
public = ["x", "g"]
[unit]
kind = "rows"
lower = 0
upper = 1
response = "y"
[budget]
epsilon = 100
ledger = "ledger.db"
dataset = "rows"
[output]
folder = "out"
[[release]]
name = "model"
kind = "model"
formula = "y ~ x + (1 | g)"
epsilon = 2
[[release]]
name = "slope"
kind = "posterior"
formula = "y ~ x"
summary = "probability"
coefficient = ["x"]
at = [0]
epsilon = 2
"""


@pytest.mark.parametrize("odd", [0.5, None, math.nan, 7.0])
def test_no_response_stops_a_plan(odd: float | None, tmp_path: Path) -> None:
    pa.parquet.write_table(with_row(base(), y=odd), tmp_path / "rows.parquet")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    assert len(run(tmp_path / "plan.toml").publications) == 2


@pytest.mark.parametrize("odd", [None, math.nan, -math.inf, -7.0])
@pytest.mark.parametrize("how", ["arrow", "polars", "parquet"])
def test_what_an_odd_response_counts_as(odd: float | None, how: str, tmp_path: Path) -> None:
    """The guarantee says it: the nearer end of the bounds, and the middle where there is no number."""
    import polars

    def released(value: float | None) -> tuple[float, ...]:
        data = with_row(base(), y=value)
        pa.parquet.write_table(data, path := tmp_path / f"{value}.parquet")
        given = {"arrow": data, "polars": polars.from_arrow(data), "parquet": path}[how]
        fit = release_mixed("y ~ x + (1 | g)", given, epsilon=2, bounds=(0, 1), public=KNOWN, seed=1)
        return tuple(fit.fixed.values())

    counted = 0.5 if odd is None or not math.isfinite(odd) else min(max(odd, 0.0), 1.0)
    assert released(odd) == released(counted) != released(0.7)
