"""Pricing a plan: what it costs, how far off it would be, and that no confidential data are read for it."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan.check import UNTYPED, check
from discreet.plan.reading import PlanFile, read_plan
from discreet.plan.run import run
from discreet.plan.shape import RELEASES
from discreet.privacy.losses import Concentrated, Pure
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.ladder import LadderNoise
from discreet.words.errors import PlanError
from faults_of import about

LADDER: LadderNoise = calibrate("ladder", unit=Establishments("0.1"), epsilon=2)  # type: ignore[assignment]


def integer_error(epsilon: int, *sizes: int) -> float:
    """The mean of |noise| over establishments of these sizes, one by one over all integers that matter."""
    mechanism: LadderNoise = calibrate("ladder", unit=Establishments("0.1"), epsilon=epsilon)  # type: ignore[assignment]
    j = np.arange(-20_000, 20_001)
    return float(np.mean([mechanism.integer_probability(j, size) @ np.abs(j) for size in sizes]))


def add_public(plan: Path, text: str) -> None:
    plan.write_text(plan.read_text().replace("[[release]]", f"[public]\n{text}\n\n[[release]]", 1))


def test_needs_no_confidential_data(plan: Path, command, contents) -> None:
    for path in (plan.parent / "data").iterdir():
        path.unlink()
    before = contents(plan.parent)
    code, out, _ = command("check", plan)
    assert code == 0
    assert "The plan costs epsilon=6. Of epsilon=6 for 'toys', epsilon=6 is left now and epsilon=0 afterwards." in out
    assert contents(plan.parent) == before


def test_reads_no_confidential_data(plan: Path, command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every door to a table is shut, and the plan is priced all the same."""
    from discreet.data import frames

    def shut(*_: object, **__: object) -> None:
        raise AssertionError("confidential data were opened")

    monkeypatch.setattr(frames, "scan", shut)
    monkeypatch.setattr(frames, "collect", shut)
    monkeypatch.setattr("discreet.plan.confidential.read_jobs", shut)
    assert command("check", plan)[0] == 0
    with pytest.raises(AssertionError, match="were opened"):
        command("run", plan)


def test_costs_and_errors(plan: Path) -> None:
    found = check(read_plan(plan))
    found.refuse()
    assert [release.request.guarantee.loss.amounts["epsilon"] for release in found.releases] == [2, 2, 2]
    assert [len(release.tables) for release in found.releases] == [1, 1, 2]
    assert [table.loss.amounts["epsilon"] for table in found.releases[2].tables] == [1, 1]
    assert found.releases[1].tables[0].errors.cells_per_workplace_cell == 2
    # one establishment of 1,000 workers: scale 100, mean absolute error 100 * E|Z|
    expected = float(LADDER.expected_error(np.array([0.0]), np.array([1000.0]))[0])
    assert found.releases[0].tables[0].errors.error[1000] == pytest.approx(expected)
    assert found.releases[0].tables[0].errors.error[1] == pytest.approx(integer_error(2, 1))
    assert found.only.after.remaining.amounts["epsilon"] == 0


def test_expected_errors_on_public_sizes(plan: Path) -> None:
    (plan.parent / "sizes.csv").write_text(
        "place,sector,jobs,largest\nP0,farm,100,50\nP0,shop,3,3\nP1,farm,0,0\nP1,shop,1000,200\n"
    )
    add_public(plan, 'sizes = "sizes.csv"')
    tables = [release.tables[0] for release in check(read_plan(plan)).releases]
    known, merged = tables[0].expected, check(read_plan(plan)).releases[2].tables[1].expected
    assert known is not None
    assert known.is_bound  # a second establishment of the last cell may have 200 workers, too
    assert [at_most for *_, at_most in known.by_size] == [False, False, False, True]
    assert known.cells == 4
    mean = integer_error(2, 50, 3, 0, 200)
    assert known.mean == pytest.approx(mean, rel=1e-4)
    assert known.share == pytest.approx(4 * mean / 1103, rel=1e-4)
    assert [(low, cells) for low, cells, *_ in known.by_size] == [(0, 1), (1, 1), (100, 1), (1000, 1)]
    assert merged is not None
    assert merged.cells == 2  # two places, whose largest establishments have 50 and 200 workers
    assert merged.mean == pytest.approx(integer_error(1, 50, 200), rel=1e-4)


def test_without_largest_the_error_is_a_bound(plan: Path, command) -> None:
    (plan.parent / "sizes.csv").write_text("place,sector,jobs\nP0,farm,100\nP0,shop,3\n")
    add_public(plan, 'sizes = "sizes.csv"')
    code, out, _ = command("check", plan)
    assert code == 0
    assert "at most" in out
    assert "each cell counts as if it were a single one" in " ".join(out.split())


