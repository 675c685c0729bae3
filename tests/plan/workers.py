"""Processes that carry out plans and may die: a line with a plan's path starts one, "wait" waits for it.

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
import traceback
from itertools import count
from pathlib import Path


def carry_out(plan: Path) -> int:
    from discreet.errors import DiscreetError
    from discreet.plan.run import run

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
            os._exit(carry_out(Path(order.strip())))
    if alive:  # the test has ended early
        os.kill(alive, signal.SIGKILL)
