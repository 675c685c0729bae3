"""Damage plans, bundles and tables by chance, and see that every command ends as it promises.

    python tests/fuzz/run.py --minutes 60 [--seed 7] [--out out/fuzz]

A command ends with 0, 1 or 2 and without a traceback, whatever it is given; no value of the confidential table is in
what it prints; a run that was refused has published and spent nothing; a bundle with another content is not verified.
What breaks one of these is kept in a folder with the seed that makes it again. Each case runs in a process of its own,
forked from one that has loaded everything.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

MARK = "Zaphod"
"""In every confidential value: nobody else says it."""

SECONDS, MEMORY = 300, 6 * 2**30
HOSTILE = (
    *("0", "-1", "1e400", "-0.0", "nan", "inf", "9223372036854775808", "1e-320", '""', '"\\u0000"', '"../../etc"'),
    *("[]", "[[]]", "{}", "true", "1979-05-27", '"a.b"', '"ü/\\u202e"', '"' + "x" * 300 + '"', "[1, [2]]", '"1/0"'),
    *('"1/3"', "[0.5, 0.6]", '["place", "place"]', "0x7f", '"None"', '"; DROP TABLE jobs"', "'''a\nb'''"),
)

PLAN = """
title = "Toys"
[data]
source = "data/jobs.parquet"
workplaces = "data/places.parquet"
[data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = { sex = ["f", "m"] }
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 6
ledger = "ledger.db"
dataset = "toys"
[[release]]
name = "places"
kind = "count"
by = ["place", "sector"]
mechanism = "polynomial"
epsilon = 1
[[release]]
name = "sexes"
kind = "count"
by = ["place"]
where = { sex = ["f"] }
mechanism = "polynomial"
epsilon = 1
[[release]]
name = "margins"
kind = "counts"
tables = [["place", "sector"], ["place"]]
split = ["1/2", "1/2"]
add_up = true
epsilon = 2
[output]
folder = "out"
"""

ROWS = """
title = "Rows"
[data]
source = "data/panel.parquet"
public = ["x", "g"]
[unit]
kind = "rows"
response = "y"
lower = -10
upper = 10
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "panel"
[[release]]
name = "effects"
kind = "model"
formula = "y ~ x + (1 | g)"
epsilon = 1
[output]
folder = "out"
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or minus the signal; what it printed; what it did to the folder."""

    code: int
    said: str
    spent: bool


def main(arguments: Sequence[str]) -> int:
    """Run for so long, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, help="one case of this seed")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    begun, counted, found = time.monotonic(), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        corpus = Path(folder) / "corpus"
        prepare(corpus)
        for number in [asked.only] if asked.only is not None else range(asked.cases):
            if time.monotonic() - begun > 60 * asked.minutes:
                break
            place = Path(folder) / "case"
            faults, kind, ended = tried(corpus, place, random.Random(f"{asked.seed}-{number}"))
            counted[f"{kind}: ended with {ended.code}"] += 1
            if faults:
                found += 1
                kept = asked.out / f"{asked.seed}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(place, kept)
                (kept / "said.txt").write_text(ended.said, encoding="utf-8")
                print(f"case {number} ({kind}): {', '.join(faults)}; kept in {kept}", flush=True)
            shutil.rmtree(place, ignore_errors=True)
    for kind, many in sorted(counted.items()):
        print(f"{many:>8,}  {kind}")
    print(f"{sum(counted.values()):,} cases in {time.monotonic() - begun:,.0f} s, {found} faults")
    return int(found > 0)


LOADED = ("numpy", "scipy.special", "scipy.optimize", "scipy.stats", "pyarrow.parquet", "pyarrow.csv", "duckdb")
LOADED += ("flint", "pydantic", "narwhals.stable.v2", "sqlalchemy", "rich.progress", "discreet.plan.run")
LOADED += ("discreet.cli.plan", "discreet.review.verdict", "discreet.report.plan", "discreet.lmm.private")


