"""`BayesMixed`, what a Bayesian mixed model knows. Text and tables live in `summary`, charts in `charts`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.gibbs import Chains
from discreet.models.bayes.blmm.marginal import DrawnMarginal, Marginal, Normals
from discreet.models.bayes.blmm.mixture import Mixtures
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.linear.fit import MixedFit
from discreet.models.linear.matrix import dense
from discreet.results import Result
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError, FitError

Method = Literal["exact", "gibbs"]
SHOWN = 12  # names in an error


@dataclass(frozen=True, repr=False)
class BayesMixed(Result):
    """A Bayesian mixed model: the REML fit that its sums come from, its prior, and its posterior.

    With method "exact", marginals have no Monte Carlo error; chains, if there are any, are kept beside them. With
    "gibbs", marginals are the draws'. Chains that did not converge say so in `notes`.
    """

    fit: MixedFit
    prior: Prior
    model: PosteriorModel
    method: Method = "exact"
    chains: Chains | None = None
    found: Posterior | None = None

    @cached_property
    def posterior(self) -> Posterior:
        """The exact posterior; a fit by "gibbs" computes it on first use."""
        return self.found or Posterior.of(self.model)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the fit should know."""
        dropped = tuple(f"column {name} is a combination of others and was left out" for name in self.fit.dropped)
        return dropped + self._disagreements + (self.chains.notes if self.chains else ())

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the grouping factor, in the order of their effects."""
        return self.fit.random[0].levels

    @property
    def variances(self) -> tuple[str, str]:
        """The names of the two variances."""
        return "Residual", self.fit.random[0].group

    @property
    def coefficients(self) -> Mixtures:
        """Exact posteriors of the fixed effects in the order of `fit.names`, for the columns as given."""
        return self.posterior.coefficients(restore=self.fit.origin.restore, offset=self.fit.origin.offset)

    @of_kinds
    def coefficient(self, name: str) -> Marginal:
        """The posterior of one fixed effect."""
        at = _place(name, self.fit.names, "fixed effect")
        if self.method == "gibbs":
            return DrawnMarginal(self.draws(name))
        return Normals(self.coefficients.take(slice(at, at + 1)))

    @of_kinds
    def effect(self, level: str) -> Marginal:
        """The posterior of one level's random effect."""
        at = _place(level, self.levels, "level")
        if self.method == "gibbs":
            return DrawnMarginal(self._sampled.u[:, :, at])
        return Normals(self.posterior.effects.take(slice(at, at + 1)))

    @of_kinds
    def variance(self, name: str = "Residual") -> Marginal:
        """The posterior of the residual variance or, by the grouping factor's name, of the random effects'."""
        at = _place(name, self.variances, "variance")
        if self.method == "gibbs":
            return DrawnMarginal(self._sampled.variances[:, :, at])
        return self.posterior.variance(at)

    def draws(self, name: str) -> Matrix:
        """Draws (chains, length) of a fixed effect, a variance or a level's effect, the first that has this name."""
        chains, origin = self._sampled, self.fit.origin
        if name in self.fit.names:
            at = self.fit.names.index(name)
            found: Matrix = chains.beta @ origin.restore[at] + origin.offset[at]
            return found
        if name in self.variances:
            return chains.variances[:, :, self.variances.index(name)]
        return chains.u[:, :, _place(name, self.levels, "fixed effect, a variance or a level")]

    def predictive(self, data: Any = None, *, draws: int | None = None, seed: int | np.random.Generator = 0) -> Matrix:
        """Responses from the posterior predictive law, shape (draws, rows), of the fitted rows or of new `data`.

        `draws` are at most 1,000 if left out: as many as the posterior has.
        """
        from discreet.models.bayes.blmm.predictive import responses

        chains = self._sampled
        effects = [chains.u.reshape(chains.count, -1)]
        return responses(self.fit, chains, effects, data, draws=draws, rng=np.random.default_rng(seed))

    def to_arviz(self, *, predictive: int = 0, seed: int | np.random.Generator = 0) -> Any:
        """Draws as arviz's `InferenceData`, with so many of the posterior predictive law; needs the extra `arviz`."""
        from discreet.models.bayes.blmm.predictive import inference_data

        chains, group = self._sampled, self.variances[1]
        fixed = np.stack([self.draws(name) for name in self.fit.names], axis=2)
        found = {
            "fixed": (fixed, "coefficient", self.fit.names),
            "variance": (chains.variances, "component", self.variances),
            f"effects of {group}": (chains.u, f"level of {group}", self.levels),
        }
        predicted = self.predictive(draws=predictive, seed=seed) if predictive else None
        return inference_data(found, observed=self.fit.response, predicted=predicted)

    def design(self, rows: Integers) -> tuple[Integers, Matrix, Vector]:
        """Groups, fixed columns and responses of some rows, in the posterior's coordinates."""
        fit = self.fit
        part = fit.data.take(rows)
        fixed = fit.design.layout.fixed  # may be empty: y ~ 0 + (1 | g)
        x = dense(part, fixed, fit.design.levels)[:, fit.kept] if fixed else np.empty((len(rows), 0))
        return fit.design.random[0].grouping.codes(part.codes), x, part.evaluate(fit.design.layout.response)

    def table(self) -> list[dict[str, Any]]:
        """Fixed effects and variances, one dictionary each: mean, sd, quantiles; of draws also R-hat and their size."""
        from discreet.models.bayes.blmm.summary import table

        return table(self)

    def tidy(self, *, levels: bool = False) -> Any:
        """The posterior in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        from discreet.models.bayes.blmm.summary import tidy

        return tidy(self, levels=levels)

    def to_arrow(self) -> Any:
        """Every posterior, with the effects of all levels."""
        return self.tidy(levels=True)

    def summary(self) -> str:
        """The posterior as text."""
        from discreet.models.bayes.blmm.summary import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """The estimates as plain values, ready for JSON; no rows and no effects of single levels."""
        from discreet.models.bayes.blmm.summary import to_dict

        return to_dict(self)

    def plot_trace(self, name: str) -> Any:
        """A chart of the draws of a fixed effect, a variance or a level's effect, a panel for each chain."""
        from discreet.models.bayes.blmm.charts import trace_chart

        return trace_chart(self.draws(name), name)

    def plot_density(self, name: str) -> Any:
        """A chart of the posterior density of a fixed effect, a variance or a level's effect."""
        from discreet.models.bayes.blmm.charts import density_chart

        if name in self.fit.names:
            return density_chart(self.coefficient(name), name)
        return density_chart(self.variance(name) if name in self.variances else self.effect(name), name)

    def __repr__(self) -> str:
        return f"<BayesMixed {self.fit.formula!r}, {self.method}, {self.fit.rows:,} rows>"

    def __str__(self) -> str:
        return self.summary()

    @property
    def _sampled(self) -> Chains:
        if self.chains is None:
            raise FitError(
                "There are no draws: the posterior is exact.",
                remedy="Fit with draws=1000 to have some beside it.",
                about="draws",
            )
        return self.chains

    @property
    def _disagreements(self) -> tuple[str, ...]:
        """The places where the prior leaves no room for the data: the posterior there comes from the prior."""
        fit = self.fit
        return tuple(
            f"prior and data disagree on {name}: it is {abs(b) / self.prior.sd:.3g} prior deviations from 0 by REML; "
            "rescale the column, or raise `sd`"
            for name, b, s in zip(fit.names, fit.beta.tolist(), fit.se.values(), strict=True)
            if abs(b) > ROOM * self.prior.sd and abs(b) > ROOM * s
        )


ROOM = 4.0  # deviations; beyond them, of the prior and of the data's own error, the two contradict each other


def _place(name: str, names: tuple[str, ...], what: str) -> int:
    if name not in names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} others" if len(names) > SHOWN else "")
        raise DataError(
            f"{name!r} is not a {what} of this model.", f"There are: {shown}.", "Name one of them.", about="name"
        )
    return names.index(name)
