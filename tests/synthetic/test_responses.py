"""Synthetic responses of a released model: its means, variances and promise, nothing of the confidential response."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.app import app
from discreet.models.linear.families.gaussian import within
from discreet.models.linear.families.registry import named
from discreet.models.linear.private import PrivateFit, release_mixed
from discreet.synthetic.responses import write_responses
from discreet.words.errors import DataError, DiscreetError
from faults_of import about

FORMULA = "jcr ~ industry + quarter + (1 + quarter | county) + (1 | state)"
PUBLIC = ["industry", "quarter", "county", "state"]


def flows(rows: int = 4000) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    county, industry, quarter = rng.integers(0, 20, rows), rng.integers(0, 3, rows), rng.integers(0, 8, rows)
    mean = 0.3 + 0.1 * industry + rng.normal(0, 0.05, 20)[county] + 0.01 * quarter
    return {
        "jcr": np.clip(mean + rng.normal(0, 0.1, rows), 0, 2),
        "secret": rng.normal(size=rows),
        "industry": np.array(["11", "23", "44"])[industry],
        "quarter": quarter,
        "county": np.array([f"c{i:02}" for i in county]),
        "state": np.array([f"s{i // 7}" for i in county]),
        "employment": rng.integers(10, 900, rows),
    }


@pytest.fixture(scope="module")
def fit() -> PrivateFit:
    return release_mixed(FORMULA, flows(), epsilon=20, public=PUBLIC, seed=1)


def test_the_response_and_other_columns_are_neither_read_nor_written(fit: PrivateFit) -> None:
    """Rows whose response is text, nothing or absent give the same table."""
    rows = flows()
    asked: dict[str, Any] = {"seed": 4, "exposure": "employment"}
    drawn = dc.synthetic_responses(fit, rows, **asked)
    assert drawn.column_names == [*PUBLIC, "employment", "jcr_count", "jcr", "replicate", "synthetic"]
    for response in (np.array(["secret"] * 4000), np.full(4000, np.nan)):
        assert dc.synthetic_responses(fit, {**rows, "jcr": response}, **asked).equals(drawn)
    rows.pop("jcr")
    assert dc.synthetic_responses(fit, rows, **asked).equals(drawn)
    assert not dc.synthetic_responses(fit, rows, seed=5, exposure="employment").equals(drawn)
    assert drawn["synthetic"].to_pylist() == [True] * 4000


def test_means_and_variances_are_the_models(fit: PrivateFit) -> None:
    """Over many replicates a row's mean is its fitted value, and its variance the residual's and its effects'."""
    rows = {name: column[:40] for name, column in flows().items()}
    rows["industry"][:3] = ["11", "23", "44"]
    drawn = dc.synthetic_responses(fit, rows, replicates=800, seed=1)
    y = drawn["jcr"].to_numpy().reshape(800, 40)
    fitted = fit.fitted({name: column for name, column in rows.items() if name != "jcr"})
    assert fit.sigma2 is not None
    spread = np.sqrt(y.var(axis=0).mean() / 800)
    assert np.abs(y.mean(axis=0) - fitted).max() < 4.5 * spread
    assert np.abs(y.mean(axis=0) - fitted - 0.03).max() > 4.5 * spread
    assert fit.sigma2 < y.var(axis=0).mean() < 1.5 * fit.sigma2


@pytest.mark.parametrize(("mean", "variance"), [(0.05, 0.01), (1.0, 0.1), (1.99, 0.001)])
def test_laws_have_their_means_and_variances_within_the_bounds(mean: float, variance: float) -> None:
    y = within(np.full(200_000, mean), variance, (0.0, 2.0), np.random.default_rng(1))
    assert y.min() >= 0 and y.max() <= 2
    assert y.mean() == pytest.approx(mean, abs=5 * (variance / 200_000) ** 0.5)
    assert y.var() == pytest.approx(variance, rel=0.05)


def test_means_outside_and_variances_out_of_reach_stay_within_the_bounds() -> None:
    y = within(np.array([-3.0, 9.0, 1.0]), 50.0, (0.0, 2.0), np.random.default_rng(1))
    assert ((y >= 0) & (y <= 2)).all() and np.isfinite(y).all()


