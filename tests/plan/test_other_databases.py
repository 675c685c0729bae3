"""Plans on tables of a real MariaDB and of files of SQLite: the same numbers as from files, one moment, no secret."""

from __future__ import annotations

import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from traceback import format_exception
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from database_cases import (
    PASSWORD,
    desk_takes_an_address_and_no_password,
    driver_is_missed,
    jobs_are_those_of_the_files,
    refused_and_not_repeated,
    refused_at_its_place,
    rows_go_between_tables,
    spent_nothing,
)
from discreet.data.databases import Address, copied, moment
from discreet.plan.run import run
from discreet.words.errors import DataError, PlanError
from faults_of import about
from mariadb_server import mariadb_server

__all__ = ["mariadb_server"]

COLUMNS = {"sex": "varchar(1)", "place": "char(4)", "sector": "text"}


class Mariadb:
    """A database with the toys in it, which a user who may only read sees through the network."""

    def __init__(self, socket: Path, port: int) -> None:
        self.socket, self.port = socket, port
        self.name, self.role = (f"{kind}_{uuid4().hex[:8]}" for kind in ("toys", "reader"))
        self.run(f"CREATE DATABASE {self.name}", database="")
        self.run(
            f"CREATE USER {self.role}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT SELECT ON {self.name}.* TO {self.role}@'127.0.0.1'",
        )

    def run(self, *statements: str, database: str | None = None) -> None:
        import pymysql

        where = self.name if database is None else database
        with closing(pymysql.connect(unix_socket=str(self.socket), user="root", database=where or None)) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()

    def address(self, table: str) -> str:
        return f"mysql://{self.role}@127.0.0.1:{self.port}/{self.name}::{table}"

    def fill(self, table: str, rows: pa.Table) -> None:
        columns = ", ".join(f"{name} {COLUMNS.get(name, 'bigint')}" for name in rows.column_names)
        values = ", ".join(str(row) for row in zip(*(c.to_pylist() for c in rows.columns), strict=True))
        self.run(f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES {values}")


class Lite:
    """The same in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def address(self, table: str) -> str:
        return f"{self.path}::{table}"

    fill = Mariadb.fill


@pytest.fixture(params=["mariadb", "sqlite"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, toys: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mariadb | Lite]:
    toys(tmp_path / "toys")
    made: Mariadb | Lite = Lite(tmp_path / "toys" / "data" / "all.sqlite")
    if request.param == "mariadb":
        made = Mariadb(*request.getfixturevalue("mariadb_server"))
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    for name in ("jobs", "places"):
        made.fill(name, pq.read_table(tmp_path / "toys" / "data" / f"{name}.parquet"))
    yield made


@pytest.fixture
def plan(database: Mariadb | Lite, tmp_path: Path) -> Path:
    path = tmp_path / "toys" / "plan.toml"
    before, first, *_ = path.read_text().split("[[release]]")
    text = f'{before}[[release]]{first}[output]\nfolder = "out"\n'.replace(
        "data/jobs.parquet", database.address("jobs")
    )
    path.write_text(text.replace("data/places.parquet", database.address("places")))
    for file in (tmp_path / "toys" / "data").glob("*.parquet"):
        file.rename(tmp_path / file.name)
    return path


def test_a_plan_runs_and_no_secret_is_in_its_files(plan: Path) -> None:
    outcome = run(plan)
    assert outcome.remaining.epsilon == 4
    assert outcome.bundle is not None
    files = [path for path in plan.parent.rglob("*") if path.is_file() and path != plan and path.suffix != ".sqlite"]
    assert len(files) > 5
    for path in files:
        assert not any(word in path.read_bytes() for word in (PASSWORD.encode(), b"127.0.0.1", b"mysql://")), path


def test_jobs_are_those_of_the_files(database: Mariadb | Lite, plan: Path, tmp_path: Path) -> None:
    jobs_are_those_of_the_files(database, tmp_path)


def test_all_tables_are_read_at_one_moment(
    database: Mariadb | Lite, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two tables rows go; the run sees none of it. A file of SQLite without a log lets nobody write."""
    if isinstance(database, Lite):
        database.run("PRAGMA journal_mode = WAL")
    seen = rows_go_between_tables(database, monkeypatch)
    dc.read_jobs(
        database.address("jobs"), workplaces=database.address("places"), schema=dc.Schema(["place"], {}, unused=["*"])
    )
    assert seen[0] == 40 and seen[1] > 100


def test_rows_come_in_batches(database: Mariadb | Lite, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.data.databases import sql

    monkeypatch.setattr(sql, "BATCH", 7)
    sizes, batch = [], sql._batch
    monkeypatch.setattr(sql, "_batch", lambda rows, *more: (sizes.append(len(rows)), batch(rows, *more))[1])
    assert pq.read_table(
        copied(database.address("jobs") if isinstance(database, Mariadb) else _file(database))
    ).num_rows
    assert max(sizes) == 7 and len(sizes) > 20


def _file(database: Lite) -> Address:
    return Address.of_file(str(database.path), "jobs")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_of_a_file_no_more_columns_are_read_than_are_needed(database: Lite) -> None:
    with moment.one_moment():
        dc.read_jobs(
            database.address("jobs"),
            workplaces=database.address("places"),
            schema=dc.Schema(["place"], {}, unused=["*"]),
        )
        found = moment._MOMENT.get()
        assert found is not None
        names = {address.table: pq.read_schema(copy).names for (address, _), copy in found.copies.items()}
    assert names == {"jobs": ["workplace", "worker"], "places": ["workplace", "place"]}


@pytest.mark.parametrize(("scheme", "way"), [("oracle", "oracle_fdw"), ("mssql+pyodbc", "tds_fdw")])
def test_servers_that_are_not_read_are_named_with_the_ways_from_there(scheme: str, way: str) -> None:
    with pytest.raises(DataError, check=about("source", naming=(way, "Parquet"))) as refusal:
        dc.read_jobs(f"{scheme}://reader:hunter2@host/db::jobs", schema=dc.Schema(["place"], {}, unused=["*"]))
    assert "hunter2" not in str(refusal.value)


def test_an_empty_table_has_its_columns(database: Mariadb | Lite) -> None:
    database.run("CREATE TABLE nobody (a int, b text)")
    where = (
        database.address("nobody") if isinstance(database, Mariadb) else Address.of_file(str(database.path), "nobody")
    )
    assert pq.read_table(copied(where)).schema.names == ["a", "b"]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_types_of_mariadb_come_as_files_have_them(database: Mariadb) -> None:
    database.run(
        "CREATE TABLE odd (a decimal(6,0), b decimal(12,2), c enum('light', 'dark'), d tinyint(1), e char(4), f uuid, "
        "g bigint unsigned, h date, i datetime, `100% words` text, j double, k binary(2), l year, m time)",
        "INSERT INTO odd VALUES (7, 12.25, 'dark', 1, 'ab', uuid(), 18446744073709551615, '2026-01-31', "
        "'2026-01-31 10:00:00', 'é', 1.5, x'00ff', 2026, '10:00:00'), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    table = pq.read_table(copied(database.address("odd")))
    assert [str(kind) for kind in table.schema.types] == [
        *("int64", "double", "string", "int64", "string", "string", "uint64", "date32[day]"),
        *("timestamp[us]", "string", "double", "string", "int64", "string"),
    ]
    first = table.to_pylist()[0]
    assert (first["a"], first["b"], first["c"], first["e"]) == (7, 12.25, "dark", "ab")
    assert (first["100% words"], first["g"], first["k"], first["l"]) == ("é", 2**64 - 1, "00FF", 2026)
    assert set(table.to_pylist()[1].values()) == {None}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_types_of_sqlite_are_those_declared(database: Lite) -> None:
    database.run(
        "CREATE TABLE odd (a INTEGER, b REAL, c TEXT, d DATE, e NUMERIC, f BLOB, g)",
        "INSERT INTO odd VALUES (7, 1, 'x', '2026-01-31', 2.5, x'00ff', 'any')",
    )
    table = pq.read_table(copied(Address.of_file(str(database.path), "odd")))
    assert table.to_pylist() == [{"a": 7, "b": 1.0, "c": "x", "d": "2026-01-31", "e": 2.5, "f": "00FF", "g": "any"}]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_values_of_sqlite_of_another_kind_than_their_column_are_missing(database: Lite) -> None:
    """Red before: 1.5 was read as 1, and one text among numbers refused a model by a response."""
    database.run(
        "CREATE TABLE wrong (a INTEGER, b NUMERIC(5, 0), c REAL, d BOOLEAN)",
        "INSERT INTO wrong VALUES (7, 7, 7, 1), ('hunter2', 'x', 'x', 'x'), (1.5, 1.5, 1.5, 0.5), "
        "(x'01', x'01', x'01', x'01')",
        "CREATE TABLE keys (workplace INTEGER, worker INTEGER, place INTEGER)",
        "INSERT INTO keys VALUES (1, 1, 1), (2, 2, 1.5)",
    )
    table = pq.read_table(copied(Address.of_file(str(database.path), "wrong")))
    rows = [list(row.values()) for row in table.to_pylist()]
    assert rows == [[7, 7, 7.0, 1], [None] * 4, [None, None, 1.5, None], [None] * 4]
    with pytest.raises(DataError):
        dc.read_jobs(database.address("keys"), schema=dc.Schema(["place"], {}))


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_table_without_transactions_is_refused(database: Mariadb, plan: Path) -> None:
    database.run("ALTER TABLE jobs ENGINE = MyISAM")
    with pytest.raises(PlanError) as refusal:
        run(plan)
    assert "MyISAM" in str(refusal.value) and "[data], source" in str(refusal.value)
    spent_nothing(plan)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_the_transaction_can_write_nothing(database: Mariadb) -> None:
    from discreet.data.databases import sql

    database.run(f"GRANT ALL ON {database.name}.* TO {database.role}@'127.0.0.1'")
    connection = sql.connect(Address.of(database.address("jobs")))
    with closing(connection), pytest.raises(Exception) as refusal:
        connection.exec_driver_sql("DELETE FROM jobs")
    assert sql.cause(refusal.value) == sql.CAUSES[1792]


FAILURES = {
    "wrong password": ("an0ther-Pa55", "", "", "did not take the user or the password"),
    "no server": (PASSWORD, r"127.0.0.1:\d+", "127.0.0.1:9", "no server answers there"),
    "no host": (PASSWORD, r"127.0.0.1:\d+", "nowhere.invalid", "no server answers there"),
    "no database": (PASSWORD, r"/toys_\w+::jobs", "/elsewhere::jobs", "this user may not read it"),
    "no table": (PASSWORD, "::jobs", "::job", "Did you mean 'jobs'?"),
    "no right": (PASSWORD, "::jobs", "::mysql.user", "this user may not read it"),
    "no column": (PASSWORD, "::jobs", "::places", "Column 'worker' is not in places"),
}


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_said_and_costs_nothing(failure: str, plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    password, old, new, words = FAILURES[failure]
    monkeypatch.setenv("MYSQL_PWD", password)
    if old:
        plan.write_text(re.sub(old, new, plan.read_text(), count=1))
    refused_at_its_place(plan, words, password)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_password_file_outside_the_plan_is_enough(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MYSQL_PWD")
    keys = tmp_path / "client.cnf"
    keys.write_text(f"[client]\npassword={PASSWORD}\n")
    plan.write_text(re.sub(r"(toys_\w+)::", rf"\1?option_file={keys}::", plan.read_text()))
    assert run(plan, dry_run=True).check.faults == ()


@pytest.mark.parametrize(
    ("text", "option"),
    [("password=hunter2\n[client]\n", ""), ("[client\nhunter2\n", ""), (None, ""), ("", "&connect_timeout=soon")],
    ids=["before its section", "no section", "no file", "no number"],
)
def test_a_password_file_or_option_that_cannot_be_read_is_said_and_not_repeated(
    text: str | None, option: str, tmp_path: Path
) -> None:
    keys = tmp_path / "client.cnf"
    if text is not None:
        keys.write_text(text)
    with pytest.raises(DataError, check=about("source")) as refusal:
        dc.read_jobs(
            f"mysql://u@127.0.0.1:9/db?option_file={keys}{option}::jobs", schema=dc.Schema(["place"], {}, unused=["*"])
        )
    assert ("connect_timeout" if option else "option_file") in str(refusal.value)
    assert "hunter2" not in "".join(format_exception(refusal.value))


def test_a_server_that_accepts_and_stays_silent_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(DataError) as refusal:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        dc.read_jobs(f"mysql://u@{place}/db?connect_timeout=1::jobs", schema=dc.Schema(["place"], {}, unused=["*"]))
    assert "no server answers there" in str(refusal.value)


LITE_FAILURES = {
    "no file": ("all.sqlite", "al.sqlite", "Did you mean 'all.sqlite'?"),
    "no table": ("::jobs", "::job", "Did you mean 'jobs'?"),
    "no name": ("::jobs", "", "is named"),
}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("failure", LITE_FAILURES)
def test_what_fails_in_a_file_is_said_and_costs_nothing(failure: str, plan: Path) -> None:
    old, new, words = LITE_FAILURES[failure]
    plan.write_text(plan.read_text().replace(old, new, 1))
    if failure == "no file":
        with pytest.raises(DataError) as missing:
            dc.read_jobs(plan.parent / "data" / "al.sqlite::jobs", schema=dc.Schema(["place"], {}, unused=["*"]))
        assert words in str(missing.value)
        return
    with pytest.raises(PlanError) as refusal:
        run(plan)
    assert words in str(refusal.value)
    spent_nothing(plan)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_is_no_file_of_sqlite_is_said(database: Lite, plan: Path) -> None:
    database.path.write_bytes(b"worker,place\n1,2\n" * 200)
    with pytest.raises(PlanError) as refusal:
        run(plan)
    assert "not a SQLite file" in str(refusal.value)
    spent_nothing(plan)


SECRETS = (
    "mysql://reader:hunter2@host/db::jobs",
    "mariadb://reader:hunter2@host:99999999/db::jobs",
    "mysql://reader@host/db?password=hunter2::jobs",
    "mysql://reader@host/db?passwd=hunter2::jobs",
    "mysql://reader:hun/hunter2@host/db::jobs",
    "mysql+pymysql://reader:hunter2@host/db::jobs",
    "MySQL://reader:hunter2@host/db::jobs",
    "oracle://reader:hunter2@host/db::jobs",
    "mssql+pyodbc://reader:hunter2@host/db::jobs",
    "mysql://reader@host/db?hunter2=1::jobs",
    "mysql://hunter2",
)


@pytest.mark.parametrize("address", SECRETS)
def test_an_address_with_a_secret_is_refused_and_not_repeated(
    address: str, toys: Callable[[Path], Path], tmp_path: Path
) -> None:
    refused_and_not_repeated(address, toys(tmp_path))


def test_two_names_of_one_table_are_one_data_set() -> None:
    one = Address.of("mysql://a@localhost/db::jobs")
    assert one.same_as(Address.of("mariadb://b@127.0.0.1:3306/db::db.jobs"))
    assert not one.same_as(Address.of("postgresql://a@localhost:3306/db::jobs"))
    assert not one.same_as(Address.of("mysql://a@localhost/db::other"))


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_missing_driver_says_how_to_get_it(database: Mariadb, monkeypatch: pytest.MonkeyPatch) -> None:
    driver_is_missed("pymysql", "[mysql]", database, monkeypatch)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_desk_takes_an_address_and_no_password(database: Mariadb, tmp_path: Path) -> None:
    desk_takes_an_address_and_no_password(database, "mysql://reader:hunter2@host/db::jobs", tmp_path / "desk")
