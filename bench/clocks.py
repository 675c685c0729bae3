"""Programmes whose time of day jumps, by seconds or by years, forwards and backwards, hundreds of times a second.

`disturbed.c` stands before the C library and adds what a file says to the time of day. Some runs are killed and resumed
at another time. New ledgers are opened by sixteen processes at once meanwhile, because what a killed opening left is
removed by its age.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.engines import programme
from tests.runs import Runner

from bench import accidents
from bench.comparison import Comparison
from discreet.ledger import Ledger

PROGRAMMES, LEDGERS, OPENING, YEARS, PAUSE = 40, 20, 16, 30, 0.002
YEAR = 365.25 * 86_400

OPEN = """
import sys
from discreet.ledger import Ledger, store
print("ready", flush=True)
for where in map(str.strip, sys.stdin):
    with Ledger.open(where) as ledger:
        print("opened" if ledger.verify() else "broken", flush=True)
"""


class Clock:
    """Jumps until it is closed."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance, self.jumps, self.going = path, chance, 0, True
        path.write_bytes(struct.pack("q", 0))
        self.thread = threading.Thread(target=self._jump)
        self.thread.start()

    def _jump(self) -> None:
        with self.path.open("r+b", buffering=0) as file:
            while self.going:
                size = self.chance.choice((1, 61, 3_600, YEAR, YEARS * YEAR))
                file.seek(0)
                file.write(struct.pack("q", round(self.chance.uniform(-size, size))))
                self.jumps += 1
                time.sleep(PAUSE)

    def close(self) -> None:
        self.going = False
        self.thread.join()


def compare(*, quick: bool) -> Comparison:
    """What became of programmes and ledgers."""
    seed, programmes, ledgers = (
        random.SystemRandom().randrange(10**6),
        3 if quick else PROGRAMMES,
        2 if quick else LEDGERS,
    )
    chance, found, kills = random.Random(seed), list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        clock = Clock(scratch / "clock", random.Random(chance.random()))
        environment = accidents.disturbed(scratch, clock=clock.path)
        try:
            found += [] if is_felt(environment) else ["the clock does not jump"]
            kills = carried_out(scratch, environment, chance, found, programmes=programmes)
            opened(scratch, environment, found, ledgers=ledgers)
        finally:
            clock.close()
    facts = {
        "seed": seed,
        "jumps": clock.jumps,
        "years": YEARS,
        "programmes": programmes,
        "kills": kills,
        "ledgers": ledgers,
        "openings": OPENING,
        "faults": len(found),
    }
    print(f"   {facts}", flush=True)
    return Comparison(facts=facts, broken=tuple(found))


def is_felt(environment: dict[str, str]) -> bool:
    """Whether Python reads times that are out of order."""
    code = "import time\nseen = [time.sleep(0.01) or time.time() for _ in range(50)]\nprint(seen != sorted(seen))"
    said = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, check=True)
    return said.stdout == b"True\n"


def carried_out(
    scratch: Path, environment: dict[str, str], chance: random.Random, found: list[str], *, programmes: int
) -> int:
    """Carry programmes out, kill every other one once; how many were killed."""
    runner, kills, seconds = Runner(programme.write(scratch / "first"), environment), 0, 1.0
    try:
        for number in range(programmes):
            plan, before = programme.write(scratch / f"programme-{number}"), {}
            if number % 2:
                worker = runner.start(plan)
                time.sleep(chance.uniform(0, seconds))
                os.kill(worker, signal.SIGKILL)
                kills += runner.wait()[0] == -signal.SIGKILL
                found += accidents.faults(plan.parent)
                before = accidents.published(plan.parent)
            begun = time.monotonic()
            runner.start(plan)
            code, said = runner.wait()
            seconds = seconds if number % 2 else time.monotonic() - begun
            found += accidents.unfinished(plan.parent, before) if code == 0 else [f"it ended with {code}: {said[-1:]}"]
    finally:
        runner.close()
    return kills


def opened(scratch: Path, environment: dict[str, str], found: list[str], *, ledgers: int) -> None:
    """Sixteen processes open each new ledger at once."""
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=os.environ | environment,
        )
        for _ in range(OPENING)
    ]
    for process in runners:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for number in range(ledgers):
        where = scratch / f"ledgers-{number}" / "ledger.db"
        where.parent.mkdir()
        for process in runners:
            print(where, file=process.stdin, flush=True)
        said = [process.stdout.readline().strip() for process in runners if process.stdout is not None]
        if said != ["opened"] * OPENING:
            found.append(f"ledger {number} was answered with {sorted(set(said))}")
        left = [
            path.name
            for path in where.parent.iterdir()
            if path.name not in ("ledger.db", "ledger.db-wal", "ledger.db-shm")
        ]
        found += [f"{name} was left beside a ledger" for name in left]
        with Ledger.open(where, read_only=True) as ledger:
            found += [] if ledger.verify() else [f"ledger {number} is broken"]
    for process in runners:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()
