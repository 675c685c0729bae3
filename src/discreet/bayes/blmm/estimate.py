"""`bayes_mixed`, the door: a formula, data and a prior in; an exact posterior out, with draws beside it if asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.bayes.blmm.conditional import Model
from discreet.bayes.blmm.exact import Curve, Posterior
from discreet.bayes.blmm.gibbs import Chains, gibbs
from discreet.bayes.blmm.mixture import Mixtures
from discreet.bayes.blmm.prior import Prior
from discreet.errors import DataError, FitError
from discreet.mixed.fit import MixedFit
from discreet.mixed.matrix import dense
from discreet.mixed.moments import Moments

LEVELS = np.array([0.05, 0.5, 0.95])
SHOWN = 12  # names in an error


def bayes_mixed(
    formula: str,
    data: Any,
    *,
    prior: Prior = Prior(),  # noqa: B008 - frozen
    draws: int = 0,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
) -> BayesMixed:
    """Fit a linear mixed model with one random intercept under a conjugate prior; the posterior is exact.

    `draws` > 0 adds that many Gibbs draws per chain, for joint questions and as a check. Data as for `mixed`.

    >>> data = {"y": [1, 2, 4, 3, 5, 7, 2, 4], "x": [0, 1, 2, 0, 1, 2, 0, 1], "g": list("aaabbbcc")}
    >>> fit = bayes_mixed("y ~ x + (1 | g)", data)
    >>> round(fit.coefficient("x").mean, 3)
    1.763
    """
    import warnings

    from discreet.mixed.estimate import mixed
    from discreet.mixed.fit import MixedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # a prior keeps a singular fit away; dropped columns are noted
        fit = mixed(formula, data)
    return of_fit(fit, prior=prior, draws=draws, chains=chains, warmup=warmup, seed=seed)


def of_fit(
    fit: MixedFit,
    *,
    prior: Prior = Prior(),  # noqa: B008 - frozen
    draws: int = 0,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
) -> BayesMixed:
    """The posterior of a model that was fitted by REML: its sums are reused."""
    if not isinstance(fit.statistics, Moments):
        raise FitError(
            f"{fit.formula!r} has more than a random intercept. The exact posterior needs one grouping factor and no "
            "slopes, as in 'y ~ x + (1 | g)'. Reduce the random part, or use `mixed` without a prior."
        )
    model = Model.of(fit.statistics, prior, restore=fit.origin.restore, offset=fit.origin.offset)
    posterior = Posterior.of(model)
    sampled = gibbs(posterior, draws=draws, chains=chains, warmup=warmup, rng=seed) if draws else None
    return BayesMixed(fit, prior, posterior, sampled)


@dataclass(frozen=True)
class Marginal:
    """The posterior of one number."""

    law: Mixtures

    @property
    def mean(self) -> float:
        return float(self.law.mean[0])

    @property
    def sd(self) -> float:
        return float(self.law.sd[0])

    def pdf(self, x: Vector | float) -> Vector:
        found: Vector = self.law.pdf(np.atleast_1d(x)[None].astype(float))[0]
        return found

    def cdf(self, x: Vector | float) -> Vector:
        found: Vector = self.law.cdf(np.atleast_1d(x)[None].astype(float))[0]
        return found

    def quantile(self, levels: Vector | float) -> Vector:
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((levels > 0) & (levels < 1)).all():
            raise DataError("A quantile was asked at a probability outside (0, 1). Only those inside exist. Use 0.05.")
        found: Vector = self.law.quantile(levels)[0]
        return found


@dataclass(frozen=True, repr=False)
class BayesMixed:
    """A Bayesian mixed model: the REML fit it starts from, the exact posterior, and draws where asked for.

    Chains that did not converge say so in `notes`; the exact posterior does not depend on them.
    """

    fit: MixedFit
    prior: Prior
    posterior: Posterior
    chains: Chains | None = field(default=None)

    @property
    def notes(self) -> tuple[str, ...]:
        dropped = tuple(f"column {name} is a combination of others and was left out" for name in self.fit.dropped)
        return dropped + (self.chains.notes if self.chains else ())

    @property
    def levels(self) -> tuple[str, ...]:
        return self.fit.random[0].levels

    @property
    def coefficients(self) -> Mixtures:
        """Posteriors of the fixed effects in the order of `fit.names`, for the columns as given."""
        return self.posterior.coefficients(restore=self.fit.origin.restore, offset=self.fit.origin.offset)

    def coefficient(self, name: str) -> Marginal:
        """The posterior of one fixed effect."""
        at = _place(name, self.fit.names, "fixed effect")
        return Marginal(self.coefficients.take(slice(at, at + 1)))

    def effect(self, level: str) -> Marginal:
        """The posterior of one level's random effect."""
        at = _place(level, self.levels, "level")
        return Marginal(self.posterior.effects.take(slice(at, at + 1)))

    def variance(self, name: str = "Residual") -> Curve:
        """The posterior of the residual variance or, by the grouping factor's name, of the random effects'."""
        group = self.fit.random[0].group
        return self.posterior.variance(_place(name, ("Residual", group), "variance"))

    def design(self, rows: Integers) -> tuple[Integers, Matrix, Vector]:
        """Groups, fixed columns and responses of some rows, in the posterior's coordinates."""
        fit = self.fit
        part = fit.data.take(rows)
        x = dense(part, fit.design.layout.fixed, fit.design.levels)[:, fit.kept]
        return fit.design.random[0].grouping.codes(part.codes), x, part.evaluate(fit.design.layout.response)

    def table(self) -> list[dict[str, object]]:
        """Mean, deviation and quantiles of fixed effects and variances, one dictionary each."""
        laws = self.coefficients
        quantiles = laws.quantile(LEVELS)
        rows: list[dict[str, object]] = [
            {"parameter": name, "mean": m, "sd": s, "q05": q[0], "q50": q[1], "q95": q[2]}
            for name, m, s, q in zip(
                self.fit.names, laws.mean.tolist(), laws.sd.tolist(), quantiles.tolist(), strict=True
            )
        ]
        for name in (self.fit.random[0].group, "Residual"):
            curve = self.variance(name)
            low, middle, high = curve.quantile(LEVELS).tolist()
            mean, sd = curve.mean, curve.sd
            rows.append({"parameter": f"var {name}", "mean": mean, "sd": sd, "q05": low, "q50": middle, "q95": high})
        return rows

    def summary(self) -> str:
        """The posterior as text."""
        head = [f"Bayesian linear mixed model, exact posterior: {self.fit.formula}", f"Prior: {self.prior}"]
        head.append(f"{self.fit.rows:,} rows, {len(self.levels):,} levels of {self.fit.random[0].group}")
        table = self.table()
        wide = max(len(str(row["parameter"])) for row in table) + 2
        body = [f"{'':{wide}}{'mean':>12}{'sd':>12}{'q05':>12}{'q50':>12}{'q95':>12}"]
        body += [
            f"{row['parameter']!s:{wide}}" + "".join(f"{row[key]:12.5g}" for key in ("mean", "sd", "q05", "q50", "q95"))
            for row in table
        ]
        return "\n".join([*head, "", *body, *self.notes])

    def plot_trace(self, level: str) -> Any:
        """An Altair chart of the draws of one level's random effect, a panel for each chain."""
        from discreet.bayes.blmm.charts import trace_chart

        if self.chains is None:
            raise FitError("There are no draws to trace: the posterior is exact. Fit with draws=1000 to have some.")
        return trace_chart(self.chains.u[:, :, _place(level, self.levels, "level")], level)

    def __repr__(self) -> str:
        return f"<BayesMixed {self.fit.formula!r}, {self.fit.rows:,} rows>"

    def __str__(self) -> str:
        return self.summary()


def _place(name: str, names: tuple[str, ...], what: str) -> int:
    if name not in names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} others" if len(names) > SHOWN else "")
        raise DataError(f"{name!r} is not a {what} of this model. There are: {shown}. Name one of them.")
    return names.index(name)
