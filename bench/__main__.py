"""`make bench`: every comparison, `bench/results.json`, what the docs show of them, and a sentence of the README.

A comparison that fails leaves a row that says so and does not stop the others. Each one's seconds by the clock are
recorded with it; tables and pictures are written anew after each, so that an interruption leaves nothing that
contradicts the records. Every record has a hash of the code: parts that were measured one by one are one run of one
code if `--rest` finds nothing to do.

python -m bench                  everything at full size; the quick form is recorded after it
python -m bench counts roc       these; what was recorded of the others stays
python -m bench --rest           those that are not recorded with this state of the code: goes on after an interruption
python -m bench --install        installs every peer and says which there are
python -m bench --quick          small sizes, within five minutes: which ratios fell below half of the recorded ones
python -m bench --quick --record the same, and records them
python -m bench --publish        measures nothing: the tables and pictures of what is recorded
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench import comparison, figures, page, peers, reliability
from bench.comparison import Comparison
from discreet.release.files import source_hash

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
README = HERE.parent / "README.md"
BENCH = HERE.parent / "docs" / "explanation" / "bench.md"
SPEED = HERE.parent / "docs" / "explanation" / "speed.md"
RELIABILITY = HERE.parent / "docs" / "explanation" / "reliability.md"
PICTURES = HERE.parent / "docs" / "images"
NAMES = (
    "counts",
    "engine",
    "accuracy",
    "sampler",
    "mixed",
    "terms",
    "hidden",
    "families",
    "gibbs",
    "roc",
    "quantile",
    "posterior",
    "summaries",
    "exceptions",
    "national",
)
WITHOUT_PEERS = (
    "laws",
    "cluster",
    "growth",
    "plan",
    "desk",
    "startup",
    "profiles",
)  # no ratio that could fall: the quick form leaves them out
ACCIDENTS = ("kills", "kills_on_spark", "ledgers", "disks", "clocks")
ALL = (*NAMES, *WITHOUT_PEERS, *ACCIDENTS)
QUICK_SECONDS = 240.0


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="comparisons; all without a name")
    parser.add_argument("--rest", action="store_true", help="what is not recorded with this state of the code")
    parser.add_argument("--install", action="store_true", help="install every peer, measure nothing")
    parser.add_argument("--quick", action="store_true", help="small sizes; report what fell, change no file")
    parser.add_argument("--record", action="store_true", help="with --quick: write the ratios down")
    parser.add_argument("--publish", action="store_true", help="write the tables and pictures of what is recorded")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in ALL]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a comparison; there are: {', '.join(ALL)}")
    try:
        if asked.publish:
            return publish(read(RESULTS)["full"])
        if asked.install:
            return install()
        if asked.quick:
            return quick(asked.names or NAMES, record=asked.record)
        names = [name for name in asked.names or ALL if not (asked.rest and is_recorded(name))]
        return full(names, whole=not asked.names)
    except KeyboardInterrupt:
        print("bench: interrupted.", file=sys.stderr)
        return 130


def full(names: Sequence[str], *, whole: bool) -> int:
    """Full size, one after another; the whole is followed by the quick form."""
    start, failed = time.monotonic(), []
    for name in names:
        print(f"== {name}", flush=True)
        begun = time.monotonic()
        try:
            found = compare(name, quick=False)
        except Exception as error:  # what was measured before is not shown as if it were of now
            traceback.print_exc()
            found = replace(
                Comparison.that_failed(name, error), seconds=time.monotonic() - begun, code=source_hash()[:12]
            )
        recorded = read(RESULTS)  # others may have been measured meanwhile
        recorded["full"][name] = found
        failed += [f"{name}: {line}" for line in found.failures]
        write(RESULTS, recorded)
        publish(read(RESULTS)["full"])  # as it was written down, with four digits
    if whole:
        quick(NAMES, record=True)
    print(f"The bench took {lasted(time.monotonic() - start)}.")
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def is_recorded(name: str) -> bool:
    """Whether a comparison was measured with this state of the code, and did not fail."""
    found = read(RESULTS)["full"].get(name)
    return found is not None and found.code == source_hash()[:12] and not found.failures


def install() -> int:
    """Every peer in its environment; one that cannot be had is named with the reason."""
    lacking = 0
    for peer in peers.EVERY:
        try:
            peer.python()
            print(f"{peer.name}: installed", flush=True)
        except peers.Missing as reason:
            lacking += 1
            print(f"{peer.name}: {reason}", flush=True)
    return 1 if lacking else 0


def quick(names: Sequence[str], *, record: bool) -> int:
    """Small sizes until the time is up; says what fell and what it did not watch, and never fails because of it."""
    start, recorded = time.monotonic(), read(RESULTS)
    fallen, wrong, unwatched = [], [], []
    ran: dict[str, Comparison] = {}
    peers.QUICK.deadline = start + QUICK_SECONDS + 40
    recently = {name: part.seconds for name, part in recorded["quick"].items()}
    for name in sorted(names, key=lambda name: recently.get(name, 0.0)):  # time runs out for as little as can be
        found = Comparison()
        if time.monotonic() - start > QUICK_SECONDS:
            print(f"== {name}: not run, the time is up")
        else:
            print(f"== {name}", flush=True)
            try:
                found = ran[name] = compare(name, quick=True)
            except Exception as error:
                print(f"   failed: {type(error).__name__}: {error}")
        before = recorded["quick"].get(name, Comparison())
        fallen += comparison.fallen(found, before)
        wrong += [f"{name}: {line}" for line in found.failures]
        unwatched += comparison.unwatched(found, (before, recorded["full"].get(name, Comparison())))
    if record:
        recorded = read(RESULTS)  # others may have been measured meanwhile
        recorded["quick"].update(ran)
        write(RESULTS, recorded)
    for title, lines in (
        ("Below half of the recorded ratio:", fallen or ["none"]),
        ("Wrong:", wrong),
        ("Recorded, but not watched by this run, for want of a peer or of time (`make bench` has all):", unwatched),
    ):
        if lines:
            print("\n   ".join([title, *lines]))
    print(f"The quick form took {lasted(time.monotonic() - start)}.", flush=True)
    return 0


def compare(name: str, *, quick: bool) -> Comparison:
    """Run one comparison, print its rows, and note how long it took."""
    start = time.monotonic()
    found: Comparison = import_module(f"bench.{name}").compare(quick=quick)
    found = replace(found, seconds=time.monotonic() - start, code=source_hash()[:12])
    for row in found.rows:
        print(f"   {row.job} | {row.peer} {row.version} | time {comparison.shown(row.time)}, ", end="")
        print(f"memory {comparison.shown(row.memory)} | {row.agreement} {row.why}")
    for error in found.accuracy:
        print(f"   {error.promise} | {error.peer} | error {comparison.shown(error.error)} | {error.protects}")
    print(f"   took {lasted(found.seconds)}", flush=True)
    return found


def lasted(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def publish(found: Mapping[str, Comparison]) -> int:
    """The tables, the pictures and the README's sentence, from what was measured, if anything was."""
    if not found:
        print("bench: nothing is recorded, so there is nothing to publish.", file=sys.stderr)
        return 1
    for path, text in texts(found).items():
        comparison.put_into(path, text)
    figures.draw(PICTURES, rows_of(found), page.curves_of(measured(found)))
    return 0


