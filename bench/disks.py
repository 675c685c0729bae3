"""Disks that fill up, turn read-only or lose their power in the middle of a run.

A full disk is a memory disk that something else fills at a random instant. The others are a file that is mounted as
ext4: the kernel is told of an error, after which it mounts the disk read-only, or to shut the disk down without writing
its journal, which is what a power cut leaves. What is on the disk then is looked at in a copy; the disk is repaired,
and the run is resumed. All of it happens in a space of mounts that goes with the process, and needs root.

    python -m bench.disks TIMES SEED    (inside that space; prints what it found as JSON)
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engines import programme
from tests.runs import Runner

from bench import accidents
from bench.comparison import Comparison
from bench.peers import Missing

TIMES = 40
SHUTDOWN, WITHOUT_JOURNAL = 0x8004587D, 2  # FS_IOC_SHUTDOWN and its flag, linux/fs.h
SPAN = 1.2  # of the seconds of a whole run: some accidents come when it has ended


def compare(*, quick: bool) -> Comparison:
    """What became of runs whose disks failed them."""
    seed = random.SystemRandom().randrange(10**6)
    command = ["unshare", "-m", sys.executable, "-m", "bench.disks", str(3 if quick else TIMES), str(seed)]
    if shutil.which("unshare") is None or os.geteuid() != 0:
        raise Missing("it needs unshare and root, to mount disks of its own")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    rows = json.loads(done.stdout.splitlines()[-1])
    broken = [f"{row['accident']}: {fault}" for row in rows for fault in row.pop("found")]
    for row in rows:
        print(f"   {row}", flush=True)
    return Comparison(facts={"seed": seed, "rows": rows}, broken=tuple(broken))


class Disk:
    """A disk of its own at `place`; `keeps` if all that can be read when it is looked at is there afterwards."""

    keeps = True

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.place = scratch, scratch / "disk"
        self.place.mkdir(exist_ok=True)

    def make(self) -> None:
        mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(self.place))

    def fail(self, chance: random.Random) -> None:
        """Fill it, up to some KB."""
        left = chance.choice((0, 0, 4, 16, 64)) * 1024
        with (self.place / "ballast").open("wb") as file, suppress(OSError):
            room = os.statvfs(self.place)
            os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_frsize - left))

    def repair(self) -> None:
        (self.place / "ballast").unlink(missing_ok=True)

    def remove(self) -> None:
        subprocess.run(["umount", str(self.place)], check=True)


class Image(Disk):
    """A file that is mounted as ext4; an error makes it read-only.

    Linux 6.18 acknowledges the one sync that is under way at the error and loses what it wrote, in 5 of 60 files that
    were written and synced line by line, without discreet. Until the repair that line can still be read.
    """

    keeps = False

    def make(self) -> None:
        image = self.scratch / "image"
        image.unlink(missing_ok=True)
        with image.open("wb") as file:
            file.truncate(64 * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        self.attach()

    def attach(self) -> None:
        mount("-o", "loop,errors=remount-ro", str(self.scratch / "image"), str(self.place))

    def fail(self, chance: random.Random) -> None:
        device = self.place.stat().st_dev
        name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
        Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("made on purpose")

    def repair(self) -> None:
        self.remove()
        done = subprocess.run(["e2fsck", "-y", str(self.scratch / "image")], capture_output=True, check=False)
        assert done.returncode in (0, 1), done
        self.attach()


class Cut(Image):
    """The same, without power from an instant on; it is looked at when the power is back."""

    keeps = True

    def fail(self, chance: random.Random) -> None:
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(place)

    def repair(self) -> None:  # mounting reads the journal, as after a power cut
        self.remove()
        self.attach()


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


KINDS: Mapping[str, Callable[[Path], Disk]] = {
    "the disk is full": Disk,
    "the disk turns read-only": Image,
    "the power is cut": Cut,
}


def suffered(accident: str, scratch: Path, runner: Runner, chance: random.Random, *, times: int) -> dict[str, Any]:
    """So many accidents of one kind: how the runs ended, and what was wrong."""
    row: dict[str, Any] = {"accident": accident, "times": times, "well": 0, "refused": 0, "faults": 0, "found": []}
    begun = time.monotonic()
    runner.start(programme.write(scratch / accident.replace(" ", "-")))
    code, said = runner.wait()
    assert code == 0, said
    longest = SPAN * (time.monotonic() - begun)
    for turn in range(times):
        disk = KINDS[accident](scratch)
        disk.make()
        folder = disk.place / "programme"
        plan = programme.write(folder)
        subprocess.run(["sync", "-f", str(folder)], check=True)  # the data were there long before
        runner.start(plan)
        time.sleep(chance.uniform(0, longest))
        disk.fail(chance)
        code, said = runner.wait()
        row["well"] += code == 0
        row["refused"] += code == 2
        found = [] if code in (0, 2) else [f"a run ended with {code}: {said[-1:]}"]
        if isinstance(disk, Cut):
            disk.repair()
        seen, paid = looked_at(folder, scratch, found)
        before = seen if disk.keeps else shown(seen, scratch / "copy" / "out")
        begun_with = [line.split()[2] for line in said if re.match(r"\d+ release ", line)]
        lost = [name for name in begun_with[:-1] if name not in before]  # the next one had begun: these were shown
        found += [f"{name} was published and is lost" for name in lost]
        if not isinstance(disk, Cut):
            disk.repair()
        left, least = accidents.charged(folder), paid if disk.keeps else len(before)
        if left < least:
            found.append(f"{least} charges were made and {left} are left")
        found += accidents.faults(folder)
        runner.start(plan)
        code, said = runner.wait()
        found += accidents.unfinished(folder, before) if code == 0 else [f"resumed, it ended with {code}: {said[-1:]}"]
        disk.remove()
        row["faults"] += len(found)
        row["found"] += [f"{turn}: {fault}" for fault in found]
    return row


def shown(seen: Mapping[str, dict[str, str]], out: Path) -> dict[str, dict[str, str]]:
    """Those of the publications in a ledger that anybody can see: a folder is renamed when its line is on disk."""
    return {name: files for name, files in seen.items() if (out / name).exists()}


def looked_at(folder: Path, scratch: Path, found: list[str]) -> tuple[dict[str, dict[str, str]], int]:
    """What the ledger of a copy has fixed, and how often it was charged; what is wrong is added to `found`."""
    copy = accidents.copied(folder, scratch / "copy")
    found += accidents.faults(copy)
    return accidents.published(copy), accidents.charged(copy)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(programme.write(Path(folder) / "first"))
        try:
            asked, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
            rows = [suffered(kind, Path(folder), runner, chance, times=asked) for kind in KINDS]
        finally:
            runner.close()
    print(json.dumps(rows))