def test_counts_are_whole_and_rates_are_theirs(fit: PrivateFit) -> None:
    drawn = dc.synthetic_responses(fit, flows(), exposure="employment", seed=2)
    count, rate, size = (drawn[name].to_numpy() for name in ("jcr_count", "jcr", "employment"))
    assert drawn["jcr_count"].type == pa.int64() and (count >= 0).all()
    assert rate == pytest.approx(count / size)
    assert rate.mean() == pytest.approx(fit.fitted(flows()).mean(), abs=0.01)


def test_a_level_that_was_never_released_has_an_effect_of_its_terms_variance(fit: PrivateFit) -> None:
    rows = {name: column[:30] for name, column in flows().items()}
    rows["industry"][:3] = ["11", "23", "44"]
    rows["county"] = np.array(["never"] * 30)
    y = dc.synthetic_responses(fit, rows, replicates=300, seed=3)["jcr"].to_numpy().reshape(300, 30)
    known = fit.variances["county: (Intercept)"]
    assert known is not None and y.mean(axis=1).var() > 0.4 * known


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"rows": {"county": ["c01"]}}, "rows"),
        ({"exposure": "jcr"}, "exposure"),
        ({"exposure": "nothing"}, "exposure"),
        ({"replicates": 0}, "replicates"),
        ({"replicates": True}, "replicates"),
        ({"seed": -1}, "seed"),
        ({"release": "absent"}, "release"),
    ],
)
def test_bad_requests_are_refused(fit: PrivateFit, change: dict[str, Any], subject: str) -> None:
    asked = {"release": fit, "rows": flows(), **change}
    with pytest.raises(DiscreetError, check=about(subject)):
        dc.synthetic_responses(asked.pop("release"), asked.pop("rows"), **asked)


def test_rows_without_a_level_of_the_fixed_part_are_refused(fit: PrivateFit) -> None:
    """Another level would take the place of the one that coefficients are measured from."""
    few = {name: column[flows()["industry"] != "11"] for name, column in flows().items()}
    with pytest.raises(DataError, check=about("rows")):
        dc.synthetic_responses(fit, few)


@pytest.mark.parametrize("formula", ["jcr ~ scale(quarter) + (1 | county)", "jcr ~ log_size(county) + (1 | county)"])
def test_functions_that_learn_from_data_are_refused(formula: str) -> None:
    fit = release_mixed(formula, flows(), epsilon=20, public=PUBLIC, seed=1)
    with pytest.raises(DataError, check=about("release")):
        dc.synthetic_responses(fit, flows())


