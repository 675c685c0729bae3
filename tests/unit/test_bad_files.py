"""Files that are not what a door takes: every refusal says what was asked, what is possible and the next step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data.readers.lodes import read_lodes_wac
from discreet.data.readers.m3 import read_m3
from discreet.data.readers.qcew import read_qcew
from discreet.data.readers.qwi import read_qwi
from discreet.words.errors import DiscreetError

SCHEMA = dc.Schema(["place"])
BAD = ("missing", "folder", "empty", "garbage", "another program's", "half", "locked")
COLUMNS = {"workplace": ["a", "b"], "worker": ["1", "2"], "place": ["x", "y"], "g": ["a", "b"], "x": [1.0, 2.0]}
LINE = {"x": np.arange(900.0) % 7, "y": np.arange(900.0) % 5}
PAID: dict[str, Any] = {"dataset": "d", "budget": 40}

DATA: dict[str, Callable[[Path], Any]] = {
    "read_jobs": lambda file: dc.read_jobs(file, schema=SCHEMA),
    "read_jobs, workplaces": lambda file: dc.read_jobs(COLUMNS, schema=SCHEMA, workplaces=file),
    "read_histories": lambda file: dc.read_histories(file, schema=SCHEMA, quarters=["2024-Q1", "2024-Q2"]),
    "mixed": lambda file: dc.mixed("x ~ 1 + (1 | g)", file),
    "release_mixed": lambda file: dc.release_mixed("x ~ 1", file, epsilon=4, bounds=(0, 1)),
    "posterior_interval": lambda file: dc.posterior_interval("x ~ 1", file, "(Intercept)", epsilon=4),
    "objective_perturbation": lambda file: dc.objective_perturbation(
        "x ~ 1", file, bounds=(0, 1), norm=2, penalty=1, epsilon=1
    ),
    "exception_report": dc.exception_report,
    "forecast_panel": dc.forecast_panel,
    "changes_between": lambda file: dc.changes_between(file, file),
    "read_lodes_wac": read_lodes_wac,
    "read_qwi": read_qwi,
    "read_qcew": read_qcew,
    "read_m3": read_m3,
    "synthetic_responses": lambda file: dc.synthetic_responses(file, COLUMNS),
}
LEDGERS: dict[str, Callable[[Path], Any]] = {
    "Ledger.open": lambda file: dc.Ledger.open(file, read_only=True),
    "posterior_interval, ledger": lambda file: dc.posterior_interval(
        "y ~ x", LINE, "x", epsilon=40, ledger=file, **PAID
    ),
}
TEXTS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "read_plan": ("toml", dc.read_plan),
    "check_plan": ("toml", dc.check_plan),
    "run_plan": ("toml", dc.run_plan),
    "schema": ("json", lambda file: dc.read_jobs(COLUMNS, schema=file)),
    "synthesize": ("json", lambda file: dc.synthesize(file, file.parent / "out")),
}
DOORS = [(name, "parquet", door) for name, door in DATA.items()]
DOORS += [(f"{name}, {ending}", ending, DATA[name]) for name in ("read_jobs", "mixed") for ending in ("csv", "duckdb")]
DOORS += [(name, "db", door) for name, door in LEDGERS.items()]
DOORS += [(name, ending, door) for name, (ending, door) in TEXTS.items()]


@pytest.fixture(scope="module")
def files() -> Iterator[Path]:
    """A folder of bad files, each under every ending; another user may look into it, as not into pytest's folders."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield filled(Path(name))


def filled(folder: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), folder / "whole")
    whole = (folder / "whole").read_bytes()
    with sqlite3.connect(folder / "other") as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    contents = {
        "empty": b"",
        "garbage": np.random.default_rng(1).bytes(4000),
        "another program's": (folder / "other").read_bytes(),
        "half": whole[: len(whole) // 2],
        "locked": b"x,y\n1,2\n",
    }
    for ending in ("parquet", "csv", "duckdb", "db", "toml", "json"):
        (folder / f"folder.{ending}").mkdir()
        for name, content in contents.items():
            (folder / f"{name}.{ending}").write_bytes(content)
        (folder / f"locked.{ending}").chmod(0)
    (folder / "closed").mkdir(mode=0)
    return folder


@contextmanager
def nobody() -> Iterator[None]:
    """The rights of a user who has none; root reads everything."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def poor(door: Callable[[Path], Any], file: Path) -> str | None:
    try:
        door(file)
    except DiscreetError as error:
        whole = [fault for fault in error.faults if fault.about and fault.asked and fault.possible and fault.remedy]
        return None if error.faults and len(whole) == len(error.faults) else f"{file.name}: {error}"
    except Exception as error:
        return f"{file.name}: {type(error).__name__}: {error}"
    return f"{file.name} was taken"


@pytest.mark.walk
@pytest.mark.parametrize(("name", "ending", "door"), DOORS, ids=[name for name, *_ in DOORS])
def test_refusals_of_files_have_three_parts(name: str, ending: str, door: Callable[[Path], Any], files: Path) -> None:
    kinds = [kind for kind in BAD if not (ending == "db" and kind in ("missing", "empty"))]  # there a ledger is made
    found = [poor(door, files / f"{kind}.{ending}") for kind in kinds if kind != "locked"]
    with nobody():  # last: modules that a door loads may be closed to this user
        found += [poor(door, files / f"locked.{ending}"), poor(door, files / "closed" / f"file.{ending}")]
    assert not list(filter(None, found))


def test_a_rich_refusal_is_told_from_a_poor_one(tmp_path: Path) -> None:
    def refusing(error: Exception) -> Callable[[Path], Any]:
        def door(file: Path) -> None:
            raise error

        return door

    assert poor(lambda file: file, tmp_path) and poor(refusing(OSError()), tmp_path)
    assert poor(refusing(DiscreetError("It is so. It must not. Mend it.", about="data")), tmp_path)
    assert poor(refusing(DiscreetError("It is so.", "It must not.", "Mend it.")), tmp_path)
    assert not poor(refusing(DiscreetError("It is so.", "It must not.", "Mend it.", about="data")), tmp_path)
