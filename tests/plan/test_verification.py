"""A reviewer's bundle is believed in nothing: every way of tampering with it is found."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet.archive.packing import as_json, pack
from discreet.ledger import Ledger
from discreet.ledger.entries import seal
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.review.rebuild import Rebuilt
from discreet.review.verdict import Finding, verify_bundle
from discreet.tables.mechanisms.ladder import LadderNoise

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of one release, with the ledger beside its plan."""
    toys = pytest.importorskip("pyarrow")  # the module's own toys, so that each test only repacks
    folder = tmp_path_factory.mktemp("bundle")
    jobs = {"workplace": ["a"] * 30 + ["b"] * 5, "worker": list(range(35)), "place": ["P"] * 30 + ["Q"] * 5}
    pq.write_table(toys.table(jobs), folder / "jobs.parquet")
    (folder / "plan.toml").write_text(
        '[data]\nsource = "jobs.parquet"\n[data.schema]\nworkplace_attributes = ["place"]\nworker_attributes = {}\n'
        '[unit]\nkind = "establishments"\nalpha = 0.1\n[budget]\nepsilon = 3\nledger = "ledger.db"\ndataset = "jobs"\n'
        '[[release]]\nname = "jobs"\nkind = "count"\nby = ["place"]\nepsilon = 2\n[output]\nfolder = "out"\n'
    )
    run(folder / "plan.toml")
    return folder / "out" / "bundle.zip"


def unpacked(path: Path) -> Files:
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def repacked(path: Path, files: Files, *, hashes: bool = True) -> Path:
    """A bundle of changed files; `hashes` makes its own list agree with them."""
    if hashes:
        about = json.loads(files["bundle.json"])
        about["files"] = {name: sha256(content).hexdigest() for name, content in files.items() if name != "bundle.json"}
        files = {**files, "bundle.json": as_json(about)}
    pack(path, files, files.__getitem__)
    return path


def edited(files: Files, name: str, change: Callable[[dict], object]) -> None:
    content = json.loads(files[name])
    change(content)
    files[name] = as_json(content)


def wrong(findings: list[Finding]) -> dict[str, str]:
    return {finding.subject: finding.words for finding in findings if finding.wrong}


def test_holds(bundle: Path, command) -> None:
    code, out, _ = command("verify", bundle, "--ledger", bundle.parents[1] / "ledger.db")
    assert code == 0
    assert "worst loss 2 of epsilon=2" in out
    assert "every requested release is present (1)" in out
    page = (bundle.parent / "report.html").read_text()
    assert "1 release of" in page
    assert "1 releases" not in page
    assert "noise was added to every count," in page
    assert "it contains every line of the bundle" in out
    code, out, _ = command("verify", bundle, "--json")
    assert json.loads(out)["holds"] is True


def test_same_bytes_every_time(bundle: Path) -> None:
    before = bundle.read_bytes()
    run(bundle.parents[1] / "plan.toml")
    assert bundle.read_bytes() == before


def test_holds_no_path_and_no_address(bundle: Path) -> None:
    everything = b"".join(unpacked(bundle).values())
    for secret in (str(bundle.parents[1]).encode(), b"jobs.parquet", b"ledger.db"):
        assert secret not in everything


def change_a_count(files: Files) -> None:
    files["jobs/basic.csv"] = files["jobs/basic.csv"].replace(b'"P"', b'"X"')


def claim_less(files: Files) -> None:
    edited(files, "jobs/release.json", lambda about: about["guarantee"]["loss"].update(epsilon="1"))


def claim_another_unit(files: Files) -> None:
    edited(files, "jobs/release.json", lambda about: about["guarantee"].update(unit="workers"))


def draw_less_noise(files: Files) -> None:
    def narrower(about: dict) -> None:
        noise = about["parameters"]["tables"][0]["noise"]
        noise["factor"] *= 0.9

    edited(files, "jobs/release.json", narrower)


def seed_the_noise(files: Files) -> None:
    edited(files, "jobs/release.json", lambda about: about.update(randomness="a seed: not private"))


def word_it_better(files: Files) -> None:
    better = "strong (alpha=0.1, epsilon=0.2)-employer-employee privacy"
    edited(files, "jobs/release.json", lambda about: about["guarantee"].update(definition=better))


def point_elsewhere(files: Files) -> None:
    edited(files, "jobs/release.json", lambda about: about["ledger"].update(hash="0" * 64))


def lower_the_price(files: Files) -> None:
    def change(book: dict) -> None:
        book["lines"][1]["loss"] = '{"epsilon":"1"}'

    edited(files, "ledger.json", change)


def lower_and_seal(files: Files) -> None:
    def change(book: dict) -> None:
        row = book["lines"][1]
        row["loss"] = row["spent_after"] = '{"epsilon":"1"}'
        row["hash"] = seal({name: value for name, value in row.items() if name != "hash"})

    edited(files, "ledger.json", change)


