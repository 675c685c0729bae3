"""Flows in a plan: checked, run, reported, bundled, verified, and what is refused with nothing spent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.identification import identification
from discreet.pages.ranked import Ranked
from discreet.plan.check import check
from discreet.plan.owner import owner_notes
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.identification import posterior
from discreet.release.folder import open_releases
from discreet.report.flows import shown
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError

PLAN = """
title = "Flows"

[data]
source = "data/jobs.parquet"
quarters = ["q1", "q2", "q3", "q4"]

[data.schema]
workplace_attributes = ["county", "sector"]
worker_attributes = {}

[data.labels.sector]
s0 = "Farms"

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "histories"

[[release]]
name = "flows-q2"
kind = "flows"
quarter = "q2"
by = ["county", "sector"]
epsilon = 1
scale_share = 0.2

[[release]]
name = "flows-q3"
kind = "flows"
quarter = "q3"
by = ["county"]
round_to = 5
suppress = { below = 20 }
compare = { file = "qwi.csv", columns = { accessions = "A", separations = "B" }, flag = "f", suppressed = ["5"] }
epsilon = 1

[[release]]
name = "year"
kind = "changes"
quarters = ["q1", "q2", "q4"]
by = ["county"]
compare = { file = "changes.csv" }
epsilon = 2

[[alarms]]
name = "year"
late = "year"
value = "change"

