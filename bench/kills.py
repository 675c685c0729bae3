"""Runs of a programme killed with SIGKILL at random instants, and run again, with DuckDB.

An instant is a step, each as likely as any other, and a random time of as long as that step took in an undisturbed run:
most of the time goes into few steps, and kills are to fall into all. Where the step is over already, the programme is
run to its end and the next one is killed. After every kill the ledger and the visible files are compared
(`bench.accidents`). Now and then the data or a price are changed before the next run, which must refuse and spend
nothing. A new seed is taken for every run of the bench.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
from tests.engines import programme
from tests.runs import Runner

from bench import accidents
from bench.comparison import Comparison
from discreet.review.verdict import verify_bundle

KILLS, REVIEWED = 200, 3
START = "start"
"""Before a run has said a step."""


def compare(*, quick: bool) -> Comparison:
    """What 200 kills did."""
    return killed(10 if quick else KILLS)


def killed(
    kills: int,
    *,
    engine: str = "",
    java: float = 0.0,
    environment: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> Comparison:
    """So many kills; a share `java` of them hits the JVM and not Python."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    with tempfile.TemporaryDirectory() as scratch:
        found = Killing(Path(scratch), engine, random.Random(seed), java, environment or {})
        try:
            while sum(found.steps.values()) < kills and not found.faults:
                found.kill()
            found.finish()
        finally:
            found.runner.close()
    facts = {
        "seed": seed,
        "kills": sum(found.steps.values()),
        "kills of the JVM": found.jvm,
        "steps": dict(found.steps.most_common()),
        "programmes": found.programmes,
        "changed data refused": found.refused["data"],
        "changed prices refused": found.refused["price"],
        "bundles reviewed": found.reviewed,
        "faults": len(found.faults),
    }
    print(f"   {facts}", flush=True)
    return Comparison(facts=facts, broken=tuple(found.faults))


class Killing:
    """One programme after another, each killed until everything is published."""

    def __init__(
        self, scratch: Path, engine: str, chance: random.Random, java: float, environment: Mapping[str, str]
    ) -> None:
        self.scratch, self.engine, self.chance, self.java = scratch, engine, chance, java
        self.runner = Runner(programme.write(scratch / "first", engine), environment)
        self.folder: Path | None = None
        self.before: dict[str, dict[str, str]] = {}
        self.programmes = self.reviewed = self.jvm = 0
        self.steps, self.refused, self.faults = Counter[str](), Counter[str](), list[str]()
        self.lasts = undisturbed(self.runner, programme.write(scratch / "whole", engine))

    def kill(self) -> None:
        """Start a run, kill it within a random step, and look."""
        step = self.chance.choice(list(self.lasts))
        if step.split()[-1] in self.before:  # what is published is neither read nor released again
            self.finish()
        if self.folder is None:
            self.programmes += 1
            self.folder, self.before = self.scratch / f"programme-{self.programmes}", {}
            programme.write(self.folder, self.engine)
        folder, worker = self.folder, self.runner.start(self.folder / "plan.toml")
        itself = os.pidfd_open(worker)  # a process that has ended meanwhile is not taken for another one
        there, said = (True, []) if step == START else self.runner.until(step)
        hit = list[int]()
        if there:
            time.sleep(self.chance.uniform(0, self.lasts[step]))
            hit = children(worker) if self.chance.random() < self.java else []
            for process in hit:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if not hit:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(itself, signal.SIGKILL)
        os.close(itself)
        code, more = self.runner.wait()
        said += more
        if code == -signal.SIGKILL or (hit and code == 2):
            steps = [line.partition(" ")[2] for line in said if line[:1].isdigit()]
            self.steps[steps[-1] if steps else START] += 1
            self.jvm += bool(hit)
        elif code != 0:
            self.faults.append(f"a run that was killed ended with {code}: {said[-1:]}")
        self.faults += accidents.faults(folder)
        now = accidents.published(folder)
        self.faults += [f"{name} was fixed anew" for name in self.before if now.get(name) != self.before[name]]
        self.before = now
        if accidents.charged(folder) > 0 and len(now) < len(accidents.PRICES) and self.chance.random() < 0.3:
            self.change(folder)

    def change(self, folder: Path) -> None:
        """A run with other data, or at another price, must be refused with nothing spent."""
        kind = self.chance.choice(["data", "price"])
        path = folder / "data" / "panel.parquet" if kind == "data" else folder / "plan.toml"
        kept, times, paid = path.read_bytes(), path.stat(), accidents.charged(folder)
        if kind == "data":
            table = pq.read_table(path)
            pq.write_table(table.slice(1), path)
        else:
            path.write_text(kept.decode().replace("epsilon = 2", "epsilon = 1"), encoding="utf-8")
        self.runner.start(folder / "plan.toml")
        code, said = self.runner.wait()
        if code == 2 and accidents.charged(folder) == paid:
            self.refused[kind] += 1
        else:
            self.faults.append(f"after another {kind} a run ended with {code}: {said[-1:]}")
        path.write_bytes(kept)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # by which a cluster's files are known again
        self.faults += accidents.faults(folder)

    def finish(self) -> None:
        """Run to the end, and give the first few bundles to the reviewer."""
        if self.folder is None:
            return
        self.runner.start(self.folder / "plan.toml")
        code, said = self.runner.wait()
        if code:
            self.faults.append(f"a run that resumes ended with {code}: {said[-1:]}")
        else:
            self.faults += accidents.unfinished(self.folder, self.before)
            if self.reviewed < REVIEWED:
                self.reviewed += 1
                wrong = [str(each) for each in verify_bundle(self.folder / "out" / "bundle.zip") if each.wrong]
                self.faults += [f"the reviewer refuses: {each}" for each in wrong]
        self.folder, self.before = None, {}


def undisturbed(runner: Runner, plan: Path) -> dict[str, float]:
    """How long every step of a run takes, in their order."""
    step, begun, found = START, time.monotonic(), dict[str, float]()
    runner.start(plan)
    while True:
        there, said = runner.until()
        found[step] = time.monotonic() - begun
        if not there:
            break
        step, begun = said[-1].partition(" ")[2], time.monotonic()
    code, _ = runner.wait()
    if code:
        raise RuntimeError(f"an undisturbed run fails: {said}")
    return found


def children(process: int) -> list[int]:
    """The processes that one has started, and that live."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    except OSError:
        return []
