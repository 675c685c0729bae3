"""What has no role is refused before it is paid, at every function that releases, in words that no row decides."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data_check import check_data
from discreet.ledger import Ledger
from discreet.models.formula.roles import Roles
from discreet.models.linear.private.owner import look
from discreet.release.question import releases
from discreet.words.errors import DiscreetError, PrivacyError
from faults_of import about

SOURCE = Path(dc.__file__).parent
ROWS = 60
RNG = np.random.default_rng(0)
BASE: dict[str, Any] = {
    "y": RNG.uniform(0, 1, ROWS),
    "x": RNG.normal(size=ROWS),
    "g": [f"g{i % 4}" for i in range(ROWS)],
}
ODD: dict[str, list[Any]] = {
    "text": [f"v{i % 3}" for i in range(ROWS)],
    "dates": [datetime.date(2024, 1 + i % 12, 1) for i in range(ROWS)],
    "truths": [bool(i % 2) for i in range(ROWS)],
    "missing": [None] * ROWS,
    "numbers and words": ["1.5" if i % 3 else "b" for i in range(ROWS)],
    "numbers": [1.5 + i for i in range(ROWS)],
}
SUMMARIES: dict[str, dict[str, Any]] = {
    "posterior_probability": {"coefficient": "x", "at": 0.5, "epsilon": 4},
    "posterior_quantile": {"coefficient": "x", "probability": 0.5, "epsilon": 4},
    "posterior_interval": {"coefficient": "x", "level": 0.9, "epsilon": 4},
    "objective_perturbation": {"bounds": (0, 1), "norm": 3, "penalty": 1, "epsilon": 4},
}
"""Functions whose columns may be protected: a predictor is public or numbers."""

MODELS: dict[str, dict[str, Any]] = {
    "release_mixed": {"bounds": (0, 1), "epsilon": 4},
    "release_draw": {"bounds": (0, 1), "variances": {"Residual": 0.03, "g": 0.01}, "sd": 1},
    "release_audited_draw": {"bounds": (0, 1), "prior": dc.Prior(), "audited": 4},
}
"""Functions all of whose columns are public, but for the response."""


def functions() -> dict[str, Any]:
    """Every function that was made by `releases`, wherever it is."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        if "@releases" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            module = vars(importlib.import_module(".".join(parts)))
            found |= {name: each for name, each in module.items() if hasattr(each, "ask") and hasattr(each, "check")}
    return found


ALL = functions()


def test_every_function_that_releases_is_tried_here() -> None:
    assert callable(releases) and ALL.keys() == SUMMARIES.keys() | MODELS.keys()


def csv(rows: dict[str, Any], folder: Path) -> Any:
    pd.DataFrame(rows).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def parquet(rows: dict[str, Any], folder: Path) -> Any:
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    return folder / "rows.parquet"


UNTYPED: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "csv": csv,
    "lists": lambda rows, folder: rows,
    "objects": lambda rows, folder: pd.DataFrame(rows).astype({"z": object}),
}
TYPED: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "parquet": parquet,
    "arrow": lambda rows, folder: pa.table(rows),
    "pandas": lambda rows, folder: pa.table(rows).to_pandas(types_mapper=pd.ArrowDtype),
}


def refusal(name: str, data: Any, folder: Path, formula: str = "y ~ x + z", **more: Any) -> DiscreetError:
    """The refusal of a release, after which nothing is spent."""
    known = SUMMARIES.get(name) or MODELS[name]
    random = " + (1 | g)" if name in MODELS else ""
    asked = {"public": ["g", *(["x"] if name in MODELS else [])], **known, **more}
    coefficient = [asked.pop("coefficient")] if "coefficient" in asked else []
    ledger = folder / "ledger.db"
    with pytest.raises(DiscreetError) as caught:
        budget = dc.Concentrated(4) if name == "release_draw" else 4
        ALL[name](formula + random, data, *coefficient, **asked, ledger=ledger, budget=budget, dataset="d", name="n")
    if ledger.exists():
        with Ledger.open(ledger, read_only=True) as book:
            assert not [entry for entry in book.entries() if entry.kind == "charge"]
    return caught.value


