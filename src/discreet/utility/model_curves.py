"""How well private fitted values follow a response: their correlation, over epsilon, in seeded trials.

A correlation needs only sums of the response, so a trial costs a draw and a solution, never a pass over the rows. The
noise has a seed: these are simulations that know the truth, never releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from discreet.arrays import Vector
from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear.private import moments, paper
from discreet.models.linear.private.look import noise_for
from discreet.models.linear.private.offers import ModelQuestion
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.release import release_mixed
from discreet.models.linear.private.request import Interval, ModelRequest
from discreet.models.linear.private.sums import ResponseSums, response_sums, units_of
from discreet.noise.source import SeededSource


@dataclass(frozen=True)
class Case:
    """One model on one data set, with everything that trials need."""

    model: str
    public: PublicDesign
    rows: ModelRows = field(repr=False)
    frame: Any = field(repr=False)
    lagged: tuple[str, ...] = ()
    bounds: Interval | None = None

    @classmethod
    def of(
        cls, model: str, formula: str, data: Any, *, lagged: tuple[str, ...] = (), bounds: Interval | None = None
    ) -> Case:
        frame = open_frame(data, ordered=True)
        public = public_design(frame, read_formula(formula, needs_random=False))
        return cls(model, public, read_rows(frame, public.design.layout, public.learned)[0], frame, lagged, bounds)

    @property
    def response(self) -> Vector:
        return self.rows.values[self.public.model.response][:, 0]

    @cached_property
    def sums(self) -> tuple[Vector, Vector, float, float]:
        """Sums of the response by finest group and by fixed column, its total and its sum of squares."""
        public, y = self.public, self.response
        s = np.zeros(len(public.n))
        if public.terms:
            np.add.at(s, public.group(self.rows.codes), y)
        return s, paper.cross_products(self.rows, public, y), float(y.sum()), float(y @ y)

    @cached_property
    def whole(self) -> paper.Whole:
        """The estimates of all rows: least squares or REML."""
        return paper.whole_estimates(self.frame, self.rows, self.public)

    @cached_property
    def best(self) -> float:
        """The correlation with the fitted values of all rows, which is what private ones are compared with."""
        centred = self.centred(self.whole.beta)
        return self.correlation(centred, self.runs(self.whole.effects))

    def correlation(self, centred: Vector, effects: Sequence[Vector]) -> float:
        """The correlation of the response with fitted values, from centred coefficients and effects by level's runs."""
        public, (s, Xy, total, squares) = self.public, self.sums
        u = np.zeros(len(public.n))
        for level, values in zip(public.levels, effects, strict=True):
            u = u + values[level.index]
        mean = (public.ones @ centred + public.n @ u) / public.rows
        variance = centred @ public.XX @ centred + 2 * u @ (public.Sx @ centred) + public.n @ u**2
        variance -= public.rows * mean**2
        covariance = Xy @ centred + s @ u - mean * total
        return float(covariance / np.sqrt(variance * (squares - total**2 / public.rows)))

    def centred(self, beta: Vector) -> Vector:
        """Coefficients of the centred columns, from those of the columns as given."""
        return np.asarray(np.linalg.solve(self.public.origin.restore, beta), dtype=np.float64)

    def runs(self, effects: Sequence[Vector]) -> list[Vector]:
        """Effects in the groupings' own order, put in the order of the levels' runs."""
        return [self.public.in_runs(i, values) for i, values in enumerate(effects)]

    def request(self, *, epsilon: float | None = None, rho: float | None = None, clip: Any = None) -> ModelRequest:
        model = self.public.model
        said: dict[str, Any] = {"public": model.columns[1:], "bounds": self.bounds, "clip": clip, "lagged": self.lagged}
        question = release_mixed.ask(model.text, epsilon=epsilon, rho=rho, seed=0, **said)
        return cast("ModelQuestion", question).request


@dataclass(frozen=True)
class Trials:
    """How often to draw, and from where."""

    count: int
    source: SeededSource
    seed: int


def by_moments(case: Case, epsilons: Sequence[float], trials: Trials, *, clip: Any = None) -> Iterator[dict[str, Any]]:
    """Noisy sums, one joint epsilon for everything."""
    units = units_of(case.frame, case.public)
    sums: ResponseSums | None = None
    for epsilon in epsilons:
        request = case.request(epsilon=epsilon, clip=clip)
        sums = sums or response_sums(case.frame, case.public, units, request.scale)
        mechanism = noise_for(case.public, units, request, None)
        exact, found = mechanism.exact(sums, case.public), []
        for _ in range(trials.count):
            noisy = mechanism.draw(exact, trials.source)
            at = moments.solve(noisy, mechanism.chosen(noisy), case.public, request)
            centred = at.estimate.beta + at.origin * case.public.constant
            found.append(case.correlation(centred, at.estimate.effects))
        kind = f"clipped to [{clip[0]:g}, {clip[1]:g}]" if isinstance(clip, tuple) else "default"
        yield row(case, "moments", epsilon, kind, found, "proved, joint")


def row(case: Case, method: str, epsilon: float, split: str, found: Sequence[float], guarantee: str) -> dict[str, Any]:
    """One point of a curve."""
    return {
        "model": case.model,
        "method": method,
        "epsilon": epsilon,
        "split": split,
        "correlation": float(np.mean(found)),
        "relative_to_mle": float(np.mean(found)) / case.best,
        "spread": float(np.std(found)),
        "trials": len(found),
        "guarantee": guarantee,
    }
