"""The series of the M3 forecasting competition (Makridakis and Hibon 2000), from CSV or from R's package Mcomp.

`M3.rda` holds a list of Mdata objects: the number `sn`, the history `x`, the held-out values `xx`, the `period` and
the `type` of a series.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.readers.published import FileLayout, Type, read_csv
from discreet.words.errors import DataError
from discreet.words.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: dict[str, Type] = {"t": "whole", "value": "real"}
M3 = FileLayout(
    name="M3",
    required=("series", "part", "t", "value"),
    type_of=lambda column: _TYPES.get(column, "text"),
    home="cran.r-project.org/package=Mcomp",
)


def read_m3(path: str | Path, *, period: str | None = None, type: str | None = None) -> pa.Table:
    """Tidy rows: `series`, `part` (train or test), `t` from 1 through both parts, `value`; from R `period` and `type`.

    `period="MONTHLY", type="MICRO"` keeps the 474 series of the Dissertation's first chapter.
    """
    import pyarrow.compute as pc

    table = _read_rda(Path(path)) if Path(path).suffix.lower() in (".rda", ".rdata") else read_csv(path, M3)
    for column, wanted in (("period", period), ("type", type)):
        if wanted is None:
            continue
        known = sorted(table[column].unique().to_pylist()) if column in table.column_names else []
        if wanted not in known:
            there = f"{column} is one of: {', '.join(known)}" if known else f"the file has no {column}"
            raise DataError(
                f"{column}={wanted!r} was asked of {str(path)!r}, but {there}.",
                remedy="Ask for what is there.",
                about=column,
            )
        table = table.filter(pc.equal(table[column], wanted))
    return table


def _read_rda(path: Path) -> pa.Table:
    import pyarrow as pa

    series = _series(path)
    lengths = [(len(one["x"]), len(one["xx"])) for one in series]
    rows = [n + h for n, h in lengths]
    parts = np.repeat(np.tile(["train", "test"], len(series)), np.ravel(lengths))
    labels = {name: np.repeat([str(one[key][0]) for one in series], rows) for name, key in _LABELS.items()}
    return pa.table(
        {
            **labels,
            "part": parts,
            "t": np.concatenate([np.arange(1, n + 1) for n in rows]),
            "value": np.concatenate([np.asarray(one[half], float) for one in series for half in ("x", "xx")]),
        }
    )


_LABELS = {"series": "sn", "period": "period", "type": "type"}


def _series(path: Path) -> list[dict[str, Any]]:
    """The Mdata objects of a saved list, whatever it is called."""
    with needs("rda", f"Reading {path.name}, a file of R,"):
        import rdata

    def plain(obj: Any, _: Any) -> Any:
        return obj

    classes = {**rdata.conversion.DEFAULT_CLASS_MAP, "ts": plain, "Mdata": plain, "Mcomp": plain, "list": plain}
    try:
        found = rdata.read_rda(path, constructor_dict=classes)
    except Exception as error:
        raise DataError(
            f"{str(path)!r} cannot be read as R data: {error}.",
            "Save it again in R with save(M3, file = 'M3.rda').",
            about="path",
        ) from None
    needed = {*_LABELS.values(), "x", "xx"}
    for content in found.values():
        entries = list(content.values()) if isinstance(content, dict) else []
        if entries and all(isinstance(one, dict) and needed <= set(one) for one in entries):
            return entries
    raise DataError(
        f"{str(path)!r} holds {', '.join(found) or 'nothing'}, none of which is a list of series with "
        "sn, period, type, x and xx.",
        f"The M3 data are in R's package Mcomp ({M3.home}).",
        about="path",
    )
