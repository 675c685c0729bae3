"""Flows of a quarter against counting by hand, against neighbours by brute force, and against their own promises."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.histories import Histories, read_histories
from discreet.data.jobs import ANY_NUMBER, SEVERAL_JOBS
from discreet.data.schema import Schema
from discreet.noise.flow_body import COORDINATES, FLOWS, beyond_share, mean_share
from discreet.noise.rings import table
from discreet.noise.sampler import draw_flows
from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.tables.movement.flow_noise import FlowNoise, flows_of
from discreet.tables.movement.flows import statistics
from discreet.words.errors import DataError, Infeasible, PrivacyError
from faults_of import about

QUARTERS = ["q1", "q2", "q3", "q4"]
SCHEMA = Schema(["county", "sector"], {})
UNIT = Establishments("0.1")


def rows(seed: int = 0, *, firms: int = 40, people: int = 900) -> list[dict[str, Any]]:
    """Workers who stay, leave, come back and change their employer."""
    rng = np.random.default_rng(seed)
    county, sector = rng.integers(0, 3, firms), rng.integers(0, 2, firms)
    found = []
    for worker in range(people):
        firm = int(firms * rng.random() ** 3)
        for quarter in QUARTERS:
            if rng.random() < 0.15:
                firm = int(firms * rng.random() ** 2)
            if rng.random() < 0.8:
                place = {"county": f"c{county[firm]}", "sector": f"s{sector[firm]}"}
                found.append({"worker": worker, "workplace": f"e{firm}", "quarter": quarter, **place})
    return found


def opened(found: list[dict[str, Any]], **more: Any) -> Histories:
    import pyarrow as pa

    return read_histories(pa.Table.from_pylist(found), quarters=QUARTERS, schema=SCHEMA, **more)


def by_hand(found: list[dict[str, Any]], quarter: str) -> dict[tuple[str, str], dict[str, int]]:
    """The QWI's definitions, job by job."""
    at = QUARTERS.index(quarter)
    jobs = {q: {(row["worker"], row["workplace"]) for row in found if row["quarter"] == q} for q in QUARTERS}
    place = {row["workplace"]: (row["county"], row["sector"]) for row in found if row["quarter"] == quarter}
    before, now, after = (jobs[QUARTERS[at + step]] for step in (-1, 0, 1))
    firms: dict[str, Counter[str]] = defaultdict(Counter)
    for job in now:
        firm = firms[job[1]]
        firm["employment"] += 1
        firm["beginning"] += job in before
        firm["end"] += job in after
        firm["accessions"] += job not in before
        firm["separations"] += job not in after
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for name, firm in firms.items():
        firm["creation"] = max(firm["end"] - firm["beginning"], 0)
        firm["destruction"] = max(firm["beginning"] - firm["end"], 0)
        cells[place[name]].update(firm)
        largest = cells[place[name]]["largest"]
        cells[place[name]]["largest"] = max(largest, firm["employment"])
    return {key: dict(cell) for key, cell in cells.items()}


@pytest.mark.parametrize("quarter", ["q2", "q3"])
def test_flows_are_what_counting_by_hand_gives(quarter: str) -> None:
    found = rows()
    cells = statistics(opened(found), quarter, ["county", "sector"])
    hand = by_hand(found, quarter)
    keys = list(zip(*(cells.keys[name].to_pylist() for name in ("county", "sector")), strict=True))
    assert set(keys) == set(hand)
    for key, vector, largest in zip(keys, cells.vectors, cells.largest, strict=True):
        flows = dict(zip(FLOWS, flows_of(vector[None])[0].tolist(), strict=True))
        assert flows == {name: hand[key].get(name, 0) for name in FLOWS}
        assert largest.tolist() == [hand[key]["largest"]]


def test_rows_for_a_model_have_rates_that_can_be_and_the_number_of_establishments_as_weight() -> None:
    found = rows()
    session = dc.Session(opened(found), unit=UNIT, budget=1, seed=1)
    release = session.flows("q2", by=["county", "sector"]).release(epsilon=1)
    flows, panel = release.flows, release.panel()
    mean = (flows["beginning"] + flows["end"]) / 2
    assert len(panel) == (mean >= 1).sum() and {*panel["quarter"].to_pylist()} == {"q2"}
    number = Counter((row["county"], row["sector"]) for row in {row["workplace"]: row for row in found}.values())
    keys = zip(panel["county"].to_pylist(), panel["sector"].to_pylist(), strict=True)
    assert panel["weight"].to_pylist() == [number[key] for key in keys]
    assert sum(release.to_arrow()["establishments"].to_pylist()) == number.total()
    assert all(0 <= rate <= 2 for name in ("jcr", "jdr", "ar", "sr") for rate in panel[name].to_pylist())