def overspend_and_seal(files: Files) -> None:
    def change(book: dict) -> None:
        row = book["lines"][0]
        row["loss"] = '{"epsilon":"1"}'
        row["hash"] = seal({name: value for name, value in row.items() if name != "hash"})
        book["lines"] = [row, *book["lines"][2:]]

    edited(files, "ledger.json", change)


def repeat_a_line(files: Files) -> None:
    edited(files, "ledger.json", lambda book: book["lines"].append(book["lines"][-1]))


def drop_the_publication(files: Files) -> None:
    edited(files, "ledger.json", lambda book: book["lines"].pop())


def break_the_ledger(files: Files) -> None:
    files["ledger.json"] = b"[]"


def break_the_manifest(files: Files) -> None:
    files["jobs/release.json"] = b"nothing"


@pytest.mark.parametrize(
    ("tamper", "subject", "words"),
    [
        (change_a_count, "jobs: publication", "not those published"),
        (claim_less, "jobs: guarantee", "epsilon=1 is claimed, epsilon=2 was paid"),
        (claim_another_unit, "jobs: guarantee", "claims to protect workers"),
        (draw_less_noise, "jobs: mechanisms", "more than epsilon=2"),
        (seed_the_noise, "jobs: guarantee", "not private"),
        (word_it_better, "jobs: guarantee", "do not state epsilon=2"),
        (point_elsewhere, "jobs: publication", "no line of the ledger paid"),
        (lower_the_price, "ledger lines", "the line was edited"),
        (lower_and_seal, "ledger lines", "does not continue"),
        (overspend_and_seal, "ledger lines", "says epsilon=2 is spent"),
        (repeat_a_line, "ledger lines", "follows entry"),
        (drop_the_publication, "jobs: publication", "has 0 publications"),
        (break_the_ledger, "ledger lines", "malformed"),
        (break_the_manifest, "jobs: guarantee", "malformed"),
    ],
)
def test_tampering_is_found(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tamper, subject: str, words: str
) -> None:
    monkeypatch.setattr(Rebuilt, "report", lambda self, published, budget, head: b"")  # takes long, tested elsewhere
    monkeypatch.setattr("discreet.review.verdict.check_tables", lambda packed, folder: [10**6] * 9)  # in test_unpacking
    files = unpacked(bundle)
    tamper(files)
    found = wrong(verify_bundle(repacked(tmp_path / "b.zip", files)))
    assert words in found[subject], found


@pytest.mark.parametrize("calibration", ["tight", pytest.param("paper", marks=pytest.mark.full_size)])
def test_noise_for_single_jobs(toys, tmp_path: Path, command, calibration: str) -> None:
    """The width that one job needs is found enough; a little less is not, nor the other law."""
    law = {"tight": "DiscreteLaplace", "paper": "Laplace"}[calibration]
    plan = toys(tmp_path)
    text = plan.read_text().replace('kind = "establishments"\nalpha = 0.1', 'kind = "workers"')
    plan.write_text(text.replace('name = "places"', f'name = "places"\ncalibration = "{calibration}"'))
    run(plan)
    code, out, _ = command("verify", plan.parent / "out" / "bundle.zip")
    assert code == 0 and f"edge-laplace: {law} noise of width 0.5" in out
    for change in ({"width": 0.4999}, {"law": "Gaussian"}):
        files = unpacked(plan.parent / "out" / "bundle.zip")
        edited(
            files, "places/release.json", lambda about, c=change: about["parameters"]["tables"][0]["noise"].update(c)
        )
        found = wrong(verify_bundle(repacked(tmp_path / "b.zip", files)))
        assert f"needs {law} noise of width 0.5" in found["places: mechanisms"], found


def test_a_changed_file_is_found(bundle: Path, tmp_path: Path, command) -> None:
    files = unpacked(bundle)
    files["report.html"] += b"<!-- more -->"
    code, out, _ = command("verify", repacked(tmp_path / "b.zip", files, hashes=False))
    assert code == 1
    assert "WRONG        files: 'report.html' is not the file that was packed" in out


def test_a_file_too_many_is_found(bundle: Path, tmp_path: Path) -> None:
    files = unpacked(bundle) | {"extra": b""}
    assert "'extra'" in wrong(verify_bundle(repacked(tmp_path / "b.zip", files, hashes=False)))["files"]


def test_a_basic_form_of_its_own_is_found(bundle: Path, tmp_path: Path) -> None:
    files = unpacked(bundle)
    table = pq.read_table(io.BytesIO(files["jobs/basic.parquet"]))
    table = table.set_column(1, "count", [[count + 50 for count in table["count"].to_pylist()]])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    files["jobs/basic.parquet"] = sink.getvalue()
    found = wrong(verify_bundle(repacked(tmp_path / "b.zip", files)))
    assert "does not follow" in found["jobs: basic form"]


