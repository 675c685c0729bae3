"""Where a ledger may live: wrong places end in an error that names the way out, and are left exactly as they were."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.words.errors import LedgerError
from faults_of import about

JOBS = {"dataset": "jobs", "unit": Workers()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def filled(path: Path, entries: int = 3) -> Path:
    with Ledger.open(path) as ledger:
        ledger.open_budget(total=Pure(1000), **JOBS)
        for number in range(entries - 1):
            ledger.charge(release=f"r{number}", loss=Pure(1), **JOBS)
    return path


def garbage(path: Path) -> None:
    path.write_bytes(b"establishment,worker\n" * 100)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE jobs (wage REAL)")
    database.close()


def older(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE discreet_ledger (seq INTEGER, epsilon REAL)")
    database.close()


def damaged(path: Path) -> None:
    filled(path, entries=40)
    data = bytearray(path.read_bytes())
    data[200:-200] = b"\xff" * (len(data) - 400)
    path.write_bytes(data)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (garbage, "file is not a database"),
        (foreign, "no table discreet_ledger"),
        (older, "seq, epsilon"),
        (damaged, "malformed"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_what_is_not_a_ledger_is_left_alone(tmp_path: Path, make, fact: str, read_only: bool) -> None:
    path = tmp_path / "ledger.db"
    make(path)
    before = contents(tmp_path)
    with pytest.raises(LedgerError, check=about("ledger", naming=(fact, path))):
        Ledger.open(path, read_only=read_only)
    after = contents(tmp_path)
    after.pop("ledger.db-shm", None)  # SQLite keeps its index of an empty log beside a file it cannot read
    assert not after.pop("ledger.db-wal", b"")
    assert after == before


def test_bytes_changed_in_the_file_are_found(tmp_path: Path) -> None:
    path = filled(tmp_path / "ledger.db")
    data = path.read_bytes()
    assert data.count(b'"details":{}') == 2
    path.write_bytes(data.replace(b'"details":{}', b'"details":[]', 1))
    with Ledger.open(path, read_only=True) as ledger:
        assert ledger.verify().fault == "the hash does not match the content: the line was edited"


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("place", ["missing/ledger.db", "file.txt/ledger.db"])
def test_a_place_that_does_not_exist(tmp_path: Path, place: str, read_only: bool) -> None:
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(LedgerError, check=about("ledger")):
        Ledger.open(tmp_path / place, read_only=read_only)
    assert contents(tmp_path) == {"file.txt": b"x"}


def test_reading_never_makes_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, check=about("ledger")):
        Ledger.open(tmp_path / "ledger.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_opened_to_be_read_cannot_be_written(tmp_path: Path) -> None:
    path = filled(tmp_path / "ledger.db")
    before = contents(tmp_path)
    with Ledger.open(path, read_only=True) as ledger:
        assert ledger.verify().head.seq == 3
        with pytest.raises(LedgerError, check=about("ledger")):
            ledger.charge(release="r9", loss=Pure(1), **JOBS)
    assert contents(tmp_path) == before, "reading left something behind"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from discreet.words.errors import LedgerError
from discreet.ledger import Ledger, store
path = Path(sys.argv[1])
with Ledger.open(path, read_only=True) as ledger:
    ledger.verify()  # loads what is loaded late, while the installation can be read
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
before = sorted(os.listdir(path.parent))
with Ledger.open(path, read_only=True) as ledger:
    print(ledger.verify().head.seq)
for place in (path, path.parent / "new.db"):
    try:
        Ledger.open(place)
    except LedgerError as error:
        print("cannot be written by this user" in str(error))
print(sorted(os.listdir(path.parent)) == before)
"""


def test_an_auditor_without_rights_reads_and_does_not_write() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = filled(Path(name) / "ledger.db")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            run = subprocess.run(
                [sys.executable, "-c", UNPRIVILEGED, str(path)], capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            path.parent.chmod(0o755)
    assert run.stdout.split() == ["3", "True", "True", "True"], run.stderr


def test_addresses(tmp_path: Path) -> None:
    odd = tmp_path / "a b#c?d%20.db"
    filled(odd)
    with Ledger.open(odd, read_only=True) as ledger:
        assert ledger.head.seq == 3
    with Ledger.open(f"sqlite:///{tmp_path / 'url.db'}") as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b#c?d%20.db", "url.db"]


@pytest.mark.parametrize("where", ["", ".", ":memory:", "sqlite://", "mysql://u:hunter2@h/db", "://"])
def test_addresses_that_are_no_place(where: str) -> None:
    with pytest.raises(LedgerError) as error:
        Ledger.open(where)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://officer:hunter2@127.0.0.1:1/ledger",
        "postgresql+psycopg://officer@127.0.0.1:1/ledger?password=hunter2",
        "postgresql://officer:hun/ter2@127.0.0.1/ledger",
        "postgresql://officer:hunter2@127.0.0.1:hunter2/ledger",
        "postgresql://officer@127.0.0.1:1/ledger?passwrd=hunter2",
    ],
)
def test_a_password_is_never_shown(where: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError) as error:
        Ledger.open(where)
    assert "hunter2" not in str(error.value)
    assert "ter2" not in str(error.value)


def test_import_is_light() -> None:
    code = "import sys, discreet.ledger, discreet.cli.ledger; print('sqlalchemy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "False"
