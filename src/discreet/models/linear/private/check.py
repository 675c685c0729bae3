"""The expected error of a private model, from the public design and the noise alone.

Noise is known to the last digit before a release. The sampling error is not known, so two errors are reported: by noise
alone, and with residuals and effects of typical sizes (`shares.TYPICAL` shares of the response's range).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.private import moments, strict
from discreet.models.linear.private.expected import expected_errors
from discreet.models.linear.private.informative import TOGETHER, left_by_other_shapes, moved_by_means
from discreet.models.linear.private.noisy import NoisySums
from discreet.models.linear.private.notes import (
    HOLD,
    NO_ERRORS,
    equal_variances,
    hidden_variance,
    look_first,
    means_of_columns,
    not_measured,
    other_shapes,
    small_blocks,
)
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import Method, ModelRequest
from discreet.models.linear.private.shares import TYPICAL
from discreet.models.linear.private.slopes import slope_notes
from discreet.noise.laws import Gaussian, Laplace
from discreet.privacy.losses import Pure
from discreet.words.cases import case_of

Bound = Literal["", "at least", "at most"]

SIZES = (0.0, 0.5, 1.0)  # the groups that errors are told of, as quantiles of their sizes
LARGER = (1.0, 3.0)  # times the usual deviation of effects, at which it is asked what they move by going with sizes


@dataclass(frozen=True, slots=True)
class GroupError:
    """The expected standard error of a random effect, for a group of `rows` rows; `bound` as in `ModelErrors`."""

    group: str
    rows: int
    error: float
    bound: Bound = ""


@dataclass(frozen=True, slots=True)
class ModelErrors:
    """Expected standard errors of a private model.

    Attributes
    ----------
    names : fixed effects. `error` : their expected standard errors; `noise`, the part that is noise.
    groups : of random effects, for the smallest, the middle and the largest group.
    beside : how many effects and variances are estimated beside the fixed effects.
    bound : whether each fixed effect's error is "at least" or "at most" what is told; empty where neither is meant.
    least : the smallest variance of each random term that can be distinguished from zero; empty if no sums by group are
        drawn.
    assumed : what was taken for granted about the rows.
    notes : notes to read before anything is paid: which estimates will be flagged, or have no error, whatever the
        responses are.
    """

    method: Method
    rows: int
    names: tuple[str, ...]
    error: tuple[float, ...]
    noise: tuple[float, ...]
    groups: tuple[GroupError, ...]
    assumed: str
    notes: tuple[str, ...]
    beside: int
    least: tuple[float, ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def estimates(self) -> int:
        """How many numbers the release would publish."""
        return len(self.names) + self.beside

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bound of each fixed effect's error."""
        known: Bound = ""
        return self.bound or (known,) * len(self.names)

    def __repr__(self) -> str:
        return f"<ModelErrors of {self.rows:,} rows by {self.method}: {len(self.names)} fixed effects>"

    def __str__(self) -> str:
        lines = [f"Before paying: {note}." for note in self.notes]
        lines += [f"Model of {self.rows:,} rows by {self.method}. Expected standard errors, noise included:"]
        for name, error, noise, bound in zip(self.names, self.error, self.noise, self.bounds, strict=True):
            lines.append(f"  {name}: {_bounded(error, bound)} (noise {noise:.3g})")
        lines += [
            f"  effect of a {each.group} with {each.rows:,} rows: {_bounded(each.error, each.bound)}"
            for each in self.groups
        ]
        return "\n".join([*lines, self.assumed])

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "rows": self.rows,
            "fixed": {
                name: {"error": error, "noise": noise, **({"bound": bound} if bound else {})}
                for name, error, noise, bound in zip(self.names, self.error, self.noise, self.bounds, strict=True)
            },
            "effects": [
                {"group": e.group, "rows": e.rows, "error": e.error, **({"bound": e.bound} if e.bound else {})}
                for e in self.groups
            ],
            "assumed": self.assumed,
            "notes": list(self.notes),
        }


def _bounded(error: float, bound: Bound) -> str:
    return f"{bound} {error:.3g}".strip()


def moments_errors(
    mechanism: moments.MomentNoise, public: PublicDesign, request: ModelRequest, spread: float | None = None
) -> ModelErrors:
    """Of estimates from noisy sums: exact at the assumed variances.

    `spread` is the deviation of effects from which a look lets the sums by group be drawn, where one decides it.
    """
    nothing = moments.sums_of_nothing(mechanism, public, request)
    found = moments_errors_of(nothing, public, request, measured=mechanism.sees_groups)
    if spread is None:
        return found
    names = [public.design.random[term].term.name for term in public.terms]
    return replace(found, notes=(*found.notes, look_first(names, spread)))


