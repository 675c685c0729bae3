"""The JSON interface as it is described, asked by schemathesis: whatever is sent, no fault of the desk's own."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

ORIGIN = "http://127.0.0.1"
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


@pytest.fixture
def headers(app: Any) -> dict[str, str]:
    """Of a person who is in, on a desk that has a plan."""
    from discreet.desk import planning
    from discreet.desk.accounts import Person, local_name, open_session, person_of
    from discreet.desk.drafts import first_draft
    from discreet.desk.security import COOKIE

    here = app.state.here
    me = Person(local_name(), "local", "")
    planning.save(here.desk, here.store, first_draft(here.desk, here.desk.sources["jobs"]), me)
    token = open_session(here.store, me.name, action="tested")
    person = person_of(here.store, token, local=True)
    assert person is not None
    return {"cookie": f"{COOKIE}={token}", "x-csrf": person.csrf, "host": "127.0.0.1"}


@pytest.fixture
def described(app: Any, headers: dict[str, str]) -> Any:
    return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=headers)


interface = schemathesis.pytest.from_fixture("described")


ASKED = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@interface.parametrize()
@settings(ASKED, max_examples=3)
def test_no_request_breaks_the_desk(case: schemathesis.Case, headers: dict[str, str]) -> None:
    ask(case, headers)


@pytest.mark.full_size
@interface.parametrize()
@settings(ASKED, max_examples=100)
def test_none_of_many_requests_breaks_the_desk(case: schemathesis.Case, headers: dict[str, str]) -> None:
    ask(case, headers)


def ask(case: schemathesis.Case, headers: dict[str, str]) -> None:
    answer = case.call(base_url=ORIGIN, headers=headers)
    assert answer.status_code < 500
    case.validate_response(answer, checks=CHECKS)


@pytest.mark.parametrize(
    "epsilon",
    ["1e400", "NaN", "-1e400", '"1/0"', '"nan"', "1e308", "true", "[[]]", "99999999999999999999999"],
)
def test_odd_amounts_are_refused(client: Any, csrf: Any, epsilon: str) -> None:
    body = '{"source":"jobs","unit":{"kind":"workers"},"release":[{"name":"a","kind":"count","by":[],"epsilon":%s}]}'
    sent = {"content-type": "application/json", "x-csrf": csrf(client)}
    answer = client.post("/api/estimate", content=body % epsilon, headers=sent)
    assert answer.status_code in (200, 400, 422)
    assert answer.status_code != 200 or not answer.json()["can_run"]
