"""Whether a model or a posterior summary is refused, and with which words, does not depend on protected data.

A model protects one row's response; a posterior summary protects a whole row, but for the levels of declared columns.
Each door answers the same request on data sets that differ in one row, which holds what data hold at their worst.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet.bayes.erm import objective_perturbation
from discreet.bayes.interval import posterior_interval
from discreet.bayes.probability import posterior_probability
from discreet.bayes.quantile import posterior_quantile
from discreet.errors import DiscreetError
from discreet.mixed.private import release_mixed
from discreet.plan.run import run

ROWS = 300
ODD: list[float | None] = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 5.0, -3.0, 0.0, 1.0]
"""What one row's response, or one row's number, may hold; bounds are 0 and 1."""


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


def outcome(call: Callable[[], object]) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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
    "perturbation": lambda f, d, **k: objective_perturbation(
        f, d, lower=0, upper=1, norm=5, penalty=10, epsilon=2, **k
    ),
}


@pytest.mark.parametrize("door", SUMMARIES)
def test_no_row_stops_a_summary(door: str, tmp_path: Path) -> None:
    def asked(data: Any, formula: str = "y ~ x + h") -> tuple[str, str]:
        return outcome(lambda: SUMMARIES[door](formula, data, public=["h", "k"]))

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
