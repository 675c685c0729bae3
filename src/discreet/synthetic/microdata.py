"""The file of synthetic jobs: drawn from a release's folder alone, written in a stream.

One row is one job, with its establishment's number and attributes, the worker's attributes and amounts. The column
`synthetic` is true in every row, and the file's name and metadata say the same. Counts of cells are fitted first. Then
establishments are drawn cell by cell, workers of each kind are put into them at random, and rows are written a batch at
a time. So memory does not grow with the number of jobs.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.release.folder import ReleaseFolder, one_data_set, open_releases, refuse_inside, whole_or_not
from discreet.results import Result, rows_table, tidy_table
from discreet.synthetic.cells import joint, sources
from discreet.synthetic.economy import SyntheticEconomy
from discreet.synthetic.sizes import SizeShape, shared, workforces
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Key
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "discreet synthetic jobs, format 1"
WORD = "synthetic"
BATCH = 500_000
"""Jobs that are in memory at once."""
MOST_JOBS = 10**9
"""NumPy draws from fewer at once."""

PAY_SIGMA = 0.6
"""Standard deviation of the logarithm of an amount within a cell; declared, not learned."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Synthetic(Result):
    """The written file, and how it agrees with the release.

    Attributes
    ----------
    path, about : the file of jobs, and the file that says what it is.
    jobs, establishments : how many there are.
    margins : for each released table: its sums, how many of them are in their intervals, and the mean distance from the
        published number.
    guarantee : what the releases promise; nothing was added to it.
    """

    path: Path
    about: Path
    jobs: int
    establishments: int
    margins: tuple[dict[str, Any], ...]
    guarantee: str

    @property
    def met(self) -> bool:
        """Whether every released number with an interval is met within it."""
        return all(margin["met"] == margin["sums"] for margin in self.margins)

    def tidy(self) -> pa.Table:
        """One row per released table."""
        return tidy_table(
            effect="share met",
            group=[str(margin["table"]) for margin in self.margins],
            estimate=[margin["met"] / max(margin["sums"], 1) for margin in self.margins],
        )

    def to_arrow(self) -> pa.Table:
        """The margins, one row per released table."""
        return rows_table(self.margins)

    def __repr__(self) -> str:
        met, sums = (sum(margin[name] for margin in self.margins) for name in ("met", "sums"))
        return (
            f"{self.jobs:,} synthetic jobs at {self.establishments:,} establishments in {str(self.path)!r}: "
            f"{met:,} of {sums:,} released numbers are met within their intervals. {self.guarantee}"
        )


