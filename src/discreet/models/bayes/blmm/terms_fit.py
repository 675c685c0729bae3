"""`BayesTerms`, what a Bayesian mixed model with several random terms knows: draws, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Matrix
from discreet.models.bayes.blmm.gibbs import RHAT_LIMIT, Chains
from discreet.models.bayes.blmm.marginal import DrawnMarginal
from discreet.models.bayes.blmm.predictive import inference_data, responses
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.bayes.blmm.summary import convergence, prior_values
from discreet.models.bayes.blmm.terms import TermsModel
from discreet.models.linear.effects import place
from discreet.models.linear.fit import MixedFit
from discreet.results import Result, tidy_table
from discreet.words.errors import DataError, UnknownName

ENDS = np.array([0.025, 0.975])
LEVELS = np.array([0.05, 0.5, 0.95])


@dataclass(frozen=True, repr=False)
class BayesTerms(Result):
    """A Bayesian mixed model with several variances: the REML fit that its sums come from, its prior, and its draws.

    Chains that did not converge say so in `notes`, and first of all in `summary()`.
    """

    fit: MixedFit
    prior: Prior
    model: TermsModel
    chains: Chains

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the fit should know."""
        dropped = tuple(f"column {name} is a combination of others and was left out" for name in self.fit.dropped)
        return self.chains.notes + dropped

    @property
    def variances(self) -> tuple[str, ...]:
        """The names of the variances, the residual's first."""
        return ("Residual", *variance_names(self.fit))

    def coefficient(self, name: str) -> DrawnMarginal:
        """The posterior of one fixed effect."""
        return DrawnMarginal(self.draws(name))

    def variance(self, name: str = "Residual") -> DrawnMarginal:
        """The posterior of a variance, by its name in `variances`."""
        if name not in self.variances:
            raise DataError(
                f"{name!r} is not a variance of this model.",
                f"There are: {', '.join(self.variances)}.",
                "Name one of them.",
                about="name",
            )
        return DrawnMarginal(self.draws(name))

    def effect(self, level: str, group: str | None = None) -> DrawnMarginal:
        """The posterior of one level's effect in a random term, by the name of its variance; the first by default."""
        names = variance_names(self.fit)
        if group is not None and group not in names:
            raise UnknownName(
                f"{group!r} is not a random term of this model.",
                f"It has {', '.join(names)}.",
                "Name one of them.",
                about="group",
            )
        at = names.index(group) if group else 0
        return DrawnMarginal(self._effects(at)[:, :, place(level, self.fit.random[at].levels, names[at])])

    def draws(self, name: str) -> Matrix:
        """Draws (chains, length) of a fixed effect or a variance."""
        if name in self.fit.names:
            origin, at = self.fit.origin, self.fit.names.index(name)
            return np.asarray(self.chains.beta @ origin.restore[at] + origin.offset[at])
        if name not in self.variances:
            raise DataError(
                f"{name!r} is no fixed effect or variance of this model.",
                f"There are: {', '.join((*self.fit.names, *self.variances))}.",
                "Name one of them.",
                about="name",
            )
        return np.asarray(self.chains.variances[:, :, self.variances.index(name)])

    def _effects(self, term: int) -> Matrix:
        bounds = np.cumsum([0, *self.model.gram.sizes])
        return self.chains.u[:, :, bounds[term] : bounds[term + 1]]

    def predictive(self, data: Any = None, *, draws: int | None = None, seed: int | np.random.Generator = 0) -> Matrix:
        """Responses from the posterior predictive law, shape (draws, rows), of the fitted rows or of new `data`.

        `draws` are at most 1,000 if left out: as many as the posterior has.
        """
        effects = [self._effects(k).reshape(self.chains.count, -1) for k in range(len(self.fit.random))]
        return responses(self.fit, self.chains, effects, data, draws=draws, rng=np.random.default_rng(seed))

    def to_arviz(self, *, predictive: int = 0, seed: int | np.random.Generator = 0) -> Any:
        """arviz's `InferenceData`, with so many draws of the posterior predictive law; needs the extra `arviz`."""
        fixed = np.stack([self.draws(name) for name in self.fit.names], axis=2)
        found = {"fixed": (fixed, "coefficient", self.fit.names)}
        found["variance"] = (self.chains.variances, "component", self.variances)
        for k, (name, term) in enumerate(zip(variance_names(self.fit), self.fit.random, strict=True)):
            found[f"effects of {name}"] = (self._effects(k), f"level of {name}", term.levels)
        predicted = self.predictive(draws=predictive, seed=seed) if predictive else None
        return inference_data(found, observed=self.fit.response, predicted=predicted)

    def table(self) -> list[dict[str, Any]]:
        """Fixed effects and variances, one dictionary each: mean, sd, quantiles, R-hat and effective draws."""
        found = []
        for name, kind in [*((n, "") for n in self.fit.names), *((n, "var ") for n in self.variances[::-1])]:
            law = DrawnMarginal(self.draws(name) if kind == "" else self._variance_draws(name))
            low, middle, high = law.quantile(LEVELS).tolist()
            numbers = {"mean": law.mean, "sd": law.sd, "q05": low, "q50": middle, "q95": high}
            found.append({"parameter": kind + name, **numbers, "rhat": law.rhat, "effective": law.effective})
        return found

    def _variance_draws(self, name: str) -> Matrix:
        return np.asarray(self.chains.variances[:, :, self.variances.index(name)])

    def tidy(self, *, levels: bool = False) -> Any:
        """The posterior in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        kinds: list[tuple[str, str | None, str | None, str | None]] = [
            ("fixed", None, name, None) for name in self.fit.names
        ]
        kinds += [("variance", term.group, term.names[0], None) for term in self.fit.random]
        kinds.append(("variance", "Residual", None, None))
        laws = [self.coefficient(name) for name in self.fit.names]
        laws += [DrawnMarginal(self._variance_draws(name)) for name in (*self.variances[1:], "Residual")]
        for at, term in enumerate(self.fit.random if levels else ()):
            kinds += [("random", term.group, term.names[0], level) for level in term.levels]
            laws += [DrawnMarginal(draws) for draws in np.moveaxis(self._effects(at), 2, 0)]
        effect, group, name, level = (list(column) for column in zip(*kinds, strict=True))
        ends = [law.quantile(ENDS).tolist() for law in laws]
        return tidy_table(
            effect=effect,
            group=group,
            term=name,
            level=level,
            estimate=[law.mean for law in laws],
            std_error=[law.sd for law in laws],
            lower=[low for low, _ in ends],
            upper=[high for _, high in ends],
            flag=["not converged" if law.rhat > RHAT_LIMIT else None for law in laws],
        )

    def to_arrow(self) -> Any:
        """Every posterior, with the effects of all levels."""
        return self.tidy(levels=True)

    def to_dict(self) -> dict[str, Any]:
        """The estimates as plain values, ready for JSON; no rows and no effects of single levels."""
        return {
            "converged": self.chains.converged,
            "rhat_max": self.chains.rhat_max,
            "effective_min": self.chains.effective_min,
            "formula": self.fit.formula,
            "method": "gibbs",
            "prior": prior_values(self.prior),
            "rows": self.fit.rows,
            "groups": {term.group: len(term.levels) for term in self.fit.random},
            "posterior": self.table(),
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """The posterior as text; whether the chains converged comes first."""
        groups = dict.fromkeys(f"{len(term.levels):,} levels of {term.group}" for term in self.fit.random)
        head = [
            convergence(self.chains),
            *(f"Note: {note}" for note in self.notes),
            f"Bayesian linear mixed model, posterior by Gibbs sampling: {self.fit.formula}",
            f"Prior: {self.prior}",
            f"{self.fit.rows:,} rows, {', '.join(groups)}",
        ]
        rows = self.table()
        columns = [key for key in rows[0] if key != "parameter"]
        wide = max(len(str(row["parameter"])) for row in rows) + 2
        body = ["".join([" " * wide, *(f"{key:>12}" for key in columns)])]
        body += [f"{row['parameter']!s:{wide}}" + "".join(f"{row[key]:12.5g}" for key in columns) for row in rows]
        return "\n".join([*head, "", *body])

    def __repr__(self) -> str:
        return f"<BayesTerms {self.fit.formula!r}, gibbs, {self.fit.rows:,} rows>"

    def __str__(self) -> str:
        return self.summary()


def variance_names(fit: MixedFit) -> tuple[str, ...]:
    """One name for each random term with one variance."""
    return tuple(term.component(0) for term in fit.random)