[output]
folder = "out"
"""
QUARTERS = ("q1", "q2", "q3", "q4")


def histories(seed: int = 0) -> pa.Table:
    """Workers who stay, leave, come back and change their employer."""
    rng = np.random.default_rng(seed)
    firms = 60
    county, sector = rng.integers(0, 6, firms), rng.integers(0, 2, firms)
    firm = (firms * rng.random(3000) ** 2).astype(int)
    tables = []
    for quarter in QUARTERS:
        firm = np.where(rng.random(3000) < 0.15, (firms * rng.random(3000) ** 2).astype(int), firm)
        there = np.flatnonzero(rng.random(3000) < 0.85)
        columns = {
            "worker": there,
            "workplace": firm[there],
            "quarter": [quarter] * len(there),
            "county": [f"c{county[f]}" for f in firm[there]],
            "sector": [f"s{sector[f]}" for f in firm[there]],
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def written(folder: Path, table: pa.Table | None = None, text: str = PLAN) -> Path:
    (folder / "data").mkdir(exist_ok=True)
    pq.write_table(histories() if table is None else table, folder / "data" / "jobs.parquet")
    (folder / "qwi.csv").write_text("county,A,B,f\nc0,100,90,1\nc1,,,5\nc2,70,0,5\nc3,40,41,1\n")
    (folder / "changes.csv").write_text("county,from,to,change\nc0,q1,q2,-5\nc0,q2,q4,\n")
    plan = folder / "plan.toml"
    plan.write_text(text)
    return plan


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Any:
    plan = written(tmp_path_factory.mktemp("flows"))
    return plan, run(plan)


def test_flows_go_from_the_plan_to_the_reviewer(done: Any) -> None:
    plan, result = done
    folder = plan.parent / "out"
    table = pq.read_table(folder / "flows-q2" / "research.parquet").to_pandas()
    assert (table["beginning"] + table["accessions"] == table["end"] + table["separations"]).all()
    assert (table["creation"] - table["destruction"] == table["end"] - table["beginning"]).all()
    known = table[table["jcr"].notna()]
    assert np.allclose(known["jcr"] - known["jdr"], known["ar"] - known["sr"], atol=1e-12)
    assert {"creation_quality", "jdr_upper", "largest"} <= {*table.columns}
    findings = {one.subject: one for one in verify_bundle(result.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    for part in ("mechanisms", "intervals", "rows", "basic form", "description", "guarantee"):
        for name in ("flows-q2", "flows-q3", "year"):
            assert findings[f"{name}: {part}"].holds, part
    assert findings["report.html"].holds and "identities" in findings["flows-q2: intervals"].words
    basic = pq.read_table(folder / "flows-q2" / "basic.parquet").to_pandas()
    assert {*basic["sector"]} == {"Farms", "s1"} and "largest" not in basic.columns
    rounded = pq.read_table(folder / "flows-q3" / "basic.parquet").to_pandas()
    there = rounded[rounded["creation_quality"] != "suppressed"]
    assert (there["creation"] % 5 == 0).all() and (there["creation_upper"] % 5 == 0).all()
    drawn = pq.read_table(folder / "flows-q3" / "research.parquet").to_pandas()
    hidden = rounded["creation_quality"] == "suppressed"
    assert (there["creation"] >= 20).all() and (rounded["jcr"].isna() == (hidden | drawn["jcr"].isna())).all()
    change = pq.read_table(folder / "year" / "research.parquet").to_pandas()
    assert (change["later"] - change["earlier"] == change["change"]).all() and {*change["to"]} == {"q2", "q4"}
    beyond = pq.read_table(folder / "alarms-year.parquet").to_pandas()
    own = beyond.merge(change, on=["county", "from", "to"], suffixes=("_alarm", ""))
    assert len(own) == len(change) == len(beyond) and (own["before"] == own["earlier"]).all()
    # at a rate of 10 % the ends are inside those of the published level of 95 %
    assert (own["low"] >= own["change_lower"]).all() and (own["high"] <= own["change_upper"]).all()
    assert (own["alarm"] == ((own["low"] > 0) | (own["high"] < 0))).all() and findings["alarms"].holds
    beside = json.loads((folder / "flows-q3" / "comparison.json").read_text())["found"]["numbers"]
    assert [beside[name][key] for name in beside for key in ("published", "suppressed", "absent")] == [2, 2, 2] * 2
    beside = json.loads((folder / "year" / "comparison.json").read_text())["found"]["numbers"]["change"]
    assert [beside[key] for key in ("published", "suppressed", "absent")] == [1, 1, 10]
    assert findings["flows-q3: agency's table"].holds and findings["year: agency's table"].holds
    report = (folder / "report.html").read_text()
    assert "flows-q3 beside qwi.csv" in report
    assert "year: of 12 changes" in report
    assert "Job destruction rate" in report and "accessions" in report


def test_rates_of_small_cells_are_possible_ones_for_readers_and_flagged(tmp_path: Path) -> None:
    """Without an interval too: an accession rate of -6 says nothing. An interval of all possible rates is no answer."""
    there = [(firm, quarter) for firm in range(80) for quarter in QUARTERS if (firm + int(quarter[1])) % 3]
    columns = {"worker": [firm for firm, _ in there], "workplace": [firm for firm, _ in there]}
    county = [f"c{firm}" for firm, _ in there]
    table = pa.table({**columns, "quarter": [quarter for _, quarter in there], "county": county, "sector": county})
    text = PLAN[: PLAN.index("[[release]]")] + PLAN[PLAN.index("[output]") :]
    flows, changes = 'kind = "flows"\nquarter = "q2"', 'kind = "changes"\nquarters = ["q1", "q2"]'
    for name, kind in (("small", flows), ("change", changes)):
        text += f'\n[[release]]\nname = "{name}"\n{kind}\nby = ["county"]\nepsilon = 1\n'
    result = run(written(tmp_path, table, text))
    drawn, seen = (pq.read_table(tmp_path / "out" / "small" / f"{form}.parquet") for form in ("research", "basic"))
    for rate in ("jcr", "jdr", "ar", "sr"):
        before, after = (one[rate].to_numpy(zero_copy_only=False) for one in (drawn, seen))
        assert np.nanmin(before) < 0 <= np.nanmin(after), rate
    rates = pq.read_table(tmp_path / "out" / "change" / "basic.parquet")["rate"].to_numpy(zero_copy_only=False)
    assert np.nanmin(rates) >= -1
    blocks = list(itertools.islice(shown(seen, "small", by=["county"], drawn=drawn, expected=None), 3))  # type: ignore[arg-type]
    marks = [mark for block in blocks if isinstance(block, Ranked) for mark in block.marks]
    whole = [mark for mark in marks if (mark.low, mark.high) == (0, 2)]
    assert any(mark.value >= 1 for mark in whole) and {mark.flag for mark in whole} == {"mostly noise"}
    assert not [one for one in verify_bundle(result.bundle) if one.wrong]


def test_flows_and_changes_are_attacked_below_the_bound(done: Any) -> None:
    plan, _ = done
    found = identification(open_releases(plan.parent / "out"))
    ours = {row["of"]: row for row in found.attacks if row["table"] == "this release"}
    assert {*ours} == {"flows-q2", "flows-q3", "year"} and not found.notes
    for row in ours.values():
        assert row["exact"] / row["cases"] <= posterior(0.5, float(found.said.loss.amounts["epsilon"]))


def test_changes_beside_a_table_without_times_are_refused(tmp_path: Path) -> None:
    plan = written(tmp_path)
    (tmp_path / "changes.csv").write_text("county,change\nc0,-5\n")
    assert [fault.place for fault in check(read_plan(plan)).faults] == [("release", 2, "compare")]


def test_published_flows_are_near_the_true_ones(done: Any) -> None:
    plan, _ = done
    import discreet as dc
    from discreet.tables.movement.flow_noise import flows_of
    from discreet.tables.movement.flows import statistics

    table = dc.read_histories(
        plan.parent / "data" / "jobs.parquet", quarters=QUARTERS, schema=dc.Schema(["county", "sector"], {})
    )
    cells = statistics(table, "q3", ["county"])
    truth = dict(zip(cells.keys["county"].to_pylist(), flows_of(cells.vectors).tolist(), strict=True))
    found = pq.read_table(plan.parent / "out" / "flows-q3" / "research.parquet").to_pandas().set_index("county")
    errors = [abs(found.loc[county, "employment"] / employment - 1) for county, (employment, *_) in truth.items()]
    assert sorted(errors)[2] < 0.25  # half of the counties: of one alone, noise exceeds any limit once in a while
    assert max(errors) < 10


def test_check_prices_flows_without_data(tmp_path: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    plan = written(tmp_path)
    (tmp_path / "data" / "jobs.parquet").unlink()
    found = check(read_plan(plan))
    assert not found.faults and found.missing and str(found.only.cost) == "epsilon=4"
    told = found.to_dict()["releases"][0]["expected"]["expected_error_by_largest_establishment"]
    assert told["destruction"][1000] > told["destruction"][10] > 0
    code, out, _ = command("check", plan)
    assert code == 0 and "destruction" in out and "flows" in out


def test_public_sizes_tell_the_error_of_flows(tmp_path: Path) -> None:
    sizes = pa.table({"county": ["c0", "c1"], "jobs": [500, 900], "largest": [100, 300]})
    pq.write_table(sizes, tmp_path / "sizes.parquet")
    text = PLAN.replace("[unit]", '[public]\nsizes = "sizes.parquet"\n\n[unit]')
    found = check(read_plan(written(tmp_path, text=text)))
    told = found.to_dict()["releases"][1]["expected"]["expected_error"]
    by_size = found.releases[1].expected.errors["creation"]
    assert told["cells"] == 2 and by_size[100] < told["creation"] < by_size[1000]
    assert "expected_error" not in found.to_dict()["releases"][0]["expected"]  # no sector in the public table


def test_a_dry_run_and_a_second_run_change_nothing(tmp_path: Path, done: Any) -> None:
    plan = written(tmp_path)
    run(plan, dry_run=True)
    assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "out").exists()
    first, result = done
    assert run(first).to_dict()["ledger_head"] == result.to_dict()["ledger_head"]


def tampered(done: Any, tmp_path: Path, change: Callable[[pa.Table], pa.Table], name: str = "flows-q2") -> list[str]:
    """What is found wrong where somebody changed a table and made all hashes of files fit again."""
    from discreet.archive.findings import RefutedError
    from discreet.plan.requests import requests
    from discreet.review.recompute import check_intervals

    plan, _ = done
    request = next(one for one in requests(read_plan(plan), paid={})[0] if one.release.name == name)
    folder = plan.parent / "out" / name
    about = json.loads((folder / "release.json").read_text())
    pq.write_table(change(pq.read_table(folder / "research.parquet")), tmp_path / "research.parquet")
    try:
        check_intervals(request, tmp_path, about)
    except RefutedError as error:
        return [str(error)]
    return []


@pytest.mark.parametrize(
    ("name", "column"),
    [("flows-q2", each) for each in ("end", "destruction", "jcr", "sr_upper", "creation_lower", "employment")]
    + [("year", each) for each in ("earlier", "later", "change", "rate", "change_upper", "later_lower")],
)
def test_the_reviewer_refutes_a_changed_number(done: Any, tmp_path: Path, name: str, column: str) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = [None if value is None else value + 1 for value in table[column].to_pylist()]
        return table.set_column(table.column_names.index(column), column, pa.array(values, table[column].type))

    assert tampered(done, tmp_path, change, name)
    assert not tampered(done, tmp_path, lambda table: table, name)


def refused(plan: Path, act: Callable[[Path], object] = run) -> list[str]:
    """The places that a refusal is about; nothing is written or spent."""
    before = {*plan.parent.rglob("*")}
    with pytest.raises(PlanError) as error:
        act(plan)
    assert {*plan.parent.rglob("*")} - before <= {plan.parent / ".plan.toml.lock"}
    return [".".join(map(str, fault.place)) for fault in error.value.faults]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('quarter = "q2"', 'quarter = "q1"', "release.0.quarter"),
        ('quarter = "q2"', 'quarter = "q9"', "release.0.quarter"),
        ('quarters = ["q1", "q2", "q3", "q4"]\n', "", "data.quarters"),
        ('by = ["county", "sector"]', 'by = ["county", "sex"]', "release.0.by"),
        ('quarters = ["q1", "q2", "q3", "q4"]', 'quarters = ["q1", "q2", 3, "q4"]', "data.quarters"),
        ("epsilon = 1\nscale_share = 0.2", "epsilon = 0.2", "release.0.epsilon"),
        ('kind = "establishments"\nalpha = 0.1', 'kind = "workers"', "release.0.kind"),
        ('worker_attributes = {}\n', 'worker_attributes = {}\nworker = "quarter"\n', "data.time"),
        ('quarters = ["q1", "q2", "q4"]', 'quarters = ["q2", "q1"]', "release.2.quarters"),
        ('quarters = ["q1", "q2", "q4"]', 'quarters = ["q2"]', "release.2.quarters"),
        ('quarters = ["q1", "q2", "q4"]', 'quarters = ["q2", "q9"]', "release.2.quarters"),
        ('quarter = "q2"', 'quarter = ["q2", "q2"]', "release.0.quarter"),
        ('kind = "flows"\nquarter = "q3"', 'kind = "count"', "data.quarters"),
    ],
)  # fmt: skip
def test_bad_plans_are_refused_before_anything_is_spent(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in PLAN
    text = PLAN.replace(old, new, 1)
    if 'kind = "count"' in new:
        text = text.replace("round_to = 5\nsuppress = { below = 20 }\n", "")
    assert any(found.startswith(place) for found in refused(written(tmp_path, text=text)))


def test_bad_histories_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    good = histories()
    column = good.column_names.index("quarter")
    rows = good.to_pylist()
    unknown = good.set_column(column, "quarter", pa.array(["q7", *good["quarter"].to_pylist()[1:]]))
    absent = good.set_column(column, "quarter", pa.array([None, *good["quarter"].to_pylist()[1:]]))
    twice = pa.concat_tables([good, pa.Table.from_pylist([rows[0] | {"workplace": 999, "county": "c1"}])])
    moved = pa.Table.from_pylist([rows[0] | {"county": "c77"}, *rows[1:]])
    for table, place in (
        (unknown, "data.source"),
        (absent, "data.source"),
        (twice, "data."),
        (moved, "data.source"),
    ):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        assert any(found.startswith(place) for found in refused(written(folder, table)))


@pytest.mark.parametrize("public", [False, True], ids=["cells of jobs", "public list"])
def test_a_quarter_without_rows_is_released_like_one_with_a_single_row(tmp_path: Path, public: bool) -> None:
    """Whether the only job of a quarter exists is protected, so nothing may stop where it does not."""
    good = histories()
    rest = good.filter(pa.compute.not_equal(good["quarter"], "q3"))
    single = pa.concat_tables([rest, good.filter(pa.compute.equal(good["quarter"], "q3")).slice(0, 1)])
    text = dated(1, *QUARTERS)
    if public:
        columns = ["workplace", "county", "sector"]
        pq.write_table(good.group_by(columns).aggregate([]), tmp_path / "places.parquet")
        rest, single = (table.drop_columns(["county", "sector"]) for table in (rest, single))
        text = text.replace("quarters = ", 'workplaces = "../places.parquet"\nquarters = ', 1)
    for name, table in (("none", rest), ("single", single)):
        folder = tmp_path / name
        folder.mkdir()
        plan = written(folder, table, text)
        bundle = run(plan).bundle
        assert name == "single" or not [finding for finding in verify_bundle(bundle) if finding.wrong]
        notes = owner_notes(read_plan(plan))
        assert ["'q3'" in note for note in notes] == [True] * (name == "none")


def test_what_was_paid_for_is_not_drawn_for_another_quarter(tmp_path: Path) -> None:
    plan = written(tmp_path)
    run(plan)
    plan.write_text(PLAN.replace('quarter = "q2"', 'quarter = "q3"'))
    assert refused(plan) == ["release.0.quarter"]
    plan.write_text(PLAN.replace('quarters = ["q1", "q2", "q3", "q4"]', 'quarters = ["q0", "q1", "q2", "q3", "q4"]'))
    assert "quarters" in refused(plan)[0]


def dated(release: int, *quarters: str) -> str:
    """The plan with one of its releases, and with quarters whose names say when they are."""
    head, *releases = PLAN.split("[[release]]")
    text = "[[release]]".join([head, releases[release].partition("[output]")[0]]) + '[output]\nfolder = "out"\n'
    for old, new in zip(QUARTERS, quarters, strict=True):
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


def checked(plan: Path) -> None:
    check(read_plan(plan)).refuse()


def test_quarters_are_in_the_order_of_time_and_flows_skip_none(tmp_path: Path) -> None:
    back = written(tmp_path, text=dated(1, "2024Q4", "2024Q3", "2024Q2", "2024Q1"))
    assert refused(back, checked) == ["data.quarters"]
    for quarters in (("2024Q1", "2024Q2", "2024Q3", "2025Q1"), ("2023Q4", "2024Q1", "2024Q3", "2024Q4")):
        assert refused(written(tmp_path, text=dated(1, *quarters)), checked) == ["release.0.quarter"]


@pytest.mark.parametrize(
    ("each", "period", "places"),
    [
        ("per_quarter = 3", 'period = "2025-Q3"', ["data.period"]),
        ("per_year = 3", 'period = "2030"', ["data.period"]),
        ("per_year = 1", "", ["release.0.epsilon"]),
        ("per_year = 3", "", []),
        ("per_quarter = 3", "", []),
    ],
)
def test_changes_are_paid_from_the_amount_of_their_own_period(
    tmp_path: Path, each: str, period: str, places: list[str]
) -> None:
    # Quarters that a change skips need not be there.
    text = dated(2, "2024Q1", "2024Q2", "2025Q2", "2025Q4").replace("epsilon = 4\n", f"epsilon = 4\n{each}\n")
    plan = written(tmp_path, text=text.replace("[data]\n", f"[data]\n{period}\n"))
    if places:
        assert refused(plan, checked) == places
    else:
        found = check(read_plan(plan))
        details, cost = found.releases[0].request.details, next(iter(found.cost.amounts.values()))
        assert details["periods"] == ["2024-Q1", "2024-Q2", "2025-Q4"]
        assert details["period"] == ("2025" if "year" in each else "2025-Q4")
        kept = ("2024", "2025") if "year" in each else details["periods"]
        assert found.only.after.periods == dict.fromkeys(kept, cost) and found.only.after.spent == found.cost


def test_flows_that_were_paid_leave_less_for_every_quarter_that_they_read(tmp_path: Path, command: Any) -> None:
    """In check, run, `ledger show`, report and verdict; a second plan is refused for an earlier quarter."""
    text = dated(1, "2024Q1", "2024Q2", "2024Q3", "2024Q4").replace("epsilon = 4\n", "epsilon = 4\nper_quarter = 1.5\n")
    flows = written(tmp_path, text=text.replace('compare = { file = "qwi.csv"', "# compare = {"))
    rows = pq.read_table(tmp_path / "data" / "jobs.parquet")
    named = [name.replace("q", "2024Q") for name in rows["quarter"].to_pylist()]
    at = rows.column_names.index("quarter")
    pq.write_table(rows.set_column(at, "quarter", pa.array(named)), tmp_path / "data" / "jobs.parquet")
    before = check(read_plan(flows))
    details, cost = before.releases[0].request.details, next(iter(before.cost.amounts.values()))
    reads = details["periods"]
    assert len(reads) == len(details["quarter"]) + 2 and details["period"] == reads[-2]
    done = run(flows)
    [budget] = done.budgets
    assert budget.periods == dict.fromkeys(reads, cost) and budget.spent == before.cost
    told = json.loads(command("ledger", "show", tmp_path / "ledger.db", "--json")[1])["budgets"][0]["periods"]
    assert {name: each["remaining"] for name, each in told.items()} == dict.fromkeys(reads, str(Fraction(3, 2) - cost))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in reads)
    assert not [one for one in verify_bundle(done.bundle, ledger=tmp_path / "ledger.db") if one.wrong]
    again = tmp_path / "again.toml"
    again.write_text(
        flows.read_text().replace('name = "', 'name = "again-').replace('folder = "out"', 'folder = "out-again"')
    )
    [fault] = check(read_plan(again)).faults
    assert fault.place == ("release", 0, "epsilon")
    assert all(f"{name} has 0.5 left and lacks 0.5" in str(fault) for name in reads)


def test_quarters_that_do_not_say_when_they_are_cannot_be_paid_by_quarter(tmp_path: Path) -> None:
    """Also where the plan states a period: it would be charged for that one alone."""
    for period in ("", 'period = "2024-Q2"\n'):
        text = dated(1, *QUARTERS).replace("epsilon = 4\n", "epsilon = 4\nper_quarter = 3\n")
        plan = written(tmp_path, text=text.replace("[data]\n", f"[data]\n{period}"))
        assert refused(plan, checked) == ["data.period"]


def test_a_list_that_is_too_short_is_not_called_empty(tmp_path: Path) -> None:
    text = PLAN.replace('quarters = ["q1", "q2", "q4"]', 'quarters = ["q1"]')
    with pytest.raises(PlanError) as error:
        read_plan(tmp_path / "plan.toml", text.encode())
    assert "at least 2" in str(error.value) and "empty" not in str(error.value)