def prepare(corpus: Path) -> None:
    """Sound plans, tables and bundles, and what every command loads."""
    for name in LOADED:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, size = np.random.default_rng(7), 30
    for name, text in (("toys", PLAN), ("rows", ROWS)):
        (corpus / name / "data").mkdir(parents=True)
        (corpus / name / "plan.toml").write_text(text, encoding="utf-8")
    places = np.array([f"{MARK}{i}" for i in range(size)])
    where = np.repeat(places, 1 + rng.geometric(0.2, size))
    listed = {
        "workplace": places,
        "place": [f"P{i % 4}" for i in range(size)],
        "sector": ["farm" if i % 3 else "shop" for i in range(size)],
    }
    jobs = {
        "workplace": where,
        "worker": [f"{MARK}{i}" for i in range(len(where))],
        "sex": np.where(rng.random(len(where)) < 0.5, "f", "m"),
    }
    groups = rng.integers(0, 8, 400)
    panel = {"y": np.clip(groups / 4 + rng.normal(size=400), -10, 10), "x": rng.normal(size=400), "g": groups}
    pq.write_table(pa.table(listed), corpus / "toys" / "data" / "places.parquet")
    pq.write_table(pa.table(jobs), corpus / "toys" / "data" / "jobs.parquet")
    pq.write_table(pa.table({**panel, "g": [f"g{i}" for i in groups]}), corpus / "rows" / "data" / "panel.parquet")
    for name in ("toys", "rows"):
        ended = forked(corpus / name, ["run", "plan.toml"])
        if ended.code != 0:
            raise SystemExit(f"a sound plan does not run: {ended.said}")
        (corpus / name / "out" / "bundle.zip").rename(corpus / name / "bundle.zip")
        shutil.rmtree(corpus / name / "out")
        (corpus / name / "ledger.db").unlink()
        ended = forked(corpus / name, ["verify", "bundle.zip"])
        if ended.code != 0:
            raise SystemExit(f"a sound bundle is not verified: {ended.said}")


def tried(corpus: Path, place: Path, chance: random.Random) -> tuple[list[str], str, Ended]:
    """Damage one thing and give it to a command: what was wrong with the end, and the end."""
    shutil.copytree(corpus / chance.choice(["toys", "rows"]), place)
    kind = chance.choice(["plan", "plan", "table", "bundle"])
    whole = True
    if kind == "plan":
        path = place / "plan.toml"
        path.write_bytes(damaged_text(path.read_text(encoding="utf-8"), chance))
        command = [chance.choice(["check", "check", "run"]), "plan.toml"]
    elif kind == "table":
        path = chance.choice(sorted((place / "data").iterdir()))
        path.write_bytes(damaged_bytes(path.read_bytes(), chance))
        command = [chance.choice(["check", "run"]), "plan.toml"]
    else:
        whole = damaged_bundle(place / "bundle.zip", chance)
        command = ["verify", "bundle.zip"]
    ended = forked(place, command)
    return list(faults(command[0], ended, whole=whole)), f"{command[0]}, {kind}", ended


def faults(command: str, ended: Ended, *, whole: bool) -> Iterator[str]:
    """Every promise that an end breaks."""
    if ended.code not in (0, 1, 2):
        yield f"ended with {ended.code}"
    if "Traceback (most recent call last)" in ended.said:
        yield "a traceback"
    if MARK in ended.said:
        yield "a confidential value is told"
    if command == "run" and ended.code == 2 and ended.spent:
        yield "refused, and spent"
    if command == "check" and ended.spent:
        yield "checked, and spent"
    if command == "verify" and ended.code == 0 and not whole:
        yield "another content is verified"


def forked(folder: Path, command: Sequence[str]) -> Ended:
    """The command in a process of its own, in that folder."""
    told = folder / ".said"
    child = os.fork()
    if child == 0:
        _carried_out(folder, command, told)
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    said = told.read_text(encoding="utf-8", errors="replace") if told.exists() else ""
    told.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(status), said, _spent(folder))


def _carried_out(folder: Path, command: Sequence[str], told: Path) -> None:
    from discreet.cli import main as discreet

    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with told.open("w", encoding="utf-8", errors="replace") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = file
        sys.argv, code = ["discreet", *command], 0
        try:
            discreet()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc(file=file)
            code = 3
        file.flush()
    os._exit(code)


