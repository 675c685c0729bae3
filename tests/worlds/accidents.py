"""Accidents on the way: after each one the ledger and the files agree, and at last a run ends well.

What must be true is told by `bench.accidents`, from rows and bytes.
"""

from __future__ import annotations

import atexit
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from bench import accidents as looked_up

from runs import Runner
from worlds.plan import prepared
from worlds.way import Ended, Walk, call
from worlds.world import World

OTHER = "other"
"""The folder of a world with other rows."""

LONGEST = 0.15
"""Seconds into a step of a run at which it is killed."""


def happened(walk: Walk) -> list[str]:
    """Let the accidents of a world happen, one after the other; what was wrong after one."""
    chance, found = Random(f"accidents of {walk.world.rows}"), []
    prices = {each.name: Fraction(each.epsilon) for each in walk.world.releases}
    before: dict[str, dict[str, str]] = {}
    if "other rows" in walk.world.accidents:
        prepared(replace(walk.world, rows=walk.world.rows + 1), walk.folder / OTHER)
    for number, name in enumerate(walk.world.accidents):
        try:
            ended = ACCIDENTS[name](walk.folder, chance)
        except AssertionError as error:
            ended = Ended(name, 3, f"{name}: {error}")
        walk.ended[f"{number}. {name}"] = ended
        now = looked_up.published(walk.folder)
        found += [f"after {name}: {fault}" for fault in looked_up.faults(walk.folder, prices)]
        found += [f"after {name}: {each} has changed" for each in before if now.get(each) != before[each]]
        before = now
    return found


@cache
def runner() -> Runner:
    """Processes that have loaded everything; the first run is of the plainest world."""
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    prepared(World(), folder / "first")
    found = Runner(folder / "first" / "plan.toml")
    atexit.register(found.close)
    return found


def _killed(folder: Path, chance: Random) -> Ended:
    """Killed in some step, some time after its beginning."""
    process, step = runner().start(folder / "plan.toml"), chance.randrange(9)
    for line in runner().lines():
        if line.startswith("r") or int(line.split()[0]) >= step:
            break
    time.sleep(chance.uniform(0, LONGEST))
    return _ended("killed", process)


def _killed_drawing(folder: Path, chance: Random) -> Ended:
    """Killed when it asks for random words, so while a draw is on its way."""
    process = runner().start_command(folder / "plan.toml", f"draw:{chance.randint(1, 3)}")
    for line in runner().lines():
        if line == "here":
            break
    return _ended("killed while it draws", process)


def _ended(name: str, process: int) -> Ended:
    if not runner().end:
        with suppress(ProcessLookupError):  # it has ended since
            os.kill(process, signal.SIGKILL)
    code, said = runner().wait()
    raised = any(line.startswith("raised: ") for line in said)
    return Ended(name, 3 if raised else 0 if code < 0 else code, "\n".join(said))


