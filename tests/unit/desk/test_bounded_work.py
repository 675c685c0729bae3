"""Work without a bound: nothing that the desk computes can hold it, and nobody's work takes all of it.

Every address is classified here. One that starts heavy work answers 429 once its person has too much under way; all
others start none. A new address has to be put into one of the two.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.desk import calculators, planning, sandbox
from discreet.desk.accounts import Person
from discreet.desk.calculators import Calculators, TooLong
from discreet.desk.drafts import first_draft
from discreet.desk.estimates import judge
from discreet.desk.security import SENDING
from discreet.desk.turns import PAGES, TooMuch, Turns
from discreet.words.errors import DataError
from faults_of import about

pytestmark = pytest.mark.walk  # work that has to last until it is ended

ORIGIN = {"origin": "http://127.0.0.1"}
TABLE = "y,x,g\n" + "".join(f"{i % 7},{i % 3},g{i % 5}\n" for i in range(60))
HEAVY: dict[str, dict[str, Any]] = {
    "GET /plans/new": {"path": "/plans/new?source=jobs"},
    "GET /plans/{name}": {"path": "/plans/{plan}"},
    "POST /plans/{source}/{name}/estimate": {"path": "/plans/jobs/new/estimate", "data": {}},
    "POST /plans/{source}/{name}": {"path": "/plans/jobs/new", "data": {"do": "submit"}},
    "GET /review/{name}": {"path": "/review/{plan}"},
    "GET /utility": {"path": "/utility"},
    "GET /utility/picture": {"path": "/utility/picture?source=jobs"},
    "POST /api/estimate": {
        "path": "/api/estimate",
        "json": {"source": "jobs", "unit": {"kind": "workers"}, "release": []},
    },
    "POST /data/new": {"path": "/data/new", "data": {"do": "read"}, "files": {"upload": ("a.csv", TABLE)}},
    "POST /models": {"path": "/models", "data": {"formula": "y ~ x + (1 | g)"}, "files": {"data": ("a.csv", TABLE)}},
    "POST /changes": {"path": "/changes", "data": {}, "files": {"panel": ("a.csv", TABLE)}},
    "GET /changes": {"path": "/changes?before=a/b&after=c/d"},
    "GET /changes/{name}": {"path": "/changes/x"},
    "GET /changes/{name}/{file}": {"path": "/changes/x/report.html"},
    "GET /models/{name}": {"path": "/models/x"},
    "GET /releases/{plan}/{name}": {"path": "/releases/x/y"},
    "POST /ledger/verify": {"path": "/ledger/verify", "data": {}},
    "GET /log": {"path": "/log"},
}
"""What starts a computation, or reads a whole book, table or report, with a request that does."""

RUNS = {"POST /runs", "POST /runs/{name}/resume"}
"""What starts a worker of its own, of which desk.toml says how many there may be (`runs_at_once`)."""

LIGHT = {
    "GET /",
    "GET /data",
    "GET /data/new",
    "GET /plans",
    "GET /plans/{name}/plan.toml",
    "GET /review",
    "POST /review/{name}",
    "GET /runs",
    "GET /runs/{name}",
    "GET /runs/{name}/events",
    "GET /releases",
    "GET /releases/{plan}/{name}/files/{file:path}",
    "GET /papers/{plan}/{kind}",
    "GET /ledger",
    "GET /models",
    "POST /budgets",
    "POST /budgets/{number}",
    "GET /people",
    "POST /people/{name}/disable",
    "POST /people/{name}/enable",
    "POST /people/{name}/remove",
    "GET /enter",
    "GET /login",
    "POST /login",
    "POST /logout",
    "GET /api/sources",
    "GET /api/plans",
    "GET /api/plans/{name}",
    "GET /api/runs",
    "GET /api/runs/{name}",
    "GET /api/releases",
    "GET /api/releases/{plan}/{name}",
    "GET /api/ledger",
    "GET /api/openapi.json",
    "HEAD /api/openapi.json",
    "GET /static",
}
"""What reads what is there, or writes a line."""


@pytest.fixture
def full() -> Iterator[Callable[[str], None]]:
    """Fill a person's turns at everything, so that whatever asks for one is refused."""
    filled: list[tuple[Turns, int, int]] = []

    def fill(_who: str) -> None:
        for turns in (calculators.shared.turns, sandbox.TURNS, PAGES):
            filled.append((turns, turns.each, turns.waiting))
            turns.each = turns.waiting = 0

    yield fill
    for turns, each, waiting in filled:
        turns.each, turns.waiting = each, waiting


