"""Notes on private estimates: what was dropped, what noise hides, what it exaggerates.

All of it follows from the public design and the released numbers, so saying it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.estimation import SMALLEST
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import ModelRequest
from discreet.words.caveats import (
    AS_CLIPPED,
    DOUBT,
    FEW_SHAPES,
    NO_MEANS,
    NOT_MEASURED,
    NOT_SEEN,
    ONE_LAG,
    ONE_MEAN,
    ONE_VARIANCE,
    CaveatNote,
    at_least,
)

SHOWN = 8  # names of columns that a note lists
LAGS_MOVED = 0.5  # standard errors of a lag that a variance which is not seen may move it by without a flag
LAGS_SEEN = 6.0  # deviations of its noise from which a ratio of noisy sums is nearly normal
SAMPLED = 1 / 8  # of a squared standard error: twice the variance supposed costs more than 1.5 points of 95 % above it

TIMES = 10.0  # the largest factor of a sampling variance that is told: residuals that grow with a far column reach it
SHAPES_MOVED = 0.36  # standard errors that an estimate is off by if a 95 % interval holds in 93.5 %


HOLD = at_least(DOUBT)
SMALL_BLOCKS = "small blocks"
UNSTEADY = CaveatNote(
    f"in a model with lags {ONE_MEAN}: a break or a trend without a column of its own is taken for a lag. And "
    f"{AS_CLIPPED}: where one in 200 lies outside the bounds, a coefficient of 0.5 was found as 0.52. And "
    f"{ONE_LAG}: where coefficients vary between series by a deviation of 0.2 around 0.5, 0.56 or more was "
    "found, and intervals held in 3 to 56 %. Coefficients beside a lag that is off are off too",
    ONE_MEAN,
    AS_CLIPPED,
    ONE_LAG,
)


class Flag(NamedTuple):
    """Warnings to read before the estimates: a word for tables, and the sentence behind it.

    `effect` and `group` name the estimates as `PrivateFit.tidy` does; `group` is None for fixed effects, `term`
    None for all of them.
    """

    effect: Literal["fixed", "random", "variance"]
    group: str | None
    word: str
    note: str
    term: str | None = None


def clipping_flags(groups: Sequence[str], clipped: Sequence[bool]) -> list[Flag]:
    """Flags of averages over blocks that lie on their radius: the fixed part's first, then each term's."""
    found = []
    for group, on_radius in zip((None, *groups), clipped, strict=True):
        what, size = ("the fixed effects", "fixed") if group is None else (f"the effects of {group}", "groups")
        note = (
            f"{what} were clipped: the blocks' estimates reach their limit, so the average is pulled towards zero "
            f"and may be far too small. State a larger typical size, sizes={{{size!r}: ...}}, or use method='moments'"
        )
        if on_radius:
            found.append(Flag("fixed" if group is None else "random", group, "clipped", note))
    return found


def block_flags(groups: Sequence[str], rows: int) -> list[Flag]:
    """Flags of averages over blocks, known before anything is paid: the estimates of small samples are biased."""
    note = small_blocks(rows)
    where: list[tuple[Literal["fixed", "random", "variance"], str | None]] = [("fixed", None)]
    where += [("random", group) for group in groups] + [("variance", group) for group in (*groups, "Residual")]
    return [Flag(effect, group, SMALL_BLOCKS, note) for effect, group in where]


def small_blocks(rows: int) -> str:
    return (
        f"estimates are averages over {SMALL_BLOCKS} of {rows:,} rows, and off by what fits of so few rows are off: "
        "effects are shrunk further than in a fit of all rows, variances are too small or too large, and fixed effects "
        "are off where the model is not exactly right. Effects have no standard errors and no intervals. "
        "method='moments' has no blocks"
    )


NO_ERRORS = "no standard errors: the published noise does not cover what blocks do; 'moments' has them"


def unmeasured_flags(
    groups: Sequence[str], residual: str | None = "Residual", *, spread: float | None = None
) -> list[Flag]:
    """Flags of terms whose sums by group were not drawn: noise would have hidden them, or a look found too little.

    `residual` is the variance that includes theirs; None for shares and counts, which have none of their own. `spread`
    is the deviation of effects that a look asked for.
    """
    where: tuple[Literal["random", "variance"], ...] = ("random", "variance")
    told = [(group, not_measured(group) if spread is None else not_found(group, spread)) for group in groups]
    found = [Flag(effect, group, "not measured", note) for group, note in told for effect in where]
    return found + [Flag("variance", residual, "not measured", note) for _, note in told[:1] if residual is not None]


def not_measured(group: str) -> str:
    return CaveatNote(
        f"effects of {group} are not measured: noise that hides who is protected would hide them, so nothing is spent "
        "on them, and the residual variance includes theirs. Effects are 0, and "
        "standard errors of fixed effects allow for any variance of theirs that the response's own allows. "
        "Spend more, or give their sums a share under split",
        NOT_MEASURED,
    )


def not_found(group: str, spread: float) -> str:
    return (
        f"effects of {group} are not measured: a look with a tenth of the loss did not find that groups differ by "
        f"enough, a standard deviation of about {spread:.3g}, for their sums to gain more than they cost. Effects are "
        "0, the residual variance includes theirs, and standard errors of fixed effects allow for any variance of "
        "theirs that the response's own allows. Spend more, or give their sums a share under split"
    )


def look_first(groups: Sequence[str], spread: float) -> str:
    """What is known before paying where a look decides what is drawn."""
    return (
        f"a look with a tenth of the loss decides whether effects of {' and '.join(groups)} are measured: if their "
        f"standard deviation is well below {spread:.3g}, they are most likely left at 0, and fixed effects have the "
        "noise of a model without groups. Errors are told for the case that they are measured. A stated split leaves "
        "the look out"
    )


def variance_flags(
    request: ModelRequest,
    variances: Mapping[str, float],
    least: Mapping[str, float] | None = None,
    units: Mapping[str, float] | None = None,
) -> list[Flag]:
    """Flags of variances that are no estimates: the least that is looked for, or more than the bounds allow.

    `least` has the smallest variance of a term that can be distinguished from zero under the noise; smaller ones are
    flagged too. Variances are of what effects add to a row; `units` has the mean squares of the columns of slopes.
    """
    width = float(request.width)
    floor, most = (2 * SMALLEST * width / 2) ** 2, (width / 2) ** 2
    found = []
    unit = dict.fromkeys(variances, 1.0) | dict(units or {})
    for name, value in variances.items():
        if value <= floor:
            note = (
                f"no variance of {name} was found above the noise: {value / unit[name]:.3g} is the least that is "
                "looked for, not an estimate, and results computed with it are too certain"
            )
            found.append(Flag("variance", name, "not found", note))
        elif value > most:
            note = (
                f"the variance of {name}, {value / unit[name]:.3g}, is more than any response within a range of "
                f"{width:g} can have ({most / unit[name]:.3g}): it is noise. Spend more, or use fewer columns and "
                "groups"
            )
            found.append(Flag("variance", name, "noise", note))
    unseen = [name for name, limit in (least or {}).items() if variances[name] < limit]
    flagged = {flag.group for flag in found}
    for name in unseen:
        note = (
            f"the variance of {name} is hardly seen: under this noise none below "
            f"{(least or {})[name] / unit[name]:.3g} can be distinguished from 0. It may be far too large, the "
            f"residual variance is smaller by that amount, and standard errors of effects of {name} are larger than "
            "necessary. It is also unknown whether effects depend on the sizes of groups, which moves fixed effects. "
            "Spend more, or use fewer groups"
        )
        found += [Flag("variance", name, "hardly seen", note)] * (name not in flagged)
        found += [Flag("variance", "Residual", "hardly seen", note)] * ("Residual" not in flagged)
    return list(dict.fromkeys(found))


def hidden_variances(names: Sequence[str], variances: Vector, least: Vector) -> list[Flag]:
    """Flags of variances of effects, on the scale of a link, that are not told from zero."""
    found = []
    for name, value, limit in zip(names, variances.tolist(), least.tolist(), strict=True):
        note = (
            f"the variance of {name} is hardly seen: under this noise none below {limit:.3g} can be distinguished "
            "from 0, and it may be far too large. Where it is found too small, fixed effects are those of averages "
            "over groups: an intercept of counts is too high by half of what is missing, coefficients of shares are "
            "too near to zero. Spend more, or use fewer groups"
        )
        found += [Flag("variance", name, "hardly seen", note)] * (value < limit)
    return found


def lag_flags(names: Sequence[str], seen: float, unknown: Sequence[str], moved: float) -> list[Flag]:
    """Flags of coefficients of lags that noise hides: `seen` is what lags vary by, in deviations of the noise there.

    `unknown` are terms whose variance cannot be distinguished from zero, and `moved` is the resulting doubt about a
    lag, in its errors.
    """
    if unknown and moved > LAGS_MOVED:
        note = (
            f"lasting differences between groups of {' and '.join(unknown)} cannot be distinguished from zero, and "
            "look like "
            f"lags, whose coefficients may be off by {moved:.2g} standard errors more than these say. Spend more, or "
            "use fewer groups"
        )
        return [Flag("fixed", None, "lags hardly seen", note, name) for name in names]
    if seen >= LAGS_SEEN:
        return []
    note = (
        f"what earlier responses vary by is hardly seen: {max(seen, 0.0):.2g} standard deviations of the noise in it, "
        "and their coefficients are pulled towards zero or far off, with intervals that hold less often than they "
        "say. Spend more, give a tighter clip, or leave lags out"
    )
    return [Flag("fixed", None, "lags hardly seen", note, name) for name in names]


def equal_variances(names: Sequence[str], share: Vector) -> list[str]:
    """A note on fixed effects whose standard errors suppose equal variances; `share` of their squares is sampling."""
    with np.errstate(divide="ignore"):
        times = 1 + SAMPLED / share
    supposed = np.flatnonzero(times < TIMES).tolist()
    if not supposed:
        return []
    return [
        CaveatNote(
            f"for standard errors of {_listed([names[j] for j in supposed])} {ONE_VARIANCE}, of all residuals and of "
            "all effects, and residuals that do not follow each other; the released sums cannot show otherwise. Up to "
            f"{100 * share.max():.0f} % of their squares is sampling, the rest noise and groups. Intervals hold in "
            "less than 93.5 % if residuals make the sampling variance of an estimate larger by this factor, or more: "
            f"{_listed([f'{names[j]} {times[j]:.2g}' for j in supposed])}. They do if they vary with a column, more "
            "in some series than in others, or are alike in rows that are alike in a column",
            ONE_VARIANCE,
        )
    ]


def means_of_columns(names: Sequence[str], moved: Vector) -> list[str]:
    """A note on fixed effects that effects which go with means of columns move by `moved`, in their errors, at most."""
    with np.errstate(divide="ignore"):
        together = SHAPES_MOVED / moved
    found = np.flatnonzero(together < 1).tolist()
    if not found:
        return []
    told = _listed([f"{names[j]} ({together[j]:.2g})" for j in found])
    return [
        CaveatNote(
            f"{NO_MEANS}, for intervals of {told}. Noise moves weight from differences within groups to differences "
            "between them. If means of columns explain effects at a correlation of the number in parentheses, or more, "
            "intervals hold what a fit without noise finds in less than 93.5 %, without a flag. Where that may be, add "
            "the mean of the column by group to the formula, as a public column of its own",
            NO_MEANS,
        )
    ]


def hidden_variance(name: str, least: float, *, uneven: bool) -> str:
    """What is known beforehand of a variance that noise may hide; `uneven` if groups differ in size."""
    told = f"a variance of {name} below {least:.3g} {NOT_SEEN}"
    if not uneven:
        return CaveatNote(f"{told}, and would be flagged", NOT_SEEN)
    sized = "nor whether effects go with sizes of groups, which moves fixed effects; both would be flagged"
    return CaveatNote(f"{told}, {sized}", NOT_SEEN)


def other_shapes(names: Sequence[str], left: Vector, together: float) -> list[str]:
    """A note on fixed effects that effects which go with sizes in an unusual way may move; `left`, in their errors."""
    moved = [names[j] for j in np.flatnonzero(left > SHAPES_MOVED).tolist()]
    if not moved:
        return []
    return [
        CaveatNote(
            f"{FEW_SHAPES}: a line, a parabola, the largest groups and classes between powers of two. Where effects go "
            f"with sizes in another way, as waves or middle sizes alone do, at a correlation of {together:g}, "
            f"{_listed(moved)} may be off by up to {left.max():.1f} standard errors more than these say, without a "
            "flag. Where that may be, add size_class(group) to the formula, or spend more",
            FEW_SHAPES,
        )
    ]


def readings(public: PublicDesign, request: ModelRequest, centred: Vector, covariance: Matrix | None) -> list[str]:
    """Notes on a release; `centred` are coefficients of centred columns, `covariance` that of the columns as given."""
    width = float(request.width)
    notes = []
    if public.dropped:
        notes.append(f"fixed columns are combinations of others and were dropped: {_listed(public.dropped)}")
    notes += public.design.notes
    drowned = [public.names[i] for i in np.flatnonzero(_reach(public, request, centred, covariance) > width)]
    if drowned:
        notes.append(
            f"noise drowns {_listed(drowned)}: what they add to the response, or its standard error, is more than the "
            f"response's whole range of {width:g}. Spend more, or use fewer columns and cap their far values"
        )
    if covariance is None:
        notes.append(NO_ERRORS)
    return notes


def _reach(public: PublicDesign, request: ModelRequest, centred: Vector, covariance: Matrix | None) -> Vector:
    """The contribution of each coefficient to the response at the usual size of its column, or its standard error."""
    size = np.ones(len(public.kept))
    for piece, _, among in public.parts:
        if piece.monomial.atoms:
            size[among] = np.sqrt(np.diag(public.XX)[among] / public.rows)
    reach = np.abs(centred - request.scale.middle * public.constant)
    if covariance is not None:
        back = np.linalg.inv(public.origin.restore)
        reach = np.maximum(reach, np.sqrt(np.maximum(np.diag(back @ covariance @ back.T), 0.0)))
    return np.asarray(reach * size)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
