"""Columns of Python objects, in lists and in pandas: the type of their entries."""

from __future__ import annotations

import contextlib
import math
import sys
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np


def typed(values: Any) -> Any:
    """A column of Python objects with the one type that Arrow finds for all of them; unchanged if there is none."""
    import pandas as pd
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowException, OverflowError):  # of whole numbers that no type of Arrow's holds
        found = pa.array(values, from_pandas=True)
        return pd.Series(found, index=values.index, dtype=pd.ArrowDtype(found.type))
    return values


def as_numbers(values: Any, reading: str) -> Any:
    """Entries without a type of their own as doubles, nan if one is not a number; unchanged if none is a number.

    Arrow would find one type for all of them, or none, and one row would decide. Responses, of which one must not even
    decide whether any is a number, are always doubles. True and false are 1 and 0 as outcomes, and no numbers
    elsewhere.
    """
    if not isinstance(values, list | tuple) and str(getattr(values, "dtype", "")) != "object":
        return values
    entries = [float(each) if reading == "outcome" and isinstance(each, bool | np.bool_) else each for each in values]
    if reading == "number" and any(each is not None for each in entries) and not any(map(_is_number, entries)):
        return values
    return np.array([_double(entry) for entry in entries], dtype=np.float64)


def _double(entry: Any) -> float:
    try:
        return float(entry) if _is_number(entry) else math.nan
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if entry > 0 else -1)
    except ValueError:  # a decimal that signals
        return math.nan


def _is_number(entry: Any) -> bool:
    return isinstance(entry, Real | Decimal) and not isinstance(entry, bool)
