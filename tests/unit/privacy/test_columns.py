"""Public columns are declared, and no column is public for one release and protected by another."""

from __future__ import annotations

import json
import sqlite3
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.ledger import Ledger
from discreet.models.bayes.probability import posterior_probability
from discreet.models.linear.private import release_mixed
from discreet.privacy.losses import Pure
from discreet.privacy.units import Groups, Rows, first_said
from discreet.release.account import Account
from discreet.words.errors import DiscreetError, FormulaError, PrivacyError
from faults_of import about

N = 400
DATA = {
    "jcr": np.linspace(0, 2, N),
    "jdr": np.linspace(2, 0, N),
    "quarter": np.arange(N) % 8,
    "county": np.array([f"c{i % 9}" for i in range(N)]),
}


def account(unit: Rows, ledger: Ledger) -> Account:
    ledger.open_budget(dataset="flows", unit=unit, total=Pure(9), allow_second_unit=True)
    return Account(ledger=ledger, dataset="flows", unit=unit)


def ask(formula: str, unit: Rows, ledger: Ledger, public: list[str]) -> None:
    release_mixed(formula, DATA, epsilon=1, public=public, account=account(unit, ledger))


JCR, JDR, BOTH = Rows(0, 2, response="jcr"), Rows(0, 2, response="jdr"), Rows(0, 2, response=["jcr", "jdr"])


def test_units_of_two_responses_are_two() -> None:
    keys = [
        unit.key for unit in (Rows(0, 2), JCR, JDR, BOTH, Rows(0, 3, response="jcr"), Rows(0, 2, response="jcr,jdr"))
    ]
    assert keys[:4] == ["rows(0,2)", "rows(0,2,jcr)", "rows(0,2,jdr)", "rows(0,2,jcr,jdr)"]
    assert len({*keys}) == len(keys)
    assert "one row's response jcr, whatever it holds, or none (bounds [0, 2])" in str(JCR)
    assert "one row's responses jcr and jdr, whatever they hold, or none (bounds [0, 2])" in str(BOTH)
    assert "one row's response, whatever it holds, or none (bounds [0, 2])" in str(Rows(0, 2))
    assert first_said(JCR) == "two data sets that differ in one row's response jcr, which lies in [0, 2]"
    assert first_said(BOTH) == "two data sets that differ in one row's responses jcr and jdr, which lie in [0, 2]"
    many = "two data sets that differ in the responses jcr of all rows with one area, which lie in [0, 2]"
    assert first_said(Groups("area", 0, 2, "jcr")) == many
    for wrong in ("", ["jcr", "jcr"], [3]):
        with pytest.raises(PrivacyError) as refused:
            Rows(0, 2, response=wrong)  # type: ignore[arg-type]
        assert refused.value.about == "response"


@pytest.mark.parametrize("first", ["public", "protected"])
def test_two_responses_are_not_each_public_for_the_other(first: str) -> None:
    asked = [("jcr ~ 1 + (1 | county)", JCR, ["county"]), ("jdr ~ jcr + (1 | county)", JDR, ["jcr", "county"])]
    with Ledger.in_memory() as ledger:
        one, other = asked if first == "protected" else reversed(asked)
        ask(*one[:2], ledger, one[2])
        spent = ledger.spent("flows", one[1])
        with pytest.raises(PrivacyError, check=about("public")) as refused:
            ask(*other[:2], ledger, other[2])
        assert refused.value.about == "public"
        assert ledger.spent("flows", one[1]) == spent and not ledger.spent("flows", other[1])
        # Without the column, and for another data set, nothing is wrong.
        ask("jdr ~ 1 + (1 | county)" if first == "protected" else "jdr ~ quarter", JDR, ledger, ["county", "quarter"])


def test_the_level_names_of_a_summary_count_as_public_too() -> None:
    with Ledger.in_memory() as ledger:
        county = Rows(0, 2, response="county")
        posterior_probability("jcr ~ quarter + county", DATA, "quarter", at=0, epsilon=1, public=["county"],
                              partitions=2, account=account(JCR, ledger))  # fmt: skip
        with pytest.raises(PrivacyError, check=about("public")):
            posterior_probability("jcr ~ quarter", DATA, "quarter", at=0, epsilon=1, partitions=2,
                                  account=account(county, ledger))  # fmt: skip


