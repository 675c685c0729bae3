"""Simulated data of the bench: written once under `out/bench`, found there again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.peers import ROOT
from discreet.simulate import lodes, qwi, stream

HOME = ROOT / "out" / "bench"
PLACES = ("place", "sector", "ownership")


def shape(count: float) -> lodes.Shape:
    """An economy in proportion: 2,500 places and 4 states per 10.9 million jobs, and no more than 50 states."""
    whole, share = lodes.SHAPE, count / lodes.SHAPE.jobs
    states = min(50, max(whole.states, round(whole.states * share)))
    sizes = {name: max(1, round(getattr(whole, name) * share)) for name in ("establishments", "jobs", "places")}
    return replace(whole, **sizes, counties=max(states, round(whole.counties * share)), states=states)


def jobs(count: float) -> Path:
    """About `count` jobs with their workplaces."""
    folder = HOME / f"jobs-{count:.0f}"
    if not folder.exists():
        kept = ((name, batch) for name, batch in lodes.batches(shape=shape(count)) if name in ("jobs", "workplace"))
        stream.write(folder, kept, about={"data": "lodes", "jobs": count}, total=round(count))
    return folder


def cells(folder: Path) -> Path:
    """The cells of workload 1 that exist, which is public, with the number of jobs in each, which is not."""
    import duckdb

    path = folder.parent / f"{folder.name}-cells.parquet"
    if not path.exists():
        by = ", ".join(PLACES)
        duckdb.sql(f"""
            COPY (SELECT {by}, count(*) AS true FROM '{folder}/jobs.parquet' GROUP BY ALL ORDER BY ALL) TO '{path}'""")
    return path


def rows(share: float) -> Path:
    """The panel of the mixed models: 2,428,452 rows of 3,111 counties at full size."""
    folder = HOME / f"qwi-{share:g}"
    if not folder.exists():
        qwi.write(folder, seed=0, share=share)
    return folder / "qwi.parquet"


def longer(copies: int) -> Path:
    """The full panel several times over: more rows of the same counties."""
    folder = HOME / f"qwi-1-x{copies}"
    if not folder.exists():
        folder.mkdir()
        for copy in range(copies):
            (folder / f"{copy}.parquet").hardlink_to(rows(1))
    return folder