def test_an_attribute_called_weight_is_refused() -> None:
    """Rows for a model have a column of that name: it replaced the attribute."""
    table = {"worker": [1] * 3, "workplace": [1] * 3, "weight": ["a"] * 3, "quarter": ["q1", "q2", "q3"]}
    found = read_histories(table, quarters=["q1", "q2", "q3"], schema=Schema(["weight"], {}))
    with pytest.raises(DataError, check=about("by")):
        dc.Session(found, unit=UNIT, budget=4).flows("q2", by=["weight"])


def test_the_number_of_establishments_is_that_of_all_quarters_without_a_list_too() -> None:
    """An establishment without jobs in the quarter is counted: its number tells nothing about that quarter's jobs."""
    found = rows()
    gone = [row for row in found if row["quarter"] == "q1" or row["workplace"] != "e5"]
    whole, less = (statistics(opened(some), ("q2", "q3"), ["county", "sector"]) for some in (found, gone))
    assert len(gone) < len(found) and any(row["workplace"] == "e5" for row in gone)
    assert whole.keys.equals(less.keys) and np.array_equal(whole.establishments, less.establishments)
    assert not np.array_equal(whole.vectors, less.vectors)


def vector_of(firms: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """stayed, passed, came, left and created of a cell, from those kinds of every establishment."""
    return np.append(firms.sum(axis=0), np.maximum(firms[:, 2] - firms[:, 3], 0).sum())


def norm(z: np.ndarray[Any, Any]) -> float:
    stayed, passed, came, left, created = z
    destroyed = created - came + left
    return float(abs(stayed) + abs(passed) + max(abs(came + left), abs(came - left), abs(created + destroyed)))


def test_workers_who_are_added_move_the_numbers_by_no_more_steps_than_they_are() -> None:
    rng, met = np.random.default_rng(1), set()
    for _ in range(4000):
        firms = rng.integers(0, rng.integers(1, 12), (rng.integers(1, 4), 4))
        more = np.zeros_like(firms)
        more[rng.integers(len(firms))] = rng.integers(0, 3, 4)
        moved = norm(vector_of(firms + more) - vector_of(firms))
        assert moved <= more.sum()
        met.add(moved == more.sum() > 0)
    assert True in met


def test_the_ball_is_the_smallest_that_holds_every_step() -> None:
    """Its corners are steps, so that no smaller convex ball holds them all: one worker of each kind, at either firm."""
    corners = []
    for kind, growing in product(range(4), (True, False)):
        firm = np.array([[0, 0, 5, 2] if growing else [0, 0, 2, 5]])
        step = np.zeros_like(firm)
        step[0, kind] = 1
        corners.append(vector_of(firm + step) - vector_of(firm))
    hull = np.array([*corners, *(-corner for corner in corners)], dtype=float)
    directions = np.random.default_rng(2).normal(size=(3000, 5))
    from scipy.optimize import linprog

    for direction in directions[:40]:
        point = direction / norm(direction)
        ones = np.ones(len(hull))
        found = linprog(ones, A_eq=hull.T, b_eq=point, bounds=(0, None))
        assert found.fun == pytest.approx(1, abs=1e-9)


def test_shares_are_those_of_draws_and_a_worse_law_is_told_apart() -> None:
    law = FlowNoise.calibrate(unit=UNIT, epsilon=2).law
    scale = 2.0**40  # so large that rounding does not matter
    draws = draw_flows(law, scale=np.full(60_000, scale), source=SeededSource(3)) / scale
    radius = np.array([norm(z) for z in draws[:4000]])
    survival = law.radius_survival(np.sort(radius))
    assert np.abs(survival - 1 + np.arange(1, 4001) / 4000).max() < 1.95 / np.sqrt(4000)
    sizes = {name: np.abs(draws @ np.array(parts)) for name, parts in FLOWS.items()}
    whole = np.abs(draws[:, 0]) + np.abs(draws[:, 1])
    cube = np.stack([draws[:, 2] + draws[:, 3], draws[:, 2] - draws[:, 3], 2 * draws[:, 4] - draws[:, 2] + draws[:, 3]])
    radii = whole + np.abs(cube).max(axis=0)
    at = np.linspace(0.01, 0.99, 50)
    for name, size in sizes.items():
        share = np.sort(size / radii)
        above = 1 - np.searchsorted(share, at, side="right") / share.size
        gap, worse = (np.abs(above - beyond_share(name, x)).max() for x in (at, np.minimum(at * 1.05, 1)))
        assert gap < 2.2 / np.sqrt(share.size) < worse, name
        assert (size / radii).mean() == pytest.approx(mean_share(name), rel=0.01)


def test_fast_and_exact_draws_are_the_same() -> None:
    law = FlowNoise.calibrate(unit=UNIT, epsilon=1).law
    quick = draw_flows(law, scale=np.full(200, 1.5), source=SeededSource(4))
    slow = draw_flows(law, scale=np.full(200, 1.5), source=SeededSource(4), exact=True)
    assert np.array_equal(quick, slow)


@pytest.mark.parametrize("epsilon", [0.75, 1, 2, 4])
def test_the_loss_between_neighbours_is_at_most_epsilon_and_less_noise_is_found_out(epsilon: float) -> None:
    """Brute force over neighbours: the density at many points, from both sides."""
    rng = np.random.default_rng(5)
    noise = FlowNoise.calibrate(unit=UNIT, epsilon=epsilon)
    found, scale_of = table(noise.law), noise.rings.scale

    def loss(factor: float) -> float:
        worst = 0.0
        for _ in range(150):
            sizes = rng.integers(1, rng.choice([3, 12, 60, 400]), (rng.integers(1, 4), 4))
            total = sizes.sum(axis=1)
            at = int(rng.choice([total.argmax(), rng.integers(len(sizes))]))
            gain = max(int(0.1 * total[at]), 1)
            step = np.zeros_like(sizes)
            kinds = rng.integers(0, 4, 2)
            split = rng.integers(0, gain + 1)
            step[at, kinds[0]] += split
            step[at, kinds[1]] += gain - split
            one, other = vector_of(sizes), vector_of(sizes + step)
            s = factor * scale_of(np.array([float(total.max())]))[0]
            t = factor * scale_of(np.array([float((total + step.sum(axis=1)).max())]))[0]
            direction = rng.normal(size=(60, 5))
            far = rng.exponential(size=(60, 1)) * rng.choice([0.01, 1, 10], (60, 1)) * s
            points = np.concatenate(
                [one + direction * far, [one, other], other + (other - one) * rng.random((30, 1)) * 5]
            )
            here = found.log_height(np.array([norm(p - one) for p in points]) / s) - 5 * np.log(s)
            there = found.log_height(np.array([norm(p - other) for p in points]) / t) - 5 * np.log(t)
            worst = max(worst, float(np.abs(here - there).max()))
        return worst

    assert loss(1.0) <= epsilon
    assert loss(0.9) > epsilon


@pytest.fixture(scope="module")
def histories() -> Histories:
    return opened(rows(firms=60, people=4000))


def session(histories: Histories, *, budget: float = 1000, seed: int | None = None) -> dc.Session:
    return dc.Session(histories, unit=UNIT, budget=budget, seed=seed)


def test_identities_hold_exactly_in_what_is_published(histories: Histories) -> None:
    release = session(histories).flows("q2", ["county", "sector"]).release(epsilon=1)
    flows, rates = release.flows, release.rates
    assert np.array_equal(flows["creation"] - flows["destruction"], flows["end"] - flows["beginning"])
    assert np.array_equal(flows["accessions"] - flows["separations"], flows["end"] - flows["beginning"])
    assert np.array_equal(flows["employment"], flows["end"] + flows["separations"])
    assert np.allclose(rates["jcr"] - rates["jdr"], rates["ar"] - rates["sr"], atol=1e-12)
    table = release.to_arrow()
    assert table.column_names[:3] == ["county", "sector", "quarter"]
    assert {"jcr_lower", "destruction_upper"} <= set(table.column_names)
    assert "flows" in str(release).lower() and release.guarantee.basis == "proved"


def test_flows_of_several_quarters_are_added_up() -> None:
    found = rows()
    opened_rows = opened(found)
    cells = statistics(opened_rows, ["q2", "q3"], ["county", "sector"])
    hands = [by_hand(found, quarter) for quarter in ("q2", "q3")]
    keys = list(zip(*(cells.keys[name].to_pylist() for name in ("county", "sector")), strict=True))
    assert set(keys) == set(hands[0]) | set(hands[1])
    for key, vector, largest in zip(keys, cells.vectors, cells.largest, strict=True):
        flows = dict(zip(FLOWS, flows_of(vector[None])[0].tolist(), strict=True))
        assert flows == {name: sum(hand.get(key, {}).get(name, 0) for hand in hands) for name in FLOWS}
        assert largest.tolist() == [hand.get(key, {}).get("largest", 0) for hand in hands]
    release = session(opened_rows).flows(["q2", "q3"], ["county", "sector"]).release(epsilon=4)
    assert release.to_arrow()["quarter"].to_pylist()[0] == "q2 to q3"
    assert "2 quarters together" in str(release.guarantee)
    for wrong in (["q3", "q2"], ["q1", "q2"], [], ["q2", "q2"]):
        with pytest.raises(DataError, check=about("quarter")):
            session(opened_rows).flows(wrong)


def test_a_sum_of_quarters_has_less_noise_than_as_many_releases() -> None:
    """Four quarters at epsilon 4 against four at epsilon 1: the error of the sum of jobs destroyed."""
    size = np.array([1000.0])
    together = FlowNoise.calibrate(unit=UNIT, epsilon=4, quarters=4).expected_error(size)["destruction"][0]
    apart = FlowNoise.calibrate(unit=UNIT, epsilon=1).expected_error(size)["destruction"][0]
    assert together < 0.45 * np.sqrt(4) * apart


@pytest.mark.parametrize(
    ("scale_share", "quarters"),
    [
        (0.15, ["q2", "q3"]),
        pytest.param(0, ["q3"], marks=pytest.mark.full_size),
        pytest.param(0.15, ["q3"], marks=pytest.mark.full_size),
        pytest.param(0, ["q2", "q3"], marks=pytest.mark.full_size),
    ],
)
def test_expected_errors_and_intervals_are_kept(histories: Histories, scale_share: float, quarters: list[str]) -> None:
    query = session(histories, budget=10_000, seed=8).flows(quarters, ["county", "sector"])
    cells = statistics(histories, quarters, ["county", "sector"])
    truth = dict(zip(FLOWS, flows_of(cells.vectors).T, strict=True))
    mean = (truth["beginning"] + truth["end"]) / 2
    rates = {"jcr": "creation", "jdr": "destruction", "ar": "accessions", "sr": "separations"}
    offer = query.offer(epsilon=2, scale_share=scale_share).at(histories)
    releases = [query.account.release(offer, None).value for _ in range(400 if len(quarters) == 1 else 200)]
    epsilon = 2 * (1 - scale_share)
    noise = FlowNoise.calibrate(unit=UNIT, epsilon=epsilon, quarters=len(quarters))
    told = noise.expected_error(cells.largest.mean(axis=1))
    for name in FLOWS:
        errors = np.abs([release.flows[name] - truth[name] for release in releases])
        assert (errors / told[name]).mean() == pytest.approx(1, rel=0.1)
        held = [(release.ends[name][0] <= truth[name]) & (truth[name] <= release.ends[name][1]) for release in releases]
        assert np.mean(held) >= 0.94
    for rate, flow in rates.items():
        true = truth[flow] / mean
        held = [(release.rate_ends[rate][0] <= true) & (true <= release.rate_ends[rate][1]) for release in releases]
        assert np.mean(held) >= 0.94


def test_one_law_for_all_flows_errs_less_than_two(histories: Histories) -> None:
    """Half of epsilon for the four kinds and half for jobs created is what composition would give."""
    joint = FlowNoise.calibrate(unit=UNIT, epsilon=2).expected_error(np.array([100.0]))
    half = dc.calibrate("joint-rings", unit=UNIT, epsilon=1, cells=4)
    alone = dc.calibrate("polynomial", unit=UNIT, epsilon=1)
    size = np.array([100.0])
    assert joint["creation"][0] < 0.75 * alone.expected_error(size, size)[0]
    assert joint["beginning"][0] < 0.8 * 1.5 * half.expected_error(size, size)[0]


def test_check_reads_nothing_and_tells_every_flow() -> None:
    found = opened(rows(), validate=False)
    query = session(found).flows("q2", "county")
    check = query.check(epsilon=1)
    assert set(check.to_dict()["expected"]["expected_error_by_largest_establishment"]) == set(FLOWS)
    assert "destruction" in str(check)


def test_wrong_requests_are_refused_before_anything_is_spent(histories: Histories) -> None:
    account = session(histories)
    left = account.remaining
    for quarter in ("q1", "q4", "q9"):
        with pytest.raises(DataError, check=about("quarter")):
            account.flows(quarter, "county")
    with pytest.raises(DataError, check=about("by")):
        account.flows("q2", ["county", "nowhere"])
    with pytest.raises(Infeasible, check=about("epsilon")):
        account.flows("q2", "county").release(epsilon="0.4")
    with pytest.raises(PrivacyError, check=about("epsilon")):
        account.flows("q2", "county").release(epsilon=0)
    with pytest.raises(PrivacyError, check=about("level")):
        account.flows("q2", "county").release(epsilon=1, level=2)
    with pytest.raises(DataError, check=about("jobs")):
        account.count("county")
    with pytest.raises(DataError, check=about("jobs")):
        dc.Session(histories.at("q2"), unit=UNIT, budget=1).flows("q2")
    with pytest.raises(PrivacyError, check=about("unit")):
        dc.Session(histories, unit=dc.Workers(), budget=1).flows("q2").check(epsilon=1)
    assert account.remaining == left


def test_rows_that_no_quarter_can_have_are_refused() -> None:
    found = rows(people=60)
    elsewhere = next(row for row in found if row["workplace"] != found[0]["workplace"])
    twice = [*found, dict(elsewhere, worker=found[0]["worker"], quarter=found[0]["quarter"])]
    late = [*found, dict(found[0], quarter="q9", worker=10**6)]
    nobody = [*found, dict(found[0], worker=None)]
    for wrong in (late, nobody):
        with pytest.raises(DataError, check=about("source")):
            opened(wrong)
    with pytest.raises(DataError, check=about("source")):
        opened(twice)
    several = opened(twice, allow_multiple=2)
    assert several.quarters == tuple(QUARTERS) and len(statistics(several, "q2", ["county"]).vectors)
    moved = [*found, dict(found[0], worker=10**6, county="c9", quarter="q4")]
    with pytest.raises(DataError, check=about("source")):
        opened(moved)
    with pytest.raises(DataError, check=about("quarters")):
        read_histories({"worker": [1]}, quarters=[], schema=SCHEMA)
    with pytest.raises(DataError, check=about("quarters")):
        read_histories({"worker": [1]}, quarters=["2024Q1", "2024-Q1", "2024Q2"], schema=SCHEMA)  # one of them twice
    with pytest.raises(DataError, check=about("time")):
        read_histories({"worker": [1]}, quarters=QUARTERS, schema=SCHEMA, time="county")
    with pytest.raises(DataError, check=about("schema")):
        read_histories({"worker": [1]}, quarters=QUARTERS, schema=Schema(["county"], {}, size="n"))


def test_a_change_between_two_quarters_is_one_table(histories: Histories) -> None:
    """Counted by hand; and its error is less than that of the difference of two tables, at equal epsilon."""
    found = rows(firms=60, people=4000)
    jobs = histories.between("q1", "q4")
    one = dc.Session(jobs, unit=UNIT, budget=100, dataset="changes").count(["county", "history"])
    cells = one.statistics(one.prepare(epsilon=2))
    at = {
        quarter: {(r["worker"], r["workplace"], r["county"]) for r in found if r["quarter"] == quarter}
        for quarter in QUARTERS
    }
    for county, counts in zip(cells.keys["county"].to_pylist(), cells.counts, strict=True):
        before, after = ({job for job in at[quarter] if job[2] == county} for quarter in ("q1", "q4"))
        assert counts.tolist() == [len(before & after), len(after - before), len(before - after)]
    size = np.array([1000.0])
    joint = dc.calibrate("joint-rings", unit=UNIT, epsilon=2, cells=3).expected_error(size, size)[0] * 1.5
    alone = dc.calibrate("polynomial", unit=UNIT, epsilon=1).expected_error(size, size)[0]
    assert joint < 0.8 * np.sqrt(2) * alone
    for wrong in (("q4", "q1"), ("q2", "q2")):
        with pytest.raises(DataError, check=about("later")):
            histories.between(*wrong)


@pytest.mark.parametrize(("declared", "most"), [(False, 2), (1, 2), (3, 6), (True, True)])
def test_a_worker_has_twice_as_many_jobs_in_two_quarters_as_in_one(declared: bool | int, most: bool | int) -> None:
    """Who changes the employer is counted in two cells: a promise about one job covers half of that."""
    found = opened([row for row in rows() if row["worker"] < 200], allow_multiple=declared)
    jobs = found.between("q1", "q4")
    assert jobs.allow_multiple is most or (jobs.allow_multiple == most and most is not True)
    assert (ANY_NUMBER if most is True else SEVERAL_JOBS.format(most)) in jobs.limits(UNIT)
    assert jobs.of_one_worker == (None if most is True else most)


def test_counts_of_one_quarter_are_counts_of_its_jobs(histories: Histories) -> None:
    jobs = histories.at("q2")
    release = dc.Session(jobs, unit=UNIT, budget=2, seed=1).count("county").release(epsilon=1)
    assert len(release.to_arrow()) == 3
    assert COORDINATES[:2] == ("stayed", "passed")
