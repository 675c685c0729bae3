"""The text of a plan: every key is found on its line, whatever TOML allows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.plan.document import Document
from discreet.words.errors import PlanError
from discreet.words.faults import Fault
from faults_of import about

TEXT = '''title = "x"  # comment

[data]
source = "a [b] = 1"
[data.schema]
many = ["a",
  # in between
  "b = 2",
]
[[release]]
name = """
[not.a.table]
"""
"quoted key" = 1
where = { sex = ["f"], x.y = 1 }
[release.labels]
a = 1
[[release]]
name = 'two'
[[release.sub]]
q = 1
[[release.sub]]
q = 2
[release.sub.deep]
z = 0.1
'''


@pytest.fixture
def document(tmp_path: Path) -> Document:
    (tmp_path / "plan.toml").write_text(TEXT)
    return Document.read(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("title",), 1),
        (("data",), 3),
        (("data", "source"), 4),
        (("data", "schema", "many"), 6),
        (("data", "schema", "many", 1), 6),
        (("release", 0), 10),
        (("release", 0, "name"), 11),
        (("release", 0, "quoted key"), 14),
        (("release", 0, "where", "sex", 0), 15),
        (("release", 0, "where", "x", "y"), 15),
        (("release", 0, "labels", "a"), 17),
        (("release", 1, "name"), 19),
        (("release", 1, "sub", 0, "q"), 21),
        (("release", 1, "sub", 1, "q"), 23),
        (("release", 1, "sub", 1, "deep", "z"), 25),
        (("release", 1, "missing"), 18),
        (("release", 7, "missing"), 1),
        (("nowhere",), 1),
    ],
)
def test_lines(document: Document, place: tuple[str | int, ...], line: int) -> None:
    assert document.line(place) == line


def test_numbers_are_exact(document: Document) -> None:
    assert document.content["release"][1]["sub"][1]["deep"]["z"] == Decimal("0.1")


def test_places_are_named_as_a_reader_would(document: Document) -> None:
    assert document.name(("data", "schema", "many")) == "[data], schema.many"
    assert document.name(("release", 1, "sub", 0, "q")) == "release 'two', sub[0].q"
    assert document.name(("title",)) == "title"


def test_faults_come_together_in_order(document: Document) -> None:
    faults = [Fault(("release", 1), "second"), Fault(("title",), "first")]
    with pytest.raises(PlanError, check=about("title")) as refusal:
        document.refuse(faults)
    assert str(refusal.value).splitlines()[1:] == ["plan.toml:1: title: first", "plan.toml:18: release 'two': second"]
    document.refuse([])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", '"a"', "[\n1,\n2]", '"""\n[x]\n"""', "{a = [1, 2]}", "'''\n\n'''"]),
            st.integers(0, 3),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_key_is_found(tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, int, bool]]) -> None:
    """Keys k0, k1, ... with any values, blank lines and tables between them, are on the lines that hold their names."""
    text, table = "", ()
    places = {}
    for number, (value, blanks, opens) in enumerate(parts):
        text += "\n" * blanks + (f"[t{number}]\n" if opens else "")
        table = (f"t{number}",) if opens else table
        text += f"k{number} = {value}\n"
        places[*table, f"k{number}"] = f"k{number} ="
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text)
    document, rows = Document.read(path), text.split("\n")
    for place, start in places.items():
        assert rows[document.line(place) - 1].startswith(start)


def test_windows_line_ends_and_marks(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    document = Document.read(tmp_path / "plan.toml")
    assert (dict(document.content), document.line(("b",))) == ({"a": 1, "b": 2}, 2)
