"""A dot is every column that has no other part in the model, whatever else the formula names."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.models.formula.dots import with_every_column
from discreet.models.linear import MixedWarning
from discreet.words.errors import FormulaError
from faults_of import about

COLUMNS = ["y", "x", "z", "two words", "g", "w"]


@pytest.mark.parametrize(
    ("right", "written"),
    [
        (". + (1 | g)", "x + z + `two words` + (1 | g)"),
        (".^2 + (1 | g)", "(x + z + `two words`)^2 + (1 | g)"),
        ("0 + .:x + (1 | g)", "0 + (x + z + `two words`):x + (1 | g)"),
        ("x * . + (1 | g)", "x * (x + z + `two words`) + (1 | g)"),
        ("1 - . + (1 | g)", "1 - (x + z + `two words`) + (1 | g)"),
        (". + I(x^2) + log(z) + (1 | g)", "x + z + `two words` + I(x^2) + log(z) + (1 | g)"),
        (". + x:z + (x || g)", "x + z + `two words` + x:z + (x || g)"),
        (". - z + (. | g)", "x + z + `two words` - z + (x + z + `two words` | g)"),
        (". + (1 | x/g)", "z + `two words` + (1 | x/g)"),
        (". + (1 | g) + (0 + x | z:`two words`)", "x + (1 | g) + (0 + x | z:`two words`)"),
        (". + offset(log(z) + x) + (1 | g)", "`two words` + offset(log(z) + x) + (1 | g)"),
        ("I(x > 0 | z > 0) + . + (1 | g)", "I(x > 0 | z > 0) + x + z + `two words` + (1 | g)"),
    ],
)
def test_what_a_dot_stands_for(right: str, written: str) -> None:
    """Red before: a column that was named anywhere was left out, and a power or product took the last column only."""
    assert with_every_column(f"y ~ {right}", COLUMNS, beside=["w"])[0] == f"y ~ {written}"
    for response in ("log(y)", "I(y^2)", "`y`"):
        assert with_every_column(f"{response} ~ {right}", COLUMNS, beside=["w"])[0] == f"{response} ~ {written}"


@pytest.mark.parametrize(
    ("right", "left_out"),
    [
        (". + (1 | g)", ["g", "w"]),
        (". - g + (1 | g)", ["w"]),
        (". + g + w + (1 | g)", []),
        (". - w + (1 | x:g)", ["x", "g"]),
        ("x + (1 | g)", []),
    ],
)
def test_which_columns_a_note_names(right: str, left_out: list[str]) -> None:
    note = with_every_column(f"y ~ {right}", COLUMNS, beside=["w"])[1]
    assert all((f"{name!r}" in "".join(note)) == (name in left_out) for name in COLUMNS)
    assert bool(note) == bool(left_out)


@pytest.mark.parametrize("right", ["I(.) + (1 | g)", "log(.) + (1 | g)", "x + (1 | .)", "x + offset(.) + (1 | g)"])
def test_a_dot_is_a_term_and_no_value(right: str) -> None:
    data = {"y": [1.0, 2, 4, 3, 5, 7], "x": [0, 1, 2, 0, 1, 2], "g": list("aaabbb")}
    with pytest.raises(FormulaError, check=about("formula")):
        dc.mixed(f"y ~ {right}", data)


def test_a_fit_says_what_its_dot_left_out() -> None:
    rng = np.random.default_rng(5)
    data = {name: rng.normal(size=60) for name in ("x", "z")} | {"g": np.arange(60) % 6, "w": np.ones(60)}
    data["y"] = data["g"] + rng.normal(size=60)
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ .^2 + (1 | g)", data, weights="w")
    assert fit.names == ("(Intercept)", "x", "z", "x:z")
    assert any("'g'" in note and "'w'" in note for note in fit.notes)
    plain = dc.mixed("y ~ (. - w - g)^2 + (1 | g)", data)
    assert plain.names == fit.names and plain.notes == ()
    assert plain.update(". ~ . - x:z").names == ("(Intercept)", "x", "z")
