"""The main job on embedded defaults, from nothing: simulate, check, release, report, verify.

Everything is real but the data: DuckDB reads Parquet, the ledger is a SQLite file, the noise is exact and from the
operating system. Because the data are simulated, the report may show how far off the release is; a report on
confidential data never could.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import DataError
from discreet.privacy.units import Establishments
from discreet.tables.release import CountRelease

if TYPE_CHECKING:
    from discreet.report.page import Block

MARK = ".discreet-demo"
WORKPLACE = ("place", "sector", "ownership")
WORKER = ("sex", "education")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo wrote, and one line about each step."""

    folder: Path
    lines: tuple[str, ...]


def run(out: Path, *, share: float = 0.01, seed: int = 1, tell: Callable[[str], None] = lambda line: None) -> Outcome:
    """Run the demo into `out`, which must be new, empty or an earlier demo."""
    from discreet.jobs import read_jobs
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.verify import verify
    from discreet.session import Session
    from discreet.simulate import lodes
    from discreet.tables.calibration import calibrate

    folder = _fresh(out)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        tell(line)

    data = folder / "data"
    lodes.write(data, seed=seed, share=share)
    jobs = read_jobs(data)
    say(f"simulated jobs in {data}")

    unit = Establishments(alpha="0.1")
    session = Session(jobs, unit=unit, budget=6, ledger=folder / "ledger.db", dataset="demo")
    workplaces = session.count(by=WORKPLACE)
    kinds = session.count(by=(*WORKPLACE, *WORKER))
    check = workplaces.check(epsilon=2)
    say(f"checked before spending: {check.guarantee.loss} of {check.remaining}, {check.mechanism}")

    tables = {
        "jobs": workplaces.release(epsilon=2, name="jobs").non_negative(),
        "kinds": kinds.release(epsilon=4, name="kinds").non_negative(),
    }
    for name, table in tables.items():
        _write(folder, name, table)
        say(f"released {table.counts.size:,} counts to {folder / name}.csv and .parquet")

    verdict = verify(calibrate("polynomial", unit=unit, epsilon=2))
    word = "holds" if verdict.holds else "VIOLATED"
    say(f"verified over {verdict.neighbours:,} neighbours: worst loss {verdict.worst_loss:.6f} of 2, {word}")
    with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
        state = "intact" if ledger.verify().intact else "BROKEN"
    say(f"ledger {folder / 'ledger.db'}: {state}, {session.remaining} left")
    _report(folder / "report.html", tables, lines, jobs)
    say(f"report {folder / 'report.html'}")
    return Outcome(folder, tuple(lines))


def _fresh(out: Path) -> Path:
    """An empty folder at `out`; an earlier demo there is replaced, anything else is left alone."""
    if (out / MARK).exists():
        shutil.rmtree(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(
            f"The demo cannot be put in {str(out)!r}: something else is there. It needs a new or empty folder. "
            "Choose another with --out."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARK).touch()
    except OSError as error:
        raise DataError(
            f"The demo cannot be put in {str(out)!r}: {error.strerror}. It needs a folder that you can write. "
            "Choose another with --out."
        ) from None
    return out


def _write(folder: Path, name: str, table: CountRelease) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    arrow = table.to_arrow()
    pyarrow.parquet.write_table(arrow, folder / f"{name}.parquet")
    pyarrow.csv.write_csv(arrow, folder / f"{name}.csv")
    about = {
        "name": table.name,
        "guarantee": table.guarantee.to_dict(),
        "parameters": dict(table.parameters),
        "ledger": table.entry.reference if table.entry else None,
    }
    (folder / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _report(path: Path, tables: dict[str, CountRelease], lines: list[str], jobs: object) -> None:
    from discreet.jobs import Jobs
    from discreet.report.charts import lines as line_chart
    from discreet.report.page import Figure, Heading, Note, Page, Prose, Table
    from discreet.tables.cells import cell_statistics

    assert isinstance(jobs, Jobs)
    blocks: list[Block] = [
        Note("limitation", "The data are simulated, so the true counts may be shown beside the release.")
    ]
    rows = []
    for name, table in tables.items():
        truth = cell_statistics(jobs, workplace_by=table.keys.column_names, worker_by=table.worker_by)
        error = np.abs(table.counts - truth.counts)
        inside = (table.lower <= truth.counts) & (truth.counts <= table.upper)
        blocks += [
            Heading(f"Release {name!r}: jobs by {', '.join(table.by)}"),
            Prose(str(table.guarantee)),
            Table.of(
                [
                    {
                        "counts": table.counts.size,
                        "true jobs": int(truth.counts.sum()),
                        "published jobs": int(table.counts.sum()),
                        "mean absolute error": float(error.mean()),
                        "intervals that hold the truth, %": 100 * float(inside.mean()),
                    }
                ],
                caption=f"How far off the release {name!r} is",
            ),
        ]
        edges = np.array([0, 1, 3, 10, 30, 100, 300, 1000, np.inf])
        for low, high in pairwise(edges):
            chosen = (truth.counts >= low) & (truth.counts < high)
            if chosen.any():
                at = float(truth.counts[chosen].mean()) if low else 0.5
                rows.append(
                    {"release": name, "true count": max(at, 0.5), "mean absolute error": float(error[chosen].mean())}
                )
    chart = line_chart(rows, "true count", "mean absolute error", "release", log_x=True)
    blocks += [
        Heading("Error by size of the count"),
        Figure(
            chart, "Mean absolute error against the true count, for both releases.", "Larger counts carry more noise."
        ),
        Heading("What was done"),
        *(Prose(line) for line in lines),
    ]
    Page(
        "discreet demo: private counts of jobs", blocks, lead="Simulated jobs, released under a proved guarantee."
    ).write(path)
