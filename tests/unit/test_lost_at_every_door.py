"""No door spends from a ledger that lost lines: all that release (`release_doors`), and all commands that take one.

Doors and commands are listed from the registries of the code. What desks do is in `desk/test_lost_ledger.py`, plans are
in `tests/plan/test_lost_ledgers.py`, and both engines of a ledger in `tests/ledger/test_anchors.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import discreet as dc
import release_doors
from discreet.cli.app import app
from discreet.ledger import Ledger
from discreet.ledger.anchors import LostLedger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.release.account import Account

DATASET = "lost"


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """The place of a ledger that is gone, and that this user has seen."""
    return lose(tmp_path / "ledger.db")


def lose(where: Path) -> Path:
    with Ledger.open(where) as ledger:
        ledger.open_budget(dataset=DATASET, unit=Workers(), total=Pure(200))
        ledger.charge(dataset=DATASET, unit=Workers(), release="first", loss=Pure(1))
    for path in where.parent.glob(f"{where.name}*"):
        path.unlink()
    return where


def exchange(where: Path) -> Path:
    """Another ledger takes the place, one of other data."""
    lose(where)
    beside = where.with_name("beside.db")
    with Ledger.open(beside) as ledger:
        ledger.open_budget(dataset="others", unit=Workers(), total=Pure(200))
    return beside.rename(where)


def test_every_door_is_listed() -> None:
    for what, there, listed in release_doors.registered():
        assert there == listed, what


@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
@pytest.mark.parametrize("door", release_doors.doors())
def test_no_door_spends_from_a_ledger_that_was_exchanged(door: str, tmp_path: Path) -> None:
    where = exchange(tmp_path / "ledger.db")
    budget = release_doors.BUDGETS.get(door, 200)
    with pytest.raises(LostLedger):
        release_doors.doors()[door](ledger=where, dataset=DATASET, budget=budget, name="second")
    with Ledger.open(where, read_only=True) as ledger:
        assert {line.dataset for line in ledger.entries()} == {"others"}


@pytest.mark.parametrize("door", ["session.count", "session.flows", "release_mixed", "posterior_probability"])
def test_no_door_makes_a_ledger_where_one_was(door: str, lost: Path) -> None:
    """One door of each kind of data; the place is looked at where every ledger is opened."""
    with pytest.raises(LostLedger):
        release_doors.doors()[door](ledger=lost, dataset=DATASET, budget=200, name="second")
    assert not lost.exists()


def test_a_session_says_that_it_does_not_know(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    session = dc.Session(release_doors.jobs(), unit=Workers(), budget=4, ledger=where, dataset=DATASET)
    session.count("place").release(epsilon=1)
    assert str(session.remaining) == "epsilon=3" and "epsilon=3" in repr(session)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.ledger.anchors.missing", lambda page, anchors: [_lacking(session.account)])
        with pytest.raises(LostLedger):
            _ = session.remaining
        for shown in (repr(session), repr(session.account)):
            assert "not known" in shown and "epsilon" not in shown
        with pytest.raises(LostLedger):
            session.count("place").release(epsilon=1)
    assert str(session.remaining) == "epsilon=3"


def _lacking(account: Account) -> Any:
    from discreet.ledger.anchors import Lacking

    [place] = account.ledger.places
    return Lacking(place.last()[0], place, "shorter", 0)


ROWS = {"y": [0.1, 0.9] * 30, "x": [0, 1] * 30}
PLAN = """
[data]
source = "jobs.csv"
workplaces = "places.csv"
[data.schema]
workplace_attributes = ["place"]
[data.schema.worker_attributes]
sex = ["F", "M"]
[unit]
kind = "workers"
[budget]
epsilon = 200
ledger = "ledger.db"
dataset = "lost"
[[release]]
name = "second"
kind = "count"
by = ["place"]
epsilon = 2
[output]
folder = "out"
"""


def plan(folder: Path) -> str:
    (folder / "jobs.csv").write_text("workplace,worker,sex\na,1,F\nb,2,M\n")
    (folder / "places.csv").write_text("workplace,place\na,01\nb,02\n")
    (folder / "plan.toml").write_text(PLAN)
    return str(folder / "plan.toml")


def rows(folder: Path) -> str:
    lines = [f"{y},{x}" for y, x in zip(ROWS["y"], ROWS["x"], strict=True)]
    (folder / "rows.csv").write_text("\n".join(["y,x", *lines]) + "\n")
    return str(folder / "rows.csv")


def released(folder: Path) -> str:
    """A release that another ledger paid for."""
    (folder / "plan.toml").write_text("")
    plan(folder)
    text = PLAN.replace("ledger.db", "good.db").replace('dataset = "lost"', 'dataset = "good"')
    (folder / "good.toml").write_text(text)
    dc.run_plan(folder / "good.toml")
    return str(folder / "out")


PEOPLE = ("--reason", "why", "--by", "anna", "--confirmed-by", "rita")
COMMANDS: dict[str, Callable[[Path, str], list[str]]] = {
    "run": lambda folder, _: [plan(folder)],
    "check": lambda folder, _: [plan(folder)],
    "fit": lambda folder, ledger: [
        *("y ~ x", rows(folder), "--epsilon", "2", "--bounds", "0", "1", "--public", "x"),
        *("--ledger", ledger, "--dataset", DATASET, "--budget", "200"),
    ],
    "verify": lambda folder, ledger: [f"{released(folder)}/bundle.zip", "--ledger", ledger],
    "publish": lambda folder, ledger: [released(folder), "--out", str(folder / "to"), "--ledger", ledger],
    "site": lambda folder, ledger: [released(folder), "--out", str(folder / "to"), "--ledger", ledger],
    "synthesize": lambda folder, ledger: [
        released(folder),
        "--ledger",
        ledger,
        "--out",
        str(folder / "synthetic.parquet"),
    ],
    "audit identification": lambda folder, ledger: [released(folder), "--ledger", ledger],
    "ledger show": lambda _, ledger: [ledger],
    "ledger verify": lambda _, ledger: [ledger],
    "ledger budget": lambda _, ledger: [ledger, DATASET, "--epsilon", "300", *PEOPLE],
    "ledger backup": lambda folder, ledger: [ledger, str(folder / "copy.db")],
    "ledger restore": lambda folder, ledger: [short(folder), ledger],
}
"""How each command that takes a ledger is called."""

NO_LEDGER = {
    "plan new": "writes the name of a ledger into a plan",
    "plan declare": "writes into a plan",
    "ledger declare-loss": "is the way out",
}


def short(folder: Path) -> str:
    """A copy of before the last line."""
    copy = folder / "short.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with Ledger.open(copy) as ledger:
            ledger.open_budget(dataset=DATASET, unit=Workers(), total=Pure(200))
    return str(copy)


def commands(group: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if not hasattr(group, "commands"):
        return {" ".join(path): group}
    return {name: each for key, one in group.commands.items() for name, each in commands(one, (*path, key)).items()}


def test_every_command_that_takes_a_ledger_is_listed() -> None:
    every = commands(typer.main.get_command(app))
    takes = {
        name
        for name, command in every.items()
        if any(each.name == "ledger" or each.metavar in ("LEDGER", "PLAN") for each in command.params)
    }
    assert takes == set(COMMANDS) | set(NO_LEDGER)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_takes_a_lost_ledger_for_an_empty_one(name: str, tmp_path: Path) -> None:
    ledger = lose(tmp_path / "ledger.db")
    asked = COMMANDS[name](tmp_path, str(ledger))
    done = CliRunner().invoke(app, [*name.split(), *asked])
    assert done.exit_code != 0
    told = f"{done.output}{done.exception}"
    assert "declare-loss" in told or (name == "check" and "not known" in told), told
    assert not ledger.exists() and "epsilon=200 is left" not in told


def test_check_for_programs_says_null(tmp_path: Path) -> None:
    lose(tmp_path / "ledger.db")
    done = CliRunner().invoke(app, ["check", plan(tmp_path), "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 2 and told["remaining_after"] is None and told["budget"]["spent"] is None
