"""Every public function, every argument, values of other kinds: an error of ours that names its subject, or an answer.

The table has all names of `discreet` that can be called, and the methods of what they give. A name that is new and not
in the table is red.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.words.errors import DiscreetError

NONSENSE: dict[str, Any] = {
    "an object": object(),
    "an array": np.arange(3),
    "lists": [["a"], ["b"]],
    "400 digits": 10**400,
    "bytes": b"x",
}
"""No argument takes these: they are refused before any work."""

OTHERS: dict[str, Any] = {
    "None": None,
    "3": 3,
    "-1": -1,
    "1.5": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "text": "x",
    "no text": "",
    "no list": [],
    "[None]": [None],
    "no table": {},
    "True": True,
    "a set": {"a"},
    "complex": 1j,
    "a table": {"x": [1.0, 2.0]},
}

Door = tuple[Callable[..., Any], dict[str, Any]]
NOT_CALLED = {
    "DiscreetError": "errors are raised, not called",
    "Guarantee": "releases make it",
    "errors": "a module",
    "simulate": "a module",
}
WITHOUT_ARGUMENTS = {"AnyRow", "Workers"}
SLOW = {"audit_posterior", "monte_carlo_audit", "backtest_changes"}
"""Accepted calls of these take seconds."""


@cache
def doors() -> dict[str, Door]:
    """Each door with arguments that it takes."""
    rng = np.random.default_rng(0)
    rows = {"workplace": ["a"] * 8 + ["b"] * 12, "worker": [*range(20)], "place": ["x"] * 8 + ["y"] * 12}
    rows |= {"sex": ["F", "M"] * 10, "pay": np.linspace(1, 100, 20)}
    schema = dc.Schema(["place"], {"sex": ["F", "M"]}, magnitudes={"pay": 100})
    quarters = {"workplace": ["a", "a", "b"], "worker": [7, 8, 9], "quarter": [1, 2, 3], "place": ["p", "p", "q"]}
    jobs = dc.read_jobs(rows, schema=schema)
    places = dc.Schema(["place"], {})
    histories = dc.read_histories(quarters, schema=places, time="quarter", quarters=[1, 2, 3])
    unit = dc.Establishments("0.1")
    session = dc.Session(jobs, unit=unit, budget=10_000, seed=1)
    flows = dc.Session(histories, unit=unit, budget=10_000, seed=1)
    n = 200
    data = {"y": rng.uniform(0, 1, n), "x": rng.normal(size=n), "g": np.arange(n) % 10, "s": np.repeat(range(20), 10)}
    panel = {"series": np.repeat(["a", "b", "c"], 30), "t": np.tile(range(30), 3), "value": rng.normal(99, 5, 90)}
    forecasts = dc.forecast_panel(panel, methods=["naive"])
    model = {"formula": "y ~ x + (1 | g)", "data": data}
    line = {"formula": "y ~ x", "data": data, "coefficient": "x", "epsilon": 4}
    fit = dc.mixed(**model)
    bayes = dc.mixed(**model, prior=dc.Prior())
    public = {"public": ["x", "g"], "bounds": (0, 1)}
    private = dc.release_mixed(**model, **public, epsilon=5, seed=1)
    table = session.count(["place", "sex"]).release(epsilon=2)
    mechanism = dc.calibrate("polynomial", unit=unit, epsilon=2)
    ledger = dc.Ledger.in_memory()
    ledger.open_budget(dataset="kept", unit=dc.Workers(), total=dc.Pure(9))
    entry = ledger.charge(dataset="kept", unit=dc.Workers(), release="r", loss=dc.Pure(1), details={})
    sums, means, several = session.sum("pay", "place"), session.mean("pay", "place"), session.marginals("place", [])
    count, of_flows, of_changes = session.count("place"), flows.flows(2, "place"), flows.changes([1, 2], "place")
    return {
        "Account": (dc.Account, {"ledger": ledger, "dataset": "kept", "unit": dc.Workers()}),
        "Account.open": (dc.Account.open, {"ledger": None, "dataset": "d", "unit": dc.Workers(), "budget": dc.Pure(1)}),
        "Approximate": (dc.Approximate, {"epsilon": 1, "delta": "1e-6"}),
        "Concentrated": (dc.Concentrated, {"rho": 1}),
        "Conjugate": (dc.Conjugate, {}),
        "EstablishmentNodes": (dc.EstablishmentNodes, {"theta": 5}),
        "Establishments": (dc.Establishments, {"alpha": "0.1"}),
        "GPrior": (dc.GPrior, {}),
        "Groups": (dc.Groups, {"by": "g", "lower": 0, "upper": 1, "response": "y"}),
        "Ledger": (dc.Ledger.open, {"ledger": "ledger.db"}),
        "Ledger.open_budget": (
            ledger.open_budget,
            {"dataset": "kept", "unit": dc.Workers(), "total": dc.Pure(9)},
        ),
        "Ledger.change_budget": (ledger.change_budget, {"dataset": "kept", "reason": "a", "total": dc.Pure(8)}),
        "Ledger.charge": (
            ledger.charge,
            {"dataset": "kept", "unit": dc.Workers(), "release": "r", "loss": dc.Pure(1), "details": {}},
        ),
        "Ledger.publish": (ledger.publish, {"entry": entry, "files": {"a": "0" * 64}}),
        "Ledger.remaining": (ledger.remaining, {"dataset": "kept", "unit": dc.Workers()}),
        "Prior": (dc.Prior, {}),
        "Pure": (dc.Pure, {"epsilon": 1}),
        "Rows": (dc.Rows, {"lower": 0, "upper": 1, "response": "y"}),
        "Schema": (dc.Schema, {"workplace_attributes": ["place"], "worker_attributes": {"sex": ["F", "M"]}}),
        "SemiConjugate": (dc.SemiConjugate, {}),
        "Session": (dc.Session, {"jobs": jobs, "unit": unit, "budget": 9}),
        "Session.count": (session.count, {"by": "place"}),
        "Session.sum": (session.sum, {"of": "pay", "by": "place"}),
        "Session.mean": (session.mean, {"of": "pay", "by": "place"}),
        "Session.flows": (flows.flows, {"quarter": 2, "by": "place"}),
        "Session.changes": (flows.changes, {"quarters": [1, 2], "by": "place"}),
        "Session.marginals": (lambda first="place", **asked: session.marginals(first, **asked), {"first": "place"}),
        "count.check": (count.check, {"epsilon": 1}),
        "count.release": (count.release, {"epsilon": 1}),
        "sum.check": (sums.check, {"epsilon": 1}),
        "sum.release": (sums.release, {"epsilon": 1}),
        "mean.check": (means.check, {"epsilon": 2}),
        "mean.release": (means.release, {"epsilon": 2}),
        "marginals.check": (several.check, {"epsilon": 2}),
        "marginals.release": (several.release, {"epsilon": 2}),
        "flows.check": (of_flows.check, {"epsilon": 4}),
        "flows.release": (of_flows.release, {"epsilon": 4}),
        "changes.check": (of_changes.check, {"epsilon": 4}),
        "changes.release": (of_changes.release, {"epsilon": 4}),
        "release.save": (table.save, {"path": "out"}),
        "release.shrunk": (table.shrunk, {"towards": ["place"]}),
        "audit_posterior": (dc.audit_posterior, {"model": bayes, "bins": 5, "examined": 2}),
        "backtest_changes": (dc.backtest_changes, {"panel": panel, "methods": ["naive"], "periods": 2}),
        "bayes_mixed": (dc.bayes_mixed, model),
        "blackbox": (dc.blackbox, {"mechanism": lambda data, rng=None: 0.0, "a": 1, "b": 2, "trials": 1_000}),
        "calibrate": (dc.calibrate, {"name": "polynomial", "unit": unit, "epsilon": 2}),
        "changes_between": (dc.changes_between, {"early": table, "late": table}),
        "check_data": (dc.check_data, {"source": rows, "schema": schema}),
        "check_plan": (dc.check_plan, {"plan": "absent.toml"}),
        "compare_cutoffs": (dc.compare_cutoffs, {"panel": panel, "forecasts": forecasts}),
        "compare_large_changes": (
            dc.compare_large_changes,
            {"panel": panel, "forecasts": forecasts, "resamples": 20},
        ),
        "exception_report": (dc.exception_report, {"panel": panel, "methods": ["naive"]}),
        "forecast_panel": (dc.forecast_panel, {"panel": panel, "methods": ["naive"]}),
        "mixed": (dc.mixed, model),
        "mixed with a prior": (dc.mixed, model | {"prior": dc.Prior()}),
        "mixed of shares": (
            dc.mixed,
            {"formula": "b ~ x + (1 | g)", "family": "binomial", "data": data | {"b": np.arange(n) % 2}},
        ),
        "fit.confint": (fit.confint, {"method": "wald"}),
        "fit.contrast": (fit.contrast, {"weights": {"x": 1.0}}),
        "fit.predict": (fit.predict, {"data": {"x": [0.0], "g": [1]}}),
        "fit.prediction": (fit.prediction, {}),
        "fit.simulate": (fit.simulate, {}),
        "bayes.coefficient": (bayes.coefficient, {"name": "x"}),
        "bayes.variance": (bayes.variance, {"name": "g"}),
        "private.fitted": (private.fitted, {"data": {"x": [0.0], "g": [1]}}),
        "private.tidy": (private.tidy, {}),
        "monte_carlo_audit": (dc.monte_carlo_audit, {"model": bayes, "draws": 20, "bins": 4}),
        "objective_perturbation": (
            dc.objective_perturbation,
            {"formula": "y ~ x", "data": data, "bounds": (0, 1), "penalty": 1, "norm": 2, "epsilon": 2},
        ),
        "posterior_interval": (dc.posterior_interval, line),
        "posterior_probability": (dc.posterior_probability, line | {"at": 0.1}),
        "posterior_quantile": (dc.posterior_quantile, line | {"probability": 0.5}),
        "read_histories": (
            dc.read_histories,
            {"source": quarters, "schema": places, "time": "quarter", "quarters": [1, 2]},
        ),
        "read_jobs": (dc.read_jobs, {"source": rows, "schema": schema}),
        "read_plan": (dc.read_plan, {"path": "absent.toml"}),
        "release_audited_draw": (
            dc.release_audited_draw,
            model | public | {"prior": dc.Prior(), "audited": 4},
        ),
        "release_draw": (dc.release_draw, model | public | {"variances": {"g": 1, "residual": 1}, "sd": 1, "rho": 1}),
        "release_mixed": (dc.release_mixed, model | public | {"epsilon": 5}),
        "release_mixed.check": (dc.release_mixed.check, model | public | {"epsilon": 5}),
        "run_plan": (dc.run_plan, {"plan": "absent.toml"}),
        "synthesize": (dc.synthesize, {"release": "absent", "out": "out"}),
        "synthetic_responses": (dc.synthetic_responses, {"release": private, "rows": {"x": [0.0], "g": [1]}}),
        "verify": (dc.verify, {"mechanism": mechanism}),
    }


def arguments(name: str) -> list[str]:
    call, base = doors()[name]
    kinds = inspect.signature(call).parameters.values()
    named = [each.name for each in kinds if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return list(dict.fromkeys([*base, *named]))


def raw(name: str, values: dict[str, Any]) -> list[str]:
    """What ends in an error that is not ours, or that has no subject."""
    call, base = doors()[name]
    found = []
    for argument in arguments(name):
        for word, value in values.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(**{**base, argument: value})
            except DiscreetError as error:
                if error.about is None:
                    found.append(f"{argument} = {word}: no subject: {error}")
            except Exception as error:
                found.append(f"{argument} = {word}: {type(error).__name__}: {error}")
    return found


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_public_name_is_in_the_table() -> None:
    tried = {name.partition(".")[0].partition(" ")[0] for name in doors()}
    assert {name for name in dc.__all__ if name not in tried} == {*NOT_CALLED, *WITHOUT_ARGUMENTS}


def test_nonsense_is_refused_by_name() -> None:
    assert not {name: found for name in doors() if (found := raw(name, NONSENSE))}


@pytest.mark.full_size
def test_no_value_of_another_kind_ends_in_an_error_of_python() -> None:
    assert not {name: found for name in doors() if name not in SLOW and (found := raw(name, OTHERS))}