def test_another_ledger_is_found(bundle: Path, tmp_path: Path, command) -> None:
    from discreet.privacy.losses import Pure
    from discreet.privacy.units import Workers

    with Ledger.open(tmp_path / "other.db") as other:
        other.open_budget(dataset="jobs", unit=Workers(), total=Pure(3))
    code, out, _ = command("verify", bundle, "--ledger", tmp_path / "other.db")
    assert code == 1
    assert "the chain does not contain" in out


def test_an_emptied_ledger_is_found(bundle: Path, tmp_path: Path, command) -> None:
    """From inside, an emptied ledger looks like a new one: it is said, and whatever was released refutes it."""
    emptied = tmp_path / "ledger.db"
    shutil.copy(bundle.parents[1] / "ledger.db", emptied)
    with closing(sqlite3.connect(emptied)) as book:
        for kind, name in book.execute("SELECT type, name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            book.execute(f"DROP {kind} {name}")
        tables = [name for (name,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert sum(book.execute(f"DELETE FROM {name}").rowcount for name in tables) > 0
        book.commit()
    code, out, _ = command("ledger", "verify", emptied)
    assert "proves nothing" in out or code == 1
    code, out, _ = command("ledger", "verify", emptied, "--json")
    assert json.loads(out)["empty"] or code == 1
    code, out, _ = command("ledger", "verify", emptied, "--release", bundle.parent / "jobs" / "release.json")
    assert code == 1
    code, out, _ = command("verify", bundle, "--ledger", emptied)
    assert code == 1
    with Ledger.open(tmp_path / "new.db"):
        pass
    code, out, _ = command("ledger", "verify", tmp_path / "new.db")
    assert code == 0
    assert "EMPTY, which proves nothing" in out
    code, out, _ = command("ledger", "verify", tmp_path / "new.db", "--release", bundle.parent / "jobs/release.json")
    assert code == 1
    assert "the ledger has no charge" in out
    code, out, _ = command("ledger", "verify", bundle.parents[1] / "ledger.db")
    assert code == 0
    assert "EMPTY" not in out


@pytest.mark.parametrize("content", [b"", b"PK not a zip"])
def test_what_is_no_bundle(tmp_path: Path, command, content: bytes) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(content)
    code, _, err = command("verify", path)
    assert code == 2
    assert "is not a reviewer's bundle" in err


def test_what_is_not_there(tmp_path: Path, command) -> None:
    code, _, err = command("verify", tmp_path / "nosuch.zip")
    assert code == 2
    assert "There is no file" in err
    assert "nosuch.zip" in err


def ask_for_a_long_table(files: Files) -> None:
    edited(files, "request.json", lambda asked: asked["unit"].update(alpha="0.02"))

    def change(asked: dict) -> None:
        asked["releases"][0].update(mechanism="ladder", epsilon="5")
        asked["budget"].update(epsilon="6")

    edited(files, "request.json", change)


def state_a_long_table(files: Files) -> None:
    """Constants that follow from another alpha, in a release whose request is of that alpha, too."""
    noise = LadderNoise._with(Establishments("0.02"), Pure(5), 5.0).constants()
    ask_for_a_long_table(files)
    edited(
        files,
        "jobs/release.json",
        lambda about: about["parameters"]["tables"][0].update(noise=noise, loss={"epsilon": "5"}),
    )


@pytest.mark.parametrize("forge", [ask_for_a_long_table, state_a_long_table])
def test_no_bundle_makes_a_reviewer_solve_for_minutes(
    bundle: Path, tmp_path: Path, command, monkeypatch: pytest.MonkeyPatch, forge: Callable[[Files], None]
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a table was solved")

    monkeypatch.setattr("discreet.tables.mechanisms.ladder.solve", never)
    monkeypatch.setattr("discreet.noise.steps.least.solve", never)
    files = unpacked(bundle)
    forge(files)
    code, out, err = command("verify", repacked(tmp_path / "b.zip", files))
    assert code == 2 and "was not reviewed" in err and "holds" not in out, out + err


def test_the_last_line_counts_in_words(bundle: Path, command, monkeypatch: pytest.MonkeyPatch) -> None:
    for states, words in (
        (("holds", "WRONG", "not checked"), "1 claim holds, 1 is wrong, 1 was not checked."),
        (("holds", "holds"), "2 claims hold, 0 are wrong, 0 were not checked."),
    ):
        findings = [Finding("subject", state, "words") for state in states]
        monkeypatch.setattr("discreet.review.verdict.verify_bundle", lambda *_, found=findings, **__: found)
        assert words in command("verify", bundle)[1]
