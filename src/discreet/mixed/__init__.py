"""Linear mixed models by REML: one pass over the data, then work on sums.

The package is also the function:

    mixed(formula, data, *, method="REML", prior=None, draws=None, chains=4, warmup=None, seed=0)

Fit a linear mixed model in lme4's syntax, such as "y ~ x + (1 | g)", to a pandas, Polars, PyArrow, DuckDB or Spark
frame, a mapping of columns, or the path of a CSV or Parquet file.

method : "REML" or "ML"; with a prior "exact" or "gibbs".
prior : a `Prior` or its numbers by name; the answer is then the posterior, a `BayesMixed` instead of a `MixedFit`.
draws, chains, warmup, seed : of the Gibbs sampler, with a prior only; see `discreet.bayes.blmm.bayes_mixed`.

`MixedFit` is the answer; `Moments` is what the fit is computed from; `fit_blocks` fits thousands of disjoint random
blocks at once; `influential`, `leave_groups_out` and `leave_rows_out` study what single rows and groups change. Names
load on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.mixed.blocks import Blocks, fit_blocks
    from discreet.mixed.estimate import mixed
    from discreet.mixed.fit import MixedFit, MixedWarning
    from discreet.mixed.influence import influential
    from discreet.mixed.moments import Moments
    from discreet.mixed.refits import Refits, leave_groups_out, leave_rows_out

_HOME = {
    "Blocks": "blocks",
    "fit_blocks": "blocks",
    "influential": "influence",
    "Refits": "refits",
    "leave_groups_out": "refits",
    "leave_rows_out": "refits",
    "MixedFit": "fit",
    "MixedWarning": "fit",
    "mixed": "estimate",
    "Moments": "moments",
}
__all__ = [
    "Blocks",
    "MixedFit",
    "MixedWarning",
    "Moments",
    "Refits",
    "fit_blocks",
    "influential",
    "leave_groups_out",
    "leave_rows_out",
    "mixed",
]


def __getattr__(name: str) -> Any:
    if name == "__signature__":
        return _signature()
    if name in _HOME:
        return getattr(import_module(f"discreet.mixed.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _signature() -> Any:
    """What `inspect` shows of the call: the arguments of both doors."""
    import inspect

    from discreet.bayes.blmm.estimate import bayes_mixed
    from discreet.mixed.estimate import mixed

    plain, bayes = (inspect.signature(door).parameters for door in (mixed, bayes_mixed))
    prior = bayes["prior"].replace(default=None)
    return inspect.Signature(
        [*plain.values(), prior, *(bayes[name] for name in bayes if name not in {*plain, "prior"})]
    )


class _Package(ModuleType):
    """The package is also the function: `dc.mixed(formula, data)`, whatever was imported first."""

    def __call__(self, *arguments: Any, prior: Any = None, **options: Any) -> Any:
        """REML or ML, as `mixed.mixed`; with a `prior`, the posterior, as `discreet.bayes.blmm.bayes_mixed`."""
        if prior is not None:
            from discreet.bayes.blmm.estimate import bayes_mixed

            return bayes_mixed(*arguments, prior=prior, **options)
        from discreet.errors import FitError
        from discreet.mixed.estimate import mixed

        if options.get("method") in ("exact", "gibbs"):
            raise FitError(
                f"method={options['method']!r} without a prior: there is no posterior. REML and ML need no prior. "
                "Give prior=Prior(nu=12), or leave the method out."
            )
        return mixed(*arguments, **options)


sys.modules[__name__].__class__ = _Package
