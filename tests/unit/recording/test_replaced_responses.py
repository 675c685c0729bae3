"""A response is protected whatever it holds, or none: with the noise held fixed, nothing else shows which it was.

Every door to a model or a posterior is asked on data sets that differ in one row's response. Each draw publishes what
it published on the first of them. So all that is left to differ is what no noise was added to: standard errors that
came for nothing, the check, the guarantee, refusals, warnings, how many numbers there are. It must not differ at all.
The doors are found in the code, and a new one without a case here fails.
"""

from __future__ import annotations

import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.models.linear.private.request import Method
from discreet.plan.run import run
from discreet.plan.shape import KINDS, PosteriorSection
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account
from discreet.release.question import Question
from discreet.words.errors import DiscreetError
from release_doors import families, releasing

ROWS, ROW = 240, 239
UNIT = Rows(0, 2, "y")
PUBLIC = ["x", "g", "h", "t"]


def account() -> Account:
    return Account.open(None, dataset="rows", unit=UNIT, budget=Pure(10**6), seed=2)


LINE, GROUPS = "y ~ x", "y ~ x + (1 | g)"
PARTS = {"formula": LINE, "coefficient": "x", "partitions": 8, "public": PUBLIC, "seed": 2, "account": account}
WHOLE = {**PARTS, "account": None, "public": ["g"]}
MODEL = {"formula": GROUPS, "public": PUBLIC, "bounds": (0, 2), "epsilon": 2, "seed": 1}
FIT = {"formula": LINE, "bounds": (0, 2), "penalty": 20, "epsilon": 2, "seed": 1}
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "posterior_probability": {
        "rows": {**PARTS, "at": 1, "epsilon": 2},
        "whole rows": {**WHOLE, "at": 1, "epsilon": 2},
        "-2 log p": {**PARTS, "at": 1, "epsilon": 2, "method": "-2 log p"},
    },
    "posterior_quantile": {
        "rows": {**PARTS, "probability": [0.3, 0.9], "epsilon": 80},
        "whole rows": {**WHOLE, "probability": 0.3, "epsilon": 60},
        "around zero": {**PARTS, "probability": 0.3, "epsilon": 8, "centre": "zero"},
    },
    "posterior_interval": {
        "rows": {**PARTS, "level": [0.5, 0.9], "epsilon": 100},
        "whole rows": {**WHOLE, "level": 0.9, "epsilon": 60},
    },
    "objective_perturbation": {
        "rows": {**FIT, "public": PUBLIC, "account": account},
        "rows, levels": {**FIT, "formula": "y ~ g", "public": PUBLIC, "account": account},
        "rows, a constant": {**FIT, "formula": "y ~ 1", "public": PUBLIC, "account": account},
        "rows, a hidden column": {**FIT, "public": [], "norm": 4, "account": account},
        "rows, no errors": {**FIT, "public": PUBLIC, "account": account, "error_share": 0},
        "whole rows": {**FIT, "norm": 4},
    },
    "release_draw": {
        "declared": {
            "formula": GROUPS,
            "variances": {"Residual": 0.1, "g": 0.2},
            "sd": 3.0,
            "public": PUBLIC,
            "bounds": (0, 2),
            "seed": 1,
        }
    },
    "release_audited_draw": {
        "audited": {
            "formula": GROUPS,
            "prior": discreet.Prior(),
            "audited": 4,
            "public": PUBLIC,
            "bounds": (0, 2),
            "seed": 1,
        }
    },
    "release_mixed": {
        "moments": MODEL,
        "moments, rho": {**MODEL, "epsilon": None, "rho": 1},
        "moments, linear": {**MODEL, "formula": LINE},
        "moments, levels": {**MODEL, "formula": "y ~ 1 + (1 | g)"},
        "moments, slopes": {**MODEL, "formula": "y ~ x + (1 + x | g)"},
        "moments, sizes": {**MODEL, "formula": "y ~ log_size(h) + (1 | h)"},
        "moments, lags": {**MODEL, "formula": "y ~ x + lag(y, 1)", "series": ["h"], "time": "t"},
        "moments, groups": {**MODEL, "protect": ["g"]},
        "moments, binomial": {**MODEL, "bounds": (0, 1), "family": "binomial"},
        "moments, poisson": {**MODEL, "family": "poisson"},
        "strict": {**MODEL, "method": "strict", "blocks": 8},
        "strict, linear": {**MODEL, "formula": LINE, "method": "strict", "blocks": 12},
        "paper": {**MODEL, "method": "paper", "blocks": 8},
    },
}
NO_SUMS = {"release_audited_draw", "paper"}
"""Their noise is not added to whole numbers and promises nothing, so only what is beside the estimates is compared."""


