"""Proper priors of a Bayesian mixed model, in the notation of Abowd, Schneider and Vilhuber (2012), section V.A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, sqrt

from discreet.errors import FitError, concerning
from discreet.faults import Argument
from discreet.voices import Symbol


@dataclass(frozen=True, slots=True)
class Prior:
    """Both variances ~ IG(nu/2, nu V/2), independently; fixed effects ~ N(0, sd^2 I).

    The defaults are the paper's benchmark: variances of mean 0.125 and deviation 0.0625, coefficients of deviation 1.

    Attributes
    ----------
    V : the scale of a variance before data.
    nu : degrees of freedom, what the prior weighs in observations.
    sd : deviation of every fixed effect, in the units of the columns as given.

    Examples
    --------
    >>> print(Prior(sd=2))
    variances ~ IG(6, 0.624), fixed effects ~ N(0, 2^2)
    """

    V: float = 0.104
    nu: float = 12.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        for name, value, why in (
            ("nu", self.nu, "no degrees of freedom: the prior is improper and so may be the posterior"),
            ("V", self.V, "no scale for the variances"),
            ("sd", self.sd, "no proper law of the fixed effects"),
        ):
            if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
                raise FitError(
                    f"Prior {name}={value!r} is not a number. Any positive finite number is possible. "
                    "Use Prior(V=0.104, nu=12, sd=1), the paper's.",
                    about="prior",
                )
            if not (isfinite(value) and value > 0):
                raise FitError(
                    f"Prior {name}={value:g} gives {why}. Any positive finite number is possible. "
                    "Use Prior(V=0.104, nu=12, sd=1), the paper's, or a larger sd and a smaller nu to say less.",
                    about="prior",
                )

    @classmethod
    def paper(cls, nu: float = 12.0, V: float = 0.104) -> Prior:
        """The paper's one-parameter family: sd^2 = 16^2 times the prior variance of a variance (sd 0.998 at nu 12)."""
        if not nu > 4:
            raise FitError(
                f"Prior.paper(nu={nu:g}) ties sd to the variance of an inverse gamma, which needs nu > 4. "
                "Use nu > 4, or Prior(nu=..., sd=...) to choose both.",
                about="prior",
            )
        return cls(V, nu, 16 * nu * V / ((nu - 2) * sqrt(nu / 2 - 2)))

    def __str__(self) -> str:
        return f"variances ~ IG({self.nu / 2:g}, {self.nu * self.V / 2:g}), fixed effects ~ N(0, {self.sd:g}^2)"


@concerning("prior")
def read_prior(prior: Prior | Mapping[str, float]) -> Prior:
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
    unknown = [str(name) for name in prior if name not in ("V", "nu", "sd")]
    if unknown:
        raise FitError(
            f"The prior names {', '.join(map(repr, unknown))}; it has 'V', 'nu' and 'sd'. "
            "Name these, or leave one out for the paper's value.",
            about="prior",
        )
    return Prior(**prior)
