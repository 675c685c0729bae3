"""What `publish` writes, read by programs of others: openpyxl, csvw, pysdmx and sdmx1; and what it refuses."""

from __future__ import annotations

import builtins
import errno
import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from discreet.plan.run import run
from discreet.publication import place
from discreet.publication.csvw import METADATA
from discreet.publication.imprint import Imprint
from discreet.publication.pages import headline
from discreet.publication.publish import FORMATS
from discreet.publication.publish import publish_files as publish
from discreet.publication.site import site
from discreet.release.folder import PublishedTable, open_release, open_releases
from discreet.synthetic.microdata import synthesize
from discreet.words.errors import DataError, DiscreetError, PrivacyError
from faults_of import about

IMPRINT = Imprint(
    title="Jobs & pay",
    publisher="Agency",
    contact="statistics@agency.example",
    licence="https://creativecommons.org/licenses/by/4.0/",
    period="2026-Q1",
)
TABLES = ["jobs-1-county-sector", "jobs-2-state-sector", "jobs-3-state", "jobs-4-total", "payroll", "sexes"]


@pytest.fixture(scope="module")
def published(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "all"
    return publish(released, out, formats=list(FORMATS), imprint=IMPRINT, ledger=released.parent / "ledger.db").folder


def truth(released: Path, name: str) -> Any:
    tables = {of.name: of for release in open_releases(released) for of in release.tables()}
    return tables[name].read()


def test_every_table_is_there_in_every_format(published: Path, released: Path) -> None:
    for name in TABLES:
        table = truth(released, name)
        assert pq.read_table(published / f"{name}.parquet").equals(table)
        kinds = {field.name: field.type for field in table.schema}
        read = pv.read_csv(published / f"{name}.csv", convert_options=pv.ConvertOptions(column_types=kinds))
        assert read.to_pylist() == table.to_pylist()


def test_excel_opens(published: Path, released: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    for name in TABLES:
        book = openpyxl.load_workbook(published / f"{name}.xlsx")
        table = truth(released, name)
        head, *rows = book["result"].iter_rows(values_only=True)
        assert list(head) == table.column_names
        assert [dict(zip(head, row, strict=True)) for row in rows] == table.to_pylist()
        kinds = {cell.data_type for row in book["result"].iter_rows() for cell in row}
        assert "f" not in kinds, "a category became a formula"
        about = {row[0]: row[1] for row in book["about"].iter_rows(values_only=True)}
        assert "employer-employee privacy" in about["guarantee"]
        assert about["interval level"] == "0.95"


@pytest.mark.parametrize("label", ["x" * 40_000, "a\rb", "a\x00b"], ids=["long", "return", "nul"])
def test_labels_that_a_sheet_would_change_are_refused_first(label: str, released: Path, tmp_path: Path) -> None:
    def odd(of: PublishedTable) -> Any:
        table = read(of)
        return table.set_column(0, "county", [[label] * len(table)]) if "county" in table.column_names else table

    read, out = PublishedTable.read, tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PublishedTable, "read", odd)
        with pytest.raises(DataError, check=about("formats", naming=("'county'",))):
            publish(released, out, formats=["xlsx"])
        assert not out.exists()
        publish(released, out, formats=["csv", "parquet"])


def test_csvw_is_valid_and_says_what_a_portal_needs(published: Path, released: Path, tmp_path: Path) -> None:
    csvw = pytest.importorskip("csvw")
    group = csvw.CSVW(str(published / "csv-metadata.json"), validate=True)
    assert group.is_valid, group.warnings
    assert group.tablegroup.check_referential_integrity()
    tables = {str(table.url): table for table in group.tables}
    assert {f"{name}.csv" for name in TABLES} < set(tables)
    for name in TABLES:
        read = [dict(row) for row in tables[f"{name}.csv"]]
        assert read == truth(released, name).to_pylist()
    first = tables["jobs-1-county-sector.csv"]
    assert first.tableSchema.primaryKey == ["county", "sector"]
    notes = {note["kind"]: note["text"] for note in first.common_props.get("notes", first.notes or [])}
    assert "employer-employee privacy" in notes["guarantee"]
    assert notes["interval level"] == "0.95"
    assert "mostly noise" in notes["quality"]
    counties = next(table for url, table in tables.items() if url.endswith("-county.csv"))
    assert {row["county"]: row["state"] for row in counties} == {f"C{i}": f"S{i // 4}" for i in range(10)}
    told = json.loads((published / "csv-metadata.json").read_text())
    assert told["dc:license"]["@id"] == IMPRINT.licence
    assert told["dcat:contactPoint"]["@id"] == "mailto:statistics@agency.example"


def test_csvw_would_notice(published: Path, tmp_path: Path) -> None:
    """The same reader refuses a code that is not on its list, and a word where a number belongs."""
    csvw = pytest.importorskip("csvw")
    for number, (old, new) in enumerate([('"C3"', '"C33"'), (",", ',"many",')]):
        broken = Path(shutil.copytree(published, tmp_path / str(number)))
        path = broken / "jobs-1-county-sector.csv"
        lines = path.read_text().splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if '"C3"' in line)
        lines[at] = lines[at].replace(old, new, 1)
        path.write_text("".join(lines))
        try:
            holds = csvw.CSVW(str(broken / "csv-metadata.json"), validate=True).is_valid
        except (ValueError, UserWarning):
            holds = False
        assert not holds


