"""How far our laws of noise are from the least error that any law can have, computed by linear programmes.

One count: `two-sizes` and `ladder` beside the best integer noise with mean zero, by the size of a lone establishment.
Eight counts together: `joint-rings` and `weak-joint` beside the best law that follows a radius, at a large one, and
`weak-unions`, whose norm is the same there, drawn. Errors are drawn, too, and must be those of the closed form to five
standard errors. `weak-unions` is for small establishments of many kinds: its error over that of `weak-joint` is there.
No other program has these laws; the programmes are those of `discreet study limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from bench.comparison import Comparison
from discreet.noise.source import SystemSource
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet_papers.limits import GROWTHS, count_rows, kind_rows

ALPHA, EPSILONS, KINDS = "0.1", ("1", "2", "4"), 8
PARTS = 8  # cells of the programmes in proportion
LARGE = 10_000
FIRMS = (60, 3, (0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.05, 0.05))
"""Workers of an establishment, establishments of a cell, and shares of the kinds."""


def compare(*, quick: bool) -> Comparison:
    """Every law over its limit."""
    draws, epsilons = (20_000, EPSILONS[-1:]) if quick else (200_000, EPSILONS)
    limits, broken = list[dict[str, Any]](), list[str]()
    for epsilon in epsilons:
        for row in single(epsilon, draws, growths=1 if quick else min(3, GROWTHS[epsilon])) + several(epsilon, draws):
            limits.append(row)
            if abs(row["off"]) > 5:
                broken.append(f"{row['law']} at epsilon {epsilon} draws {row['off']:.1f} standard errors from its law")
            print(f"   {row}", flush=True)
    return Comparison(facts={"limits": limits, "unions over joint": small(draws)}, broken=tuple(broken))


def single(epsilon: str, draws: int, *, growths: int) -> list[dict[str, Any]]:
    """Laws of one count over the programme of all laws with mean zero, at the sizes that it has."""
    rows = [row for row in count_rows(ALPHA, epsilon, growths=growths, parts=PARTS) if row["unbiased optimum"]]
    sizes, found = np.array([row["size"] for row in rows]), []
    for name in ("two-sizes", "ladder"):
        law: Any = calibrate(name, unit=Establishments(ALPHA), epsilon=epsilon)
        off = []
        for row in rows:
            every = np.full(draws, row["size"])
            noise = np.abs(
                law.noise(np.stack([every, 0 * every], axis=1) if law.by_pairs else every, SystemSource())
            ).astype(float)
            off.append(errors_off(noise, row["errors"][name]))
        ratios = [row["errors"][name] / row["unbiased optimum"] for row in rows]
        found.append(limit(name, epsilon, 1, f"{sizes.min():,} to {sizes.max():,}", ratios, off))
    return found


def several(epsilon: str, draws: int) -> list[dict[str, Any]]:
    """Laws of eight counts together over the best one that follows a radius, at a large establishment."""
    found = []
    for strength, name in (("strong", "joint-rings"), ("weak", "weak-joint"), ("weak", "weak-unions")):
        own = "weak-joint" if name == "weak-unions" else name
        [row] = [each for each in kind_rows(ALPHA, epsilon, KINDS, strength) if each["mechanism"] == own]  # type: ignore[arg-type]
        if row["ratio"] is None:
            continue
        law: Any = calibrate(name, unit=Establishments(ALPHA, strength), epsilon=epsilon, cells=KINDS)  # type: ignore[arg-type]
        part = draws // (10 if name == "weak-unions" else 1) // KINDS
        noise = np.abs(law.draw(np.zeros((part, KINDS), dtype=np.int64), largest(name, part), SystemSource()))
        means = noise.astype(float).mean(axis=1)
        known = row["error"] * float(ALPHA) * LARGE
        drawn = means.mean() / (row["limit"] * float(ALPHA) * LARGE)
        ratio = drawn if name == "weak-unions" else row["ratio"]
        found.append(limit(name, epsilon, KINDS, f"{LARGE:,}", [ratio], [errors_off(means, known)]))
    return found


def largest(name: str, rows: int) -> Any:
    """What a mechanism of several counts is told of a large establishment with as many workers of every kind."""
    each = LARGE // KINDS
    if name == "joint-rings":
        return np.full(rows, LARGE)
    if name == "weak-joint":
        return np.tile([each] * KINDS + [LARGE], (rows, 1))
    return np.tile((sets() @ np.ones(KINDS, dtype=np.int64)) * each, (rows, 1))


def small(draws: int) -> dict[str, float]:
    """The error of `weak-unions` over that of `weak-joint` where cells have few small establishments of many kinds."""
    workers, firms, shares = FIRMS
    sizes = np.random.default_rng(1).multinomial(workers, shares, (draws // 10 // KINDS, firms))
    zeros = np.zeros((len(sizes), KINDS), dtype=np.int64)
    unions = np.stack([(sizes @ some).max(axis=1) for some in sets()], axis=1)
    kinds = np.concatenate([sizes.max(axis=1), sizes.sum(axis=2).max(axis=1)[:, None]], axis=1)
    found = {}
    for epsilon in EPSILONS:
        errors = {}
        for name, known in (("weak-unions", unions), ("weak-joint", kinds)):
            law: Any = calibrate(name, unit=Establishments(ALPHA, "weak"), epsilon=epsilon, cells=KINDS)
            errors[name] = float(np.abs(law.draw(zeros, known, SystemSource())).mean())
        found[epsilon] = errors["weak-unions"] / errors["weak-joint"]
    return found


def sets() -> Any:
    """Every set of kinds, as rows of zeros and ones."""
    return np.arange(2**KINDS)[:, None] >> np.arange(KINDS) & 1


def errors_off(errors: Any, known: float) -> float:
    """How many standard errors the mean of drawn errors lies from the law's."""
    return float((errors.mean() - known) / (errors.std() / len(errors) ** 0.5))


def limit(
    law: str, epsilon: str, counts: int, sizes: str, ratios: Sequence[float], off: Sequence[float]
) -> dict[str, Any]:
    return {
        "law": law,
        "epsilon": epsilon,
        "counts": counts,
        "sizes": sizes,
        "median": median(ratios),
        "worst": max(ratios),
        "off": max(off, key=abs),
    }
