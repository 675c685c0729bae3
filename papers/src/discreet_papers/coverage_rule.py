"""The rule of the study of intervals: when one is short, wide or off, and when that is a fault. No data are here.

An interval for 95 % is *short* if it holds in fewer than 93.5 % of trials and two standard errors do not explain it. It
is *wide* if it holds in more than 96.5 % in the same sense. An estimate is *off* if its mean error is beyond three
standard errors, and beyond what is said to be allowed for. Short or off is a fault unless it is said: before paying, or
by a flag in nine of ten releases. Wide is a fault unless the text beside the interval says that it holds at least so
often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Vector

LEVEL, NEAR, OFF, MOSTLY = 0.95, 0.015, 3.0, 0.9
Row = dict[str, Any]


def row(
    interval: str,
    data: str,
    epsilon: float | None,
    held: float | None,
    error: float,
    *,
    before: str = "",
    told: float = 0.0,
    bias: float | None = None,
    times: float | None = None,
    at_least: str = "",
    level: float = LEVEL,
) -> Row:
    """One line of the table.

    `bias` is in standard errors, beyond what was said to be allowed for; `times` the half-width over what errors exceed
    in 1 - `level` of trials; `at_least` why the interval holds at least so often, as the text beside it says.
    """
    silent = not before and told < MOSTLY
    short = held is not None and held < level - NEAR - 2 * error
    wide = held is not None and held > level + NEAR + 2 * error
    off = bias is not None and abs(bias) > OFF
    return {
        "interval": interval,
        "data": data,
        "epsilon": epsilon,
        "level": level,
        "held": held,
        "error": error,
        "times": times,
        "bias": bias,
        "before": before,
        "told": told,
        "at least": at_least,
        "short": short,
        "wide": wide,
        "off": off,
        "fault": (silent and (short or off)) or (wide and silent and not at_least),
    }


def doubtful(each: Row) -> bool:
    """Whether the first trials leave open that a cell is a fault; further trials, without these, then decide."""
    silent = not each["before"] and each["told"] < MOSTLY
    held, error = each["held"], each["error"]
    short = held is not None and held < each["level"] - NEAR - error
    wide = held is not None and held > each["level"] + NEAR and not each["at least"]
    return silent and (short or wide or (each["bias"] is not None and abs(each["bias"]) > OFF - 1))


def in_errors(value: float, error: float, trials: int) -> float:
    """A mean over so many trials in its standard errors; what few trials make large by chance counts less."""
    from scipy.special import ndtri, stdtr

    if error <= 0:
        return 0.0
    found = value / error
    return float(np.sign(found) * -ndtri(max(stdtr(trials - 1, -abs(found)), 1e-300)))


def binomial_error(trials: int, level: float = LEVEL) -> float:
    """The standard error of a share of trials that is `level`."""
    return float(np.sqrt(level * (1 - level) / trials))


def times_of(half: Vector, off: Vector, level: float = LEVEL) -> float | None:
    """The mean half-width over what errors exceed in 1 - `level` of trials; None where either says nothing."""
    point = float(np.quantile(np.abs(off), level))
    return float(np.mean(half)) / point if point > 0 and np.isfinite(half).all() else None


def label(each: Row) -> str:
    """A fault in words."""
    at = "" if each["epsilon"] is None else f", epsilon {each['epsilon']:g}"
    held = (
        ""
        if not (each["short"] or each["wide"])
        else f" holds {100 * each['held']:.1f} % ({100 * each['error']:.1f} %)"
    )
    off = "" if not each["off"] else f" is off by {each['bias']:.1f} standard errors"
    return f"{each['interval']}, {each['data']}{at}:{held}{' and' if held and off else ''}{off}"


def summary(rows: Sequence[Row]) -> list[Row]:
    """One line for each interval: the number of kinds of data and epsilons, the least coverage, and the warnings."""
    found = []
    for name in dict.fromkeys(each["interval"] for each in rows):
        own = [each for each in rows if each["interval"] == name]
        quiet = [each for each in own if not each["before"] and each["told"] < MOSTLY and each["held"] is not None]
        said = [each for each in own if (each["before"] or each["told"] >= MOSTLY) and each["held"] is not None]
        times = [each["times"] for each in own if each["times"] is not None]
        found.append(
            {
                "interval": name,
                "cells": len(own),
                "least where nothing is said": min((each["held"] for each in quiet), default=None),
                "of": len(quiet),
                "least where it is said": min((each["held"] for each in said), default=None),
                "said": len(said),
                "wide": sum(each["wide"] for each in own),
                "half-width over the error": float(np.median(times)) if times else None,
                "at least": next((each["at least"] for each in own if each["at least"]), ""),
                "faults": sum(each["fault"] for each in own),
            }
        )
    return found
