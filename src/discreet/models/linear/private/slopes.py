"""One slope for all groups: what a model without random slopes supposes of columns that vary within groups.

If slopes differ between groups by a deviation D, an estimate is their mean, weighted by rows, and its variance is
larger by D^2 times the sum of squared sizes over the squared number of rows. The released sums do not show it: what
slopes add to single rows is in the residual variance. So the D from which an interval is short is told instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.gram import grouped_products
from discreet.models.linear.private.notes import SAMPLED, Flag
from discreet.models.linear.private.notes import SHAPES_MOVED as MOVED
from discreet.models.linear.private.public import INTERCEPT, PublicDesign
from discreet.words.caveats import ONE_LAG, ONE_SLOPE, CaveatNote

WORD = "one slope"
LISTED = 3  # names of columns that a sentence has
WITHIN = 1e-9  # of a column's sum of squares: what varies within groups of a column that is constant in them
ON_A_LINK = 9.0  # the largest variance that slopes add on the scale of a link


class OneSlope(NamedTuple):
    """A fixed effect with one slope for all groups of `group`, and the deviation of slopes that is not allowed for."""

    name: str
    group: str
    spread: float


def one_slopes(public: PublicDesign, errors: Vector, most: float) -> list[OneSlope]:
    """Fixed effects whose intervals are short if slopes differ by `spread` between groups, or more.

    `errors` are their standard errors; left out are those whose slopes would have to add more than a variance of `most`
    to a row. Of several groupings the one counts whose slopes matter first.
    """
    cells, design = public.cells, public.design
    fixed, kept = design.layout.fixed, public.kept
    terms = [piece.term for piece in fixed for _ in range(piece.width(design.levels))]
    squares = np.diag(public.XX)
    found: dict[str, OneSlope] = {}
    for random in design.random:
        code, size = random.grouping.codes(cells.codes), len(random.grouping)
        sums = grouped_products(cells, code, size, INTERCEPT, (*INTERCEPT, *fixed), design.levels)[:, 0]
        n, Sx = sums[:, 0], sums[:, 1:][:, kept]
        within = squares - np.einsum("gi,gi->i", Sx / n[:, None], Sx)
        spread = errors * np.sqrt(SAMPLED * n.sum() ** 2 / (n @ n))
        for j in np.flatnonzero((within > WITHIN * squares) & (spread**2 * within < most * n.sum())).tolist():
            name = public.names[j]
            if terms[kept[j]] and (name not in found or spread[j] < found[name].spread):
                found[name] = OneSlope(name, random.term.name, float(spread[j]))
    own = {term for random in design.random for term in random.term.terms}
    return [found[public.names[j]] for j in range(len(kept)) if public.names[j] in found and terms[kept[j]] not in own]


def slope_note(slopes: Sequence[OneSlope]) -> CaveatNote:
    """The sentence about slopes of one grouping, with the deviations that matter."""
    names = ", ".join(f"{slope.name} ({slope.spread:.2g})" for slope in slopes[:LISTED])
    more = f" and {len(slopes) - LISTED} more" if len(slopes) > LISTED else ""
    group = slopes[0].group
    return CaveatNote(
        f"{ONE_SLOPE} for all groups of {group}, of {names}{more}. Where slopes differ between groups by the standard "
        "deviation in parentheses or more, do not trust intervals: they hold the mean slope in less than 93.5 %. The "
        f"released sums cannot show it. A term such as (1 + x | {group}) allows for it",
        ONE_SLOPE,
    )


def slope_flags(public: PublicDesign, errors: Vector, most: float) -> list[Flag]:
    """Flags of a release."""
    found = one_slopes(public, errors, most)
    notes = {group: slope_note(own) for group, own in _by_group(found).items()}
    return [Flag("fixed", None, WORD, notes[slope.group], slope.name) for slope in found]


def lag_slopes(names: Sequence[str], phi: Vector, errors: Vector, series: int) -> list[Flag]:
    """Flags of coefficients of lags, which suppose one for all series.

    If they differ by D, the mean of series with large variances is found, which is off by about 2 phi D^2 / (1 - phi^2)
    beside D^2 over the number of series in its variance.
    """
    varied = np.abs(phi) / np.maximum(1 - phi**2, errors)
    off = np.sqrt(MOVED * errors / np.maximum(2 * varied, errors))
    spread = np.minimum(errors * np.sqrt(SAMPLED * series), off)
    told = ", ".join(f"{name} ({each:.2g})" for name, each in zip(names, spread.tolist(), strict=True))
    note = CaveatNote(
        f"{ONE_LAG}, of {told}. Where coefficients differ between series by the standard deviation in parentheses or "
        "more, do not trust intervals: the released sums cannot show it, and the estimate is too large",
        ONE_LAG,
    )
    return [Flag("fixed", None, WORD, note, name) for name in names]


def slope_notes(public: PublicDesign, errors: Vector, most: float) -> list[str]:
    """The same before anything is paid."""
    found = _by_group(one_slopes(public, errors, most)).values()
    return [CaveatNote(f"{slope_note(own)}. They would be flagged", ONE_SLOPE) for own in found]


def _by_group(slopes: Sequence[OneSlope]) -> dict[str, list[OneSlope]]:
    groups = dict.fromkeys(slope.group for slope in slopes)
    return {group: [slope for slope in slopes if slope.group == group] for group in groups}