def addresses(app: Any) -> set[str]:
    """Every address of an application, with its methods."""
    found = set()
    for route in app.routes:
        included = getattr(route, "original_router", None)
        for each in [route] if included is None else included.routes:
            found |= {f"{method} {each.path}" for method in getattr(each, "methods", None) or ("GET",)}
    return found


def test_every_address_is_classified(app: Any) -> None:
    assert addresses(app) - {*HEAVY, *RUNS, *LIGHT} == set()
    assert {*HEAVY, *RUNS, *LIGHT} - addresses(app) == set()


def test_heavy_work_has_a_limit_for_each_person(client: Any, csrf: Any, full: Any) -> None:
    here, token = client.app.state.here, csrf(client)
    person = Person("(test)", "local", "")
    draft = first_draft(here.desk, here.desk.sources["jobs"])
    plan = planning.save(here.desk, here.store, draft, person)
    calculators.shared.kept.clear()
    full("")
    for address, asked in HEAVY.items():
        more = {key: value for key, value in asked.items() if key != "path"}
        if "data" in more:
            more["data"] = {"csrf": token, **more["data"]}
        path = asked["path"].format(plan=plan)
        answer = client.request(address.split()[0], path, headers=ORIGIN | {"x-csrf": token}, **more)
        assert answer.status_code == 429, address
        assert "Try again when one ends" in answer.text and int(answer.headers["retry-after"]) > 0


def test_light_work_starts_none(client: Any, csrf: Any, full: Any) -> None:
    token = csrf(client)
    full("")
    for address in sorted(LIGHT - {"POST /logout", "GET /runs/{name}/events"}):
        method, path = address.split()
        for name in ("{name}", "{plan}", "{kind}", "{file:path}"):
            path = path.replace(name, "x")
        body = {"data": {"csrf": token}} if method == "POST" else {}
        assert client.request(method, path, headers=ORIGIN, **body).status_code != 429, address


def test_one_person_leaves_room_for_others() -> None:
    """The first asks for a hundred; the second is next."""
    turns, order = Turns("things", at_once=2, each=1, waiting=99), []

    async def work(who: str) -> None:
        async with turns.of(who):
            order.append(who)
            assert turns.working[who] == 1 and turns.working.total() <= 2
            await asyncio.sleep(0)

    async def both() -> None:
        many = [asyncio.create_task(work("anna")) for _ in range(100)]
        await asyncio.sleep(0)
        with pytest.raises(TooMuch, check=about(None, naming=("100 ",))):
            async with turns.of("anna"):
                pass
        await work("ben")
        assert order.count("anna") <= 4
        cancelled = many.pop()
        cancelled.cancel()
        await asyncio.gather(*many)

    asyncio.run(both())
    assert order.count("anna") == 99 and not turns.line and not turns.working


@pytest.fixture
def pool() -> Iterator[Calculators]:
    pool = Calculators()
    yield pool
    pool.close()
    pool.threads.shutdown()


def test_what_takes_too_long_is_ended(pool: Calculators) -> None:
    async def asked() -> tuple[set[int], int]:
        assert await pool.result("anna", abs, -1) == 1
        before = {each.process.pid for each in pool.every}
        with pytest.raises(TooLong, check=about(None, naming=("0.2 seconds",))):
            await pool.result("anna", time.sleep, 600, seconds=0.2)
        return before, await pool.result("anna", abs, -2)

    before, after = asyncio.run(asked())
    assert after == 2
    for pid in before:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_nobody_waits_for_anothers_endless_work(pool: Calculators) -> None:
    async def asked() -> int:
        endless = [asyncio.create_task(pool.result("anna", time.sleep, 600)) for _ in range(5)]
        await asyncio.sleep(0)
        other = await pool.result("ben", abs, -3)
        assert not any(each.done() for each in endless)
        for each in endless:
            each.cancel()
        pool.close()
        await asyncio.gather(*endless, return_exceptions=True)
        return int(other)

    assert asyncio.run(asked()) == 3


def test_what_is_asked_twice_is_computed_once(pool: Calculators) -> None:
    async def asked() -> list[int]:
        return await asyncio.gather(*(pool.result("anna", os.getpid, key="pid") for _ in range(60)))

    found = asyncio.run(asked())
    assert len(found) == 60 and len(set(found)) == 1 and not pool.pending
    assert asyncio.run(pool.result("ben", time.sleep, 600, key="pid")) == found[0]


