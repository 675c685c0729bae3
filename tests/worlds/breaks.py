"""Break the product on purpose, and see within how many odd worlds it is found.

    python tests/worlds/breaks.py [--worlds 500] [--minutes 6] [--seed 37] [--only 3]

Each break of `breaks.toml` is made in a copy of the source, alone, and worlds are drawn until one has a fault.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
TREE = HERE.parents[1]


def main(arguments: Sequence[str]) -> int:
    """Make the breaks, and tell which were found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=500, help="at most so many for each")
    parser.add_argument("--minutes", type=float, default=60, help="at most so long for each")
    parser.add_argument("--seed", type=int, default=37)
    parser.add_argument("--only", type=int, help="one of them, counted from 1")
    parser.add_argument("--from", type=int, default=1, dest="begin", help="from this one on")
    asked = parser.parse_args(arguments)
    made = tomllib.loads((HERE / "breaks.toml").read_text(encoding="utf-8"))["break"]
    found = 0
    chosen = [each for number, each in enumerate(made, 1) if asked.only in (None, number) and number >= asked.begin]
    for each in chosen:
        begun = time.monotonic()
        said = _tried(each, asked)
        worlds = re.findall(rf"^({asked.seed}-(\d+)): (.*)$", said, re.MULTILINE)
        found += bool(worlds)
        told = (
            f"found by world {int(worlds[0][1]) + 1}: {worlds[0][2][:120]}" if worlds else f"NOT found: {said[-300:]}"
        )
        print(f"{each['why']}: {told} ({time.monotonic() - begun:,.0f} s)", flush=True)
    print(f"{found} of {len(chosen)} found")
    return int(found < len(chosen))


def _tried(each: dict[str, str], asked: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(TREE / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "discreet" / each["path"]
        text = path.read_text(encoding="utf-8")
        if text.count(each["text"]) != 1:
            raise SystemExit(f"{each['why']}: its text is there {text.count(each['text'])} times")
        path.write_text(text.replace(each["text"], each["instead"]), encoding="utf-8")
        words = ["--worlds", asked.worlds, "--minutes", asked.minutes, "--seed", asked.seed, "--stop"]
        command = [sys.executable, str(HERE / "run.py"), *map(str, words), "--out", str(TREE / "out" / "breaks")]
        environment = os.environ | {"PYTHONPATH": str(source)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=TREE, check=False)
        return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
