"""What `import discreet as dc` gives: reachable, documented to the last parameter, one keyword for one idea."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.words.errors import BudgetExceeded, PrivacyError
from faults_of import about

FUNCTIONS = [name for name in dc.__all__ if inspect.isfunction(getattr(dc, name))]
CLASSES = [name for name in dc.__all__ if inspect.isclass(getattr(dc, name))]
MODULES = [name for name in dc.__all__ if inspect.ismodule(getattr(dc, name))]


def sections(text: str | None) -> dict[str, list[str]]:
    """A NumPy-style docstring by its headings."""
    found: dict[str, list[str]] = {"": []}
    lines, here = inspect.cleandoc(text or "").split("\n"), ""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", after):
            here = line
            found[here] = []
        elif not re.fullmatch("-{3,}", line):
            found[here].append(line)
    return found


def documented(value: Any) -> set[str]:
    texts = [value.__doc__, value.__init__.__doc__] if inspect.isclass(value) else [value.__doc__]
    lines = [line for text in texts for part in ("Parameters", "Attributes") for line in sections(text).get(part, [])]
    heads = [line.split(" : ")[0] for line in lines if re.match(r"\w[\w, ]* : ", line)]
    return {name.strip() for head in heads for name in head.split(",")}


def test_every_function_that_releases_is_among_the_doors() -> None:
    assert {name for name in FUNCTIONS if "ledger" in inspect.signature(getattr(dc, name)).parameters} - {
        "synthesize",  # these two read a release, and its line in the ledger
        "synthetic_responses",
    } == {*DOORS}


def test_the_names_are_of_three_kinds() -> None:
    assert sorted([*FUNCTIONS, *CLASSES, *MODULES]) == dc.__all__
    assert MODULES == ["errors", "simulate"]
    assert issubclass(dc.errors.BudgetExceeded, dc.DiscreetError)
    assert {"errors", "simulate", "run_plan"} <= set(dir(dc))


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_every_parameter_is_explained(name: str) -> None:
    value = getattr(dc, name)
    if inspect.isclass(value) and issubclass(value, Exception):
        return
    asked = set(inspect.signature(value).parameters) - {"args", "kwargs"}
    assert not asked - documented(value)
    parts = {"Examples"} if inspect.isclass(value) else {"Examples", "Returns"}
    known = sections(value.__doc__) | (sections(value.__init__.__doc__) if inspect.isclass(value) else {})
    assert not parts - set(known)


def test_the_test_of_parameters_sees_one_that_is_missing() -> None:
    def door(data: Any, epsilon: float) -> None:
        """Do it.

        Parameters
        ----------
        data : epsilon : is named here as text only.
        """

    assert documented(door) == {"data"}


DOORS = [name for name in FUNCTIONS if hasattr(getattr(dc, name), "ask")]
PRICES = {"release_draw": "rho", "release_audited_draw": "audited"}  # a draw has the price of its posterior, not any
PAYMENT = ["account", "ledger", "budget", "dataset", "name", "seed"]


@pytest.mark.parametrize("name", DOORS)
def test_one_keyword_for_one_idea(name: str) -> None:
    """Every door pays in the same words; `unit` is whom to protect, and no door has another one."""
    parameters = inspect.signature(getattr(dc, name)).parameters
    assert [key for key in parameters if key in PAYMENT] == PAYMENT
    assert PRICES.get(name, "epsilon") in parameters and "unit" not in parameters
    assert all(parameters[key].kind is inspect.Parameter.KEYWORD_ONLY for key in PAYMENT)


OTHER_WORDS = {"rng": "seed", "random_state": "seed", "lower": "bounds", "upper": "bounds", "directory": "folder"}


def functions_of(value: Any) -> list[Any]:
    if not inspect.isclass(value):
        return [value]
    return [member for name, member in inspect.getmembers(value, callable) if not name.startswith("_")]


def test_no_documented_function_has_a_second_word_for_an_idea() -> None:
    """Of every page of the reference; units of privacy have two ends, and their functions are their own."""
    spec = importlib.util.spec_from_file_location("public", PLAN.parents[1] / "docs" / "public.py")
    assert spec and spec.loader
    public = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(public)
    names = [name for group in ("names", "types", "readers", "data") for name in public.groups()[group]]
    found = {
        f"{name}: {function.__name__}({key}=...) is {OTHER_WORDS[key]}"
        for name in names
        for function in functions_of(public.value(name))
        if inspect.isfunction(function) or inspect.ismethod(function)
        for key in inspect.signature(function).parameters
        if key in OTHER_WORDS
    }
    assert len(names) > 80 and not found


def line() -> dict[str, np.ndarray]:
    x = np.linspace(-1, 1, 900)
    return {"x": x, "y": 2 * x + np.random.default_rng(0).normal(size=900)}


CALLS: dict[str, Callable[..., Any]] = {
    "posterior_probability": lambda **pay: dc.posterior_probability("y ~ x", line(), "x", at=1, epsilon=40, **pay),
    "posterior_quantile": lambda **pay: dc.posterior_quantile("y ~ x", line(), "x", probability=0.5, epsilon=40, **pay),
    "posterior_interval": lambda **pay: dc.posterior_interval("y ~ x", line(), "x", epsilon=40, **pay),
    "objective_perturbation": lambda **pay: dc.objective_perturbation(
        "y ~ x", line(), bounds=(-6, 6), norm=2, penalty=1, epsilon=40, **pay
    ),
    "release_mixed": lambda **pay: dc.release_mixed("y ~ x", line(), epsilon=40, bounds=(-6, 6), public=["x"], **pay),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_door_checks_with_the_arguments_it_releases_with(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Price and expected error before paying, nothing spent; asked without data, the same question."""
    call, account = CALLS[name], dc.Account.open(None, dataset="d", unit=dc.Rows(-6, 6, "y"), budget=dc.Pure(50))
    door = getattr(dc, name)
    monkeypatch.setattr(dc, name, door.check)
    check = call(account=account)
    assert check.guarantee.loss == dc.Pure(40) and check.remaining == account.remaining == dc.Pure(50)
    monkeypatch.setattr(dc, name, lambda formula, data, *rest, **asked: door.ask(formula, *rest, **asked))
    assert str(call(account=account).check(line())) == str(check)