def moments_errors_of(
    nothing: NoisySums, public: PublicDesign, request: ModelRequest, *, measured: bool = True
) -> ModelErrors:
    """The same from the design and the noise."""
    width = float(request.width)
    tau2, sigma2 = (share * width**2 for share in TYPICAL)
    found = expected_errors(
        nothing,
        public.origin.restore,
        sigma2=sigma2,
        variances=np.full(len(public.terms), tau2),
    )
    terms = [public.design.random[term].term.name for term in public.terms]
    finest = terms[:1] if measured else []  # effects that are 0 have no error to tell
    uneven = bool(len(nothing.n)) and nothing.n.min() < nothing.n.max()
    hidden = hardly_seen(terms, found.least, measured=measured, uneven=uneven)
    if uneven and measured:
        hidden += other_shapes(public.names, _left_by_shapes(nothing, public, sigma2, tau2), TOGETHER)
    return ModelErrors(
        method="moments",
        rows=public.rows,
        names=public.names,
        error=tuple(found.fixed.tolist()),
        noise=tuple((found.fixed * np.sqrt(found.noise)).tolist()),
        groups=tuple(each for name in finest for each in errors_by_size(name, found.sizes, found.effects)),
        assumed=assumed_typical(request),
        notes=(
            *hidden,
            *equal_variances(public.names, found.residuals),
            *slope_notes(public, found.fixed, largest_variance(request)),
            *means_of_columns(public.names, _moved_by_means(nothing, public, sigma2, tau2)),
        ),
        beside=_beside(public),
        least=tuple(found.least.tolist()) if measured else (),
    )


def hardly_seen(names: Sequence[str], least: Vector, *, measured: bool, uneven: bool = False) -> list[str]:
    """What is known before paying of variances that noise will hide."""
    if not measured:
        return [not_measured(name) for name in names]
    return [hidden_variance(*each, uneven=uneven) for each in zip(names, least.tolist(), strict=True)]


def largest_variance(request: ModelRequest) -> float:
    """Of responses within the bounds."""
    return float(request.width) ** 2 / 4


def assumed_typical(request: ModelRequest) -> str:
    """What expected errors of noisy sums take for granted."""
    tau, sigma = (share**0.5 * float(request.width) for share in TYPICAL)
    return (
        f"With known variances, if residuals have a standard deviation of {sigma:.3g} and effects of {tau:.3g}, "
        f"{100 * TYPICAL[1] ** 0.5:.0f} % and {100 * TYPICAL[0] ** 0.5:.0f} % of the range of the response. "
        f"The noise is exact. {HOLD}"
    )


def _left_by_shapes(nothing: NoisySums, public: PublicDesign, sigma2: float, tau2: float) -> Vector:
    """The most that other shapes of sizes leave in each fixed effect, in its standard errors."""
    restore, left = public.origin.restore, np.zeros(len(public.names))
    for times in LARGER:
        at: Any = {"sigma2": sigma2, "variances": np.full(len(public.terms), times**2 * tau2)}
        errors = expected_errors(nothing, restore, **at).fixed
        left = np.maximum(left, np.linalg.norm(restore @ left_by_other_shapes(nothing, **at), axis=1) / errors)
    return left


def _moved_by_means(nothing: NoisySums, public: PublicDesign, sigma2: float, tau2: float) -> Vector:
    """The most that effects which go with means of columns move each fixed effect by, in its standard errors."""
    restore, moved = public.origin.restore, np.zeros(len(public.names))
    for times in LARGER:
        at: Any = {"sigma2": sigma2, "variances": np.full(len(public.terms), times**2 * tau2)}
        errors = expected_errors(nothing, restore, **at).fixed
        moved = np.maximum(moved, moved_by_means(nothing, restore, errors, **at))
    return moved


def noise_errors(
    method: Method, public: PublicDesign, fixed: Vector, effects: Sequence[Vector], assumed: str, *, rows: int
) -> ModelErrors:
    """Of estimates of which the noise alone is known: of the columns as given, and of each term's effects.

    They are averages over blocks of `rows` rows, which is said against them.
    """
    groups = []
    for position, (term, level) in enumerate(zip(public.terms, public.levels, strict=True)):
        size = level.sum(public.n[:, None])[:, 0]
        groups += errors_by_size(
            public.design.random[term].term.name, size, public.in_runs(position, effects[position])
        )
    told = tuple(np.asarray(fixed).tolist())
    notes = (
        small_blocks(rows),
        *([] if case_of(method, {"strict": True, "moments": False, "paper": False}) else [NO_ERRORS]),
    )
    return ModelErrors(method, public.rows, public.names, told, told, tuple(groups), assumed, notes, _beside(public))


def _beside(public: PublicDesign) -> int:
    """The effects of all levels, their variances and that of residuals."""
    return sum(len(public.design.random[term].grouping) + 1 for term in public.terms) + 1


def widest_noise(mechanism: strict.BlockNoise, presence: strict.Presence) -> tuple[Vector, tuple[Vector, ...]]:
    """Standard deviations of the noise in centred coefficients and in each term's effects, at the largest radius.

    Effects are pulled towards zero by the share that is noise, so theirs is before that.
    """

    def deviation(part: strict.BlockPart, count: Vector) -> Vector:
        law = Laplace.variance if isinstance(part.loss, Pure) else Gaussian.variance
        return np.asarray(part.step * part.scale * law**0.5 / np.maximum(count, 1))

    fixed = deviation(mechanism.fixed, presence.columns) / mechanism.units
    groups = zip(mechanism.groups, presence.levels, strict=True)
    return fixed, tuple(deviation(part, count) for part, count in groups)


def errors_by_size(group: str, size: Vector, error: Vector) -> list[GroupError]:
    """Errors of the smallest, the middle and the largest group; groups of one size have their mean."""
    wanted = dict.fromkeys(float(np.quantile(size, q, method="nearest")) for q in SIZES)
    return [GroupError(group, int(each), float(error[size == each].mean())) for each in wanted]