@pytest.mark.parametrize("carrier", UNTYPED)
@pytest.mark.parametrize("name", ALL)
def test_without_types_one_refusal_for_whatever_the_rows_hold(name: str, carrier: str, tmp_path: Path) -> None:
    said = set()
    for odd in ODD.values():
        caught = refusal(name, UNTYPED[carrier]({**BASE, "z": odd}, tmp_path), tmp_path)
        assert "'z'" in str(caught) and caught.about in ("numbers", "public")
        said.add(str(caught))
    assert len(said) == 1


@pytest.mark.parametrize("carrier", TYPED)
@pytest.mark.parametrize("name", ALL)
def test_a_type_is_not_that_of_a_role(name: str, carrier: str, tmp_path: Path) -> None:
    """Also if it is declared: numbers of another type, a response that holds none."""
    for kind in ("text", "dates", "truths", "missing"):
        data = TYPED[carrier]({**BASE, "z": ODD[kind]}, tmp_path)
        assert "'z'" in str(refusal(name, data, tmp_path))
        assert "z" in str(refusal(name, data, tmp_path, formula="z ~ x"))
        if name in SUMMARIES:
            assert refusal(name, data, tmp_path, numbers=["z"]).about == "numbers"


@pytest.mark.parametrize("name", SUMMARIES)
def test_declared_numbers_are_read_as_numbers_whatever_they_hold(name: str, tmp_path: Path) -> None:
    """What is declared is priced, and no entry decides whether."""
    for odd in ODD.values():
        for carrier in UNTYPED.values():
            rows = {key: [*value] * 50 for key, value in {**BASE, "z": odd}.items()}
            asked = {key: value for key, value in SUMMARIES[name].items() if key != "coefficient"}
            coefficient = ["x"] if "coefficient" in SUMMARIES[name] else []
            data = carrier(rows, tmp_path)
            assert ALL[name].check("y ~ x + z", data, *coefficient, **asked, numbers=["x", "z"]).expected is not None


@pytest.mark.parametrize(("numbers", "public"), [("z", []), (["y"], []), (["z"], ["z"]), ([1], [])])
def test_a_column_has_one_role(numbers: Any, public: list[str]) -> None:
    with pytest.raises(PrivacyError, check=about("numbers")):
        ALL["posterior_probability"].check(
            "y ~ z", {**BASE, "z": BASE["x"]}, "z", at=1, epsilon=1, numbers=numbers, public=public
        )


def test_the_response_is_read_the_same_whatever_it_holds() -> None:
    """A list of words in place of the response was refused, and one with a number among them was not."""
    for words in (["a"] * 3_000, ["a", 1.0] * 1_500):
        data = {"y": words, "x": np.linspace(0, 1, 3_000)}
        assert ALL["posterior_probability"].check("y ~ x", data, "x", at=1, epsilon=1).expected is not None


def test_the_owner_is_told_of_columns_that_would_count_as_nothing(tmp_path: Path) -> None:
    for kind in ("text", "dates", "truths", "missing"):
        data = csv({**BASE, "z": ODD[kind]}, tmp_path)
        notes = look(data, response="y", public=[], numbers=["z"], bounds=(0, 1))
        assert [note.fault for note in notes if "'z'" in note.words] == [True], kind
        found = check_data(data, response="y", numbers=["z"], bounds=(0, 1))
        assert found.refused and any("'z'" in one.said() and one.refused for one in found.findings)
    few = csv({**BASE, "z": [None, *ODD["numbers"][1:]]}, tmp_path)
    assert not check_data(few, response="y", numbers=["z"], bounds=(0, 1)).refused
    assert check_data(csv({**BASE, "z": ODD["text"]}, tmp_path), response="z", bounds=(0, 1)).refused


def test_readings_are_those_of_protected_columns() -> None:
    from discreet.models.formula.formula import read_formula

    model = read_formula("y ~ x + g", needs_random=False)
    assert Roles(["g"], ["x"]).readings(model) == {"y": "response", "x": "response"}
