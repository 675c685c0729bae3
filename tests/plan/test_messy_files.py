"""Files as people have them reach a release through Python, a plan and the desk, with one correction at most.

Who corrects knows the message and nothing else: `CORRECTIONS` are looked up by the next step that a fault names. Where
that is `discreet data check`, the rows come from there, as the owner of the data would have them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.csv as arrow_csv
import pytest

import discreet as dc
from discreet.desk import worker
from discreet.desk.desk import Desk
from discreet.desk.drafts import as_toml, digest, first_draft
from discreet.desk.runs import events
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.words.faults import Argument, Fault

NAMES = ("firm", "person", "naics", "place", "sex")
ROWS = [
    ("F01", "0001", "31-33", "06001", "female"),
    ("F01", "0002", "31-33", "06001", "male"),
    ("F02", "0003", "722", "Zürich", "male"),
    ("F02", "0004", "722", "Zürich", "female"),
    ("F03", "0005", "10", "06001", "male"),
    ("F03", "0006", "10", "06001", "female"),
]
CELLS = {("31-33", "06001"), ("722", "Zürich"), ("10", "06001")}


def text(rows: list[tuple[str, ...]] = ROWS, names: tuple[str, ...] = NAMES, mark: str = ",", end: str = "\n") -> str:
    return end.join(mark.join(row) for row in (names, *rows)) + end


def with_cell(row: int, column: str, value: str) -> list[tuple[str, ...]]:
    at = NAMES.index(column)
    return [(*r[:at], value, *r[at + 1 :]) if i == row else r for i, r in enumerate(ROWS)]


@dataclass(frozen=True)
class Mess:
    """A file, and what its owner says about it."""

    file: str
    content: bytes
    domain: tuple[str, ...] = ("female", "male")
    names: tuple[str, ...] = NAMES
    cells: set[tuple[str, str]] = field(default_factory=lambda: CELLS)
    allow_multiple: bool | int = False
    counted: bool = False  # a row is a number of jobs, in the place of a person

    @property
    def schema(self) -> dict[str, Any]:
        firm, person, naics, place, sex = self.names
        if self.counted:
            public = {"workplace_attributes": [naics, place], "worker_attributes": {}, "unused": ["*"]}
            return {"establishment": firm, "size": person, **public}
        attributes = {
            "workplace_attributes": [naics, place],
            "worker_attributes": {sex: list(self.domain)},
            "unused": ["*"],
        }
        return {"establishment": firm, "worker": person, **attributes}

    @property
    def rows(self) -> list[list[str]]:
        return list(csv.reader(io.StringIO(self.content.decode())))

    def written(self, rows: list[list[str]]) -> Mess:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return replace(self, content=out.getvalue().encode())


def spreadsheet() -> bytes:
    """Stands for a workbook: what tells it from text is its first bytes."""
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("xl/sheet1.csv", text())
    return packed.getvalue()


MESSES = {
    # read as they are meant
    "semicolons, a byte mark, Windows": Mess("a.csv", text(mark=";", end="\r\n").encode("utf-8-sig")),
    "UTF-16 with tabs": Mess("a.txt", text(mark="\t").encode("utf-16")),
    "Excel's separator line": Mess("a.csv", ("sep=;\r\n" + text(mark=";", end="\r\n")).encode()),
    "compressed, leading zeros": Mess("a.csv.gz", gzip.compress(text().encode())),
    "spaces, blank lines": Mess("a.csv", text([tuple(f" {c} " for c in r) for r in ROWS], end="\n\n").encode()),
    "dates for codes": Mess(
        "a.csv", text([(*r[:2], "2026-01-31", *r[3:]) for r in ROWS]).encode(),
        cells={("2026-01-31", "06001"), ("2026-01-31", "Zürich")},
    ),
    "a line break in quotes": Mess(
        "a.csv", text([(*r[:3], r[3].replace("Zürich", '"Zürich\nStadt"'), r[4]) for r in ROWS]).encode(),
        cells={("31-33", "06001"), ("722", "Zürich\nStadt"), ("10", "06001")},
    ),
    "a byte mark and quoted names": Mess("a.csv", text(names=tuple(f'"{n}"' for n in NAMES)).encode("utf-8-sig")),
    "decimal commas beside": Mess(
        "a.csv", text([(*r, "1.045,50") for r in ROWS], (*NAMES, "wage"), mark=";").encode()
    ),
    "blank columns at the end": Mess("a.csv", text([(*r, "", "") for r in ROWS], (*NAMES, "", "")).encode()),
    "dates as a spreadsheet counts them": Mess(
        "a.csv", text([(*r[:2], "46053", *r[3:]) for r in ROWS]).encode(),
        cells={("46053", "06001"), ("46053", "Zürich")},
    ),
    "a place called NA": Mess(
        "a.csv", text([(*r[:3], r[3].replace("Zürich", "NA"), r[4]) for r in ROWS]).encode(),
        cells={("31-33", "06001"), ("722", "NA"), ("10", "06001")},
    ),
    # one correction
    "Latin-1 and semicolons": Mess("a.csv", text(mark=";").encode("latin-1")),
    "a missing value": Mess("a.csv", text(with_cell(3, "sex", "")).encode()),
    "a row twice": Mess("a.csv", text([*ROWS, ROWS[0]]).encode()),
    "two jobs": Mess("a.csv", text([*ROWS, ("F03", "0001", "10", "06001", "female")]).encode()),
    "an unknown category": Mess("a.csv", text(with_cell(2, "sex", "unknown")).encode()),
    "a changed place": Mess(
        "a.csv", text(with_cell(5, "place", "Zürich")).encode(), cells=CELLS | {("10", "Zürich")}
    ),
    "names in capitals": Mess("a.csv", text(names=("FIRM", "Person ID", "Naics", "PLACE", "Sex")).encode()),
    "colons": Mess("a.csv", text(mark=":").encode()),
    "two kinds of line ends": Mess("a.csv", (text() + "F03,0007,10,06001,male\r\n").encode()),
    "a comma in a name": Mess("a.csv", text([(*r[:3], "Zug, ZG", r[4]) if r[0] == "F02" else r for r in ROWS]).encode(),
                              cells={("31-33", "06001"), ("722", "Zug, ZG"), ("10", "06001")}),
    "a workbook": Mess("a.xlsx", spreadsheet()),
    "UTF-16 of the other end": Mess("a.csv", b"\xfe\xff" + text().encode("utf-16-be")),
    "marks for thousands": Mess("a.csv", text([(r[0], '"1,250"', *r[2:]) for r in ROWS]).encode(), counted=True),
    "categories in capitals": Mess("a.csv", text(with_cell(2, "sex", "Male")).encode()),
    "one name twice": Mess("a.csv", text([(*r, "2") for r in ROWS], (*NAMES, "sex")).encode()),
    "blank fields that no name is for": Mess("a.csv", text([(*r, "", "") for r in ROWS]).encode()),
    "a title above": Mess("a.csv", f"Jobs of 2026,,,,\n,,,,\n{text()}".encode()),
}  # fmt: skip


def at_fault(mess: Mess, folder: Path) -> list[int]:
    """The rows that `discreet data check` names for the first refusal."""
    (folder / mess.file).write_bytes(mess.content)
    found = dc.check_data(folder / mess.file, schema=mess.schema, allow_multiple=mess.allow_multiple)
    (refused,) = [one for one in found.findings if one.refused]
    assert len(refused.rows) == refused.count
    return [row - 1 for row in refused.rows]


def fill_in(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    return mess.written([["female" if i in rows and not c else c for c in r] for i, r in enumerate(mess.rows)])


def drop(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    return mess.written([row for i, row in enumerate(mess.rows) if i not in rows[1:]])


def add_category(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    """Recoded where capitals alone differ, added where the category is another."""
    if {mess.rows[i][-1].casefold() for i in rows} <= set(mess.domain):
        return mess.written([[*r[:-1], r[-1].casefold()] if i in rows else r for i, r in enumerate(mess.rows)])
    return replace(mess, domain=(*mess.domain, *sorted({mess.rows[i][-1] for i in rows})))


def number_sites(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    places = {mess.rows[i][3] for i in rows}
    second = sorted(places)[-1]
    return mess.written([[f"{r[0]}b", *r[1:]] if i in rows and r[3] == second else r for i, r in enumerate(mess.rows)])


def allow(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    (named,) = [part for part in fault.remedy if isinstance(part, Argument)]
    return replace(mess, **{named.name: named.value})


def rename(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    """The names are in the message."""
    found = re.findall(r"'([^']+)'", str(fault.possible))
    return replace(mess, names=tuple(found))


def quote(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    """The line has more fields than names: a comma is in one, or the last are blank."""
    width = len(mess.rows[0])
    if not any(cell for row in mess.rows for cell in row[width:]):
        return mess.written([row[:width] for row in mess.rows])
    return replace(mess, content=re.sub(rb"([^,\n]+, [^,\n]+)", rb'"\1"', mess.content))


def as_utf8(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    encoding = "utf-16" if mess.content.startswith(b"\xfe\xff") else "cp1252"
    return replace(mess, content=mess.content.decode(encoding).encode())


def without_marks(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    return mess.written([[cell.replace(",", "") for cell in row] for row in mess.rows])


def rename_second(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    names, *others = mess.rows
    seen = [name if name not in names[:i] else f"{name} again" for i, name in enumerate(names)]
    return mess.written([seen, *others])


def first_line(mess: Mess, fault: Fault, rows: list[int]) -> Mess:
    lines = mess.content.decode().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if set(line.strip().split(",")) == set(mess.names))
    return replace(mess, content="".join(lines[start:]).encode())


CORRECTIONS: dict[str, Callable[[Mess, Fault, list[int]], Mess]] = {
    "Save it as UTF-8": as_utf8,
    "no mark for thousands": without_marks,
    "Rename one of them": rename_second,
    "Fill them in": fill_in,
    "if several jobs are meant": allow,
    "Drop the repetitions": drop,
    "add the category": add_category,
    "give each site a number of its own": number_sites,
    "Name the columns in the schema as they are, or": rename,
    "Write the file with one of these": lambda mess, *_: replace(mess, content=mess.content.replace(b":", b",")),
    "Write it again with one": lambda mess, *_: replace(mess, content=mess.content.replace(b"\r\n", b"\n")),
    "put fields that hold ',' in quotes": quote,
    "Save the sheet as 'CSV UTF-8'": lambda mess, *_: replace(mess, file="a.csv", content=text().encode()),
    "Make it the first line": first_line,
}
"""What to do, by the words of the next step."""


def by_python(mess: Mess, folder: Path) -> set[tuple[str, str]]:
    jobs = dc.read_jobs(folder / mess.file, schema=mess.schema, allow_multiple=mess.allow_multiple)
    session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=2)
    table = session.count(by=list(mess.names[2:4])).release(epsilon=2).to_arrow()
    return pairs(table, mess)


def by_plan(mess: Mess, folder: Path) -> set[tuple[str, str]]:
    data: dict[str, Any] = {"source": mess.file, "schema": mess.schema}
    if mess.allow_multiple:
        data["allow_multiple"] = mess.allow_multiple
    plan = {
        "data": data,
        "unit": {"kind": "establishments", "alpha": "0.1"},
        "budget": {"epsilon": "2", "ledger": "ledger.db", "dataset": "jobs"},
        "release": [{"name": "jobs", "kind": "count", "by": list(mess.names[2:4]), "epsilon": "2"}],
        "output": {"folder": "out", "formats": ["csv"], "forms": ["research"], "bundle": False},
    }
    (folder / "plan.toml").write_text(as_toml(plan))
    run(read_plan(folder / "plan.toml"))
    return published(folder / "out" / "jobs", mess)


def by_desk(mess: Mess, folder: Path) -> set[tuple[str, str]]:
    """What the desk does with a plan from its form; the worker works in this process."""
    source: dict[str, Any] = {"name": "jobs", "path": mess.file, "dataset": "jobs", "epsilon": "2"}
    source |= {"unit": {"kind": "establishments", "alpha": "0.1"}, "schema": mess.schema}
    if mess.allow_multiple:
        source["allow_multiple"] = mess.allow_multiple
    (folder / "desk.toml").write_text(as_toml({"title": "desk", "source": [source]}))
    desk = Desk.open(folder)
    draft = first_draft(desk, desk.sources["jobs"]).model_copy(update={"formats": ["csv"], "forms": ["research"]})
    (release,) = draft.release
    release |= {"epsilon": "2", "by": list(mess.names[2:4])}
    plan = as_toml(draft.content(desk, "one")).encode()
    code = worker.main(desk.plan_file("one"), desk.runs, "run", digest(plan), 1, plan)
    last = [event for _, event in events(desk.runs, "run")][-1]
    if code:
        raise AtTheDesk(str(last["text"]))
    return published(desk.releases / "one" / str(release["name"]), mess)


class AtTheDesk(Exception):
    """What the page of a run says."""


def published(folder: Path, mess: Mess) -> set[tuple[str, str]]:
    texts = arrow_csv.ConvertOptions(column_types=dict.fromkeys(mess.names[2:4], "string"))
    return pairs(arrow_csv.read_csv(folder / "research.csv", convert_options=texts), mess)


def pairs(table: Any, mess: Mess) -> set[tuple[str, str]]:
    naics, place = (map(str, table[name].to_pylist()) for name in mess.names[2:4])
    return set(zip(naics, place, strict=True))


DOORS = {"python": by_python, "plan": by_plan, "desk": by_desk}
CORRECTED = list(MESSES)[list(MESSES).index("Latin-1 and semicolons") :]


LATER = {
    "Excel's separator line",
    "spaces, blank lines",
    "two kinds of line ends",
    "a title above",
    "colons",
    "a workbook",
    "a byte mark and quoted names",
    "decimal commas beside",
    "dates as a spreadsheet counts them",
    "UTF-16 of the other end",
    "blank fields that no name is for",
}
"""In test-full: `tests/unit/test_delimited.py` has them from Python every day."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full_size) if name in LATER else name for name in MESSES]
)
def test_a_messy_file_reaches_a_release(tmp_path: Path, name: str) -> None:
    mess = MESSES[name]
    fault, better = None, mess
    if name in CORRECTED:
        (tmp_path / mess.file).write_bytes(mess.content)
        with pytest.raises(dc.DiscreetError) as refused:
            by_python(mess, tmp_path)
        fault = refused.value.faults[0]
        assert len(refused.value.faults) == 1
        assert fault.about == "source"
        said = fault.said()
        words = [step for step in CORRECTIONS if step in said]
        assert words, said
        rows = at_fault(mess, tmp_path) if "discreet data check" in said else []
        better = CORRECTIONS[words[0]](mess, fault, rows)
    for door, released in DOORS.items():
        folder = tmp_path / door
        folder.mkdir()
        if fault is not None and released is not by_python:
            (folder / mess.file).write_bytes(mess.content)
            with pytest.raises((dc.DiscreetError, AtTheDesk)) as refused:
                released(mess, folder)
            assert words[0] in str(refused.value), "the door names another next step"
            assert "Zürich" not in str(refused.value) and "0003" not in str(refused.value)
        (folder / better.file).write_bytes(better.content)
        assert better.cells <= released(better, folder), door


def test_it_can_fail(tmp_path: Path) -> None:
    """A file whose fault was not corrected is refused again, and one correction is not taken for another."""
    mess = MESSES["an unknown category"]
    rows = at_fault(mess, tmp_path)
    assert [mess.rows[row][-1] for row in rows] == ["unknown"]
    (tmp_path / mess.file).write_bytes(drop(mess, Fault(None, ""), rows).content)
    with pytest.raises(dc.DiscreetError):
        by_python(mess, tmp_path)
    assert json.dumps(mess.schema) == json.dumps(MESSES["two jobs"].schema)
