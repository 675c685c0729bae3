"""Excel files of a release: made from its Parquet files, for people. Programs read the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from discreet.plan.file import PlanFile, PlanSource
from discreet.results import EXCEL_HOLDS, EXCEL_ROWS, changed_in_excel
from discreet.words.extras import needs
from discreet.words.faults import Fault

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.cells import Cells

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


def labels_of(found: Iterable[Cells]) -> Iterator[pa.Table]:
    """The public labels of cells: places, the kinds of workers, and what tables of a hierarchy add up to."""
    import pyarrow as pa

    for cells in found:
        yield cells.keys
        kinds = {name: [str(of[i]) for of in cells.levels] for i, name in enumerate(cells.worker_by)}
        yield pa.table(kinds)
        yield from {} if cells.lineage is None else cells.lineage.codes.values()


def refuse_labels(source: PlanSource, tables: Iterable[pa.Table]) -> None:
    """Refuse public labels that a sheet would lose or change, before anything is paid for."""
    if EXCEL not in source.output.formats:
        return
    import pyarrow as pa

    titles = [pa.table({name: list(of.values())}) for name, of in source.tables.data.labels.items()]
    for table in (*titles, *tables):
        column = changed_in_excel(table)
        if column is not None:
            words = f"a label of column {column!r} does not fit in an Excel file. {EXCEL_HOLDS} Leave {EXCEL!r} out."
            source.file.document.refuse([Fault(("output", "formats"), words)])
