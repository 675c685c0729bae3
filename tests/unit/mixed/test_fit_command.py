from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.fit import fit
from discreet.ledger import Ledger
from discreet.models.linear import MixedWarning, mixed
from discreet.models.linear.general_residuals import zeros_of
from discreet.models.linear.generalised import generalised
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.words.errors import BudgetExceeded, DataError, FormulaError, PrivacyError

FORMULA = "y ~ t + (1 | g)"
PUBLIC = ["--public", "t", "--public", "g"]
app = typer.Typer()
app.command()(fit)


@pytest.fixture
def path(panel: dict, tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(pa.table(panel), tmp_path / "panel.parquet")
    return tmp_path / "panel.parquet"


def test_text_and_json(panel: dict, path: Path) -> None:
    expected = mixed(FORMULA, panel, method="ML")
    text = CliRunner().invoke(app, [FORMULA, str(path), "--ml", "--intervals"])
    assert text.exit_code == 0
    assert "maximum likelihood" in text.stdout
    assert "sd_(Intercept)|g" in text.stdout
    done = CliRunner().invoke(app, [FORMULA, str(path), "--ml", "--json"])
    found = json.loads(done.stdout)
    assert found["criterion"] == pytest.approx(expected.criterion)
    assert found["fixed"] == pytest.approx(expected.fixed)


def test_notes_are_in_the_output(panel: dict, tmp_path: Path) -> None:
    noise, group = np.random.default_rng(0).normal(size=400), panel["g"] - 100
    flat = panel | {"y": noise - (np.bincount(group, noise) / np.bincount(group))[group]}
    pyarrow.parquet.write_table(pa.table(flat), tmp_path / "flat.parquet")
    done = CliRunner().invoke(app, [FORMULA, str(tmp_path / "flat.parquet"), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["is_singular"]


def test_contrasts(panel: dict, tmp_path: Path) -> None:
    data = panel | {"k": np.array(list("abc"))[np.arange(len(panel["y"])) % 3]}
    path = tmp_path / "coded.parquet"
    pyarrow.parquet.write_table(pa.table(data), path)
    expected = mixed("y ~ C(k, sum) + (1 | g)", data).beta.tolist()
    for asked in ("sum", "k=sum"):
        done = CliRunner().invoke(app, ["y ~ k + (1 | g)", str(path), "--json", "--contrasts", asked])
        found = json.loads(done.stdout)["fixed"]
        assert list(found) == ["(Intercept)", "k1", "k2"]
        assert list(found.values()) == pytest.approx(expected)
    for wrong in (["--contrasts", "sum", "--contrasts", "k=sum"], ["--contrasts", "sum", "--epsilon", "1"]):
        assert CliRunner().invoke(app, ["y ~ k + (1 | g)", str(path), *wrong]).exit_code == 2


def test_laws_of_residuals(panel: dict, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(1), len(panel["y"])
    order = np.argsort(panel["g"], kind="stable")
    period = np.empty(rows, dtype=np.int64)
    period[order] = np.arange(rows)
    data = panel | {"k": rng.choice(["a", "b"], rows), "p": period}
    path = tmp_path / "laws.parquet"
    pyarrow.parquet.write_table(pa.table(data), path)
    for options, asked in (
        (["--residual-by", "k"], {"residual_by": "k"}),
        (["--series", "g", "--time", "p"], {"series": ["g"], "time": "p"}),
    ):
        done = CliRunner().invoke(app, [FORMULA, str(path), "--json", *options])
        assert json.loads(done.stdout)["criterion"] == pytest.approx(mixed(FORMULA, data, **asked).criterion)
        assert CliRunner().invoke(app, [FORMULA, str(path), "--family", "poisson", *options]).exit_code == 2
    assert CliRunner().invoke(app, [FORMULA, str(path), "--residual-by", "k", "--epsilon", "1"]).exit_code == 2


def test_one_posterior_draw(path: Path) -> None:
    options = ["--draw", "Residual=400, g=400, sd=100", "--bounds", "-200", "200", *PUBLIC]
    checked = CliRunner().invoke(app, [FORMULA, str(path), *options, "--rho", "0.5", "--check", "--json"])
    assert json.loads(checked.stdout)["loss"]["rho"]
    done = CliRunner().invoke(app, [FORMULA, str(path), *options, "--rho", "0.5", "--json"])
    assert len(json.loads(done.stdout)["effects"]["g"]) > 1
    for wrong in (["--epsilon", "1"], ["--ml"], ["--method", "strict"]):
        assert CliRunner().invoke(app, [FORMULA, str(path), *options, *wrong]).exit_code == 2
    for text in ("Residual=1, g=1", "Residual=much"):
        assert CliRunner().invoke(app, [FORMULA, str(path), "--draw", text, *PUBLIC]).exit_code == 2


def test_refusals(path: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["y ~ t", str(path)]).exception, FormulaError)
    assert isinstance(CliRunner().invoke(app, [FORMULA, "absent.csv"]).exception, DataError)


def released(path: Path, *options: str) -> Any:
    return CliRunner().invoke(app, [FORMULA, str(path), "--bounds", "-200", "200", *PUBLIC, *options])


@pytest.mark.parametrize(("method", "basis"), [("moments", "proved"), ("strict", "proved"), ("paper", "as published")])
def test_a_private_release_says_what_it_proves(path: Path, method: str, basis: str) -> None:
    done = released(path, "--epsilon", "1", "--method", method, "--blocks", "8", "--json")
    found = json.loads(done.stdout)
    assert found["method"] == method and found["guarantee"]["basis"] == basis
    assert set(found["random"]["g"]) == {*mixed(FORMULA, path).random[0].levels}
    text = released(path, "--epsilon", "1", "--method", method, "--blocks", "8").stdout
    assert basis in text and "epsilon" in text


def test_the_ledger_pays_and_refuses(path: Path, tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    first = released(
        path, "--epsilon", "0.6", "--ledger", str(book), "--dataset", "flows", "--budget", "1", "--name", "first"
    )
    assert first.exit_code == 0
    left = Ledger.open(book).remaining("flows", Rows(-200, 200, response="y"))
    assert left == Pure("0.4")
    assert isinstance(
        released(path, "--epsilon", "0.5", "--ledger", str(book), "--dataset", "flows").exception, BudgetExceeded
    )
    assert released(path, "--epsilon", "0.4", "--ledger", str(book), "--dataset", "flows").exit_code == 0


def test_a_refused_release_writes_no_ledger(path: Path, tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    paying = ["--epsilon", "1", "--ledger", str(book), "--dataset", "flows"]
    undeclared = CliRunner().invoke(app, [FORMULA, str(path), "--bounds", "0", "1", *paying, "--budget", "1"])
    assert isinstance(undeclared.exception, PrivacyError) and not book.exists()
    none = released(path, *paying)
    assert isinstance(none.exception, PrivacyError) and "no budget" in str(none.exception) and not book.exists()


def test_a_release_without_a_ledger_says_that_nothing_counts_it(path: Path, tmp_path: Path) -> None:
    done = released(path, "--epsilon", "1", "--json")
    assert "counted nowhere" in done.stderr and json.loads(done.stdout)
    book = ["--ledger", str(tmp_path / "book.db"), "--dataset", "flows", "--budget", "1"]
    assert "counted nowhere" not in released(path, "--epsilon", "1", *book).stderr


@pytest.mark.parametrize(
    ("options", "about", "words"),
    [
        (["--bounds", "0", "1"], "public", "discreet: 't' is in the formula and is not declared public."),
        (["--bounds", "0", "1"], "public", "Add --public for each such column if everybody may know it"),
        ([], "bounds", "Give --bounds LOW HIGH;"),
        (["--budget", "2"], "ledger", "Give --ledger ledger.db.\n"),
        (["--bounds", "1", "0"], "bounds", "--bounds 1 0 has no width."),
        (["--bounds", "0", "1", *PUBLIC, "--clip", "0", "2"], "clip", "--clip 0 2 reaches beyond the bounds [0, 1]."),
    ],
)
def test_advice_is_in_the_words_of_the_command(
    path: Path, options: list[str], about: str, words: str, monkeypatch: Any, capsys: Any
) -> None:
    from discreet.cli.app import main

    argv = ["fit", FORMULA, str(path), "--epsilon", "1", *options]
    refused = CliRunner().invoke(app, argv[1:]).exception
    assert isinstance(refused, PrivacyError) and refused.about == about
    monkeypatch.setattr("sys.argv", ["discreet", *argv])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert words in said and f"{about}=" not in said, said


@pytest.mark.parametrize("formula", ["nope ~ t", "nope ~ t + (1 | g)", "y ~ 1 + (1 | one)", "y ~ poly(t, 399)"])
def test_wrong_requests_end_with_two(panel: dict, tmp_path: Path, formula: str, monkeypatch: Any, capsys: Any) -> None:
    from discreet.cli.app import main

    file = tmp_path / "panel.parquet"
    pyarrow.parquet.write_table(pa.table(panel | {"one": ["a"] * len(panel["y"])}), file)
    for private in ([], ["--epsilon", "1", "--bounds", "-200", "200", *PUBLIC, "--public", "one"]):
        monkeypatch.setattr("sys.argv", ["discreet", "fit", formula, str(file), *private])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        assert "Traceback" not in capsys.readouterr().err


def test_private_options_need_a_loss(path: Path) -> None:
    done = released(path)
    assert done.exit_code == 2 and "no loss was named" in " ".join(done.output.split())
    assert released(path, "--epsilon", "1", "--intervals").exit_code == 2
    assert isinstance(released(path, "--epsilon", "much").exception, PrivacyError)
    assert isinstance(released(path, "--epsilon", "1", "--budget", "2").exception, PrivacyError)


@pytest.mark.parametrize("method", ["strict", "paper", "moments"])
def test_check_tells_what_is_not_to_be_trusted_and_pays_nothing(path: Path, tmp_path: Path, method: str) -> None:
    """Red before: the command had no check, and said that effects have no intervals when they were paid for.

    Plans and the desk have `moments` alone.
    """
    book = tmp_path / "book.db"
    payer = ["--ledger", str(book), "--dataset", "panel", "--budget", "3"]
    asked = ["--epsilon", "3", "--method", method, *payer, *(["--blocks", "20"] if method != "moments" else [])]
    told = released(path, *asked, "--check")
    assert told.exit_code == 0 and not book.exists()
    assert ("Effects have no standard errors and no intervals" in told.stdout) == (method != "moments")
    assert told.stdout.startswith("Before paying: estimates are averages") == (method != "moments")
    assert "Expected standard errors" in told.stdout and "Costs epsilon=3" in told.stdout
    as_json = json.loads(released(path, *asked, "--check", "--json").stdout)
    assert as_json["loss"] == {"epsilon": "3"} and as_json["expected"]


def test_check_is_of_a_private_release(path: Path) -> None:
    assert CliRunner().invoke(app, [FORMULA, str(path), "--check"]).exit_code == 2


def test_a_report_shows_what_an_analyst_looks_at(path: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [FORMULA, str(path), "--report", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for part in ("Tests of fixed effects", "normal quantiles", "Effects of g", "Influential rows", "leverage"):
        assert part in page


@pytest.mark.parametrize(
    ("options", "leverage", "left_out"),
    [(["--series", "g", "--time", "p"], False, True), (["--residual-by", "k"], True, False), ([], True, False)],
)
def test_a_report_is_written_whatever_the_law_of_residuals(
    panel: dict, tmp_path: Path, options: list[str], leverage: bool, left_out: bool
) -> None:
    """Red before: autoregressive residuals ended with an error, without estimates and without a page."""
    rng, rows = np.random.default_rng(1), len(panel["y"])
    data = panel | {"k": rng.choice(["a", "b"], rows), "p": np.arange(rows)}
    pyarrow.parquet.write_table(pa.table(data), tmp_path / "laws.parquet")
    page = tmp_path / "new" / "folder" / "report.html"  # made, as by every command that writes a page
    done = CliRunner().invoke(app, [FORMULA, str(tmp_path / "laws.parquet"), "--report", str(page), *options])
    assert done.exit_code == 0 and "(Intercept)" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert ("<th" in text and "leverage" in text.casefold()) and ("hat matrix" in text) == left_out
    assert (">leverage<" in text) == leverage
    assert ("Satterthwaite" in text) == (not options) and ("Tests are normal" in text) == bool(options)


@pytest.mark.parametrize("options", [["--series", "g", "--time", "t"], ["--residual-by", "industry"]])
def test_intervals_of_other_laws_are_refused_before_the_fit_in_the_words_of_the_command(
    path: Path, options: list[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("discreet.cli.fit._fit", lambda *_, **__: pytest.fail("it was fitted"))
    done = CliRunner().invoke(app, [FORMULA, str(path), "--intervals", *options])
    assert done.exit_code == 2 and "confint" not in done.output and "--intervals" in done.output


def test_families_of_counts(panel: dict, tmp_path: Path) -> None:
    counts = {**panel, "n": np.random.default_rng(1).poisson(3, len(panel["y"]))}
    pyarrow.parquet.write_table(pa.table(counts), tmp_path / "counts.parquet")
    given = ["n ~ t + (1 | g)", str(tmp_path / "counts.parquet"), "--family", "poisson"]
    found = json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)
    assert found["family"] == "poisson" and found["rows"] == len(counts["n"])
    page = tmp_path / "report.html"
    done = CliRunner().invoke(app, [*given, "--report", str(page), "--intervals"])  # red before: both were refused
    assert done.exit_code == 0 and "sd_(Intercept)|g" in done.stdout
    text = page.read_text(encoding="utf-8")
    with pytest.warns(MixedWarning, match="singular"):
        known = generalised("n ~ t + (1 | g)", counts, family="poisson")
    assert zeros_of(known) == pytest.approx((np.mean(counts["n"] == 0), np.exp(-known.fitted).mean()))
    assert "Effects of g" in text and "Tests are normal" in text and "of counts are zero; the fit expects" in text
    for wrong in (["--ml"], ["--epsilon", "1", "--weights", "t"]):
        assert CliRunner().invoke(app, [*given, *wrong]).exit_code == 2
