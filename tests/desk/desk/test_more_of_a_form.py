"""What a form holds under More: filters, delta, strata, shrinkage. They become the plan's, and the estimate moves."""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import FormData

from discreet.data.schema import Schema
from discreet.desk import filters
from discreet.desk.drafts import as_toml, from_form
from discreet.desk.rendering import environment
from discreet.plan.reading import read_plan
from discreet.words.errors import DataError
from faults_of import about

SCHEMA = Schema(["place", "sector"], {"sex": ["female", "male"], "code": ["1", "2"], "old": [False, True]})
labels = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.integers(-(10**9), 10**9), st.booleans()
)
names = st.text("abcdefgh_", min_size=1, max_size=6)


@given(st.dictionaries(names, st.lists(labels, min_size=1, max_size=4), max_size=3))
def test_lines_say_what_they_were_given(where: dict[str, Any]) -> None:
    again = filters.read(filters.lines(where))
    assert [(name, [(type(v), v) for v in values]) for name, values in again.items()] == [
        (name, [(type(v), v) for v in values]) for name, values in where.items()
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("sector: 11, 23\n\nplace:A , B", {"sector": [11, 23], "place": ["A", "B"]}),
        ('sector: "11", 011, "a, b"', {"sector": ["11", "011", "a, b"]}),
        ("code: 1", {"code": ["1"]}),  # the public domain says that it is text
        ('old: true, "false"', {"old": [True, False]}),
        ("old: True", {"old": [True]}),
        ("place: A\nplace: B", {"place": ["A", "B"]}),
        ("place", {"place": []}),
        ("", {}),
    ],
)
def test_what_lines_mean(text: str, where: dict[str, Any]) -> None:
    assert filters.read(text, SCHEMA) == where


def sent(epsilon: str = "1", **more: str | list[str]) -> FormData:
    given = {"title": "T", "unit-kind": "establishments", "unit-alpha": "0.1", "formats": "csv", "forms": "basic"}
    given |= {"release-0-name": "r", "release-0-kind": "count", "release-0-epsilon": epsilon}
    form: list[tuple[str, str]] = [*given.items(), ("release-0-by", "sector"), ("release-0-by", "sex")]
    for key, value in more.items():
        form += [(f"release-0-{key}", each) for each in ([value] if isinstance(value, str) else value)]
    return FormData(form)


def test_a_form_becomes_the_plan_it_says(copied: Any, inside: Any) -> None:
    client = inside(copied())
    form = sent(where="ownership: private\nsex: female", stratum="sector", shrink=["", "sector"])
    data = {key: form.getlist(key) for key in form}
    place = client.post("/plans/jobs/new", {**data, "do": "save"}).headers["location"]
    file = client.app.state.here.desk.plan_file(place.rsplit("/", 1)[1])
    release = read_plan(file).plan.release[0]
    assert release.where == {"ownership": ("private",), "sex": ("female",)}
    assert (release.stratum, release.shrink) == ("sector", ("sector",))
    again = client.get(place).text
    assert "ownership: private\nsex: female</textarea>" in again and '<details class="more" open>' in again
    assert re.search('name="release-0-shrink" value="sector" checked', again)
    assert '<details class="more">' in client.get("/plans/new?source=jobs").text
    alone = tomllib.loads(as_toml({"release": from_form(sent(shrink=[""]), "jobs").release}))["release"][0]
    assert alone["shrink"] == [] and "where" not in alone
    assert "shrink" not in from_form(sent(), "jobs").release[0]


def estimated(client: Any, form: FormData) -> str:
    data = {key: form.getlist(key) for key in form}
    answer = client.post("/plans/jobs/new/estimate", data)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def error(text: str) -> float:
    return float(re.findall(r'big error">±([\d.,e+]+)<', text)[0].replace(",", ""))