def events(rows: int = 6000, seed: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    county, kind, x = rng.integers(0, 20, rows), rng.integers(0, 3, rows), rng.uniform(-1, 1, rows)
    people = rng.integers(1, 9, rows)
    eta = -0.5 + 0.5 * x + 0.3 * kind + 0.5 * rng.normal(size=20)[county]
    return {
        "count": rng.poisson(people * np.exp(eta) * rng.gamma(2, 0.5, rows)),
        "yes": (rng.random(rows) < 1 / (1 + np.exp(-eta))) * 1.0,
        "x": x,
        "kind": np.array([f"k{i}" for i in kind]),
        "county": np.array([f"c{i:02}" for i in county]),
        "people": people,
    }


FAMILIES: dict[str, dict[str, Any]] = {
    "count": {"family": "poisson", "bounds": (0, 40), "exposure": "people"},
    "yes": {"family": "binomial", "bounds": (0, 1)},
}


def released(response: str) -> PrivateFit:
    asked = {"epsilon": 30, "public": ["x", "kind", "county", "people"], "seed": 1, **FAMILIES[response]}
    return release_mixed(f"{response} ~ x + kind + (1 | county)", events(), **asked)


@pytest.mark.parametrize("response", FAMILIES)
@pytest.mark.parametrize("error", [None, 1.0])
def test_counts_and_shares_have_the_means_of_the_released_fit(response: str, error: float | None) -> None:
    """Red before: refused. Errors of effects as large as 1 would move means if predictors were not moved before."""
    fit, rows, times = released(response), {name: column[:40] for name, column in events().items()}, 1000
    if error is not None:
        wide = [replace(each, std_errors=np.full(len(each.levels), error)) for each in fit.random]
        fit = replace(fit, random=tuple(wide))
    drawn = dc.synthetic_responses(fit, rows, replicates=times, seed=1, exposure="people")
    y = drawn[response].to_numpy().reshape(times, 40)
    size = rows["people"] if response == "count" else 1.0
    fitted = size * fit.fitted({name: column for name, column in rows.items() if name != response})
    spread = np.sqrt(y.var(axis=0) / times)
    assert np.abs((y.mean(axis=0) - fitted) / spread).max() < 4.5
    assert np.abs((y.mean(axis=0) - 1.1 * fitted) / spread).max() > 4.5
    if response == "count":
        assert drawn["count"].type == pa.int64() and "count_count" not in drawn.column_names
        assert fit.sigma2 is not None and y.var(axis=0).sum() > 0.95 * fit.sigma2 * fitted.sum()
    else:
        assert y * rows["people"] == pytest.approx(np.rint(y * rows["people"]))
        assert drawn["yes_count"].to_numpy() == pytest.approx(drawn["yes"].to_numpy() * drawn["people"].to_numpy())


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_predictors_before_errors_have_the_means_that_were_asked(family: str) -> None:
    """Against a sum over 4,001 points of the normal law; moving by nothing is off by a tenth and more."""
    link, variance = np.array([-15.0, -2.0, 0.3, 4.0, 15.0, 900.0]), np.array([4.0, 0.5, 2.0, 1.0, 9.0, 1.0])
    if family == "poisson":
        link[-1] = 20
    mean = np.exp if family == "poisson" else expit
    z = np.linspace(-12, 12, 4001)
    law = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()

    def means(at: np.ndarray) -> np.ndarray:
        return mean(at[:, None] + np.sqrt(variance)[:, None] * z) @ law

    np.testing.assert_allclose(means(named(family).link.before_errors(link, variance)), mean(link), rtol=3e-3)
    assert np.abs(means(link) / mean(link) - 1).max() > 0.1


@pytest.mark.parametrize("response", FAMILIES)
def test_families_read_nothing_confidential(response: str) -> None:
    """Another response, or none, gives the same table, and so does what is left of the fit when it is published."""
    fit, rows = released(response), events()
    drawn = dc.synthetic_responses(fit, rows, seed=4, exposure="people")
    other = {**rows, "count": np.array(["secret"] * 6000), "yes": np.full(6000, np.nan)}
    assert dc.synthetic_responses(fit, other, seed=4, exposure="people").equals(drawn)
    public = {name: rows[name] for name in ("x", "kind", "county", "people")}
    assert dc.synthetic_responses(fit, public, seed=4, exposure="people").equals(drawn)
    bare = replace(fit, released=None, learned=None, check=None, entry=None, centred=None)
    assert dc.synthetic_responses(bare, public, seed=4, exposure="people").equals(drawn)


def test_outcomes_without_trials_are_zero_and_one_and_counts_have_an_exposure_of_one() -> None:
    assert set(dc.synthetic_responses(released("yes"), events())["yes"].to_pylist()) == {0.0, 1.0}
    fit, rows = released("count"), events()
    mean = fit.fitted({name: column for name, column in rows.items() if name != "count"}).mean()
    assert np.mean(dc.synthetic_responses(fit, rows, seed=2)["count"].to_numpy()) == pytest.approx(mean, rel=0.2)


def test_exposures_that_families_cannot_have_are_refused() -> None:
    with pytest.raises(DataError, check=about("exposure")):
        dc.synthetic_responses(released("yes"), events() | {"people": np.full(6000, 1.5)}, exposure="people")
    with pytest.raises(DataError, check=about("rows")):
        dc.synthetic_responses(released("count"), events() | {"people": np.full(6000, 1e18)}, exposure="people")


@pytest.mark.parametrize("size", [1e16, 1e19, 1e300])
def test_counts_too_large_for_whole_numbers_are_refused(fit: PrivateFit, size: float) -> None:
    """They were -2^63, or an error of NumPy's."""
    with pytest.raises(DataError, check=about("exposure")):
        dc.synthetic_responses(released("yes"), events() | {"people": np.full(6000, size)}, exposure="people")
    with pytest.raises(DataError, check=about("exposure")):
        dc.synthetic_responses(fit, flows() | {"employment": np.full(4000, size)}, exposure="employment")
    drawn = dc.synthetic_responses(fit, flows() | {"employment": np.full(4000, 1e15)}, exposure="employment")
    assert 0 <= drawn["jcr_count"].to_numpy().min() <= drawn["jcr_count"].to_numpy().max() <= 2e15


def test_a_release_without_an_estimate_has_no_responses() -> None:
    fit = released("count")
    with pytest.raises(DataError, check=about("release")):
        dc.synthetic_responses(replace(fit, beta=np.full(len(fit.beta), np.nan)), events())


PLAN = """
[data]
source = "flows.parquet"
public = ["county", "industry"]

[unit]
kind = "rows"
lower = 0
upper = 2
response = "jcr"

[budget]
ledger = "book.db"
dataset = "flows"
epsilon = 9

[[release]]
kind = "model"
name = "jobs"
formula = "jcr ~ 0 + industry + (1 | county)"
epsilon = 9
clip = [0, 1]

[output]
folder = "out"
"""


def test_the_command_draws_from_a_plans_folder_and_spends_nothing(tmp_path: Path) -> None:
    from discreet.plan.run import run

    pq.write_table(pa.table(flows()), tmp_path / "flows.parquet")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    run(tmp_path / "plan.toml")
    before = (tmp_path / "book.db").read_bytes()
    out = tmp_path / "jcr-synthetic.parquet"
    asked = ["synthesize", str(tmp_path / "out"), "--rows", str(tmp_path / "flows.parquet"), "--out", str(out)]
    done = CliRunner().invoke(app, [*asked, "--exposure", "employment", "--replicates", "2", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 8000
    drawn = pq.read_table(out)
    assert drawn.column_names == ["industry", "county", "employment", "jcr_count", "jcr", "replicate", "synthetic"]
    assert max(drawn["jcr"].to_pylist()) <= 1.0 + 1 / 10
    told = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert "epsilon=9" in told["guarantee"] and told["synthetic"] is True
    assert (tmp_path / "book.db").read_bytes() == before
    with pytest.raises(DataError, check=about("out")):
        write_responses(tmp_path / "out", tmp_path / "flows.parquet", out)
    with pytest.raises(DataError, check=about("name")):
        write_responses(tmp_path / "out", flows(), tmp_path / "b-synthetic.parquet", name="other")
    assert CliRunner().invoke(app, [*asked, "--mean", "3"]).exit_code == 2
    assert (
        CliRunner().invoke(app, ["synthesize", str(tmp_path / "out"), "--out", "x", "--exposure", "e"]).exit_code == 2
    )


def test_the_folder_of_a_plan_has_counts_of_its_family(tmp_path: Path) -> None:
    """Red before: refused."""
    from discreet.plan.run import run

    pq.write_table(pa.table(events()), tmp_path / "flows.parquet")
    text = PLAN.replace("upper = 2", "upper = 40").replace('response = "jcr"', 'response = "count"')
    text = text.replace('["county", "industry"]', '["county", "kind", "people"]').replace("clip = [0, 1]\n", "")
    text = text.replace(
        'formula = "jcr ~ 0 + industry + (1 | county)"',
        'formula = "count ~ kind + (1 | county)"\nfamily = "poisson"\nexposure = "people"',
    )
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    run(tmp_path / "plan.toml")
    out = tmp_path / "counts-synthetic.parquet"
    write_responses(tmp_path / "out", events(), out, exposure="people")
    assert pq.read_table(out)["count"].to_numpy().mean() == pytest.approx(events()["count"].mean(), rel=0.1)
    assert "Poisson" in json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["drawn"]