def measured(found: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """Those that did not fail: they have facts."""
    return {name: part for name, part in found.items() if not part.failed}


def texts(found: Mapping[str, Comparison]) -> dict[Path, str]:
    """What stands between the marks of each page."""
    errors = [row for name in ALL if name in found for row in found[name].accuracy]
    absent = [name for name in (*NAMES, *WITHOUT_PEERS) if name not in found]
    codes = len({part.code for part in found.values()})
    beside = page.side_by_side(rows_of(found), errors, absent=absent, codes=codes)
    return {
        README: page.in_short(rows_of(found)),
        BENCH: "\n\n".join([beside, *page.by_themselves(measured(found))]),
        SPEED: page.growth_and_cost(measured(found)),
        RELIABILITY: reliability.page(measured(found)),
    }


def rows_of(found: Mapping[str, Comparison]) -> list[comparison.Row]:
    return [row for name in ALL if name in found for row in found[name].rows]


def read(path: Path) -> dict[str, dict[str, Comparison]]:
    """What was recorded at either size."""
    sizes = ("full", "quick")
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return {size: {name: Comparison.of(found) for name, found in content.get(size, {}).items()} for size in sizes}
    except (ValueError, TypeError, AttributeError):  # not JSON, or not of this shape
        print(f"{path.name} is damaged; nothing counts as recorded.", file=sys.stderr)
        return {size: {} for size in sizes}


def write(path: Path, recorded: Mapping[str, Mapping[str, Comparison]]) -> None:
    """Numbers to four digits: more would be noise in the history."""
    content = {size: {name: found.to_dict() for name, found in part.items()} for size, part in recorded.items()}
    comparison.replace_file(path, json.dumps(rounded(content), indent=1) + "\n")


def rounded(content: Any) -> Any:
    if isinstance(content, np.generic):  # JSON knows Python's numbers, true and false only
        content = content.item()
    if isinstance(content, float):
        return float(f"{content:.4g}")
    if isinstance(content, Mapping):
        return {key: rounded(value) for key, value in content.items()}
    return [rounded(value) for value in content] if isinstance(content, list | tuple) else content


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that no peer is left running
    raise SystemExit(main(sys.argv[1:]))