def test_sdmx_is_valid_by_the_schemas_and_reads_as_published(published: Path, released: Path) -> None:
    """pysdmx validates against the XSD files of SDMX 3.0 and finds every data set's structure in the message."""
    pysdmx = pytest.importorskip("pysdmx.io")
    errors = pytest.importorskip("pysdmx.errors")
    structure = published / "structure.xml"
    message = pysdmx.read_sdmx(structure, validate=True)
    names = {part.id for part in message.structures}
    assert {"CL_COUNTY", "CL_SECTOR", "CL_SEX", "CL_QUALITY", "CL_OBS_STATUS", "CL_CONF_STATUS"} < names
    for name in TABLES:
        table = truth(released, name)
        (data,) = pysdmx.get_datasets(published / f"{name}.sdmx.csv", structure, validate=True)
        value = "sum" if name == "payroll" else "count"
        assert data.data["OBS_VALUE"].astype(int).tolist() == table[value].to_pylist()
        lower = [None if text in ("", "nan") else float(text) for text in data.data["INT_LOWER"].astype(str)]
        assert lower == table["lower"].to_pylist()
        parts = data.structure.components
        assert {part.id for part in parts.attributes} >= {"OBS_STATUS", "CONF_STATUS", "UNIT_MEASURE", "QUALITY"}
        assert {"INT_LOWER", "INT_UPPER", "INT_LEVEL", "GUARANTEE", "CONTACT"} <= {part.id for part in parts.attributes}
        for part in parts.dimensions:
            if part.id == "TIME_PERIOD":
                continue
            codes = {code.id: code.name for code in part.local_codes.items}
            of = part.id.lower()
            shown = [codes[code] for code in data.data[part.id]]
            assert shown == (table[of].to_pylist() if of in table.column_names else ["all"])
    with pytest.raises(errors.Invalid):
        pysdmx.read_sdmx(structure.read_text().replace("<str:Code id=", "<str:Code idd=", 1), validate=True)


def test_a_second_sdmx_reader_agrees(published: Path, released: Path) -> None:
    sdmx = pytest.importorskip("sdmx")
    structure = sdmx.read_sdmx(published / "structure.xml")
    data = sdmx.read_sdmx(published / "sexes.sdmx.csv", structure=structure.structure["DSD_SEXES"]).data[0]
    table = truth(released, "sexes")
    assert [int(obs.value) for obs in data.obs] == table["count"].to_pylist()
    names = {code.id: str(code.name) for code in structure.codelist["CL_SECTOR"]}
    assert [names[obs.key["SECTOR"].value] for obs in data.obs] == table["sector"].to_pylist()


