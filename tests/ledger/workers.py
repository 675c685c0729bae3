"""Processes that use a ledger and may die: `python workers.py release|careless|race|together LEDGER FOLDER [NUMBER]`.

The imports are paid once. On "start" this process forks a worker, which prints its process id and goes to work; on
"wait" it waits for one to end and prints how it ended. So a test can kill hundreds of them.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

import psycopg  # noqa: F401
import sqlalchemy.dialects.postgresql  # noqa: F401

from discreet.ledger import Entry, Ledger, release_once, store  # noqa: F401
from discreet.ledger.publication import fingerprints
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.words.errors import BudgetExceeded, DiscreetError

TOTAL, PRICE, UNIT = Pure(1), Pure("0.2"), Workers()


def release(where: str, folder: Path, datasets: int) -> None:
    """Release after release; each data set pays for five, and then the next one is opened."""
    with Ledger.open(where) as ledger:
        print(os.getpid(), flush=True)
        for number in range(max(0, len(list(folder.glob("toys-*"))) - 1), datasets):
            ledger.open_budget(dataset=f"toys-{number}", unit=UNIT, total=TOTAL)
            for turn in range(6):
                place = folder / f"toys-{number}" / f"release-{turn}"
                request = {"dataset": f"toys-{number}", "unit": UNIT, "release": place.name, "loss": PRICE}
                try:
                    if not place.exists():
                        release_once(ledger, folder=place, draw=draw, **request)
                except BudgetExceeded:
                    break


def careless(where: str, folder: Path, datasets: int) -> None:
    """What must not be done: the files are there before they are paid for."""
    with Ledger.open(where) as ledger:
        print(os.getpid(), flush=True)
        ledger.open_budget(dataset="toys-0", unit=UNIT, total=Pure(datasets))
        for turn in range(datasets):
            place = folder / "toys-0" / f"{os.getpid()}-{turn}"
            place.mkdir(parents=True)
            draw(None, place)
            entry = ledger.charge(dataset="toys-0", unit=UNIT, release=place.name, loss=PRICE)
            ledger.publish(entry, files=fingerprints(place))


def draw(entry: Entry | None, staging: Path) -> None:
    """A few kilobytes of true randomness, in two files."""
    (staging / "release.json").write_text(json.dumps({"ledger": entry and entry.reference}))
    with (staging / "noise.bin").open("wb") as file:
        for _ in range(8):
            file.write(os.urandom(512))
            file.flush()


def race(where: str, folder: Path, _datasets: int) -> None:
    """Charge a hundredth at a time until refused, and write down how often that worked."""
    print(os.getpid(), flush=True)
    with Ledger.open(where) as ledger:
        ledger.open_budget(dataset="shared", unit=UNIT, total=TOTAL)
        for turn in itertools.count():
            try:
                ledger.charge(dataset="shared", unit=UNIT, release=f"{os.getpid()}-{turn}", loss=Pure("0.01"))
            except BudgetExceeded:
                break
    (folder / f"{os.getpid()}.txt").write_text(str(turn))


def together(where: str, folder: Path, alike: int) -> None:
    """Draw for a release in a folder of one's own; publish when all others have drawn, and write down what was said."""
    me, crowd = str(os.getpid()), 12

    def drawn(entry: Entry, staging: Path) -> None:
        (staging / "table.csv").write_text("7" if alike else me)
        (folder / f"{me}.drawn").touch()
        while len(list(folder.glob("*.drawn"))) < crowd:
            time.sleep(0.002)

    print(me, flush=True)
    with Ledger.open(where) as ledger:
        ledger.open_budget(dataset="jobs", unit=UNIT, total=TOTAL)
        try:
            request = {"dataset": "jobs", "unit": UNIT, "release": "r", "loss": PRICE}
            release_once(ledger, folder=folder / me / "r", draw=drawn, **request)
            said = "published"
        except DiscreetError as error:
            said = f"{type(error).__name__}: {error}"
    (folder / f"{me}.part").write_text(said)
    (folder / f"{me}.part").rename(folder / f"{me}.txt")


if __name__ == "__main__":
    works = {"release": release, "careless": careless, "race": race, "together": together}
    work, alive = works[sys.argv[1]], set()
    print("ready", flush=True)
    for order in sys.stdin:
        if order.strip() == "wait":
            worker, status = os.wait()
            alive.discard(worker)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif worker := os.fork():
            alive.add(worker)
        else:
            work(sys.argv[2], Path(sys.argv[3]), int((sys.argv[4:] or ["1000000"])[0]))
            os._exit(0)
    for worker in alive:  # the test has ended early; its workers would go on for ever
        os.kill(worker, signal.SIGKILL)