@of_kinds
def synthesize(
    release: str | Path,
    out: str | Path,
    *,
    seed: int = 0,
    sizes: SizeShape | None = None,
    ledger: str | Path | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Synthetic:
    """Draw establishments and jobs that agree with a release, and write them as Parquet.

    Only the release's folder is read, so this costs no privacy: the file has the promise of the release. It is no
    sample of the data. Facts that were not released, such as the association between attributes of different tables,
    follow the declared shapes and nothing else.

    Parameters
    ----------
    release : the folder of a release, or the output folder of a plan.
    out : a file whose name says that it is synthetic, such as jobs-synthetic.parquet.
    seed : the same release and seed give the same bytes.
    sizes : the shape of establishments where the release says nothing about them.
    ledger : the ledger that paid; it finds a forged `release.json`.
    force : replace a file that is there.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    What was written, with every released margin beside what the file has.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import discreet as dc
    >>> rows = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "sector": ["shops", "shops", "farms"]}
    >>> schema = dc.Schema(workplace_attributes=["sector"], worker_attributes={})
    >>> jobs = dc.read_jobs(pa.table(rows), schema=schema)
    >>> account = dc.Account.open(None, dataset="jobs", unit=dc.Establishments(0.1), budget=dc.Pure(2))
    >>> offer = dc.Session(jobs, unit=account.unit, budget=2).count(["sector"]).offer(epsilon=2)
    >>> folder = Path(tempfile.mkdtemp())
    >>> published = account.publish(offer, jobs, folder / "release", name="jobs")
    >>> synthesize(folder / "release", folder / "jobs-synthetic.parquet", seed=1).met
    True
    """
    out, shape = Path(out), sizes or SizeShape()
    beside = out.with_suffix(".json") if out.name else out
    refuse_inside(out, release)
    refuse_seed(seed)
    refuse_file(out, beside, force=force)
    releases = open_releases(release, ledger=ledger)
    dataset, found = one_data_set(releases), sources(releases)
    cells = joint(releases, found)
    rng = np.random.default_rng([seed, 20])
    drawn = SyntheticEconomy.of(cells, found, shape, rng)
    refuse_many(int(drawn.jobs.sum()))
    hidden = [path.with_name(f".{path.name}.{secrets.token_hex(4)}") for path in (out, beside)]
    try:
        with whole_or_not(out):
            establishments = _write(hidden[0], drawn, rng, progress)
            done = Synthetic(
                path=out,
                about=beside,
                jobs=int(drawn.jobs.sum()),
                establishments=establishments,
                margins=tuple(drawn.told),
                guarantee=" ".join(dict.fromkeys(known.promise for known in releases)),
            )
            text = json.dumps(
                _about(done, releases, dataset, seed, shape), indent=2, ensure_ascii=False, allow_nan=False
            )
            hidden[1].write_text(text + "\n", encoding="utf-8")
            for path, place in zip(reversed(hidden), (beside, out), strict=True):
                path.replace(place)
    finally:
        for path in hidden:
            path.unlink(missing_ok=True)
    return done


def refuse_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise DataError(
            (Argument("seed", seed), " is no seed."),
            "It is a whole number of 0 or more.",
            ("Use for example ", Argument("seed", 1), "."),
            about="seed",
        )


def refuse_many(jobs: int) -> None:
    """Refuse more jobs than a file of rows is for."""
    if jobs >= MOST_JOBS:
        raise DataError(
            f"The release has {jobs:,} jobs, and each would be a row.",
            f"Fewer than {MOST_JOBS:,} are drawn.",
            "Draw from a release of a part of them.",
            about="release",
        )


def refuse_file(out: Path, beside: Path, *, force: bool) -> None:
    """Refuse a name that does not say what the file is, or a file that is there."""
    if WORD not in out.name or out.suffix != ".parquet":
        raise DataError(
            (Argument("out", str(out)), f" does not say that the file is {WORD}, or that it is Parquet."),
            f"Its name has the word {WORD} and ends in .parquet, so that nobody mistakes it for data.",
            ("Use for example ", Argument("out", "jobs-synthetic.parquet"), "."),
            about="out",
        )
    there = [path for path in (out, beside) if path.exists()]
    if not out.parent.is_dir() or any(path.is_dir() for path in there) or (there and not force):
        what = "there is no such folder" if not out.parent.is_dir() else f"{there[0].name!r} is there already"
        raise DataError(
            f"{str(out)!r} cannot be written: {what}.",
            "It is a new file in a folder that exists; with --force a file is replaced.",
            ("Choose another ", Key("out"), "."),
            about="out",
        )


def _write(path: Path, drawn: SyntheticEconomy, rng: np.random.Generator, progress: Progress) -> int:
    """Write all rows; how many establishments have a job."""
    import pyarrow.parquet as pq

    writer, rows, seen = None, 0, 0
    total = int(drawn.jobs.sum())
    try:
        for batch, establishments in _batches(drawn, rng):
            if writer is None:
                writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_table(batch)
            rows, seen = rows + len(batch), seen + establishments
            progress(f"{rows:,} of {total:,} jobs", rows / max(total, 1))
    finally:
        if writer is not None:
            writer.close()
    return seen


def _batches(drawn: SyntheticEconomy, rng: np.random.Generator) -> Iterator[tuple[pa.Table, int]]:
    """The rows of some workplace cells at a time. Very large cells are parted by establishments."""
    total = np.bincount(drawn.workplace, weights=drawn.jobs, minlength=len(drawn.first)).astype(np.int64)
    order = np.argsort(drawn.workplace, kind="stable")
    bounds = np.searchsorted(drawn.workplace[order], np.arange(len(drawn.first) + 1))
    ends = np.cumsum(total)
    at, before, rows = 0, 0, 0
    unpaid = _Unpaid(drawn.jobs.copy(), {name: amounts.copy() for name, amounts in drawn.amounts.items()})
    while at < len(drawn.first):
        upto = max(int(np.searchsorted(ends, (ends[at - 1] if at else 0) + BATCH, side="right")), at + 1)
        members = order[bounds[at] : bounds[upto]]
        largest = None if drawn.largest is None else drawn.largest[at:upto]
        number = drawn.establishments[at:upto]
        size = workforces(total[at:upto], number, drawn.shape, rng, largest=largest)
        for piece_size, kinds in _pieces(drawn, members, size[size > 0], rng):
            table = _rows(drawn, members, piece_size, kinds, unpaid, rng, first=before, row=rows)
            yield table, len(piece_size)
            before, rows = before + len(piece_size), rows + len(table)
        at = upto
    if not rows:
        yield _rows(drawn, order[:0], order[:0], order[:0], unpaid, rng, first=0, row=0), 0


def _pieces(
    drawn: SyntheticEconomy, members: Integers, size: Integers, rng: np.random.Generator
) -> Iterator[tuple[Integers, Integers]]:
    """Establishments with the number of jobs of each cell that they share, at most about `BATCH` jobs at once."""
    kinds = drawn.jobs[members].copy()
    if size.sum() <= 2 * BATCH:
        yield size, kinds
        return
    start = 0
    ends = np.cumsum(size)
    while start < len(size):  # one workplace cell alone is as large as this
        stop = max(int(np.searchsorted(ends, (ends[start - 1] if start else 0) + BATCH, side="right")), start + 1)
        some = int(size[start:stop].sum())
        part = rng.multivariate_hypergeometric(kinds, some, method="marginals") if stop < len(size) else kinds
        yield size[start:stop], part
        kinds = kinds - part
        start = stop


def _rows(
    drawn: SyntheticEconomy,
    members: Integers,
    size: Integers,
    kinds: Integers,
    unpaid: _Unpaid,
    rng: np.random.Generator,
    *,
    first: int,
    row: int,
) -> pa.Table:
    """The jobs of some establishments. `kinds` are the jobs of each cell in `members`."""
    import pyarrow as pa

    cell = np.repeat(members, kinds)
    # Both are in the order of workplace cells; within one, workers come in any order.
    cell = cell[np.lexsort((rng.random(len(cell)), drawn.workplace[cell]))]
    establishment = np.repeat(np.arange(first + 1, first + 1 + len(size)), size)
    columns: dict[str, Any] = {
        WORD: pa.array(np.ones(len(cell), dtype=np.bool_)),
        "workplace": pa.array(establishment),
        "worker": pa.array(np.arange(row + 1, row + 1 + len(cell))),
    }
    for name in (*drawn.cells.workplace, *drawn.cells.workers):
        words = drawn.cells.values[name].cast(drawn.types[name])
        columns[name] = words.take(pa.array(drawn.cells.codes[name][cell]))
    for name in drawn.amounts:
        columns[name] = pa.array(unpaid.pay(name, cell, drawn.caps[name], rng))
    unpaid.jobs[members] -= kinds
    told = {WORD: "true: no row is of a person or an establishment", "format": FORMAT}
    return pa.table(columns).replace_schema_metadata(told)


@dataclass(frozen=True, slots=True, eq=False)
class _Unpaid:
    """The jobs of each cell that are not written yet, and the amounts that they share."""

    jobs: Integers
    amounts: Mapping[str, Integers]

    def pay(self, name: str, cell: Integers, cap: float, rng: np.random.Generator) -> Integers:
        """Amounts of some jobs: together their share of what their cells have left, each at most the cap."""
        order = np.argsort(cell, kind="stable")
        cells, place, here = np.unique(cell[order], return_inverse=True, return_counts=True)
        left = self.amounts[name]
        totals = np.where(here == self.jobs[cells], left[cells], left[cells] * (here / self.jobs[cells])).astype(
            np.int64
        )
        left[cells] -= totals
        weight = np.exp(PAY_SIGMA * rng.standard_normal(len(cell)))
        paid = np.empty(len(cell), dtype=np.int64)
        paid[order] = shared(totals, place, weight, np.full(len(cell), cap))
        return paid


def _about(
    done: Synthetic, releases: Sequence[ReleaseFolder], dataset: str, seed: int, shape: SizeShape
) -> dict[str, Any]:
    """What the file is. The result does not depend on when or where the release was made."""
    return {
        "format": FORMAT,
        WORD: True,
        "words": "Drawn to agree with what was released. No row is of a person or an establishment.",
        "data": dataset,
        "file": done.path.name,
        "jobs": done.jobs,
        "establishments": done.establishments,
        "seed": seed,
        "shape": {**asdict(shape), "amounts": PAY_SIGMA},
        "releases": {
            known.name: {
                "guarantee": known.promise,
                "stated": dict(known.about["guarantee"]),
                "unit": known.unit.key,
                "loss": known.loss.to_dict(),
                "files": {name: digest for name, digest in known.files.items() if name.endswith(".parquet")},
            }
            for known in releases
        },
        "margins": list(done.margins),
        "not said": "The association of attributes that no table has together, who works where, and sizes of "
        "establishments follow declared shapes, not the data.",
    }
