"""What holds in every world, told from outside: by plain readers and by what the generator knows."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from html import escape
from math import isclose
from pathlib import Path

import pyarrow.parquet as pq

from worlds.data import TOLD, jobs_in, truth, unmet
from worlds.way import Walk
from worlds.world import Release

RARE = 1e-6
"""How often one table may be called wrong by chance."""


def broken(walk: Walk) -> Iterator[str]:
    """Every promise that did not hold, in words."""
    yield from _ends(walk)
    yield from _told(walk)
    yield from walk.contradictions
    yield from _beside_an_odd_row(walk)
    yield from _at_the_desk(walk)
    if "run" in walk.ended:
        yield from _foreseen(walk)
    if walk.released:
        yield from _afterwards(walk)
        for release in walk.world.releases:
            if walk.world.quarters:
                yield from _moved(walk, release, walk.folder / "out" / release.name)
                continue
            yield from _tables(walk, release, walk.folder / "out" / release.name)
        yield from _published(walk)
        yield from _in_memory(walk)
    else:
        yield from _unpaid(walk)


def _ends(walk: Walk) -> Iterator[str]:
    """No step ends otherwise than it may."""
    for name, ended in walk.ended.items():
        if ended.code not in (0, 1, 2) or "Traceback (most recent call last)" in ended.said:
            yield f"{name}: a traceback\n{ended.said[-3000:]}"


def _told(walk: Walk) -> Iterator[str]:
    """No confidential value is told or written."""
    for name, ended in walk.ended.items():
        if any(mark in ended.said for mark in TOLD):
            yield f"{name}: tells a confidential value\n{ended.said[-2000:]}"
    for path in sorted(walk.folder.rglob("*")):
        inside = path.relative_to(walk.folder)
        if path.is_file() and "data" not in inside.parts and "damaged" not in inside.parts[0]:
            for part, text in _texts(path):
                if any(mark in text for mark in TOLD):
                    yield f"{inside} {part}: holds a confidential value"


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The content of a file, and of what is packed in it."""
    content = path.read_bytes()
    yield from _texts_of(path.name, content)


