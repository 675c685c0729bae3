"""Plans of every kind in several folders with one ledger: one draw is published, and no plan says more of its own.

Each run draws before the one before it publishes, from a source that gives all of them the same noise, or each its own.
Afterwards a folder gets the files by copying them, never from a draw of its own.
"""

from __future__ import annotations

import itertools
import shutil
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import release_doors
from discreet.ledger import Ledger
from discreet.ledger.draws import Superseded
from discreet.plan.run import run
from discreet.plan.shape import AnyRelease
from discreet.privacy.losses import Pure
from discreet.release import account
from discreet.release.account import Account
from discreet.release.payer import Payer
from discreet.words.errors import DiscreetError, PlanError

FOLDERS = 3
HEAD = """
[data]
source = "../{data}.parquet"
{more}
[unit]
{unit}
[budget]
epsilon = 200
ledger = "../ledger.db"
dataset = "data"
[output]
folder = "out"
bundle = false
[[release]]
name = "r"
kind = "{kind}"
{asked}
"""
PLACES = '[data.schema]\nworkplace_attributes = ["place"]\nworker_attributes = {}\nunused = ["*"]'
AMOUNTS = PLACES + "\nmagnitudes = { pay = { cap = 100 } }"
QUARTERS = 'quarters = ["q1", "q2", "q3"]\n[data.schema]\nworkplace_attributes = ["place"]\nworker_attributes = {}'
ROWS = 'public = ["x", "g"]'
STRONG = 'kind = "establishments"\nalpha = 0.1'
BOUNDED = 'kind = "rows"\nlower = -3\nupper = 3\nresponse = "y"'
KINDS = {
    "count": ("jobs", PLACES, STRONG, 'by = ["place"]\nepsilon = 1'),
    "counts": ("jobs", PLACES, STRONG, 'tables = [["place"], []]\nsplit = ["1/2", "1/2"]\nepsilon = 2'),
    "sum": ("jobs", AMOUNTS, STRONG, 'of = "pay"\nby = ["place"]\nepsilon = 1'),
    "sums": ("jobs", AMOUNTS, STRONG, 'of = "pay"\ntables = [["place"], []]\nsplit = ["1/2", "1/2"]\nepsilon = 2'),
    "flows": ("history", QUARTERS, STRONG, 'quarter = "q2"\nby = ["place"]\nepsilon = 4'),
    "changes": ("history", QUARTERS, STRONG, 'quarters = ["q1", "q2"]\nby = ["place"]\nepsilon = 4'),
    "model": ("rows", ROWS, BOUNDED, 'formula = "y ~ x"\nepsilon = 4'),
    "posterior": (
        "rows",
        ROWS,
        BOUNDED,
        'formula = "y ~ x"\nsummary = "quantile"\ncoefficient = ["x"]\nat = [0.5]\npartitions = 8\nepsilon = 40',
    ),
}


class Fixed:
    """A source that calls itself private and gives the words of a seed."""

    private = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, n: int) -> Any:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


def write(place: Path, kind: str) -> list[Path]:
    """The data, and a plan in each of several folders."""
    data, more, unit, asked = KINDS[kind]
    place.mkdir()
    where = dict(zip(release_doors.PLACES["workplace"], release_doors.PLACES["place"], strict=True))
    tables = {"jobs": release_doors.JOBS, "history": dict(release_doors.HISTORY), "rows": release_doors.rows()}
    tables["history"]["place"] = [where[firm] for firm in tables["history"]["workplace"]]
    pq.write_table(pa.table(tables[data]), place / f"{data}.parquet")
    plans = [place / str(number) / "plan.toml" for number in range(FOLDERS)]
    for plan in plans:
        plan.parent.mkdir()
        plan.write_text(HEAD.format(data=data, more=more, unit=unit, kind=kind, asked=asked), encoding="utf-8")
    return plans


def together(plans: list[Path], monkeypatch: pytest.MonkeyPatch, *, alike: bool) -> tuple[list[Any], list[str], int]:
    """What the runs said, which releases are in their folders, and how many draws there were."""
    errors, waiting, drawn, seeds = [], list(plans), set(), itertools.count(1)
    publish = Account.publish

    def one_more(account: Account, offer: Any, data: Any, folder: Path, *, name: str) -> Any:
        def draw(reading: Any, source: Any) -> Any:
            value = offer.draw(reading, source)
            drawn.add(str(account_values(value)))
            begin()
            return value

        return publish(account, replace(offer, draw=draw), data, folder, name=name)

    def begin() -> None:
        if waiting:
            plan = waiting.pop(0)
            try:
                run(plan)
            except DiscreetError as error:
                errors.append((type(error), str(error), error.about))

    with monkeypatch.context() as here:
        here.setattr(Account, "publish", one_more)
        here.setattr(account, "SystemSource", lambda: Fixed(7 if alike else next(seeds)))
        here.setattr(Payer, "partition_seed", 2)
        begin()
    shown = sorted(str(path.relative_to(plans[0].parents[1])) for plan in plans for path in plan.parent.rglob("r"))
    return errors, shown, len(drawn)


def account_values(value: Any) -> Any:
    return account.fingerprints(value)


def test_every_kind_of_release_is_listed() -> None:
    union, _ = typing.get_args(AnyRelease)
    names = {name for each in typing.get_args(union) for name in typing.get_args(each.model_fields["kind"].annotation)}
    assert names == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_in_several_folders_publish_one_draw_and_compare_none(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for name, alike in (("same", True), ("other", False)):
        plans = write(tmp_path / name, kind)
        errors, shown, draws = together(plans, monkeypatch, alike=alike)
        assert draws == 1 if alike else draws > 1, "the sources did not force it"
        assert [error[0] for error in errors] == [Superseded] * (FOLDERS - 1) and len(set(errors)) == 1
        found[name] = errors, shown
        with Ledger.open(tmp_path / name / "ledger.db", read_only=True) as ledger:
            assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "draw", "draw", "publish"]
            assert ledger.verify()
    assert found["same"] == found["other"] and found["same"][1] == [f"{FOLDERS - 1}/out/r"]
    plans = [tmp_path / "same" / str(number) / "plan.toml" for number in range(FOLDERS)]
    with pytest.raises(PlanError):
        run(plans[0])
    shutil.copytree(plans[-1].parent / "out" / "r", plans[0].parent / "out" / "r", dirs_exist_ok=True)
    assert run(plans[0]).publications.keys() == {"r"}


def test_a_run_that_lost_its_draw_goes_on_where_the_other_ended_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that began to draw last dies: the same command takes a new number and ends."""
    plans = write(tmp_path / "toys", "count")
    publish = Account.publish

    def dies(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    def late(account: Account, offer: Any, data: Any, folder: Path, *, name: str) -> Any:
        def draw(reading: Any, source: Any) -> Any:
            with monkeypatch.context() as dead, pytest.raises(KeyboardInterrupt):
                dead.setattr(Account, "publish", publish)
                dead.setattr(Ledger, "publish", dies)
                run(plans[1])
            return offer.draw(reading, source)

        return publish(account, replace(offer, draw=draw), data, folder, name=name)

    with monkeypatch.context() as here, pytest.raises(Superseded):
        here.setattr(Account, "publish", late)
        run(plans[0])
    assert run(plans[0]).remaining == Pure(199)
    with Ledger.open(tmp_path / "toys" / "ledger.db", read_only=True) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "draw", "draw", "publish"]
