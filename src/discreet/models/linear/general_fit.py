"""`GeneralisedFit`, what a fitted mixed model of counts or shares knows. Numbers come from `generalised`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.contrasts import Contrasts
from discreet.models.formula.design import Design
from discreet.models.formula.dots import updated
from discreet.models.formula.rows import Learned, ModelRows
from discreet.models.linear.effects import RandomEffects, variances_of
from discreet.models.linear.families import registry
from discreet.models.linear.families.family import Family
from discreet.models.linear.likelihood_fit import LikelihoodFit, one_of
from discreet.models.linear.matrix import linear, place_rows, random_part
from discreet.models.linear.solution import BOUNDARY
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import DataError, FitError
from discreet.words.progress import Progress, silent, watched

if TYPE_CHECKING:
    from discreet.models.formula.source import ModelData
    from discreet.models.linear.general_inference import FittedRows
    from discreet.models.linear.general_residuals import Kind
    from discreet.models.linear.inference import Test
    from discreet.models.linear.intervals import Prediction


@dataclass(frozen=True, repr=False, eq=False)
class GeneralisedFit(LikelihoodFit):
    """A fitted mixed model of counts or shares.

    Attributes
    ----------
    formula, family, points : what was asked; `points` of the quadrature, 1 for Laplace's approximation.
    names, beta, covariance : fixed effects on the scale of the link, and their covariance.
    dropped : names of fixed columns left out because they are combinations of others.
    random : one `RandomEffects` per random term, in the formula's order; effects are conditional modes.
    effect_variances : per term, prediction variances (levels, q, q) at the estimated variances of the effects.
    own : parameters of the family: `size` of the negative binomial, the share of `extra zeros`.
    criterion : -2 log-likelihood.
    rows : number of observations.
    notes : rows that were left out, dropped columns; the last are `estimate_notes`, such as that of a singular fit.
    fitted_rows : the rows as arrays, to which profiles and other responses are fitted.
    theta, spread : the triangles of the random terms as one vector, and the covariance of all parameters: fixed effects
        (of centred columns), theta, and those of the family.
    asked : the columns beside the formula: offset, exposure, weights.
    contrasts : codings that were asked for beside the formula.
    """

    formula: str
    family: str
    points: int
    names: tuple[str, ...]
    beta: Vector
    covariance: Matrix
    dropped: tuple[str, ...]
    random: tuple[RandomEffects, ...]
    effect_variances: tuple[Matrix, ...]
    own: Mapping[str, float]
    criterion: float
    rows: int
    notes: tuple[str, ...]
    link: Vector
    marginal: Vector
    response: Vector
    design: Design
    learned: Learned
    centred: tuple[Vector, tuple[Matrix, ...], Vector]
    parameters: int
    fitted_rows: FittedRows
    theta: Vector
    spread: Matrix
    source: ModelData | None
    asked: Mapping[str, str | None]
    contrasts: Contrasts | None = None
    estimate_notes: tuple[str, ...] = ()

    @property
    def law(self) -> Family:
        """What the family answers."""
        return registry.family(self.family)

    @property
    def variances(self) -> dict[str, float]:
        """Variances of the random effects, then covariances, by term."""
        return variances_of(self.random)

    @property
    def fitted(self) -> Vector:
        """Expected responses, random effects included."""
        return self._mean(self.link)

    def predict(
        self,
        data: Any = None,
        *,
        level: Literal["conditional", "marginal"] = "conditional",
        scale: Literal["response", "link"] = "response",
        new_levels: Literal["error", "zero"] = "error",
    ) -> Vector:
        """Expected responses, or linear predictors (`link`), for the fitted rows or for new `data` without offset."""
        one_of("level", level, ("conditional", "marginal"))
        one_of("scale", scale, ("response", "link"))
        one_of("new_levels", new_levels, ("error", "zero"))
        grouped = case_of(level, {"conditional": True, "marginal": False})
        rows = None if data is None else place_rows(data, self.design, self.learned, effects=grouped)
        found = self.link_of(rows, level=level, new_levels=new_levels)
        return found if case_of(scale, {"link": True, "response": False}) else self._mean(found)

    def link_of(
        self,
        rows: ModelRows | None,
        *,
        level: Literal["conditional", "marginal"],
        new_levels: Literal["error", "zero"],
    ) -> Vector:
        """Linear predictors of rows, without offset; of the fitted ones, where there are none, with it."""
        if rows is None:
            return self.link if case_of(level, {"conditional": True, "marginal": False}) else self.marginal
        beta, effects, _ = self.centred
        found = linear(rows, self.design.layout.fixed, self.design.levels, beta)
        if case_of(level, {"conditional": True, "marginal": False}):
            for term, values in zip(self.design.random, effects, strict=True):
                found = found + random_part(rows, term, self.design.levels, values, new_levels=new_levels)
        return found

    @property
    def triangles(self) -> list[Matrix]:
        """Roots of the covariances of the effects of one level, by term, for centred columns."""
        sizes = [len(term.names) for term in self.random]
        ends = np.cumsum([q * (q + 1) // 2 for q in sizes])[:-1]
        found = [np.zeros((q, q)) for q in sizes]
        for T, values in zip(found, np.split(self.theta, ends), strict=True):
            T.T[np.triu_indices(len(T))] = values
        return found

    @property
    def is_singular(self) -> bool:
        """Whether a variance is zero or a correlation is one, by lme4's tolerance."""
        return any(np.abs(np.diag(T)).min() < BOUNDARY for T in self.triangles)

    def prediction(self, data: Any = None, **asked: Any) -> Prediction:
        """Predictions with standard errors and intervals; see `discreet.models.linear.general_prediction`."""
        from discreet.models.linear.general_prediction import prediction

        return prediction(self, data, **asked)

    def _drawn(self, count: int, rng: np.random.Generator, *, effects: Literal["new", "kept"]) -> Iterator[Vector]:
        from discreet.models.linear.general_bootstrap import simulate

        return simulate(self, count, rng, effects=effects)

    def refit(self, y: Vector) -> GeneralisedFit:
        """The same model of other responses to the same rows, in their order."""
        from discreet.models.linear.general_bootstrap import refit

        return refit(self, y)

    def residuals(self, kind: Kind = "response") -> Vector:
        """Responses less their expectations (`response`), over their spread (`pearson`), or by the `deviance`."""
        from discreet.models.linear.general_residuals import residuals

        return residuals(self, kind)

    @of_kinds
    def intervals(self, *, level: float = 0.95, progress: Progress = silent) -> dict[str, tuple[float, float]]:
        """Profile intervals of standard deviations, as lme4's confint, and of the family's own parameters."""
        from discreet.models.linear.general_inference import intervals

        with watched(progress, "intervals") as telling:
            return intervals(self, level=level, progress=telling)

    @of_kinds
    def update(
        self,
        formula: str | None = None,
        data: Any = None,
        *,
        family: str | None = None,
        points: int | None = None,
        contrasts: Contrasts | None = None,
    ) -> GeneralisedFit:
        """Another formula, where "." stands for the old side (". ~ . + z"), other data, family, points or contrasts.

        Offset, exposure and weights stay the columns that they were.
        """
        from discreet.models.linear.generalised import generalised

        return generalised(
            updated(self.formula, formula or ". ~ ."),
            self._open_source.whole if data is None else data,
            missing=self._open_source.missing if data is None else "error",
            family=family or self.family,
            points=points or self.points,
            contrasts=self.contrasts if contrasts is None else contrasts,
            offset=self.asked["offset"],
            exposure=self.asked["exposure"],
            weights=self.asked["weights"],
        )

    def _mean(self, link: Vector) -> Vector:
        return self.law.mean(link, self.centred[2])

    def contrast(self, weights: Mapping[str, float], *, level: float = 0.95) -> Test:
        """A combination of fixed effects, such as {"x": 1, "z": -1}, with its normal test."""
        from discreet.models.linear.general_inference import contrast

        return contrast(self, weights, level=level)

    def tests(self, *, level: float = 0.95) -> dict[str, Test]:
        """The normal test of each fixed effect: z value, p value, interval; degrees of freedom are infinite."""
        return {name: self.contrast({name: 1.0}, level=level) for name in self.names}

    @of_kinds
    def confint(
        self,
        *,
        method: Literal["wald", "profile", "parametric"] = "profile",
        level: float = 0.95,
        replicates: int = 999,
        seed: int | np.random.Generator | None = None,
        progress: Progress = silent,
    ) -> dict[str, tuple[float, float]]:
        """Intervals of the fixed effects: normal, profile, or quantiles of refits to responses drawn from the model."""
        from discreet.models.linear.general_inference import METHODS, confint

        if str(method) == "residual":
            raise DataError(
                f"A bootstrap of residuals was asked of a fit of family {self.family!r}.",
                f"The spread of {self.law.of} follows their mean, so residuals of other rows, or of the other sign, "
                "make none.",
                'Use method="parametric" or "profile".' + self.law.wider,
                about="method",
            )
        one_of("method", method, METHODS)
        with watched(progress, "intervals") as telling:
            return confint(self, method=method, level=level, replicates=replicates, seed=seed, progress=telling)

    def release(self, **asked: Any) -> NoReturn:
        """Refused: a release of counts or shares is asked of the data."""
        raise FitError(
            f"A private release was asked of a fit of family {self.family!r}.",
            f"It is drawn from the data, never from a fit. Private families are {', '.join(registry.released())}.",
            f"Use release_mixed({self.formula!r}, data, family=..., epsilon=..., public=[...]).",
            about="release",
        )

    def tidy(self, *, levels: bool = False) -> Any:
        """The estimates in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        from discreet.models.linear.summary import tidy_of_general

        return tidy_of_general(self, levels=levels)

    def to_arrow(self) -> Any:
        """Every estimate, with the effects of all levels."""
        return self.tidy(levels=True)

    def to_dict(self) -> dict[str, Any]:
        """The estimates as plain values, ready for JSON."""
        return {
            "formula": self.formula,
            "family": self.family,
            "points": self.points,
            "rows": self.rows,
            "criterion": self.criterion,
            "loglik": self.loglik,
            "aic": self.aic,
            "bic": self.bic,
            "fixed": self.fixed,
            "se": self.se,
            "variances": self.variances,
            "own": dict(self.own),
            "groups": {term.group: len(term.levels) for term in self.random},
            "dropped": list(self.dropped),
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """The fit as text, laid out like lme4's summary."""
        from discreet.models.linear.summary import summary_of_general

        return summary_of_general(self)

    def __repr__(self) -> str:
        return f"<GeneralisedFit {self.formula!r}, {self.family}, {self.rows:,} rows>"

    def __str__(self) -> str:
        return self.summary()
