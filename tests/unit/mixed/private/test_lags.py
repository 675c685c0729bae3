"""Models with lags inside the guarantee: against fits without noise, over doors, and what is refused or told first."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula, without_lags
from discreet.models.linear import mixed
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.lag_estimation import unexplained
from discreet.models.linear.private.lag_noise import lag_mechanism, lag_sums_of
from discreet.models.linear.private.panel import in_time, panel_of
from discreet.models.linear.private.public import public_design
from discreet.models.linear.private.sums import Scale, units_of
from discreet.noise.source import SeededSource
from discreet.plan.run import run
from discreet.words.errors import DiscreetError
from faults_of import about

Columns = dict[str, Any]
FORMULA = "y ~ kind + lag(y, 1) + (1 | g)"
ASK: dict[str, Any] = {"public": ["kind", "g", "s", "t", "x"], "series": ["s"], "time": "t", "bounds": (0, 2)}
PHI, KIND = 0.5, 0.05


def panel(seed: int, *, groups: int = 30, each: int = 3, periods: int = 16, phi: float = PHI) -> Columns:
    """Series in groups, of different lengths and with gaps, in any order; about a fifth of them end early."""
    rng = np.random.default_rng(seed)
    count = groups * each
    u, kind = np.repeat(rng.normal(0, 0.2 * (1 - phi), groups), each), np.arange(count) % 2
    y, sigma = np.ones((count, periods + 40)), 0.23 * (1 - phi**2) ** 0.5
    for t in range(1, periods + 40):
        y[:, t] = (1 - phi) + KIND * (kind - 0.5) + u + phi * y[:, t - 1] + rng.normal(0, sigma, count)
    s, t = np.divmod(np.arange(count * periods), periods)
    kept = rng.permutation(np.flatnonzero((t < rng.integers(8, 5 * periods, count)[s]) & (rng.random(len(s)) < 0.97)))
    s, t = s[kept], t[kept]
    return {
        "y": y[s, t + 40],
        "s": np.array([f"s{i:03d}" for i in range(count)])[s],
        "g": np.array([f"g{i:02d}" for i in range(groups)])[s // each],
        "kind": np.array(["a", "b"])[kind[s]],
        "t": t,
        "x": rng.normal(size=len(s)),
    }


def with_lags(data: Columns, lags: tuple[int, ...]) -> Columns:
    """The used rows, with earlier responses as columns."""
    at = dict(zip(zip(data["s"], data["t"], strict=True), np.clip(data["y"], 0, 2), strict=True))
    rows = [i for i, (s, t) in enumerate(zip(data["s"], data["t"], strict=True)) if all((s, t - k) in at for k in lags)]
    columns = {name: np.asarray(column)[rows] for name, column in data.items()}
    columns["y"] = np.clip(columns["y"], 0, 2)
    found = [(s, t) for s, t in zip(columns["s"], columns["t"], strict=True)]
    return columns | {f"l{k}": np.array([at[s, t - k] for s, t in found]) for k in lags}


@pytest.mark.parametrize("lags", [(1,), (1, 3)])
@pytest.mark.parametrize("random", ["", " + (1 | g)"])
def test_without_noise_it_is_the_fit_of_the_rows(lags: tuple[int, ...], random: str) -> None:
    data = panel(1)
    terms = " + ".join(f"lag(y, {k})" for k in lags)
    private = release_mixed(f"y ~ kind + x + {terms}{random}", data, epsilon=10**6, seed=1, **ASK)
    rows = with_lags(data, lags)
    assert private.rows == len(rows["y"])
    names = [*(f"l{k}" for k in lags)]
    if random:
        fit = mixed(f"y ~ kind + x + {' + '.join(names)}{random}", rows)
        expected, errors = np.array(list(fit.fixed.values())), np.array(list(fit.se.values()))
        assert private.variances["g"] == pytest.approx(fit.variances["g"], rel=0.05)
        assert private.variances["Residual"] == pytest.approx(fit.variances["Residual"], rel=0.01)
    else:
        X = np.column_stack([np.ones(len(rows["y"])), rows["kind"] == "b", rows["x"], *(rows[name] for name in names)])
        expected = np.linalg.lstsq(X, rows["y"], rcond=None)[0]
        left = rows["y"] - X @ expected
        errors = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * (left @ left) / (len(left) - X.shape[1]))
    # Likelihood and restricted likelihood weigh groups a little differently.
    assert np.abs(private.beta - expected).max() < 0.1 * errors.min()
    told = np.array(list(private.se.values()))
    assert np.all((told > 0.95 * errors) & (told < 1.5 * errors))
    assert [*private.names[-len(lags) :]] == [f"lag(y, {k})" for k in lags]
    new = {**{k: v[:5] for k, v in rows.items()}, **{f"lag(y, {k})": rows[f"l{k}"][:5] for k in lags}}
    effects = [private.effects["g"][level] for level in new["g"]] if random else 0.0
    fixed = np.column_stack([np.ones(5), new["kind"] == "b", new["x"], *(new[f"l{k}"] for k in lags)]) @ private.beta
    assert private.fitted(new) == pytest.approx(fixed + effects, abs=1e-9)


@pytest.mark.parametrize("loss", [{"epsilon": 2}, {"rho": 1}], ids=["Laplace", "Gauss"])
def test_noise_in_sums_of_squares_is_taken_out(loss: dict[str, float]) -> None:
    """Over 400 draws what is left of products has the mean it has without noise, at the same weights."""
    model, lags = without_lags(read_formula(FORMULA))
    data, response, (lower, upper) = panel(7), "y", (0, 2)
    rows = in_time(open_frame(data), [response, *model.columns[1:]], series=["s"], time="t")
    chosen = panel_of(rows, lags)
    public = public_design(rows.frame[chosen.used], model)
    k = Scale(Fraction(lower), Fraction(upper)).whole(rows.frame["y"].to_numpy()).astype(np.int64)
    source, phi, at = SeededSource(3), np.array([0.4]), {"sigma2": 0.04, "variances": np.array([0.01])}

    def drawn(count: int, **asked: float) -> list[Any]:
        request = release_mixed.ask(FORMULA, **ASK | {"bounds": (lower, upper)}, **asked).request
        mechanism = lag_mechanism(chosen, public.in_memory, public, units_of(rows.frame, public), request, None)
        exact = mechanism.exact(k)
        return [lag_sums_of(mechanism.draw(exact, source), mechanism, public, request) for _ in range(count)]

    noisy = drawn(400, **loss)
    noise, origin = noisy[0].at(phi), noisy[0]
    found = np.array([unexplained(each, noise, **at)[0] for each in noisy])
    (exact,) = drawn(1, epsilon=10**8)
    silent = replace(exact, ds=0.0, dx=np.zeros(len(exact.dx)))
    expected, *_ = unexplained(silent, noise, **at)
    error = found.std(axis=0) / len(found) ** 0.5
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4.5 * error)
    left_in, *_ = unexplained(replace(origin, ds=0.0, dx=0 * origin.dx), noise, **at)
    assert np.all(unexplained(origin, noise, **at)[0] - left_in > 6 * error)  # what is taken out would be seen


def lag_errors(sets: int, phi: float, **loss: float) -> tuple[np.ndarray, np.ndarray]:
    """What the coefficient of the lag is off by, and the standard errors told, over panels."""
    fits = [
        release_mixed(FORMULA, panel(seed, groups=50, each=2, periods=30, phi=phi), seed=seed, **loss, **ASK)
        for seed in range(sets)
    ]
    return np.array([f.fixed["lag(y, 1)"] - phi for f in fits]), np.array([f.se["lag(y, 1)"] for f in fits])


@pytest.mark.parametrize("sets", [8, pytest.param(150, marks=pytest.mark.full_size)])
@pytest.mark.parametrize(
    ("phi", "loss"),
    [
        (0.5, {"epsilon": 10}),
        pytest.param(0.3, {"epsilon": 10}, marks=pytest.mark.full_size),
        pytest.param(0.8, {"epsilon": 10}, marks=pytest.mark.full_size),
        pytest.param(0.8, {"epsilon": 100}, marks=pytest.mark.full_size),
        pytest.param(0.5, {"rho": 6}, marks=pytest.mark.full_size),
    ],
    ids=str,
)
def test_intervals_of_lags_hold(phi: float, loss: dict[str, float], sets: int) -> None:
    """95 % intervals hold the truth in 92 % of panels or more, and coefficients are not biased by more than doubt."""
    off, told = lag_errors(sets, phi, **loss)
    assert np.mean(np.abs(off) < 1.96 * told) >= (0.92 if sets > 100 else 0.7)
    assert abs(off.mean()) < 0.25 * np.median(told) + 3 * off.std() / sets**0.5


def test_every_form_of_the_data_gives_the_same(tmp_path: Path) -> None:
    data = panel(3)
    pq.write_table(pa.table(data), tmp_path / "panel.parquet")
    order = np.random.default_rng(1).permutation(len(data["y"]))
    shuffled = {name: np.asarray(column)[order] for name, column in data.items()}
    here, there, mixed_up = (
        release_mixed(FORMULA, each, epsilon=20, seed=5, **ASK) for each in (data, tmp_path / "panel.parquet", shuffled)
    )
    for other in (there, mixed_up):
        assert all(np.array_equal(a, b) for a, b in zip(here.released.sums, other.released.sums, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(here.released.products, other.released.products, strict=True))
        assert other.beta == pytest.approx(here.beta, rel=1e-9)


@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
def test_the_unit_of_the_response_does_not_matter() -> None:
    """Where noise is as large as what lags vary by, too: how far they are pulled to zero has no unit."""
    data = panel(4)
    for epsilon in (1, 6):
        plain, larger = (
            release_mixed(
                FORMULA, data | {"y": unit * data["y"]}, epsilon=epsilon, seed=2, **ASK | {"bounds": (0, 2 * unit)}
            )
            for unit in (1, 1024)
        )
        assert larger.fixed["lag(y, 1)"] == pytest.approx(plain.fixed["lag(y, 1)"], rel=1e-4)
        assert larger.se["lag(y, 1)"] == pytest.approx(plain.se["lag(y, 1)"], rel=1e-3)
        assert [flag.word for flag in larger.flags] == [flag.word for flag in plain.flags]


REFUSED: dict[str, tuple[str, Columns, str]] = {
    "no series": (FORMULA, {"series": []}, "series"),
    "no time": (FORMULA, {"time": None}, "time"),
    "no lag": ("y ~ kind", {}, "series"),
    "a word for a list": (FORMULA, {"series": "s"}, "series"),
    "series that are not public": (FORMULA, {"public": ["kind", "g", "t"]}, "public"),
    "time that is not public": (FORMULA, {"public": ["kind", "g", "s"]}, "public"),
    "the response as a series": (FORMULA, {"series": ["s", "y"]}, "series"),
    "an unknown series": (FORMULA, {"series": ["zz"], "public": ["kind", "g", "t", "zz"]}, "data"),
    "two rows of a period": (FORMULA, {"series": ["g"]}, "series"),
    "decimals as a series": (FORMULA, {"series": ["x"]}, "series"),
    "decimals as a time": (FORMULA, {"time": "x"}, "time"),
    "words as a time": (FORMULA, {"time": "kind"}, "time"),
    "a lag of another column": ("y ~ lag(x, 1)", {}, "formula"),
    "a product": ("y ~ kind * lag(y, 1)", {}, "formula"),
    "a random slope": ("y ~ lag(y, 1) + (lag(y, 1) | g)", {}, "formula"),
    "a lag without a number": ("y ~ lag(y)", {}, "formula"),
    "lags longer than all series": ("y ~ lag(y, 500)", {}, "formula"),
    "too many": ("y ~ " + " + ".join(f"lag(y, {k})" for k in range(1, 14)), {}, "formula"),
    "groups that cut series": ("y ~ lag(y, 1) + (1 | half)", {"public": ["s", "t", "half"]}, "formula"),
    "another method": (FORMULA, {"method": "strict"}, "formula"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_do_not_depend_on_responses(case: str) -> None:
    formula, ask, about = REFUSED[case]
    data = panel(2)
    data["half"] = np.where(data["t"] < 8, "early", "late")
    said = []
    for y in (data["y"], np.full(len(data["y"]), np.nan), data["y"][::-1] * 1e9):
        with pytest.raises(DiscreetError) as refused:
            release_mixed(formula, data | {"y": y}, epsilon=1, **(ASK | ask))
        said.append(str(refused.value))
        assert refused.value.about == about or (about == "data" and "zz" in said[-1])
    assert len(set(said)) == 1


def test_a_fit_of_rows_refuses_lags() -> None:
    with pytest.raises(DiscreetError, check=about("formula")):
        mixed(FORMULA, panel(2))


def test_what_noise_hides_is_told_before_it_is_paid_and_flagged_after() -> None:
    """From public columns alone: without a single response the offer says the same."""
    data = panel(4)
    blind = data | {"y": np.full(len(data["y"]), np.nan)}
    for columns in (data, blind):
        with pytest.warns(MixedWarning, match=r"lag\(y, 1\) cannot be estimated"):
            release_mixed.check(FORMULA, columns, epsilon=0.2, **ASK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = [str(release_mixed.check(FORMULA, columns, epsilon=40, **ASK)) for columns in (data, blind)]
    assert told[0] == told[1] and "lag(y, 1): " in told[0] and "assumed to vary as residuals do" in told[0]
    with pytest.warns(MixedWarning):
        hidden = release_mixed(FORMULA, data, epsilon=0.2, seed=1, **ASK)
    flags = {row["term"]: row["flag"] for row in hidden.published().to_pylist()}
    assert "lags hardly seen" in flags["lag(y, 1)"] and np.abs(hidden.beta[-1]) <= 2
    seen = release_mixed(FORMULA, data, epsilon=40, seed=1, **ASK)
    assert not any(flag.word == "lags hardly seen" for flag in seen.flags)
    expected = seen.check.expected
    noise = dict(zip(expected.names, expected.noise, strict=True))["lag(y, 1)"]
    # Responses vary by more than was supposed, and their mean is not at an end of the range.
    assert 0.05 * noise < seen.se["lag(y, 1)"] < dict(zip(expected.names, expected.error, strict=True))["lag(y, 1)"]


def test_the_guarantee_says_what_is_protected() -> None:
    fit = release_mixed(FORMULA, panel(5), epsilon=40, seed=1, **ASK)
    assert fit.guarantee.proof == "docs/proofs/mixed-lags.md" and fit.guarantee.basis == "proved"
    assert any("protected like all others" in note and "any row's" in note for note in fit.guarantee.notes)
    assert not any("taken as published" in note for note in fit.guarantee.notes)
    assert {"s", "t"} <= set(fit.entry.payload["details"]["public"])


PLAN = """
[data]
source = "panel.parquet"
public = ["kind", "g", "s", "t"]
[unit]
kind = "rows"
lower = 0
upper = 2
response = "y"
[budget]
epsilon = 20
ledger = "ledger.db"
dataset = "d"
[[release]]
name = "m"
kind = "model"
formula = "y ~ kind + lag(y, 1) + (1 | g)"
series = ["s"]
time = "t"
epsilon = 20
[output]
folder = "out"
"""


def test_a_plan_and_the_command_know_lags(tmp_path: Path) -> None:
    pq.write_table(pa.table(panel(6)), tmp_path / "panel.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    run(tmp_path / "plan.toml")
    published = json.loads(next((tmp_path / "out").rglob("release.json")).read_text())
    assert "mixed-lags.md" in json.dumps(published["guarantee"])
    assert "lag(y, 1)" in next((tmp_path / "out").rglob("research.csv")).read_text()
    asked = ["--epsilon", "20", "--bounds", "0", "2", "--series", "s", "--time", "t"]
    declared = [word for column in ("kind", "g", "s", "t") for word in ("--public", column)]
    done = CliRunner().invoke(app, ["fit", FORMULA, str(tmp_path / "panel.parquet"), *asked, *declared])
    assert done.exit_code == 0 and "lag(y, 1)" in done.output


def test_expected_errors_beside_a_lag_are_bounds_and_say_so() -> None:
    """The mean response is not public, and an error of the lag moves the intercept by it."""
    series, periods, off = 12, 60, []
    g, t = np.arange(series * periods) % series, np.arange(series * periods) // series
    for seed in range(60):
        rng = np.random.default_rng(seed)
        data = {"g": g, "t": t, "y": np.clip(3 + rng.normal(size=series * periods), -10, 10)}
        asked: dict[str, Any] = {"public": ["g", "t"], "bounds": (-10, 10), "series": ["g"], "time": "t"}
        fit = release_mixed("y ~ lag(y, 1)", data, epsilon=40, seed=seed, **asked)
        off.append(fit.beta - [3.0, 0.0])
    expected, observed = fit.check.expected, np.sqrt(np.mean(np.square(off), axis=0))
    assert expected.bound == ("at least", "at most")
    assert observed[0] > 2 * expected.error[0] and observed[1] < 1.15 * expected.error[1]
    told = fit.check.to_dict()["expected"]["fixed"]
    assert (told["(Intercept)"]["bound"], told["lag(y, 1)"]["bound"]) == ("at least", "at most")
    assert f"(Intercept): at least {expected.error[0]:.3g}" in str(expected)
    assert f"lag(y, 1): at most {expected.error[1]:.3g}" in str(expected)
    plain = release_mixed.check("y ~ 1", data, epsilon=40, public=["g", "t"], bounds=(-10, 10)).expected
    assert "at least" not in str(plain).partition("Expected")[2].partition("With")[0]
