"""Advice at the desk: a button of the form, the best split beside the estimate, and nothing for odd requests."""

from __future__ import annotations

import re
from typing import Any

import pytest

FORM = {
    "title": "t",
    "unit-kind": "establishments",
    "unit-alpha": "0.1",
    "unit-strength": "strong",
    "release-0-name": "both",
    "release-0-kind": "counts",
    "release-0-tables": "place, sector\nplace",
    "release-0-epsilon": "2",
    "formats": "csv",
    "forms": "basic",
}


def csrf(client: Any) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/plans/new?source=jobs").text)
    assert found is not None
    return found[1]


def pressed(client: Any, button: str, **more: str) -> str:
    answer = client.post("/plans/jobs/new", data={**FORM, **more, "do": button, "csrf": csrf(client)})
    assert answer.status_code == 200
    return str(answer.text)


@pytest.mark.parametrize("measure", ["absolute", "relative"])
def test_a_button_asks_for_advice(client: Any, measure: str) -> None:
    text = pressed(client, f"advise-{measure}")
    assert (
        f"for the least {measure} error" in text and "Ways to divide epsilon" in text and "Equal shares for all" in text
    )
    assert 'id="advice-0"' not in pressed(client, "estimate")


def test_what_has_no_public_sizes_says_so(client: Any) -> None:
    text = pressed(client, "advise-absolute", **{"release-0-tables": "place, sector, sex\nsex"})
    assert 'id="advice-0"' in text  # sizes by place and sector are those of workers' tables, too
    text = pressed(client, "advise-absolute", **{"release-0-epsilon": "0.001"})
    assert "keep" in text and 'id="advice-0"' in text and "No advice." in text  # nor can any other split be run


def test_advice_comes_where_equal_shares_are_not_possible_too(client: Any) -> None:
    asked = {"release-0-tables": "place, sector, sex\nplace", "release-0-epsilon": "0.3"}
    text = pressed(client, "advise-absolute", **asked)
    assert "keep" in text and 'id="advice-0"' in text  # half of epsilon is too little for two kinds; all of it is not
    assert "place, sector, sex: 1. Add up place" in text and "Equal shares for all" not in text
    assert 'id="advice-0"' not in pressed(client, "estimate", **asked)


@pytest.mark.parametrize("button", ["advise-", "advise-squared", "advise-absolute<script>", "ADVISE-ABSOLUTE", "../x"])
def test_odd_buttons_do_nothing(client: Any, button: str) -> None:
    text = pressed(client, button)
    assert 'id="advice-0"' not in text and "<script>alert" not in text


def test_names_from_a_form_are_escaped(client: Any) -> None:
    text = pressed(client, "advise-absolute", **{"release-0-tables": "<script>alert(1)</script>, sector\nplace"})
    assert "<script>alert(1)" not in text
    many = "\n".join(["place, sector", "place", "sector", ""] * 30)
    assert "Traceback" not in pressed(client, "advise-relative", **{"release-0-tables": many})
