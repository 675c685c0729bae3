"""What a ledger does on one engine it does on the other; and what only PostgreSQL can be asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from discreet.cli.ledger import ledger as command
from discreet.ledger import Ledger
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import Establishments, Workers
from discreet.words.errors import BudgetExceeded, LedgerError, PrivacyError
from faults_of import about

JOBS = {"dataset": "Löhne 2026", "unit": Establishments(alpha="1/3")}


@contextmanager
def connected(where: str) -> Iterator[sa.Connection]:
    """The database behind a ledger, as anyone with the right could open it."""
    database = sa.create_engine(where if "://" in where else f"sqlite:///{where}", poolclass=sa.NullPool)
    with database.begin() as connection:
        yield connection


def run(where: str, *statements: str) -> None:
    with connected(where) as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def test_a_life(where: str) -> None:
    with Ledger.open(where) as ledger:
        ledger.open_budget(total=Approximate(1, "1e-6"), **JOBS)
        first = ledger.charge(release="county", loss=Pure("1/3"), details={"by": ["place"], "width": 0.1}, **JOBS)
        ledger.publish(first, files={"table.parquet": "a" * 64})
        with pytest.raises(BudgetExceeded, check=about("epsilon")):
            ledger.charge(release="state", loss=Pure(1), **JOBS)
        with pytest.raises(PrivacyError, check=about("unit")):
            ledger.open_budget(dataset=JOBS["dataset"], unit=Workers(), total=Pure(1))
        ledger.change_budget(total=Approximate(2, "1e-6"), reason="board", by="anna", confirmed_by="rita", **JOBS)
        ledger.charge(release="state", loss=Approximate(1, "1e-7"), **JOBS)
        kept = ledger.head
    with Ledger.open(where, read_only=True) as ledger:
        assert ledger.head == kept
        assert ledger.verify(contains=[first.hash])
        assert ledger.remaining(JOBS["dataset"], JOBS["unit"]) == Approximate("2/3", "9e-7")
        assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "publish", "budget", "charge"]
        assert ledger.entries(last=2) == ledger.entries()[-2:]
        with pytest.raises(LedgerError, check=about("ledger")):
            ledger.charge(release="r", loss=Pure("0.1"), **JOBS)


def test_two_people_raise_a_budget_by_the_command(where: str) -> None:
    """A refusal writes nothing; what is raised is shown with who did it and why, and can be spent."""

    def call(*arguments: str) -> tuple[int, str, BaseException | None]:
        done = CliRunner().invoke(command, ["budget", where, *arguments], env={"COLUMNS": "200"})
        return done.exit_code, done.output, done.exception

    name = JOBS["dataset"]
    with Ledger.open(where) as ledger:
        ledger.open_budget(total=Pure(1), by="otto", **JOBS)
        ledger.charge(release="county", loss=Pure("3/4"), **JOBS)
        before = ledger.head
    raising = [name, "--epsilon", "2"]
    for asked in (
        raising,
        ["--epsilon", "2", "--reason", "board", "--by", "anna", "--confirmed-by", "rita"],
        [*raising, "--reason", " ", "--by", "anna", "--confirmed-by", "rita"],
        [*raising, "--reason", "board", "--by", "anna"],
        [*raising, "--reason", "board", "--by", "anna", "--confirmed-by", "Anna"],
        [*raising, "--reason", "board", "--by", "anna", "--confirmed-by", "rita", "--unit", "workers"],
        [*raising, "--rho", "1", "--reason", "board", "--by", "anna", "--confirmed-by", "rita"],
        [name, "--epsilon", "0.5", "--reason", "less than is spent", "--by", "anna"],
        ["nothing", "--epsilon", "2", "--reason", "board", "--by", "anna", "--confirmed-by", "rita"],
        [name, "--reason", "board"],
    ):
        assert call(*asked)[0], asked
        with Ledger.open(where, read_only=True) as ledger:
            assert ledger.head == before, asked
    assert call(name) == (0, call()[1], None)
    code, out, _ = call(*raising, "--reason", "board, 3 March", "--by", "anna", "--confirmed-by", "rita")
    assert code == 0
    assert "epsilon=1.25 is left of epsilon=2" in out
    assert "epsilon=1 by otto\n" in out and "epsilon=2 by anna and rita: board, 3 March" in out
    with Ledger.open(where, read_only=True) as ledger:
        assert ledger.verify()
    code, out, _ = call(name, "--epsilon", "0.75", "--reason", "enough", "--by", "anna", "--json")
    told = json.loads(out)
    assert (code, told["budgets"][0]["remaining"], len(told["changes"])) == (0, {"epsilon": "0"}, 3)


DISABLE = {
    "sqlite": ["DROP TRIGGER discreet_ledger_no_UPDATE"],
    "postgresql": ["ALTER TABLE discreet_ledger DISABLE TRIGGER discreet_ledger_append_only"],
}


def test_an_edited_row_is_refused_and_when_forced_is_found(where: str) -> None:
    with Ledger.open(where) as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        ledger.charge(release="county", loss=Pure("0.75"), **JOBS)
        ledger.charge(release="state", loss=Pure("0.25"), **JOBS)
    edit = """UPDATE discreet_ledger SET loss = '{"epsilon":"1/2"}' WHERE seq = 2"""
    for statement in (edit, "DELETE FROM discreet_ledger WHERE seq = 3"):
        with pytest.raises(sa.exc.DBAPIError, match="the ledger is append-only"):
            run(where, statement)
    assert CliRunner().invoke(command, ["verify", where]).exit_code == 0
    run(where, *DISABLE["postgresql" if "://" in where else "sqlite"], edit)
    result = CliRunner().invoke(command, ["verify", where, "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["seq"] == 2


def test_a_charge_uses_an_index_for_every_look(where: str) -> None:
    """A ledger of a hundred thousand entries is not read through to take one more."""
    seen: list[tuple[str, object]] = []
    with Ledger.open(where) as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        database = ledger._store.engine
        sa.event.listen(database, "before_cursor_execute", lambda c, cur, sql, values, *_: seen.append((sql, values)))
        ledger.charge(release="county", loss=Pure("0.75"), **JOBS)
        looks = [(sql, values) for sql, values in seen if sql.startswith("SELECT") and "FROM discreet_ledger" in sql]
        with database.connect() as connection:
            if ledger._store.is_postgres:
                connection.exec_driver_sql("SET enable_seqscan = off")
            word = "EXPLAIN" if ledger._store.is_postgres else "EXPLAIN QUERY PLAN"
            plans = [str(connection.exec_driver_sql(f"{word} {sql}", values).fetchall()) for sql, values in looks]
    assert len(looks) == 6, "two of them for the anchor"
    assert all("LIMIT" in sql for sql, _ in looks)
    # The last line of all is the end of the primary key: SQLite calls that walk, which stops at once, a scan.
    indexed = ("INDEX", "PRIMARY KEY")
    for plan in plans:
        assert any(word in plan.upper() for word in indexed) or plan.endswith("'SCAN discreet_ledger')]"), plan


@pytest.mark.postgres
def test_a_shared_database_keeps_its_other_tables(postgres_url: str) -> None:
    run(postgres_url, "CREATE TABLE wages (amount INT)", "INSERT INTO wages VALUES (1)")
    with pytest.raises(LedgerError, check=about("ledger")):
        Ledger.open(postgres_url, read_only=True)
    with Ledger.open(postgres_url) as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
    with connected(postgres_url) as connection:
        assert connection.execute(sa.text("SELECT amount FROM wages")).scalar_one() == 1
    with pytest.raises(sa.exc.DBAPIError, match="the ledger is append-only"):
        run(postgres_url, "TRUNCATE discreet_ledger")


@pytest.mark.postgres
def test_a_user_who_may_only_append(postgres_url: str) -> None:
    """The rights to read and to insert are enough to charge; nobody has to own the table."""
    with Ledger.open(postgres_url) as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
    name = f"clerk_{postgres_url.split('ledger_')[1][:12]}"
    run(postgres_url, f"CREATE ROLE {name} LOGIN", f"GRANT SELECT, INSERT ON discreet_ledger TO {name}")
    with Ledger.open(postgres_url.replace("postgres@", f"{name}@")) as ledger:
        ledger.charge(release="county", loss=Pure("0.75"), **JOBS)
        assert ledger.verify()
    run(postgres_url, f"REVOKE INSERT ON discreet_ledger FROM {name}")
    with Ledger.open(postgres_url.replace("postgres@", f"{name}@")) as ledger:
        with pytest.raises(LedgerError, check=about("ledger")):
            ledger.charge(release="state", loss=Pure("0.25"), **JOBS)
        assert ledger.head.seq == 2


@pytest.mark.postgres
def test_a_server_that_waits_for_no_disk_still_waits_for_a_charge(postgres_url: str) -> None:
    name = postgres_url.split("/")[3].split("?")[0]
    run(postgres_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    run(postgres_url, f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    with Ledger.open(postgres_url) as ledger, ledger._store.writing() as page:
        settings = [
            page._connection.exec_driver_sql(f"SHOW {setting}").scalar_one()
            for setting in ("synchronous_commit", "transaction_isolation")
        ]
    assert settings == ["on", "read committed"]


def test_sqlite_waits_for_the_disk(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger, ledger._store.writing() as page:
        pragmas = [
            page._connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("synchronous", "journal_mode")
        ]
    assert pragmas == [2, "wal"]
