"""The page: well-formed, escaped, ordered, offline and accessible by construction."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.pages import charts, numbers, svg
from discreet.pages.page import Code, Figure, Heading, Note, Page, Prose, Table, inline, slug
from discreet.words.errors import DataError
from faults_of import about

HOSTILE = """</title></style><script>alert(1)</script><img src=x onerror="alert(1)"> & "quoted" 'single'"""
ROWS = [{"x": x, "y": x**2, "who": who} for who in ("a", "b") for x in range(4)]


def specimen(text: str = "Plain text") -> Page:
    rows = [{**row, "who": f"{row['who']} {text}"} for row in ROWS]
    return Page(
        text,
        [
            Heading(text),
            Prose(f"{text}\n\n- {text}\n- `{text}`\n\n**{text}**"),
            Note(text, text),
            Heading(text, 3),
            Table([text, "value"], [[text, 1.5], ["b", None]], text),
            Heading("Picture", 3),
            Figure(charts.lines(rows, "x", "y", "who", titles={"x": text}), text, text),
            Figure(charts.ecdf(rows, "y", "who"), text, text),
            Heading("Code"),
            Code(text),
            Heading("End"),
        ],
        lead=text,
    )


@pytest.fixture(params=["Plain text", HOSTILE], ids=["plain", "hostile"])
def tree(request: pytest.FixtureRequest, read_html: Callable[[str], Any]) -> Any:
    return read_html(specimen(request.param).html())


def test_markup_in_any_text_stays_text(read_html: Callable[[str], Any]) -> None:
    tree = read_html(specimen(HOSTILE).html())
    plain = read_html(specimen("Plain text").html())
    count = {tag: len(list(tree.all(tag))) for tag in ("script", "img", "style", "title", "svg", "table")}
    assert count == {"script": 0, "img": 0, "style": 1, "title": 1, "svg": 2, "table": 3}
    assert not any(name.startswith("on") for element in tree.all() for name in element.attributes)
    assert {e.tag for e in tree.all()} == {e.tag for e in plain.all()}
    assert next(tree.all("h1")).text == HOSTILE
    assert next(tree.all("pre")).text == HOSTILE


def test_nothing_is_fetched(tree: Any) -> None:
    for element in tree.all():
        for name in ("src", "href", "xlink:href", "data", "srcset", "action"):
            assert element.attributes.get(name, "#").startswith(("#", "data:,"))
    style = next(tree.all("style")).text
    assert "url(" not in style
    assert "@import" not in style
    policy = [meta.attributes["content"] for meta in tree.all("meta") if "http-equiv" in meta.attributes]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_headings_are_ordered_and_listed(tree: Any) -> None:
    headings = list(tree.all("h1", "h2", "h3", "h4"))
    levels = [int(heading.tag[1]) for heading in headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    nav = next(tree.all("nav"))
    assert [a.attributes["href"] for a in nav.all("a")] == [f"#{h.attributes['id']}" for h in headings[1:]]
    assert [a.text for a in nav.all("a")] == [h.text for h in headings[1:]]


def test_ids_are_unique_and_references_resolve(tree: Any) -> None:
    ids = [element.attributes["id"] for element in tree.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in tree.all():
        for name, value in element.attributes.items():
            if name in ("aria-labelledby", "aria-describedby"):
                assert value in ids
            if name == "href" and value.startswith("#"):
                assert value[1:] in ids
            assert all(target in ids for target in re.findall(r"url\(#([^)]+)\)", value))


def test_landmarks_tables_and_pictures_are_described(tree: Any) -> None:
    assert next(tree.all("html")).attributes["lang"] == "en"
    assert next(tree.all("body")).children[1].attributes == {"class": "skip", "href": "#content"}
    assert next(tree.all("main")).attributes["id"] == "content"
    for table in tree.all("table"):
        assert next(table.all("caption")).text
        assert all(cell.attributes["scope"] in ("col", "row") for cell in table.all("th"))
    for picture in tree.all("svg"):
        assert picture.attributes["role"] == "img"
        assert next(picture.all("desc")).attributes["id"] == picture.attributes["aria-labelledby"]
        assert not any(name.startswith(("role", "aria-")) for part in picture.all() for name in part.attributes)
    data = [figure for figure in tree.all("figure") if next(figure.all("details"))]
    assert [len(list(next(figure.all("tbody")).all("tr"))) for figure in data] == [8, 8]


def test_a_short_page_has_no_contents(read_html: Callable[[str], Any]) -> None:
    assert not list(read_html(Page("Short", [Heading(str(i)) for i in range(4)]).html()).all("nav"))


@pytest.mark.parametrize("levels", [[3], [2, 4], [1], [2, 3, 4, 5]])
def test_heading_levels_without_gap(levels: list[int]) -> None:
    with pytest.raises(DataError, check=about("heading")):
        Page("Wrong", [Heading("x", level) for level in levels])


def test_inline_marks() -> None:
    assert inline("a `x<y` **b** * c ` d") == "a <code>x&lt;y</code> <strong>b</strong> * c ` d"
    assert inline("`**x**`") == "<code>**x**</code>"


def test_table_checks_its_rows_and_reads_dictionaries() -> None:
    with pytest.raises(DataError, check=about("table")):
        Table(["a", "b"], [[1]], "short")
    assert Table.of([{"a": 1}, {"b": 2}], "caption").rows == ((1, None), (None, 2))


def test_an_empty_table_still_has_its_head(read_html: Callable[[str], Any]) -> None:
    tree = read_html(Page("Empty", [Table(["a", "b"], [], "nothing")]).html())
    assert [cell.text for cell in tree.all("th")] == ["a", "b"]


def test_a_figure_needs_words() -> None:
    with pytest.raises(DataError, check=about("figure")):
        Figure(object(), " ", "caption")


def test_names_are_safe_for_files() -> None:
    page = Page("T", [Table(["a"], [[1]], "../../etc/passwd"), Table(["a"], [[2]], "../../etc/passwd")])
    assert list(page.tables) == ["etc-passwd", "etc-passwd-2"]
    assert slug("Ω") == "untitled"


def test_write_replaces_the_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Page("One", []).write(tmp_path / "new" / "report.html")
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        Page("Two", []).write(path)
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_colours_have_enough_contrast() -> None:
    """WCAG 2.2: 4.5:1 for text (AA), 3:1 for lines and bars; the formula is the standard's."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        low, high = sorted([luminance(a), luminance(b)])
        return (high + 0.05) / (low + 0.05)

    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    style = files("discreet.pages").joinpath("page.css").read_text(encoding="utf-8")
    schemes = [
        dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in re.findall(r":root \{(.*?)\}", style, re.S)[:2]
    ]
    assert len(schemes) == 2
    for colours in schemes:
        for name in ("ink", "quiet", "accent", "warning", "good"):
            assert contrast(colours[name], colours["ground"]) >= 4.5
        assert contrast(colours["ink"], colours["shade"]) >= 4.5
        assert all(contrast(colour, colours["ground"]) >= 3 for colour in svg.PALETTE)


def test_a_share_of_any_type_of_number_is_shown() -> None:
    """NumPy's were spelled with their type, which ended a report of flows after it was paid, by chance."""
    assert numbers.percent(np.float64(0.25)) == numbers.percent(0.25)
