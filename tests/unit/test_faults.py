"""What is wrong, as a value: what it is about, and how each of four kinds of readers hears of it."""

from __future__ import annotations

import ast
import pickle
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dc
from discreet.data.schema import LODES, Schema
from discreet.ledger.book import named
from discreet.ledger.entries import EntryError
from discreet.models.bayes.quantile import AROUND_ZERO
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.privacy.columns import refuse_undeclared
from discreet.privacy.losses import exact
from discreet.privacy.units import BY_ESTABLISHMENTS, Rows
from discreet.words import errors
from discreet.words.errors import DataError, DiscreetError, MissingExtra, NoLedger, PlanError, PrivacyError, concerning
from discreet.words.faults import BETWEEN, Argument, Fault, Key, Position, Subject, Value, With
from discreet.words.voices import COMMAND, FORM, PLAN, PYTHON, Symbol
from source_files import source_files

VOICES = {"python": PYTHON, "plan": PLAN, "command": COMMAND, "form": FORM}

EVERY_PHRASE = Fault(
    "where.sex",
    (Subject(Key("where", "sex")), " is ", Value(("x", True)), " ", With(Argument("delta", None)), "."),
    (
        "Or give ",
        Argument("clip", BETWEEN),
        ", ",
        Argument("public", ["a b"], under="data"),
        " or ",
        Key("mechanism"),
        ".",
    ),
    (
        Argument("epsilon", Fraction(1, 3)),
        " and ",
        Argument("delta", Symbol("1e-6")),
        ", or ",
        BY_ESTABLISHMENTS,
        AROUND_ZERO,
        ".",
    ),
)


def undeclared() -> Fault:
    with pytest.raises(PrivacyError) as refused:
        refuse_undeclared(["county"], ["industry"], why="Others see it.")
    return refused.value.faults[0]


SAID = {
    "python": (
        "where['sex'] is ('x', True) with delta=None. Or give clip=(lower, upper), public=['a b'] or `mechanism`. "
        "epsilon=1/3 and delta=1e-6, or open a session with unit=Establishments(alpha=0.1), or in Python "
        "centre='zero', whose noise is larger when the quantile is far from zero.",
        "public: 'county' is in the formula and is not declared public. Others see it. Declare it with "
        "public=['industry', 'county'] if everybody may know it, or leave it out of the formula.",
    ),
    "plan": (
        "it is ['x', true] without delta. Or give clip = [lower, upper], public = ['a b'] under [data] or mechanism. "
        "epsilon = '1/3' and delta = 1e-6, or use [unit] kind = 'establishments' with alpha = 0.1.",
        "'county' is in the formula and is not declared public. Others see it. Write public = ['industry', 'county'] "
        "under [data] if everybody may know it, or leave it out of the formula.",
    ),
    "command": (
        "--where sex is x True without --delta. Or give --clip LOW HIGH, --public 'a b' or --mechanism. "
        "--epsilon 1/3 and --delta 1e-6, or open a session with unit=Establishments(alpha=0.1).",
        "'county' is in the formula and is not declared public. Others see it. Add --public for each such column if "
        "everybody may know it, or leave it out of the formula.",
    ),
    "form": (
        "it is 'x', true without 'Delta'. Or give 'Clip responses to' lower, upper, public = ['a b'] or 'Mechanism'. "
        "'Epsilon' 1/3 and 'Delta' 1e-6, or protect 'establishments and their workers' with 'Alpha' 0.1.",
        "'county' is in the formula and is not declared public. Others see it. Have it declared in desk.toml if "
        "everybody may know it, or leave it out of the formula.",
    ),
}


@pytest.mark.parametrize("name", VOICES)
def test_the_words_of_each_voice(name: str) -> None:
    assert (EVERY_PHRASE.said(VOICES[name]), undeclared().said(VOICES[name])) == SAID[name]


