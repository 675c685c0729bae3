"""The process that carries a plan out: what `discreet run` does, with its progress written to a file.

python -m discreet.desk.worker PLAN FOLDER RUN DIGEST AT_ONCE, with the plan's text on standard input: PLAN says where
the text is at home and is not read. It inherits the run's lock and needs nothing else of the server, so it goes on when
the server ends. If it is killed, it leaves the same as `discreet run`: a run to resume.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.data.failures import interrupted
from discreet.words.errors import DiscreetError

INTERRUPTED = 130
PATIENCE = 0.25
"""Seconds between two looks for a free place."""


def main(plan: Path, folder: Path, name: str, digest: str, at_once: int, text: bytes) -> int:
    with (folder / f"{name}.jsonl").open("ab", buffering=0) as file:

        def tell(kind: str, text: str, **more: Any) -> None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            file.write(json.dumps({"at": at, "kind": kind, "text": text, **more}).encode() + b"\n")

        _begin_line(folder / f"{name}.jsonl", file)
        tell("started", "the worker started", pid=os.getpid())
        try:
            return _carry_out(plan, text, folder, digest, at_once, tell)
        except DiscreetError as error:
            tell("failed", str(error))
        except BaseException as error:
            if interrupted(error):
                tell("step", " ".join(["interrupted.", *getattr(error, "__notes__", ())]))
                return INTERRUPTED
            tell("failed", _unforeseen(error))
        return 1


def _carry_out(plan: Path, text: bytes, folder: Path, digest: str, at_once: int, tell: Any) -> int:
    from discreet.desk.desk import DATABASE
    from discreet.desk.drafts import digest as digest_of
    from discreet.ledger.budget import amounts
    from discreet.ledger.desk_anchors import DeskAnchors
    from discreet.plan.reading import read_plan
    from discreet.plan.run import run

    place = _place(folder, at_once, tell)
    try:
        if digest_of(text) != digest:
            raise DiscreetError(
                f"{plan.name} is not the text that was approved.",
                "Only that is run, and this run spent nothing.",
                "Start it again.",
                about="plan",
            )
        file = replace(read_plan(plan, text), traces=(DeskAnchors(folder.parent / DATABASE),))
        outcome = run(file, progress=lambda text, share: tell("step", text, done=share, steps=1))
    finally:
        os.close(place)
    left = amounts(outcome.remaining)
    tell("done", f"{len(outcome.publications)} released, {left} is left", releases=list(outcome.publications))
    return 0


def _place(folder: Path, at_once: int, tell: Any) -> int:
    """A lock on one of the places for work; waits while all are taken."""
    handles = [os.open(folder / f".place-{i}", os.O_RDWR | os.O_CREAT, 0o600) for i in range(at_once)]
    waiting = False
    while True:
        for handle in handles:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            for other in handles:
                if other != handle:
                    os.close(other)
            return handle
        if not waiting:
            tell("step", "waiting for other runs to end")
            waiting = True
        time.sleep(PATIENCE)


def _begin_line(path: Path, file: Any) -> None:
    """After a worker that was killed while it wrote, begin a new line."""
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        file.write(b"\n")


def _unforeseen(error: BaseException) -> str:
    """The place of the failure, without the message, which may hold a value of the data."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"The run ended with an unforeseen {type(error).__name__} at {where}. Releases that are paid for stay paid "
        f"for and can be resumed. Resume the run; if it fails again, report this line."
    )


if __name__ == "__main__":
    os.umask(os.umask(0o077) | 0o027)  # what is released is for its owner to write, and for others to be given
    given = sys.stdin.buffer.read()
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]), given))
