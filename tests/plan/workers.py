"""Processes that carry out plans and may die: a line with a plan's path starts one, "wait" waits for it.

"command POINT PATH" starts `discreet run PATH`, which says "here" and goes on for ever when it comes to a point.

Each run is a fork that says its process id, then every step as it begins. The imports are paid once: a first run, of
the plan given as argument, tells which modules a run needs, and they are imported before the forking begins. (They
are only imported, because threads do not survive a fork.)
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from itertools import count
from pathlib import Path
from threading import Thread


def carry_out(plan: Path) -> int:
    from discreet.plan.run import run
    from discreet.words.errors import DiscreetError

    print(os.getpid(), flush=True)
    try:
        done = count()
        run(plan, progress=lambda step, share: print(f"{next(done)} {step}", flush=True))
    except DiscreetError as error:
        print(f"refused: {error}", flush=True)
        return 2
    except BaseException:  # in one line, which the caller sees: what ends a run otherwise is a fault
        print(f"raised: {traceback.format_exc()!r}", flush=True)
        return 1
    return 0


LONG = "SELECT i FROM range(100000000000) rows(i) ORDER BY i DESC LIMIT 3"
"""A query of hours that needs no memory."""


def stop_at(point: str) -> None:
    """Say "here" and work on for ever: in the n-th query, before a step of the run, or in the n-th call for noise."""
    import duckdb

    from discreet.data.frames import connect
    from discreet.noise.source import SystemSource
    from discreet.plan import run as run_module

    def say_when_it_runs(connection: duckdb.DuckDBPyConnection) -> None:
        while connection.query_progress() <= 0:
            time.sleep(0.01)
        print("here", flush=True)

    kind, _, which = point.partition(":")
    seen = count(1)
    fetch, words, following = duckdb.DuckDBPyRelation.to_arrow_table, SystemSource.words, run_module._Steps.next

    def fetched(relation: duckdb.DuckDBPyRelation) -> object:
        if kind == "query" and next(seen) == int(which):
            busy = connect()
            busy.execute("SET enable_progress_bar = true")
            busy.execute("SET enable_progress_bar_print = false")
            Thread(target=say_when_it_runs, args=(busy,), daemon=True).start()
            return fetch(busy.sql(LONG))
        return fetch(relation)

    def drawn(source: SystemSource, n: int) -> object:
        if kind == "draw" and next(seen) == int(which):
            print("here", flush=True)
            time.sleep(3600)
        return words(source, n)

    def stepped(steps: object, name: str) -> None:
        if kind == "step" and name.replace(" ", "_") == which:
            print("here", flush=True)
            time.sleep(3600)
        following(steps, name)

    duckdb.DuckDBPyRelation.to_arrow_table = fetched  # type: ignore[method-assign,assignment]
    SystemSource.words = drawn  # type: ignore[method-assign,assignment]
    run_module._Steps.next = stepped  # type: ignore[method-assign,assignment]


def command(point: str, plan: str) -> int:
    """`discreet run`, whose words all go to the standard output."""
    print(os.getpid(), flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(1, 2)
    sys.argv = ["discreet", "run", plan]
    from discreet.cli import main

    stop_at(point)
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        return int(end.code or 0)
    return 0


def import_what_a_run_needs(plan: str) -> None:
    code = f"import sys; from discreet.plan.run import run; run({plan!r}); print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        with contextlib.suppress(Exception):  # parts of packages that import themselves under other names
            importlib.import_module(name)


if __name__ == "__main__":
    import_what_a_run_needs(sys.argv[1])
    alive = 0
    print("ready", flush=True)
    for order in iter(sys.stdin.readline, ""):
        if order.strip() == "wait":
            _, status = os.waitpid(alive, 0)
            alive = 0
            print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)
        elif not (alive := os.fork()):
            first, *rest = order.strip().split(" ", 2)
            os._exit(command(*rest) if first == "command" else carry_out(Path(order.strip())))
    if alive:  # the test has ended early
        os.kill(alive, signal.SIGKILL)
