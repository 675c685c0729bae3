"""Proper priors of a Bayesian mixed model, in the notation of Abowd, Schneider and Vilhuber (2012), section V.A."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import sqrt
from numbers import Real
from typing import Any

from discreet.models.bayes.blmm.variance_prior import (
    EXAMPLES,
    LARGEST,
    MOST,
    SMALLEST,
    InverseGamma,
    VariancePrior,
    read_variance_prior,
)
from discreet.words.errors import FitError, concerning
from discreet.words.faults import Argument
from discreet.words.voices import Symbol


@dataclass(frozen=True, slots=True)
class Prior:
    """Every variance ~ IG(nu/2, nu V/2) unless `variances` says otherwise, independently; fixed effects ~ N(0, sd^2 I).

    The defaults are the paper's benchmark: variances of mean 0.125 and deviation 0.0625, coefficients of deviation 1.

    Attributes
    ----------
    V : the scale of a variance before data.
    nu : degrees of freedom, what the prior weighs in observations.
    sd : deviation of every fixed effect, in the units of the columns as given.
    variances : priors of single variances by name ("Residual", the grouping factor, "g: x" of a slope): an
        `InverseGamma`, `HalfT` or `PC`, or its text, such as "half-t(3, 0.5)".

    Examples
    --------
    >>> print(Prior(sd=2))
    variances ~ IG(6, 0.624), fixed effects ~ N(0, 2^2)
    >>> print(Prior(variances={"county": "half-t(3, 0.5)"}))
    variance county ~ half-t(3, 0.5), other variances ~ IG(6, 0.624), fixed effects ~ N(0, 1^2)
    """

    V: float = 0.104
    nu: float = 12.0
    sd: float = 1.0
    variances: Mapping[str, VariancePrior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.variances, Mapping):
            raise FitError(
                f"Prior variances={self.variances!r} is no mapping.",
                "It has a prior for each variance that is named.",
                'Use {"county": "half-t(3, 0.5)"}.',
                about="prior",
            )
        known = {str(name): read_variance_prior(law) for name, law in self.variances.items()}
        object.__setattr__(self, "variances", known)
        for name, value, why in (
            ("nu", self.nu, "no degrees of freedom: the prior is improper and so may be the posterior"),
            ("V", self.V, "no scale for the variances"),
            ("sd", self.sd, "no proper law of the fixed effects"),
        ):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise FitError(
                    f"Prior {name}={value!r} is not a number.",
                    "Any positive finite number is possible.",
                    "Use Prior(V=0.104, nu=12, sd=1), the paper's.",
                    about="prior",
                )
            most = MOST if name == "nu" else LARGEST
            if not SMALLEST <= value <= most:
                wrong = f"gives {why}" if not 0 < value < float("inf") else "is beyond what doubles can compute with"
                raise FitError(
                    f"Prior {name}={str(value)[:20]} {wrong}.",
                    f"Any number from {SMALLEST:g} to {most:g} is possible.",
                    "Use Prior(V=0.104, nu=12, sd=1), the paper's, or a larger sd and a smaller nu to say less.",
                    about="prior",
                )

    @classmethod
    def paper(cls, nu: float = 12.0, V: float = 0.104) -> Prior:
        """The paper's one-parameter family: sd^2 = 16^2 times the prior variance of a variance (sd 0.998 at nu 12)."""
        if not nu > 4:
            raise FitError(
                f"Prior.paper(nu={nu:g}) ties sd to the variance of an inverse gamma, which needs nu > 4.",
                remedy="Use nu > 4, or Prior(nu=..., sd=...) to choose both.",
                about="prior",
            )
        return cls(V, nu, 16 * nu * V / ((nu - 2) * sqrt(nu / 2 - 2)))

    def of(self, name: str | None) -> VariancePrior:
        """The prior of a variance."""
        return self.variances.get(name or "", InverseGamma(self.nu / 2, self.nu * self.V / 2))

    def refuse_unknown(self, names: Collection[str]) -> None:
        """Refuse priors of variances that a model does not have."""
        if unknown := [name for name in self.variances if name not in names]:
            raise FitError(
                f"The prior names the variance {unknown[0]!r}, which the model does not have.",
                f"It has {', '.join(names)}.",
                "Name one of them.",
                about="prior",
            )

    def __str__(self) -> str:
        own = [f"variance {name} ~ {law}" for name, law in self.variances.items()]
        others = f"{'other ' * bool(own)}variances ~ IG({self.nu / 2:g}, {self.nu * self.V / 2:g})"
        return ", ".join([*own, others, f"fixed effects ~ N(0, {self.sd:g}^2)"])


@concerning("prior")
def read_prior(prior: Prior | Mapping[str, Any]) -> Prior:
    """A prior, or its numbers by name, as a plan or a JSON document writes them."""
    if isinstance(prior, Prior):
        return prior
    if not isinstance(prior, Mapping):
        raise FitError(
            (Argument("prior", Symbol(type(prior).__name__)), " is not a prior of a mixed model."),
            "It is a Prior, or its numbers by name.",
            "Use Prior(V=0.104, nu=12, sd=1).",
            about="prior",
        )
    unknown = [str(name) for name in prior if name not in ("V", "nu", "sd", "variances")]
    if unknown:
        raise FitError(
            f"The prior names {', '.join(map(repr, unknown))}; it has 'V', 'nu', 'sd' and 'variances'.",
            remedy="Name these, or leave one out for the paper's value.",
            about="prior",
        )
    return Prior(**prior)


@concerning("prior")
def prior_of_text(text: str) -> Prior:
    """A prior as a command writes it: "nu=12, sd=2; county=half-t(3, 0.5); Residual=pc(1, 0.05)"."""
    numbers: dict[str, Any] = {}
    laws: dict[str, Any] = {}
    for part in re.split(r"[;,](?![^(]*\))", text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            if not equals:
                raise ValueError
            if "(" in value:
                laws[name] = read_variance_prior(value)
            else:
                numbers[name] = float(value)
        except ValueError as error:
            if isinstance(error, FitError):
                raise
            raise FitError(
                f"Prior {part.strip()!r} cannot be read.",
                f"It has numbers (nu=12, V=0.1, sd=1) and laws of variances: {EXAMPLES}.",
                "Write for instance sd=10; county=half-t(3, 0.5).",
                about="prior",
            ) from None
    return read_prior(numbers | ({"variances": laws} if laws else {}))