def weak(plan: Path) -> None:
    """Noise that follows the workers of one kind, in cells of one establishment each."""
    text = plan.read_text().replace("alpha = 0.1", 'alpha = 0.1\nstrength = "weak"')
    plan.write_text(text.replace('by = ["place", "sex"]', 'by = ["place", "sex"]\nmechanism = "polynomial"'))
    (plan.parent / "sizes.csv").write_text("place,sector,jobs,largest\nP0,farm,200,200\nP1,farm,4,4\n")
    add_public(plan, 'sizes = "sizes.csv"')


def test_errors_that_depend_on_kinds_are_bounds_everywhere(plan: Path, command) -> None:
    weak(plan)
    places, sexes = (release.tables[0] for release in check(read_plan(plan)).releases[:2])
    assert places.errors.error.at_most == {100, 1000, 10_000}  # by the second largest establishment, beyond the table
    assert not places.expected.is_bound  # each is alone in its cell
    assert sexes.errors.error.at_most == {100, 1000, 10_000}  # up to 1/alpha workers the noise is the same
    assert [at_most for *_, at_most in sexes.expected.by_size] == [False, True] and sexes.expected.is_bound
    size = np.array([100.0])
    half = calibrate("polynomial", unit=Establishments("0.1"), epsilon=1).integer_error(size, size)[0]  # for each sex
    assert half < sexes.expected.by_size[1][2] < 1.1 * half
    told = json.loads(command("check", plan, "--json")[1])["releases"][1]["tables"][0]
    assert told["is_upper_bound_by_largest_establishment"] == {
        str(size): size > 10 for size in (1, 10, 100, 1000, 10_000)
    }
    assert [each["is_upper_bound"] for each in told["expected_error"]["by_cell_size"]] == [False, True]
    out = command("check", plan)[1]
    assert out.count("at most") > 5
    assert "depends on how workers divide into kinds" in out
    assert "e+0" not in out
    html = run(plan).report.read_text()
    assert "<td>at most " in html and "depends on how workers divide into kinds" in html


def test_errors_that_depend_on_nothing_are_told_once(plan: Path, command) -> None:
    plan.write_text(plan.read_text().replace('"establishments"', '"workers"').replace("alpha = 0.1\n", ""))
    out = command("check", plan)[1]
    assert "the same in any cell" in out
    assert "1,000" not in out
    html = run(plan).report.read_text()
    assert "the same for every count" in html and "whose size is confidential" not in html


def test_sizes_that_lack_an_attribute_tell_nothing(plan: Path) -> None:
    (plan.parent / "sizes.csv").write_text("county,jobs\nA,100\n")
    add_public(plan, 'sizes = "sizes.csv"')
    found = check(read_plan(plan))
    assert found.releases[0].tables[0].expected is None


@pytest.mark.parametrize("formats", ['["csv"]', '["parquet"]'])
def test_a_previous_release_tells_the_sizes(plan: Path, formats: str) -> None:
    first = plan.read_text()
    plan.write_text(first.replace('folder = "out"', f'folder = "out"\nformats = {formats}'))
    run(plan)
    plan.write_text(first.replace('"toys"', '"toys 2"').replace('"out"', '"out2"'))
    add_public(plan, 'previous = "out/margins"')
    tables = check(read_plan(plan)).releases
    assert [table.tables[0].expected.cells for table in tables] == [8, 4, 8]
    assert tables[0].tables[0].expected.is_bound


def test_where_applies_to_public_sizes(plan: Path) -> None:
    (plan.parent / "sizes.csv").write_text("place,sector,jobs\nP0,farm,100\nP0,shop,3\nP1,shop,9\n")
    add_public(plan, 'sizes = "sizes.csv"')
    plan.write_text(
        plan.read_text().replace('by = ["place", "sector"]', 'by = ["place"]\nwhere = { sector = ["shop"] }')
    )
    known = check(read_plan(plan)).releases[0].tables[0].expected
    assert known.cells == 2
    assert known.by_size[0][1] == 2


def test_standing_of_a_plan_that_was_run(plan: Path, command) -> None:
    run(plan)
    code, out, _ = command("check", plan, "--json")
    told = json.loads(out)
    assert code == 0
    assert {release["state"] for release in told["releases"]} == {"released"}
    assert told["cost"] == {"epsilon": "0"}
    assert told["budget"]["remaining"] == {"epsilon": "0"}


