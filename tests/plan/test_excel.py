"""Excel files of a plan: what they hold, by a reader of others; how a reviewer finds one that was changed."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.ledger import Ledger
from discreet.plan import sheets
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.review import recompute
from discreet.review.books import check_book
from discreet.review.verdict import verify_bundle
from discreet.words.errors import MissingExtra, PlanError

ABOUT = {"release": "places", "data": "toys"}


@pytest.fixture
def plan(toys: Callable[[Path], Path], tmp_path: Path) -> Path:
    """The first of its releases alone."""
    path = toys(tmp_path)
    before, first, *_ = path.read_text().split("[[release]]")
    output = '[output]\nfolder = "out"\nformats = ["parquet", "xlsx"]\n'
    path.write_text(f"{before}[[release]]{first}{output}")
    return path


def spent_nothing(plan: Path) -> bool:
    ledger = plan.parent / "ledger.db"
    if not ledger.exists():
        return True
    with Ledger.open(ledger, read_only=True) as book:
        return not [entry for entry in book.entries() if entry.kind == "charge"]


def test_excel_files_hold_what_parquet_files_hold_and_verify(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(plan)
    books = sorted((plan.parent / "out").rglob("*.xlsx"))
    assert len(books) == 2  # the forms of a table
    for path in books:
        book = load_workbook(path)
        header, *rows = book["result"].iter_rows(values_only=True)
        table = pq.read_table(path.with_suffix(".parquet"))
        assert list(header) == table.column_names
        expected = [tuple(row.values()) for row in table.to_pylist()]
        assert len(rows) == len(expected) > 0
        for mine, theirs in zip(rows, expected, strict=True):
            assert list(mine) == [pytest.approx(v, rel=1e-15) if isinstance(v, float) else v for v in theirs]
        about = dict(book["about"].iter_rows(values_only=True))
        assert about["data"] == "toys" and "epsilon" in about["guarantee"]
    seen: list[str] = []
    check = check_book
    monkeypatch.setattr(recompute, "check_book", lambda path, *more: (seen.append(path.name), check(path, *more))[1])
    assert outcome.bundle is not None
    found = verify_bundle(outcome.bundle, ledger=plan.parent / "ledger.db")
    assert not [one for one in found if one.wrong], found
    assert sorted(seen) == ["basic.xlsx", "research.xlsx"]


def changed_cell(path: Path) -> None:
    book = load_workbook(path)
    book["result"]["C2"] = 12345
    book.save(path)


def rewritten(path: Path, change: Callable[[str, bytes], bytes], *, more: dict[str, bytes] | None = None) -> None:
    """The same file with other parts."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: change(name, packed.read(name)) for name in packed.namelist()} | (more or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)


