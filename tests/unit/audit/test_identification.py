"""What a release lets an attacker find out: bounds against Bayes' rule, attacks with the release's own noise."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

from discreet.audit.attacked import larger
from discreet.audit.identification import _mechanism, identification, of_synthetic
from discreet.plan.run import run
from discreet.privacy.identification import belief_bounds, posterior
from discreet.privacy.losses import Approximate, Concentrated, Pure, from_dict
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Rows, Unit, Workers, unit_of
from discreet.release.folder import ReleaseFolder, open_releases
from discreet.synthetic import synthesize
from discreet.words.errors import DataError
from faults_of import about
from publication_jobs import write_jobs


@pytest.mark.parametrize(
    "unit",
    [
        Establishments("0.1"),
        Establishments("1/3", "weak"),
        Establishments("0.05", substitution=True),
        Workers(),
        EstablishmentNodes(1000),
        Rows(0, "3/2", "rate"),
        Rows(0, 2, ("rate", "odd name, with a comma")[:1]),
        AnyRow(),
    ],
)
def test_a_unit_is_read_back(unit: Unit) -> None:
    assert unit_of(unit.key) == unit


@pytest.mark.parametrize(("prior", "epsilon"), [(0.01, 1.0), (0.5, 2.0), (0.9, 0.3)])
def test_a_belief_reaches_the_bound_and_no_more(prior: float, epsilon: float) -> None:
    """Randomised response has the ratio e^epsilon exactly: Bayes' rule with its likelihoods gives the bound."""
    likely = math.exp(epsilon) / (1 + math.exp(epsilon))
    bayes = prior * likely / (prior * likely + (1 - prior) * (1 - likely))
    assert posterior(prior, epsilon) == pytest.approx(bayes, rel=1e-12)


def test_bounds_of_the_strong_definition_count_neighbouring_steps() -> None:
    """By hand: a kind is one worker less and one more; from 15 to 17, 1.1 times as many, is a step by way of 16.

    From 25 to 27, 1.05 times as many, is one by way of 26.
    """
    for alpha in ("0.1", "0.05"):
        found = {bound.about: bound.log_factor for bound in belief_bounds(Establishments(alpha), Pure(3))}
        assert found == {"individuals": 6.0, "employer size": 6.0, "employer shape": 6.0}
    inside = belief_bounds(Establishments("0.1", substitution=True), Pure(3))
    assert {bound.about: bound.log_factor for bound in inside}["individuals"] == 3.0


def test_what_is_not_promised_has_no_bound() -> None:
    found = {bound.about: bound for bound in belief_bounds(Workers(), Pure(1))}
    assert math.isinf(found["employer size"].log_factor) and found["employer size"].at_most(0.5) == 1.0
    assert belief_bounds(Establishments("0.1"), Concentrated("0.5")) == ()
    (row,) = belief_bounds(Rows(0, 1, "y"), Approximate(1, "1e-6"))
    assert (row.log_factor, row.delta) == (1.0, 1e-6)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identified")
    run(write_jobs(folder))
    return folder / "out"


def test_attacks_run_on_the_releases_own_noise_and_find_less_than_on_infusion(out: Path) -> None:
    releases = open_releases(out)
    found = identification(releases)
    assert found.said.loss == Pure(16), "the losses of all releases add up"
    table = next(of for release in releases for of in release.tables("research") if of.name == "sexes")
    unit = releases[0].unit
    assert isinstance(unit, Establishments)
    stated = {name: value for name, value in table.about["noise"].items() if name != "sizes"}
    assert _mechanism(unit, table).constants() == stated
    rows = {(row["attack"], row["table"]): row for row in found.attacks if row["of"] == "sexes"}
    assert len(rows) == 6
    for attack in ("shape", "size"):
        infused, ours = rows[attack, "noise infusion"], rows[attack, "this release"]
        assert infused["exact"] == infused["cases"] > 0
        assert ours["exact"] < ours["cases"]
    assert not found.notes


def test_tables_without_kinds_and_sums_are_attacked_by_the_percent_rule_and_bounds_hold(out: Path) -> None:
    """Somebody who is undecided is right as often as the guarantee allows, and more often than by chance."""
    releases = open_releases(out)
    found = identification(releases)
    losses = {
        of.name: float(from_dict(dict(of.about["loss"])).amounts["epsilon"])
        for release in releases
        for of in release.tables("research")
    }
    assert {row["of"] for row in found.attacks} == {*losses}
    [ours, infused] = [
        [row for row in found.attacks if row["table"] == table and str(row["attack"]).startswith("p %")]
        for table in ("this release", "noise infusion")
    ]
    assert len(ours) == len(infused) == 5
    for row in ours:
        slack = 4 * math.sqrt(0.25 / row["cases"])
        assert row["exact"] / row["cases"] <= posterior(0.5, losses[row["of"]]) + slack, row
    assert sum(row["exact"] for row in ours) > 1.2 * sum(row["by_chance"] for row in ours)


def test_the_percent_rule_finds_out_what_has_no_noise() -> None:
    amounts = np.array([1, 9, 10, 500, 10**9])
    [row] = larger({"bare": lambda sums, largest, trial: sums}, amounts, share=0.1, trials=2)
    assert (row["targets"], row["cases"], row["exact"], row["by_chance"]) == (3, 12, 12, 6)
    assert larger({"bare": lambda sums, largest, trial: sums}, amounts[:2], share=0.1, trials=2) == []


def test_a_synthetic_file_has_the_bounds_of_its_release(out: Path, tmp_path: Path) -> None:
    done = synthesize(out, tmp_path / "synthetic.parquet")
    alone, whole = of_synthetic(done.path), identification(open_releases(out))
    assert alone.said.beliefs == whole.said.beliefs and not alone.attacks
    beside = of_synthetic(done.path, open_releases(out))
    assert (beside.said, beside.attacks) == (whole.said, whole.attacks) and beside.attacks
    counts = open_releases(out)[-1].tables("research")[0].read()
    rows = {tuple(map(str, row[:3])): row[3] for row in _recounted(done.path)}
    same = sum(
        max(row["count"], 0) == rows.get((row["county"], row["sector"], row["sex"]), 0) for row in counts.to_pylist()
    )
    assert f"{same:,} as published" in beside.notes[-1] and same > 0
    with pytest.raises(DataError, check=about("release")):
        of_synthetic(done.path, open_releases(out / "sexes"))
    done.about.unlink()
    with pytest.raises(DataError, check=about("release")):
        of_synthetic(done.path)


def test_losses_under_two_units_are_no_bound_together() -> None:
    def released(unit: Unit) -> ReleaseFolder:
        return ReleaseFolder(Path(), {"dataset": "jobs", "guarantee": {"unit": unit.key, "loss": {"epsilon": "1"}}})

    with pytest.raises(DataError, check=about("release")):
        identification([released(Establishments("0.1")), released(Workers())])


def _recounted(path: Path) -> list[tuple[object, ...]]:
    return duckdb.sql(f"SELECT county, sector, sex, count(*) FROM '{path}' GROUP BY ALL").fetchall()
