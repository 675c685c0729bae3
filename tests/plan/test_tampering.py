"""Bundles forged with care: every hash, seal and link agrees again, so only what the files say can give them away."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.archive.packing import _entry, as_json, pack, unaccounted
from discreet.ledger import Entry
from discreet.ledger.entries import canonical
from discreet.plan.run import run
from discreet.review import rebuild
from discreet.review import verdict as review
from discreet.review.rebuild import Rebuilt
from forging import Files, resealed, said, unpacked, verdict

PLAN = """
[data]
source = "jobs.parquet"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { sex = ["f", "m"] }
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 6
ledger = "ledger.db"
dataset = "jobs"
[[release]]
name = "jobs"
kind = "count"
by = ["place"]
epsilon = 2
mechanism = "polynomial"
[[release]]
name = "kinds"
kind = "count"
by = ["place", "sex"]
epsilon = 4
mechanism = "joint-polynomial"
[output]
folder = "out"
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged")
    rng = np.random.default_rng(3)
    size = rng.integers(5, 60, 12)
    workplace = np.repeat(np.arange(12), size)
    jobs = {
        "workplace": workplace,
        "worker": np.arange(len(workplace)),
        "place": [f"P{i % 6}" for i in workplace],
        "sex": np.where(rng.random(len(workplace)) < 0.5, "f", "m"),
    }
    pq.write_table(pa.table(jobs), folder / "jobs.parquet")
    (folder / "plan.toml").write_text(PLAN)
    run(folder / "plan.toml")
    return folder / "out" / "bundle.zip"


@pytest.fixture(autouse=True)
def tables_of_a_sane_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that tries the tables first takes half a second for each bundle; `test_unpacking` tests it."""
    monkeypatch.setattr(review, "check_tables", lambda packed, folder: [10**6] * 9)


def tables(name: str, *forms: str, formats=("csv", "parquet")) -> Callable:
    """A forgery of some files of a release's table."""

    def forgery(change: Callable[[pa.Table], pa.Table]) -> Callable[[Files], None]:
        def forge(files: Files) -> None:
            for form in forms:
                table = change(pq.read_table(io.BytesIO(files[f"{name}/{form}.parquet"])))
                for kind in formats:
                    sink = io.BytesIO()
                    (pa.csv.write_csv if kind == "csv" else pq.write_table)(table, sink)
                    files[f"{name}/{form}.{kind}"] = sink.getvalue()

        return forge

    return forgery


def more(table: pa.Table) -> pa.Table:
    counts = table["count"].to_pylist()
    return table.set_column(table.column_names.index("count"), "count", pa.array([counts[0] + 1000, *counts[1:]]))


def narrower(table: pa.Table) -> pa.Table:
    lower = pa.array([float(max(count, 0)) for count in table["count"].to_pylist()])
    return table.set_column(table.column_names.index("lower"), "lower", lower)


def renamed(table: pa.Table) -> pa.Table:
    return table.set_column(0, "place", pa.array(["Elsewhere", *table["place"].to_pylist()[1:]]))


def without_kinds(files: Files) -> None:
    for name in [name for name in files if name.startswith("kinds/")]:
        del files[name]
    said("bundle.json", lambda about: about.update(releases=["jobs"]))(files)


def without_kinds_and_their_lines(files: Files) -> None:
    without_kinds(files)

    def cut(book: dict) -> None:
        book["lines"] = [row for row in book["lines"] if row["release"] != "kinds"]
        for seq, row in enumerate(book["lines"], start=1):
            row["seq"] = seq

    said("ledger.json", cut)(files)
    resealed(files)


def words(**changes: object) -> Callable[[Files], None]:
    return said("jobs/release.json", lambda about: about["guarantee"].update(changes))


