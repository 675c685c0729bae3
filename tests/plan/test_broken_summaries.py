"""Broken plans of models and posterior summaries, and advice that is a plan's own; nothing is written or spent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.words import faults
from discreet.words.faults import Value
from discreet.words.voices import written

PLAN = """
[data]
source = "rows.parquet"
public = ["x", "g"]

[unit]
kind = "rows"
lower = 0
upper = 10
response = "y"

[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "rows"

[[release]]
name = "one"
KIND
epsilon = 1

[output]
folder = "out"
"""
POSTERIOR = 'kind = "posterior"\nformula = "y ~ x"\nsummary = "probability"\ncoefficient = ["x"]\nat = [0]'
MODEL = 'kind = "model"\nformula = "y ~ x + (1 | g)"'


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    table = {"x": rng.normal(size=400), "g": np.arange(400) % 8, "y": rng.uniform(0, 10, 400)}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    return tmp_path


BROKEN = {
    "a question twice": (POSTERIOR.replace('["x"]', '["x", "x"]'), 22, "'x' is asked about at 0 twice"),
    "a question at one value twice": (POSTERIOR.replace("[0]", "[0, 0.0]"), 22, "Leave one out"),
    "values that do not pair up": (
        POSTERIOR.replace('["x"]', '["x", "(Intercept)"]').replace("[0]", "[0, 1, 2]"),
        23,
        "at = ['0', '1', '2'] has 3 values for 2 coefficients",
    ),
    "an unknown coefficient": (POSTERIOR.replace('["x"]', '["z"]'), 22, "Coefficient 'z' is not in the model"),
    "a unit of tables": (
        'kind = "count"\nby = []',
        19,
        "Use [unit] kind = 'establishments' with alpha = 0.1",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_refused(fault: str, rows: Path, command, contents) -> None:
    kind, line, words = BROKEN[fault]
    schema = "[data.schema]\nworkplace_attributes = []\nworker_attributes = {}\n\n" if "count" in kind else ""
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", kind) + schema, encoding="utf-8")
    _refused(plan, command, contents, line, words)


def test_a_question_at_two_values_is_two_questions(rows: Path, command) -> None:
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", POSTERIOR.replace("[0]", "[0, 1]")), encoding="utf-8")
    assert command("run", plan, "--dry-run")[0] == 0


@pytest.mark.parametrize("kind", [POSTERIOR, MODEL])
def test_two_rows_are_the_formulas_fault(rows: Path, command, contents, kind: str) -> None:
    pq.write_table(pq.read_table(rows / "rows.parquet").slice(0, 2), rows / "rows.parquet")
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", kind), encoding="utf-8")
    _refused(plan, command, contents, 20, "release 'one', formula: ")


@pytest.mark.parametrize("kind", [POSTERIOR, MODEL])
def test_a_tiny_epsilon_is_its_own_fault(rows: Path, command, contents, kind: str) -> None:
    plan = rows / "plan.toml"
    text = PLAN.replace("KIND", kind).replace("epsilon = 1\n", 'epsilon = "1e-300"\n')
    plan.write_text(text, encoding="utf-8")
    line = text[: text.index('"1e-300"')].count("\n") + 1
    _refused(plan, command, contents, line, "release 'one', epsilon: ")


QUANTILE = POSTERIOR.replace("probability", "quantile").replace("[0]", "[0.5]")
INTERVAL = POSTERIOR.replace("probability", "interval").replace("[0]", "[0.9]")
HOPELESS = {
    "an epsilon that is noise alone": (POSTERIOR, ("epsilon = 1\n", 'epsilon = "1e-8"\n'), "An epsilon below 1e-07"),
    "an epsilon that many questions share": (
        POSTERIOR.replace("[0]", "[0, 1, 2]"), ("epsilon = 1\n", 'epsilon = "2e-7"\n'), "ask fewer questions"
    ),
    "a model's epsilon that is noise alone": (MODEL, ("epsilon = 1\n", 'epsilon = "1e-8"\n'), "64 bits"),
    "a probability that rounds to 1": (
        QUANTILE, ("at = [0.5]", "at = [0.99999999999999999999]"), "strictly between 0 and 1"
    ),
    "a level that rounds to 0": (INTERVAL, ("at = [0.9]", 'at = ["1e-400"]'), "strictly between 0 and 1"),
    "no size": (QUANTILE + "\nscale = 1e-320", ("1e-320", "1e-320"), "is not a size"),
    "parts too few for a quantile": (
        QUANTILE + "\npartitions = 3", ("partitions = 3", "partitions = 3"), "A private centre from 3 parts"
    ),
    "parts too few for an interval": (
        INTERVAL + "\npartitions = 3", ("partitions = 3", "partitions = 3"), "A private centre from 3 parts"
    ),
    "a column that is not lagged": (MODEL + '\nlagged = ["z"]', ('lagged = ["z"]', 'lagged = ["z"]'), "names 'z'"),
    "bounds beyond double precision": (
        MODEL, ("lower = 0\nupper = 10", "lower = -1e300\nupper = 1e300"), "are out of reach"
    ),
    "a width below double precision": (MODEL, ("upper = 10", 'upper = "1e-400"'), "are out of reach"),
    "a width lost beside its place": (
        POSTERIOR, ("lower = 0\nupper = 10", "lower = 1e16\nupper = 10000000000000001"), "are out of reach"
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", HOPELESS)
def test_what_no_data_could_mend_is_found_without_them(fault: str, rows: Path, command, contents) -> None:
    """`check` says what `run` says, and says it where there are no data."""
    kind, (old, new), words = HOPELESS[fault]
    plan, text = rows / "plan.toml", PLAN.replace("KIND", kind)
    assert old in text
    text = text.replace(old, new, 1)
    plan.write_text(text, encoding="utf-8")
    line = text[: text.index(new)].count("\n") + 1
    if "reach" in words:
        line = text.splitlines().index("[unit]") + 1
    if "partitions" in kind:
        line = text.splitlines().index("epsilon = 1") + 1
    _refused(plan, command, contents, line, words)
    refusal = command("run", plan)[2].strip()
    (rows / "rows.parquet").unlink()
    code, _, err = command("check", plan)
    assert (code, err.strip()) == (2, refusal)


@pytest.mark.parametrize("kind", [POSTERIOR, MODEL])
def test_rows_that_only_the_data_tell(rows: Path, command, kind: str) -> None:
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", kind), encoding="utf-8")
    code, out, _ = command("check", plan)
    assert code == 0 and "The plan can be run.\n" in out
    assert json.loads(command("check", plan, "--json")[1])["up_to_the_rows"] == []
    path = rows / "rows.parquet"
    pq.write_table(pq.read_table(path).slice(0, 2), path)
    told = [(code, err.strip()) for code, _, err in (command("run", plan), command("check", plan))]
    assert told[0] == told[1] and told[0][0] == 2
    path.unlink()
    assert json.loads(command("check", plan, "--json")[1])["up_to_the_rows"] == ["one"]


def test_no_response_is_refused(rows: Path, command) -> None:
    """What a run says for nothing must not depend on a response."""
    plan, path = rows / "plan.toml", rows / "rows.parquet"
    plan.write_text(PLAN.replace("KIND", MODEL), encoding="utf-8")
    table = pq.read_table(path)
    values = table["y"].to_pylist()
    for value in (11.0, None):
        pq.write_table(table.set_column(2, "y", pa.array([value, *values[1:]])), path)
        assert command("run", plan, "--dry-run")[0] == 0


@pytest.mark.parametrize("value", ["true", "false", "[0]", "[5, 4]", "[0, 11]"])
def test_a_clip_is_a_range_inside_the_bounds(rows: Path, command, contents, value: str) -> None:
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", f"{MODEL}\nclip = {value}"), encoding="utf-8")
    _refused(plan, command, contents, 21, "clip")


def test_a_file_this_user_may_not_read_is_not_called_damaged(rows: Path, command, contents, monkeypatch) -> None:
    plan = rows / "plan.toml"
    plan.write_text(PLAN.replace("KIND", POSTERIOR), encoding="utf-8")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "rows.parquet" and allowed(path, mode))
    _refused(plan, command, contents, 3, "may not be read by this user")


def _refused(plan: Path, command, contents, line: int, words: str) -> None:
    before = contents(plan.parent)
    code, out, err = command("run", plan)
    assert code == 2, err
    assert (words in err, out) == (True, ""), err
    assert f"plan.toml:{line}: " in err, err
    assert contents(plan.parent) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (("region", 1), "['region', 1]"),
        ({"a": [False]}, "{ a = [false] }"),
        (10**5000, "a number of thousands of digits"),
        ([1] * 100, "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... (300 characters)"),
    ],
    ids=["truth", "tuple", "table", "digits", "long"],
)
def test_values_are_written_as_toml(value: object, text: str) -> None:
    assert written(value) == text


def test_tuples_become_lists() -> None:
    assert Value(("x",)).said(faults.PLAN) == "['x']"
    assert Value((True, False)).said(faults.PLAN) == "[true, false]"