def test_nobody_waits_in_anothers_line_for_the_same(pool: Calculators) -> None:
    async def asked() -> int:
        endless = asyncio.create_task(pool.result("anna", time.sleep, 600))
        await asyncio.sleep(0)
        waits = asyncio.create_task(pool.result("anna", abs, -3, key="same"))
        await asyncio.sleep(0)
        other = await asyncio.wait_for(pool.result("ben", abs, -3, key="same"), 20)
        assert not endless.done() and not waits.done()
        pool.close()
        await asyncio.gather(endless, waits, return_exceptions=True)
        return int(other)

    assert asyncio.run(asked()) == 3


def test_what_is_kept_is_bounded_in_bytes(pool: Calculators, monkeypatch: Any) -> None:
    monkeypatch.setattr(calculators, "KEPT_BYTES", 1_000_000)
    for i in range(8):
        assert len(asyncio.run(pool.result("anna", bytes, 300_000, key=i))) == 300_000
    assert list(pool.kept) == [5, 6, 7]
    assert len(asyncio.run(pool.result("anna", bytes, 2_000_000, key="large"))) == 2_000_000
    assert "large" not in pool.kept


@pytest.mark.parametrize("page", ["plans", "review"])
def test_a_draft_is_parsed_beside_the_loop(client: Any, csrf: Any, monkeypatch: Any, page: str) -> None:
    here, readers = client.app.state.here, []
    me = Person("(me)", "local", csrf(client))
    name = planning.save(here.desk, here.store, first_draft(here.desk, here.desk.sources["jobs"]), me)
    read = planning.Draft.model_validate_json

    def watched(text: str) -> Any:
        readers.append(threading.current_thread())
        return read(text)

    monkeypatch.setattr(planning, "Draft", SimpleNamespace(model_validate_json=watched))
    assert client.get(f"/{page}/{name}").status_code == 200
    assert readers and threading.main_thread() not in readers


def test_a_formula_is_read_in_turn_and_beside_the_loop(client: Any, csrf: Any, monkeypatch: Any) -> None:
    readers, token = [], csrf(client)

    def read(*_: Any, **__: Any) -> Any:
        readers.append((threading.current_thread(), sandbox.TURNS.working.total()))
        raise DataError("It is none.")

    monkeypatch.setattr("discreet.desk.pages.models.read_formula", read)
    assert client.post("/models", data={"csrf": token, "formula": "y ~"}, headers=ORIGIN).status_code == 409
    ((reader, working),) = readers
    assert reader is not threading.main_thread() and working == 1


def test_a_long_filter_is_quick(make: Any) -> None:
    """By the time of this process; ten seconds before, of which each value took its part."""
    desk = make()
    draft = first_draft(desk, desk.sources["jobs"])

    def seconds(values: int) -> float:
        draft.release[0]["where"] = {"place": [f"v{i}" for i in range(values)]}
        start = time.process_time()
        assert judge(desk, draft, "x").found is not None
        return time.process_time() - start

    seconds(10)
    assert seconds(20_000) < 3


def test_many_fits_of_one_person_leave_the_desk_to_others(staffed: Any, csrf: Any, monkeypatch: Any) -> None:
    """More than the desk has threads, none of which ends before the reviewer has a page."""
    anna, rita = staffed("anna")[0], staffed("rita")[0]
    token, stop, most = csrf(anna), threading.Event(), [0, 0]

    def endless(*_: Any, **__: Any) -> Any:
        most[0] += 1
        most[1] = max(most)
        stop.wait(60)
        most[0] -= 1
        raise DataError("It was ended.")

    monkeypatch.setattr("discreet.desk.pages.models.confined", endless)
    asked: dict[str, Any] = {"data": {"csrf": token, "formula": "y ~ x"}, "files": {"data": ("a.csv", TABLE)}}

    async def all_at_once() -> tuple[list[int], int]:
        def client(who: Any) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(who.app)
            return httpx.AsyncClient(transport=transport, base_url=ORIGIN["origin"], cookies=who.cookies)

        async with client(anna) as analyst, client(rita) as reviewer:
            fits = [asyncio.create_task(analyst.post("/models", headers=ORIGIN, **asked)) for _ in range(45)]
            while not most[0]:
                await asyncio.sleep(0.01)
            page = await asyncio.wait_for(reviewer.get("/review"), 50)
            stop.set()
            return [answer.status_code for answer in await asyncio.gather(*fits)], page.status_code

    fits, page = asyncio.run(all_at_once())
    assert page == 200 and most[1] == 1
    assert fits.count(429) == 45 - fits.count(409) and fits.count(409) == 1 + sandbox.TURNS.waiting