FORGERIES = {
    "the request's epsilon": (said("request.json", lambda r: r["releases"][0].update(epsilon="1")), "request", "paid"),
    "the request's alpha": (said("request.json", lambda r: r["unit"].update(alpha="1/2")), "request", "protects"),
    "the request's rounding": (
        said("request.json", lambda r: r["releases"][0].update(round_to=1)),
        "request",
        "another round_to",
    ),
    "the request's budget": (said("request.json", lambda r: r["budget"].update(epsilon="60")), "request", "a budget"),
    "a release removed": (without_kinds, "request", "'kinds' is asked for, and missing"),
    "a release removed, ledger and all": (without_kinds_and_their_lines, "request", "'kinds' is asked for"),
    "the sentence": (words(sentence="Nothing at all can be learned."), "jobs: guarantee", "sentence"),
    "the basis": (words(basis="empirical"), "jobs: guarantee", "basis"),
    "the sampler": (said("jobs/release.json", lambda r: r.update(sampler="coins")), "jobs: description", "sampler"),
    "the columns": (
        said("jobs/release.json", lambda r: r["columns"].update(count="true count")),
        "jobs: description",
        "columns",
    ),
    "the version": (said("jobs/release.json", lambda r: r["code"].update(discreet="9.9")), "jobs: code", "9.9"),
    "the parameters": (
        said("jobs/release.json", lambda r: r["parameters"].update(round_to=50)),
        "jobs: publication",
        "other parameters",
    ),
    "research.csv": (tables("jobs", "research", formats=("csv",))(more), "jobs: rows", "research form hold different"),
    "basic.csv": (tables("jobs", "basic", formats=("csv",))(more), "jobs: rows", "basic form hold different"),
    "the intervals": (tables("jobs", "research")(narrower), "jobs: intervals", "they are not those"),
    "the intervals of kinds": (tables("kinds", "research")(narrower), "kinds: intervals", "they are not those"),
    "a kind of worker dropped": (
        tables("kinds", "basic", "research")(lambda table: table.slice(1)),
        "kinds: rows",
        "lacks a kind",
    ),
    "a cell twice": (
        tables("jobs", "basic", "research")(lambda table: pa.concat_tables([table, table.slice(0, 1)])),
        "jobs: rows",
        "is there twice",
    ),
    "a cell renamed": (tables("jobs", "basic")(renamed), "jobs: basic form", "does not follow"),
    "a cell dropped": (
        tables("jobs", "basic", "research")(lambda table: table.slice(1)),
        "workplace cells",
        "have different cells by place",
    ),
    "basic rows dropped": (
        tables("jobs", "basic")(lambda table: table.slice(1)),
        "jobs: rows",
        "different numbers of rows",
    ),
}


