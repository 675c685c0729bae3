"""A genuine bundle with one thing changed: a number, an end, a label, a file, a line of the ledger.

The forger has one of three skills: changes the file alone, or the bundle's list of hashes too, or seals every line of
the ledger again. The last one is asked for by its files; the agency's ledger, which is given in half of the cases and
wherever nothing else can tell, has the lines as they were.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.archive.packing import as_json, pack
from forging import Files, resealed, unpacked

SKILLS = ("the file", "the list", "the ledger")


def forge(bundle: Path, to: Path, chance: Random) -> tuple[str, bool]:
    """Write a bundle with one thing changed; what it is, and whether only the agency's ledger can tell."""
    files = unpacked(bundle)
    before = dict(files)
    skill, hidden = chance.choice(SKILLS), False
    for what in chance.sample([*CHANGES], len(CHANGES)):
        hidden = CHANGES[what](files, chance)
        if files != before:
            break
    if skill == "the ledger":
        resealed(files)
    if skill != "the file":
        about = json.loads(files["bundle.json"])
        about["files"] = {
            name: sha256(content).hexdigest() for name, content in files.items() if name in about["files"]
        }
        files["bundle.json"] = as_json(about)
    pack(to, files, files.__getitem__)
    return f"{what}, with {skill}", hidden and skill == "the ledger"


def _tables(files: Files, form: str) -> list[str]:
    return sorted(name for name in files if name.endswith(f"/{form}.csv") or name == f"{form}.csv")


def _cell(form: str, column: str, change: Callable[[str, Random], str]) -> Callable[[Files, Random], bool]:
    """A forgery of one cell of a CSV file, whose Parquet file still has what was drawn."""

    def forge(files: Files, chance: Random) -> bool:
        named = _tables(files, form)
        if not named:
            return _of_parquet(files, form, column, change, chance)
        name = chance.choice(named)
        head, *rows = csv.reader(io.StringIO(files[name].decode("utf-8-sig")))
        labels = head.index("lower") - 1 if "lower" in head else 0  # flows have no interval beside their attributes
        found = [i for i, each in enumerate(head) if (each == column if column else i < labels)]
        found = [(row, i) for row in rows for i in found if row[i] != ""]
        if not found:
            return False
        row, i = chance.choice(found)
        old = row[i]
        row[i] = change(old, chance)
        text = files[name].decode("utf-8-sig")
        whole = io.StringIO()
        quoted = text.startswith('"')
        writer = csv.writer(whole, quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writerows([head, *rows])
        files[name] = whole.getvalue().encode()
        return name.replace(".csv", ".parquet") not in files and form == "research"

    return forge


def _of_parquet(files: Files, form: str, column: str, change: Callable[[str, Random], str], chance: Random) -> bool:
    """The same of a Parquet file, where there is no CSV file."""
    named = sorted(name for name in files if name.endswith(f"/{form}.parquet"))
    if not named:
        return False
    name = chance.choice(named)
    table = pq.read_table(io.BytesIO(files[name]))
    head = table.column_names
    labels = head.index("lower") - 1 if "lower" in head else 0
    columns = [i for i, each in enumerate(head) if (each == column if column else i < labels)]
    found = [(row, i) for i in columns for row, value in enumerate(table.column(i).to_pylist()) if value is not None]
    if not found:
        return False
    row, i = chance.choice(found)
    values, kind = table.column(i).to_pylist(), table.schema.field(i).type
    other = change(str(values[row]), chance)
    values[row] = int(other) if pa.types.is_integer(kind) else float(other) if pa.types.is_floating(kind) else other
    out = io.BytesIO()
    pq.write_table(table.set_column(i, table.schema.field(i), pa.array(values, kind)), out)
    files[name] = out.getvalue()
    return False


def _more(old: str, chance: Random) -> str:
    number = float(old)
    return str(int(number) + chance.choice((1, -1, 5, 100))) if number.is_integer() else str(number + 1)


def _exchanged(files: Files, chance: Random) -> bool:
    """Two files of releases stand in each other's places."""
    named = sorted(name for name in files if "/" in name and not name.endswith("release.json"))
    one, other = chance.choice(named), chance.choice(named)
    if files[one] != files[other]:
        files[one], files[other] = files[other], files[one]
    return False


def _line(files: Files, chance: Random) -> bool:
    """A line of the ledger says something else: another amount, another day, another release."""
    book = json.loads(files["ledger.json"])
    row = chance.choice(book["lines"])
    what = chance.choice(("at", "payload", "gone"))
    if what == "at":
        row["at"] = "2001-01-01T00:00:00.000000Z" if "at" in row else row.setdefault("at", "2001")
    elif what == "payload":
        payload = json.loads(row["payload"])
        payload["note"] = "somebody was here"
        row["payload"] = json.dumps(payload)
    else:
        book["lines"].remove(row)
    files["ledger.json"] = as_json(book)
    return True


LINES = (
    "DELETE FROM discreet_ledger WHERE seq = (SELECT max(seq) FROM discreet_ledger)",
    "DELETE FROM discreet_ledger WHERE seq = 2",
    "UPDATE discreet_ledger SET payload = payload || ' ' WHERE seq = 2",
    "UPDATE discreet_ledger SET dataset = 'another' WHERE seq = 1",
    "UPDATE discreet_ledger SET loss = replace(loss, '1', '2') || ' ' WHERE seq = 2",
)
"""What somebody does to the agency's ledger."""


def forge_ledger(ledger: Path, to: Path, chance: Random) -> str:
    """Write a ledger with one line changed or gone; what was done."""
    shutil.copy(ledger, to)
    what = chance.choice(LINES)
    with closing(sqlite3.connect(to, isolation_level=None)) as book:
        for (name,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            book.execute(f"DROP TRIGGER {name}")
        book.execute(what)
    return what


def _report(files: Files, chance: Random) -> bool:
    files["report.html"] = files["report.html"].replace(b"</p>", b" indeed</p>", 1)
    return False


CHANGES: dict[str, Callable[[Files, Random], bool]] = {
    "a count": _cell("research", "count", _more),
    "a shown count": _cell("basic", "count", _more),
    "a sum": _cell("research", "sum", _more),
    "an end": _cell("research", "upper", _more),
    "a lower end": _cell("basic", "lower", _more),
    "a label": _cell("research", "", lambda old, chance: old + "x"),
    "a shown label": _cell("basic", "", lambda old, chance: "x" + old),
    "a flag": _cell("basic", "quality", lambda old, chance: "good" if old != "good" else "poor"),
    "a file": _exchanged,
    "a line": _line,
}
"""What is changed; each says whether the rest of the bundle still agrees with it."""
