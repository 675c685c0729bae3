"""A released table of counts opened again, with ends at any level: from its research form and its stated constants.

The entry of a table in `release.json` (mechanism, constants, loss, domains) is public and enough to compute with its
noise. Anyone with the folder can ask for other levels, at no cost; nothing here is drawn, and nothing relies on it for
privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import from_dict
from discreet.privacy.units import Establishments, Unit, is_weak
from discreet.release.folder import open_release
from discreet.tables.calibration import basis_of
from discreet.tables.intervals.counts import EndsOfLevel
from discreet.tables.mechanisms.registry import named
from discreet.tables.release import CountRelease
from discreet.tables.sizes import NoisySizes
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.mechanisms.mechanism import Mechanism


def reopened(folder: str | Path) -> CountRelease:
    """The one drawn table of a release of counts or sums, in the research form."""
    release = open_release(folder)
    tables = [of for of in release.tables("research") if "noise" in of.about]
    if len(tables) != 1:
        raise DataError(
            f"{str(folder)!r} has {len(tables)} drawn tables of counts in the research form.",
            "One table is compared with one.",
            "Give a release of one table, or the files of two tables.",
            about="release",
        )
    if release.about["parameters"].get("suppress"):
        raise DataError(
            f"{str(folder)!r} has numbers that a rule of the agency leaves out.",
            "They are in its research form, and not in the form for readers.",
            "Give the tables of the form for readers.",
            about="release",
        )
    [of] = tables
    found = from_constants(of.about, of.read(), release.unit, level=float(release.level or 0.95))
    ledger = {"ledger": release.about.get("ledger"), "dataset": release.dataset}
    return replace(found, name=release.name, parameters={**of.about, **ledger})


def from_constants(
    about: Mapping[str, Any],
    table: pa.Table,
    unit: Unit,
    *,
    level: float,
    bounds_size: Callable[[Mechanism], bool] | None = None,
) -> CountRelease:
    """A table by what its release says of it.

    `bounds_size` says whether counts bound the size that sets the noise; by default they do only if that is certain.
    """
    workers = [name for name in about["by"] if name in about["domains"]]
    places = [name for name in about["by"] if name not in workers]
    kinds = tuple(product(*(about["domains"][name] for name in workers)))
    loss = from_dict(dict(about["loss"]))
    promise: Any = {"unit": unit, "loss": loss}
    mechanism = named(about["mechanism"]).stated(about["noise"], calibration=about["calibration"], **promise)
    sized = about["noise"].get("sizes")
    sizes = None if sized is None else NoisySizes.stated(sized, calibration="tight", **promise)
    weak = isinstance(unit, Establishments) and is_weak(unit.strength)
    certain = weak or (not about["where"] and (not workers or mechanism.joint))
    bounded = certain if bounds_size is None else bounds_size(mechanism)
    value = "count" if "count" in table.column_names else "sum"
    counts = np.array(table[value], dtype=np.int64).reshape(-1, len(kinds))
    each = {
        name: np.array(table[name], dtype=np.float64)[:: len(kinds)]
        for name in ("largest", "at_most")
        if name in table.column_names
    }
    largest = each["largest"].astype(np.int64) if "largest" in each else None
    ends = EndsOfLevel(counts, mechanism, bounded, largest, sizes, each.get("at_most"))
    lower, upper = ends(level)
    return CountRelease(
        keys=table.select(places).take(np.arange(0, len(table), len(kinds))),
        worker_by=tuple(workers),
        levels=kinds,
        counts=counts,
        lower=lower,
        upper=upper,
        level=level,
        guarantee=Guarantee(unit, loss, about["calibration"], basis_of(mechanism), mechanism.proof),
        parameters=dict(about),
        largest=largest,
        at_most=each.get("at_most"),
        magnitude=None if value == "count" else str(about["of"]),
        ends=ends,
    )