@pytest.mark.parametrize("total", ["4", "9"])
def test_the_ledger_says_what_is_left_whatever_total_the_plan_states(plan: Path, command, total: str) -> None:
    with Ledger.open(plan.parent / "ledger.db") as ledger:
        jobs = {"dataset": "toys", "unit": Establishments("0.1")}
        ledger.open_budget(total=Pure("7.5"), **jobs)
        ledger.charge(release="earlier", loss=Pure("0.25"), **jobs)
    plan.write_text(plan.read_text().replace("epsilon = 6\n", f"epsilon = {total}\n"))
    found = check(read_plan(plan))
    assert (found.only.before.total, found.only.before.remaining) == (Pure("7.5"), Pure("7.25"))
    assert found.only.after.remaining == Pure("1.25")
    assert [fault.place for fault in found.faults] == [("budget",)]
    code, out, err = command("check", plan)
    assert code == 2
    assert "Of epsilon=7.5 for 'toys', epsilon=7.25 is left now and epsilon=1.25 afterwards" in " ".join(out.split())
    assert "epsilon=7.25 left" in " ".join(err.split())


def test_a_budget_in_another_currency_is_told_and_judged_nowhere(plan: Path) -> None:
    with Ledger.open(plan.parent / "ledger.db") as ledger:
        ledger.open_budget(dataset="toys", unit=Establishments("0.1"), total=Concentrated(1))
    found = check(read_plan(plan))
    assert [fault.place for fault in found.faults] == [("budget",)]
    assert "rho=1 left" in found.faults[0].said()
    assert found.only.cost == Pure(6)


def test_json_of_a_plan_that_cannot_run(plan: Path, command) -> None:
    plan.write_text(plan.read_text().replace("epsilon = 2\n", "epsilon = 0.01\n", 1))
    code, out, _ = command("check", plan, "--json")
    told = json.loads(out)
    assert code == 2
    assert not told["can_run"]
    assert told["faults"][0]["line"] == 25
    assert "epsilon > ln(1 + alpha)" in told["faults"][0]["message"]


def test_thirds_are_exact(plan: Path) -> None:
    """Three releases of a third use up a budget of one, to the last digit."""
    text = plan.read_text().replace("epsilon = 6", "epsilon = 1").replace("epsilon = 2", 'epsilon = "1/3"')
    plan.write_text(text.replace("alpha = 0.1", 'alpha = "0.01"'))
    found = check(read_plan(plan))
    found.refuse()
    assert found.only.cost.amounts["epsilon"] == Fraction(1)
    assert not found.only.after.remaining


def test_a_released_folder_that_is_gone_is_a_fault(plan: Path, command) -> None:
    run(plan)
    shutil.rmtree(plan.parent / "out" / "sexes")
    for verb in ("check", "run"):
        code, _, err = command(verb, plan)
        assert code == 2, verb
        assert "does not hold its files" in err


def test_a_released_file_that_was_changed_is_a_fault(plan: Path, command) -> None:
    run(plan)
    (plan.parent / "out" / "places" / "basic.csv").write_text("place\n")
    code, _, err = command("check", plan)
    assert code == 2
    assert "does not hold its files" in err


def test_a_file_that_was_not_released_is_told(plan: Path, command) -> None:
    run(plan)
    (plan.parent / "out" / "places" / "extra.csv").write_text("place\n")
    code, out, _ = command("run", plan)
    assert code == 0
    assert "places, beside what was not released: extra.csv" in out
    told = json.loads(command("run", plan, "--json")[1])
    assert [release["other_files"] for release in told["releases"]] == [["extra.csv"], [], []]


def test_huge_amounts_are_told_in_few_digits(plan: Path, command) -> None:
    plan.write_text(plan.read_text().replace("epsilon = 2\n", f"epsilon = {'9' * 200}\n", 1))
    code, _, err = command("check", plan)
    assert code == 2
    assert "9" * 41 not in err


@pytest.mark.parametrize("name", ["check", "run"])
def test_json_of_a_plan_that_cannot_be_read(plan: Path, command, name: str) -> None:
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace("[budget]", "[budget]\ncolour = 1"), encoding="utf-8")
    code, out, _ = command(name, plan, "--json")
    line = text[: text.index("[budget]")].count("\n") + 2
    assert code == 2
    assert [(fault["line"], "colour" in fault["message"]) for fault in json.loads(out)["faults"]] == [(line, True)]


