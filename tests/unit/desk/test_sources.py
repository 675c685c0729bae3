"""A source added in the browser: by an administrator, its data checked at once, in desk.toml and ready for a plan."""

from __future__ import annotations

import gzip
import html
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from discreet.desk import audit_log, sources
from discreet.desk.desk import Desk
from discreet.desk.drafts import first_draft
from discreet.desk.estimates import judge
from discreet.words.errors import DataError
from faults_of import about

ORIGIN = {"origin": "http://127.0.0.1"}
ROWS = "".join(f"E{i // 4};W{i};0{i // 4 % 3};{'fm'[i % 2]}\n" for i in range(40))
TABLE = f"firm;person;county;sex\n{ROWS}"
ROLES = {"firm": "establishment", "person": "worker", "county": "workplace", "sex": "kind"}
FORM = {"kind": "jobs", "name": "pay", "title": "Pay", "dataset": "pay 2026", "epsilon": "3", "alpha": "0.1"}


@pytest.fixture(autouse=True)
def fenced_once(request: pytest.FixtureRequest) -> None:
    """Files are read in a process of their own in the first test; what the others say of them needs none."""
    if request.node.name != "test_from_a_file_to_a_plan":
        request.getfixturevalue("unfenced")


@pytest.fixture
def zoe(staffed: Any, csrf: Any) -> Any:
    """An administrator who posts with her token."""
    client = staffed("zoe")[0]

    def post(file: str = "", upload: tuple[str, bytes] | None = None, **more: Any) -> Any:
        data = {"csrf": csrf(client), "file": file, **FORM, **more}
        return client.post("/data/new", data=data, files={"upload": upload or ("", b"")}, headers=ORIGIN)

    post.client, post.here = client, client.app.state.here  # type: ignore[attr-defined]
    return post


def columns(domain: str = "f, m", **changed: str) -> dict[str, Any]:
    roles = ROLES | changed
    told = {"column": list(roles), **{f"role-{i}": role for i, role in enumerate(roles.values())}}
    return told | {"domain-3": domain}


def test_from_a_file_to_a_plan(zoe: Any) -> None:
    """Sent compressed, its columns named, refused while a row does not fit, then added and priced at once."""
    answer = zoe(upload=("messy.csv.gz", gzip.compress(TABLE.encode())), do="read")
    assert answer.status_code == 200 and all(f"<code>{name}</code>" in answer.text for name in ROLES)
    (kept,) = sources.files(zoe.here.desk)
    assert f'value="{kept}" selected' in answer.text and (zoe.here.desk.folder / kept).stat().st_mode & 0o077 == 0
    before = (zoe.here.desk.folder / "desk.toml").read_bytes()

    faulty = zoe(kept, do="add", **columns(domain="f"))
    told = html.unescape(faulty.text)
    assert faulty.status_code == 409 and "outside its public domain, which is: f" in told
    assert 'name="epsilon" value="3"' in told and not re.search(r"\bW\d+\b|\bE\d\b", told), "a value is on the page"
    assert (zoe.here.desk.folder / "desk.toml").read_bytes() == before

    checked = zoe(kept, do="check", **columns())
    assert checked.status_code == 200 and "The data are as declared" in checked.text
    assert (zoe.here.desk.folder / "desk.toml").read_bytes() == before, "a check added it"

    assert zoe(kept, do="add", **columns()).headers["location"] == "/data#source-pay"
    assert "pay 2026" in zoe.client.get("/data").text, "the page is of the desk as it was"
    desk = Desk.open(zoe.here.desk.folder)
    assert desk.sources["pay"] == zoe.here.desk.sources["pay"] and desk.sources["pay"].unit_fixed
    assert desk.schema(desk.sources["pay"]).worker_attributes == {"sex": ("f", "m")}  # type: ignore[union-attr]
    assert tomllib.loads(before.decode())["source"] == [
        each for each in tomllib.loads((desk.folder / "desk.toml").read_text())["source"] if each["name"] != "pay"
    ]
    draft = first_draft(zoe.here.desk, zoe.here.desk.sources["pay"])
    draft.release[0]["by"] = ["county", "sex"]
    found = judge(zoe.here.desk, draft, "x")
    assert found.can_run, found.trouble
    with zoe.here.store.reading() as connection:
        assert ("zoe", "source added", "pay") in [(x.who, x.action, x.subject) for x in audit_log.lines(connection)]
    assert zoe(kept, do="add", **columns()).status_code == 409, "the same name twice"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "No Name"}, "name"),
        ({"epsilon": "much"}, "epsilon"),
        ({"alpha": "0"}, "unit"),
        ({"name": "jobs"}, "is a source of this desk"),
        ({"role-0": ""}, "name the establishment"),
        ({"role-1": "establishment"}, "2 columns name the establishment"),
        ({"domain-3": ""}, "no public values"),
        ({"file": "desk.toml"}, "is not a table in the desk's folder"),
        ({"file": "data/../desk.toml"}, "is not a table in the desk's folder"),
        ({"file": "/etc/passwd"}, "is not a table in the desk's folder"),
    ],
)
def test_what_is_refused_keeps_the_form(zoe: Any, change: dict[str, str], words: str) -> None:
    folder = zoe.here.desk.folder
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text(TABLE)
    given = {"file": "data/a.csv", "do": "add", **columns(), **change}
    answer = zoe(given.pop("file"), **given)
    assert answer.status_code == 409 and words in html.unescape(answer.text)
    assert 'value="Pay"' in answer.text or "file" in change
    assert len(Desk.open(folder).sources) == 2