def base() -> dict[str, list[Any]]:
    """The last row has the largest x, so that what it weighs shows."""
    rng = np.random.default_rng(7)
    number = np.arange(ROWS)
    x = np.append(rng.uniform(-1, 1, ROWS - 1), 3.0)
    y = np.clip(1 + 0.3 * x + 0.2 * rng.normal(size=ROWS), 0, 2)
    return {
        "x": x.tolist(),
        "g": [f"g{i}" for i in number % 4],
        "h": [f"h{i}" for i in number // 12],
        "t": (number % 12).tolist(),
        "y": y.tolist(),
    }


def replaced(value: Any) -> dict[str, list[Any]]:
    data = base()
    data["y"][ROW] = value
    return data


EVERY = [None, float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 1e100, 0.4, 2.0]
DAILY = [None, float("inf"), 1e308, 0.4]


def as_arrow(data: dict[str, list[Any]]) -> Any:
    return pa.table(data | {"y": pa.array(data["y"], pa.float64())})


def as_objects(data: dict[str, list[Any]]) -> Any:
    import pandas

    return pandas.DataFrame(data | {"y": pandas.Series(data["y"], dtype=object)})


def as_polars(data: dict[str, list[Any]]) -> Any:
    import polars

    return polars.DataFrame(data, schema_overrides={"y": polars.Float64})


def as_sqlite(data: dict[str, list[Any]]) -> str:
    """A column of numbers of SQLite holds values of any kind."""
    place = Path(tempfile.mkdtemp()) / "rows.sqlite"
    with closing(sqlite3.connect(place)) as made, made:
        made.execute("CREATE TABLE r (x REAL, g TEXT, h TEXT, t INTEGER, y NUMERIC)")
        made.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", zip(*(data[name] for name in "xghty"), strict=True))
    return f"{place}::r"


def ways() -> Iterator[Any]:
    """Each case with four values in Arrow; a door's first case also with other tables and kinds of values."""
    for name, cases in CASES.items():
        for number, case in enumerate(cases):
            yield pytest.param(name, case, as_arrow, DAILY, id=f"{name}-{case}")
            rest = [pytest.mark.full_size] if number else []
            yield pytest.param(name, case, as_objects, ["text", None], id=f"{name}-{case}-objects", marks=rest)
            yield pytest.param(name, case, as_polars, [float("nan")], id=f"{name}-{case}-polars", marks=rest)
            odd = ["text", b"bytes", 2**60 + 1]
            yield pytest.param(name, case, as_sqlite, odd, id=f"{name}-{case}-sqlite", marks=rest)
            yield pytest.param(name, case, as_arrow, EVERY, id=f"{name}-{case}-every", marks=pytest.mark.full_size)


def shown(value: Any) -> Any:
    """What anybody sees of a release."""
    found = getattr(value, "value", value)
    fields = [repr(getattr(found, name, "")) for name in ("notes", "flag", "flags", "effect_errors", "std_error")]
    return [str(found.tidy().schema), repr(found.tidy().to_pylist()), str(found), *fields, str(value.guarantee)]


def beside(value: Any) -> Any:
    """What is not the draw itself: names and how many they are, and the promise."""
    table = value.tidy().select(["effect", "group", "term", "level"])
    return [repr(table.to_pylist()), repr(getattr(value, "std_error", "")), str(value.guarantee)]


def outcome(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, or the words of its refusal; and its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            found = call()
        except DiscreetError as error:
            found = (type(error).__name__, str(error), error.about)
    return found, [f"{each.category.__name__}: {each.message}" for each in told]


def asked(case: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    case = {"name": "asked", **case}
    if case.pop("account", None):
        case |= {"account": account(), "seed": None}
    return case.pop("formula"), case


def both(name: str, case: dict[str, Any], data: Any, record: Any, given: Any = None) -> tuple[Any, Any, Any]:
    """The check, the release with the draws of an earlier one, and its record."""
    door = releasing()[name]
    see = beside if {name, case.get("method")} & NO_SUMS else shown
    formula, ask = asked(case)
    priced = outcome(lambda: repr(door.check(formula, data, **ask)))

    def release() -> tuple[Any, Any]:
        formula, ask = asked(case)
        return outcome(lambda: see(door(formula, data, **ask))), None

    told = record(release, given=given)
    return priced, told.public, told


def test_every_door_to_models_and_posteriors_is_here() -> None:
    """Functions by what made them; methods, families and summaries by the types that list them."""
    assert set(releasing()) == set(CASES)
    assert {case.get("method", "moments") for case in CASES["release_mixed"].values()} == set(get_args(Method))
    assert {case.get("family", "gaussian") for case in CASES["release_mixed"].values()} == families()
    made = set()
    for name, cases in CASES.items():
        for case in cases.values():
            formula, ask = asked(case)
            made.add(type(releasing()[name].ask(formula, **ask)).__qualname__)
    assert made == {kind.__qualname__ for kind in questions() if not kind.__abstractmethods__}


def questions(kind: type = Question) -> Iterator[type]:
    """Every kind of question in the code."""
    releasing()
    for each in kind.__subclasses__():
        yield each
        yield from questions(each)


@pytest.mark.parametrize(("name", "case", "as_data", "values"), list(ways()))
def test_nothing_but_noisy_sums_depends_on_a_response(name: str, case: str, as_data: Any, values: Any, record) -> None:
    price, public, told = both(name, CASES[name][case], as_data(base()), record)
    assert not isinstance(public[0], tuple), public
    for value in values:
        again = both(name, CASES[name][case], as_data(replaced(value)), record, told)
        assert again[0] == price, f"the check tells that a response is {value}"
        assert again[1][1] == public[1], f"a warning tells that a response is {value}"
        for here, there in zip(public[0], again[1][0], strict=True):
            assert there == here, f"the release tells that a response is {value}"


PLAN = """
[data]
source = "rows.parquet"
public = ["x", "g", "h", "t"]
[unit]
kind = "rows"
lower = 0
upper = 2
response = "y"
[budget]
epsilon = 1000
ledger = "ledger.db"
dataset = "rows"
[output]
folder = "out"
formats = ["parquet"]
"""
RELEASES = {
    "model": {"gaussian": "", "binomial": 'family = "binomial"', "poisson": 'family = "poisson"'},
    "posterior": {
        "probability": 'summary = "probability"\ncoefficient = ["x"]\nat = [1]',
        "quantile": 'summary = "quantile"\ncoefficient = ["x"]\nat = [0.3]',
        "interval": 'summary = "interval"\ncoefficient = ["x"]\nat = [0.9]',
    },
}
FORMULAS = {"model": GROUPS, "posterior": LINE}


def sections() -> Iterator[tuple[str, str, str]]:
    for kind, ways in RELEASES.items():
        for way, more in ways.items():
            head = f'[[release]]\nname = "{way}"\nkind = "{kind}"\nformula = "{FORMULAS[kind]}"\nepsilon = 60\n{more}'
            yield kind, way, head


def test_every_kind_of_a_plan_that_protects_rows_is_here() -> None:
    with_formula = {kind for kind, section in KINDS.items() if "formula" in section.model_fields}
    assert with_formula == set(RELEASES)
    assert set(RELEASES["posterior"]) == set(get_args(get_type_hints(PosteriorSection)["summary"]))
    assert families() == set(RELEASES["model"])


@pytest.mark.parametrize(("kind", "way", "section"), list(sections()), ids=[way for _, way, _ in sections()])
def test_nothing_in_the_files_of_a_plan_depends_on_a_response(kind, way, section, record, tmp_path) -> None:
    def release(folder: Path, value: Any) -> tuple[Any, Any]:
        folder.mkdir()
        upper = 1 if way == "binomial" else 2
        data = replaced(value) if value != "as it was" else base()
        pq.write_table(pa.table(data | {"y": pa.array(data["y"], pa.float64())}), folder / "rows.parquet")
        (folder / "plan.toml").write_text(PLAN.replace("upper = 2", f"upper = {upper}") + section, encoding="utf-8")
        found = outcome(lambda: len(run(folder / "plan.toml").publications))
        tables = {path.name: repr(pq.read_table(path).to_pylist()) for path in sorted(folder.glob("out/**/*.parquet"))}
        assert tables
        return (found, tables), None

    told = record(lambda: release(tmp_path / "first", "as it was"))
    for value in (None, float("nan"), float("inf"), 1e308, 0.4):
        again = record(lambda value=value: release(tmp_path / str(value), value), given=told)
        assert again.public == told.public, value
