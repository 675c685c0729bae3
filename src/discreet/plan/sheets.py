"""Excel files of a release: made from its Parquet files, for people. Programs read the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from discreet.extras import needs
from discreet.faults import Fault
from discreet.plan.file import PlanFile, PlanSource
from discreet.results import EXCEL_ROWS

EXCEL = "xlsx"
Kind = TypeVar("Kind", bound=str)


def for_programs(formats: Iterable[Kind]) -> tuple[Kind, ...]:
    """The formats of files that are read again."""
    return tuple(kind for kind in formats if kind != EXCEL)


def told(*, name: str, dataset: str, form: str, sentence: str, columns: Mapping[str, str]) -> dict[str, str]:
    """The sheet about a table: what it is and what it promises."""
    meanings = {f"column {column}": meaning for column, meaning in columns.items()}
    return {"release": name, "data": dataset, "form": form, "guarantee": sentence, **meanings}


def require_writer(file: PlanFile) -> None:
    """Refuse a plan with Excel files where nothing writes them."""
    if EXCEL in file.plan.output.formats:
        with needs("excel", "An Excel file of a release"):
            import xlsxwriter as _  # noqa: F401


def refuse_long(source: PlanSource, rows: Sequence[int]) -> None:
    """Refuse tables that no sheet has room for, before they are paid for; how many cells there are is public."""
    if EXCEL in source.output.formats and max(rows, default=0) > EXCEL_ROWS:
        words = (
            f"a table of {max(rows):,} rows does not fit in an Excel file. A sheet has room for {EXCEL_ROWS:,}. "
            f"Leave {EXCEL!r} out."
        )
        source.file.document.refuse([Fault(("output", "formats"), words)])
