"""A desk whose ledger is lost spends nothing, says so on every page, and shows no number that it does not know."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.desk import budgets, planning, sources, worker
from discreet.desk.accounts import Person, local_name
from discreet.desk.app import create
from discreet.desk.book import LedgerView, book_at
from discreet.desk.desk import Desk
from discreet.desk.drafts import first_draft
from discreet.desk.estimates import estimate, judge
from discreet.desk.published import standing
from discreet.desk.store import DeskStore
from discreet.ledger import Ledger
from discreet.ledger.desk_anchors import DeskAnchors
from discreet.words.errors import LedgerError

TWO_PEOPLE = {"reason": "the disk died", "by": "anna", "confirmed_by": "rita"}


@pytest.fixture
def desk(tmp_path: Path, with_data: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    (tmp_path / "desk").mkdir()
    return with_data(tmp_path / "desk")


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The user's notes are gone: the desk's own database has to know."""
    homes = iter(range(100))
    return lambda: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"another{next(homes)}"))


def carry_out(desk: Desk, name: str, epsilon: str = "2") -> str:
    """The last word of the worker of a plan with one release."""
    store, me = DeskStore(desk.database), Person(local_name(), "local", "")
    try:
        release = {"name": name, "kind": "count", "by": ["place"], "epsilon": epsilon}
        draft = first_draft(desk, desk.sources["jobs"]).model_copy(update={"title": name, "release": [release]})
        plan = planning.get(store, planning.save(desk, store, draft, me))
        assert plan is not None
    finally:
        store.close()
    text, run = plan.text.encode(), f"run-{name}"
    worker.main(desk.plan_file(plan.name), desk.runs, run, plan.digest, 1, text)
    return str(json.loads((desk.runs / f"{run}.jsonl").read_text().splitlines()[-1])["kind"])


def spent_on_disk(desk: Desk) -> float:
    """What all releases that anybody can see have cost."""
    manifests = [json.loads(path.read_text()) for path in desk.releases.glob("*/*/release.json")]
    return sum(float(about["guarantee"]["loss"]["epsilon"]) for about in manifests)


def remove(desk: Desk) -> None:
    for path in desk.folder.glob("ledger.db*"):
        path.unlink()


def test_17_of_8_are_not_spent(desk: Desk, homeless: Callable[[], None]) -> None:
    """An earlier ledger is brought back, then the file is removed: the desk's database has seen more."""
    assert carry_out(desk, "first") == "done"
    earlier = desk.folder / "earlier"
    with Ledger.open(desk.ledger, read_only=True) as book:
        book.backup(earlier)
    assert carry_out(desk, "second") == "done"
    assert standing(desk, desk.sources["jobs"])["spent"] == 4
    remove(desk)
    shutil.copy(earlier, desk.ledger)
    homeless()
    assert carry_out(desk, "third") == "failed"
    remove(desk)
    homeless()
    assert carry_out(desk, "fourth") == "failed"
    assert not Path(desk.ledger).exists() and spent_on_disk(desk) == 4
    with pytest.raises(LedgerError):
        Ledger.restore(earlier, desk.ledger, known=desk.traces)
    Ledger.declare_loss(desk.ledger, known=desk.traces, **TWO_PEOPLE)
    assert standing(desk, desk.sources["jobs"])["spent"] == 4
    assert carry_out(desk, "fifth") == "failed" and spent_on_disk(desk) == 4


def test_a_desk_may_have_two_ledgers(desk: Desk, homeless: Callable[[], None]) -> None:
    """Another source, another ledger: what was paid from the first is no reason to refuse."""
    assert carry_out(desk, "first") == "done"
    settings = desk.folder / "desk.toml"
    text = settings.read_text().replace('dataset = "jobs"', 'dataset = "others"', 1)
    settings.write_text('ledger = "second.db"\n' + text)
    homeless()
    again = Desk.open(desk.folder)
    assert carry_out(again, "second") == "done"
    assert again.ledger_trouble == "" and again.book.budget("others") is not None


LOSSES: dict[str, Callable[[Desk], None]] = {
    "removed": remove,
    "emptied": lambda desk: (remove(desk), Path(desk.ledger).touch())[0],
    "damaged": lambda desk: (remove(desk), Path(desk.ledger).write_bytes(b"no database at all"))[0],
    "exchanged": lambda desk: (remove(desk), _another(desk))[0],
}


def _another(desk: Desk) -> None:
    from discreet.privacy.losses import Pure

    place = desk.folder / "other.db"
    with Ledger.open(place) as book:
        unit = desk.sources["jobs"].unit.unit()
        book.open_budget(dataset="jobs", unit=unit, total=Pure(4))
    place.rename(desk.ledger)


@pytest.fixture
def inside(desk: Desk, client_of: Callable[[Any], Any]) -> Any:
    app = create(desk, entrance="token")
    yield client_of(app)
    app.state.here.store.close()


@pytest.fixture
def client_of(stranger: Callable[..., Any]) -> Callable[[Any], Any]:
    def come_in(app: Any) -> Any:
        client = type(stranger())(app)
        assert client.get("/enter", params={"token": "token"}).status_code == 303
        return client

    return come_in


BANNER = 'id="ledger-trouble"'