def _texts_of(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for part in packed.namelist():
                yield from _texts_of(part, packed.read(part))
    elif content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        yield name, f"{table.schema} {table.to_pydict()}"
    else:
        yield name, content.decode("utf-8", errors="replace")


def _foreseen(walk: Walk) -> Iterator[str]:
    """What `check` promised happens, and rows are refused where they must be."""
    world, ended = walk.world, walk.ended
    checked, run = ended["check"], ended["run"]
    if checked.code == 2 and run.code != 2:
        yield f"check refuses what run does ({run.code})\n{checked.said[-1500:]}"
    if checked.code == 1:
        yield f"check ended with 1\n{checked.said[-1500:]}"
    if world.misnamed and 0 in (checked.code, ended["data check"].code, ended["plan new"].code):
        yield "a name is not refused"
    if checked.code == 0 and not world.misnamed:
        refused = world.refused or unmet(world)
        if refused and run.code != 2:
            yield f"rows that must be refused are not: {world.odd}, {run.code}\n{run.said[-1500:]}"
        if not refused and run.code != 0:
            yield f"check promised a run that ended with {run.code}\n{run.said[-1500:]}"
        said = ended["owner"].said
        if refused != (ended["owner"].code != 0):
            yield f"the owner's check ended with {ended['owner'].code}\n{said[-1500:]}"
    if not world.misnamed and world.refused != (ended["data check"].code == 1):
        yield f"data check ended with {ended['data check'].code}\n{ended['data check'].said[-1500:]}"
    for odd in world.odd:
        if odd.what == "no names" and ended["plan new"].code != 2:
            yield f"plan new takes a row for names\n{ended['plan new'].said[-1500:]}"
        if odd.what == "two periods" and not world.misnamed and repr(odd.column) not in ended["data check"].said:
            yield f"the owner is not asked whether {odd.column!r} is a period\n{ended['data check'].said[-1500:]}"
    if not world.misnamed and not world.refused and ended["plan new"].code:
        yield f"plan new ended with {ended['plan new'].code}\n{ended['plan new'].said[-1500:]}"


def _unpaid(walk: Walk) -> Iterator[str]:
    """Whatever is refused is refused before it is paid."""
    for name in ("out", "ledger.db"):
        if (walk.folder / name).exists():
            yield f"refused, and {name} is there"


def _afterwards(walk: Walk) -> Iterator[str]:
    """A release can be verified, resumed and published, and is the same afterwards."""
    for name in ("again", "verify", "ledger", "show", "publish", "site"):
        if name in walk.ended and walk.ended[name].code != 0:
            yield f"{name} ended with {walk.ended[name].code}\n{walk.ended[name].said[-2500:]}"
    if "WRONG" in walk.ended["verify"].said:
        yield f"verify calls a genuine release wrong\n{walk.ended['verify'].said[-2500:]}"
    if walk.forgery and (walk.ended["forged"].code != 1 or "WRONG" not in walk.ended["forged"].said):
        yield f"verify does not find {walk.forgery} ({walk.ended['forged'].code})\n{walk.ended['forged'].said[-2500:]}"
    left = {path.name for path in (walk.folder / "out").iterdir()}
    expected = {release.name for release in walk.world.releases} | {"anchors.jsonl", "bundle.zip", "report.html"}
    if left != expected:
        yield f"the output folder has {sorted(left)}, not {sorted(expected)}"


def _tables(walk: Walk, release: Release, place: Path) -> Iterator[str]:
    """Every cell is there once, in every format alike, and its interval holds the true number."""
    folders = sorted(path for path in place.iterdir() if path.is_dir()) or [place]
    number = "count" if release.option("of") is None else "sum"
    for at, (by, cells) in enumerate(zip(release.tables, truth(walk.world, release), strict=True)):
        named = folders if len(folders) == 1 else [each for each in folders if each.name.startswith(f"{at + 1}-")]
        if len(named) != 1 or not {*by} <= {*rows_of(named[0], "research", walk.world.formats)[0]}:
            yield f"{release.name} {by}: none of {[p.name for p in folders]} has its columns"
            continue
        names, rows = rows_of(named[0], "research", walk.world.formats)
        keys = [tuple(row[names.index(name)] for name in by) for row in rows]
        if len(keys) != len({*keys}) or {*keys} != {*cells}:
            less, more = [*{*cells} - {*keys}][:3], [*{*keys} - {*cells}][:3]
            yield f"{release.name} {by}: {len(keys)} cells and not {len(cells)}; lacks {less}, has {more}"
            continue
        yield from _covered(release, by, names, rows, [cells[key] for key in keys], number)
        basic, shown = rows_of(named[0], "basic", walk.world.formats)
        if not walk.world.labels and [tuple(row[basic.index(name)] for name in by) for row in shown] != keys:
            yield f"{release.name} {by}: the forms have other cells"
        for form in ("basic", "research"):
            yield from _same(named[0], form)
        yield from _in_the_report(walk, by, basic, shown, place)


def _moved(walk: Walk, release: Release, place: Path) -> Iterator[str]:
    """Jobs of every quarter of a release of histories, by plain counting."""
    [by], names_of = release.tables, {"earlier": 0, "later": -1} if release.kind == "changes" else {"employment": 0}
    asked = [*release.option("quarters", ()), *release.option("quarter", ())]
    names, rows = rows_of(place, "research", walk.world.formats)
    cells = {*jobs_in(walk.world, release, asked[0])}
    keys = [tuple(row[names.index(name)] for name in by) for row in rows]
    if {*keys} != cells:
        yield f"{release.name} {by}: {len({*keys})} cells and not {len(cells)}"
        return
    if len(keys) == len(cells) and len(asked) == (2 if release.kind == "changes" else 1):
        for number, at in names_of.items():
            true = jobs_in(walk.world, release, asked[at])
            own = [number if name == number else name.replace(f"{number}_", "") for name in names]
            own = ["" if names[i] in ("lower", "upper") else name for i, name in enumerate(own)]
            yield from _covered(release, by, own, rows, [true[key] for key in keys], number)
    yield from (fault for form in ("basic", "research") for fault in _same(place, form))


FEW = 8
"""Rows of which a report shows every one."""


def _in_the_report(
    walk: Walk, by: tuple[str, ...], names: list[str], rows: list[list[str]], place: Path
) -> Iterator[str]:
    """A small table of one kind of workers is in the report as it is in the basic form."""
    kinds = [each.name for each in walk.world.kinds if each.name in by]
    apart = [name for name in by if name not in kinds]
    alone = all(len({row[names.index(name)] for row in rows}) == 1 for name in kinds)
    page = place.parent / "report.html"
    if walk.world.labels or len(apart) != 1 or not alone or len(rows) > FEW or not page.is_file():
        return
    told = page.read_text(encoding="utf-8")
    for row in rows:
        code, number = row[names.index(apart[0])], row[names.index("quality") - 3]
        if number and code == code.strip() and "  " not in code:
            shown = f'<th scope="row">{escape(code)}</th><td class="number"><b>{int(float(number)):,}</b>'
            if shown.replace("\n", " ") not in told.replace("\n", " "):
                yield f"{place.name} {by}: the report does not show {code!r}: {number}"


def _covered(
    release: Release, by: tuple[str, ...], names: list[str], rows: list[list[str]], true: list[int], number: str
) -> Iterator[str]:
    level = Fraction(str(release.option("level", "19/20")))
    low, high = names.index("lower"), names.index("upper")
    outside = [
        (row, value)
        for row, value in zip(rows, true, strict=True)
        if row[low] != "" and not float(row[low]) <= value <= float(row[high])
    ]
    if outside and len(rows) * float(1 - level) / len(outside) < RARE:
        yield f"{release.name} {by}: {len(outside)} of {len(rows)} intervals miss at level {level}: {outside[:3]}"


def rows_of(folder: Path, form: str, formats: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """The names and cells of a table as text, from the first of its formats."""
    if "csv" in formats:
        with (folder / f"{form}.csv").open(encoding="utf-8-sig", newline="") as file:
            names, *rows = csv.reader(file)
        return names, rows
    return parquet_rows(folder / f"{form}.parquet")


def parquet_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    table = pq.read_table(path)
    columns = [["" if value is None else _text(value) for value in column.to_pylist()] for column in table.columns]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _same(folder: Path, form: str) -> Iterator[str]:
    """CSV, Parquet and Excel hold the same."""
    kept: dict[str, tuple[list[str], list[list[str]]]] = {}
    for path in sorted(folder.glob(f"{form}.*")):
        kind = path.suffix[1:]
        if kind == "csv":
            kept[kind] = rows_of(folder, form, ("csv",))
        elif kind == "parquet":
            kept[kind] = parquet_rows(path)
        elif kind == "xlsx":
            kept[kind] = _excel(path)
    first, *others = kept
    for other in others:
        if not _alike(kept[first], kept[other]):
            yield f"{folder.name} {form}: {first} and {other} differ"


def _alike(one: tuple[list[str], list[list[str]]], other: tuple[list[str], list[list[str]]]) -> bool:
    if one[0] != other[0] or len(one[1]) != len(other[1]):
        return False
    return all(
        a == b or _close(_number(a), _number(b))
        for ours, theirs in zip(one[1], other[1], strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )


def _close(one: float | None, other: float | None) -> bool:
    """Whether two numbers are the same in the digits that a sheet keeps."""
    return one is not None and other is not None and isclose(one, other, rel_tol=1e-14)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _excel(path: Path) -> tuple[list[str], list[list[str]]]:
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True)
    names, *rows = book.worksheets[0].iter_rows(values_only=True)
    book.close()
    return [*map(str, names)], [["" if cell is None else _text(cell) for cell in row] for row in rows]


def _published(walk: Walk) -> Iterator[str]:
    """What is published has each released table with the same cells, in every format."""
    if "publish" not in walk.ended or walk.ended["publish"].code:
        return
    place = walk.folder / "published"
    described = json.loads((place / "csv-metadata.json").read_text(encoding="utf-8"))
    for table in described["tables"]:
        if not (place / table["url"]).is_file():
            yield f"published: {table['url']} is described and is not there"
    tables = sorted(place.glob("*.parquet"))
    if not walk.world.quarters and len(tables) != sum(len(each.tables) for each in walk.world.releases):
        yield f"published: {len(tables)} tables"
    for path in tables:
        names, rows = parquet_rows(path)
        with path.with_suffix(".csv").open(encoding="utf-8-sig", newline="") as file:
            head, *lines = csv.reader(file)
        if not _alike((names, rows), (head, lines)):
            yield f"published {path.name}: csv and parquet differ"
        if not _alike((names, rows), _excel(path.with_suffix(".xlsx"))):
            yield f"published {path.name}: xlsx and parquet differ"


def _beside_an_odd_row(walk: Walk) -> Iterator[str]:
    """What is said before anything is paid does not depend on rows, and no refusal on how many of them are wrong."""
    ended = walk.ended
    if "check beside" in ended and _no_schema(ended["check beside"].said) != _no_schema(ended["check"].said):
        yield f"check depends on the rows\n{ended['check beside'].said[-1500:]}"
    beside = ended.get("run beside", ended["run"])
    if (beside.code, _no_schema(beside.said)) != (ended["run"].code, _no_schema(ended["run"].said)):
        yield f"a refusal depends on the rows\n{beside.said[-800:]}\n{ended['run'].said[-800:]}"


def _no_schema(said: str) -> str:
    """Without the schema of a world on a server, which has a name of its own."""
    return re.sub(r"\bw[0-9a-f]{16}\b", "", said)


def _in_memory(walk: Walk) -> Iterator[str]:
    """The same rows in frames of every kind give the same rehearsal."""
    told = walk.frames
    if len({*told.values()}) > 1:
        yield "frames differ: " + "; ".join(f"{kind}: {said[:300]}" for kind, said in told.items())
    kind, said = walk.strange
    if kind and not said.startswith("refused: ") and {said} != {*told.values()} and not _may_be(walk, kind):
        yield f"a column of {kind} is released"


def _may_be(walk: Walk, kind: str) -> bool:
    """Whether amounts may be of this type; periods of pandas are text."""
    if kind.startswith(("periods", "far periods")):
        return True
    numbers = ("half floats", "decimals", "whole numbers")
    return kind.startswith(numbers) and any(kind.endswith(f"in {each.name!r}") for each in walk.world.amounts)


def _at_the_desk(walk: Walk) -> Iterator[str]:
    """The desk takes what the plan takes, and releases it as well."""
    desk = {name: ended for name, ended in walk.ended.items() if name.startswith("desk: ")}
    if not desk or walk.ended["check"].code:
        return
    submitted, run = desk.get("desk: submitted"), desk.get("desk: run")
    if submitted is None or submitted.code:
        yield f"the desk refuses what check takes\n{[*desk.values()][-1].said[-3000:]}"
    elif run is None or (run.code != walk.ended["run"].code and run.code != 1):
        yield f"the desk's run ended with {run and run.code}\n{run and run.said[-1500:]}"
    elif run.code == 0:
        first = walk.world.releases[0]
        for place in (walk.folder / "desk" / "releases").glob(f"*/{first.name}"):
            if walk.world.quarters:
                yield from (f"desk: {fault}" for fault in _moved(walk, first, place))
                continue
            yield from (f"desk: {fault}" for fault in _tables(walk, first, place))
    elif walk.released or "unforeseen" in run.said:
        yield f"the desk's run ended with 1\n{run.said[-1500:]}"
