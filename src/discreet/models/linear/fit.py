"""`MixedFit`, what a fitted mixed model knows. Numbers come from `solution`; text and charts live elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.contrasts import Contrasts
from discreet.models.formula.design import Design
from discreet.models.formula.dots import updated
from discreet.models.formula.rows import Learned, ModelRows, read_rows
from discreet.models.linear.cells import CellSums
from discreet.models.linear.effects import ByName, RandomEffects, variances_of
from discreet.models.linear.families.gaussian import GAUSSIAN
from discreet.models.linear.likelihood_fit import LikelihoodFit, one_of
from discreet.models.linear.matrix import linear, place_rows, random_part
from discreet.models.linear.moments import Moments
from discreet.models.linear.offsets import offset_of
from discreet.models.linear.origin import Origin, basis
from discreet.models.linear.solution import Solution, effect_variances
from discreet.models.linear.sparse import Gram
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import FitError
from discreet.words.progress import Progress, silent, watched

if TYPE_CHECKING:
    from discreet.models.formula.source import ModelData
    from discreet.models.linear.inference import Satterthwaite, Test
    from discreet.models.linear.intervals import Prediction
    from discreet.models.linear.private import PrivateFit
    from discreet.models.linear.residuals import Fitted

Method = Literal["REML", "ML"]
Residual = Literal["conditional", "marginal", "pearson"]


class MixedWarning(UserWarning):
    """Something about a fit that lme4 would also mention; it stays on the result as `fit.notes`."""


@dataclass(frozen=True, repr=False, eq=False)
class MixedFit(LikelihoodFit):
    """A fitted linear mixed model.

    Attributes
    ----------
    formula, method : what was asked.
    names, beta, covariance : fixed effects that could be estimated, and their covariance.
    dropped : names of fixed columns left out because they are combinations of others.
    random : one `RandomEffects` per random term, in the formula's order.
    sigma2 : residual variance.
    criterion : -2 log restricted likelihood (REML) or -2 log likelihood (ML).
    rows : number of observations.
    notes : what lme4 would say in a message: a singular fit, dropped columns.
    statistics : all the fit knows of the data, for the kept columns (centred, see `Layout.centred`): `Moments`
        where the model is one random intercept, else a `Gram` matrix.
    weights : prior weights; a row's residual variance is sigma2 over its weight.
    contrasts : codings that were asked for beside the formula.
    residual : the law of residuals that was fitted, where it is more than one variance; `sigma2` is then that of the
        first stratum, and `weights` are those of the strata.
    offset : what is added to the linear predictor of each row; the rows in memory have it subtracted.
    asked : the columns beside the formula: weights and offset.
    """

    family: ClassVar[str] = GAUSSIAN.name
    formula: str
    method: Method
    names: tuple[str, ...]
    beta: Vector
    covariance: Matrix
    dropped: tuple[str, ...]
    random: tuple[RandomEffects, ...]
    sigma2: float
    criterion: float
    rows: int
    notes: tuple[str, ...]
    statistics: Moments | Gram
    solution: Solution
    design: Design
    cells: CellSums
    origin: Origin
    kept: Integers
    learned: Learned
    source: ModelData | None
    in_memory: ModelRows | None
    weights: Vector | None = None
    contrasts: Contrasts | None = None
    residual: Fitted | None = None
    offset: Vector | None = None
    asked: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def moments(self) -> Moments:
        """The sufficient statistics of a model with one random intercept."""
        if isinstance(self.statistics, Moments):
            return self.statistics
        raise FitError(
            f"{self.formula!r} is not summed up in moments: only a single random intercept is.",
            remedy="Use one term such as (1 | county).",
            about="formula",
        )

    @property
    def variances(self) -> dict[str, float]:
        """Variance components, then covariances within each term, then the residual, as lme4's VarCorr lists them."""
        own = self.residual.variances(self.sigma2) if self.residual else {"Residual": self.sigma2}
        return ByName(variances_of(self.random) | own)

    @property
    def autocorrelation(self) -> float | None:
        """The correlation of residuals one period apart within a series; None where it was not asked for."""
        return self.residual.rho if self.residual else None

    @cached_property
    def effect_variances(self) -> list[tuple[Matrix, Matrix]]:
        """Per term, prediction variances var(u^ - u) and lme4's, which take beta as known; (levels, q, q) each."""
        found = effect_variances(self.solution, self.statistics)
        back = [np.linalg.inv(basis(random)) for random in self.design.random]
        return [(B @ free @ B.T, B @ known @ B.T) for B, (free, known) in zip(back, found, strict=True)]

    @property
    def is_singular(self) -> bool:
        """Whether a variance is zero or a correlation is one, by lme4's tolerance."""
        return self.solution.is_singular

    @property
    def parameters(self) -> int:
        """Fixed effects, covariance parameters and the residual variance."""
        return len(self.beta) + len(self.solution.theta) + 1 + (len(self.residual.free) if self.residual else 0)

    @cached_property
    def data(self) -> ModelRows:
        """The rows in memory, read on first use where the fit itself only needed aggregates."""
        return self.in_memory or read_rows(self._open_source.rows, self.design.layout, self.learned)[0]

    @property
    def response(self) -> Vector:
        """The response of each row."""
        monomial = self.design.layout.response
        return self.data.evaluate(monomial) + monomial.shift + (0.0 if self.offset is None else self.offset)

    @of_kinds
    def predict(
        self,
        data: Any = None,
        *,
        level: Literal["conditional", "marginal"] = "conditional",
        new_levels: Literal["error", "zero"] = "error",
    ) -> Vector:
        """Predictions for the fitted rows or for new `data`, with random effects or (`marginal`) without.

        A level of a grouping factor that the fit never saw is an error, or has effect zero if asked. New data have the
        columns of an offset too.
        """
        one_of("level", level, ("conditional", "marginal"))
        one_of("new_levels", new_levels, ("error", "zero"))
        grouped = case_of(level, {"conditional": True, "marginal": False})
        rows = self.data if data is None else place_rows(data, self.design, self.learned, effects=grouped)
        total = linear(rows, self.design.layout.fixed, self.design.levels, self._beta_everywhere)
        total += self.design.layout.response.shift + offset_of(self, data, rows=rows.count)
        if grouped:
            for term, effects in zip(self.design.random, self.solution.effects, strict=True):
                total += random_part(rows, term, self.design.levels, effects, new_levels=new_levels)
        return total

    @property
    def fitted(self) -> Vector:
        """Fitted values, random effects included."""
        return self.predict()

    def residuals(self, kind: Residual = "conditional") -> Vector:
        """Response minus fixed part (`marginal`), minus random effects too (`conditional`), over sigma (`pearson`)."""
        one_of("kind", kind, ("conditional", "marginal", "pearson"))
        level: Literal["conditional", "marginal"] = "marginal" if kind == "marginal" else "conditional"
        left = self.response - self.predict(level=level)
        return left * self.root_weights / np.sqrt(self.sigma2) if kind == "pearson" else left

    @property
    def root_weights(self) -> Vector | float:
        """Roots of the prior weights; 1 where there are none."""
        return 1.0 if self.weights is None else np.sqrt(self.weights)

    def leverage(self) -> Vector:
        """Diagonal of the hat matrix of fixed and random effects together, as lme4's hatvalues."""
        from discreet.models.linear.prediction import leverage

        if self.autocorrelation is not None:
            self.refuse_law("A hat matrix")
        return leverage(self)

    def intervals(self, *, level: float = 0.95, progress: Progress = silent) -> dict[str, tuple[float, float]]:
        """Profile-likelihood intervals of standard deviations, correlations and residual, as lme4's confint."""
        from discreet.models.linear.profile import intervals

        self.refuse_law("A profile")
        with watched(progress, "intervals") as telling:
            return intervals(self, level=level, progress=telling)

    @cached_property
    def _satterthwaite(self) -> Satterthwaite:
        from discreet.models.linear.inference import Satterthwaite

        return Satterthwaite(self)

    @of_kinds
    def contrast(self, weights: Mapping[str, float], *, level: float = 0.95) -> Test:
        """A combination of fixed effects, such as {"x": 1, "z": -1}, with Satterthwaite's test, as lmerTest's.

        If residuals do not all have one variance, the test is normal: its degrees of freedom are infinite.
        """
        from discreet.models.linear.inference import Test, weights_of

        along = weights_of(self, weights)
        error = float(np.sqrt(along @ self.covariance @ along))
        df = self._satterthwaite.df(along) if self.residual is None else np.inf
        return Test.of(float(along @ self.beta), error, df, level)

    def tests(self, *, level: float = 0.95) -> dict[str, Test]:
        """The test of each fixed effect, as `contrast` has it: degrees of freedom, t value, p value, interval."""
        return {name: self.contrast({name: 1.0}, level=level) for name in self.names}

    @of_kinds
    def confint(
        self,
        *,
        method: Literal["wald", "satterthwaite", "profile", "parametric", "residual"] = "profile",
        level: float = 0.95,
        replicates: int = 999,
        group: str | None = None,
        seed: int | np.random.Generator | None = None,
        progress: Progress = silent,
    ) -> dict[str, tuple[float, float]]:
        """Intervals of the fixed effects; see `discreet.models.linear.intervals`."""
        from discreet.models.linear.intervals import confint

        asked = {"method": method, "level": level, "replicates": replicates, "group": group, "seed": seed}
        with watched(progress, "intervals") as telling:
            return confint(self, **asked, progress=telling)  # type: ignore[arg-type]

    def prediction(self, data: Any = None, **asked: Any) -> Prediction:
        """Predictions with standard errors and intervals, new levels included (`models.linear.intervals`)."""
        from discreet.models.linear.intervals import prediction

        return prediction(self, data, **asked)

    def _drawn(self, count: int, rng: np.random.Generator, *, effects: Literal["new", "kept"]) -> Iterator[Vector]:
        from discreet.models.linear.bootstrap import simulate

        return simulate(self, count, rng, effects=effects)

    def refit(self, y: Vector) -> MixedFit:
        """The same model of other responses to the same rows, in their order."""
        from discreet.models.linear.bootstrap import refit

        return refit(self, y)

    @of_kinds
    def update(
        self,
        formula: str | None = None,
        data: Any = None,
        *,
        method: Method | None = None,
        contrasts: Contrasts | None = None,
    ) -> MixedFit:
        """Another formula, where "." stands for the old side (". ~ . + z"), other data, method or contrasts.

        Weights, offset and the law of residuals stay the columns that they were.
        """
        from discreet.models.linear.estimate import mixed

        return mixed(
            updated(self.formula, formula or ". ~ ."),
            self._open_source.whole if data is None else data,
            method=method or self.method,
            missing=self._open_source.missing if data is None else "error",
            contrasts=self.contrasts if contrasts is None else contrasts,
            **{**self.asked, **(self.residual.asked if self.residual else {})},
        )

    def release(self, **asked: Any) -> PrivateFit:
        """Release this model under differential privacy: `fit.release(epsilon=1)`; see `release_mixed`.

        The data are read again and the release is drawn from them, never from these estimates.
        """
        from discreet.models.linear.private import release_mixed

        self.refuse_law("A release")
        self._refuse_weights("A release")
        self._refuse_offset("A release")
        found = release_mixed(self.formula, self._open_source.released, **asked)
        if not self.contrasts:
            return found
        note = "coefficients have treatment contrasts: a release does not use those that the fit was asked for"
        warnings.warn(note, MixedWarning, stacklevel=2)
        return replace(found, notes=(*found.notes, note))

    def tidy(self, *, levels: bool = False) -> Any:
        """The estimates in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        from discreet.models.linear.summary import tidy

        return tidy(self, levels=levels)

    def to_arrow(self) -> Any:
        """Every estimate, with the effects of all levels."""
        return self.tidy(levels=True)

    def summary(self) -> str:
        """The fit as text, laid out like lme4's summary."""
        from discreet.models.linear.summary import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """The estimates as plain values, ready for JSON; no rows and no effects of single levels."""
        from discreet.models.linear.summary import to_dict

        return to_dict(self)

    def plot_effects(self, group: str | None = None) -> Any:
        """A chart of the EBLUPs of a grouping factor with 95 % prediction intervals, sorted."""
        from discreet.models.linear.charts import effects_chart

        return effects_chart(self, group)

    def plot_residuals(self, *, sample: int = 5000) -> Any:
        """A chart of Pearson residuals against fitted values."""
        from discreet.models.linear.charts import residuals_chart

        return residuals_chart(self, sample)

    def __repr__(self) -> str:
        return f"<MixedFit {self.formula!r}, {self.method}, {self.rows:,} rows>"

    def __str__(self) -> str:
        return self.summary()

    def refuse_law(self, what: str) -> None:
        """Refuse what knows residuals of one variance only."""
        if self.residual is not None:
            raise FitError(
                f"{what} was asked of a fit whose residuals have {self.residual.law.words}.",
                "It is of fits whose residuals are independent, with one variance.",
                'Intervals of fixed effects are possible: confint(method="profile"), "parametric" or "wald". Or fit '
                "without it.",
                about="residual_by" if self.autocorrelation is None else "series",
            )

    def residual_variances(self, data: Any = None) -> Vector | float:
        """The residual variance of each fitted row, or of each row of new `data`."""
        from discreet.data.frames import open_frame
        from discreet.models.linear.residuals import Strata, strata_of

        if data is not None and self.residual is not None and isinstance(law := self.residual.law, Strata):
            own = np.array(list(self.residual.variances(self.sigma2).values()))
            return np.asarray(own[strata_of(law, open_frame(data, ordered=True))])
        if data is None and self.residual is not None and self.weights is not None:
            return self.sigma2 / self.weights
        return self.sigma2

    def _refuse_weights(self, what: str) -> None:
        if self.weights is not None:
            raise FitError(
                f"{what} was requested for a fit with weights. It would describe the model without them.",
                "Fits without weights have it.",
                "Fit again, with weights where they are wanted.",
                about="weights",
            )

    def _refuse_offset(self, what: str) -> None:
        if self.offset is not None:
            raise FitError(
                f"{what} was requested for a fit with an offset. It would describe the model without it.",
                "Fits without an offset have it.",
                "Subtract the offset from the response in a column of its own, and fit that.",
                about="offset",
            )

    @cached_property
    def _beta_everywhere(self) -> Vector:
        """Internal (centred) coefficients of every design column, zero where dropped."""
        beta = np.zeros(len(self.design.names))
        beta[self.kept] = self.solution.beta
        return beta


def log_total(weights: Vector | None) -> float:
    """What prior weights take from -2 log-likelihood."""
    return 0.0 if weights is None else float(np.log(weights).sum())
