"""One charge pays for one draw that anybody learns of: whether a second draw coincides with it is never said.

A door of every kind (`release_doors`, listed from the registries) is asked several times at once for one release. All
draw before one of them publishes, from a source that gives all of them the same noise, or each its own. At most one
value gets out, and everything else, errors, lines and files, is the same in both cases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import discreet as dc
import release_doors
from discreet.ledger import Entry, Ledger, publication, release_once
from discreet.ledger.chain import verify
from discreet.ledger.draws import DrawNumber, Superseded
from discreet.ledger.entries import canonical
from discreet.ledger.lock import copied_memory
from discreet.noise.source import SeededSource, SystemSource
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Workers
from discreet.release.account import Account
from discreet.release.canonical import fingerprints
from discreet.release.offer import Offer
from discreet.tables import query
from discreet.words.errors import DiscreetError, EngineError, PrivacyError
from faults_of import about

HASHES = {"table.parquet": "a" * 64}
OTHERS = {"table.parquet": "b" * 64}
REQUEST = {"dataset": "jobs", "unit": Workers(), "release": "county", "loss": Pure("0.5")}
TOGETHER = {"session.count": 12}
"""How many ask at once; three elsewhere, which takes seconds in place of minutes."""


class Fixed:
    """A source that calls itself private and gives the words of a seed."""

    private = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, n: int) -> Any:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


class Found(BaseException):
    """Stops a door where it has come to its account."""


@pytest.fixture(scope="module")
def offers() -> Callable[[str], Offer[None, Any, Any]]:
    """What a door brings to its account, with everything read."""

    @lru_cache
    def offer(name: str) -> Offer[None, Any, Any]:
        def release(account: Account, offer: Offer[Any, Any, Any], data: Any, *, name: str | None = None) -> Any:
            found.append(offer.at(data))
            raise Found

        found: list[Offer[None, Any, Any]] = []
        with pytest.MonkeyPatch.context() as here, pytest.raises(Found):
            here.setattr(Account, "release", release)
            here.setattr(query, "part", lru_cache(query.part))
            here.setattr("warnings.warn", lambda *told, **how: None)
            release_doors.doors()[name](ledger=None, dataset=None, budget=budget_of(name), name="r")
        return found[0]

    return offer


def budget_of(name: str) -> Any:
    return release_doors.BUDGETS.get(name, Pure(200))


@dataclass
class Told:
    """What processes said that started together, and left."""

    values: int
    errors: list[tuple[type, str, str | None]]
    lines: list[str]
    files: list[str]
    draws: int


def started_together(
    offer: Offer[None, Any, Any], place: Path, budget: Any, *, many: int, way: str, alike: bool
) -> Told:
    """Accounts with a source and a folder each: every one draws before the one before it publishes."""
    place.mkdir()
    errors, values, drawn, ledger = [], [], [], Ledger.in_memory()

    def process(number: int) -> None:
        account = Account(ledger=ledger, dataset="d", unit=offer.guarantee.unit, budget=budget)
        account._source = Fixed(7 if alike else number)

        def draw(reading: Any, source: Any) -> Any:
            value = offer.draw(reading, source)
            drawn.append(canonical(fingerprints(value)))
            if number < many:
                process(number + 1)
            return value

        mine = replace(offer, draw=draw)
        try:
            if way == "value":
                values.append(account.release(mine, None, name="r").value)
            else:
                values.append(account.publish(mine, None, place / str(number) / "r", name="r"))
        except DiscreetError as error:
            errors.append((type(error), str(error), error.about))

    with ledger:
        process(1)
        assert ledger.verify()
        lines = [entry.kind for entry in ledger.entries()]
    files = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    return Told(len(values), errors, lines, files, len(set(drawn)))


def test_every_door_is_listed() -> None:
    for what, there, listed in release_doors.registered():
        assert there == listed, what


@pytest.mark.parametrize("way", ["value", "files"])
@pytest.mark.parametrize("name", release_doors.doors())
def test_who_draws_beside_another_does_not_learn_whether_the_draws_coincide(
    name: str, way: str, offers: Callable[[str], Offer[None, Any, Any]], tmp_path: Path
) -> None:
    offer, budget, many = offers(name), budget_of(name), TOGETHER.get(name, 3)
    same = started_together(offer, tmp_path / "same", budget, many=many, way=way, alike=True)
    other = started_together(offer, tmp_path / "other", budget, many=many, way=way, alike=False)
    assert same.draws == 1 < other.draws, "the sources did not force it"
    assert same.values == other.values == 1
    assert {kind for kind, _, _ in same.errors} == {Superseded} and len(same.errors) == many - 1
    assert len(set(same.errors)) == 1, "what is said depends on who asks"
    assert replace(same, draws=0) == replace(other, draws=0)
    assert same.lines == ["budget", "charge", *["draw"] * (many - 1), "publish"]


@pytest.fixture
def ledger() -> Ledger:
    with Ledger.in_memory() as opened:
        opened.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
        yield opened


def test_only_the_holder_of_the_last_number_publishes(ledger: Ledger) -> None:
    """Before the publication and after it, with the same files and with others: one refusal in the same words."""
    first, second = ledger.charge(**REQUEST), ledger.charge(**REQUEST)
    read = ledger.charged("jobs", "county")
    kept = ledger.entries()[-1].payload["draw"]
    strangers = [first, read, replace(first, draw=DrawNumber("0" * 32)), replace(first, draw=DrawNumber(kept))]
    told, head = set(), ledger.head
    for published in (False, True):
        for stranger in strangers:
            for files in (HASHES, OTHERS):
                with pytest.raises(Superseded, check=about("release")) as refused:
                    ledger.publish(stranger, files=files)
                told.add(str(refused.value))
        assert ledger.head == head
        if not published:
            ledger.publish(second, files=HASHES)
            head = ledger.head
    assert len(told) == 1 and not isinstance(refused.value, PrivacyError), "it would end as a wrong request"
    assert ledger.verify()


def test_the_same_number_may_be_repeated_after_a_lost_answer(ledger: Ledger) -> None:
    entry = ledger.charge(**REQUEST)
    published = ledger.publish(entry, files=HASHES)
    assert ledger.publish(entry, files=HASHES) == published
    with pytest.raises(PrivacyError, check=about("files")):
        ledger.publish(entry, files=OTHERS)
    assert [line.kind for line in ledger.entries()] == ["budget", "charge", "publish"]


def test_a_number_is_nobody_elses_before_it_is_published(ledger: Ledger) -> None:
    entries = [ledger.charge(**REQUEST) for _ in range(3)]
    numbers = [entry.draw.number for entry in entries]
    assert len({number[:8] for number in numbers}) == 3 and all(len(number) == 32 for number in numbers)
    lines = json.dumps([line.to_row() for line in ledger.entries()]) + repr(entries) + str(entries[0].to_dict())
    assert not any(number in lines for number in numbers)
    assert ledger.publish(entries[-1], files=HASHES).payload["draw"] == numbers[-1]


def test_numbers_are_of_one_release_each(ledger: Ledger) -> None:
    """What is resumed under another name voids nothing here."""
    first = ledger.charge(**REQUEST)
    for _ in range(2):
        ledger.charge(**REQUEST | {"release": "state"})
    assert ledger.publish(first, files=HASHES).payload["charge"] == first.seq


def forged(
    rows: list[dict[str, Any]],
    *,
    seq: int = 0,
    then: tuple[str, int] = ("", 0),
    price: Pure | None = None,
    **facts: Any,
) -> list[Any]:
    """The lines with other facts in one payload, or a price, or with a copy of a line at the end, sealed again."""
    lines = [Entry.from_row(row) for row in rows]
    lines += [replace(lines[then[1] - 1], kind=then[0] or lines[then[1] - 1].kind)] if then[1] else []
    head, found = lines[0].head._replace(seq=0, hash=lines[0].previous), []
    for line in lines:
        payload = dict(line.payload) | (facts if line.seq == seq or (then[1] and line is lines[-1]) else {})
        kept = {name: getattr(line, name) for name in ("kind", "dataset", "unit", "release", "loss", "spent_after")}
        kept |= {"loss": price} if price is not None and line.seq == seq else {}
        found.append(Entry.after(head, payload={k: v for k, v in payload.items() if v is not None}, **kept))
        head = found[-1].head
    return [entry.to_row() for entry in found]


def test_the_chain_knows_which_draw_was_the_last(ledger: Ledger) -> None:
    first, second = ledger.charge(**REQUEST), ledger.charge(**REQUEST)
    ledger.publish(second, files=HASHES)
    rows = [entry.to_row() for entry in ledger.entries()]
    assert verify(forged(rows)).intact
    for seq, changed in {
        4: {"draw": first.draw.number},
        3: {"draw": "0" * 64},
    }.items():
        assert verify(forged(rows, seq=seq, **changed)).seq == 4
    assert verify(forged(rows, seq=4, draw=None)).seq == 4, "a number is left out"
    assert verify(forged(rows, seq=3, draw="")).seq == 3
    assert verify(forged(rows, seq=3, charge=1)).seq == 3
    assert verify(forged(rows, seq=3, charge=[])).seq == 3
    assert verify(forged(rows, seq=3, price=Pure("0.5"))).seq == 3, "a charge has one price"
    assert verify(forged(rows, then=("draw", 3))).seq == 5, "it is drawn again after it was published"


def with_lines_of_an_earlier_version(where: Path, *, published: dict[str, str] | None) -> None:
    """A ledger whose lines have no draw numbers, as versions before them wrote it."""
    with Ledger.open(where) as book, book._store.writing() as page:
        stamp = {"at": "2026-11-16T11:04:01+00:00", "by": "anna", "version": "0.1.0"}
        account = {"dataset": "jobs", "unit": "workers"}
        page.append(
            kind="budget", release=None, loss=Pure(1), spent_after=Pure(0), payload=stamp | {"protects": "a"}, **account
        )
        paid = {"release": "county", "spent_after": Pure("0.5"), **account}
        charge = page.append(kind="charge", loss=Pure("0.5"), payload=stamp | {"details": {}}, **paid)
        if published is not None:
            page.append(kind="publish", loss=None, payload=stamp | {"charge": charge.seq, "files": published}, **paid)


def write(entry: Entry, staging: Path) -> None:
    (staging / "release.json").write_text(json.dumps({"ledger": entry.reference}))
    (staging / "table.csv").write_bytes(os.urandom(8))


def never(entry: Entry, staging: Path) -> None:
    raise AssertionError("noise was drawn again")


def test_a_charge_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Paid before numbers were known, and not published: who resumes it gets one, and nobody pays again."""
    with_lines_of_an_earlier_version(tmp_path / "ledger.db", published=None)
    with Ledger.open(tmp_path / "ledger.db") as book:
        old = book.charged("jobs", "county")
        with pytest.raises(Superseded):
            book.publish(old, files=HASHES)
        published = release_once(book, folder=tmp_path / "county", draw=write, **REQUEST)
        assert [line.kind for line in book.entries()] == ["budget", "charge", "draw", "publish"]
        assert book.verify() and book.spent("jobs", Workers()) == Pure("0.5")
        assert published.payload["files"] == publication.fingerprints(tmp_path / "county")


