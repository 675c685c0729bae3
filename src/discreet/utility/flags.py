"""Do two private releases raise the flags that the truth would raise? Large changes as a measure of utility.

The truth's own largest changes are the gold standard and published changes are alarm scores, so the measure is that of
`discreet.changes`: the area under the ROC curve for few false alarms (PAUC). L1 errors and rank correlations are also
given. Any two releases will do that have a number per cell: tables of two years, effects of two fits. Array functions
first, then the one for frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.data import frames
from discreet.roc import curve as roc
from discreet.roc.bootstrap import replicate
from discreet.roc.curve import Range
from discreet.utility.changes import change
from discreet.words.cases import case_of
from discreet.words.errors import DataError

Direction: TypeAlias = Literal["either", "decline", "increase"]


@dataclass(frozen=True, slots=True)
class Flags:
    """How well published changes raise the true flags.

    Attributes
    ----------
    cells, positives : how many there are, and how many of them are true large changes.
    releases : pairs of releases over which `pauc` is the mean.
    low, high : limits of one pair's area, over pairs and over resampled cells.
    chance, perfect : the areas of a random order and of the truth itself.
    """

    cells: int
    positives: int
    releases: int
    pauc: float
    low: float
    high: float
    chance: float
    perfect: float

    @property
    def kept(self) -> float:
        """From 0 for chance to 1 for the truth's own flags."""
        return (self.pauc - self.chance) / (self.perfect - self.chance)

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        return {**asdict(self), "kept": self.kept}


def alarms(changes: Matrix, *, direction: Direction = "either") -> Matrix:
    """Changes as scores: larger is more alarming."""
    if direction not in ("either", "decline", "increase"):
        raise DataError(
            f"Direction {direction!r} is not known.",
            "Large changes are 'either', 'decline' or 'increase'.",
            about="direction",
        )
    return np.asarray(case_of(direction, {"either": np.abs(changes), "increase": changes, "decline": -changes}))


def true_flags(true: Vector, *, most: int, direction: Direction = "either") -> Mask:
    """The `most` largest true changes; cells that did not change that way are never among them."""
    if not 0 < most < len(true):
        raise DataError(
            f"Flags for {most} of {len(true)} cells leave nothing to distinguish.",
            remedy=f"Choose 1 to {len(true) - 1}.",
            about="most",
        )
    score = alarms(true, direction=direction)
    flagged = np.zeros(len(true), dtype=bool)
    flagged[np.argsort(-score, kind="stable")[:most]] = True
    return np.asarray(flagged & (score > 0))


def flags_raised(
    published: ArrayLike,
    true: Vector,
    *,
    most: int,
    direction: Direction = "either",
    fpr: Range = (0.0, 0.2),
    level: float = 0.95,
    resamples: int = 200,
    rng: np.random.Generator | int = 0,
) -> Flags:
    """PAUC of published changes, shape (cells,) or (pairs of releases, cells), against the `most` largest true ones."""
    flagged = true_flags(true, most=most, direction=direction)
    scores = alarms(np.atleast_2d(np.asarray(published, float)), direction=direction)
    drawn = replicate(flagged, scores, fpr=fpr, resamples=resamples, rng=rng)
    lo, hi = roc.false_positive_range(fpr)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn.draws, [tail, 1 - tail])
    return Flags(
        cells=len(true),
        positives=int(flagged.sum()),
        releases=len(scores),
        pauc=float(drawn.area.mean()),
        low=float(low),
        high=float(high),
        chance=(hi**2 - lo**2) / 2,
        perfect=hi - lo,
    )


def compare_releases(
    private: tuple[Any, Any],
    truth: tuple[Any, Any],
    *,
    by: Sequence[str],
    value: str,
    most: int,
    relative: bool = False,
    absent: float | None = None,
    direction: Direction = "either",
    fpr: Range = (0.0, 0.2),
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> Flags:
    """`flags_raised` for frames: an early and a late release, and the truth of both.

    `by` names the columns that make a cell and `value` the number, in all four. Cells that a table does not have are
    refused, or taken to be `absent` (0 for counts). The result compares with the truth: it is not a release.
    """
    names = ("The early release", "The late release", "The early truth", "The late truth")
    values = aligned(dict(zip(names, (*private, *truth), strict=True)), by=by, value=value, absent=absent)
    published, true = (change(*pair, relative=relative) for pair in (values[:2], values[2:]))
    return flags_raised(
        published, true, most=most, direction=direction, fpr=fpr, level=level, resamples=resamples, rng=seed
    )


def aligned(tables: dict[str, Any], *, by: Sequence[str], value: str, absent: float | None) -> Matrix:
    """One row of values per table, all over the same cells in the same order."""
    read = {name: _columns(table, by, value, name) for name, table in tables.items()}
    owner = np.repeat(np.arange(len(read)), [len(numbers) for _, numbers in read.values()])
    cell: Integers = np.zeros(len(owner), dtype=np.int64)
    for k in range(len(by)):
        labels, code = np.unique(np.concatenate([keys[k] for keys, _ in read.values()]), return_inverse=True)
        cell = np.unique(cell * len(labels) + code, return_inverse=True)[1]
    result = np.full((len(read), int(cell.max()) + 1), np.nan)
    counts = np.zeros(result.shape, dtype=np.int64)
    np.add.at(counts, (owner, cell), 1)
    for name, row in zip(read, counts, strict=True):
        if (row > 1).any():
            raise DataError(
                f"{name} has several rows for one cell of {', '.join(by)}.", "Aggregate them first.", about=name
            )
        if absent is None and (row == 0).any():
            raise DataError(
                f"{name} has {int((row > 0).sum())} of {len(row)} cells, and changes need the same cells.",
                "Release all by the same attributes, or say what a missing cell is worth with absent=0.",
                about=name,
            )
    result[owner, cell] = np.concatenate([numbers for _, numbers in read.values()])
    return np.asarray(np.nan_to_num(result, nan=0.0 if absent is None else absent))


def _columns(table: Any, by: Sequence[str], value: str, name: str) -> tuple[list[np.ndarray], Vector]:
    frame = frames.open_frame(table, name=name)
    present = frame.collect_schema().names()
    frames.refuse(frames.missing(column, present, name=name) for column in (*by, value) if column not in present)
    frames.require(frame, {value: "number"}, name=name)
    read = frames.collect(frame.select(*by, value), step=f"read {name}")
    numbers = read[value].to_numpy().astype(float)
    bad = int((~np.isfinite(numbers)).sum())
    if bad or not len(numbers):
        raise DataError(
            f"{name} has {len(numbers)} rows, {bad} of them without a finite {value}.",
            remedy="Fill or drop them.",
            about=name,
        )
    return [read[column].to_numpy().astype(str) for column in by], numbers
