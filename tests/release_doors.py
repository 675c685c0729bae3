"""Every way to a release from Python, by name, on small data; and a check that none is missing.

A door is called with the keywords of who pays (`dataset`, `ledger`, `budget`, `name`) and gives what its user gets.
What is listed is compared with the registries of the code: the methods of a session, the functions that release
(`releases`), the mechanisms, and the families and methods of private models.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.models.linear.families.gaussian import GAUSSIAN
from discreet.models.linear.private.request import Method
from discreet.plan.values import FAMILIES as FAMILIES_OF_PLANS
from discreet.session import Session
from discreet.tables.mechanisms.registry import OURS

Door = Callable[..., Any]
SCHEMA = dc.Schema(["place"], {"sex": ["F", "M"]}, magnitudes={"pay": 100})
STRONG = dc.Establishments(alpha="0.1")
WEAK = dc.Establishments("0.1", "weak")
PLACES = {"workplace": ["a", "b", "c", "d"], "place": ["01", "01", "02", "02"]}
JOBS = {
    "workplace": list("aaaaaabbbbccd"),
    "worker": list(range(13)),
    "place": ["01"] * 10 + ["02"] * 3,
    "sex": ["F", "M"] * 6 + ["F"],
    "pay": [float(n) for n in range(20, 33)],
}
HISTORY = {
    "workplace": list("aaaabbbbccccdd"),
    "worker": [1, 1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8, 9],
    "quarter": ["q1", "q2", "q3", "q1", "q1", "q2", "q2", "q3", "q2", "q3", "q1", "q1", "q3", "q3"],
}
"""Jobs, and histories of jobs; what is confidential in them a test may replace."""


def rows(n: int = 120) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 1, n)
    y = 1 + x + 0.3 * rng.uniform(-1, 1, n)
    g = [f"g{i % 6}" for i in range(n)]
    when = [i // 6 for i in range(n)]
    return {"x": x, "y": np.clip(y, -3, 3), "g": g, "t": when, "b": (y > 1).astype(float), "k": np.round(np.abs(y))}


def session(jobs: Any, unit: Any = STRONG, *, ledger: Any, dataset: str | None, budget: Any, **_: Any) -> Session:
    return Session(jobs, unit=unit, budget=budget, ledger=ledger, dataset=dataset)


def jobs() -> Any:
    return dc.read_jobs(dict(JOBS), workplaces=dict(PLACES), schema=SCHEMA)


def histories() -> Any:
    return dc.read_histories(
        dict(HISTORY), quarters=["q1", "q2", "q3"], workplaces=dict(PLACES), schema=dc.Schema(["place"], {})
    )


def table(method: str, *asked: Any, read: str = "jobs", unit: Any = STRONG, **ask: Any) -> Door:
    """A table of a session."""

    def door(*, name: str | None = None, **payer: Any) -> Any:
        query = getattr(session(globals()[read](), unit, **payer), method)(*asked)
        return query.release(**{"epsilon": 4} | ask, name=name)

    return door


def of_rows(function: str, *asked: Any, formula: str = "y ~ x", **ask: Any) -> Door:
    """A function that releases something of rows."""

    def door(*, budget: Any, ledger: Any, **payer: Any) -> Any:
        paid = {"budget": budget, "ledger": ledger} if ledger is not None else {}
        return getattr(dc, function)(formula, rows(), *asked, **ask, **paid, **payer)

    return door


MECHANISMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "polynomial": (STRONG, "place", {}),
    "joint-polynomial": (STRONG, ["place", "sex"], {}),
    "joint-rings": (STRONG, ["place", "sex"], {}),
    "ladder": (STRONG, "place", {"epsilon": 1}),
    "log-laplace": (STRONG, "place", {}),
    "smooth-gamma": (STRONG, "place", {}),
    "smooth-laplace": (STRONG, "place", {"delta": "1e-3"}),
    "staircase": (STRONG, "place", {"epsilon": 1}),
    "two-sizes": (STRONG, "place", {"epsilon": 1}),
    "weak-joint": (WEAK, ["place", "sex"], {}),
    "weak-unions": (WEAK, ["place", "sex"], {}),
    "edge-laplace": (dc.Workers(), ["place", "sex"], {}),
    "node-truncation": (dc.EstablishmentNodes(100), ["place", "sex"], {}),
}
INTERNAL = {"down-sensitivity"}  # a step of other mechanisms: nobody can ask for a release by it
SESSION = {
    "count": table("count", ["place", "sex"], scale_share="1/4"),
    "sum": table("sum", "pay", "place"),
    "mean": table("mean", "pay", "place"),
    "flows": table("flows", "q2", "place", read="histories"),
    "changes": table("changes", ["q1", "q2"], "place", read="histories"),
    "marginals": table("marginals", ["place"], ["place", "sex"]),
}
BOUNDS = (-3.0, 3.0)
FUNCTIONS = {
    "objective_perturbation": of_rows(
        "objective_perturbation", bounds=BOUNDS, penalty=10.0, epsilon=4, public=["x"], norm=2.0
    ),
    "posterior_interval": of_rows("posterior_interval", "x", epsilon=30, partitions=8),
    "posterior_probability": of_rows("posterior_probability", "x", at=1.0, epsilon=4, partitions=8),
    "posterior_quantile": of_rows("posterior_quantile", "x", probability=0.5, epsilon=30, partitions=8),
    "release_audited_draw": of_rows(
        "release_audited_draw", formula="y ~ x + (1 | g)", prior={"nu": 12}, audited=1, public=["x", "g"], bounds=BOUNDS
    ),
    "release_draw": of_rows(
        "release_draw",
        formula="y ~ x + (1 | g)",
        variances={"g": 1.0, "Residual": 1.0},
        sd=1.0,
        rho=1,
        public=["x", "g"],
        bounds=BOUNDS,
    ),
    "release_mixed": of_rows("release_mixed", formula="y ~ x + (1 | g)", epsilon=8, public=["x", "g"], bounds=BOUNDS),
}
PUBLIC = ["x", "g", "t"]
MODELS = {
    "moments": FUNCTIONS["release_mixed"],
    "paper": of_rows(
        "release_mixed", formula="y ~ x + (1 | g)", method="paper", epsilon=8, public=PUBLIC, bounds=BOUNDS
    ),
    "strict": of_rows(
        "release_mixed", formula="y ~ x + (1 | g)", method="strict", epsilon=8, public=PUBLIC, bounds=BOUNDS
    ),
}
FAMILIES = {
    "gaussian": of_rows(
        "release_mixed", formula="y ~ lag(y, 1) + x", epsilon=8, series=["g"], time="t", public=PUBLIC, bounds=BOUNDS
    ),
    "binomial": of_rows("release_mixed", formula="b ~ x", family="binomial", epsilon=1, public=PUBLIC),
    "poisson": of_rows("release_mixed", formula="k ~ x", family="poisson", epsilon=8, public=PUBLIC, bounds=(0, 8)),
}


BUDGETS = {
    "mechanism smooth-laplace": dc.Approximate(200, "1e-2"),
    "release_draw": dc.Concentrated(50),
}
"""What opens the budget of a door; 200 in epsilon elsewhere."""


@cache
def doors() -> dict[str, Door]:
    """All of them."""
    found = {f"session.{name}": door for name, door in SESSION.items()}
    found |= {
        f"mechanism {name}": table("count", by, unit=unit, mechanism=name, **ask)
        for name, (unit, by, ask) in MECHANISMS.items()
    }
    return (
        found
        | FUNCTIONS
        | {f"model by {name}": door for name, door in MODELS.items()}
        | {f"model of {name}": door for name, door in FAMILIES.items()}
    )


@cache
def releasing() -> dict[str, Any]:
    """Every function that `releases` made, by name, found in the text of all modules."""
    source, found = Path(dc.__file__).parent, {}
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            named = [getattr(each, "func", each) for each in getattr(node, "decorator_list", [])]
            if "releases" in [getattr(each, "id", getattr(each, "attr", "")) for each in named]:
                module = ".".join(("discreet", *path.relative_to(source).with_suffix("").parts))
                found[node.name] = getattr(importlib.import_module(module), node.name)
    return found


def families() -> set[str]:
    """Those of private models; a model without one is gaussian."""
    return {GAUSSIAN.name, *FAMILIES_OF_PLANS}


def registered() -> Iterator[tuple[str, set[str], set[str]]]:
    """For each registry what it has, and what is listed here."""
    methods = {
        name
        for name, method in inspect.getmembers(Session, inspect.isfunction)
        if not name.startswith("_") and hasattr(typing.get_type_hints(method).get("return"), "release")
    }
    yield "methods of a session", methods, set(SESSION)
    yield "functions that release", set(releasing()), set(FUNCTIONS)
    yield "families of private models", families(), set(FAMILIES)
    yield "mechanisms", {kind.name for kind in OURS}, set(MECHANISMS) | INTERNAL
    yield "methods of private models", set(typing.get_args(Method)), set(MODELS)
