"""The outputs of a mechanism as rows of numbers: a vector, a label, a failure, or any mixture of these.

An output is cut into its kind (what it looks like without its numbers) and its numbers. If all are of one kind, the
numbers are the row. Else the kind's place in a list comes first and shorter rows are filled with zeros. A run that
raised an error is an output as well: an error that only one data set causes reveals that data set. An integer beyond
2^53 becomes two numbers, the nearest double and the rest, so that no digit is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.scores import Outputs

EXACT = 2**53  # integers up to here are doubles
LONG = 60  # characters of a kind that are shown


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that raised an error; the message is left out, because it may hold data."""

    error: str


@dataclass(frozen=True, slots=True)
class Encoded:
    """Samples of outputs, one matrix each; with `kinds`, the first column is a place in that list."""

    samples: list[Outputs]
    kinds: tuple[str, ...] = ()


def encode(drawn: Sequence[Sequence[Any]], *, learnt: int = 2) -> Encoded:
    """All samples in the same columns; kinds that the first `learnt` samples do not show share the last place."""
    numbers = _plain(drawn)
    if numbers is not None:
        return Encoded(numbers)
    parts = [[_cut(output) for output in sample] for sample in drawn]
    known = sorted({kind for sample in parts[:learnt] for kind, _ in sample})
    place = {kind: float(i) for i, kind in enumerate(known)}
    width = max(len(values) for sample in parts for _, values in sample)
    samples = []
    for sample in parts:
        rows = np.zeros((len(sample), width + 1))
        for row, (kind, values) in zip(rows, sample, strict=True):
            row[0] = place.get(kind, len(known))
            row[1 : 1 + len(values)] = values
        samples.append(rows)
    if len(known) == 1 and width and not any((rows[:, 0] > 0).any() for rows in samples):
        return Encoded([rows[:, 1:] for rows in samples])
    return Encoded(samples, tuple(kind if len(kind) <= LONG else f"{kind[:LONG]}..." for kind in known))


def _plain(drawn: Sequence[Sequence[Any]]) -> list[Outputs] | None:
    """Numbers, or vectors of one length, without a missing one among them."""
    try:
        if any(_beyond_doubles(sample) for sample in drawn):
            return None
        arrays = [np.asarray(sample, dtype=np.float64) for sample in drawn]
    except (TypeError, ValueError, OverflowError):
        return None
    if any(array.ndim > 2 or array.size == 0 or np.isnan(array).any() for array in arrays):
        return None
    matrices = [array.reshape(len(array), -1) for array in arrays]
    return matrices if len({matrix.shape[1] for matrix in matrices}) == 1 else None


def _beyond_doubles(sample: Sequence[Any]) -> bool:
    """Whether a sample holds integers that doubles would round; a list of several kinds is examined one by one."""
    array = np.asarray(sample)
    if array.dtype.kind in "iu":
        return bool(array.size and (array.max() > EXACT or array.min() < -EXACT))
    mixed = array.dtype.kind == "f" and not isinstance(sample, np.ndarray) and (np.abs(array) >= EXACT).any()
    if array.dtype.kind != "O" and not mixed:
        return False
    return any(
        isinstance(x, int | np.integer) and abs(int(x)) > EXACT
        for output in sample
        for x in np.atleast_1d(np.array(output, dtype=object))
    )


def _cut(output: Any) -> tuple[str, list[float]]:
    """The kind and the numbers of one output."""
    if isinstance(output, Failure):
        return f"raised {output.error}", []
    if isinstance(output, bool | np.bool_):
        return repr(bool(output)), []
    if isinstance(output, int | float | np.integer | np.floating):
        try:
            value = float(output)
        except OverflowError:
            return repr(output), []
        if isinstance(output, int | np.integer) and abs(int(output)) > EXACT:
            return "large integer", [value, float(int(output) - int(value))]
        return ("nan", []) if math.isnan(value) else ("number", [value])
    if isinstance(output, Mapping):
        inside = [(f"{key!r}: {kind}", values) for key, (kind, values) in ((k, _cut(v)) for k, v in output.items())]
        return f"{{{', '.join(kind for kind, _ in inside)}}}", [value for _, values in inside for value in values]
    if isinstance(output, np.ndarray | list | tuple):
        inside = [_cut(item) for item in output]
        numbers = [value for _, values in inside for value in values]
        if all(kind == "number" for kind, _ in inside):
            return f"{len(inside)} numbers", numbers
        return f"[{', '.join(kind for kind, _ in inside)}]", numbers
    return repr(output), []
