"""Plans with models and posterior summaries: read before anything is spent, drawn once, published as tables."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.identification import identification
from discreet.ledger import Ledger
from discreet.models.bayes import question
from discreet.plan.run import run
from discreet.privacy.identification import posterior
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Rows
from discreet.release.folder import open_releases
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError
from faults_of import about

PLAN = """
[data]
source = "line.parquet"
public = ["g"]
[unit]
kind = "rows"
lower = -10
upper = 10
response = "y"
[budget]
epsilon = 5
ledger = "ledger.db"
dataset = "line"
[[release]]
name = "p"
kind = "posterior"
formula = "y ~ x"
summary = "probability"
coefficient = ["x"]
at = [1.9, 2.1]
epsilon = 1
[[release]]
name = "q"
kind = "posterior"
formula = "y ~ x"
summary = "quantile"
coefficient = ["x"]
at = [0.5]
epsilon = 2
[[release]]
name = "m"
kind = "model"
formula = "y ~ 1 + (1 | g)"
epsilon = 2
[output]
folder = "out"
"""


@pytest.fixture
def line(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    x, g = rng.standard_normal(12_000), rng.integers(0, 8, 12_000)
    y = np.clip(1 + 2 * x + 0.3 * (g - 3.5) + rng.standard_normal(12_000), -10, 10)
    pq.write_table(pa.table({"x": x, "y": y, "g": [f"g{i}" for i in g]}), tmp_path / "line.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    return plan


def test_answers(line: Path, command) -> None:
    outcome = run(line)
    out = line.parent / "out"
    assert not outcome.remaining
    p, q, m = (pq.read_table(out / name / "research.parquet").to_pylist() for name in ("p", "q", "m"))
    assert p[0]["answer"] < 0.5 < p[1]["answer"]
    assert q[0]["answer"] == pytest.approx(2, abs=0.5)
    effects = {row["term"]: row["estimate"] for row in m if row["effect"] == "random"}
    assert len(effects) == 8
    assert effects["g0"] < effects["g7"]
    about = json.loads((out / "m" / "release.json").read_text())
    assert about["guarantee"]["basis"] == "proved"
    assert about["parameters"]["formula"] == "y ~ 1 + (1 | g)"
    assert (out / "m" / "basic.csv").exists()
    page = (out / "report.html").read_text()
    assert "y ~ 1 + (1 | g)" in page
    found = identification(open_releases(out))
    right = {row["of"]: row["exact"] / row["cases"] for row in found.attacks}
    assert {*right} == {"p", "q", "m"} and not found.notes
    for release, epsilon in (("p", 1), ("q", 2), ("m", 2)):
        assert 0.5 < right[release] < posterior(0.5, epsilon)
    assert "Take any one row" in page
    assert "every count" not in page
    assert "noise was added to the statistics" in page
    code, told, _ = command("verify", outcome.bundle, "--ledger", line.parent / "ledger.db")
    assert code == 0, told
    assert "not checked  m: mechanisms: its 3 parts add up to epsilon=2" in told
    assert "not checked  p: mechanisms" in told
    assert "not checked  draws: that the answers are those of the data plus this noise and that the noise came" in told
    assert "counts are the true ones" not in told
    assert "workplace cell was" not in told
    assert "holds        m: rows" in told
    assert "every published integer" not in about["sampler"]
    assert len(about["parameters"]["mechanism"]["parts"]) == 2


def test_parts_that_do_not_add_up_are_found(line: Path, tmp_path: Path) -> None:
    bundle = run(line).bundle
    with zipfile.ZipFile(bundle) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    about = json.loads(files["m/release.json"])
    about["parameters"]["mechanism"]["squares"] = {"epsilon": "1/100"}
    files["m/release.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    found = {finding.subject: finding for finding in verify_bundle(tmp_path / "b.zip")}
    assert found["m: mechanisms"].wrong
    assert "its parts add up to" in found["m: mechanisms"].words


def test_again_changes_nothing(line: Path, contents) -> None:
    run(line)
    before = contents(line.parent)
    (line.parent / "line.parquet").rename(line.parent / "hidden")
    before = {name: content for name, content in before.items() if name != "line.parquet"}
    run(line)
    assert {name: content for name, content in contents(line.parent).items() if name != "hidden"} == before


def test_basic_form_has_few_digits(line: Path) -> None:
    run(line)
    for row in pq.read_table(line.parent / "out" / "q" / "basic.parquet").to_pylist():
        assert row["answer"] == float(f"{row['answer']:.4g}")


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('formula = "y ~ x"', 'formula = "y ~ x +"', 17, "formula"),
        ('formula = "y ~ x"', 'formula = "y ~ scale(x)"', 17, "every part"),
        ('formula = "y ~ x"', "formula = \"y ~ {open('stolen')}\"", 17, "formula"),
        ('formula = "y ~ x"', 'formula = "y ~ z"', 17, "'z' is not in"),
        ('coefficient = ["x"]', 'coefficient = ["z"]', 19, "Coefficient 'z' is not in the model"),
        ("at = [0.5]", "at = [1.5]", 28, "strictly between 0"),
        ("at = [1.9, 2.1]", "at = []", 20, "it is empty"),
        ("at = [1.9, 2.1]\n", "at = [1.9, 2.1]\npartitions = 90000\n", 21, "at most"),
        ("at = [0.5]\nepsilon = 2", "at = [0.5]\nepsilon = 0.001", 29, "A private centre"),
        ('kind = "rows"\nlower = -10\nupper = 10\nresponse = "y"', 'kind = "workers"', 13, "protect single rows"),
        ("lower = -10", "lower = 10", 5, "has no width"),
        ('(1 | g)"', '(1 | h)"', 4, "'h' is in the formula and is not declared public"),
        ('public = ["g"]\n', "", 2, "Write public = ['g'] under [data]"),
        ('public = ["g"]', 'public = ["g", "y"]', 4, "'y' is declared public, and one row's 'y' is protected"),
        ('response = "y"', 'response = "x"', 33, "Write response = 'y' under [unit]"),
        ('response = "y"\n', "", 5, "response: it is missing"),
    ],
)
def test_refused_before_anything_is_spent(
    line: Path, contents, command, old: str, new: str, place: int, words: str
) -> None:
    line.write_text(line.read_text().replace(old, new, 1))
    before = contents(line.parent)
    code, _, err = command("run", line)
    assert code == 2, err
    assert words in err
    assert f"plan.toml:{place}: " in err, err
    assert contents(line.parent) == before


def test_counts_and_models_do_not_mix(line: Path) -> None:
    line.write_text(
        line.read_text().replace('summary = "quantile"', "", 1).replace('kind = "posterior"', 'kind = "count"')
    )
    with pytest.raises(PlanError):
        run(line)


def test_what_is_drawn_has_the_price_of_the_plan(line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a summary's own price another than the plan's, nothing would be read or spent."""
    own = question.PosteriorQuestion.offer

    def dearer(self: Any, *given: Any, **named: Any) -> Any:
        offer = own(self, *given, **named)
        return replace(offer, guarantee=replace(offer.guarantee, loss=Pure(7)), read=lambda nothing: 1 // 0)

    monkeypatch.setattr(question.PosteriorQuestion, "offer", dearer)
    with pytest.raises(PlanError, check=about("release")):
        run(line)
    assert not (line.parent / "ledger.db").exists()


def test_columns_that_an_earlier_release_protects_are_found_before_anything_is_paid(line: Path, command) -> None:
    """The ledger would refuse them at the charge, after other releases of the plan were paid."""
    unit = Rows(-10, 10, response="y")
    with Ledger.open(line.parent / "ledger.db") as ledger:
        ledger.open_budget(dataset="line", unit=AnyRow(), total=Pure(1))
        hidden = {"response": ["y"], "protected": ["g"], "public": []}
        ledger.charge(dataset="line", unit=AnyRow(), release="before", loss=Pure(1), details=hidden)
        ledger.open_budget(dataset="line", unit=unit, total=Pure(5), allow_second_unit=True)
    for verb in ("check", "run"):
        code, _, err = command(verb, line)
        assert code == 2 and "takes 'g' as public, which 'before' protects" in " ".join(err.split()), err
    with Ledger.open(line.parent / "ledger.db") as ledger:
        assert ledger.remaining("line", unit) == Pure(5)
