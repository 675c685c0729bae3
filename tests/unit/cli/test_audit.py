"""`discreet audit verify`: its figures, its exit codes, its refusals; once as the program that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.cli import main

COMMAND = Path(sys.executable).parent / "discreet"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def discreet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return subprocess.CompletedProcess(arguments, int(end.value.code or 0), *capsys.readouterr())

    return run


def test_a_right_mechanism_holds() -> None:
    call = [COMMAND, "audit", "verify", "--mechanism", "polynomial", "--alpha", "0.1", "--epsilon", "2", "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 1.99 <= found["worst_loss"] <= 2.0000001 and found["holds"]


def test_five_percent_less_noise_is_a_violation(discreet: Command) -> None:
    options = ["--alpha", "0.1", "--epsilon", "4", "--cells", "8", "--scale", "0.95"]
    done = discreet("audit", "verify", "--mechanism", "joint-polynomial", *options)
    assert done.returncode == 1
    assert "VIOLATED" in done.stdout and "growing from" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mechanism", "polynomial", "--alpha", "0"], "--alpha 0 protects"),
        (["--mechanism", "polynomial", "--epsilon", "-1"], "--epsilon -1 buys nothing"),
        (["--mechanism", "polynomial", "--alpha", "0.2", "--epsilon", "0.1"], "epsilon > ln(1 + alpha) = 0.1823"),
        (["--mechanism", "smooth-laplace", "--epsilon", "1"], "needs 0 < delta < 1"),
        (["--mechanism", "polynomial", "--scale", "0"], "leaves no noise"),
        (["--mechanism", "gauss"], "joint-polynomial"),
        (["--mechanism", "polynomial", "--cells", "3"], "polynomial with --cells 3"),
        (["--mechanism", "smooth-laplace", "--cells", "2", "--delta", "0.01"], "Only joint-polynomial, joint-rings"),
        ([], "--mechanism"),
    ],
)
def test_wrong_requests_end_with_2(discreet: Command, options: list[str], words: str) -> None:
    done = discreet("audit", "verify", *options)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("mechanism", [pytest.param("smooth-laplace", marks=pytest.mark.full_size), "log-laplace"])
def test_the_papers_constants_are_refused_or_hold_on_a_grid_of_large_alphas(discreet: Command, mechanism: str) -> None:
    done = discreet("audit", "verify", "--grid", "--calibration", "paper", "--mechanism", mechanism, "--json")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert {point["outcome"] for point in points} == {"holds", "refused"}
    assert {point["alpha"] for point in points} >= {"0.1", "1", "3", "10"}
    if mechanism == "smooth-laplace":
        refuted = {(point["alpha"], point["epsilon"], point["delta"]) for point in points if "reach" in str(point)}
        assert {("1", "19.16", "1e-6"), ("0.5", "22.41", "1e-12"), ("3", "8.31", "0.05")} <= refuted


def test_a_grid_finds_too_little_noise(discreet: Command) -> None:
    done = discreet("audit", "verify", "--grid", "--mechanism", "log-laplace", "--scale", "0.95")
    assert done.returncode == 1 and "VIOLATED" in done.stdout and "refused" in done.stdout


def test_what_is_learnt_about_one_worker(discreet: Command) -> None:
    """The figures of docs/how-to/choose.md; with substitution kind and employer are inside one epsilon."""
    ask = ("audit", "verify", "--mechanism", "joint-polynomial", "--alpha", "0.1", "--epsilon", "1", "--cells", "2")
    done = discreet(*ask)
    assert "73.2 % sure that they are there, 88.1 % of their employer, 85.6 % of their kind" in done.stdout, done
    done = discreet(*ask, "--substitution")
    assert "62.0 % sure that they are there, 72.7 % of their employer, 70.1 % of their kind" in done.stdout, done.stdout


def test_requirements_are_computed_and_written(discreet: Command, tmp_path: Path) -> None:
    done = discreet("audit", "requirements", "--json", "--epsilon", "2", "--out", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    found = {row["scheme"]: list(row["verdicts"].values()) for row in json.loads(done.stdout)["schemes"]}
    assert found["input noise infusion"] == ["No"] * 3
    assert found["employer-employee privacy, weak"] == ["Yes", "Yes*", "Yes+"]
    assert "Belief about the size" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options", [["--alpha", "0"], ["--alpha", "x"], ["--epsilon", "-1"], ["--out", "nowhere/a.html"], ["--alpha", "99"]]
)
def test_requirements_refuse_what_makes_no_sense(
    discreet: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = discreet("audit", "requirements", *options)
    assert done.returncode == 2 and options[0] in done.stderr and not list(tmp_path.iterdir())
