"""Plans, tables and bundles that are damaged by chance: every command ends as it promises, whatever it is given.

A command ends with 0, 1 or 2 and without a traceback; no confidential value is in what it prints; a run that was
refused has published and spent nothing; a bundle with another content is not verified.
"""

from __future__ import annotations

import io
import re
import resource
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from worlds.way import Walk, call

MORE = 6 * 2**30
"""Bytes of memory that a damaged plan may take beyond what there is."""

HOSTILE = (
    *("0", "-1", "1e400", "-0.0", "nan", "inf", "9223372036854775808", "1e-320", '""', '"\\u0000"', '"../../etc"'),
    *("[]", "[[]]", "{}", "true", "1979-05-27", '"a.b"', '"ü/\\u202e"', '"' + "x" * 300 + '"', "[1, [2]]", '"1/0"'),
    *('"1/3"', "[0.5, 0.6]", '["place", "place"]', "0x7f", '"None"', '"; DROP TABLE jobs"', "'''a\nb'''"),
)


def tried(walk: Walk) -> None:
    """Give a plan and a table with damage to `check` and `run`, and a bundle with damage to `verify`."""
    chance = Random(f"damage of {walk.world.rows}")
    for what in ("plan", "table"):
        folder = walk.folder / f"damaged-{what}"
        folder.mkdir()
        for path in walk.folder.iterdir():
            if path.name in ("data", "plan.toml", "schema.toml", "sizes.csv") or path.name.startswith("lookup-"):
                shutil.copytree(path, folder / path.name) if path.is_dir() else shutil.copy(path, folder)
        target = folder / "plan.toml"
        if what == "plan":
            target.write_bytes(damaged_text(target.read_text(encoding="utf-8"), chance))
        else:
            target = chance.choice(sorted(path for path in (folder / "data").rglob("*") if path.is_file()))
            target.write_bytes(damaged_bytes(target.read_bytes(), chance))
        with _limited():
            walk.ended[f"damaged {what}"] = ended = call(folder, chance.choice(["check", "run"]), "plan.toml")
        if ended.code == 2 and any((folder / name).exists() for name in ("out", "ledger.db")):
            walk.contradictions.append(f"a damaged {what} was refused, and something is there")
    bundle = walk.folder / "out" / "bundle.zip"
    if bundle.exists():
        damaged = Path(shutil.copy(bundle, walk.folder / "damaged.zip"))
        whole = damaged_bundle(damaged, chance)
        with _limited():
            walk.ended["damaged bundle"] = ended = call(walk.folder, "verify", "damaged.zip")
        if ended.code == 0 and not whole:
            walk.contradictions.append("a bundle with another content is verified")


@contextmanager
def _limited() -> Iterator[None]:
    """What a damaged plan asks for must not take the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_DATA, (used + MORE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def damaged_text(text: str, chance: Random) -> bytes:
    """A plan with one to three changes that somebody or something could make."""
    lines = text.splitlines()
    words = sorted({*re.findall(r"\w{2,}", text), "ladder", "hierarchy", "sum", "flows", "posterior", "engine"})
    changes: tuple[Callable[[int], Any], ...] = (
        lines.pop,
        lambda at: lines.insert(at, lines[chance.randrange(len(lines))]),
        lambda at: lines.insert(at, f"{chance.choice(words)} = {chance.choice(HOSTILE)}"),
        lambda at: lines.__setitem__(at, re.sub(r"=.*", lambda _: f"= {chance.choice(HOSTILE)}", lines[at], count=1)),
        lambda at: lines.__setitem__(at, re.sub(r"^\w+", lambda _: chance.choice(words), lines[at])),
        lambda at: lines.__setitem__(at, re.sub(r"\"\w+\"", lambda _: f'"{chance.choice(words)}"', lines[at])),
        lambda at: lines.__setitem__(at, re.sub(r"\d+", lambda _: str(chance.choice(NUMBERS)), lines[at])),
        lambda at: lines.__setitem__(at, lines[at].replace("[[", "[").replace("]]", "]")),
        lambda at: lines.insert(at, f"[{chance.choice(words)}.{chance.choice(words)}]"),
    )
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if lines:
            chance.choice(changes)(chance.randrange(len(lines)))
    whole = "\n".join(lines).encode("utf-8", errors="replace")
    return damaged_bytes(whole, chance) if chance.random() < 0.05 else whole


NUMBERS = (0, 1, 2, 7, 10**6, 10**19, 10**40)


def damaged_bytes(whole: bytes, chance: Random) -> bytes:
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


def damaged_bundle(path: Path, chance: Random) -> bool:
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


def _damaged_json(content: bytes, chance: Random) -> bytes:
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