def test_only_what_was_released_is_there(published: Path) -> None:
    for path in published.rglob("*"):
        if path.is_file():
            assert b"MARKED-CONFIDENTIAL" not in path.read_bytes(), path


def test_one_release_and_another_form(released: Path, tmp_path: Path) -> None:
    done = publish(released / "sexes", tmp_path / "one", formats=["csv"], form="research")
    assert done.files == ("sexes.csv",)
    assert (
        pv.read_csv(tmp_path / "one" / "sexes.csv")["count"].to_pylist()
        == pq.read_table(released / "sexes" / "research.parquet")["count"].to_pylist()
    )


def changed(folder: Path) -> None:
    path = folder / "sexes" / "basic.csv"
    path.write_bytes(path.read_bytes().replace(b'"f"', b'"m"', 1))


def truncated(folder: Path) -> None:
    path = folder / "sexes" / "basic.parquet"
    path.write_bytes(path.read_bytes()[:100])


def lacking(folder: Path) -> None:
    (folder / "sexes" / "basic.parquet").unlink()


def cut_manifest(folder: Path) -> None:
    path = folder / "sexes" / "release.json"
    path.write_text(path.read_text()[:300])


def outside(folder: Path) -> None:
    path = folder / "sexes" / "release.json"
    about = json.loads(path.read_text())
    about["files"]["../jobs/release.json"] = "0" * 64
    path.write_text(json.dumps(about))


def linked(folder: Path) -> None:
    path = folder / "sexes" / "basic.csv"
    path.rename(folder / "basic.csv")
    path.symlink_to(folder / "basic.csv")


@pytest.mark.parametrize("spoil", [changed, truncated, lacking, cut_manifest, outside, linked])
def test_a_release_that_is_not_as_released_is_refused(
    spoil: Callable[[Path], None], copied: Callable[[], Path], tmp_path: Path
) -> None:
    folder = copied()
    spoil(folder)
    with pytest.raises(DataError, check=about("release")):
        publish(folder, tmp_path / "new", formats=["csv"])
    assert not (tmp_path / "new").exists()


def test_a_forged_list_is_found_by_the_ledger(copied: Callable[[], Path], released: Path, tmp_path: Path) -> None:
    folder = copied()
    changed(folder)
    path = folder / "sexes" / "release.json"
    told = json.loads(path.read_text())
    told["files"]["basic.csv"] = sha256((folder / "sexes" / "basic.csv").read_bytes()).hexdigest()
    path.write_text(json.dumps(told))
    assert open_release(folder / "sexes").name == "sexes", "without the ledger nobody can know"
    with pytest.raises(PrivacyError, check=about("release")):
        publish(folder / "sexes", tmp_path / "new", formats=["csv"], ledger=released.parent / "ledger.db")


@pytest.mark.parametrize("folder", ["nothing", "empty", "file"])
def test_no_release_is_refused(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, check=about("release")):
        publish(tmp_path / folder, tmp_path / "new", formats=["csv"])


def test_unknown_formats_are_listed(released: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("formats", naming=("pdf", *FORMATS))):
        publish(released, tmp_path / "new", formats=["csv", "pdf"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contact", "somebody"),
        ("licence", "CC BY"),
        ("period", "spring"),
        ("period", "2026-Q5"),
        ("period", "2026-W54"),
        ("agency", "a b"),
    ],
)
def test_what_a_standard_cannot_hold_is_refused(name: str, value: str) -> None:
    with pytest.raises(DataError, check=about(name)):
        Imprint(**{name: value})