@pytest.mark.parametrize("number", ["0" * 32, None], ids=["another", "none"])
def test_a_publication_of_another_draw_is_found(number: str | None, bundle: Path, tmp_path: Path) -> None:
    """The charge names the draw that it pays for; one that was drawn beside it has another number, or none."""
    files = unpacked(bundle)

    def change(book: dict) -> None:
        row = next(row for row in book["lines"] if row["kind"] == "publish" and row["release"] == "jobs")
        payload = {key: value for key, value in json.loads(row["payload"]).items() if key != "draw"}
        row["payload"] = canonical(payload if number is None else payload | {"draw": number})

    said("ledger.json", change)(files)
    resealed(files)
    assert "another draw than the last" in verdict(tmp_path / "forged.zip", files)["jobs: publication"].words


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_found(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")  # takes long, tested below
    forge, subject, told = FORGERIES[what]
    files = unpacked(bundle)
    forge(files)
    if "kinds/release.json" in files:
        resealed(files)
    found = verdict(tmp_path / "b.zip", files)[subject]
    assert found.wrong
    assert told in found.words


def test_resealing_alone_refutes_nothing(bundle: Path, tmp_path: Path) -> None:
    """So that the forgeries above are found for what they are: unforged, the same steps give the same bundle."""
    files = unpacked(bundle)
    resealed(files)
    found = verdict(tmp_path / "b.zip", files)
    assert [subject for subject, finding in found.items() if finding.wrong] == []
    assert (tmp_path / "b.zip").read_bytes() == bundle.read_bytes()


MORE = {
    "a key in bundle.json": (said("bundle.json", lambda about: about.update(more="text")), "bundle"),
    "a key in ledger.json": (said("ledger.json", lambda book: book.update(more="text")), "bundle"),
    "a key in the head": (said("ledger.json", lambda book: book["head"].update(more="text")), "ledger lines"),
    "a key in a line": (said("ledger.json", lambda book: book["lines"][0].update(more="text")), "ledger lines"),
    "another head": (said("ledger.json", lambda book: book["head"].update(hash="0" * 64)), "ledger lines"),
    "a key in request.json": (said("request.json", lambda asked: asked.update(more="text")), "request"),
    "a key of the schema": (said("request.json", lambda asked: asked["schema"].update(more="text")), "request"),
    "a key in release.json": (said("jobs/release.json", lambda about: about.update(more="text")), "jobs: description"),
    **{
        f"spaces in {name}": (lambda files, name=name: files.update({name: files[name] + b" "}), subject)
        for name, subject in {
            "ledger.json": "bundle",
            "request.json": "request",
            "jobs/release.json": "jobs: description",
        }.items()
    },
    "a key twice": (
        lambda files: files.update({"request.json": files["request.json"].replace(b"{", b'{"title": "", ', 1)}),
        "request",
    ),
}


@pytest.mark.parametrize("what", MORE)
def test_whatever_no_claim_covers_is_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")
    monkeypatch.setattr(review, "_mechanisms", lambda plan, name: "takes long, tested above")
    add, subject = MORE[what]
    files = unpacked(bundle)
    add(files)
    assert verdict(tmp_path / "b.zip", files)[subject].wrong


def test_bytes_beside_the_files_are_refused(bundle: Path, tmp_path: Path, command) -> None:
    whole, path = bundle.read_bytes(), tmp_path / "b.zip"

    def found(content: bytes) -> bool:
        path.write_bytes(content)
        return unaccounted(path) != ""

    assert not found(whole)
    assert found(b"before" + whole)
    assert found(whole + b"behind")
    assert "WRONG        bundle: the zip file has bytes behind the files" in command("verify", path)[1]
    files = unpacked(bundle)
    shuffled = dict(reversed(files.items()))
    for names, change in (
        (shuffled, lambda packed, entry: None),
        (files, lambda packed, entry: setattr(packed, "comment", b"text")),
        (files, lambda packed, entry: setattr(entry, "comment", b"text")),
        (files, lambda packed, entry: setattr(entry, "extra", b"\xfe\xca\x04\x00text")),
        (files, lambda packed, entry: setattr(entry, "date_time", (1999, 1, 1, 0, 0, 0))),
        (files, lambda packed, entry: setattr(entry, "internal_attr", 7)),
    ):
        with zipfile.ZipFile(path, "w") as packed:
            for name in names:
                entry = _entry(name)
                change(packed, entry)
                packed.writestr(entry, files[name], compresslevel=1)
        assert unaccounted(path), change


def test_bytes_behind_a_compressed_file_are_refused(tmp_path: Path) -> None:
    """The directory counts them to the file, and unpacking never shows them."""

    class Longer:
        def __init__(self) -> None:
            self.inner = zlib.compressobj(1, zlib.DEFLATED, -15)

        def compress(self, content: bytes) -> bytes:
            return self.inner.compress(content)

        def flush(self) -> bytes:
            return self.inner.flush() + b"hidden"

    path, files = tmp_path / "b.zip", {"bundle.json": b"text" * 50, "report.html": b"more" * 50}
    pack(path, files, files.__getitem__)
    assert unaccounted(path) == ""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(zipfile, "_get_compressor", lambda *_: Longer())
        pack(path, files, files.__getitem__)
    assert unpacked(path) == files
    assert "bundle.json" in unaccounted(path)


def test_every_part_of_the_request_is_checked_or_named(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value of request.json is changed, one at a time. What is accepted is named as not checked, or a title."""
    files = unpacked(bundle)
    monkeypatch.setattr(Rebuilt, "report", lambda self: files["report.html"])
    monkeypatch.setattr(review, "_mechanisms", lambda plan, name: "takes long, and reads no request")
    accepted = {}
    for place in places(json.loads(files["request.json"])):
        asked = json.loads(files["request.json"])
        *way, last = place
        part = reduce(lambda value, key: value[key], way, asked)
        part[last] = another(part[last])
        found = verdict(tmp_path / "b.zip", files | {"request.json": as_json(asked)})
        if not any(finding.wrong for finding in found.values()):
            accepted[place] = part[last], found["names"]
    titles = {("title",), ("releases", 0, "title"), ("releases", 1, "title")}
    named = {("schema", "workplace_attributes")}
    strata = {("releases", 0, "stratum"), ("releases", 1, "stratum")}
    assert accepted.keys() == titles | named | strata
    for place in named:
        value, finding = accepted[place]
        assert finding.state == "not checked"
        assert repr(value[-1] if isinstance(value, list) else value) in finding.words
    for place in strata:
        assert "the stratum of 'jobs', 'kinds'" in accepted[place][1].words


def places(value: object, way: tuple = ()) -> Iterator[tuple]:
    """The way to every value and every list in a JSON text."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*way, key))
    if not isinstance(value, dict):
        yield way


def another(value: object) -> object:
    if isinstance(value, list):
        return [*value, "more"]
    return "place" if value is None else not value if isinstance(value, bool) else f"{value}1"


def test_a_title_is_seen_in_the_report(bundle: Path, tmp_path: Path) -> None:
    for change in (lambda asked: asked.update(title="Other"), lambda asked: asked["releases"][0].update(title="Other")):
        files = unpacked(bundle)
        said("request.json", change)(files)
        assert verdict(tmp_path / "b.zip", files)["report.html"].wrong


@pytest.mark.parametrize("name", ["bundle.json", "ledger.json", "request.json", "jobs/release.json"])
def test_brackets_without_end_are_a_finding(bundle: Path, tmp_path: Path, command, name: str) -> None:
    files = unpacked(bundle) | {name: b"[" * 20_000}
    pack(tmp_path / "b.zip", files, files.__getitem__)
    code, out, err = command("verify", tmp_path / "b.zip")
    assert code == 1
    assert "WRONG" in out
    assert "Traceback" not in out + err


def test_an_edited_report_is_found(bundle: Path, tmp_path: Path) -> None:
    files = unpacked(bundle)
    assert verdict(tmp_path / "a.zip", files)["report.html"].holds
    assert b"times as likely" in files["report.html"]
    files["report.html"] = files["report.html"].replace(b"times as likely", b"times less likely", 1)
    found = verdict(tmp_path / "b.zip", files)
    assert [subject for subject, finding in found.items() if finding.wrong] == ["report.html"]


def test_what_cannot_be_checked_is_said(bundle: Path, tmp_path: Path, command) -> None:
    """Other hashes mean other code: neither it nor its report can be checked, and that is not 'holds'."""
    files = unpacked(bundle)
    said("jobs/release.json", lambda about: about["code"].update(source="0" * 64, computes="0" * 64))(files)
    resealed(files)
    found = verdict(tmp_path / "b.zip", files)
    unknown = [subject for subject, finding in found.items() if finding.state == "not checked"]
    assert unknown == ["names", "jobs: code", "report.html", "ledger", "draws"]
    assert "not proved by this check" in found["report.html"].words
    code, out, _ = command("verify", tmp_path / "b.zip")
    assert code == 0
    assert "5 were not checked" in out
    code, out, _ = command("verify", tmp_path / "b.zip", "--json")
    told = json.loads(out)
    assert told["not_checked"] == 5
    assert {row["holds"] for row in told["findings"]} == {True, None}


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[None]:
    """One item for each call of a function from now on."""
    calls: list[None] = []
    plain = getattr(owner, name)

    def watched(*arguments: object, **more: object) -> object:
        calls.append(None)
        return plain(*arguments, **more)

    monkeypatch.setattr(owner, name, watched)
    return calls


@pytest.mark.parametrize("fault", [False, True])
def test_work_is_done_once_for_all_releases(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: bool
) -> None:
    """The ledger is read and the request priced once, also where that ends in a fault."""
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")
    files = unpacked(bundle)
    if fault:
        said("ledger.json", lambda book: book["lines"][-1].update(hash="0" * 64))(files)
        said("request.json", lambda asked: asked["releases"][-1].update(stratum="nowhere"))(files)
    lines = counted(monkeypatch, Entry, "from_row")
    priced = counted(monkeypatch, rebuild, "requests")
    found = verdict(tmp_path / "b.zip", files)
    assert found["ledger lines"].wrong == found["request"].wrong == fault
    assert len(lines) == len(json.loads(files["ledger.json"])["lines"])
    assert len(priced) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda asked: asked["schema"]["worker_attributes"].update(sex=[f"{i}" for i in range(3_000)]),
            "asks for 2 tables with 3,001 kinds of workers together. The bundle has 8 files of tables with 2,400 rows",
        ),
        (
            lambda asked: asked["releases"].append(
                {"name": "more", "kind": "counts", "epsilon": "1"}
                | {"tables": [[], ["place"], ["sex"], ["place", "sex"], ["sex", "place"], ["age"], ["sex", "age"]]}
            ),
            "asks for 9 tables with",
        ),
    ],
)
def test_a_request_beyond_what_the_tables_hold(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable, words: str
) -> None:
    """It is refused before it is priced: each table has a file, and each kind of worker a row."""
    monkeypatch.setattr(review, "check_tables", lambda packed, folder: [300] * 8)
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")
    priced = counted(monkeypatch, rebuild, "requests")
    files = unpacked(bundle)
    said("request.json", change)(files)
    found = verdict(tmp_path / "b.zip", files)["request"]
    assert found.wrong
    assert words in found.words
    assert not priced


def test_a_share_that_takes_minutes_to_read(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1e999999999 is a number to Python, of a billion digits."""
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")
    files = unpacked(bundle)
    said("jobs/release.json", lambda about: about["parameters"]["tables"][0].update(scale_share="1e-99999"))(files)
    found = verdict(tmp_path / "b.zip", files)["jobs: mechanisms"]
    assert found.wrong
    assert "PrivacyError" in found.words