def test_an_error_carries_its_faults() -> None:
    error = DataError((Argument("by", 3), " is no list."), "It is one.", "Use [].", about="by")
    assert (error.about, str(error)) == ("by", "by=3 is no list. It is one. Use [].")
    plain = DataError("It broke.", remedy="Mend it.")
    assert (plain.about, plain.faults) == (None, (Fault(None, "It broke.", "", "Mend it."),))
    several = PlanError(Fault("a", "One."), Fault(("release", 0, "by"), "Two."), head="Both:")
    assert str(several) == "Both:\nOne.\nTwo."
    assert [(fault.about, fault.place) for fault in several.faults] == [
        ("a", ()),
        ("release.0.by", ("release", 0, "by")),
    ]
    assert (str(DiscreetError()), DiscreetError().about, DiscreetError().faults) == ("", None, ())
    assert str(MissingExtra("pip install it")) == "pip install it"


@pytest.mark.parametrize("kind", [DataError, PlanError, MissingExtra, NoLedger])
def test_errors_travel_between_processes(kind: type[DiscreetError]) -> None:
    error = kind(("Give ", Argument("clip", BETWEEN), "."), about="clip", remedy="Now.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.faults, again.said(COMMAND)) == (kind, error.faults, "Give --clip LOW HIGH. Now.")


def test_a_fault_in_a_file_is_told_in_the_words_of_plans_wherever() -> None:
    fault = Fault("clip", (Argument("clip", (0, 1)), " is wide."), at=Position("plan.toml", 7, "release 'm', clip"))
    said = {error.said(voice) for error in [PlanError(fault)] for voice in VOICES.values()}
    assert said == {"plan.toml:7: release 'm', clip: clip = [0, 1] is wide."}


def test_what_is_about_nothing_is_about_what_the_caller_says() -> None:
    with pytest.raises(DataError) as refused, concerning("workers"):
        raise DataError(Fault(None, "a"), Fault("size", "b"))
    assert [fault.about for fault in refused.value.faults] == ["workers", "size"]


def test_parameters_have_other_names_elsewhere() -> None:
    fault = Fault(
        "level.x", (Subject(Key("level")), With(Argument("unit", 2)), Key("level", "a")), "level", Argument("unit", 1)
    )
    renamed = fault.renamed({"level": "at", "unit": "scale"})
    assert (renamed.about, renamed.said(COMMAND)) == ("at.x", "--atwith --scale 2--at a level --scale 1")


def test_rewording_changes_what_is_said_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With every sentence replaced by the same word, each fault of a plan is still at its key."""
    from discreet.words import faults

    (tmp_path / "plan.toml").write_text(PLAN_TEXT)

    def places() -> list[tuple[str | None, tuple[str | int, ...]]]:
        return [(fault.about, fault.place) for fault in check(read_plan(tmp_path / "plan.toml")).faults]

    before = places()
    monkeypatch.setattr(faults, "say", lambda sentence, voice: "x" if sentence else "")
    assert places() == before == EXPECTED


PLAN_TEXT = """
[data]
source = "jobs.parquet"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { sex = ["f", "m"] }
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 400
ledger = "ledger.db"
dataset = "d"
[[release]]
name = "a"
kind = "count"
by = ["plaice"]
epsilon = 1
[[release]]
name = "b"
kind = "count"
by = ["place"]
epsilon = 1
where = { sex = ["x"] }
[[release]]
name = "c"
kind = "count"
by = ["place"]
epsilon = 1
mechanism = "edge-laplace"
[[release]]
name = "d"
kind = "counts"
tables = [["place"], []]
split = ["1/2"]
epsilon = 1
[[release]]
name = "e"
kind = "count"
by = ["place", "sex"]
epsilon = "1/1000"
[[release]]
name = "f"
kind = "count"
by = ["place"]
shrink = ["place"]
epsilon = 1
[[release]]
name = "g"
kind = "count"
by = ["place"]
delta = 0.01
epsilon = 1
[[release]]
name = "h"
kind = "count"
by = ["place"]
mechanism = "smooth-laplace"
epsilon = 1
[[release]]
name = "i"
kind = "model"
formula = "y ~ 1 + (1 | g)"
epsilon = 1
[[release]]
name = "j"
kind = "count"
by = ["place"]
scale_share = 2
epsilon = 1
[output]
folder = "out"
"""
EXPECTED = [
    ("by", ("release", 0, "by")),
    ("where.sex", ("release", 1, "where", "sex")),
    ("mechanism", ("release", 2, "mechanism")),
    ("split", ("release", 3, "split")),
    ("epsilon", ("release", 4, "epsilon")),
    ("shrink", ("release", 5, "shrink")),
    ("delta", ("release", 6, "delta")),
    ("delta", ("release", 7, "mechanism")),
    ("kind", ("release", 8, "kind")),
    ("scale_share", ("release", 9, "scale_share")),
]


@pytest.mark.parametrize(
    ("ask", "about"),
    [
        (lambda: exact("x", name="epsilon"), "epsilon"),
        (lambda: dc.Establishments(0), "alpha"),
        (lambda: dc.Establishments(0.1, "medium"), "strength"),
        (lambda: dc.EstablishmentNodes(0), "theta"),
        (lambda: Rows(2, 1), "lower"),
        (lambda: Rows(0, 1, ["y", "y"]), "response"),
        (lambda: dc.Session(3, unit=dc.Workers(), budget=1), "jobs"),
        (lambda: dc.Schema(workplace_attributes="place", worker_attributes={}), "schema.workplace_attributes"),
        (lambda: dc.Schema(workplace_attributes=[], worker_attributes={"sex": []}), "schema.worker_attributes.sex"),
        (lambda: named("", role="dataset"), "dataset"),
    ],
)
def test_parameters_are_named(ask, about: str) -> None:
    with pytest.raises(DiscreetError) as refused:
        ask()
    assert refused.value.about == about


@pytest.mark.parametrize("note", ['{"data": "sales"}', '["lodes"]', "not JSON", "{}"])
def test_every_door_finds_the_same_schema_beside_the_data(tmp_path: Path, note: str) -> None:
    """A foreign about.json is nobody's schema; the note of `discreet simulate lodes` is the same one at every door."""
    from discreet.desk.desk import DataSource, Desk, Settings
    from discreet.plan.reading import PlanFile

    def doors() -> list[Schema | None]:
        plan = read_plan(tmp_path / "plan.toml", PLAN_TEXT.replace(COLUMNS, "").encode())
        source = DataSource(name="jobs", path="jobs.parquet", kind="jobs", dataset="d", epsilon=1, unit=UNIT)
        desk = Desk(tmp_path, Settings.model_construct(source=[source]))
        found: list[Schema | None] = [desk.schema(source)]
        for ask in (plan.sources[0].schema, lambda: Schema.given(None, data=tmp_path / "jobs.parquet", name="jobs")):
            try:
                found.append(ask())
            except DataError as error:
                assert error.about == "schema"
                found.append(None)
        assert isinstance(plan, PlanFile)
        return found

    (tmp_path / "about.json").write_text(note)
    assert doors() == [None] * 3
    (tmp_path / "about.json").write_text('{"data": "lodes"}')
    assert doors() == [LODES] * 3


COLUMNS = '[data.schema]\nworkplace_attributes = ["place"]\nworker_attributes = { sex = ["f", "m"] }\n'
UNIT = {"kind": "workers"}


OPENED = {
    "data/frames.py",
    "data/scans.py",
    "data/delimited.py",
    "data/schema.py",
    "data/databases/address.py",
    "data/databases/moment.py",
    "data/databases/sql.py",
}
"""Tables that somebody opens: `concerning` says which of them it is."""
PLACED = {"plan/values.py", "plan/document.py", "plan/shape.py", "plan/source.py", "models/linear/private/bounds.py"}
"""Values of a plan, whose place the plan knows; and a range of either of two arguments, under `concerning`."""
RELAYED = {"desk/calculators.py", "desk/sandbox.py"}
"""What another process refused."""


def test_every_error_says_what_it_is_about() -> None:
    given = [*vars(errors).values(), EntryError]
    kinds = {kind.__name__: kind for kind in given if isinstance(kind, type) and issubclass(kind, DiscreetError)}
    silent, found = [], 0
    for place, path in source_files():
        if place in OPENED | PLACED | RELAYED:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in kinds:
                continue
            found += 1
            calls = [node, *(argument for argument in node.args if isinstance(argument, ast.Call))]  # one makes a fault
            said = any(keyword.arg == "about" for call in calls for keyword in call.keywords)
            faults = any(isinstance(argument, ast.Starred) for argument in node.args)
            if not (said or faults or kinds[node.func.id].subject):
                silent.append(f"{place}:{node.lineno}")
    assert found > 400 and not silent, silent