def _spent(folder: Path) -> bool:
    """Whether a ledger has a charge, or a release is in the folder of results."""
    from discreet.ledger import Ledger

    if any(folder.glob("out/*/release.json")):
        return True
    with contextlib.suppress(Exception):
        for path in folder.glob("*.db"):
            with Ledger.open(path, read_only=True) as book:
                if any(entry.kind == "charge" for entry in book.entries()):
                    return True
    return False


def damaged_text(text: str, chance: random.Random) -> bytes:
    """A plan with one to three changes that somebody or something could make."""
    lines = text.splitlines()
    changes: tuple[Callable[[int], Any], ...] = (
        lines.pop,
        lambda at: lines.insert(at, lines[chance.randrange(len(lines))]),
        lambda at: lines.insert(at, f"{chance.choice(WORDS)} = {chance.choice(HOSTILE)}"),
        lambda at: lines.__setitem__(at, re.sub(r"=.*", lambda _: f"= {chance.choice(HOSTILE)}", lines[at], count=1)),
        lambda at: lines.__setitem__(at, re.sub(r"^\w+", lambda _: chance.choice(WORDS), lines[at])),
        lambda at: lines.__setitem__(at, re.sub(r"\"\w+\"", lambda _: f'"{chance.choice(WORDS)}"', lines[at])),
        lambda at: lines.__setitem__(at, re.sub(r"\d+", lambda _: str(chance.choice(NUMBERS)), lines[at])),
        lambda at: lines.__setitem__(at, lines[at].replace("[[", "[").replace("]]", "]")),
        lambda at: lines.insert(at, f"[{chance.choice(WORDS)}.{chance.choice(WORDS)}]"),
    )
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if lines:
            chance.choice(changes)(chance.randrange(len(lines)))
    whole = "\n".join(lines).encode("utf-8", errors="replace")
    return damaged_bytes(whole, chance) if chance.random() < 0.05 else whole


WORDS = tuple(
    sorted({*re.findall(r"\w{2,}", PLAN + ROWS), "ladder", "hierarchy", "sum", "flows", "posterior", "engine"})
)
NUMBERS = (0, 1, 2, 7, 10**6, 10**19, 10**40)


def damaged_bytes(whole: bytes, chance: random.Random) -> bytes:
    """Some bytes are other ones, are missing, or are there twice."""
    found = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, many = chance.randrange(len(found) + 1), chance.choice((1, 1, 4, 64))
        change = chance.randrange(4)
        if change == 0 and at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        elif change == 1:
            del found[at : at + many]
        elif change == 2:
            found[at:at] = found[at : at + many]
        else:
            found[at : at + many] = chance.randbytes(many)
    return bytes(found[: chance.randrange(len(found) + 1)] if chance.random() < 0.1 else found)


def damaged_bundle(path: Path, chance: random.Random) -> bool:
    """Damage the file or one of its parts; whether its parts are still what they were."""
    before = _parts(path)
    if chance.random() < 0.3:
        path.write_bytes(damaged_bytes(path.read_bytes(), chance))
        return _parts(path) == before
    parts = dict(before or {})
    name = chance.choice(sorted(parts))
    change = chance.randrange(6)
    if change == 0:
        del parts[name]
    elif change == 1:
        parts[chance.choice(("../escape", "/etc/x", "a/../b", name.upper(), name + " ", "con"))] = parts[name]
    elif change == 2:
        parts[name] = parts[chance.choice(sorted(parts))]
    elif change == 3 and name.endswith((".json", ".jsonl")):
        parts[name] = _damaged_json(parts[name], chance)
    else:
        parts[name] = damaged_bytes(parts[name], chance)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for part, content in parts.items():
            packed.writestr(part, content)
    return _parts(path) == before


def _damaged_json(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8")
    values = list(re.finditer(r'-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|true|false|null', text))
    if not values:
        return content
    at = chance.choice(values)
    other = chance.choice(("0", "-1", "1e999", '""', "null", "[]", "{}", '"1/3"', "true", str(10**30), '"\\u0000"'))
    return (text[: at.start()] + other + text[at.end() :]).encode()


def _parts(path: Path) -> dict[str, bytes] | None:
    """What a reader finds in the file; None where it finds nothing."""
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as packed:
            if len(set(packed.namelist())) < len(packed.namelist()):
                return None
            return {name: packed.read(name) for name in packed.namelist()}
    except Exception:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
