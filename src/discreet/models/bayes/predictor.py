"""A private linear predictor: coefficients, their errors, and warnings before they are paid for.

Expected errors are computed in the same way as the later ones, on an assumed design: columns of numbers spread evenly
over what the norm leaves them, equally frequent levels of a category, and residuals of a twentieth of the response's
range. If all columns are public, the design is the real one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Matrix
from discreet.models.bayes.curvature import MinimumLaw, Paid, Told, errors, noise_norm
from discreet.models.bayes.doubts import Doubt
from discreet.models.bayes.question import answer_table, flags
from discreet.results import Result, tidy_table
from discreet.words import caveats

if TYPE_CHECKING:
    import pyarrow as pa

RESIDUAL = 0.05  # of the response's range: the size of residuals that expected errors suppose
HOLDS = 0.25  # of the least curvature of the rows: a penalty above it is said to hold coefficients back
UNSEEN, HELD, NONE = "rows not seen", "penalty holds", "no standard errors"
HOLD = caveats.at_least(caveats.DOUBT)
ONE_VARIANCE = (
    "Intervals are for the coefficients without penalty, of rows as they are shortened (absolute entries of a row add "
    f"up to `norm` at most) and clipped. Of residuals {caveats.ONE_VARIANCE}: where those of far rows are larger, a "
    f"slope may err up to {{ratio:.2g}} times as much by sampling. And {caveats.APART}: where rows of one group are "
    f"alike, intervals are too narrow. And {caveats.FLATTER}, and straight beyond the response's range: with one error "
    "in ten at half the range, intervals of the intercept held that of least squares in 0 to 20 % of trials. "
    f"{HOLD}"
)
NO_ERRORS = Doubt(
    NONE,
    "there are no standard errors: `error_share` is 0. The effect of noise on a coefficient depends on the rows, "
    "and this release pays for nothing else about them. Leave `error_share` out, or use `posterior_interval`",
)


@dataclass(frozen=True, slots=True, repr=False)
class Predictor(Result):
    """A private linear predictor.

    Attributes
    ----------
    coefficient : names, as R writes them.
    value : the private coefficients.
    std_error : of noise and sampling together; nan where `error_share` was 0.
    low, high : ends of 95 % intervals for the coefficients without penalty; infinite if the rows contain too little
        information.
    penalty : the regularisation used; raised from the one asked for where privacy needs more.
    asked : the regularisation asked for.
    scale : of the Laplace noise in each coordinate of the gradient; the coefficients move by at most this over the
        penalty, and by less if the rows are more informative.
    smoothing : scale of the Laplace noise on each coefficient.
    flag : why a coefficient must not be read as it stands, one text each.
    notes : the sentences for it.
    """

    coefficient: tuple[str, ...]
    value: tuple[float, ...]
    std_error: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    penalty: float
    asked: float
    scale: float
    smoothing: float
    flag: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def tidy(self) -> pa.Table:
        """One row for each coefficient, in the columns of `discreet.results.COLUMNS`."""
        return tidy_table(
            effect="fixed",
            term=self.coefficient,
            estimate=self.value,
            std_error=self.std_error,
            lower=self.low,
            upper=self.high,
            flag=flags(self.flag),
        )

    def __repr__(self) -> str:
        return str(self)

    def to_arrow(self) -> pa.Table:
        """One row for each answer; no number where there is none."""
        ends = {"std_error": self.std_error, "low": self.low, "high": self.high}
        known: dict[str, list[float | None]] = {
            name: [x if math.isfinite(x) else None for x in values] for name, values in ends.items()
        }
        return answer_table(self.coefficient, estimate=self.value, flag=self.flag, **known)

    def __str__(self) -> str:
        answers = []
        for name, value, error, low, high in zip(
            self.coefficient, self.value, self.std_error, self.low, self.high, strict=True
        ):
            ends = f"95 % {low:.4g} to {high:.4g}" if math.isfinite(low) else "no interval"
            answers.append(f"{name}  {value:.6g}" + (f"  (error {error:.3g}; {ends})" if math.isfinite(error) else ""))
        noise = f"noise: Laplace({self.scale:.4g}) in the gradient, Laplace({self.smoothing:.2g}) on each coefficient"
        hold = [HOLD] if np.isfinite(self.low).any() else []
        return "\n".join([*(f"Note: {note}." for note in self.notes), *answers, *hold, noise])


@dataclass(frozen=True, slots=True)
class FitErrors:
    """The expected errors of the coefficients of a perturbed objective.

    Attributes
    ----------
    at_most : bound of the root mean square of the whole vector's shift by noise: the penalty alone holds it back.
    smoothing : scale of the noise on each coefficient itself, which comes on top.
    std_error, half_width : expected, for each coefficient; infinite if the rows will contain too little information,
        nan if not paid. If the design is supposed, they are those of that design.
    lowest, highest : standard errors for the design with the most and with the least information that the norm allows;
        empty if the design is public.
    shrinkage : the share by which the penalty draws each coefficient to zero.
    public : whether the design is public and was read; else it is supposed.
    least : a column of numbers whose mean square is smaller is not seen, and its coefficient has no interval.
    ratio : how many times as large a slope's sampling error may be, if residuals are not of one variance.
    flag, notes : what is said against each coefficient, whatever the rows hold.
    """

    rows: int
    coefficient: tuple[str, ...]
    penalty: float
    scale: float
    smoothing: float
    std_error: tuple[float, ...]
    half_width: tuple[float, ...]
    shrinkage: tuple[float, ...]
    public: bool
    least: float
    ratio: float
    flag: tuple[str, ...]
    notes: tuple[str, ...]
    lowest: tuple[float, ...] = ()
    highest: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"<FitErrors of {len(self.coefficient)} coefficients from {self.rows:,} rows>"

    @property
    def at_most(self) -> float:
        return math.sqrt(2 * len(self.coefficient)) * self.scale / self.penalty

    def __str__(self) -> str:
        lines = [f"Before paying: {note}." for note in self.notes]
        lines.append(
            f"Objective perturbation of {len(self.coefficient)} coefficients on {self.rows:,} rows, penalty "
            f"{self.penalty:.4g}.\nExpected error of all coefficients together (root mean square): at most "
            f"{self.at_most:.3g} by noise, beside what the penalty shrinks; less if the rows contain more information."
        )
        if not math.isnan(self.std_error[0]):
            lines += self._told() if self.public else self._ranges()
            design = (
                "Columns are public"
                if self.public
                else ("Assumed: columns of numbers spread evenly within the norm, levels equally frequent")
            )
            lines.append(f"{design}; residuals of {100 * RESIDUAL:.0f} % of the response's range.")
            if not self.public:
                lines.append(
                    f"A column with a mean square below {self.least:.2g} (a level with so small a share of the rows) "
                    "is not seen: its coefficient then has no interval."
                )
            lines.append(ONE_VARIANCE.format(ratio=self.ratio))
        return "\n".join(lines)

    def _told(self) -> list[str]:
        lines = []
        told = zip(self.coefficient, self.std_error, self.half_width, self.shrinkage, strict=True)
        for name, error, half, shrunk in told:
            width = f"95 % interval of about +- {half:.3g}" if math.isfinite(half) else "no interval"
            lines.append(
                f"Expected error of {name}: {error:.3g}, {width}; the penalty takes {100 * shrunk:.1f} % of it."
            )
        return lines

    def _ranges(self) -> list[str]:
        """Errors by what columns may hold; those of the supposed design only if all of it would be seen."""
        lines, seen = [], all(map(math.isfinite, self.half_width))
        told = zip(self.coefficient, self.lowest, self.highest, self.std_error, self.half_width, strict=True)
        for name, low, high, error, half in told:
            as_supposed = f"{error:.3g} with a 95 % interval of about +- {half:.3g}, or none" if seen else "no interval"
            lines.append(
                f"Expected error of {name}: at least {low:.3g} and at most {high:.3g}, by what the columns hold; as "
                f"assumed below, {as_supposed}."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        finite = {
            name: [x if math.isfinite(x) else None for x in getattr(self, name)]
            for name in ("std_error", "half_width", "shrinkage", "lowest", "highest")
        }
        return {
            "rows": self.rows,
            "coefficient": list(self.coefficient),
            "penalty": self.penalty,
            "scale": self.scale,
            "smoothing": self.smoothing,
            "at_most": self.at_most,
            **finite,
            "public": self.public,
            "least": self.least,
            "ratio": self.ratio,
            "flag": list(self.flag),
            "notes": list(self.notes),
        }


def supposed(numbers: Sequence[bool], widths: Sequence[int], *, rows: int, norm: float) -> Matrix:
    """X'X of a supposed design: terms of numbers and of categories, with their numbers of columns."""
    left, many = norm - numbers.count(False), max(sum(w for n, w in zip(numbers, widths, strict=True) if n), 1)
    spread = (left if left > 0 else norm) / many
    square = [
        spread**2 / 3 if number else 1 / (width + (width > 1)) if width > 1 else 1.0
        for number, width in zip(numbers, widths, strict=True)
        for _ in range(width)
    ]
    return np.diag(rows * np.array(square))


