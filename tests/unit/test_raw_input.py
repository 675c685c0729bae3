"""Arguments of the wrong kind: an error of ours that names the argument, and nothing accepted in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.words.errors import DiscreetError
from faults_of import about

ROWS = {"workplace": ["a", "a", "b"], "worker": [1, 2, 3], "place": ["x", "x", "y"], "sex": ["F", "M", "F"]}
SCHEMA = dc.Schema(["place"], {"sex": ["F", "M"]})
PANEL = {"series": ["a"] * 30 + ["b"] * 30, "t": [*range(30)] * 2, "value": [*range(30), *range(3, 33)]}
JOBS = dc.read_jobs(ROWS, schema=SCHEMA)
DATA = {"y": np.linspace(0, 1, 60), "x": np.arange(60) % 7, "g": np.arange(60) % 5}

FIT = dc.mixed("y ~ x + (1 | g)", {"y": np.sin(np.arange(60)) + np.arange(60) % 5, **{k: DATA[k] for k in "xg"}})
PRIVATE = dc.release_mixed("y ~ x + (1 | g)", DATA, epsilon=9, public=["x", "g"], bounds=(0, 1), seed=1)


def session(**given: Any) -> dc.Session:
    return dc.Session(JOBS, unit=dc.Establishments(0.1), budget=100, **given)


CASES: list[tuple[str, Callable[[], Any]]] = [
    ("schema.worker_attributes", lambda: dc.Schema(worker_attributes=["SEX"])),  # type: ignore[arg-type]
    ("schema", lambda: dc.read_jobs(ROWS, schema=["place"])),  # type: ignore[arg-type]
    ("seed", lambda: session(seed=-1)),
    ("seed", lambda: session(seed="x")),
    ("seed", lambda: session(seed=1.5)),
    ("ledger", lambda: session(ledger=3, dataset="jobs")),
    ("split", lambda: session().marginals("place", ["place", "sex"]).release(epsilon=2, split=3)),  # type: ignore[arg-type]
    ("add_up", lambda: session().marginals("place", []).release(epsilon=2, add_up="x")),  # type: ignore[arg-type]
    ("path", lambda: session(seed=1).count("place").release(epsilon=1).save(None)),  # type: ignore[arg-type]
    ("towards", lambda: session(seed=1).count(["place", "sex"]).release(epsilon=2).shrunk(None)),  # type: ignore[arg-type]
    ("of", lambda: session().sum(None)),  # type: ignore[arg-type]
    ("of", lambda: session().mean(["x"])),  # type: ignore[arg-type]
    ("public", lambda: dc.release_mixed("y ~ x + (1 | g)", DATA, epsilon=1, public=None, bounds=(0, 1))),
    ("engine", lambda: dc.read_jobs(ROWS, schema=SCHEMA, engine="spark")),  # type: ignore[arg-type]
    ("validate", lambda: dc.read_jobs(ROWS, schema=SCHEMA, validate="no")),  # type: ignore[arg-type]
    ("time", lambda: dc.read_histories(ROWS, schema=SCHEMA, quarters=[1, 2], time=["q"])),  # type: ignore[arg-type]
    ("fpr", lambda: dc.exception_report(PANEL, fpr="0.2")),  # type: ignore[arg-type]
    ("fpr", lambda: dc.exception_report(PANEL, fpr=(0.0, None))),  # type: ignore[arg-type]
    ("methods", lambda: dc.exception_report(PANEL, methods="naive")),  # type: ignore[arg-type]
    ("rules", lambda: dc.exception_report(PANEL, rules="usual")),  # type: ignore[arg-type]
    ("season", lambda: dc.forecast_panel(PANEL, season="12")),  # type: ignore[arg-type]
    ("periods", lambda: dc.backtest_changes(PANEL, periods=2.5)),  # type: ignore[arg-type]
    ("direction", lambda: dc.compare_large_changes(PANEL, PANEL, direction=["up"])),  # type: ignore[arg-type]
    ("columns", lambda: dc.exception_report(PANEL, columns=["a"])),  # type: ignore[arg-type]
    ("cutoffs", lambda: dc.compare_cutoffs(PANEL, PANEL, cutoffs=0.9)),  # type: ignore[arg-type]
    ("series", lambda: dc.release_mixed("y ~ x", DATA, epsilon=1, public=["x"], bounds=(0, 1), series=3)),  # type: ignore[arg-type]
    ("account", lambda: dc.release_mixed("y ~ x", DATA, epsilon=1, public=["x"], bounds=(0, 1), account="mine")),
    ("formula", lambda: dc.posterior_interval(None, DATA, "x", epsilon=10)),  # type: ignore[arg-type]
    ("scale", lambda: dc.posterior_quantile("y ~ x", DATA, "x", probability=0.5, epsilon=9, scale="x")),
    ("coefficient", lambda: dc.posterior_interval("y ~ x", DATA, None, epsilon=10)),  # type: ignore[arg-type]
    ("coefficient", lambda: dc.posterior_probability("y ~ x", DATA, None, at=0, epsilon=10)),  # type: ignore[arg-type]
    ("penalty", lambda: dc.objective_perturbation("y ~ x", DATA, bounds=(0, 1), epsilon=1)),  # type: ignore[call-arg]
    ("penalty", lambda: dc.objective_perturbation.ask("y ~ x", bounds=(0, 1), epsilon=1)),  # type: ignore[call-arg]
    ("penalty", lambda: dc.objective_perturbation.check("y ~ x", DATA, bounds=(0, 1), epsilon=1)),  # type: ignore[call-arg]
    ("data", lambda: dc.posterior_interval("y ~ x", coefficient="x", epsilon=1)),  # type: ignore[call-arg]
    ("at", lambda: dc.posterior_probability("y ~ x", DATA, "x", epsilon=1)),  # type: ignore[call-arg]
    ("epsilon", lambda: dc.posterior_quantile("y ~ x", DATA, "x", probability=0.5)),  # type: ignore[call-arg]
    ("formula", lambda: dc.mixed(data=DATA)),  # type: ignore[call-arg]
    ("name", lambda: FIT.se["nope"]),
    ("name", lambda: FIT.fixed["nope"]),
    ("name", lambda: FIT.variances["nope"]),
    ("name", lambda: PRIVATE.se["nope"]),
    ("name", lambda: PRIVATE.fixed["X"]),
    ("name", lambda: PRIVATE.variances["nope"]),
]


@pytest.mark.parametrize(("named", "ask"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_the_argument_is_named(named: str, ask: Callable[[], Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DiscreetError, check=about(named)):
        ask()
    assert not list(tmp_path.iterdir())
