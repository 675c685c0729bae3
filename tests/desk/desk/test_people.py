"""Several people at one desk, in real browsers: log-in, roles, the second person, two who race for the last budget."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.ledger import Ledger

pytestmark = pytest.mark.full_size  # without a browser: test_leaving.py, tests/unit/desk/test_security.py, tests/ledger
PEOPLE = {"anna": "analyst", "ben": "analyst", "rita": "reviewer", "zoe": "administrator"}


@pytest.fixture(scope="module")
def served(copied: Any, serve: Any, password: str) -> Any:
    from discreet.desk.accounts import add_account
    from discreet.desk.desk import Desk
    from discreet.desk.store import DeskStore

    folder = copied("accounts = true\nsecond_person = true")
    store = DeskStore(Desk.open(folder).database)
    for name, role in PEOPLE.items():
        add_account(store, name, role, password, by="(test)")
    store.close()
    return serve(folder)


@pytest.fixture
def come_in(served: Any, visit: Any, password: str) -> Any:
    def log_in(name: str) -> Any:
        page = visit(f"{served.base}/plans").page
        assert page.url.endswith("/login?next=/plans")
        page.fill("#name", name)
        page.fill("#password", password)
        page.click("button:text-is('Log in')")
        page.wait_for_url("**/plans")
        return page

    return log_in


def test_a_race_for_the_last_of_a_budget(served: Any, come_in: Any) -> None:
    """Each of two plans fits the budget, both do not: exactly one run succeeds, whatever the order."""
    anna, ben, rita = (come_in(name) for name in ("anna", "ben", "rita"))
    for person, name in ((anna, "of-anna"), (ben, "of-ben")):
        person.goto(f"{served.base}/plans/new?source=jobs")
        person.fill("#title", f"The plan {name}")
        person.fill("#release-0-name", name)
        person.fill("#release-0-epsilon", "5")
        person.click("text=Send to review")
        person.wait_for_selector("#promise, .trouble")
        assert "/review/" in person.url, person.inner_text("main")
        assert (
            person.locator("text=A reviewer decides").count() + person.locator("text=You wrote at this plan").count()
            == 1
        )
        rita.goto(person.url)
        rita.click("text=Approve")
        person.reload()
    for person in (anna, ben):
        person.click("text=Run it", no_wait_after=True)
    outcomes = []
    for person in (anna, ben):
        person.wait_for_selector(".state.done, .state.failed")
        outcomes.append(person.inner_text(".head ~ .actions .state"))
    assert sorted(outcomes) == ["done", "failed"]
    loser = (anna, ben)[outcomes.index("failed")]
    assert "Nothing was" in loser.inner_text(".trouble") or "epsilon=3" in loser.inner_text(".trouble")
    with Ledger.open(served.folder / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        paid = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert [float(entry.loss.epsilon) for entry in paid] == [5.0]
        assert paid[0].payload["by"] == ("anna", "ben")[outcomes.index("done")]


def test_an_administrator_ends_somebodys_access(served: Any, come_in: Any, password: str) -> None:
    """In two steps, on a narrow screen too; whoever is out is sent to the log-in at the next click."""
    ben, zoe = come_in("ben"), come_in("zoe")
    zoe.set_viewport_size({"width": 390, "height": 844})
    zoe.click("a:text-is('People')")
    zoe.wait_for_url("**/people")  # loaded, with its style
    name, first = zoe.locator(".brand span").bounding_box(), zoe.locator(".who a").first.bounding_box()
    assert name["x"] + name["width"] <= first["x"]
    assert not zoe.is_visible("button:text-is('Disable ben')")
    zoe.click("li:has-text('ben') summary")
    zoe.click("button:text-is('Disable ben')")
    zoe.wait_for_selector("text=No longer here")
    ben.click("nav >> text=Ledger")
    ben.wait_for_url("**/login?next=/ledger")
    ben.fill("#name", "ben")
    ben.fill("#password", password)
    ben.click("button:text-is('Log in')")
    assert ben.inner_text("[role=alert]") == "The name or the password is wrong."


def test_a_wrong_password(served: Any, visit: Any) -> None:
    page = visit(f"{served.base}/login").page
    for name in ("zoe", "nobody"):
        page.fill("#name", name)
        page.fill("#password", "not the password")
        page.click("button:text-is('Log in')")
        assert page.inner_text("[role=alert]") == "The name or the password is wrong."
    page.goto(f"{served.base}/ledger")
    assert page.url.endswith("/login?next=/ledger")