def expected_errors(
    names: tuple[str, ...],
    gram: Matrix,
    paid: Paid | None,
    *,
    rows: int,
    norm: float,
    tau: float,
    penalty: float,
    scale: float,
    smoothing: float,
    public: bool,
) -> FitErrors:
    """The expected errors for a design with this X'X."""
    p = len(names)
    least = float(np.linalg.eigvalsh(gram)[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shrunk = np.diag(np.linalg.pinv(gram + penalty * np.eye(p))) * penalty
        ratio = float(np.sqrt((rows * norm**2 / np.diag(gram)).max())) if (np.diag(gram) > 0).all() else math.inf
    common = (rows, names, penalty, scale, smoothing)
    if paid is None:
        none = (math.nan,) * p
        return FitErrors(
            *common, none, none, tuple(map(float, shrunk)), public, 0.0, ratio, (NONE,) * p, (NO_ERRORS.note,)
        )
    law = MinimumLaw(tau=tau, penalty=penalty, scale=scale, smoothing=smoothing)
    missing = 1 / float(paid.missing) if paid.missing else 0.0  # none is supposed
    told = Told(gram, paid.gram_scale(norm), rows * RESIDUAL**2, 1 / float(paid.pulls), 0.0, missing)
    found = errors(np.zeros(p), told, rows=rows, **law)
    lowest = highest = np.empty(0)
    if not public:  # X'X is between nothing and rows times the norm's square, and known exactly or not at all
        most, none_known = rows * norm**2, np.zeros((p, p))
        ends = (
            Told(most * np.eye(p), 0.0, told.pulls, 0.0),
            Told(none_known, 0.0, told.pulls, 0.0),
            Told(none_known, most, told.pulls, told.pulls_scale),
        )
        full, nothing, highest = (errors(np.zeros(p), each, rows=rows, **law).std_error for each in ends)
        lowest = np.minimum(full, nothing)
    doubts = said(found.reach, least, penalty)
    words = ", ".join(doubt.word for doubt in doubts)
    return FitErrors(
        *common,
        tuple(map(float, found.std_error)),
        tuple(map(float, found.reach)),
        tuple(map(float, shrunk)),
        public,
        told.gram_scale * noise_norm(p) / rows,
        ratio,
        (words,) * p,
        tuple(doubt.note for doubt in doubts),
        tuple(map(float, lowest)),
        tuple(map(float, highest)),
    )


def said(reach: Any, least: float, penalty: float) -> list[Doubt]:
    """The warnings about coefficients whose rows have this least curvature."""
    found = []
    if not np.isfinite(reach).all():
        found.append(
            Doubt(
                UNSEEN,
                "noise hides how much information the rows have about some coefficients, which then have no "
                "interval, and standard "
                "errors that the penalty alone bounds. Use more rows, a larger epsilon or `error_share`, or declare "
                "columns public",
            )
        )
    if penalty > HOLDS * least:
        found.append(
            Doubt(
                HELD,
                f"the penalty of {penalty:.4g} holds coefficients back: the rows weigh {max(least, 0.0):.3g} where "
                "they have the least information. Intervals allow for it as far as it is known. Use more rows, a "
                "smaller `norm` or "
                "penalty, or a larger epsilon",
            )
        )
    return found
