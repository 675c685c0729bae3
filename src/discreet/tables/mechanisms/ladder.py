"""Integer noise for one count of a workplace cell, close to the least that the definition allows.

Small cells have a table of probabilities that is solved for and then checked inequality by inequality
(`tables.optimal.ladder`). Beyond it noise is in proportion to the largest establishment, by the law of `noise.steps`. Growth is
counted in whole workers: at alpha = 0.1 an establishment of 11 to 19 grows by one. The noise of every size has the mean
zero. The proof is docs/proofs/ladder.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.kept import BITS, Unsolved, kept
from discreet.noise.law import Rounded
from discreet.noise.sampler import add, draw_integers
from discreet.noise.source import Choice, Source
from discreet.noise.steps import Steps
from discreet.privacy.guarantee import Basis, Calibration
from discreet.privacy.losses import Loss, Pure
from discreet.privacy.units import Establishments
from discreet.tables.intervals.quantiles import BLUR, OUTWARD, Tail, line_quantile, not_below_zero, pivot_quantile
from discreet.tables.mechanisms.mechanism import MARGIN, Mechanism, Request
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.tables.mechanisms.smooth import SmoothNoise
from discreet.tables.optimal.ladder import FORMAT, Window, seconds, solve
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from discreet.tables.sizes import NoisySizes

MOST_SOLVED = 8.0
"""Beyond this epsilon the noise of a small cell is almost surely zero, and is left as it is."""

LEAST_SOLVED, LEAST_GROWTHS = 0.3, 3.6
"""Below it, polynomial has less error, or a table takes too long."""

STEPS = ((2.4, 12), (1.9, 9), (0.0, 6))
"""From an epsilon on, the table ends where an establishment may grow by so many workers.

Beyond, the outer law is about as good; at a large epsilon whole numbers count for longer.
"""

LEAST_ALPHA, MOST_ALPHA = 0.02, 1.0
"""Establishments that may grow by less have long tables."""


RARE, GRID = 1 / 50, 20_001
"""The part of what an interval may miss that is for noise of the table beyond its law's; points of a grid of z."""