TAMPERED: dict[str, tuple[Any, type[Exception]]] = {
    "a count": (
        lambda p: rewritten(p, lambda n, c: c.replace(b"<v>7</v>", b"<v>8</v>") if n.endswith("sheet1.xml") else c),
        RefutedError,
    ),
    "the guarantee": (
        lambda p: rewritten(p, lambda n, c: c.replace(b"toys", b"boys") if n.endswith("sheet2.xml") else c),
        RefutedError,
    ),
    "a longer sheet": (
        lambda p: rewritten(p, lambda n, c: c + b" " * 2**21 if n.endswith("sheet1.xml") else c),
        RefutedError,
    ),
    "another part": (lambda p: rewritten(p, lambda n, c: c, more={"xl/worksheets/sheet3.xml": b"<x/>"}), RefutedError),
    "saved by another program": (changed_cell, RefutedError),
    "another layout": (
        lambda p: rewritten(p, lambda n, c: c + b" " if n.endswith("styles.xml") else c),
        UncheckedError,
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_reviewer_finds_a_changed_book(what: str, tmp_path: Path) -> None:
    import pyarrow as pa

    from discreet.results import write_excel

    table = pa.table({"place": ["p0", "p1"], "sex": ["f", "m"], "count": [7, 9], "lower": [1.25, None]})
    path = tmp_path / "basic.xlsx"
    write_excel(table, path, ABOUT)
    check_book(path, table, ABOUT)
    rewritten(path, lambda name, content: content)
    check_book(path, table, ABOUT)  # packed otherwise, the same
    change, kind = TAMPERED[what]
    change(path)
    with pytest.raises(kind):
        check_book(path, table, ABOUT)


def test_a_table_that_is_too_long_costs_nothing(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "EXCEL_ROWS", 3)
    for dry in (True, False):
        with pytest.raises(PlanError) as refusal:
            run(plan, dry_run=dry)
        assert "[output], formats" in str(refusal.value)
    assert spent_nothing(plan)


LOST = ["x" * 32_768, "\U0001f600" * 16_384, "a\x01b", "a\x00b", "a\rb", "a\r\nb", "a\uffffb", "a_x0041_b"]
KEPT = ["x" * 32_767, "\U0001f600" * 16_383, "a\nb", "\ta", " a ", "a\x7fb", "a\x85b", "=1+1", "_x004_", "<b>&amp;"]


@pytest.mark.parametrize("label", LOST + KEPT, ids=lambda text: ascii(text[:8]))
def test_labels_that_a_sheet_would_change_are_found(label: str, tmp_path: Path) -> None:
    import pyarrow as pa

    from discreet.results import changed_in_excel, write_excel

    table = pa.table({"place": [label, None, "b"], "count": [1, 2, 3]})
    write_excel(table, tmp_path / "a.xlsx", ABOUT)
    read = load_workbook(tmp_path / "a.xlsx")["result"]["A2"].value
    assert (changed_in_excel(table) is None) == (label in KEPT)
    if label in KEPT:
        assert read == label
    coded = table.set_column(0, "place", table["place"].dictionary_encode())
    assert (changed_in_excel(coded) is None) == (label in KEPT)


@pytest.mark.parametrize(
    ("column", "file", "label"),
    [("sector", "places", "s\r1"), ("sex", "jobs", "f\x01"), ("place", "", "p" * 40_000)],
    ids=["of a place", "of a worker", "of the plan"],
)
def test_labels_that_a_sheet_would_change_cost_nothing(plan: Path, column: str, file: str, label: str) -> None:
    text = plan.read_text()
    if file:
        path = plan.parent / "data" / f"{file}.parquet"
        table = pq.read_table(path)
        old = "f" if column == "sex" else table[column][0].as_py()
        values = [label if value == old else value for value in table[column].to_pylist()]
        pq.write_table(table.set_column(table.column_names.index(column), column, [values]), path)
        if column == "sex":
            text = text.replace('["f", "m"]', '["f\\u0001", "m"]').replace(
                '["place", "sector"]\ne', '["place", "sex"]\ne'
            )
    else:
        text = text.replace("[unit]", f'[data.labels]\nplace = {{ p0 = "{label}" }}\n\n[unit]', 1)
    plan.write_text(text)
    for dry in (True, False):
        with pytest.raises(PlanError) as refusal:
            run(plan, dry_run=dry)
        assert "[output], formats" in str(refusal.value) and repr(column) in str(refusal.value)
    assert spent_nothing(plan)


def test_a_missing_writer_costs_nothing(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtra) as refusal:
        run(plan)
    assert "[excel]" in str(refusal.value)
    assert spent_nothing(plan)


def test_excel_stands_beside_parquet(plan: Path) -> None:
    plan.write_text(plan.read_text().replace('["parquet", "xlsx"]', '["csv", "xlsx"]'))
    with pytest.raises(PlanError) as refusal:
        read_plan(plan)
    assert "[output], formats" in str(refusal.value)


def test_the_desks_form_offers_excel() -> None:
    from discreet.desk import drafts

    template = (Path(drafts.__file__).parent / "templates" / "plan.html").read_text()
    assert '("csv", "parquet", "xlsx")' in template