def test_links_and_other_files_are_not_offered(zoe: Any, tmp_path_factory: Any) -> None:
    folder, elsewhere = zoe.here.desk.folder / "data", tmp_path_factory.mktemp("elsewhere")
    folder.mkdir()
    (elsewhere / "secret.csv").write_text(TABLE)
    (folder / "link.csv").symlink_to(elsewhere / "secret.csv")
    (folder / "folder").symlink_to(elsewhere)
    (folder / "notes.md").write_text("no table")
    assert sources.files(zoe.here.desk) == []
    with pytest.raises(DataError, check=about("file")):
        sources.columns_of(zoe.here.desk, "data/link.csv")
    assert zoe(upload=("a.exe", b"MZ"), do="read").status_code == 409


def test_who_may(staffed: Any, csrf: Any, client: Any) -> None:
    for name in ("anna", "rita"):
        somebody = staffed(name)[0]
        assert somebody.get("/data/new").status_code == 403
        data = {"csrf": csrf(somebody), "do": "add"}
        assert (
            somebody.post("/data/new", data=data, files={"upload": ("a.csv", "a")}, headers=ORIGIN).status_code == 403
        )
        assert "/data/new" not in somebody.get("/data").text
    zoe = staffed("zoe")[0]
    assert (
        zoe.post("/data/new", data={"csrf": "x"}, files={"upload": ("a.csv", "a")}, headers=ORIGIN).status_code == 403
    )
    assert client.get("/data/new").status_code == 200, "the one person of a desk without accounts"


def test_a_known_data_set_keeps_its_unit_and_budget(zoe: Any) -> None:
    from discreet.ledger import Ledger
    from discreet.privacy.losses import Pure
    from discreet.privacy.units import Workers

    folder = zoe.here.desk.folder
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text(TABLE)
    with Ledger.open(zoe.here.desk.ledger) as ledger:
        ledger.open_budget(dataset="pay 2026", unit=Workers(), total=Pure(3))
    answer = zoe("data/a.csv", do="add", **columns())
    assert answer.status_code == 409 and "The ledger knows 'pay 2026' under workers" in html.unescape(answer.text)


def test_the_second_step_starts_with_usual_values(zoe: Any, csrf: Any) -> None:
    """The first step sends none of them; what somebody emptied stays empty, and is named in the words of the form."""
    folder = zoe.here.desk.folder
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text(TABLE)
    first = {"csrf": csrf(zoe.client), "file": "data/a.csv", "do": "read"}
    page = zoe.client.post("/data/new", data=first, files={"upload": ("", b"")}, headers=ORIGIN).text
    usual = {"alpha": "0.1", "multiple": "1", "lower": "0", "upper": "1"}
    assert [key for key, value in usual.items() if f'name="{key}" value="{value}"' not in page] == []
    told = html.unescape(zoe("data/a.csv", do="add", **columns(), alpha="").text)
    assert "alpha: '' is not an amount" in told and "Value error" not in told and ".." not in told