def test_what_is_there_stays_unless_it_is_ours_and_unchanged(released: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    publish(released, out, formats=["csv"])
    for force in (False, True):
        if not force:
            with pytest.raises(DataError, check=about("out")):
                publish(released, out, formats=["parquet"])
        else:
            publish(released, out, formats=["parquet"], force=True)
            assert not list(out.glob("*.csv"))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(DataError, check=about("out")):
        publish(released, out, formats=["csv"], force=True)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_full_disk_in_the_middle_leaves_what_was_there(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.publication import publish as module

    out = tmp_path / "new"
    publish(released, out, formats=["csv"])
    before = place.fingerprints(out)
    written = module.write_table

    def full(table: Any, path: Path) -> None:
        if path.name.startswith("payroll"):
            raise OSError(errno.ENOSPC, "No space left on device")
        written(table, path)

    monkeypatch.setattr(module, "write_table", full)
    with pytest.raises(DiscreetError, check=about("out")):
        publish(released, out, formats=["parquet"], force=True)
    assert place.fingerprints(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["new"], "nothing is left beside"


def test_nothing_but_the_release_is_read(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = builtins.open

    def watched(file: Any, *given: Any, **more: Any) -> Any:
        opened.append(str(file))
        return real(file, *given, **more)

    hidden = released.parent / "data"
    hidden.rename(hidden.with_name("gone"))
    try:
        monkeypatch.setattr(builtins, "open", watched)
        publish(released, tmp_path / "new", formats=list(FORMATS))
    finally:
        hidden.with_name("gone").rename(hidden)
    assert not [name for name in opened if "gone" in name or "ledger" in name]


def test_nothing_is_written_inside_the_release(released: Path) -> None:
    """Red before: the files of a publication stood among those of the release, which then was refused as changed."""
    inside = released / "site"
    for write in (publish, site, lambda release, out: synthesize(release, out / "x-synthetic.parquet", seed=1)):
        with pytest.raises(DataError, check=about("out")):
            write(released, inside)
        with pytest.raises(DataError, check=about("out")):
            write(released, released.parent / "other" / ".." / released.name / "deep" / "er")
    assert not inside.exists()


def test_rows_of_flows_and_changes_are_told_apart_by_quarters_too(tmp_path: Path) -> None:
    """Red before: a table of changes had the same key in several rows, and captions named ends of intervals."""
    rows = [
        {"workplace": f"w{i % 12}", "worker": i, "quarter": quarter, "county": f"c{i % 3}"}
        for quarter in ("q1", "q2", "q3")
        for i in range(300)
    ]
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data" / "jobs.parquet")
    (tmp_path / "plan.toml").write_text(MOVEMENTS)
    run(tmp_path / "plan.toml")
    publish(tmp_path / "out", tmp_path / "site", formats=["csvw"])
    tables = {table["url"]: table for table in json.loads((tmp_path / "site" / METADATA).read_text())["tables"]}
    assert tables["changes.csv"]["tableSchema"]["primaryKey"] == ["county", "from", "to"]
    assert tables["flows.csv"]["tableSchema"]["primaryKey"] == ["county", "quarter"]
    captions = {of.name: headline(of) for known in open_releases(tmp_path / "out") for of in known.tables()}
    assert captions["changes"] == "Earlier, later, change, rate by county, from, to"
    assert captions["flows"].startswith("Employment, beginning, end, ") and captions["flows"].endswith(" quarter")


MOVEMENTS = """
[data]
source = "data/jobs.parquet"
quarters = ["q1", "q2", "q3"]

[data.schema]
workplace_attributes = ["county"]
worker_attributes = {}

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "histories"

[[release]]
name = "flows"
kind = "flows"
quarter = "q2"
by = ["county"]
epsilon = 2

[[release]]
name = "changes"
kind = "changes"
quarters = ["q1", "q2", "q3"]
by = ["county"]
epsilon = 2

[output]
folder = "out"
bundle = false
"""
