"""What a schema may say, and where it is read from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.data.schema import LODES, Schema
from discreet.simulate import lodes
from discreet.words.errors import DataError
from faults_of import about

TOML = """
workplace_attributes = ["place", "sector"]
establishment = "firm"

[worker_attributes]
sex = ["female", "male"]
grade = [1, 2, 3]
"""


def test_it_is_read_from_toml_and_json(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TOML)
    schema = Schema.read(tmp_path / "schema.toml")
    assert schema == Schema(("place", "sector"), {"sex": ("female", "male"), "grade": (1, 2, 3)}, establishment="firm")
    assert schema.keys == ("firm", "worker")
    (tmp_path / "schema.json").write_text(json.dumps(schema.to_dict()))
    assert Schema.read(tmp_path / "schema.json") == schema


def test_a_table_of_sizes_has_no_worker() -> None:
    assert Schema(["place"], {}, size="jobs").keys == ("workplace", "jobs")


def test_faults_are_told_together() -> None:
    with pytest.raises(DataError) as caught:
        Schema(["sex", "place"], {"sex": ["female", "male"], "grade": [1, "2"], "age": [], "race": ["a", "a"]})
    assert [line.split(". ")[0] for line in str(caught.value).splitlines()] == [
        "Column 'sex' has two roles in the schema",
        "The domain of worker attribute 'grade' has 2 values",
        "The domain of worker attribute 'age' has 0 values",
        "The domain of worker attribute 'race' has 2 values",
    ]


def test_unknown_and_missing_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("schema")):
        Schema.of({"workplace_attributes": [], "employer": "firm"})
    (tmp_path / "schema.toml").write_text("workplace_attributes = [")
    with pytest.raises(DataError, check=about("schema")):
        Schema.read(tmp_path / "schema.toml")
    with pytest.raises(DataError, check=about("schema")):
        Schema.read(tmp_path / "absent.toml")


def test_the_simulator_keeps_to_its_schema() -> None:
    assert LODES.worker_attributes == {
        "sex": lodes.SEX,
        "age": lodes.AGE,
        "race": lodes.RACE,
        "ethnicity": lodes.ETHNICITY,
        "education": lodes.EDUCATION,
    }
