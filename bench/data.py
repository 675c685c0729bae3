"""Data of the bench: written once under `out/bench`, in a folder named after the code that makes them, and found again.

All of them are simulated, except for InstEval, which lme4 ships. A file or folder is whole or absent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench import peers
from discreet.simulate import lodes, qwi, stream

MAKERS = (Path(__file__), *sorted(Path(stream.__file__).parent.glob("*.py")))
HOME = peers.ROOT / "out" / "bench" / sha256(b"\0".join(path.read_bytes() for path in MAKERS)).hexdigest()[:8]
PLACES = ("place", "sector", "ownership")


def kept(path: Path, make: Callable[[Path], object]) -> Path:
    """What `make` writes to the path it is given, once; an interruption or a full disk leaves nothing behind."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
            make(Path(scratch) / "made")
            (Path(scratch) / "made").rename(path)
    return path


def shape(count: float) -> lodes.EconomyShape:
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

    by = ", ".join(PLACES)
    counted = f"SELECT {by}, count(*) AS true FROM '{folder}/jobs.parquet' GROUP BY ALL ORDER BY ALL"
    return kept(
        folder.with_name(f"{folder.name}-cells.parquet"),
        lambda path: duckdb.sql(f"COPY ({counted}) TO '{path}' (FORMAT parquet)"),
    )


def rows(share: float) -> Path:
    """The panel of the mixed models: 2,428,452 rows of 3,111 counties at full size."""
    folder = HOME / f"qwi-{share:g}"
    if not folder.exists():
        qwi.write(folder, seed=0, share=share)
    return folder / "qwi.parquet"


def longer(copies: int) -> Path:
    """The full panel several times over: more rows of the same counties."""

    def link(folder: Path) -> None:
        folder.mkdir()
        for copy in range(copies):
            (folder / f"{copy}.parquet").hardlink_to(rows(1))

    return kept(HOME / f"qwi-1-x{copies}", link)


def every(path: Path, fraction: int) -> Path:
    """Every so manieth row of a file as a file of its own."""
    import pyarrow.parquet as pq

    def take(part: Path) -> None:
        table = pq.read_table(path)
        pq.write_table(table.take(np.arange(0, table.num_rows, fraction)), part)

    return kept(path.with_name(f"{path.stem}-every-{fraction}.parquet"), take)


def columns(path: Path) -> tuple[Path, int]:
    """The panel as plain binary columns, which R reads fastest, with an order to cut blocks from, and its length."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["jcr", "industry", "quarter", "county"])

    def fill(folder: Path) -> None:
        folder.mkdir()
        for name in ("industry", "county"):
            codes = table[name].combine_chunks().cast("string").dictionary_encode().indices
            codes.to_numpy(zero_copy_only=False).astype("i4").tofile(folder / name)
        for name in ("jcr", "quarter"):
            table[name].to_numpy().astype("f8").tofile(folder / name)
        order = np.random.default_rng(1).permutation(table.num_rows)
        (order + 1).astype("i4").tofile(folder / "order")

    return kept(HOME / f"columns-{path.parent.name}-{path.stem}", fill), table.num_rows


def insteval() -> Path:
    """lme4's InstEval, 73,421 marks of lecturers by students, as a CSV file."""
    script = "write.csv(InstEval, arguments[1], row.names = FALSE, quote = FALSE)\nreport()"
    return kept(HOME / "insteval.csv", lambda path: peers.r(script, path, package="lme4"))
