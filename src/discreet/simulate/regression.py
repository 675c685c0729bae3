"""The straight line of the posterior thesis: y = 1 + 2 x + normal error.

Amitai (2018, sections 3 and 4) simulates 100,000 rows with error variance 1, and with error variance 100 for the
quantiles. The law of x is not stated there; here it is standard normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.simulate import draws, stream
from discreet.words.errors import DataError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

BLOCK = 1 << 18
"""Rows in one batch."""


@dataclass(frozen=True, slots=True)
class RegressionShape:
    """Rows, intercept and slope of the thesis."""

    rows: int = 100_000
    intercept: float = 1.0
    slope: float = 2.0


SHAPE = RegressionShape()


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    error_variance: float = 1.0,
    progress: Progress = silent,
    shape: RegressionShape = SHAPE,
) -> dict[str, Any]:
    """Write `regression.parquet`: x, y. `error_variance` is 1 or 100 in the thesis."""
    return stream.write(
        folder,
        batches(seed=seed, share=share, error_variance=error_variance, shape=shape),
        about={"data": "regression", "seed": seed, "share": share, "error_variance": error_variance},
        total=draws.scaled(shape.rows, share),
        progress=progress,
    )


def batches(
    *, seed: int = 0, share: float = 1.0, error_variance: float = 1.0, shape: RegressionShape = SHAPE
) -> stream.Batches:
    """Yield ("regression", batch)."""
    import pyarrow as pa

    draws.check(seed, share)
    if not 0 < error_variance < np.inf:
        raise DataError(
            (Argument("error_variance", error_variance), " is not a positive number."),
            "The thesis uses 1 and 100.",
            "Use one of these.",
            about="error_variance",
        )
    rows = draws.scaled(shape.rows, share)

    def block(start: int) -> pa.RecordBatch:
        x, error = draws.generator(seed, start).standard_normal((2, min(BLOCK, rows - start)))
        return pa.record_batch({"x": x, "y": shape.intercept + shape.slope * x + np.sqrt(error_variance) * error})

    return (("regression", block(start)) for start in range(0, rows, BLOCK))
