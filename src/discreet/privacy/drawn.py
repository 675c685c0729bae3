"""Whether drawn integers have the probabilities that a mechanism states: a test with a fixed rate of false alarms.

Many integers are drawn for cells of several sizes, of one establishment and of several. The first of them choose
events, such as "at most 7"; the others are counted. So is how often two cells meet an event together, because their
noise is independent, and how often noise that is drawn together has one sign. That n independent draws meet an event of
probability p with the frequency f, or one farther from p on that side, has a chance of at most exp(-n KL(f, p)),
whatever p and n are (Chernoff). Over all events the chance that draws with the stated probabilities are refused is at
most `FALSE_ALARM`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.privacy.loss_verdict import Draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = 1e-9
FIRST, DRAWS = 1000, 6000
"""Draws that choose events, and draws that are counted, for each size; a scale that is 10 % off is seen."""

SIZES = (0, 3, 1000)
"""Of the largest establishment, in units of 1/alpha; the least is one of one worker."""

OTHERS, MOST_OTHERS = (0, 1, 20), 2**52
"""Workers of other establishments in the cells that are drawn for, in sizes of the largest, and the most of them."""

LEVELS, VALUES, MOST = 40, 8, 200_000
"""Thresholds and single values that are events, and the farthest integer that is added up."""

ROUNDING = 1e-9

FAR, MOST_DRAWN = 2**62, 2**61
"""The sampler cuts what is published at the second, so nothing is as far as the first."""


class Stated(NamedTuple):
    """Noise of one coordinate from `low` to `high`, or at least that far from zero, and how likely that is stated."""

    low: int
    high: int
    chance: float
    coordinate: int = 0
    far: bool = False

    def met(self, noise: Integers) -> Mask:
        """By which draws."""
        value = noise[:, self.coordinate]
        value = np.abs(value) if self.far else value
        return np.asarray((value >= self.low) & (value <= self.high))


class Seen(NamedTuple):
    """Draws that could meet an event, whether they did, and how likely that is stated."""

    met: Mask
    chance: float


class _System:
    """Words of the operating system, for draws that nobody publishes."""

    private = True

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def compared(mechanism: Any) -> Draws:
    """Draw and compare; "not compared" where the mechanism draws nothing or states no probabilities."""
    try:
        return "as stated" if all(_agrees(mechanism, *sizes) for sizes in _sizes(mechanism)) else "not as stated"
    except Exception:  # whatever code from outside does, nothing is known of its draws then
        return "not compared"


def _sizes(mechanism: Any) -> Iterator[tuple[int, int]]:
    """The two largest establishments of cells; the second is another one only where noise follows it."""
    whole = math.ceil(1 / float(mechanism.unit.alpha))
    for size in (max(1, times * whole) * mechanism.step for times in SIZES):
        yield size, size
        if getattr(mechanism, "by_pairs", False):
            yield size, 0


def _agrees(mechanism: Any, size: int, second: int) -> bool:
    noise = _drawn(mechanism, size, second)
    first, counted = noise[:FIRST], noise[FIRST:]
    events = _events(mechanism, first, size, second)
    seen = [Seen(event.met(counted), event.chance) for event in events]
    seen += _of_two_cells(min(events, key=lambda event: abs(event.chance - 1 / 2)), counted)
    if noise.shape[1] > 1 and not (getattr(mechanism, "by_kinds", False) or getattr(mechanism, "by_unions", False)):
        seen.append(_signs(counted))
    limit = math.log(2 * len(seen) * 2 * len(SIZES) / FALSE_ALARM)
    met = np.array([float(each.met.mean()) if each.met.size else each.chance for each in seen])
    many = np.array([each.met.size for each in seen])
    return bool((many * _divergence(met, np.array([each.chance for each in seen])) <= limit).all())


def _of_two_cells(event: Stated, noise: Integers) -> list[Seen]:
    """That two cells meet it: those next to each other, and those far apart."""
    met, half = event.met(noise), len(noise) // 2
    return [Seen(both, event.chance**2) for both in (met[::2] & met[1::2], met[:half] & met[half:])]


def _signs(noise: Integers) -> Seen:
    """That the first two coordinates have one sign: the density depends on their sizes alone."""
    signs = np.sign(noise[:, 0]) * np.sign(noise[:, 1])
    return Seen(signs[signs != 0] > 0, 1 / 2)


def _drawn(mechanism: Any, size: int, second: int) -> Integers:
    """Published less true counts, where every kind of workers has an establishment of this size."""
    n, d = FIRST + DRAWS, mechanism.law.dimension
    shape: tuple[int, ...] = (n, d)
    if getattr(mechanism, "by_unions", False):
        shape = (n, 2**d)
    elif getattr(mechanism, "by_kinds", False):
        shape = (n, d + 1)
    elif d > 1:
        shape = (n,)
    largest, count = np.full(shape, size, dtype=np.int64), np.full((n, d), size, dtype=np.int64)
    others = np.resize([min(times * size, MOST_OTHERS) for times in OTHERS], n)
    if mechanism.additive:
        count += others[:, None]
    else:  # what multiplies a count follows that alone
        largest[others > 0] = max(1, size // 20)
    if getattr(mechanism, "by_pairs", False):
        largest = np.stack([largest, np.full(shape, second, dtype=np.int64)], axis=-1)
    drawn = mechanism.draw(count.copy(), largest, _System())
    return np.asarray(drawn, dtype=np.int64).reshape(n, d) - count


def _events(mechanism: Any, first: Integers, size: int, second: int) -> list[Stated]:
    d = mechanism.law.dimension
    if d > 1:
        scale = float(mechanism.scale(np.array([float(size)]))[0])
        most = size + min(max(OTHERS) * size, MOST_OTHERS)
        return [event for c in range(d) for event in _of_coordinate(mechanism.law, first[:, c], scale, c, most)]
    if not mechanism.additive:
        return _above(mechanism, first[:, 0], size)
    reach = int(min(2 * np.abs(first).max() + 50, MOST))
    j = np.arange(-reach, reach + 1).astype(np.float64)
    if hasattr(mechanism, "integer_probability"):
        pair = (float(second),) if getattr(mechanism, "by_pairs", False) else ()
        stated = mechanism.integer_probability(j, float(size), *pair)
    else:
        stated = mechanism.law.probability(j, float(mechanism.scale(np.array([float(size)]))[0]))
    return _on_line(np.asarray(stated, dtype=np.float64), first[:, 0], reach)


def _on_line(stated: Vector, first: Integers, reach: int) -> list[Stated]:
    """Thresholds and frequent values, of integers from -reach to reach; the last event is all of these."""
    below = np.cumsum(stated)
    if not (stated >= 0).all() or not below[-1] <= 1 + ROUNDING:
        return [Stated(-FAR, FAR, 0.0)]  # these are no probabilities
    values, often = np.unique(np.append(first, 0), return_counts=True)
    values = values[np.argsort(-often)[:VALUES]]
    tops = np.append(np.clip(_levels(first), -reach, reach), reach)
    return [
        *(Stated(value, value, float(stated[value + reach])) for value in values.tolist() if abs(value) <= reach),
        *(Stated(-reach, top, float(below[top + reach])) for top in tops.tolist()),
    ]


def _of_coordinate(law: Any, first: Integers, scale: float, c: int, size: int) -> list[Stated]:
    """One coordinate of noise that is drawn together: how far it is, and that it is above zero."""
    far = np.maximum(_levels(np.abs(first)), 1)
    far = far[far <= MOST_DRAWN - size]
    beyond = law.beyond((np.append(far, 1)[None, :] - 0.5) / scale)[0].tolist()
    events = [Stated(k, FAR, chance, c, far=True) for k, chance in zip(far.tolist(), beyond[:-1], strict=True)]
    return [*events, Stated(1, FAR, beyond[-1] / 2, c)]


def _above(mechanism: Any, first: Integers, size: int) -> list[Stated]:
    """Of noise that multiplies, by what it states of the number that is rounded."""
    tops = _levels(first)
    tops = tops[tops < MOST_DRAWN - size]
    chances = mechanism.exceeds(np.full(tops.size, float(size)), size + tops + 0.5).tolist()
    return [Stated(top + 1, FAR, chance) for top, chance in zip(tops.tolist(), chances, strict=True)]


def _levels(first: Integers) -> Integers:
    return np.unique(np.quantile(first, np.linspace(0, 1, LEVELS)).astype(np.int64))


def _divergence(met: Vector, stated: Vector) -> Vector:
    """KL(met, stated) of events; infinite where one that is stated never or always is not, and if nothing is stated."""
    p = np.where(stated > 1 - ROUNDING, 1.0, stated)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(met > 0, met * np.log(met / p), 0.0)
        found = found + np.where(met < 1, (1 - met) * np.log((1 - met) / (1 - p)), 0.0)
    return np.where(np.isnan(found), np.inf, found)
