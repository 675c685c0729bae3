"""Thousands of worlds: the whole way of each, the seed printed, what breaks kept.

python tests/worlds/run.py --worlds 2000 [--minutes 60] [--seed 7] [--only 12] [--out out/fuzz]
python tests/worlds/run.py --bundles 200 [--seed 7]

With `--bundles`, so many genuine releases of odd worlds are verified, and as many with one thing changed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]


def main(arguments: Sequence[str]) -> int:
    """Run so many worlds, or for so long, and tell what was found."""
    from worlds import planned
    from worlds.shrink import shrunk
    from worlds.way import COUNTED, faults, somewhere, verified
    from worlds.world import drawn

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10**6)
    parser.add_argument("--worlds", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, help="one world of this seed")
    parser.add_argument("--shrink", action="store_true", help="look for a plainer world with the same fault")
    parser.add_argument("--stop", action="store_true", help="end at the first that breaks")
    parser.add_argument("--first", type=int, default=0, help="the number of the first world")
    parser.add_argument("--bundles", type=int, help="verify so many releases, and so many with one thing changed")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    begun, tried, found = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        os.environ["XDG_STATE_HOME"] = folder
        os.environ["XDG_CACHE_HOME"] = str(asked.out.resolve() / "cache")  # tables of noise take seconds each
        for number in [asked.only] if asked.only is not None else range(asked.first, asked.first + asked.worlds):
            if asked.bundles is not None and _bundles(COUNTED) >= asked.bundles:
                break
            if time.monotonic() - begun > 60 * asked.minutes:
                break
            world = drawn(asked.seed, number)
            broken = faults(world, keep=asked.out / world.seed) if asked.bundles is None else verified(world)
            if asked.bundles is None and number % MODELS == 0:
                with somewhere() as place:
                    broken += [f"plan of a model: {each}" for each in planned.faults(asked.seed + number, place)]
            tried += 1
            if not tried % 100:
                print(f"{tried:,} worlds in {time.monotonic() - begun:,.0f} s", flush=True)
            if broken:
                found += 1
                print(f"{world.seed}: {'; '.join(each.splitlines()[0] for each in broken)[:300]}", flush=True)
                if asked.shrink:
                    print(
                        shrunk(world, lambda plainer, broken=broken: _alike(broken, faults(plainer))).script, flush=True
                    )
                if asked.stop:
                    break
    for what, many in sorted(COUNTED.items()):
        print(f"{many:>8,}  {what}")
    print(f"{tried:,} worlds in {time.monotonic() - begun:,.0f} s, {found} with faults")
    return int(found > 0)


MODELS = 10
"""Every so many worlds there is a plan of a model, too."""


def _bundles(counted: Mapping[str, int]) -> int:
    return sum(many for what, many in counted.items() if what.startswith("genuine bundles"))


def _alike(one: list[str], other: list[str]) -> bool:
    """Whether two worlds have a fault in common, by what is said of it first."""
    return bool(
        {each.partition(":")[0].splitlines()[0] for each in one}
        & {each.partition(":")[0].splitlines()[0] for each in other}
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
