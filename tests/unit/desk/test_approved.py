"""What was approved is what runs: the text that draft and settings give, and the very bytes of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.desk import planning, runs
from discreet.desk import worker as worker_module
from discreet.desk.accounts import Person
from discreet.desk.desk import Desk
from discreet.desk.drafts import digest, first_draft
from discreet.desk.store import DeskStore
from discreet.words.errors import DiscreetError
from faults_of import about

ANNA, RITA = Person("anna", "analyst", "a"), Person("rita", "reviewer", "b")
SETTINGS = {
    "a smaller budget": ("epsilon = 4", "epsilon = 2"),
    "a larger budget": ("epsilon = 4", "epsilon = 40"),
    "a delta": ("epsilon = 4", "epsilon = 4\ndelta = 1e-9"),
    "other data": ('path = "data"', 'path = "others"'),
    "another name in the ledger": ('dataset = "jobs"', 'dataset = "others"'),
    "a list of workplaces": ('path = "data"', 'path = "data"\nworkplaces = "places.csv"'),
    "a list of workers": ('path = "data"', 'path = "data"\nworkers = "workers.csv"'),
    "other sizes": ('sizes = "sizes.csv"', 'sizes = "others.csv"'),
    "other kinds of workers": ('sex = ["female", "male"]', 'sex = ["female", "male", "other"]'),
    "other attributes": ('["place", "sector"]', '["place", "sector", "size"]'),
    "another ledger": ('title = "Test desk"', 'title = "Test desk"\nledger = "others.db"'),
    "another unit, fixed": ("alpha = 0.1 }\nunit_fixed = false", "alpha = 0.2 }"),
    "no such source": ('name = "jobs"', 'name = "posts"'),
    "no settings": ('title = "Test desk"', "title = "),
}
HARMLESS = {
    "a title": ('title = "Test desk"', 'title = "Desk"'),
    "a description": ('path = "data"', 'path = "data"\nabout = "Jobs"'),
    "more runs": ('title = "Test desk"', 'title = "Test desk"\nruns_at_once = 5'),
}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Workers that would have been started."""
    begun: list[Any] = []

    class Started:
        def __init__(self, command: list[str], **more: Any) -> None:
            begun.append((command, more))
            self.stdin = open("/dev/null", "wb")  # noqa: PTH123, SIM115

        def wait(self) -> int:
            self.stdin.close()
            return 0

    monkeypatch.setattr("discreet.desk.runs.subprocess.Popen", Started)
    return begun


@pytest.fixture
def opened() -> Iterator[Callable[[Desk], DeskStore]]:
    stores = []

    def open_(desk: Desk) -> DeskStore:
        stores.append(DeskStore(desk.database))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


def submitted(desk: Desk, store: DeskStore) -> tuple[str, str]:
    """A plan that waits for a decision, and the digest of its text."""
    name = planning.save(desk, store, first_draft(desk, desk.sources["jobs"]), ANNA)
    planning.submit(store, name, ANNA)
    plan = planning.get(store, name)
    assert plan is not None
    return name, plan.digest


def changed(desk: Desk, before: str, after: str) -> None:
    path = desk.folder / "desk.toml"
    text = path.read_text()
    assert text.count(before) >= 1
    path.write_text(text.replace(before, after, 1))


@pytest.mark.parametrize("reopened", [False, True], ids=["while the desk is open", "before it is opened again"])
@pytest.mark.parametrize("what", SETTINGS)
def test_a_setting_that_changes_ends_an_approval(
    make: Callable[..., Desk], opened: Any, started: list[Any], what: str, reopened: bool
) -> None:
    desk = make()
    store = opened(desk)
    waits, digest_of_waiting = submitted(desk, store)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    begun = runs.start(desk, store, name, ANNA)
    other, seen = submitted(desk, store)
    planning.decide(desk, store, other, RITA, verdict="approved", seen=seen)
    changed(desk, *SETTINGS[what])
    if reopened:
        if what == "no settings":
            return
        desk = Desk.open(desk.folder)
    started.clear()
    for refused in (
        lambda: runs.start(desk, store, other, ANNA),
        lambda: runs.resume(desk, store, begun, ANNA),
        lambda: planning.decide(desk, store, waits, RITA, verdict="approved", seen=digest_of_waiting),
    ):
        with pytest.raises(DiscreetError, check=about("plan", "source", "desk", naming=("desk.toml",))):
            refused()
    assert started == []
    assert len(runs.listed(desk, store)) == 1


