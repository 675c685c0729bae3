"""How far from the limit? The least error that each definition allows, computed, and every mechanism beside it.

It answers the question that ends the introduction of Haney et al. (2017): which part of the error is fundamental?
Limits are linear programmes and floors (`tables.optimal.limits`); mechanisms are calibrated as for a release. No data
are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.noise.kept import Unsolved
from discreet.pages.study import Study
from discreet.privacy.guarantee import Calibration, is_tight
from discreet.privacy.units import Establishments, Strength, is_weak
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.defaults import default
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.optimal.limits import far_floor, floor, in_proportion, one_count, radial
from discreet.tables.optimal.two_sizes import RatioRows, two_sizes
from discreet.words.errors import DataError, Infeasible, PrivacyError
from discreet.words.progress import Progress, silent
from discreet_papers.limits_page import TITLE, page

Row: TypeAlias = dict[str, Any]
ALPHAS, QUICK_ALPHAS = ("0.05", "0.1", "0.2"), ("0.1",)
EPSILONS, QUICK_EPSILONS = ("0.5", "1", "2", "4"), ("1", "2", "4")
KINDS, QUICK_KINDS = (1, 2, 4, 8), (1, 8)
SIZES = (1, 2, 5, 10, 15, 19, 25, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
GROWTHS, QUICK_GROWTHS, FAR = {"0.5": 2, "1": 3, "2": 5, "4": 5}, 2, 100
"""Sizes up to growths of so many workers are solved on integers, a fifth more than those shown; `FAR` in proportion."""

PARTS, QUICK_PARTS = 16, 8
LARGE = 10_000
DELTA = "0.05"
ONE: tuple[tuple[str, Calibration], ...] = (
    ("two-sizes", "tight"),
    ("ladder", "tight"),
    ("staircase", "tight"),
    ("joint-rings", "tight"),
    ("polynomial", "tight"),
    ("log-laplace", "tight"),
    ("log-laplace", "paper"),
    ("smooth-gamma", "tight"),
    ("smooth-gamma", "paper"),
    ("smooth-laplace", "tight"),
    ("smooth-laplace", "paper"),
)
ONCE: tuple[Calibration, ...] = ("tight",)
TWICE: tuple[Calibration, ...] = (*ONCE, "paper")
SEVERAL: dict[Strength, tuple[str, ...]] = {
    "strong": ("joint-rings", "joint-polynomial", "smooth-gamma", "smooth-laplace"),
    "weak": ("weak-joint", "smooth-gamma", "smooth-laplace", "log-laplace"),
}


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Compute all limits; `quick` has one alpha, three epsilons and coarser grids."""
    if data is not None:
        raise DataError(
            "The study of limits was given data, but it needs none.", remedy="Leave --data out.", about="data"
        )
    alphas, epsilons = (QUICK_ALPHAS, QUICK_EPSILONS) if quick else (ALPHAS, EPSILONS)
    points = [(alpha, epsilon) for alpha in alphas for epsilon in epsilons]
    counts: list[Row] = []
    kinds: list[Row] = []
    pairs: list[Row] = []
    for i, (alpha, epsilon) in enumerate(points):
        progress(f"one count, alpha {alpha}, epsilon {epsilon}", 0.8 * i / len(points))
        growths, parts = (QUICK_GROWTHS, QUICK_PARTS) if quick else (GROWTHS[epsilon], PARTS)
        counts += count_rows(alpha, epsilon, growths=growths, parts=parts)
        pairs += pair_rows(alpha, epsilon, parts=parts)
        progress(f"counts by kind, alpha {alpha}, epsilon {epsilon}", 0.8 * (i + 0.7) / len(points))
        for d in QUICK_KINDS if quick else KINDS:
            kinds += [row for strength in SEVERAL for row in kind_rows(alpha, epsilon, d, strength)]
    progress("drawing figures", 0.9)
    results = {"alphas": alphas, "epsilons": epsilons, "one_count": counts, "two_sizes": pairs, "by_kind": kinds}
    return Study(name="limits", title=TITLE, results=results, page=page(results))


def count_rows(alpha: str, epsilon: str, *, growths: int, parts: int) -> list[Row]:
    """Limits of one count of all workers by size, and each mechanism's mean error over them."""
    share, e = Fraction(alpha), float(epsilon)
    shown = (growths + 1) / float(share)
    most = round(shown * 1.2)
    reach = round(growths * (8 / e + 4))
    near = {free: one_count(share, e, most=most, reach=reach, unbiased=not free) for free in (True, False)}
    far: dict[bool, float] = {}
    with suppress(PrivacyError):  # below an epsilon that grows with alpha no law in proportion has a mean
        far = {free: in_proportion(float(share), e, parts=parts, unbiased=not free) for free in (True, False)}
    sizes, rows = np.array(SIZES, dtype=np.float64), []
    lone = np.column_stack([sizes, np.zeros_like(sizes)])
    errors = {
        label: found.integer_error(sizes, lone if found.by_pairs else sizes)
        for label, found in _mechanisms(alpha, epsilon)
    }
    for i, size in enumerate(SIZES):
        limit: dict[bool, float | None] = dict.fromkeys(near)
        if size < shown:
            limit = {free: float(near[free][size - 1]) for free in near}
        elif size >= FAR and far:
            limit = {free: far[free] * float(share) * size for free in far}
        low = floor(size, share, e) if size <= 10 * shown else far_floor(float(share), e) * float(share) * size
        rows.append(
            {
                "alpha": alpha,
                "epsilon": epsilon,
                "size": size,
                "programme": "integers" if size < shown else "in proportion" if size >= FAR and far else None,
                "floor": low,
                "optimum": limit[True],
                "unbiased optimum": limit[False],
                "errors": {label: float(error[i]) for label, error in errors.items()},
            }
        )
    return rows