def test_a_release_of_an_earlier_version_is_found_where_a_crash_left_it(tmp_path: Path) -> None:
    """Published without a number and not yet shown: the staged draw is known by its files, as it was then."""
    staging = tmp_path / f"{publication._prefix('jobs', 'county')}k3j2x9aa"
    staging.mkdir()
    (staging / "table.csv").write_text("place,count\n01,7\n")
    with_lines_of_an_earlier_version(tmp_path / "ledger.db", published=publication.fingerprints(staging))
    with Ledger.open(tmp_path / "ledger.db") as book:
        assert book.verify()
        assert publication.is_kept(book.published("jobs", "county"), tmp_path / "county")
        release_once(book, folder=tmp_path / "county", draw=never, **REQUEST)
        assert [path.name for path in (tmp_path / "county").iterdir()] == ["table.csv"]
        with pytest.raises(PrivacyError, check=about("release")):
            book.charge(**REQUEST)


@pytest.mark.parametrize("alike", [True, False])
def test_a_draw_that_a_dead_process_left_is_not_compared(
    ledger: Ledger, tmp_path: Path, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed on one machine, released on another: the first draw is dropped, also where its files are the same."""

    def draw(entry: Entry, staging: Path) -> None:
        (staging / "table.csv").write_text("7" if alike or staging.parent.name == "here" else "8")

    def dead(*_: object, **__: object) -> None:
        raise Found

    with monkeypatch.context() as killed, pytest.raises(Found):
        killed.setattr(publication, "_to_disk", dead)
        killed.setattr(publication.shutil, "rmtree", dead)
        release_once(ledger, folder=tmp_path / "here" / "county", draw=draw, **REQUEST)
    assert len(list((tmp_path / "here").iterdir())) == 1
    published = release_once(ledger, folder=tmp_path / "elsewhere" / "county", draw=draw, **REQUEST)
    assert not publication.is_kept(published, tmp_path / "here" / "county")
    with pytest.raises(PrivacyError, check=about("release")):
        release_once(ledger, folder=tmp_path / "here" / "county", draw=never, **REQUEST)
    assert list((tmp_path / "here").iterdir()) == []


def test_twelve_threads_at_once_on_one_file(tmp_path: Path) -> None:
    """All wait until everybody has drawn; then they publish in any order. One does, whoever is asked first."""
    ready, values, errors = Barrier(12, timeout=60), [], []
    promise = dc.Guarantee(AnyRow(), Pure(1))

    def drawn(reading: None, source: Any) -> int:
        ready.wait()
        return 7

    def process() -> None:
        account = Account.open(tmp_path / "ledger.db", dataset="d", unit=AnyRow(), budget=Pure(2))
        offer: Offer[None, None, int] = Offer(promise, {}, dict, lambda data: None, drawn)  # type: ignore[arg-type]
        try:
            values.append(account.release(offer, None, name="r").value)
        except DiscreetError as error:
            errors.append((type(error), str(error)))

    threads = [Thread(target=process) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert values == [7] and len(errors) == 11 and len(set(errors)) == 1 and errors[0][0] is Superseded
    with Ledger.open(tmp_path / "ledger.db") as book:
        assert book.verify() and book.spent("d", AnyRow()) == Pure(1)


def in_a_copy(work: Callable[[], Any]) -> str:
    """What a forked copy of this process answers."""
    read, told = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__} {getattr(error, 'about', '')}"
            answer += " copied" * (str(error) == str(copied_memory()))
        os.write(told, answer.encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def test_a_copy_of_a_process_has_no_budget_in_memory() -> None:
    jobs = release_doors.jobs()
    session = dc.Session(jobs, unit=release_doors.STRONG, budget=4)
    table = session.count("place")
    for work in (
        lambda: table.release(epsilon=4).table,
        lambda: table.check(epsilon=4),
        lambda: session.remaining,
        session.account.ledger.entries,
    ):
        assert in_a_copy(work) == "LedgerError ledger copied"
    assert session.remaining == Pure(4)
    table.release(epsilon=4)


def test_a_copy_of_a_process_shares_the_budget_of_a_file(tmp_path: Path) -> None:
    account = Account.open(tmp_path / "ledger.db", dataset="d", unit=AnyRow(), budget=Pure(2))
    promise = dc.Guarantee(AnyRow(), Pure(1))
    offer: Offer[None, None, Any] = Offer(promise, {}, dict, lambda data: None, lambda _, source: source.words(2))  # type: ignore[arg-type]
    one = in_a_copy(lambda: account.release(offer, None, name="one").value)
    other = str(account.release(offer, None, name="other").value)
    assert one != other and one.startswith("[")
    assert in_a_copy(lambda: account.release(offer, None)) == "BudgetExceeded epsilon"
    assert account.ledger.verify() and not account.remaining


def test_a_copy_of_a_process_does_not_hold_its_draw(tmp_path: Path) -> None:
    """Else as many copies as one likes would draw for one charge and compare."""
    with Ledger.open(tmp_path / "ledger.db") as book:
        book.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
        entry = book.charge(**REQUEST)
        assert in_a_copy(lambda: book.publish(entry, files=HASHES)) == "Superseded release"
        assert in_a_copy(lambda: book.published("jobs", "county")) == "None"
        book.publish(entry, files=HASHES)


@pytest.mark.parametrize(
    "name", ["session.count", "mechanism ladder", "mechanism weak-unions", "posterior_quantile", "release_mixed"]
)
def test_copies_of_a_process_draw_other_noise(name: str, offers: Callable[[str], Offer[None, Any, Any]]) -> None:
    """Nothing keeps random bits for later, neither the source nor what draws from it."""
    offer, source = offers(name), SystemSource()
    reading = offer.read(None)

    def draw() -> list[str]:
        return [str(fingerprints(offer.draw(reading, source))) for _ in range(4)]

    draw()
    assert len({str(draw()), in_a_copy(draw), in_a_copy(draw)}) == 3


def test_a_copy_of_a_process_has_no_seeded_source() -> None:
    seeded, source = SeededSource(1), SystemSource()
    assert in_a_copy(lambda: seeded.words(1)) == "PrivacyError seed"
    assert in_a_copy(lambda: source.words(2)) != str(source.words(2))
    assert len(seeded.words(1)) == 1


def test_threads_that_share_a_source_wait_for_each_other() -> None:
    """DuckDB refuses a call on a connection that is busy; every way to a release reads in turn."""
    ready, errors = Barrier(6, timeout=60), []
    shared = dc.Session(release_doors.jobs(), unit=release_doors.STRONG, budget=1000)

    def work(number: int) -> None:
        ready.wait()
        try:
            for _ in range(4):
                shared.count(["place", "sex"][: 1 + number % 2]).release(epsilon=1)
                release_doors.jobs()
                release_doors.doors()["posterior_probability"](ledger=None, dataset=None, budget=None)
        except BaseException as error:
            errors.append(repr(error))

    threads = [Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == [] and shared.remaining == Pure(1000 - 24)


def test_a_connection_that_a_users_own_thread_uses_is_told_in_our_words() -> None:
    """Nothing is charged: all is read before."""
    session = dc.Session(release_doors.jobs(), unit=release_doors.STRONG, budget=4)

    class ResourceInUseException(Exception):
        pass

    def busy(*given: object, **named: object) -> None:
        raise ResourceInUseException("connection is busy with another call")

    with pytest.MonkeyPatch.context() as here, pytest.raises(EngineError, check=about("data")):
        here.setattr("discreet.tables.cells.cell_statistics", busy)
        session.count("place").release(epsilon=1)
    assert session.remaining == Pure(4)