def test_the_estimate_says_where_errors_are_bounds(copied: Any, inside: Any) -> None:
    client, form = inside(copied()), sent("4", mechanism="polynomial").multi_items()
    found = []
    for strength in ("strong", "weak"):
        text = estimated(client, FormData([*form, ("unit-strength", strength)]))
        found += re.findall('10,000 workers</th><td class="number">(at most)?', text)
        assert ("±" in text) == (strength == "strong")
        rows = re.findall(r' \+</th><td class="number">\d+</td><td class="number">(at most )?[\d.,]+</td>', text)
        assert rows and set(rows) == {"" if strength == "strong" else "at most "}
    assert found == ["", "at most"]
    kind = {"unit-kind": "workers"}
    text = estimated(client, FormData([(key, kind.get(key, value)) for key, value in sent().multi_items()]))
    assert "for every count, whatever its cell" in text and "10,000 workers" not in text


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0.12345, "0.123"), (999.4, "999"), (999.6, "1,000"), (1234.4, "1,234"), (2e6, "2,000,000")],
)
def test_amounts_keep_their_whole_digits(amount: float, shown: str) -> None:
    assert environment.filters["three"](amount) == shown


def test_the_estimate_moves(copied: Any, inside: Any) -> None:
    client = inside(copied())
    whole, women = (estimated(client, sent(where=where)) for where in ("", "sex: female"))
    assert "2 kinds of workers" in whole and "kinds of workers" not in women and "Only sex: female" in women
    assert error(women) != error(whole)
    mining = estimated(client, sent(where="sector: 21 Mining"))
    cells = [
        sum(map(int, re.findall(r'(?: \+|none)</th><td class="number">(\d+)</td>', text))) for text in (whole, mining)
    ]
    assert cells == [20, 1]
    assert "towards those of all cells together" in estimated(client, sent(shrink=[""]))
    assert "towards those of groups by sector" in estimated(client, sent(shrink=["sector"]))
    assert "divides the error by sector" in estimated(client, sent(stratum="sector"))


def test_widths_and_their_price_are_shown_before_paying(copied: Any, inside: Any) -> None:
    client = inside(copied())
    wide, narrow = (estimated(client, sent(scale_share=share)) for share in ("", "0.2"))
    for text in (wide, narrow):
        assert "counts will be mostly noise" in text and "Narrower intervals for a part of epsilon" in text
    cell = '</td><td class="number">([^<]+)'
    reach = f'10,000 workers</th><td class="number">[^<]+{2 * cell}<'
    among = [re.findall(reach, text)[0][1] for text in (wide, narrow)]
    assert among[0] != among[1] and among[1] != "no interval"
    assert error(narrow) > error(wide)


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"where": "sex: other"}, "where", "the public domain is"),
        ({"where": "sector"}, "where", "it is empty"),
        ({"where": "sector: 1, 1"}, "where", "listed twice"),
        ({"shrink": ["place"]}, "shrink", "is not a workplace attribute of it"),
        ({"stratum": "place"}, "stratum", "is not among the workplace attributes"),
        ({"delta": "2"}, "delta", "is not a probability"),
        ({"scale_share": "2"}, "scale_share", "is not a share of epsilon"),
        ({"scale_share": "0.0001"}, "scale_share", "leaves no information"),
        ({"delta": "1e-6"}, "delta", "promises pure epsilon"),
    ],
)
def test_faults_are_the_plans(copied: Any, inside: Any, more: Any, field: str, words: str) -> None:
    text = estimated(inside(copied()), sent(**more))
    assert words in text and f'href="#release-0-{field}"' in text


def test_delta_of_a_budget_that_has_one(copied: Any, inside: Any) -> None:
    folder: Path = copied()
    settings = folder / "desk.toml"
    settings.write_text(settings.read_text().replace("epsilon = 8", "epsilon = 8\ndelta = 0.001"))
    client = inside(folder)
    texts = [estimated(client, sent("4", mechanism="smooth-laplace", delta=delta)) for delta in ("0.0001", "0.0005")]
    assert all("This plan can be run" in text for text in texts), texts[0]
    assert "and delta: 0.0001, of 0.001 left" in texts[0] and "and delta: 0.0005, of 0.001 left" in texts[1]
    assert error(texts[1]) < error(texts[0])  # a larger chance of failure buys less noise
    assert 'href="#release-0-epsilon"' in estimated(client, sent("4", mechanism="smooth-laplace", delta="0.002"))


def test_a_field_is_never_cut_short() -> None:
    """A filter that lost its end would keep other values than were asked for."""
    with pytest.raises(DataError, check=about("release-0-where")):
        from_form(sent(where="place: " + ", ".join(f"p{i}" for i in range(5000))), "jobs")