@pytest.mark.parametrize("loss", LOSSES)
def test_every_page_says_so_and_no_number_is_0(
    desk: Desk, inside: Any, routes: Callable[[str], list[str]], homeless: Callable[[], None], loss: str
) -> None:
    """Every address without a name in it, listed from the application."""
    assert carry_out(desk, "first") == "done"
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] == 2
    assert BANNER not in inside.get("/").text
    LOSSES[loss](desk)
    homeless()
    pages = [path for path in routes("GET") if "/x" not in path and path not in ("/enter", "/login", "/log")]
    assert {"/", "/data", "/ledger", "/plans", "/releases", "/api/sources", "/api/ledger", "/api/releases"} <= {*pages}
    for path in pages:
        answer = inside.get(path)
        if path.startswith("/api"):
            continue
        assert BANNER in answer.text, path
        assert "of 4 epsilon left" not in answer.text or "unknown" in answer.text, path
        assert '<span class="big">4</span>' not in answer.text and '<span class="big">0</span>' not in answer.text
    jobs = inside.get("/api/sources").json()[0]
    assert jobs["epsilon_spent"] is None and jobs["ledger_trouble"]
    ledger = inside.get("/api/ledger").json()
    assert ledger["trouble"] and ledger["budgets"] == [] and ledger["entries"] is None
    assert inside.get("/api/releases").status_code == 409
    judged = judge(desk, first_draft(desk, desk.sources["jobs"]).model_copy(update=ASKED), "new")
    assert not judged.can_run and judged.to_dict()["remaining_after"] is None
    assert carry_out(desk, "second") == "failed" and spent_on_disk(desk) == 2


ASKED = {"title": "t", "release": [{"name": "n", "kind": "count", "by": ["place"], "epsilon": "1"}]}


def test_trouble_is_never_kept(desk: Desk, inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a full disk the desk went on to say that nothing was spent."""
    assert carry_out(desk, "first") == "done"
    own = Ledger.open

    def full(*asked: Any, **more: Any) -> Any:
        raise LedgerError("Ledger failed: database or disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.desk.book.Ledger.open", full)
        assert inside.get("/api/sources").json()[0]["epsilon_spent"] is None
        assert BANNER in inside.get("/").text
    assert Ledger.open == own
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] == 2
    held = desk.folder / "held"
    Path(desk.ledger).rename(held)
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] is None
    held.rename(desk.ledger)
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] == 2 and BANNER not in inside.get("/").text


def test_a_place_that_cannot_be_looked_at_is_unknown_and_not_empty(desk: Desk, inside: Any) -> None:
    """A link that leads to itself, where the ledger is to be: nobody can tell what is there."""
    Path(desk.ledger).symlink_to(desk.ledger)
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] is None and BANNER in inside.get("/").text
    with pytest.raises(LedgerError):
        Ledger.open(desk.ledger)


def test_no_estimate_outlives_what_the_ledger_was_believed_for(desk: Desk) -> None:
    """While anchors cannot be read it is unknown what is left, though no file of the ledger has changed."""
    assert carry_out(desk, "first") == "done"
    draft = first_draft(desk, desk.sources["jobs"]).model_copy(update=ASKED)

    def left() -> Any:
        return asyncio.run(estimate(desk, draft, "new", by="anna")).to_dict()["remaining_after"]

    def named(old: str, new: str) -> None:
        with closing(sqlite3.connect(desk.database)) as database, database:
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")

    before = left()
    named("anchor", "held")
    unknown = left()
    named("held", "anchor")
    assert before is not None and unknown is None and left() == before


def test_a_new_desk_has_spent_nothing(desk: Desk, inside: Any) -> None:
    assert inside.get("/api/sources").json()[0]["epsilon_spent"] == 0 and BANNER not in inside.get("/").text


def test_a_desk_of_before_is_anchored_when_it_is_served(desk: Desk, homeless: Callable[[], None]) -> None:
    """Its ledger as it is then counts as whole, and what is lost from then on is noticed."""

    assert carry_out(desk, "first") == "done"
    desk.database.unlink()
    for path in desk.folder.glob("desk.db-*"):
        path.unlink()
    homeless()
    assert desk.traces[0].anchors() == [] and desk.ledger_trouble == ""
    app = create(desk)

    async def serve() -> None:
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(serve())
    assert [anchor.dataset for anchor in desk.traces[0].last()] == ["jobs"]
    remove(desk)
    homeless()
    assert desk.ledger_trouble and book_at(desk.ledger, desk.traces, ["jobs"]) == LedgerView(
        trouble=desk.ledger_trouble
    )


def test_nothing_else_is_done_with_a_lost_ledger(desk: Desk, homeless: Callable[[], None]) -> None:
    assert carry_out(desk, "first") == "done"
    remove(desk)
    homeless()
    with pytest.raises(LedgerError):
        budgets._known(desk, "jobs")
    with pytest.raises(LedgerError):
        sources._fits_the_ledger(desk, desk.sources["jobs"])
    assert not Path(desk.ledger).exists()


def test_anchors_of_a_desk_that_cannot_be_read_are_unknown(desk: Desk) -> None:
    assert carry_out(desk, "first") == "done"
    desk.database.write_bytes(b"no database at all" * 100)
    for path in desk.folder.glob("desk.db-*"):
        path.unlink()
    with pytest.raises(LedgerError):
        DeskAnchors(desk.database).last()
    assert desk.book.trouble


def test_a_database_that_cannot_be_looked_at_is_not_one_without_anchors(tmp_path: Path) -> None:
    """Red before: links that lead to each other were a desk that was never served, which knows of no line."""
    assert DeskAnchors(tmp_path / "absent.db").last() == []
    (tmp_path / "one.db").symlink_to(tmp_path / "two.db")
    (tmp_path / "two.db").symlink_to(tmp_path / "one.db")
    for asked in (DeskAnchors(tmp_path / "one.db").last, DeskAnchors(tmp_path / "one.db").anchors):
        with pytest.raises(LedgerError):
            asked()