@pytest.mark.parametrize("name", DOORS)
def test_the_arguments_of_a_door_are_written_once(name: str) -> None:
    """What is asked has the words and the arguments of what is released, but for the data."""
    door = getattr(dc, name)
    asked, released = inspect.signature(door.ask), inspect.signature(door)
    assert door.ask.__doc__ == door.__doc__
    assert [key for key in released.parameters if key != "data"] == [*asked.parameters]
    assert f"Question[{released.return_annotation}]" == asked.return_annotation


@pytest.mark.parametrize("name", CALLS)
def test_a_ledger_pays_at_every_door(name: str, tmp_path: Path) -> None:
    ledger, call = tmp_path / "ledger.db", CALLS[name]
    with pytest.raises(PrivacyError, check=about("dataset")):
        call(ledger=ledger, budget=70)
    with pytest.raises(PrivacyError, check=about("budget")):
        call(ledger=ledger, dataset="line")
    with pytest.raises(PrivacyError, check=about("ledger")):
        call(dataset="line")
    assert not ledger.exists()
    assert call(ledger=ledger, dataset="line", budget=70, name="first").entry.dataset == "line"
    with pytest.raises(BudgetExceeded):
        call(ledger=ledger, dataset="line", name="second")
    with dc.Ledger.open(ledger, read_only=True) as found:
        assert {entry.release for entry in found.entries() if entry.release} == {"first"}