def test_beside_a_run_that_releases_meanwhile(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release appears after the ledger was read, or moves from its staging folder while that is looked at."""
    from discreet.ledger import publication
    from discreet.plan import check as module

    standing, staged = module.standings, publication._staged

    def overtaken(file: PlanFile) -> Any:
        monkeypatch.setattr(module, "standings", standing)
        before = standing(file)
        run(plan)
        return before

    monkeypatch.setattr(module, "standings", overtaken)
    found = check(read_plan(plan))
    assert not found.faults
    assert {known.state for known in found.releases} == {"new"}
    shown, hidden = plan.parent / "out" / "places", plan.parent / "out" / publication._prefix("toys", "places")
    shown.rename(hidden)
    monkeypatch.setattr(publication, "_staged", lambda *asked: (staged(*asked), hidden.rename(shown))[0])
    found = check(read_plan(plan))
    assert not found.faults
    assert {known.state for known in found.releases} == {"released"}


@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_torn_ledger_accuses_no_release(plan: Path, command, contents, verb: str) -> None:
    run(plan)
    ledger = plan.parent / "ledger.db"
    ledger.write_bytes(ledger.read_bytes()[:3000])
    before = contents(plan.parent / "out")
    code, _, err = command(verb, plan)
    assert code == 2
    assert "plan.toml:18: [budget], ledger: " in err
    assert "has a fault" in err
    assert "did not release" not in err
    assert contents(plan.parent / "out") == before


def test_says_which_data_are_not_here(plan: Path, command) -> None:
    (plan.parent / "data" / "jobs.parquet").unlink()
    words = "plan.toml:5: [data], source: 'data/jobs.parquet' is not here: `run` needs it."
    code, out, _ = command("check", plan)
    assert code == 0
    assert words in out
    assert "can be run" not in out
    told = json.loads(command("check", plan, "--json")[1])
    assert not told["can_run"]
    assert [(fault["line"], words in fault["message"]) for fault in told["missing"]] == [(5, True)]


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ("nowhere", "Bring it, or run the plan where it is."),
        ("data/nowhere.csv", "Bring it, or run the plan where it is."),
        ("data/job.parquet", "Did you mean 'jobs.parquet' or 'places.parquet'?"),
    ],
)
def test_a_run_says_the_same_of_data_that_are_not_here(plan: Path, command, source: str, remedy: str) -> None:
    """Before, `run` said of "nowhere" that it ends in '', which is not a table that can be opened."""
    plan.write_text(plan.read_text().replace("data/jobs.parquet", source))
    words = f"plan.toml:5: [data], source: {source!r} is not here: `run` needs it. {remedy}"
    assert words in command("check", plan)[1]
    code, _, err = command("run", plan)
    assert code == 2 and err.splitlines()[-1] == words
    assert not (plan.parent / "ledger.db").exists()


@pytest.mark.parametrize("source", ["data/jobs.parquet", "data/job*.parquet", "data"])
def test_data_that_are_here_are_not_missing(plan: Path, command, source: str) -> None:
    plan.write_text(plan.read_text().replace("data/jobs.parquet", source))
    code, out, _ = command("check", plan)
    assert code == 0
    assert "The plan can be run.\n" in out


def test_what_is_released_needs_no_data(plan: Path, command) -> None:
    run(plan)
    shutil.rmtree(plan.parent / "data")
    code, out, _ = command("check", plan)
    assert code == 0
    assert "The plan can be run.\n" in out
    assert command("run", plan)[0] == 0


def test_a_plan_has_at_most_a_thousand_releases(plan: Path) -> None:
    text, one = plan.read_text(), '\n[[release]]\nname = "x{}"\nkind = "count"\nby = ["place"]\nepsilon = "1/1000"\n'
    written = [text + "".join(one.format(i) for i in range(more)) for more in (RELEASES - 3, RELEASES - 2)]
    assert len(read_plan(plan, written[0].encode()).plan.release) == RELEASES
    with pytest.raises(PlanError, check=about("release")):
        read_plan(plan, written[1].encode())


def test_responses_without_a_type_are_warned_of_whatever_they_are(tmp_path: Path) -> None:
    """From the file's kind alone, which is public; whether they are numbers is not."""
    plan = """
[data]
source = "{source}"
public = ["g"]
[unit]
kind = "rows"
response = "y"
lower = 0
upper = 1
[budget]
epsilon = 1
ledger = "ledger.db"
dataset = "d"
[[release]]
name = "m"
kind = "model"
formula = "y ~ 1 + (1 | g)"
epsilon = 1
[output]
folder = "out"
"""
    rows = {"y": [0.1, 0.4, 0.9, 0.7] * 50, "g": list("aabb") * 50}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    told = []
    for source, point in (("rows.parquet", "."), ("points.csv", "."), ("commas.csv", ",")):
        if source.endswith(".csv"):
            lines = [f'"{str(y).replace(".", point)}",{g}' for y, g in zip(rows["y"], rows["g"], strict=True)]
            (tmp_path / source).write_text("\n".join(["y,g", *lines]))
        (tmp_path / "plan.toml").write_text(plan.format(source=source))
        found = check(read_plan(tmp_path / "plan.toml"))
        assert not found.faults
        told.append((found.notes, found.to_dict()["notes"]))
    assert told[0] == ((), [])
    assert told[1] == told[2] == ((UNTYPED,), [UNTYPED])