def test_forms_of_one_person_at_once_are_counted(client: Any, csrf: Any, monkeypatch: Any) -> None:
    token, held = csrf(client), []

    async def waiting(*_: Any, **__: Any) -> Any:
        held.append(1)
        await asyncio.sleep(0.2)
        raise DataError("It was ended.")

    monkeypatch.setattr("discreet.desk.pages.models.in_turn", waiting)

    async def sent() -> list[int]:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN["origin"], cookies=client.cookies) as one:
            form = {"csrf": token, "formula": "y ~ x"}
            asked = (one.post("/models", data=form, headers=ORIGIN) for _ in range(SENDING + 6))
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    found = asyncio.run(sent())
    assert (found.count(409), found.count(429), len(held)) == (SENDING, 6, SENDING)
    assert client.post("/models", data={"csrf": token, "formula": "y ~ x"}, headers=ORIGIN).status_code == 409


@pytest.fixture(scope="module")
def swelling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file of some kilobytes with 80 million values in it."""
    path = tmp_path_factory.mktemp("swelling") / "panel.parquet"
    rows = 20_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), pa.array([1.5]))
    table = pa.table(dict.fromkeys(("series", "t", "value", "more"), column))
    pq.write_table(table, path, row_group_size=rows)
    assert path.stat().st_size < 500_000
    return path


def test_a_file_that_swells_is_refused_by_its_head(swelling: Path) -> None:
    arguments = {"panel": str(swelling), "forecasts": None, "options": {"horizon": 1}}
    with pytest.raises(DataError, check=about(None, naming=("20,000,000 rows", "30,000,000 values"))):
        sandbox.confined("exceptions", arguments)


def test_a_file_that_swells_ends_its_own_process(swelling: Path) -> None:
    """Whatever its head says: the memory that can be written to is bounded."""
    inside = "import sys; from discreet.desk import sandbox as c; c._not_too_many = c.tether.hold = lambda _: None; "
    inside += "sys.argv.append('0'); c.main()"
    measured = f"import subprocess, resource; subprocess.run([{sys.executable!r}, '-c', {inside!r}], check=False); "
    measured += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    asked = {"panel": str(swelling), "forecasts": None, "options": {"horizon": 1}}
    sent = json.dumps({"task": "exceptions", "arguments": asked})
    done = subprocess.run([sys.executable, "-c", measured], input=sent, capture_output=True, text=True, check=True)
    assert '"result"' not in done.stdout
    assert 1024 * int(done.stdout.splitlines()[-1]) < 1.2 * sandbox.MEMORY == 1.2 * 2**30


SLOW = "import time\ndef forever(*_):\n    time.sleep(600)\n"
SERVER = """
import slow
from discreet.desk import calculators, estimates
estimates._judged = slow.forever
calculators.Calculators.result.__kwdefaults__["seconds"] = 600  # so that its own limit does not end it
from discreet.cli import main
main()
"""


def test_a_desk_that_computes_can_be_closed(make: Any, tmp_path: Path) -> None:
    """SIGTERM while estimates without end are asked for: the server and its processes are gone."""
    folder = make().folder
    (tmp_path / "slow.py").write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", SERVER, "serve", str(folder), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            link = next(line.split()[1] for line in server.stdout if line.startswith("Open "))
            with httpx.Client(trust_env=False, timeout=60) as client:
                for _ in range(200):
                    try:
                        client.get(link)
                        break
                    except httpx.ConnectError:
                        time.sleep(0.1)
                base = link.split("/enter")[0]
                with pytest.raises(httpx.ReadTimeout):
                    client.get(f"{base}/plans/new?source=jobs", timeout=1)
                assert client.get(f"{base}/ledger").status_code == 200  # others are answered meanwhile
                children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) is not None
        finally:
            server.kill()
    for _ in range(100):
        if not any(Path(f"/proc/{child}").exists() for child in children):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{child}").exists() for child in children)
