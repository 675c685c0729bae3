"""Data of the papers' shape and size, drawn from a seed and streamed to Parquet.

`lodes` jobs, workers and workplaces; `histories` jobs quarter by quarter; `national` establishments with jobs and
payroll; `qwi` county-by-industry employment flows; `crime` tract-by-month counts with leading indicators; `regression`
the straight line of the posterior thesis. Each has a frozen `Shape` of documented constants, `batches(...)` that yields
named Arrow record batches in bounded memory, and `write(folder, ...)`.
Nothing here is privacy noise: every draw comes from a NumPy generator or a hash of the seed.

draws    seeded draws that the data sets share
sectors  the twenty NAICS sectors with public margins: how many establishments, how large, who works there
stream   named Arrow batches to a new folder of Parquet files: all of them or nothing
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_DATA = ("crime", "histories", "lodes", "national", "qwi", "regression")


def __getattr__(name: str) -> ModuleType:
    if name not in _DATA:
        raise AttributeError(f"module 'discreet.simulate' has no name {name!r}; it has: {', '.join(_DATA)}")
    return import_module(f"discreet.simulate.{name}")