def test_a_schema_beside_the_data_is_approved_with_the_plan(
    make: Callable[..., Desk], opened: Any, started: list[Any]
) -> None:
    """It is in the text: whoever approves sees it, and a run of that text knows no other."""
    desk = make()
    text = (desk.folder / "desk.toml").read_text()
    schema = text[text.index("[source.schema]") :].partition("\n\n")[0]
    changed(desk, schema, "")
    beside = desk.folder / "data" / "schema.toml"
    beside.parent.mkdir(exist_ok=True)
    beside.write_text(schema.partition("\n")[2].replace("source.schema.", ""))
    desk = Desk.open(desk.folder)
    store = opened(desk)
    name, seen = submitted(desk, store)
    plan = planning.get(store, name)
    assert plan is not None and "female" in plan.text
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    beside.write_text(beside.read_text().replace('"male"]', '"male", "other"]'))
    with pytest.raises(DiscreetError, check=about("plan")):
        runs.start(desk, store, name, ANNA)
    assert started == []


@pytest.mark.parametrize("what", HARMLESS)
def test_other_settings_may_change(make: Callable[..., Desk], opened: Any, started: list[Any], what: str) -> None:
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    changed(desk, *HARMLESS[what])
    runs.start(Desk.open(desk.folder), store, name, ANNA)
    assert len(started) == 1


def test_a_plan_saved_again_can_be_approved_again(make: Callable[..., Desk], opened: Any, started: list[Any]) -> None:
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    changed(desk, *SETTINGS["a smaller budget"])
    desk = Desk.open(desk.folder)
    with pytest.raises(DiscreetError, check=about("plan")):
        runs.start(desk, store, name, ANNA)
    plan = planning.get(store, name)
    assert plan is not None
    planning.save(desk, store, plan.draft, ANNA, name=name)
    planning.submit(store, name, ANNA)
    plan = planning.get(store, name)
    assert plan is not None and "epsilon = 2\n" in plan.text
    planning.decide(desk, store, name, RITA, verdict="approved", seen=plan.digest)
    runs.start(desk, store, name, ANNA)
    assert len(started) == 1


def test_a_rule_that_came_later_holds(make: Callable[..., Desk], opened: Any, started: list[Any]) -> None:
    """Approved by its author while that was allowed; not run once it is not."""
    desk = make("accounts = true")
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, ANNA, verdict="approved", seen=seen)
    changed(desk, "accounts = true", "accounts = true\nsecond_person = true")
    with pytest.raises(DiscreetError, check=about("plan")):
        runs.start(desk, store, name, RITA)
    assert started == []


def test_a_row_that_was_changed_by_hand_is_not_run(make: Callable[..., Desk], opened: Any, started: list[Any]) -> None:
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    plan = planning.get(store, name)
    assert plan is not None
    for column, value in {
        "text": plan.text.replace("epsilon = 1", "epsilon = 3"),
        "digest": "0" * 64,
        "draft": plan.draft.model_dump_json().replace('"epsilon":"1"', '"epsilon":"3"'),
    }.items():
        before = getattr(plan, column) if column != "draft" else plan.draft.model_dump_json()
        assert before != value
        with store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE plan SET {column} = ? WHERE name = ?", (value, name))
        with pytest.raises(DiscreetError):
            runs.start(desk, store, name, ANNA)
        with store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE plan SET {column} = ? WHERE name = ?", (before, name))
    assert started == []
    runs.start(desk, store, name, ANNA)


