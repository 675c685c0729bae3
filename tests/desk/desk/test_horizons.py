"""An exception report that cannot be made is refused before the work on it begins."""

from __future__ import annotations

import html
from contextlib import nullcontext
from typing import Any

import pytest

from discreet.desk import sandbox as fence
from discreet.words.errors import DataError

ROWS = [f"s{i},{t},{100 + (7 * i + 3 * t) % 11}" for i in range(4) for t in range(20)]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        *(("horizon", value, "1 to 120") for value in ("0", "-1", "121", "1e9", "1.5", "1_0", "", "nan", "\u0661")),
        *(("cutoff", value, "between 0.5 and 1") for value in ("0.5", "1", "nan", "inf", "much")),
        *(("cost_ratio", value, "above 0") for value in ("0", "-3", "nan", "inf", "much")),
        ("direction", "sideways", "one of decline, increase, both"),
        *(("capacity", value, "series to look at") for value in ("0", "-1", "1.5", "many")),
        *(("season", value, "in a season") for value in ("0", "367", "x")),
        ("gaps", "guess", "one of skip"),
    ],
)
def test_odd_options_are_refused_first(
    copied: Any, inside: Any, monkeypatch: Any, option: str, value: str, words: str
) -> None:
    def worked(*_: Any) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr("discreet.desk.pages.changes.confined", worked)
    monkeypatch.setattr("discreet.desk.pages.changes.kept", worked)
    answer = inside(copied()).post("/changes", {option: value}, files={"panel": ("p.csv", "series,t,value\n")})
    text = html.unescape(answer.text)
    assert answer.status_code == 409 and words in text
    assert f"{value!r} was sent as {option.replace('_', ' ')}. It is " in text and "Use for example" in text


@pytest.mark.parametrize(("horizon", "fits"), [(5, True), (19, False), (120, False)])
def test_a_horizon_beyond_the_panel(tmp_path: Any, horizon: int, fits: bool) -> None:
    panel = tmp_path / "panel.csv"
    panel.write_text("\n".join(["series,t,value", *ROWS]))
    refusal = nullcontext() if fits else pytest.raises(DataError)
    with refusal:
        fence.exceptions(str(panel), None, {"horizon": horizon, "cutoff": 0.8})