def tabled(alpha: Fraction, epsilon: float) -> int:
    """From this size of the largest establishment on only the outer law is used."""
    return math.ceil(next(steps for least, steps in STEPS if epsilon >= least) / alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderNoise(SmoothNoise):
    """A table for small cells within an outer law; `law`, `factor` and `floor` are the outer law's.

    Attributes
    ----------
    epsilon : the loss of the table and the outer law: the promise, or less if that is beyond what can be solved for.
    tabled : from this size of the largest establishment on the outer law alone is used.
    """

    epsilon: float
    tabled: int

    name: ClassVar[str] = "ladder"
    proof: ClassVar[str] = "docs/proofs/ladder.md"
    basis: ClassVar[Basis] = "proved"
    strong_by_kind: ClassVar[bool] = False
    stated_constants: ClassVar[tuple[str, ...]] = ("factor", "floor", "epsilon", "tabled")
    laws: ClassVar[tuple[type[Rounded], ...]] = (Steps,)
    certain_alpha: ClassVar[Fraction | None] = Fraction(3, 10)
    plainer: ClassVar[tuple[type[Mechanism], ...]] = (PolynomialNoise,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        least = max(LEAST_SOLVED, LEAST_GROWTHS * ask.b)
        if ask.epsilon > least and LEAST_ALPHA <= float(ask.unit.alpha) <= MOST_ALPHA:
            return ""
        needed = f"epsilon > max({LEAST_SOLVED}, {LEAST_GROWTHS} ln(1 + alpha)) = {least:.4g}"
        return f"{needed} and {LEAST_ALPHA} <= alpha <= {MOST_ALPHA}"

    @classmethod
    def room(cls, ask: Request) -> Fraction:
        return Fraction(1)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        ask.only_tight(cls)
        if ask.unit.substitution:
            raise PrivacyError(
                f"{cls.name} with substitution=True: its noise is for one step, and an exchange of workers is "
                "two. polynomial covers both within one epsilon.",
                remedy="Use that one, or leave substitution out.",
                about="substitution",
            )
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        found = cls._with(ask.unit, ask.loss, min(ask.epsilon, MOST_SOLVED))
        try:
            found.found()  # now or never: nothing was read and nothing is spent
        except Unsolved:
            most = float(cls.certain_alpha or MOST_ALPHA)
            none = f"a table of noise, and none is found; for alpha <= {most:g} there are tables"
            raise ask.refuse(cls, none) from None
        return found

    @classmethod
    def _with(cls, unit: Establishments, loss: Loss, epsilon: float) -> Self:
        # Scales are rounded: their ratio may be a little more than 1 + alpha, and grow a little sooner than the count.
        growth = float(unit.alpha) * (1 + 4 * MARGIN)
        law = Steps(growth, 1 / (1 + float(unit.alpha)), epsilon * (1 - MARGIN))
        own: dict[str, Any] = {"law": law, "factor": 1 + MARGIN, "floor": 1 + growth}
        return cls(
            unit=unit, loss=loss, calibration="tight", epsilon=epsilon, tabled=tabled(unit.alpha, epsilon), **own
        )

    @classmethod
    def stated(cls, noise: Mapping[str, Any], *, unit: Establishments, loss: Loss, calibration: Calibration) -> Self:
        """The constants follow from alpha and epsilon: others have no table, and none is looked for."""
        # A class with slots is made twice, so that super() without arguments would ask the first.
        found = super(LadderNoise, cls).stated(noise, unit=unit, loss=loss, calibration=calibration)
        if found.constants() != cls._with(unit, loss, found.epsilon).constants():
            raise Unsolved
        return found

    @property
    def sizes_floor(self) -> float:
        """Noisy sizes are those of max(x, 1/alpha)."""
        return 1.0

    @property
    def tail(self) -> Tail:
        """The law whose tail no noise beyond the table exceeds."""
        return self.law

    def found(self) -> None:
        """Find all that is solved for, or raise `Unsolved`."""
        self.window  # noqa: B018

    @property
    def window(self) -> Window:
        """The table, computed once and kept; it is checked whenever it is read."""
        return _window(self.promising(Pure(self.epsilon)))

    def probability(self, k: Integers, largest: Integers) -> Matrix:
        """P(noise = k) of the outer law, one row for each size of the largest establishment."""
        scale = self.scale(np.asarray(largest, dtype=np.float64))
        return np.asarray(self.law.probability(np.asarray(k)[None, :], scale[:, None]))

    def integer_probability(self, j: Vector, largest: float) -> Vector:
        """P(noise = j) as it is drawn: the table's inside its window, the outer law's elsewhere."""
        return self.chances(np.asarray(j)[..., None], np.array([largest]))[..., 0]

    def chances(self, j: Vector | Integers, largest: Vector) -> Vector:
        """The same for sizes along the last axis of j."""
        k, x = np.asarray(j).astype(np.int64), np.maximum(np.asarray(largest).astype(np.int64), 1)
        found = np.asarray(self.law.probability(k, self.scale(x.astype(np.float64))))
        small = x < self.tabled
        if not small.any():
            return found
        row = np.where(small, x, 1) - 1
        columns = np.clip(k + self.window.reach, 0, self.window.share.shape[1] - 1)
        inside = self.window.share[row, columns] * _table(self).room[row]
        return np.asarray(np.where(small & self.window.covers(k, x), inside, found))

    def log_likelihood(self, published: Integers, count: Integers, largest: Vector) -> Matrix:
        away = published[:, :, None] - np.rint(count).T
        return np.asarray(np.log(self.chances(away, largest)).sum(axis=1))

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return add(count, self.noise(largest, source))

    def noise(self, largest: Integers, source: Source) -> Integers:
        """The outer law's noise; what falls inside the window is drawn again from the table."""
        noise = draw_integers(self.law, scale=self.scale(largest.astype(np.float64)), source=source)
        return self.within(noise, largest, source)

    def within(self, noise: Integers, largest: Integers, source: Source) -> Integers:
        """The same noise, drawn again from the table where it falls inside the window."""
        x = np.maximum(largest, 1)
        inside = self.window.covers(noise, x)
        noise[inside] = _table(self).draw(x[inside], source)
        return noise

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        return self._by_size(largest, _table(self).error, self.law.mean)

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        return self.integer_error(count, largest)

    @property
    def square_bound(self) -> tuple[float, float] | None:
        """That of the outer law, and of every row of the table."""
        outer = super(LadderNoise, self).square_bound
        if outer is None:
            return None
        x = np.arange(1.0, self.tabled)
        return outer[0], float(np.sqrt(np.maximum(_table(self).square - (outer[0] * x) ** 2, outer[1] ** 2).max()))

    def _by_size(self, largest: Vector, table: Vector, outer: Any) -> Vector:
        largest = np.asarray(largest, dtype=np.float64)
        x = np.maximum(largest, 1.0)
        place = np.nan_to_num(np.minimum(x, self.tabled - 1), nan=1.0).astype(np.int64) - 1
        scale, back = np.unique(self.scale(np.maximum(x, self.tabled)), return_inverse=True)
        return np.asarray(np.where(x < self.tabled, table[place], outer(scale)[back].reshape(x.shape)))

    def reach(self, most: Vector, *, level: float) -> Vector:
        """h with P(|noise| <= h) >= level for a largest establishment of this size or any smaller one."""
        table, q = _reach(self, level), line_quantile(self.tail, level)
        return self._by_size(np.floor(most), table, lambda scale: np.maximum(scale * q + 0.5, table[-1]))

    def _bounded_ends(self, counts: Vector, *, level: float) -> tuple[Vector, Vector]:
        """All n with |m - n| <= reach(n): the largest establishment has at most n workers."""
        n = np.arange(self.tabled, dtype=np.float64)
        reach = self.reach(n, level=level)
        q = line_quantile(self.tail, level) * self.factor
        slope = q * float(self.unit.alpha)
        last = n[-1] + reach[-1]
        lower = np.where(
            counts <= last,
            np.searchsorted(np.maximum.accumulate(n + reach), counts),
            np.maximum(np.minimum((counts - 0.5) / (1 + slope), counts - reach[-1]), self.tabled - 1),
        )
        within = np.minimum.accumulate((n - reach)[::-1])[::-1]  # the least n - reach from here on
        upper = np.searchsorted(within, counts, side="right") - 1.0
        beyond = (counts + 0.5) / (1 - slope) if slope < 1 else np.full_like(counts, np.inf)
        beyond = np.maximum(beyond, counts + reach[-1])
        return not_below_zero(lower, np.where(beyond >= self.tabled, np.maximum(beyond, upper), upper))

    def half_width(
        self, published: Integers | Vector, sizes: NoisySizes, *, level: float, beside: float | None = None
    ) -> Vector:
        """As by the outer law, plus the reach of the table's noise; a part of the probability to fail is for tails."""
        rare = RARE * (1 - level)
        within = np.inf if beside is None else line_quantile(self.tail, beside)
        size = float(self.unit.alpha) * (np.asarray(published, dtype=np.float64) + 0.5)
        reach = size * pivot_quantile(self.tail, sizes.exponent, level + rare, within)
        return np.asarray(self.factor * reach * OUTWARD + _beyond(self, rare))

    def scaled(self, share: float) -> Self:
        return self._with(self.unit, self.loss, self.epsilon / share)


class _Drawer:
    """The results of a window: the part of each row inside it, mean errors, and draws."""

    def __init__(self, mechanism: LadderNoise) -> None:
        self.window = window = mechanism.window
        x = np.arange(1, window.sizes)
        k = np.arange(-window.reach, window.reach + 1)
        outer, inside = mechanism.probability(k, x), window.share > 0
        self.room = np.where(inside, outer, 0).sum(axis=1)
        # E|noise| of the outer law less what the window takes from it, and what it puts in its place.
        taken = (np.where(inside, outer, 0) * np.abs(k)).sum(axis=1)
        left = np.maximum(mechanism.law.mean(mechanism.scale(x.astype(np.float64))) - taken, 0)
        self.error = left + self.room * (window.share * np.abs(k)).sum(axis=1)
        # The outer law has at most its whole mean square outside the window.
        widest = (mechanism.scale(x.astype(np.float64)) * np.sqrt(mechanism.law.variance) + 0.5) ** 2
        outside = np.maximum(widest - (np.where(inside, outer, 0) * k**2).sum(axis=1), 0)
        self.square = outside + self.room * (window.share * k**2.0).sum(axis=1)
        self.choice = Choice(window.weights, bits=BITS)

    def draw(self, x: Integers, source: Source) -> Integers:
        """One draw for each size."""
        return self.choice.draw(x - 1, source) - self.window.reach


@lru_cache(maxsize=32)
def _table(mechanism: LadderNoise) -> _Drawer:
    return _Drawer(mechanism)


@lru_cache(maxsize=64)
def _beyond(mechanism: LadderNoise, rare: float) -> float:
    """The least a >= 1/2 with P(|noise| >= m) <= max(P(S |Z| + a >= m), rare) for every x of the table and every m.

    S = max(alpha x, 1), which is what noisy sizes tell of.
    """
    window, table, m = mechanism.window, _table(mechanism), np.arange(1, mechanism.window.reach + 1)
    inside = table.room[:, None] * (window.share[:, window.reach + 1 :] + window.share[:, window.reach - 1 :: -1])
    # What the outer law has outside the window may lie anywhere beyond it.
    tail = np.cumsum(inside[:, ::-1], axis=1)[:, ::-1] + (1 - table.room + BLUR)[:, None]
    z = np.linspace(0, 4 * cast(Steps, mechanism.law).cells.last, GRID)
    beyond = mechanism.tail.beyond(z)
    place = np.searchsorted(-beyond, -tail, side="right") - 1  # the largest z of the grid with P(|Z| > z) >= tail
    scale = np.maximum(float(mechanism.unit.alpha) * np.arange(1.0, window.sizes), 1.0)[:, None]
    further = m - scale * z[np.maximum(place, 0)]
    return float(further[tail > rare].max(initial=0.5)) * OUTWARD


@lru_cache(maxsize=32)
def _window(outer: LadderNoise) -> Window:
    alpha, epsilon, sizes = outer.unit.alpha, outer.epsilon, outer.tabled
    rows = kept(
        FORMAT,
        (alpha, epsilon, sizes, outer.law, outer.factor, outer.floor),
        lambda: solve(alpha, epsilon, outer, sizes=sizes),
        lambda rows: Window(alpha, epsilon, rows).check(outer, sizes=sizes),
        seconds=seconds(alpha, epsilon, sizes=sizes),
    )
    return Window(alpha, epsilon, rows)


@lru_cache(maxsize=64)
def _reach(mechanism: LadderNoise, level: float) -> Vector:
    """For each size of the table, the reach of noise with this probability; never less than for a smaller size."""
    window, table = mechanism.window, _table(mechanism)
    k = np.arange(window.reach + 1)
    inside = table.room[:, None] * (window.share[:, window.reach :] + window.share[:, window.reach :: -1])
    inside[:, 0] /= 2
    # What the outer law has outside the window counts as beyond it.
    beyond = 1 - np.cumsum(inside, axis=1) * (1 - 2.0**-40)
    enough = beyond <= 1 - level
    outer = mechanism.scale(np.arange(1.0, window.sizes)) * line_quantile(mechanism.law, level) + 0.5
    found = np.where(enough.any(axis=1), k[np.argmax(enough, axis=1)], np.maximum(outer, window.reach))
    return np.asarray(np.maximum.accumulate(found.astype(np.float64)))