def test_a_text_that_came_back_is_decided_anew(make: Callable[..., Desk], opened: Any, started: list[Any]) -> None:
    """Approved, changed and changed back: the digest is that of the approval, and the plan is a draft."""
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    plan = planning.get(store, name)
    assert plan is not None
    planning.save(desk, store, plan.draft.model_copy(update={"title": "another"}), ANNA, name=name)
    planning.save(desk, store, plan.draft, ANNA, name=name)
    again = planning.get(store, name)
    assert again is not None and again.digest == seen
    with pytest.raises(DiscreetError, check=about("plan")):
        runs.start(desk, store, name, ANNA)
    assert started == []


def test_a_declined_plan_that_calls_itself_approved_is_not_run(
    make: Callable[..., Desk], opened: Any, started: list[Any]
) -> None:
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="declined", seen=seen)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE plan SET state = 'approved' WHERE name = ?", (name,))
    with pytest.raises(DiscreetError, check=about("plan")):
        runs.start(desk, store, name, ANNA)
    assert started == []


def test_a_save_in_between_does_not_change_what_runs(
    tmp_path: Path, with_data: Callable[[Path], Desk], opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is exchanged at every instant at which the worker looks at anything: the approved bytes are run."""
    desk = with_data(tmp_path)
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    plan = planning.get(store, name)
    assert plan is not None
    other = plan.text.replace("jobs-1", "unapproved").replace("epsilon = 1", "epsilon = 3")
    assert other != plan.text

    def exchanging(text: Any) -> str:
        found = digest(text)
        desk.plan_file(name).write_text(other)
        return found

    monkeypatch.setattr("discreet.desk.drafts.digest", exchanging)
    folder = desk.runs
    desk.plan_file(name).write_text(plan.text)
    (folder / "run-a.jsonl").touch()
    code = worker_module.main(desk.plan_file(name), folder, "run-a", plan.digest, 1, plan.text.encode())
    events = [json.loads(line) for line in (folder / "run-a.jsonl").read_text().splitlines()]
    assert code == 0, events
    assert {path.name for path in (desk.releases / name).iterdir() if path.is_dir()} == {"jobs-1"}
    assert desk.plan_file(name).read_text() == other
    code = worker_module.main(desk.plan_file(name), folder, "run-b", plan.digest, 1, other.encode())
    said = (folder / "run-b.jsonl").read_text()
    assert code == 1 and "is not the text that was approved" in said


def test_nobody_else_can_change_what_a_run_writes(
    tmp_path: Path, with_data: Callable[[Path], Desk], opened: Any
) -> None:
    """Whatever the umask of whoever started the desk."""
    before = os.umask(0)
    try:
        desk = with_data(tmp_path)
        store = opened(desk)
        name, seen = submitted(desk, store)
        planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
        run = runs.start(desk, store, name, ANNA)
        for _ in range(600):
            if runs.state_of(desk.runs, run) == "done":
                break
            time.sleep(0.1)
    finally:
        os.umask(before)
    written = [path for place in (desk.releases, desk.plans, desk.runs) for path in (place, *place.rglob("*"))]
    assert len(list((desk.releases / name).rglob("*"))) > 4
    assert [path for path in written if path.stat().st_mode & 0o022] == []
    assert (desk.releases / name).stat().st_mode & 0o007 == 0


def test_the_worker_is_given_the_bytes(make: Callable[..., Desk], opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes to the worker's standard input is what was approved, whatever becomes of the file."""
    desk = make()
    store = opened(desk)
    name, seen = submitted(desk, store)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=seen)
    got = desk.folder / "got"
    monkeypatch.setattr(
        "discreet.desk.runs.WORKER", ["-c", f"import sys; open({str(got)!r}, 'wb').write(sys.stdin.buffer.read())"]
    )
    waited = []
    monkeypatch.setattr("discreet.desk.runs._awaited", lambda process, name: waited.append(process))
    runs.start(desk, store, name, ANNA)
    waited[0].wait()
    assert digest(Path(got).read_text()) == seen