def test_workers_with_several_jobs_are_declared(zoe: Any) -> None:
    folder = zoe.here.desk.folder
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text(f"{TABLE}E9;W1;00;m\n")
    assert zoe("data/a.csv", do="add", **columns()).status_code == 409
    assert zoe("data/a.csv", do="add", multiple="two", **columns()).status_code == 409
    assert zoe("data/a.csv", do="add", multiple="2", **columns()).status_code == 303
    assert Desk.open(folder).sources["pay"].allow_multiple == 2


def test_rows_for_models(zoe: Any) -> None:
    folder = zoe.here.desk.folder
    (folder / "data").mkdir()
    (folder / "data" / "r.csv").write_text("y,x,g\n" + "".join(f"{i % 7 / 10},{i % 3},g{i % 5}\n" for i in range(60)))
    told = {"column": ["y", "x", "g"], "role-0": "response", "role-1": "public", "role-2": "public", "kind": "rows"}
    answer = zoe("data/r.csv", do="add", lower="0", upper="1", **told)
    assert answer.status_code == 303, html.unescape(answer.text)
    source = Desk.open(folder).sources["pay"]
    assert source.kind == "rows" and source.public == ("x", "g") and source.unit.response == ("y",)  # type: ignore[union-attr]


def test_a_file_that_becomes_no_source_is_not_left_behind(zoe: Any) -> None:
    """One that cannot be read goes at once, one that another replaces too, one that is forgotten after a day."""
    desk = zoe.here.desk
    assert zoe(upload=("bad.csv", b"\xff\xfe\x00"), do="read").status_code == 409
    assert sources.files(desk) == []
    zoe(upload=("a.csv", TABLE.encode()), do="read")
    (first,) = sources.files(desk)
    zoe(first, upload=("b.csv", TABLE.encode()), do="read")
    (second,) = sources.files(desk)
    assert second != first
    (desk.folder / "data" / "mine.csv").write_text(TABLE)
    for each in ("mine.csv", Path(second).name):
        os.utime(desk.folder / "data" / each, (0, 0))
    sources.drop(desk, "data/mine.csv")
    sources.tidy(desk)
    assert sources.files(desk) == ["data/mine.csv"], "only what was sent here is removed"
    zoe(upload=("c.csv", TABLE.encode()), do="read")
    waiting = next(file for file in sources.files(desk) if file != "data/mine.csv")
    assert zoe(waiting, do="add", **columns()).status_code == 303
    path = zoe.here.desk.sources["pay"].path
    os.utime(desk.folder / path, (0, 0))
    for known in (desk, zoe.here.desk):
        sources.tidy(known)
        sources.drop(known, path)
    assert (desk.folder / path).read_text() == TABLE, "the file of a source stays"


def test_a_first_row_is_not_shown_for_names(zoe: Any) -> None:
    for rows in ("Acme;0001;06001;f\nAcme;0002;06001;m\n", "Acme;Ann;north;f\nAcme;Bob;north;m\n"):
        answer = zoe(upload=("a.csv", rows.encode()), do="read")
        assert answer.status_code == 409
        assert not re.search("Acme|0001|Ann|north", answer.text)


def test_a_check_of_a_response_has_no_number_of_rows(zoe: Any) -> None:
    rows = "".join(f"{'7' if i < 17 else '0.5'};g{i % 4}\n" for i in range(97))
    zoe(upload=("a.csv", f"y;g\n{rows}".encode()), do="read")
    (kept,) = sources.files(zoe.here.desk)
    roles = {"column": ["y", "g"], "role-0": "response", "role-1": "public", "kind": "rows"}
    answer = zoe(kept, do="check", lower="0", upper="1", **roles)
    told = html.unescape(answer.text)
    assert answer.status_code == 409 and "outside [0, 1]" in told
    assert not re.search(r"\b(17|80|97)\b", re.sub(r"<[^>]*>", "", told))