def test_several_responses_share_one_promise() -> None:
    with Ledger.in_memory() as ledger:
        for response in ("jcr", "jdr"):
            ask(f"{response} ~ 1 + (1 | county)", BOTH, ledger, ["county"])
        assert ledger.spent("flows", BOTH) == Pure(2)
        with pytest.raises(PrivacyError, check=about("public")):
            ask("jcr ~ jdr + (1 | county)", BOTH, ledger, ["jdr", "county"])
        with pytest.raises(PrivacyError, check=about("public")):
            ask("jcr ~ jdr + (1 | county)", BOTH, ledger, ["county"])


UNDECLARED = [
    "jcr ~ jdr",
    "jcr ~ quarter:jdr",
    "jcr ~ 1 + (1 | jdr)",
    "jcr ~ 1 + (1 | county:jdr)",
    "jcr ~ 1 + (1 | county/jdr)",
    "jcr ~ 1 + (jdr | county)",
    "jcr ~ log(jdr)",
    "jcr ~ C(jdr)",
    "jcr ~ poly(jdr, 2) + quarter",
]


@pytest.mark.parametrize("method", ["moments", "strict", "paper"])
@pytest.mark.parametrize("formula", UNDECLARED)
def test_an_undeclared_column_is_refused_whatever_it_holds(formula: str, method: str) -> None:
    """Before the data are looked at: they need not even be there."""
    words = set()
    for data in (DATA, DATA | {"jdr": DATA["county"]}, {}, "no-such-file.parquet"):
        with pytest.raises(PrivacyError) as refused:
            release_mixed(formula, data, epsilon=1, public=["county", "quarter"], method=method)  # type: ignore[arg-type]
        words.add(str(refused.value))
    assert len(words) == 1 and "'jdr' is in the formula and is not declared public" in words.pop()


def test_the_guarantee_names_the_public_columns() -> None:
    fit = release_mixed("jcr ~ quarter + (1 | county)", DATA, epsilon=1, public=["county", "quarter", "unused"])
    assert "The design is public: columns quarter, county, and the number of rows" in str(fit.guarantee)
    assert fit.entry.payload["details"]["public"] == ["county", "quarter"]
    assert fit.entry.payload["details"]["response"] == ["jcr"]


def test_a_unit_without_a_name_releases_nothing() -> None:
    with Ledger.in_memory() as ledger, pytest.raises(PrivacyError, check=about("formula")):
        ask("jcr ~ quarter", Rows(0, 2), ledger, ["quarter"])


OLD = Path(__file__).with_name("ledger-0.1.0.json")


def test_a_ledger_of_the_version_before_is_whole_and_readable(tmp_path: Path) -> None:
    """Units named no response then."""
    rows = json.loads(OLD.read_text(encoding="utf-8"))
    assert all(one["hash"] == other["previous"] for one, other in pairwise(rows))
    Ledger.open(tmp_path / "ledger.db").close()
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(
            f"INSERT INTO discreet_ledger ({', '.join(rows[0])}) VALUES ({marks})", [list(row.values()) for row in rows]
        )
    database.close()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert str(ledger.verify()).startswith("intact: 3 entries")
        assert ledger.remaining("flows", Rows(0, 2)) == Pure(3)
        with pytest.raises(DiscreetError, check=about("unit")):
            ledger.open_budget(dataset="flows", unit=JCR, total=Pure(4))


def test_a_column_that_the_formula_makes_is_not_called_undeclared() -> None:
    data = {"y": [0.1, 0.4] * 20, "x": [1.0, 2.0, 3.0, 4.0] * 10, "g": list("ab") * 20}
    with pytest.raises(FormulaError):
        variances = {"g": 0.1, "Residual": 0.1}
        dc.release_draw(
            "y ~ I(x^2) + (1 | g)", data, sd=1, variances=variances, rho=1, public=["x", "g"], bounds=(0, 1)
        )
    with pytest.raises(FormulaError):
        dc.release_mixed("y ~ I(x^2) + (1 | g)", data, epsilon=1, public=["x", "g"], bounds=(0, 1))