def test_a_split_is_shares_at_every_door() -> None:
    halves = {"(Intercept)": "1/2", "x": "1/2"}
    found = dc.posterior_probability("y ~ x", line(), ["(Intercept)", "x"], at=1, epsilon=8, split=halves, seed=1)
    assert found.guarantee.loss == dc.Pure(8)
    with pytest.raises(PrivacyError, check=about("split")):
        dc.posterior_probability("y ~ x", line(), ["(Intercept)", "x"], at=1, epsilon=8, split=dict.fromkeys(halves, 4))


def jobs() -> Any:
    rows = [
        {"workplace": name, "place": place, "worker": f"{name}{i}", "sex": "FM"[i % 2]}
        for place, name, size in [("01", "a", 40), ("01", "b", 30), ("02", "c", 60)]
        for i in range(size)
    ]
    return dc.read_jobs(pa.Table.from_pylist(rows), schema=dc.Schema(["place"], {"sex": ["F", "M"]}))


PLAN = Path(__file__).parents[2] / "examples" / "jobs.toml"


def met() -> dict[str, Any]:
    """What a user meets on the way to a release, and at its end."""
    session = dc.Session(jobs(), unit=dc.Establishments(alpha=0.1), budget=40, seed=1)
    query, workload = session.count(by=["place", "sex"]), session.marginals(["place"], ["place", "sex"])
    release = query.release(epsilon=4)
    bayes = dc.mixed("y ~ x + (1 | g)", line() | {"g": np.arange(900) % 9}, prior=dc.Prior())
    mechanism = dc.calibrate("log-laplace", unit=dc.Establishments("0.1"), epsilon=2)
    found = {
        "jobs": session.jobs,
        "schema": session.jobs.schema,
        "session": session,
        "account": session.account,
        "ledger": session.account.ledger,
        "entry": release.entry,
        "query": query,
        "check": query.check(epsilon=4),
        "workload": workload,
        "releases": workload.release(epsilon=4),
        "offer": query.offer(epsilon=1),
        "offers": workload.offer(epsilon=1),
        "question": dc.posterior_interval.ask("y ~ x", "x", epsilon=40),
        "model question": dc.release_mixed.ask("y ~ x", epsilon=4, bounds=(-6, 6), public=["x"]),
        "expected": query.check(epsilon=4).expected,
        "expected of a model": dc.release_mixed.check(
            "y ~ x", line(), epsilon=4, bounds=(-6, 6), public=["x"]
        ).expected,
        "expected of a summary": dc.posterior_interval.check("y ~ x", line(), "x", epsilon=40).expected,
        "expected of a fit": CALLS["objective_perturbation"]().check.expected,
        "checks": workload.check(epsilon=4)[0],
        "release": release,
        "guarantee": release.guarantee,
        "loss": release.guarantee.loss,
        "unit": session.unit,
        "plan": dc.read_plan(PLAN),
        "plan check": dc.check_plan(PLAN),
        "bayes": bayes,
        "fit": bayes.fit,
        "effects": bayes.fit.effects["g"],
        "coefficient": bayes.coefficient("x"),
        "variance": bayes.variance(),
        "effect": bayes.effect("1"),
        "audit": dc.audit_posterior(bayes, rows="influential"),
        "mechanism": mechanism,
        "verified": dc.verify(mechanism),
        "blackbox": dc.blackbox(lambda data: data + np.random.default_rng().laplace(), 0, 1, claimed=1, trials=2000),
        "priors": (dc.Prior(), dc.GPrior(), dc.Conjugate(), dc.SemiConjugate()),
    }
    return found | {name: call(seed=1) for name, call in CALLS.items()}


def test_what_a_user_meets_prints_a_line_or_a_small_table() -> None:
    for name, value in met().items():
        for text in (repr(value), str(value)):
            assert not re.search(r" at 0x[0-9a-f]+|object at|array\(", text), (name, text[:300])
            assert len(text) <= 2000 and text.count("\n") <= 25, (name, len(text))
        assert len(repr(value)) <= 260, (name, len(repr(value)), repr(value)[:700])
