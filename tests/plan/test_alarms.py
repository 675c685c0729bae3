"""Alarms of a plan: from published numbers, for nothing; in report, bundle and site; a reviewer computes them again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.archive.findings import RefutedError
from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.joined import join_plans
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.publication.publish import publish_files
from discreet.publication.site import site
from discreet.release.alarms import kept
from discreet.review.rebuild import Rebuilt
from discreet.review.verdict import verify_bundle
from discreet.utility.between import changes_between
from discreet.words.errors import DataError, PlanError
from faults_of import about

from .test_flows import written

SOURCE = """
[source.{q}.data]
source = "{q}.csv"
[source.{q}.data.schema]
workplace_attributes = ["place"]
worker_attributes = {{}}
size = "n"
[source.{q}.unit]
kind = "establishments"
alpha = 0.1
[source.{q}.budget]
epsilon = 20
ledger = "ledger.db"
dataset = "jobs"
"""
RELEASE = """
[[release]]
name = "jobs-{q}"
source = "{q}"
kind = "count"
mechanism = "polynomial"
by = ["place"]
epsilon = 4
"""
ALARMS = """
[[alarms]]
name = "first-half"
title = "From winter to spring"
early = "jobs-q1"
late = "jobs-q2"
rate = 0.05
"""
SUREST = """
[[alarms]]
name = "surest"
early = "jobs-q1"
late = "jobs-q2"
fdr = 0.2
"""
OUTPUT = """
[output]
folder = "{}"
"""


FLOWS = """
[data]
source = "data/jobs.parquet"
quarters = ["q1", "q2", "q3", "q4"]
[data.schema]
workplace_attributes = ["county", "sector"]
worker_attributes = {}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 8
ledger = "ledger.db"
dataset = "histories"
[[release]]
name = "flows-q2"
kind = "flows"
quarter = "q2"
by = ["county"]
epsilon = 4
[[release]]
name = "flows-q3"
kind = "flows"
quarter = "q3"
by = ["county"]
epsilon = 4
[[alarms]]
name = "lost"
early = "flows-q2"
late = "flows-q3"
value = "destruction"
[output]
folder = "out"
"""


def write_data(folder: Path) -> None:
    """Ten places of ten small establishments; the second loses nearly all of its jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    for q in ("q1", "q2"):
        rows = [
            f"{10 * place + i},p{place},{1 if (place, q) == (2, 'q2') else 40 + place + i}"
            for place in range(10)
            for i in range(10)
        ]
        (folder / f"{q}.csv").write_text("\n".join(["workplace,place,n", *rows]) + "\n")


def write_plan(folder: Path, *parts: str, name: str = "plan.toml") -> Path:
    write_data(folder)
    plan = folder / name
    plan.write_text("\n".join(parts), encoding="utf-8")
    return plan


