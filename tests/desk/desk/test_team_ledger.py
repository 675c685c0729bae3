"""A desk whose ledger is a real PostgreSQL: plan, approve, run, and see its page move. Skipped where there is none."""

from __future__ import annotations

import html
import time
from pathlib import Path
from typing import Any

import pytest

from discreet.desk.desk import Desk
from discreet.ledger import Ledger
from discreet.words.errors import PlanError
from faults_of import about
from postgres_server import postgres, postgres_server, postgres_url

__all__ = ["postgres", "postgres_server", "postgres_url"]

PATIENCE = 90


def led_by(folder: Path, address: str) -> Path:
    settings = folder / "desk.toml"
    settings.write_text(settings.read_text().replace('ledger = "ledger.db"', f'ledger = "{address}"'))
    return folder


def form_of(name: str, epsilon: str) -> dict[str, str]:
    form = {"title": name, "unit-kind": "establishments", "unit-alpha": "0.1", "unit-strength": "strong"}
    form |= {"release-0-name": name, "release-0-kind": "count", "release-0-by": "sector", "release-0-epsilon": epsilon}
    return form | {"formats": "csv", "forms": "basic"}


def submitted(client: Any, name: str, epsilon: str) -> str:
    """Plan a release and send it to review; where that led."""
    answer = client.post("/plans/jobs/new", {**form_of(name, epsilon), "do": "submit"})
    return str(answer.headers["location"])


def words(text: str) -> str:
    return " ".join(html.unescape(text).split())


@pytest.mark.postgres
def test_from_plan_to_a_ledger_on_postgresql(copied: Any, inside: Any, postgres_url: str) -> None:
    client = inside(led_by(copied(), postgres_url))
    assert "The ledger is empty" in client.get("/ledger").text  # a database in which a run will make it
    review = submitted(client, "first", "2")
    assert review.startswith("/review/"), words(client.get(review).text)
    digest = client.get(review).text.split('name="digest" value="')[1].split('"')[0]
    client.post(review, {"verdict": "approved", "digest": digest})
    run = client.post("/runs", {"plan": review.rsplit("/", 1)[1]}).headers["location"]
    deadline = time.monotonic() + PATIENCE
    while (state := client.get(f"/api{run}").json())["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (state["state"], state["last"]) == ("done", "1 released, epsilon=6 is left")

    page = client.get("/ledger").text
    assert '<span class="big">6</span> <span class="quiet">of 8 epsilon left</span>' in page
    assert "intact: 3 entries" in words(client.post("/ledger/verify", {}).text)
    assert client.get("/api/ledger").json()["budgets"][0]["spent"] == {"epsilon": "2"}
    assert "first" in client.get("/releases").text

    dear = form_of("second", "2")
    assert "This plan can be run" in client.post("/plans/jobs/new/estimate", dear).text
    with Ledger.open(postgres_url) as ledger:  # a colleague elsewhere pays from the same budget
        (budget,) = ledger.budgets()
        unit = Desk.open(client.app.state.here.desk.folder).sources["jobs"].unit.unit()
        assert budget.unit == unit.key
        ledger.charge(dataset="jobs", unit=unit, release="elsewhere", loss=type(budget.total)(5))
    assert '<span class="big">1</span>' in client.get("/ledger").text
    assert "epsilon=1 is left" in client.post("/plans/jobs/new/estimate", dear).text  # nothing old is kept
    refused = submitted(client, "second", "2")
    assert refused.endswith("?tried=1") and "epsilon=1 is left" in words(client.get(refused).text)


@pytest.mark.postgres
def test_a_ledger_that_does_not_answer(copied: Any, inside: Any, postgres_url: str) -> None:
    """Pages say so and go on; nothing is sent to review."""
    client = inside(led_by(copied(), postgres_url.replace("ledger_", "nothing_")))
    for path in ("/", "/data", "/plans", "/releases", "/api/ledger"):
        assert client.get(path).status_code == 200, path
    assert 'class="trouble"' in client.get("/ledger").text
    assert client.post("/ledger/verify", {}).status_code == 200
    assert submitted(client, "first", "1").endswith("?tried=1")


@pytest.mark.parametrize(
    "address", ["postgresql://officer:secret@host/ledger", "postgresql://officer@host/ledger?password=secret"]
)
def test_a_password_is_not_in_an_address(copied: Any, address: str) -> None:
    """Every plan holds the ledger's address, and everybody at the desk sees plans."""
    with pytest.raises(PlanError, check=about("ledger")) as refusal:
        Desk.open(led_by(copied(), address))
    assert "secret" not in str(refusal.value)