def pair_rows(alpha: str, epsilon: str, *, parts: int) -> list[Row]:
    """The error of laws of the two largest establishments by their ratio, and of mechanisms; in units of alpha x."""
    rows = RatioRows(float(Fraction(alpha)), float(epsilon), parts)
    middle = (rows.ratios[:-1] + rows.ratios[1:]) / 2
    pairs = LARGE * np.column_stack([np.ones_like(middle), middle])
    try:
        ladder, ours = (
            calibrate(name, unit=Establishments(alpha), epsilon=epsilon) for name in ("ladder", "two-sizes")
        )
        errors = two_sizes(rows).errors
    except (Infeasible, PrivacyError, Unsolved):
        return []
    one = ladder.integer_error(pairs[:1, 0], pairs[:1, 0]).item() / (rows.alpha * LARGE)
    drawn = ours.integer_error(pairs[:, 0], pairs) / (rows.alpha * LARGE)
    return [
        {
            "alpha": alpha,
            "epsilon": epsilon,
            "second over largest": f"{low:.2f} to {high:.2f}",
            "two sizes": float(error),
            "mechanism two-sizes": own,
            "ladder": one,
            "ratio": float(error) / one,
        }
        for high, low, error, own in zip(rows.ratios[:-1], rows.ratios[1:], errors, drawn.tolist(), strict=True)
    ]


def _mechanisms(alpha: str, epsilon: str) -> Iterator[tuple[str, Mechanism]]:
    unit = Establishments(alpha)
    for name, calibration in ONE:
        try:
            found = calibrate(
                name,
                unit=unit,
                epsilon=epsilon,
                calibration=calibration,
                delta=DELTA if name == "smooth-laplace" else None,
            )
        except (Infeasible, PrivacyError):
            continue
        yield name if is_tight(calibration) else f"{name}, paper", found


def kind_rows(alpha: str, epsilon: str, d: int, strength: Strength) -> list[Row]:
    """The limit of laws of a radius for d counts of the same establishments, and each mechanism over it.

    The numbers are mean errors before rounding in units of alpha x; weakly, of a workforce with as many of every kind.
    """
    unit, e, size = Establishments(alpha, strength), float(epsilon), np.array([10_000.0])
    scale = float(unit.alpha) * size[0]
    try:
        least = radial(d, e, float(unit.alpha), strong=not is_weak(strength)) / (1 + float(unit.alpha))
    except (Infeasible, PrivacyError, Unsolved, ValueError):
        least = None
    if least is not None and is_weak(strength):
        least *= _even(d)
    rows = []
    for name in SEVERAL[strength]:
        joint = name in ("joint-rings", "joint-polynomial", "weak-joint")
        for calibration in ONCE if joint else TWICE:
            error = _error(name, calibration, unit, epsilon, d, size)
            rows.append(
                {
                    "definition": strength,
                    "kinds": d,
                    "alpha": alpha,
                    "epsilon": epsilon,
                    "mechanism": name if is_tight(calibration) else f"{name}, paper",
                    "error": None if error is None else error / scale,
                    "limit": least,
                    "ratio": None if error is None or least is None else error / scale / least,
                    "default": d > 1
                    and default(unit, Fraction(epsilon), cells=d, everyone=is_weak(strength)).name == name,
                }
            )
    return rows


def _even(d: int) -> float:
    """With s_c = S / d, E|z_c| = E r (d + 2) / (3 d) s_c: so much of E r / d, in units of S."""
    return (d + 2) / (3 * d)


def _error(name: str, calibration: Any, unit: Establishments, epsilon: str, d: int, size: Any) -> float | None:
    joint = name in ("joint-rings", "joint-polynomial", "weak-joint")
    part = size / d if is_weak(unit.strength) else size
    try:
        found = calibrate(
            name,
            unit=unit,
            epsilon=Fraction(epsilon) if joint else Fraction(epsilon) / d,
            calibration=calibration,
            delta=(Fraction(DELTA) / d if is_tight(calibration) else Fraction(DELTA))
            if name == "smooth-laplace"
            else None,
            cells=d if joint else 1,
        )
    except (Infeasible, PrivacyError):
        return None
    if name == "weak-joint":
        return float(found.law.mean_abs * found.scale(size)[0]) * _even(d)
    return float(found.expected_error(part, part)[0])
