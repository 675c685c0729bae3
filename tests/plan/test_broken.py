"""Broken plans and inputs, one of each kind: a precise message, exit code 2, nothing written and nothing spent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments, Workers

Change = Callable[[Path], object]


def swap(old: str, new: str, *more: str) -> Change:
    """Change the plan's text; pairs of old and new."""

    def change(plan: Path) -> None:
        text = plan.read_text(encoding="utf-8")
        for before, after in zip((old, *more[::2]), (new, *more[1::2]), strict=True):
            assert before in text, f"{before!r} is not in the plan"
            text = text.replace(before, after, 1)
        plan.write_text(text, encoding="utf-8")

    return change


def add(text: str, after: str = "") -> Change:
    """Add lines to the first release, or after some text."""
    anchor = after or 'by = ["place", "sector"]'
    return swap(anchor, f"{anchor}\n{text}")


def write(content: bytes | str) -> Change:
    return lambda plan: plan.write_bytes(content if isinstance(content, bytes) else content.encode())


def put(name: str, content: bytes | str) -> Change:
    return lambda plan: (plan.parent / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def both(*changes: Change) -> Change:
    return lambda plan: [change(plan) for change in changes]


def data(name: str = "jobs", **columns: Callable[[pa.Table], object]) -> Change:
    """Change columns of the confidential data; None drops one."""

    def change(plan: Path) -> None:
        path = plan.parent / "data" / f"{name}.parquet"
        table = pq.read_table(path)
        for column, new in columns.items():
            values = new(table)
            at = table.column_names.index(column)
            table = table.drop([column]) if values is None else table.set_column(at, column, [pa.array(values)])
        pq.write_table(table, path)

    return change


def first(column: str, value: object) -> Callable[[pa.Table], object]:
    return lambda table: [value, *table[column].to_pylist()[1:]]


def no_rows(plan: Path) -> None:
    path = plan.parent / "data" / "jobs.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def ledger(unit: object, total: Pure) -> Change:
    def change(plan: Path) -> None:
        with Ledger.open(plan.parent / "ledger.db") as book:
            book.open_budget(dataset="toys", unit=unit, total=total)

    return change


def edited_ledger(plan: Path) -> None:
    ledger(Establishments("0.1"), Pure(6))(plan)
    with sqlite3.connect(plan.parent / "ledger.db") as book:
        book.execute("DROP TRIGGER discreet_ledger_no_UPDATE")
        book.execute('UPDATE discreet_ledger SET loss = \'{"epsilon":"60"}\'')
    book.close()


def _linked_release(plan: Path) -> None:
    (plan.parent / "out").mkdir()
    (plan.parent / "out" / "places").symlink_to("nowhere")


def released_then(change: Change) -> Change:
    def both(plan: Path) -> None:
        run(plan)
        change(plan)

    return both


def public(line: str, change: Change = lambda plan: None) -> Change:
    """Say that something is public, on line 21, after a change."""
    return both(change, add(f"[public]\n{line}", after='dataset = "toys"'))


def _counted(plan: Path) -> None:
    """The confidential data with a column that public sizes have."""
    path = plan.parent / "data" / "jobs.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("jobs", pa.array(np.ones(len(table), dtype=int))), path)


def _own_places(plan: Path) -> None:
    """Jobs with a copy of their establishment's place, one of them another than the list has."""
    path = plan.parent / "data" / "jobs.parquet"
    jobs = pq.read_table(path)
    place = [f"P{workplace % 4}" for workplace in jobs["workplace"].to_pylist()]
    pq.write_table(jobs.append_column("place", pa.array(["P3", *place[1:]])), path)


def _linked(plan: Path) -> None:
    _counted(plan)
    (plan.parent / "s.parquet").symlink_to("data/jobs.parquet")


def _hard_linked(plan: Path) -> None:
    _counted(plan)
    (plan.parent / "s.parquet").hardlink_to(plan.parent / "data" / "jobs.parquet")


def _workers_apart(plan: Path) -> None:
    path = plan.parent / "data" / "jobs.parquet"
    table = pq.read_table(path)
    pq.write_table(table.select(["worker", "sex"]), plan.parent / "workers.parquet")
    pq.write_table(table.drop(["sex"]), path)
    swap("[data.schema]", 'workers = "workers.parquet"\n[data.schema]')(plan)


def _false_release(plan: Path) -> None:
    about = {"parameters": {"tables": [{"by": [], "domains": {}, "folder": ".."}]}, "files": ["../data/jobs.parquet"]}
    (plan.parent / "old").mkdir()
    (plan.parent / "old" / "release.json").write_text(json.dumps(about))


UNIT = 'kind = "establishments"\nalpha = 0.1'
COUNT = 'name = "places"\nkind = "count"'
SCHEMA = '[data.schema]\nworkplace_attributes = ["place", "sector"]\nworker_attributes = { sex = ["f", "m"] }\n'
SECRET = "is among the confidential data, or holds some of them"
UNTOUCHED = "This call wrote nothing and spent nothing."
OVER = "is needed. Write it so"

# kind of fault: what is done to a good plan, the line it is on (0 for none), words of the message
BROKEN: dict[str, tuple[Change, int, str]] = {
    # the file
    "no such plan": (lambda plan: plan.rename(plan.with_name("plans.toml")), 0, f"{UNTOUCHED} Did you mean 'plans.to"),
    "the plan is a folder": (lambda plan: (plan.unlink(), plan.mkdir()), 0, "Is a directory. A plan is a TOML file"),
    "not UTF-8": (write(b"title = 'a'\nb = '\xff'\n"), 2, f"{UNTOUCHED} Save the plan as UTF-8"),
    "a whole number of 5000 digits": (swap("epsilon = 6", "epsilon = " + "1" * 5000), 17, "beyond what can be read"),
    "an exponent of 20 digits": (swap("epsilon = 6", "epsilon = 1e" + "1" * 20), 17, "is"),
    "a long number elsewhere": (add("round_to = 0x1" + "0" * 5000), 25, "is out of range. It is at most 1000000"),
    "not TOML": (swap("epsilon = 6", "epsilon = "), 17, "A plan is TOML"),
    "text without an end": (swap('title = "Toys"', 'title = "Toys'), 2, "A plan is TOML"),
    "a key twice": (swap("alpha = 0.1", "alpha = 0.1\nalpha = 0.2"), 15, "Correct the line"),
    "an empty plan": (write(""), 1, "[data]: it is missing. It says: The place of the confidential data"),
    "not a plan at all": (write(b"x" * 200_000), 0, "A plan is a short text"),
    # its tables
    "an unknown table": (swap("[output]", "[ouput]"), 41, "Did you mean 'output'?"),
    "an unknown key": (swap("source =", "sorce ="), 5, "There are: source, workplaces, workers, schema"),
    "a table that is a value": (swap(f"[unit]\n{UNIT}", "", "[data]", "unit = 3\n[data]"), 4, "keys with values is"),
    "no data": (swap('source = "data/jobs.parquet"\n', ""), 4, "Parquet, CSV or DuckDB file"),
    "data as a number": (swap('"data/jobs.parquet"', "5"), 5, f"text in quotes {OVER}"),
    "no unit": (swap(f"[unit]\n{UNIT}", ""), 1, "[unit]: it is missing"),
    "an unknown unit": (swap('"establishments"', '"establishment"'), 12, "Did you mean 'establishments'?"),
    "a unit without a kind": (swap('kind = "establishments"', ""), 12, "kind is missing"),
    "alpha zero": (swap("alpha = 0.1", "alpha = 0"), 14, "must be above 0. Use for example 0.1"),
    "alpha in words": (swap("alpha = 0.1", "alpha = 'a tenth'"), 14, "'a tenth' is not an amount"),
    "alpha true": (swap("alpha = 0.1", "alpha = true"), 14, "true is not an amount"),
    "alpha infinite": (swap("alpha = 0.1", "alpha = inf"), 14, "alpha: inf is not an amount"),
    "alpha no number": (swap("alpha = 0.1", "alpha = nan"), 14, "alpha: nan is not an amount"),
    "alpha a date": (swap("alpha = 0.1", "alpha = 2026-01-31"), 14, "alpha: 2026-01-31 is not an amount"),
    "alpha a list": (swap("alpha = 0.1", "alpha = [0.1, true]"), 14, "alpha: [0.1, true] is not an amount"),
    "an unknown strength": (swap("alpha = 0.1", "alpha = 0.1\nstrength = 'strongest'"), 15, "'strong' or 'weak'"),
    "nodes without theta": (swap(UNIT, "kind = 'establishment-nodes'"), 12, "The largest workforce that is kept"),
    "theta zero": (swap(UNIT, "kind = 'establishment-nodes'\ntheta = 0"), 14, "at least 1"),
    "a budget without a total": (swap("epsilon = 6\n", ""), 16, "The total loss, for example 4"),
    "a negative budget": (swap("epsilon = 6", "epsilon = -6"), 17, "must be above 0"),
    "a delta of one": (swap("epsilon = 6", "epsilon = 6\ndelta = 1"), 18, "between 0 and 1"),
    "a name with a space in front": (swap('"toys"', '" toys"'), 19, "cannot be a name in a ledger"),
    "a name with an escape": (swap('"toys"', '"a\\u001b[31mred"'), 19, "1 to 200 printable characters"),
    "a name of 300 characters": (swap('"toys"', f'"{"n" * 300}"'), 19, "1 to 200 printable characters"),
    "no name for the data": (swap('dataset = "toys"', 'dataset = ""'), 19, "it is empty"),
    "a title with an escape": (swap('title = "Toys"', 'title = "To\\u001b[31mys"'), 2, "control character U+001B"),
    "a title of two lines": (swap('title = "Toys"', 'title = "Toys\\nand more"'), 2, "control character U+000A"),
    "a release's title that turns around": (add('title = "jobs \\u202e0001"'), 25, "control character U+202E"),
    "a label with a tabulator": (swap("[unit]", '[data.labels.sex]\nf = "a\\tb"\n[unit]'), 13, "character U+0009"),
    # its releases
    "no release": (lambda plan: write(_without_releases(plan))(plan), 1, "What is released, in order"),
    "a release without a name": (swap('name = "places"\n', ""), 21, "release 1, name: it is missing"),
    "a name that is a path": (swap('"places"', '"../places"'), 22, "cannot name a release"),
    "a name twice": (swap('"sexes"', '"places"'), 28, "names two releases"),
    "an unknown kind": (swap(COUNT, 'name = "places"\nkind = "cuont"'), 21, "Did you mean 'count'?"),
    "no kind": (swap(COUNT, 'name = "places"'), 21, "kind is missing"),
    "an unknown attribute": (swap('by = ["place", "sector"]', 'by = ["place", "sektor"]'), 24, "There are: place"),
    "a table twice": (swap('["place"]]', '["place", "sector"]]'), 36, "['place', 'sector'] is listed twice"),
    "an attribute twice": (swap('by = ["place", "sector"]', 'by = ["place", "place"]'), 24, "place is listed twice"),
    "attributes as text": (swap('by = ["place", "sector"]', 'by = "place"'), 24, f"a list in brackets {OVER}"),
    "no price": (swap("epsilon = 2\n", ""), 21, "What the whole release costs"),
    "a price of nothing": (swap("epsilon = 2\n", "epsilon = 0.0\n"), 25, "must be above 0"),
    "an infeasible price": (swap("epsilon = 2\n", "epsilon = 0.05\n"), 25, "epsilon > ln(1 + alpha) = 0.09531"),
    "infeasible for two kinds": (
        swap("epsilon = 2\n\n[[release]]\nname = \"margins\"", "epsilon = 0.15\n\n[[release]]\nname = \"margins\""),
        31, "it needs epsilon > 2 ln(1 + alpha) = 0.1906",
    ),
    "a delta nobody needs": (add("delta = 0.01"), 25, "it promises pure epsilon"),
    "a delta nobody needs, for workers": (
        both(swap(UNIT, "kind = 'workers'"), add("delta = 0.01")), 24, "edge-laplace with delta = 0.01: it promises"
    ),
    "no delta where one is needed": (add('mechanism = "smooth-laplace"'), 25, "needs 0 < delta < 1"),
    "an unknown mechanism": (add('mechanism = "magic"'), 25, "mechanism 'magic' is unknown"),
    "a mechanism of another unit": (add('mechanism = "edge-laplace"'), 25, "use [unit] kind = 'workers'"),
    "a mechanism of another unit, for workers": (
        both(swap(UNIT, "kind = 'workers'"), add('mechanism = "log-laplace"')), 24, "This plan's unit has one mechanism"
    ),
    "an unknown calibration": (add('calibration = "loose"'), 25, "'tight' or 'paper'"),
    "a calibration it lacks": (add('calibration = "paper"'), 25, "has the tight calibration only"),
    "a level that no double tells from one": (add("level = '0.99999999999999999999999'"), 25, "differs from both"),
    "cells that one job makes appear": (
        both(swap(UNIT, "kind = 'workers'"), swap('workplaces = "data/places.parquet"\n', "")),
        22, "as workplaces, or use [unit] kind = 'establishments' with alpha",
    ),
    "a level of one": (add("level = 1"), 25, "1 is not a probability"),
    "rounding to nothing": (add("round_to = 0"), 25, "It is at least 1"),
    "rounding to a half": (add("round_to = 0.5"), 25, f"a whole number {OVER}"),
    "a yes that is text": (add('non_negative = "yes"'), 25, f"true or false {OVER}"),
    "a filter by nothing known": (add("where = { colour = ['red'] }"), 25, "'colour' is not an attribute"),
    "a filter outside the domain": (add("where = { sex = ['x'] }"), 25, "where.sex: it asks for ['x'], but"),
    "a filter without values": (add("where = { sex = [] }"), 25, "it is empty"),
    "a filter by a date": (add("where = { sex = [2020-01-01] }"), 25, "is no category"),
    "a split that does not add up": (swap('["1/2", "1/2"]', '["1/2", "1/3"]'), 37, "add up to 1"),
    "a split for other tables": (swap('["1/2", "1/2"]', '["1/2", "1/4", "1/4"]'), 37, "among 2 tables"),
    "tables that cannot agree": (swap('["place"]]', '["sex"]]'), 36, "is not a sum of the one"),
    "rounded tables that agree": (add("round_to = 10", after="add_up = true"), 39, "do not add up"),
    "shrinkage without kinds": (add('shrink = ["sector"]'), 25, "it has no worker attributes"),
    "an unknown stratum": (add('stratum = "county"'), 25, "not among the workplace attributes"),
    "labels for nothing known": (add('[data.labels.colour]\nr = "red"', after="m\"] }"), 11, "Label one of these"),
    "a label twice": (add('[data.labels.sex]\nf = "X"\nm = "X"', after="m\"] }"), 13, "'f' and 'm' would both be call"),
    "a label that is another value": (add('[data.labels.sex]\nm = "f"', after="m\"] }"), 12, "both be called 'f'"),
    "a label outside the domain": (add('[data.labels.sex]\nx = "y"', after="m\"] }"), 12, "which is: f, m"),
    "a label twice, without a domain": (
        add('[data.labels.place]\nP0 = "X"\nP1 = "X"', after="m\"] }"), 13, "both be called 'X'"
    ),
    "a label that is another place": (
        add('[data.labels.place]\nP0 = "P1"', after="m\"] }"), 11, "another value of 'place' that has no label"
    ),
    # what it asks for as a whole
    "more than the budget": (swap("epsilon = 6", "epsilon = 5.5"), 39, "epsilon=1.5 is left of epsilon=5.5"),
    "an unknown format": (swap('folder = "out"', 'folder = "out"\nformats = ["ods"]'), 43, "'csv'"),
    "Excel alone": (swap('folder = "out"', 'folder = "out"\nformats = ["xlsx"]'), 43, "without parquet"),
    "no form": (swap('folder = "out"', 'folder = "out"\nforms = []'), 43, "it is empty"),
    "the output is a file": (put("out", "mine"), 42, "is a file"),
    "the output is in the data": (
        swap('"data/jobs.parquet"', '"data"', 'folder = "out"', 'folder = "data/out"'), 42, "would be read as data"
    ),
    "something has the release's name": (
        both(lambda plan: (plan.parent / "out" / "sexes").mkdir(parents=True), put("out/sexes/x", "mine")),
        28, "this ledger did not release",
    ),
    # the ledger
    "the ledger is a folder": (lambda plan: (plan.parent / "ledger.db").mkdir(), 18, "is a folder, not a ledger"),
    "the ledger is a text": (put("ledger.db", "dear diary\n" * 100), 18, "is not a ledger"),
    "the ledger is another database": (
        lambda plan: sqlite3.connect(plan.parent / "ledger.db").execute("CREATE TABLE t (x)").connection.close(),
        18, "not a ledger",
    ),
    "no folder for the ledger": (swap('"ledger.db"', '"books/ledger.db"'), 18, "Make the folder first"),
    "an address that is none": (swap('"ledger.db"', '"mysql://host/db"'), 18, "SQLite or PostgreSQL"),
    "a ledger with another total": (ledger(Establishments("0.1"), Pure(5)), 16, "A budget is opened once"),
    "a ledger with another unit": (ledger(Workers(), Pure(6)), 12, "do not add up"),
    "an edited ledger": (edited_ledger, 18, "the line was edited"),
    "a changed price after release": (
        released_then(swap("epsilon = 2\n", "epsilon = 1\n")), 25,
        "entry 2 of the ledger and published in entry 3, with other settings (epsilon)",
    ),
    "other tables after release": (
        released_then(swap('by = ["place", "sector"]', 'by = ["place"]')), 24, "with other settings (by)"
    ),
    "released files that are gone": (
        released_then(lambda plan: (plan.parent / "out" / "sexes" / "basic.csv").unlink()),
        0, "does not hold its files as they were",
    ),
    "releases among the data": (swap('folder = "out"', 'folder = "data"'), 42, "anyone who hands the folder on"),
    "releases around the data": (swap('folder = "out"', 'folder = "."'), 42, "for releases alone"),
    "an output that leads nowhere": (
        lambda plan: (plan.parent / "out").symlink_to("nowhere"), 42, "a link that leads nowhere"
    ),
    "an output that leads to itself": (
        lambda plan: (plan.parent / "out").symlink_to("out"), 42, "a link that leads nowhere"
    ),
    "a link in a release's place": (_linked_release, 22, "a 'places' that this ledger did not release"),
    "brackets without end": (add("x = " + "[" * 5000 + "]" * 5000), 0, "brackets in brackets"),
    "a place that does not exist": (add("where = { place = ['P9'] }"), 25, "'P9', and no establishment has it"),
    # what is public
    "no schema": (swap(SCHEMA, ""), 4, "must not be learned from the data"),
    "no such schema file": (swap(SCHEMA, 'schema = "schema.toml"\n'), 8, "cannot be read"),
    "a schema that is none": (both(swap(SCHEMA, 'schema = "s.json"\n'), put("s.json", "[1]")), 8, "not hold a schema"),
    "a column with two roles": (swap('["place", "sector"]\nworker', '["place", "sex"]\nworker'), 8, "two roles"),
    "a domain of two types": (swap('["f", "m"]', '["f", 1]'), 8, "different values of one type"),
    "no such public sizes": (add("[public]\nsizes = 's.csv'", after='dataset = "toys"'), 21, "no file"),
    "public sizes without sizes": (
        both(add("[public]\nsizes = 's.csv'", after='dataset = "toys"'), put("s.csv", "place,n\nP0,3\n")),
        21, "no column 'jobs'",
    ),
    "a previous release that is none": (
        add("[public]\nprevious = 'data'", after='dataset = "toys"'), 21, "the folder of an earlier release"
    ),
    "two kinds of public sizes": (
        add("[public]\nprevious = 'data'\nsizes = 's'", after='dataset = "toys"'), 20, "Leave one out"
    ),
    "the data as public sizes": (public("sizes = 'data/jobs.parquet'", _counted), 21, SECRET),
    "a link to the data as public sizes": (public("sizes = 's.parquet'", _linked), 21, SECRET),
    "a hard link to the data as public sizes": (public("sizes = 's.parquet'", _hard_linked), 21, SECRET),
    "a glob of the data as public sizes": (public("sizes = 'd*/j*s.parquet'", _counted), 21, SECRET),
    "a folder with the data as public sizes": (public("sizes = 'data'", _counted), 21, SECRET),
    "a file in the data's folder as public sizes": (
        public("sizes = 'data/jobs.parquet'", both(_counted, swap('"data/jobs.parquet"', '"data"'))), 21, SECRET
    ),
    "the workers as public sizes": (public("sizes = 'workers.parquet'", _workers_apart), 22, SECRET),
    "an earlier release made of the data": (public("previous = 'old'", _false_release), 21, SECRET),
    # the data
    "no such data": (swap("jobs.parquet", "job.parquet"), 5, "Did you mean 'jobs.parquet'"),
    "data of no known format": (
        both(put("data/jobs.xls", "x"), swap("jobs.parquet", "jobs.xls")), 5, "ends in '.xls'"
    ),
    "damaged data": (put("data/jobs.parquet", b"PAR1 cut off"), 5, "cannot be read as Parquet"),
    "a column that is missing": (data(sex=lambda table: None), 5, "Column 'sex' is not in"),
    "a column of another type": (data(sex=lambda table: np.ones(len(table))), 5, "holds Float64"),
    "a domain of another type": (data(sex=lambda table: np.ones(len(table), dtype=int)), 5, "none of which is"),
    "keys of two types": (data(workplace=lambda t: t["workplace"].cast(pa.string())), 5, "Cast one of them"),
    "no rows": (no_rows, 5, "has no rows"),
    "a missing value": (data(sex=first("sex", None)), 5, "has no value in some rows"),
    "a category outside the domain": (data(sex=first("sex", "unknown")), 5, "outside its public domain"),
    "a worker twice": (data(worker=first("worker", 5)), 5, "Or write allow_multiple = true under [data]"),
    "an employer nobody knows": (data(workplace=first("workplace", 99)), 5, "not in workplaces"),
    "an establishment twice": (data("places", workplace=first("workplace", 1)), 6, "repeats; each must be there once"),
    "an establishment without a place": (data("places", place=first("place", None)), 6, "has no value in some rows"),
    "a list without places": (data("places", place=lambda table: None), 6, "Column 'place' is not in workplaces"),
    "a list that is not there": (swap("places.parquet", "place.parquet"), 6, "Did you mean 'places.parquet'"),
    "a damaged list": (put("data/places.parquet", b"PAR1 cut off"), 6, "cannot be read as Parquet"),
    "jobs that contradict the list": (_own_places, 5, "Column 'place' of jobs.parquet differs from workplaces"),
    "an output folder that cannot be made": (swap('folder = "out"', 'folder = "/proc/x"'), 42, "no folder can be made"),
    "the ledger as output folder": (swap('folder = "out"', 'folder = "ledger.db"'), 42, "Each needs a place"),
    "the ledger in a release": (
        both(swap('"ledger.db"', '"out/places"'), lambda plan: (plan.parent / "out").mkdir()), 42, "Each needs a place"
    ),
    "digits of another script": (swap("epsilon = 2\n", 'epsilon = "\u0662"\n'), 25, "is not an amount"),
    "an amount with an underscore": (swap("epsilon = 2\n", 'epsilon = "1_0"\n'), 25, "is not an amount"),
    "an amount that no double holds": (swap("epsilon = 2\n", 'epsilon = "1e400"\n'), 25, "is not an amount"),
    "a filter of another type": (add("where = { sector = [7] }"), 25, "asks for '7', and no establishment has it"),
    "a ledger with a character that no path has": (swap('"ledger.db"', '"a\\u0000b"'), 18, "control character U+0000"),
    "data with a character that no path has": (swap("jobs.parquet", "a\\u0000b"), 5, "control character U+0000"),
    "a list with a character that no path has": (swap("places.parquet", "a\\u0007b"), 6, "control character U+0007"),
    "an output with a character that no path has": (swap('"out"', '"a\\u0000b"'), 42, "control character U+0000"),
    "a name longer than names are": (swap("places.parquet", "a" * 300), 6, "each name in it 255"),
    "an output longer than names are": (swap('"out"', f'"{"a" * 300}"'), 42, "each name in it 255"),
    "a path longer than paths are": (swap('"out"', f'"{"a/" * 3000}"'), 42, "at most 1,024 bytes"),
    "a schema longer than names are": (
        swap("[data.schema]", f'schema = "{"a" * 300}"\n[budget.x]'), 8, "each name in it 255"
    ),
    "sizes with a character that no path has": (public('sizes = "a\\u0000b"'), 21, "control character U+0000"),
    "a level that was another": (released_then(add("level = 0.9")), 25, "with other settings (level)"),
    "a filter that was not there": (
        released_then(add('where = { sector = ["farm"] }')), 25, "with other settings (where)"
    ),
    "a mechanism that was another": (
        released_then(add('mechanism = "log-laplace"')), 25, "with other settings (mechanism)"
    ),
    "shares that were others": (
        released_then(swap('["1/2", "1/2"]', '["1/3", "2/3"]')), 37, "with other settings (split)"
    ),
    "formats that were others": (
        released_then(swap('folder = "out"', 'folder = "out"\nformats = ["csv"]')), 43, "with other settings (formats)"
    ),
    "a domain that was another": (
        released_then(swap('["f", "m"]', '["m", "f"]')), 8, "with other settings (schema)"
    ),
    "an earlier release with a long name": (public(f'previous = "{"a" * 300}"'), 21, "each name in it 255"),
}  # fmt: skip


def _without_releases(plan: Path) -> str:
    head, _, rest = plan.read_text().partition("[[release]]")
    return head + rest[rest.index("[output]") :]


@pytest.mark.parametrize("fault", BROKEN)
def test_refused(fault: str, plan: Path, command, contents) -> None:
    change, line, words = BROKEN[fault]
    change(plan)
    before = contents(plan.parent)
    code, out, err = command("run", plan)
    assert code == 2, err
    assert words in err
    assert out == ""
    assert line == 0 or f"plan.toml:{line}: " in err, err
    assert contents(plan.parent) == before


def test_there_are_at_least_sixty() -> None:
    assert len(BROKEN) >= 60


def test_the_unbroken_plan_runs(plan: Path, command) -> None:
    """So that each refusal above is due to its fault."""
    code, out, _ = command("run", plan)
    assert code == 0
    assert "epsilon=0 is left" in out


def test_all_faults_at_once(plan: Path, command) -> None:
    for change in ("alpha in words", "an unknown attribute", "no price", "an unknown key"):
        BROKEN[change][0](plan)
    code, _, err = command("check", plan)
    assert code == 2
    assert "has 4 faults. This call wrote nothing and spent nothing." in err
    lines = [int(row.split(":")[1]) for row in err.splitlines()[1:]]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "line",
    [
        '"a\\u001b[31m" = 1\n',
        '["b\\u202ec"]\nd = 1\n',
        '[source."e\\nf".data]\nx = 1\n',
        '[data.schema]\n"g\\u0007" = 2\n',
    ],
)
def test_keys_cannot_write_to_a_terminal(line: str, tmp_path: Path) -> None:
    """A message is what its author wrote: no key of a plan moves the cursor, turns the text or breaks the line."""
    from discreet.plan.reading import read_plan
    from discreet.words.errors import PlanError

    path = tmp_path / "plan.toml"
    path.write_text(line)
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    assert all(text.isprintable() for text in str(caught.value).split("\n")), str(caught.value)
    assert "\nf" not in str(caught.value)
