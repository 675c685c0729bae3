"""discreet: statistics from confidential data, with proved privacy and the cost in accuracy shown first.

The map, from what you have to what you publish:

* data: `read_jobs`, `Schema`, `check_data` (for their owner), `simulate` (realistic data, such as `dc.simulate.lodes`)
* whom to protect: `Establishments`, `Workers`, `EstablishmentNodes`, `Rows`, `Groups`, `AnyRow`
* what it may cost: `Pure`, `Approximate`, `Concentrated`; what was spent: `Ledger`
* tables of counts: `Session`, then `session.count(...)`, `.check(...)`, `.release(...)`
* models: `mixed` (lme4's syntax and numbers), with `prior=Prior(...)` its posterior; `release_mixed` under a loss
* posterior summaries: `posterior_probability`, `posterior_quantile`, `posterior_interval`, `objective_perturbation`
* large changes: `forecast_panel`, `compare_large_changes`, `compare_cutoffs`, `exception_report`, `backtest_changes`,
  `changes_between` of two private releases
* plans, the signed route: `read_plan`, `check_plan`, `run_plan`
* after a release: `synthesize`, jobs that agree with it, from its folder alone; `synthetic_responses` of a model
* is the claim true?: `verify` on a mechanism from `calibrate`, `blackbox` on anything that runs
* what does one row show?: `audit_posterior` on a fit with a prior, `monte_carlo_audit` as published
* errors: `DiscreetError` and its children in `errors`

Names are loaded on first use, so `import discreet` is quick and needs none of the optional parts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = ("errors", "simulate")

_HOMES = {
    "Account": "discreet.release.account",
    "AnyRow": "discreet.privacy.units",
    "Approximate": "discreet.privacy.losses",
    "Concentrated": "discreet.privacy.losses",
    "Conjugate": "discreet.models.bayes.conjugate",
    "DiscreetError": "discreet.words.errors",
    "EstablishmentNodes": "discreet.privacy.units",
    "Establishments": "discreet.privacy.units",
    "GPrior": "discreet.models.bayes.conjugate",
    "Guarantee": "discreet.privacy.guarantee",
    "Ledger": "discreet.ledger",
    "Prior": "discreet.models.bayes.blmm.prior",
    "Pure": "discreet.privacy.losses",
    "Groups": "discreet.privacy.units",
    "Rows": "discreet.privacy.units",
    "Schema": "discreet.data.schema",
    "SemiConjugate": "discreet.models.bayes.conjugate",
    "Session": "discreet.session",
    "Workers": "discreet.privacy.units",
    "audit_posterior": "discreet.audit.posterior",
    "backtest_changes": "discreet.changes.backtest",
    "bayes_mixed": "discreet.models.bayes.blmm",
    "blackbox": "discreet.audit.blackbox",
    "check_plan": "discreet.plan.doors",
    "changes_between": "discreet.utility.between",
    "compare_cutoffs": "discreet.changes.cutoffs",
    "compare_large_changes": "discreet.changes.compare",
    "calibrate": "discreet.tables.calibration",
    "exception_report": "discreet.changes.exceptions",
    "forecast_panel": "discreet.changes.forecasters",
    "mixed": "discreet.models.mixed",
    "monte_carlo_audit": "discreet.audit.influential",
    "objective_perturbation": "discreet.models.bayes.erm",
    "posterior_interval": "discreet.models.bayes.interval",
    "posterior_probability": "discreet.models.bayes.probability",
    "posterior_quantile": "discreet.models.bayes.quantile",
    "check_data": "discreet.data_check",
    "read_histories": "discreet.data.histories",
    "read_jobs": "discreet.data.jobs",
    "read_plan": "discreet.plan.reading",
    "release_audited_draw": "discreet.models.bayes.audited_draw",
    "release_draw": "discreet.models.bayes.posterior_draw",
    "release_mixed": "discreet.models.linear.private.release",
    "run_plan": "discreet.plan.doors",
    "synthesize": "discreet.synthetic.microdata",
    "synthetic_responses": "discreet.synthetic.responses",
    "verify": "discreet.privacy.verify",
}

__all__ = sorted([*_HOMES, *_MODULES])  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"discreet.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no name {name!r}; it has: {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
