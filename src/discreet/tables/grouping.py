"""Establishments grouped by cell: their number, sums, maxima, and the second largest number of a cell.

The second largest is the largest again where two establishments share it, and 0 where there is one only. DuckDB keeps
the two largest numbers while it groups. Elsewhere a window finds the largest first, which takes several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.data.delimited import quoted
from discreet.data.frames import open_frame

if TYPE_CHECKING:
    from discreet.data.frames import Frame

ESTABLISHMENTS = "__establishments"
"""The column of the number of establishments."""


def grouped(
    firms: Frame, by: Sequence[str], *, sums: Mapping[str, str], maxima: Mapping[str, str], seconds: Mapping[str, str]
) -> Frame:
    """One row per cell; each mapping names its columns and what they are of, whole numbers without nulls."""
    if seconds and firms.implementation.is_duckdb():
        return _in_duckdb(firms, by, sums, maxima, seconds)
    import narwhals.stable.v2 as nw

    if seconds:
        firms = firms.with_columns(nw.col(of).max().over(*by).alias(f"__top{name}") for name, of in seconds.items())
    for name, of in seconds.items():
        top = nw.col(of) == nw.col(f"__top{name}")
        firms = firms.with_columns(
            nw.when(top).then(nw.lit(1)).otherwise(nw.lit(0)).alias(f"__tied{name}"),
            nw.when(top).then(nw.lit(0)).otherwise(nw.col(of)).alias(f"__below{name}"),
        )
    found = firms.group_by(*by).agg(
        nw.len().alias(ESTABLISHMENTS),
        *(nw.col(of).sum().alias(name) for name, of in sums.items()),
        *(nw.col(of).max().alias(name) for name, of in maxima.items()),
        *(nw.col(f"__{part}{name}").max() for name in seconds for part in ("top", "below")),
        *(nw.col(f"__tied{name}").sum() for name in seconds),
    )
    second = {
        name: nw.when(nw.col(f"__tied{name}") > 1).then(nw.col(f"__top{name}")).otherwise(nw.col(f"__below{name}"))
        for name in seconds
    }
    return found.select(*by, ESTABLISHMENTS, *sums, *maxima, **second)


def _in_duckdb(
    firms: Frame, by: Sequence[str], sums: Mapping[str, str], maxima: Mapping[str, str], seconds: Mapping[str, str]
) -> Frame:
    keys = ", ".join(map(quoted, by))
    columns = [
        f"count(*) AS {quoted(ESTABLISHMENTS)}",
        *(f"sum({quoted(of)}) AS {quoted(name)}" for name, of in sums.items()),
        *(f"max({quoted(of)}) AS {quoted(name)}" for name, of in maxima.items()),
        *(f"coalesce(max({_of_64_bits(of)}, 2)[2], 0) AS {quoted(name)}" for name, of in seconds.items()),
    ]
    return open_frame(firms.to_native().aggregate(f"{keys}, {', '.join(columns)}", keys))


def _of_64_bits(column: str) -> str:
    """The column as DuckDB compares it fastest: its sums have 128 bits. Larger numbers are refused as the largest."""
    return f"try_cast({quoted(column)} AS BIGINT)"
