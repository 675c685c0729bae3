"""Every release of the product under attack, from data to answer: its public function, its defaults, no seed.

Runs through a door are slow, so there are few of them: what shows here is a gross leak (an error, a missing value or a
digit that only one of two neighbours has). The mechanisms behind the doors are attacked with many more runs in
`test_product_mechanisms.py` and `tests/distribution/mixed`. The list of doors is complete: a test compares it with the
places in the source where noise is paid for.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.audit.blackbox import blackbox
from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import read_rows
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.private import release_mixed, strict
from discreet.models.linear.private.partition import fit_partition, partition
from discreet.models.linear.private.public import public_design
from discreet.noise.source import SeededSource
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.tables.release import CountRelease
from source_files import source_files

SURE = 1 - 1e-6
TRIALS = 100  # at epsilon 1 a certain difference is a bound of 1.09


@dataclass(frozen=True)
class Door:
    """A public function with its defaults, and two data sets that it must keep apart."""

    home: str
    call: Callable[[Any], object]
    a: Any
    b: Any
    slow: bool = True


TENTH = dc.Establishments("0.1")


# One establishment of 10 grows by a worker, beside one of 30 in another cell.
def jobs(size: int) -> Any:
    sizes = {"e1": ("north", size), "e2": ("south", 30)}
    rows = [(e, f"{e}-{i}", place, "fm"[i % 2]) for e, (place, n) in sizes.items() for i in range(n)]
    table = pa.table(
        dict(zip(("workplace", "worker", "place", "sex"), map(list, zip(*rows, strict=True)), strict=True))
    )
    places = {"workplace": list(sizes), "place": [place for place, _ in sizes.values()]}
    return dc.read_jobs(table, workplaces=places, schema=dc.Schema(["place"], {"sex": ["f", "m"]}))


def counted(*tables: list[str], unit: object = TENTH) -> Callable[[Any], object]:
    """All of a release but the query of the jobs, whose answer is the same every time: it is made once."""

    @cache
    def opened(size: int) -> list[tuple[Account, Offer[None, Any, CountRelease]]]:
        session = dc.Session(jobs(size), unit=unit, budget=10**6)
        queries = [session.count(by=by) for by in tables]
        epsilon = Fraction(1, len(tables))
        return [(session.account, query.offer(epsilon=epsilon).at(session.jobs)) for query in queries]

    def call(size: int) -> object:
        found: list[int] = []
        for account, offer in opened(size):
            found += account.release(offer, None).value.counts.ravel().tolist()
        return found

    return call


# One worker more who came in the quarter, at an establishment of 10.
def histories(size: int) -> Any:
    rows = [("e1", f"1-{i}", quarter) for quarter in ("q1", "q2", "q3") for i in range(10)]
    rows += [("e1", f"new-{i}", quarter) for quarter in ("q2", "q3") for i in range(size - 10)]
    rows += [("e2", f"2-{i}", quarter) for quarter in ("q1", "q2", "q3") for i in range(30)]
    table = dict(zip(("workplace", "worker", "quarter"), map(list, zip(*rows, strict=True)), strict=True))
    places = {"workplace": ["e1", "e2"], "place": ["north", "south"]}
    return dc.read_histories(table, quarters=["q1", "q2", "q3"], workplaces=places, schema=dc.Schema(["place"], {}))


@cache
def flowing(size: int) -> tuple[Account, Offer[None, Any, Any]]:
    session = dc.Session(histories(size), unit=TENTH, budget=10**6)
    return session.account, session.flows("q2", "place").offer(epsilon=1).at(session.jobs)


def flows(size: int) -> object:
    account, offer = flowing(size)
    return account.release(offer, None).value.vectors.ravel().tolist()


X = np.linspace(-1, 1, 240)
LINE, MOVED = {"x": X, "y": 2 * X}, {"x": X, "y": np.append(2 * X[:-1], -1e9)}
GROUPS = {"x": np.tile([0, 1, 2], 40), "g": np.repeat(list("abcd"), 30)}
RATE = np.linspace(0.1, 0.9, 120)
TIMES = {"t": np.tile(np.arange(30), 4)}
THIRDS = dict.fromkeys(("groups", "fixed", "squares"), "1/3")  # so few rows have no sums by group by default
RATES, OTHER = GROUPS | {"y": RATE}, GROUPS | {"y": np.where(np.arange(120) == 7, 2.0, RATE)}


def summary(function: Callable[..., Any], **asked: Any) -> Callable[[Any], object]:
    def call(data: Any) -> object:
        value = function("y ~ x", data, epsilon=1, **asked).value
        fields = (getattr(value, name) for name in value.__dataclass_fields__)
        found = [float(x) for field in fields if isinstance(field, tuple) for x in field if isinstance(x, float)]
        return np.clip(found, -1e12, 1e12).tolist()  # an interval may have no end

    return call


def mixed(
    formula: str = "y ~ x + (1 | g)", public: Sequence[str] = ("x", "g"), **asked: Any
) -> Callable[[Any], object]:
    def call(data: Any) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)  # of public facts: so few rows tell little of a lag
            fit = release_mixed(formula, data, bounds=(0, 2), public=[*public], **asked)
        effects = [fit.effects["g"][level] for level in "abcd"]
        return [*fit.fixed.values(), *effects, *(v if v is not None else -1.0 for v in fit.variances.values())]

    return call


def estimates(formula: str, **asked: Any) -> Callable[[Any], object]:
    """Everything that a fit tells; a number that noise leaves without an estimate is -1."""

    def call(data: Any) -> object:
        fit = release_mixed(formula, data, public=["x", "g"], epsilon=1, **asked)
        told = fit.tidy(levels=True)["estimate"].to_pylist()
        return np.clip([-1.0 if x is None or not np.isfinite(x) else x for x in told], -1e12, 1e12).tolist()

    return call


def drawn(release: Callable[..., Any], **asked: Any) -> Callable[[Any], object]:
    def call(data: Any) -> object:
        value = release("y ~ x + (1 | g)", data, bounds=(0, 2), public=["x", "g"], **asked)
        return [*value.beta, *(value.effects["g"][level] for level in "abcd")]

    return call


DOORS = {
    "counts by workplace": Door("tables/query.py", counted(["place"]), 10, 11, slow=False),
    "counts by worker too": Door("tables/query.py", counted(["place", "sex"]), 10, 11, slow=False),
    "counts under edge privacy": Door("tables/query.py", counted(["place"], unit=dc.Workers()), 10, 11, slow=False),
    "counts under node privacy": Door(
        "tables/query.py", counted(["place"], unit=dc.EstablishmentNodes(20)), 10, 11, slow=False
    ),
    "several tables": Door("tables/workload.py", counted(["place"], ["place", "sex"]), 10, 11),
    "flows": Door("tables/movement/published.py", flows, 10, 11, slow=False),
    "mixed, moments": Door("models/linear/private/offers.py", mixed(epsilon=1, split=THIRDS), RATES, OTHER),
    "mixed, strict": Door("models/linear/private/offers.py", mixed(epsilon=1, method="strict", blocks=4), RATES, OTHER),
    "mixed, slopes": Door(
        "models/linear/private/term_release.py", estimates("y ~ x + (x | g)", bounds=(0, 2), split=THIRDS), RATES, OTHER
    ),
    "mixed, shares": Door(
        "models/linear/private/generalised.py",
        estimates("y ~ x + (1 | g)", bounds=(0, 1), family="binomial"),
        RATES,
        OTHER,
    ),
    "mixed, counts": Door(
        "models/linear/private/generalised.py",
        estimates("y ~ x + (1 | g)", bounds=(0, 8), family="poisson"),
        RATES | {"y": np.tile([0, 1, 2, 4], 30)},
        RATES | {"y": np.append(8, np.tile([0, 1, 2, 4], 30)[1:])},
    ),
    "mixed, lags": Door(
        "models/linear/private/lag_release.py",
        mixed("y ~ x + lag(y, 1) + (1 | g)", ("x", "g", "t"), epsilon=1, series=["g"], time="t"),
        RATES | TIMES,
        OTHER | TIMES,
    ),
    "one draw": Door(  # (1/18)-zCDP: a loss above 1 has a chance below 0.003
        "models/bayes/posterior_draw.py",
        drawn(dc.release_draw, variances={"Residual": 0.06, "g": 0.02}, sd=2.0, rho="1/18"),
        RATES,
        OTHER,
    ),
    "one draw, audited": Door(
        "models/bayes/audited_draw.py",
        drawn(dc.release_audited_draw, prior=dc.Prior(V=0.05, nu=8, sd=2), audited=1),
        RATES,
        OTHER,
    ),
    "probability": Door(
        "models/bayes/probability.py",
        summary(dc.posterior_probability, coefficient="x", at=2.0),
        LINE,
        MOVED,
        slow=False,
    ),
    "probability, -2 log p": Door(
        "models/bayes/probability.py",
        summary(dc.posterior_probability, coefficient="x", at=2.0, method="-2 log p"),
        LINE,
        MOVED,
    ),
    "quantile, around zero": Door(
        "models/bayes/quantile.py",
        summary(dc.posterior_quantile, coefficient="x", probability=0.5, centre="zero"),
        LINE,
        MOVED,
    ),
    "objective perturbation": Door(
        "models/bayes/erm.py", summary(dc.objective_perturbation, bounds=(-2, 2), norm=2, penalty=1), LINE, MOVED
    ),
}
LONG = np.linspace(-1, 1, 900)
LONG_LINE = {"x": LONG, "y": 2 * LONG + np.sin(97 * LONG)}
LONG_MOVED = LONG_LINE | {"y": np.append(LONG_LINE["y"][:-1], -1e9)}
DOORS |= {  # a private centre needs M epsilon = 225
    "quantile": Door(
        "models/bayes/quantile.py",
        summary(dc.posterior_quantile, coefficient="x", probability=0.5, partitions=300),
        LONG_LINE,
        LONG_MOVED,
    ),
    "interval": Door(
        "models/bayes/interval.py",
        summary(dc.posterior_interval, coefficient="x", partitions=300),
        LONG_LINE,
        LONG_MOVED,
    ),
}


@pytest.mark.parametrize(
    "door",
    [pytest.param(d, id=name, marks=[pytest.mark.full_size] if d.slow else []) for name, d in DOORS.items()],
)
def test_a_release_with_its_defaults_keeps_its_word(door: Door) -> None:
    verdict = blackbox(door.call, door.a, door.b, claimed=1, trials=TRIALS, confidence=SURE)
    assert not verdict.refuted, str(verdict)
    assert verdict.raised == 0


def test_the_few_runs_would_show_a_gross_leak() -> None:
    """A door that also gives away the size of the establishment."""
    door = DOORS["counts under edge privacy"]
    leak = blackbox(lambda d: [*door.call(d), d], door.a, door.b, claimed=1, trials=TRIALS, confidence=SURE)
    assert leak.refuted


def test_no_door_is_missing() -> None:
    """Noise is paid for where an offer is made; plans and papers only pass on what others make."""
    paying = set()
    for place, path in source_files():
        calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Name) and call.func.id == "Offer" for call in calls):
            paying.add(place)
    passed_on = {name for name in paying if name.startswith(("discreet_papers/", "plan/"))}
    assert paying - passed_on == {door.home for door in DOORS.values()}


def strict_draws(y: np.ndarray, asked: dict[str, Any], source: SeededSource) -> Callable[[int], np.ndarray]:
    """The strict mechanism's noisy averages for a fixed partition, as many as wanted."""
    frame, model = open_frame(GROUPS | {"y": y}, ordered=True), read_formula("y ~ x + (1 | g)")
    request = release_mixed.ask("y ~ 1", bounds=(0, 2), seed=1, **asked).request
    public = public_design(frame, model)
    rows, _ = read_rows(frame, public.design.layout, public.learned)
    k = request.scale.whole(rows.values[public.model.response][:, 0])
    chosen = partition(public.rows, 4, np.random.default_rng(3))
    presence = strict.presence_of(rows, public, chosen)
    mechanism = strict.mechanism_for(public, request, presence, strict.column_units(rows, public), None, None)
    response = strict.dithered(k, request.scale.step, np.random.default_rng(4))
    estimates = fit_partition(strict.with_response(rows, public, response), public, chosen)

    def draw(n: int) -> np.ndarray:
        found = [strict.draw(mechanism, estimates, public, int(k.sum()), request.scale.step, source) for _ in range(n)]
        return np.array([[d.centre, *d.fixed, *np.concatenate(d.groups), *d.deviations] for d in found], dtype=float)

    return draw


# A delta of 1e-3 at rho = 1/2 is epsilon = rho + 2 sqrt(rho ln(1000)) = 4.22.
@pytest.mark.parametrize(
    ("asked", "claimed", "delta"),
    [
        pytest.param({"epsilon": 1}, 1.0, 0.0, id="pure"),
        pytest.param({"rho": Fraction(1, 2)}, 4.22, 1e-3, id="zCDP", marks=pytest.mark.full_size),
    ],
)
def test_the_strict_mechanism_keeps_its_word(asked: dict[str, Any], claimed: float, delta: float) -> None:
    source = SeededSource(21)
    draws = {name: strict_draws(data["y"], asked, source) for name, data in (("a", RATES), ("b", OTHER))}
    options = {"delta": delta, "trials": 1_000, "many": True, "confidence": SURE}
    verdict = blackbox(lambda name, n: draws[name](n), "a", "b", claimed=claimed, **options)
    assert not verdict.refuted, str(verdict)