def _interrupted(folder: Path, chance: Random) -> Ended:
    """Ctrl-C at an instant."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.01, 0.4))
    try:
        ended = call(folder, "run", "plan.toml")
    except KeyboardInterrupt:  # before the command began, or after it ended
        ended = Ended("interrupted", 0, "")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return Ended(ended.command, 0 if ended.code == 130 else ended.code, ended.said)


def _full(folder: Path, chance: Random) -> Ended:
    """No file can grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (chance.choice((0, 1000, 4096, 20_000, 60_000, 100_000)), hard))
    try:
        ended = call(folder, "run", "plan.toml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return ended


def _locked(folder: Path, chance: Random) -> Ended:
    """Another process holds the ledger and does not let go."""
    from discreet.ledger import store

    call(folder, "check", "plan.toml") if not (folder / "ledger.db").exists() else None
    if not (folder / "ledger.db").exists():
        return call(folder, "run", "plan.toml")
    with closing(sqlite3.connect(folder / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with patch.object(store, "WAIT_SECONDS", 0.2):
            ended = call(folder, "run", "plan.toml")
        other.execute("ROLLBACK")
    return ended


def _clock(folder: Path, chance: Random) -> Ended:
    """The time of day is years before or after."""
    away = timedelta(days=chance.choice((-12_000, -1, 1, 12_000)))

    class Jumped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + away

    with patch("discreet.ledger.book.datetime", Jumped):
        return call(folder, "run", "plan.toml")


def _two(folder: Path, chance: Random) -> Ended:
    """Another process carries the same plan out."""
    runner().start(folder / "plan.toml")
    time.sleep(chance.uniform(0, 0.3))
    ended = call(folder, "run", "plan.toml")
    code, said = runner().wait()
    worst = max(ended.code, 3 if any(line.startswith("raised: ") for line in said) else code)
    return Ended(ended.command, worst, "\n".join([ended.said, *said]))


def _other_rows(folder: Path, chance: Random) -> Ended:
    """The data are others for a while: what was paid for the first ones is not drawn from these."""
    _killed_drawing(folder, chance)
    with _exchanged(folder / "data", folder / OTHER / "data"):
        begun = looked_up.charged(folder) > len(looked_up.published(folder))
        ended = call(folder, "run", "plan.toml") if begun else call(folder, "check", "plan.toml")
    if begun:
        assert ended.code == 2, f"a paid draw of other rows ended with {ended.code}: {ended.said[-800:]}"
    return ended


@contextmanager
def _kept_apart(folder: Path) -> Iterator[Path]:
    """The ledger as it is now, in a folder of its own; it is back afterwards, and what stood in its place is gone."""
    with tempfile.TemporaryDirectory() as place:
        for path in folder.glob("ledger.db*"):
            shutil.copy(path, place)
        yield Path(place)
        if any(Path(place).iterdir()):
            _replaced(folder, Path(place))


def _replaced(folder: Path, place: Path) -> None:
    for path in folder.glob("ledger.db*"):
        path.unlink()
    for path in place.glob("ledger.db*"):
        shutil.copy(path, folder)


def _moved(folder: Path, chance: Random) -> Ended:
    """The ledger is elsewhere for a while: what was paid is not paid again."""
    if not looked_up.charged(folder):
        return call(folder, "run", "plan.toml")
    before = _seen(folder)
    with _kept_apart(folder):
        for path in folder.glob("ledger.db*"):
            path.unlink()
        ended = call(folder, "run", _alone(folder, -1, called="other-") if chance.random() < 0.5 else "plan.toml")
        assert ended.code == 2, f"a run without its ledger ended with {ended.code}: {ended.said[-800:]}"
        assert not looked_up.charged(folder), "something was paid from a new ledger"
    assert _seen(folder) == before, "a run without its ledger changed what is seen"
    return ended


def _brought_back(folder: Path, chance: Random) -> Ended:
    """The ledger is what it was before a run: what was paid is not paid again."""
    if not looked_up.charged(folder):
        call(folder, "run", _alone(folder, 0))
    with tempfile.TemporaryDirectory() as place:
        for path in folder.glob("ledger.db*"):
            shutil.copy(path, place)
        earlier = looked_up.charged(folder)
        ended = call(folder, "run", "plan.toml")
        if not any(Path(place).iterdir()) or looked_up.charged(folder) == earlier:
            return ended
        before = _seen(folder)
        with _kept_apart(folder):
            _replaced(folder, Path(place))
            again = call(folder, "run", _alone(folder, -1, called="other-") if chance.random() < 0.7 else "plan.toml")
            assert again.code == 2, f"a run on an earlier ledger ended with {again.code}: {again.said[-800:]}"
            assert looked_up.charged(folder) == earlier, "something was paid again"
        assert _seen(folder) == before, "a run on an earlier ledger changed what is seen"
    return again


def _alone(folder: Path, at: int, *, called: str = "") -> str:
    """The plan with one of its releases alone, under another name if one is given."""
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    data, *releases = text[: text.index("[output]")].split("[[release]]")
    one = releases[at].replace('name = "', f'name = "{called}', 1)
    (folder / "alone.toml").write_text(f"{data}[[release]]{one}{text[text.index('[output]') :]}", encoding="utf-8")
    return "alone.toml"


def _seen(folder: Path) -> dict[str, str]:
    """What everybody can see."""
    return looked_up.hashed(folder / "out") if (folder / "out").exists() else {}


def _away(folder: Path, chance: Random) -> Ended:
    """The server of the data, or that of the ledger, is gone or does not answer."""
    before, paid = _seen(folder), looked_up.charged(folder)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if chance.random() < 0.3:
            server.listen()  # and never says a word
        place = f"postgresql://somebody@127.0.0.1:{server.getsockname()[1]}/world?connect_timeout=2"
        key, address = chance.choice((("source", f"{place}::jobs"), ("ledger", place)))
        text = (folder / "plan.toml").read_text(encoding="utf-8")
        moved = re.sub(rf'^{key} = "[^"]*"', lambda _: f'{key} = "{address}"', text, count=1, flags=re.MULTILINE)
        (folder / "away.toml").write_text(moved, encoding="utf-8")
        ended = call(folder, "run", "away.toml")
    done = key == "source" and "released for" not in ended.said  # nothing is left to be read
    assert ended.code in (1, 2) or done, f"a run without its {key} ended with {ended.code}: {ended.said[-800:]}"
    assert (_seen(folder), looked_up.charged(folder)) == (before, paid), f"a run without its {key} changed something"
    return ended


@contextmanager
def _exchanged(data: Path, other: Path) -> Iterator[None]:
    kept = {path: (path.read_bytes(), path.stat()) for path in data.rglob("*") if path.is_file()}
    for path in kept:
        path.write_bytes((other / path.relative_to(data)).read_bytes())
    try:
        yield
    finally:
        for path, (content, stat) in kept.items():
            path.write_bytes(content)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


ACCIDENTS: dict[str, Callable[[Path, Random], Any]] = {
    "killed": _killed,
    "killed while it draws": _killed_drawing,
    "interrupted": _interrupted,
    "a full disk": _full,
    "a lock": _locked,
    "a clock": _clock,
    "two at once": _two,
    "other rows": _other_rows,
    "a moved ledger": _moved,
    "a ledger brought back": _brought_back,
    "a server away": _away,
}