def both(folder: Path, alarms: str = ALARMS) -> Path:
    quarters = ("q1", "q2")
    sources, releases = ([text.format(q=q) for q in quarters] for text in (SOURCE, RELEASE))
    return write_plan(folder, *sources, *releases, alarms, OUTPUT.format("out"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = both(tmp_path_factory.mktemp("alarms") / "plan", ALARMS + SUREST)
    run(plan)
    return plan


def test_the_cell_that_fell_is_found_for_nothing(released: Path) -> None:
    with Ledger.open(released.parent / "ledger.db", read_only=True) as ledger:
        [budget] = ledger.budgets()
        assert [entry.release for entry in ledger.entries() if entry.kind == "charge"] == ["jobs-q1", "jobs-q2"]
    assert str(budget.spent) == "epsilon=8"
    table = pq.read_table(released.parent / "out" / "alarms-first-half.parquet").to_pylist()
    assert len(table) == 10 and table[0]["place"] == "p2" and table[0]["alarm"] and table[0]["high"] < 0
    for name, row in (("jobs-q1", "before"), ("jobs-q2", "after")):
        drawn = pq.read_table(released.parent / "out" / name / "research.parquet").to_pylist()
        assert {each["place"]: each["count"] for each in drawn} == {each["place"]: each[row] for each in table}
    told = kept(released.parent / "out")["first-half"]
    assert told["rate"] == 0.05 and told["expected_false_at_most"] == pytest.approx(0.5)
    assert told["alarms"] == sum(each["alarm"] for each in table)


def test_a_share_of_false_alarms_instead_of_a_rate(released: Path, command) -> None:
    """The list is that of `changes_between`; check, report and index say which promise it keeps."""
    folder = released.parent / "out"
    told, found = kept(folder)["surest"], changes_between(folder / "jobs-q1", folder / "jobs-q2", fdr=0.2)
    harmonic = sum(1 / k for k in range(1, 11))  # of Benjamini and Yekutieli's rule, for a list of one of ten cells
    assert told["fdr"] == 0.2 and told["rate"] == found.rate == pytest.approx(0.2 / (10 * harmonic))
    assert told["alarms"] == 1 and told["expected_false_at_most"] == pytest.approx(0.2)
    assert pq.read_table(folder / "alarms-surest.parquet").to_pylist() == found.rows()
    assert "a share of at most 20 % is expected to be false" in command("check", released)[1]
    assert "a share of 20 % at most is expected to be false" in (folder / "report.html").read_text(encoding="utf-8")
    with zipfile.ZipFile(folder / "bundle.zip") as packed:
        [first, second] = json.loads(packed.read("request.json"))["alarms"]
    assert "fdr" not in first and (second["rate"], second["fdr"]) == (None, "1/5")


def test_check_report_bundle_and_site_say_so(released: Path, tmp_path: Path, command) -> None:
    code, out, _ = command("check", released)
    assert code == 0 and "from jobs-q1 to jobs-q2" in out and "cost nothing" in out
    assert "jobs-q2" in json.loads(command("check", released, "--json")[1])["alarms"]["first-half"]
    assert "for nothing, in alarms-first-half" in command("run", released)[1]
    page = (released.parent / "out" / "report.html").read_text(encoding="utf-8")
    assert "Alarms first-half: From winter to spring" in page and "it costs nothing" in page
    findings = {one.subject: one for one in verify_bundle(released.parent / "out" / "bundle.zip")}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["alarms"].holds and "computed again" in findings["alarms"].words
    site(released.parent / "out", tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "From winter to spring" in text and "costs nothing" in text and "downloads/alarms-first-half.csv" in text
    done = publish_files(released.parent / "out", tmp_path / "files", formats=["csv"])
    assert "alarms-first-half.csv" in done.files


def test_folders_of_two_releases_have_the_same_alarms(released: Path, command) -> None:
    """A release opened again has the ends of any level; tables of one release are not taken for independent."""
    early, late = (released.parent / "out" / name for name in ("jobs-q1", "jobs-q2"))
    found = changes_between(early, late, rate=0.05)
    [planned] = [pq.read_table(released.parent / "out" / "alarms-first-half.parquet").to_pylist()]
    assert [{**row, "place": row["place"]} for row in found.rows()] == planned
    tables = [folder / "research.parquet" for folder in (early, late)]
    wide, tight = changes_between(*tables, by=["place"]), changes_between(early, late)  # at the published level
    assert wide.rate == pytest.approx(tight.rate) == pytest.approx(0.1)
    assert (tight.high - tight.low).mean() < 0.85 * (wide.high - wide.low).mean()
    same = changes_between(early, early, rate=0.05)
    union = changes_between(tables[0], tables[0], by=["place"], level=0.95)  # of the published level
    assert same.rate == 0.05 and not same.alarm.any() and (same.high - same.low > union.high - union.low).all()
    code, out, err = command("changes", "between", early, late, "--rate", "0.05")
    assert code == 0 and "1 of 10 cells" in out, err
    code, _, _ = command("changes", "between", *tables, "--rate", "0.05", "--by", "place")
    assert code == 2


def test_the_desk_has_the_same_alarms(released: Path, monkeypatch) -> None:
    """On real folders, whose level is a fraction in words, and with ends of the draws."""
    pytest.importorskip("fastapi")
    from discreet.desk.pages import changes
    from discreet.desk.published import Published

    def chosen(here, text):
        folder = released.parent / "out" / text
        return Published("plan", text, folder, json.loads((folder / "release.json").read_text()))

    monkeypatch.setattr(changes, "_chosen", chosen)
    found = changes._compared(None, "jobs-q1", "jobs-q2", "")
    expected = changes_between(*(released.parent / "out" / name for name in ("jobs-q1", "jobs-q2")))
    assert found["said"] == expected.summary() and "1 of 10 cells" in found["said"]
    surest = changes._compared(None, "jobs-q1", "jobs-q2", "", "0.2")
    assert "a share of 20.0 % at most" in surest["said"] and "1 of 10 cells" in surest["said"]
    for text in ("2", "few"):
        with pytest.raises(DataError, check=about("fdr")):
            changes._compared(None, "jobs-q1", "jobs-q2", "", text)


def test_a_reviewer_refutes_other_alarms(released: Path, tmp_path: Path) -> None:
    """Alarms that were changed with all hashes made to fit: what they follow from decides."""
    with zipfile.ZipFile(released.parent / "out" / "bundle.zip") as packed:
        packed.extractall(tmp_path)
    plan = Rebuilt(tmp_path, ("jobs-q1", "jobs-q2"), (10,) * 8)
    assert "computed again" in plan.check_alarms()
    table, index = tmp_path / "alarms-first-half.csv", tmp_path / "alarms.json"
    for path, old, new in (
        (table, "true", "false"),
        (table, '"p2"', '"p7"'),
        (index, '"expected_false_at_most": 0.5', '"expected_false_at_most": 0.1'),
        (index, '"first-half": {', '"more": {}, "first-half": {'),
        (index, '"first-half"', '"second-half"'),
    ):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(RefutedError):
            plan.check_alarms()
        path.write_text(text)
    for path in (index, *tmp_path.glob("alarms-*")):
        path.unlink()
    assert plan.alarmed
    with pytest.raises(RefutedError):
        plan.check_alarms()


@pytest.mark.full_size
def test_another_plan_made_the_early_release(tmp_path: Path) -> None:
    """Two quarters in two plans; the alarms are those of one plan on the same files."""
    folder = tmp_path / "plan"
    run(write_plan(folder, SOURCE.format(q="q1"), RELEASE.format(q="q1"), OUTPUT.format("early"), name="early.toml"))
    alarms = ALARMS + 'folder = "early"\n'
    plan = write_plan(folder, SOURCE.format(q="q2"), RELEASE.format(q="q2"), alarms, OUTPUT.format("out"))
    done = run(plan)
    table = pq.read_table(folder / "out" / "alarms-first-half.parquet").to_pylist()
    drawn = pq.read_table(folder / "early" / "jobs-q1" / "research.parquet").to_pylist()
    assert {each["place"]: each["count"] for each in drawn} == {each["place"]: each["before"] for each in table}
    assert table[0]["place"] == "p2" and table[0]["alarm"]
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert "other plans" in findings["alarms"].words
    with zipfile.ZipFile(done.bundle) as packed:
        assert (
            'early"' not in packed.read("request.json").decode() or "/early" not in packed.read("request.json").decode()
        )
    # alarms are taken out of a plan whose releases are made, or added: nothing is paid or drawn again
    before = (folder / "out" / "jobs-q2" / "research.csv").read_bytes()
    plan.write_text(plan.read_text().partition("[[alarms]]")[0] + OUTPUT.format("out"))
    done = run(plan)
    assert done.alarms == {} and not (folder / "out" / "alarms.json").exists()
    assert (folder / "out" / "jobs-q2" / "research.csv").read_bytes() == before
    assert str(done.remaining) == "epsilon=12"


def test_joined_plans_keep_their_alarms(tmp_path: Path) -> None:
    """Also where they stand after the output; red before: these of the second plan were gone."""
    parts = []
    for q, other in (("q1", "q2"), ("q2", "q1")):
        alarms = ALARMS.replace("first-half", f"from-{q}").replace('late = "jobs-q2"', f'late = "jobs-{q}"')
        alarms = alarms.replace('early = "jobs-q1"', f'early = "jobs-{other}"\nfolder = "earlier"')
        text = (SOURCE.format(q=q).replace(f"source.{q}.", ""), RELEASE.format(q=q).replace(f'source = "{q}"\n', ""))
        source = text[0].replace('dataset = "jobs"', f'dataset = "{q}"')
        parts.append(write_plan(tmp_path, source, text[1], OUTPUT.format("out"), alarms, name=f"{q}.toml"))
    joined = read_plan(join_plans(parts, tmp_path / "both.toml")).plan
    assert [each.name for each in joined.alarms] == ["from-q1", "from-q2"] and len(joined.release) == 2


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('late = "jobs-q2"', 'late = "jobs-q3"', "late"),
        ('early = "jobs-q1"', 'early = "jobs-q2"', "early"),
        ('early = "jobs-q1"\n', "", "early"),
        ("rate = 0.05", "rate = 0.05\nleast = -1", "least"),
        ("rate = 0.05", "rate = 1.5", "rate"),
        ("rate = 0.05", "fdr = 1.5", "fdr"),
        ("rate = 0.05", "rate = 0.05\nfdr = 0.05", "fdr"),
        ("rate = 0.05", 'value = "sum"', "value"),
        ("rate = 0.05", 'by = ["sector"]', "by"),
        ("rate = 0.05", 'folder = "nowhere"', "folder"),
        ("rate = 0.05", "level = 0.05", "level"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_spent(
    tmp_path: Path, old: str, new: str, key: str, contents
) -> None:
    plan = both(tmp_path / "plan", ALARMS.replace(old, new))
    before = contents(plan.parent)
    with pytest.raises(PlanError) as error:
        run(plan)
    assert [fault.place for fault in error.value.faults] == [("alarms", 0, key)]
    assert contents(plan.parent) == before


def test_tables_that_are_not_alike(tmp_path: Path) -> None:
    text = both(tmp_path / "plan").read_text(encoding="utf-8")
    other = text.replace(
        'name = "jobs-q1"\nsource = "q1"\nkind = "count"\nmechanism = "polynomial"\nby = ["place"]',
        'name = "jobs-q1"\nsource = "q1"\nkind = "count"\nmechanism = "polynomial"\nby = []',
    )
    assert other != text
    (tmp_path / "plan" / "plan.toml").write_text(other, encoding="utf-8")
    found = check(read_plan(tmp_path / "plan" / "plan.toml"))
    assert [fault.place for fault in found.faults] == [("alarms", 0, "early")]


def test_a_changed_file_of_alarms_is_not_published_further(released: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "out"
    shutil.copytree(released.parent / "out", copy)
    path = copy / "alarms-first-half.csv"
    path.write_text(path.read_text().replace("true", "false"))
    with pytest.raises(DataError):
        site(copy, tmp_path / "site")


@pytest.mark.full_size
def test_tables_of_several_and_sums_of_drawn_ones(tmp_path: Path) -> None:
    """One table of each of two releases by name; a table that is a sum of drawn ones has its own ends."""
    plan = both(tmp_path, ALARMS + 'by = ["place"]\n' + ALARMS.replace("first-half", "total") + "by = []\n")
    several = 'kind = "counts"\ntables = [["place"], []]\nmeasure = "finest"\n'
    text = plan.read_text().replace('kind = "count"\nmechanism = "polynomial"\nby = ["place"]\n', several)
    plan.write_text(text)
    done = run(plan)
    assert done.alarms["first-half"]["cells"] == 10 and done.alarms["first-half"]["alarms"] >= 1
    [whole] = pq.read_table(tmp_path / "out" / "alarms-total.parquet").to_pylist()
    drawn = [pq.read_table(tmp_path / "out" / f"jobs-{q}" / "1-place" / "research.parquet") for q in ("q1", "q2")]
    before, after = (sum(table["count"].to_pylist()) for table in drawn)
    assert (whole["before"], whole["after"]) == (before, after) and whole["low"] <= after - before <= whole["high"]
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong] and findings["alarms"].holds
    plan.write_text(text.replace('by = ["place"]\n', "", 1))  # which of the two?
    assert [fault.place for fault in check(read_plan(plan)).faults] == [("alarms", 0, "by")]


@pytest.mark.full_size
def test_flows_of_two_quarters(tmp_path: Path) -> None:
    """Two releases of flows, by a number that is named; each has draws of its own."""
    plan = written(tmp_path, text=FLOWS)
    done = run(plan)
    table = pq.read_table(tmp_path / "out" / "alarms-lost.parquet").to_pylist()
    for name, key in (("flows-q2", "before"), ("flows-q3", "after")):
        drawn = pq.read_table(tmp_path / "out" / name / "research.parquet").to_pylist()
        assert {row["county"]: row["destruction"] for row in drawn} == {row["county"]: row[key] for row in table}
    assert all(row["low"] <= row["change"] <= row["high"] for row in table if row["low"] is not None)
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong] and findings["alarms"].holds
    for old, new, key in (
        ('value = "destruction"', 'value = "count"', "value"),
        ('early = "flows-q2"', 'early = "flows-q2"\nfolder = "out"', "folder"),
        ('early = "flows-q2"\n', "", "early"),
    ):
        plan.write_text(FLOWS.replace(old, new))
        assert [fault.place for fault in check(read_plan(plan)).faults] == [("alarms", 0, key)], key


def test_what_a_rule_of_the_agency_leaves_out_is_in_no_alarm(tmp_path: Path) -> None:
    """Red before: the number that fell below the bound stood in the list of alarms and in the report."""
    plan = both(tmp_path)
    plan.write_text(plan.read_text().replace('by = ["place"]\n', 'by = ["place"]\nsuppress = { below = 100 }\n'))
    done = run(plan)
    listed = pq.read_table(tmp_path / "out" / "alarms-first-half.parquet")["place"].to_pylist()
    assert len(listed) == 9 and "p2" not in listed
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    with pytest.raises(DataError, check=about("release")):  # nor in those between two folders
        changes_between(*(tmp_path / "out" / name for name in ("jobs-q1", "jobs-q2")))
    # the release with the rule as the earlier one of another plan
    turned = ALARMS.replace('early = "jobs-q1"', 'early = "jobs-q2"\nfolder = "out"').replace(
        'late = "jobs-q2"', 'late = "again"'
    )
    release = RELEASE.format(q="q1").replace('"jobs-q1"', '"again"')
    again = write_plan(tmp_path, SOURCE.format(q="q1"), release, turned, OUTPUT.format("next"), name="next.toml")
    done = run(again)
    assert "p2" not in pq.read_table(tmp_path / "next" / "alarms-first-half.parquet")["place"].to_pylist()
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


MODEL = """
[source.{q}.data]
source = "{q}-rows.csv"
public = ["county"]
[source.{q}.unit]
kind = "rows"
lower = -3
upper = 5
response = "y"
[source.{q}.budget]
epsilon = 8
ledger = "ledger.db"
dataset = "rows-{q}"
"""
EFFECTS = """
[[release]]
name = "effects-{q}"
source = "{q}"
kind = "model"
formula = "{formula}"
epsilon = 4
"""
FELL = """
[[alarms]]
name = "fell"
early = "effects-q1"
late = "effects-q2"
value = "estimate"
direction = "decline"
"""


def models(folder: Path, alarms: str = FELL, second: str = "y ~ 1 + (1 | county)") -> Path:
    """Two quarters of 2,000 rows in 12 counties; the third county falls."""
    rng, folder = np.random.default_rng(5), folder / "plan"
    folder.mkdir()
    effects, county = rng.normal(0, 0.4, 12), np.arange(2_000) % 12
    for q in ("q1", "q2"):
        y = np.clip(1 + effects[county] - 2.5 * ((county == 2) & (q == "q2")) + rng.normal(0, 0.5, 2_000), -3, 5)
        rows = [f"{value:.4f},c{k:02d}" for value, k in zip(y, county, strict=True)]
        (folder / f"{q}-rows.csv").write_text("\n".join(["y,county", *rows]) + "\n")
    formulas = {"q1": "y ~ 1 + (1 | county)", "q2": second}
    parts = [*(MODEL.format(q=q) for q in formulas), *(EFFECTS.format(q=q, formula=formulas[q]) for q in formulas)]
    plan = folder / "plan.toml"
    plan.write_text("\n".join([*parts, alarms, OUTPUT.format("out")]), encoding="utf-8")
    return plan


@pytest.mark.full_size
def test_models_of_two_quarters(tmp_path: Path) -> None:
    """The county that fell is found, the report says so, and a reviewer computes it again and finds a forgery."""
    plan = models(tmp_path)
    done = run(plan)
    table = pq.read_table(plan.parent / "out" / "alarms-fell.parquet").to_pylist()
    assert (table[0]["group"], table[0]["term"], table[0]["alarm"]) == ("county", "c02", True) and len(table) == 13
    assert sum(row["alarm"] for row in table) <= 3 and ("fixed", "(Intercept)") in {
        (row["group"], row["term"]) for row in table
    }
    assert "Alarms fell" in (plan.parent / "out" / "report.html").read_text(encoding="utf-8")
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["alarms"].holds
    with zipfile.ZipFile(done.bundle) as packed:
        packed.extractall(tmp_path / "bundle")
    again = Rebuilt(tmp_path / "bundle", ("effects-q1", "effects-q2"), (15,) * 8)
    assert "computed again" in again.check_alarms()
    path = tmp_path / "bundle" / "alarms-fell.csv"
    path.write_text(path.read_text().replace('"c02"', '"c07"', 1))
    with pytest.raises(RefutedError):
        again.check_alarms()


@pytest.mark.parametrize(
    ("old", "new", "second", "key"),
    [
        ("estimate", "count", "y ~ 1 + (1 | county)", "value"),
        ('value = "estimate"', 'value = "estimate"\nby = ["county"]', "y ~ 1 + (1 | county)", "by"),
        ("", "", "y ~ 0 + county + (1 | county)", "early"),
    ],
)
def test_models_that_cannot_be_compared(tmp_path: Path, old: str, new: str, second: str, key: str) -> None:
    found = check(read_plan(models(tmp_path, FELL.replace(old, new), second)))
    assert ("alarms", 0, key) in [fault.place for fault in found.faults]
