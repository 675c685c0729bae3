"""Plans carried out by workers: processes of their own that outlive the server, and can be resumed when they do not.

A run is two files: NAME.jsonl, the events that its worker wrote, and NAME.lock, which the worker holds for as long as
it lives. The state of a run is read from these, never remembered, so it is right after any crash of either side. The
lock is taken before the worker starts and handed to it: two workers of one run cannot be alive at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sqlalchemy import desc, insert, select

from discreet.desk.accounts import Person
from discreet.desk.audit_log import now, record
from discreet.desk.book import stamp
from discreet.desk.desk import Desk
from discreet.desk.planning import approved
from discreet.desk.store import DeskStore, runs
from discreet.pages.page import write_text
from discreet.words.cases import case_of
from discreet.words.errors import DataError, DiscreetError

State: TypeAlias = Literal["running", "done", "failed", "interrupted"]
FINAL = {"done": "done", "failed": "failed"}
LONGEST_LINE = 100_000
WORKER = ["-m", "discreet.desk.worker"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plan, as it is now."""

    name: str
    plan: str
    by: str
    at: str
    state: State
    events: list[dict[str, Any]]

    @property
    def last(self) -> dict[str, Any]:
        return self.events[-1] if self.events else {"kind": "step", "text": "starting", "done": 0, "steps": 0}

    @property
    def share(self) -> float:
        """How much is done, 0 to 1."""
        if case_of(self.state, {"done": True, "failed": False, "interrupted": False, "running": False}):
            return 1.0
        steps = [event for event in self.events if event.get("steps")]
        return steps[-1]["done"] / steps[-1]["steps"] if steps else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "plan": self.plan,
            "by": self.by,
            "at": self.at,
            "state": self.state,
            "share": self.share,
            "last": str(self.last.get("text", "")),
        }


def start(desk: Desk, store: DeskStore, plan: str, person: Person) -> str:
    """Start a run of an approved plan; the name of the run."""
    name = f"run-{secrets.token_hex(5)}"
    with store.writing() as connection:
        row = approved(desk, connection, plan)
        others = connection.execute(select(runs.c.name).where(runs.c.plan == plan)).all()
        for other in others:
            if state_of(desk.runs, other.name) != "done":
                raise DataError(
                    f"{plan!r} has a run already, {other.name}, which is not done.",
                    "A plan has one run at a time.",
                    "Open that run; it can be resumed if it stopped.",
                    about="plan",
                )
        connection.execute(insert(runs).values(name=name, plan=plan, by=person.name, at=now()))
        record(connection, person.name, "run started", name, plan=plan, digest=row.digest)
        (desk.runs / f"{name}.jsonl").touch(mode=0o600)
    _launch(desk, store, name, person)
    return name


def resume(desk: Desk, store: DeskStore, name: str, person: Person) -> None:
    """Carry an interrupted or failed run on; what was paid is not paid again."""
    _launch(desk, store, name, person, word=f"resumed by {person.name}")
    with store.writing() as connection:
        record(connection, person.name, "run resumed", name)


def _launch(desk: Desk, store: DeskStore, name: str, person: Person, *, word: str = "") -> None:
    with store.reading() as connection:
        plan = connection.execute(select(runs.c.plan).where(runs.c.name == name)).scalar()
        row = approved(desk, connection, str(plan))
    path, text = desk.plan_file(row.name), row.text.encode()
    write_text(path, row.text)  # for whoever looks; the worker is given the bytes
    lock = _taken(desk.runs / f"{name}.lock")
    if lock is None:
        raise DiscreetError(
            f"Run {name} is under way.", "A run has one worker.", "Wait for it, or watch its page.", about="run"
        )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "2")}
    if person.role != "local":
        environment["LOGNAME"] = person.name  # whom the ledger names
    command = [sys.executable, *WORKER, str(path), str(desk.runs), name, row.digest]
    try:
        if word:
            _say(desk.runs / f"{name}.jsonl", word)
        process = subprocess.Popen(
            [*command, str(desk.settings.runs_at_once)],
            env=environment,
            pass_fds=[lock],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as given:
            given.write(text)
    finally:
        os.close(lock)
    _awaited(process, name)


def _say(path: Path, word: str) -> None:
    """An event that the desk writes while it holds the lock: from now on the state is no longer that of the end."""
    with path.open("ab") as file:
        start = b"" if file.tell() == 0 or path.read_bytes().endswith(b"\n") else b"\n"
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        file.write(start + json.dumps({"at": at, "kind": "resumed", "text": word}).encode() + b"\n")


def _awaited(process: subprocess.Popen[bytes], name: str) -> None:
    """Let the system forget the worker when it has ended."""
    threading.Thread(target=process.wait, name=f"wait for {name}", daemon=True).start()


def get(desk: Desk, store: DeskStore, name: str) -> Run | None:
    with store.reading() as connection:
        row = connection.execute(select(runs).where(runs.c.name == name)).first()
    return None if row is None else _run(desk, row)


def listed(desk: Desk, store: DeskStore, *, plan: str | None = None, last: int = 100, first: int = 0) -> list[Run]:
    """Runs, latest first, from number `first` on."""
    asked = select(runs).order_by(desc(runs.c.at), desc(runs.c.name)).limit(last).offset(first)
    if plan is not None:
        asked = asked.where(runs.c.plan == plan)
    with store.reading() as connection:
        rows = connection.execute(asked).all()
    return [_run(desk, row) for row in rows]


def begun(store: DeskStore) -> set[str]:
    """The plans that have a run."""
    with store.reading() as connection:
        return set(connection.execute(select(runs.c.plan).distinct()).scalars())


def _run(desk: Desk, row: Any) -> Run:
    state, told = _read(desk.runs, row.name)
    return Run(row.name, row.plan, row.by, row.at, state, list(told))


def state_of(folder: Path, name: str) -> State:
    """What the two files of a run say."""
    return _read(folder, name)[0]


def _read(folder: Path, name: str) -> tuple[State, tuple[dict[str, Any], ...]]:
    """The state of a run and its events. A run that came to its end is read again only when its file changed."""
    told = _ended(folder, name, stamp(folder / f"{name}.jsonl"))
    if not told:
        # The lock first: an event that is written in between makes the run look younger, never dead.
        alive = is_alive(folder / f"{name}.lock")
        told = tuple(event for _, event in events(folder, name))
        if not told or told[-1].get("kind") not in FINAL:
            return ("running" if alive else "interrupted"), told
    return FINAL[told[-1]["kind"]], told  # type: ignore[return-value]


@lru_cache(maxsize=1000)
def _ended(folder: Path, name: str, _stamp: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """The events of a run that came to its end; none of one that did not."""
    told = tuple(event for _, event in events(folder, name))
    return told if told and told[-1].get("kind") in FINAL else ()


def events(folder: Path, name: str, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """The whole lines after byte `start`, each with the byte after it; a line that is being written waits."""
    try:
        with (folder / f"{name}.jsonl").open("rb") as file:
            file.seek(start)
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                start += len(line)
                with suppress(ValueError):
                    yield start, json.loads(line)
    except OSError:
        return


def is_alive(lock: Path) -> bool:
    """Whether a worker holds the lock."""
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _taken(path: Path) -> int | None:
    """A handle that holds the lock; None when a worker has it. Readers that look at it hold it for an instant."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(20):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.01)
        else:
            return handle
    os.close(handle)
    return None
