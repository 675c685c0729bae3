"""One shape of results: the same columns, exports, files and short prints, whatever was estimated or released."""

from __future__ import annotations

import errno
import pickle
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.results import COLUMNS, KEYS, Result, tidy_table, write_excel
from discreet.words.errors import DataError, MissingExtra
from faults_of import about

FORMULA = "y ~ x + (1 | g)"


def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    g, x = np.repeat(np.arange(12), 25), rng.uniform(-1, 1, 300)
    return {"y": np.clip(1 + x + rng.normal(0, 1, 12)[g] + rng.normal(size=300), -8, 8), "x": x, "g": g}


def jobs() -> Any:
    places = [("01", "a", 40), ("01", "b", 30), ("02", "c", 60)]
    table = [
        {"workplace": name, "place": place, "worker": f"{name}{i}", "sex": "FM"[i % 2], "pay": 10 + i}
        for place, name, size in places
        for i in range(size)
    ]
    schema = dc.Schema(["place"], {"sex": ["F", "M"]}, magnitudes={"pay": 100})
    return dc.read_jobs(pa.Table.from_pylist(table), schema=schema)


def session(data: Any = None) -> dc.Session:
    return dc.Session(data or jobs(), unit=dc.Establishments(alpha=0.1), budget=40, seed=1)


def moved() -> dc.Session:
    """Jobs of three quarters."""
    quarters = ["q1", "q2", "q3"]
    there = [(worker, f"q{q + 1}") for worker in range(60) for q in range(3) if (worker + q) % 5]
    rows = {"worker": [w for w, _ in there], "workplace": [w % 4 for w, _ in there], "quarter": [q for _, q in there]}
    places = {"workplace": [0, 1, 2, 3], "place": ["a", "a", "b", "c"]}
    return session(dc.read_histories(rows, quarters=quarters, workplaces=places, schema=dc.Schema(["place"], {})))


def with_kinds() -> dict[str, Any]:
    data = rows()
    h, y = np.arange(300) % 7, data["y"]
    return data | {"h": h, "v": y + h / 3, "b": (y > 1).astype(float), "n": np.clip(y.round(), 0, 6)}


def private(formula: str, bounds: tuple[float, float] = (-8, 8), **asked: Any) -> Any:
    """A released model, of which rows have a second factor, shares and counts."""
    public = ["x", "g", "h"]
    return dc.release_mixed(formula, with_kinds(), bounds=bounds, epsilon=40, public=public, **{"seed": 1} | asked)


def of_groups() -> Any:
    unit = dc.Groups("h", -8, 8, "y")
    account = dc.Account.open(None, dataset="d", unit=unit, budget=dc.Pure(40), seed=1)
    return private(FORMULA, account=account, seed=None)


def change_frames() -> tuple[dict[str, list], dict[str, list]]:
    rng = np.random.default_rng(5)
    panel: dict[str, list] = {"series": [], "t": [], "value": []}
    forecasts: dict[str, list] = {"series": [], "method": [], "t": [], "forecast": []}
    for name in range(40):
        level = 100 + np.cumsum(rng.normal(0, 4, 20))
        for t in range(19):
            panel["series"].append(f"s{name}"), panel["t"].append(t), panel["value"].append(level[t])
        for method, noise in (("near", 1.0), ("far", 6.0)):
            for t in (17, 18, 19):
                forecasts["series"].append(f"s{name}"), forecasts["method"].append(method)
                forecasts["t"].append(t), forecasts["forecast"].append(level[t] + rng.normal(0, noise))
    return panel, forecasts


POSTERIOR: dict[str, Any] = {"formula": "y ~ x", "epsilon": 40, "seed": 1}
MAKERS: dict[str, Callable[[], Any]] = {
    "mixed": lambda: dc.mixed(FORMULA, rows()),
    "plain shares": lambda: dc.mixed("b ~ x + (1 | g)", with_kinds(), family="binomial"),
    "plain events": lambda: dc.mixed("n ~ x + (1 | g)", with_kinds(), family="poisson"),
    "plain crossed": lambda: dc.mixed("v ~ x + (1 | g) + (1 | h)", with_kinds()),
    "bayes": lambda: dc.mixed(FORMULA, rows(), prior=dc.Prior()),
    "bayes crossed": lambda: dc.mixed("v ~ x + (1 | g) + (1 | h)", with_kinds(), prior=dc.Prior(), draws=400),
    "gibbs": lambda: dc.mixed(FORMULA, rows(), prior=dc.Prior(), method="gibbs", draws=400),
    "private mixed": lambda: dc.release_mixed(FORMULA, rows(), epsilon=40, bounds=(-8, 8), public=["x", "g"], seed=1),
    "slopes": lambda: private("y ~ x + (x | g)"),
    "crossed": lambda: private("v ~ x + (1 | g) + (1 | h)"),
    "shares": lambda: private("b ~ x + (1 | g)", (0, 1), family="binomial"),
    "rare events": lambda: private("n ~ x + (1 | g)", (0, 6), family="poisson"),
    "groups": of_groups,
    "draw": lambda: dc.release_draw(
        FORMULA, rows(), variances={"Residual": 1, "g": 1}, sd=3, public=["x", "g"], bounds=(-8, 8), seed=1
    ),
    "audited draw": lambda: dc.release_audited_draw(
        FORMULA, rows(), prior={"V": 1, "sd": 3}, audited=4, public=["x", "g"], bounds=(-8, 8), seed=1
    ),
    "sum": lambda: session().sum("pay", by=["place"]).release(epsilon=4),
    "mean": lambda: session().mean("pay", by=["place"]).release(epsilon=8),
    "flows": lambda: moved().flows("q2", by=["place"]).release(epsilon=4),
    "changes": lambda: moved().changes(["q1", "q2"], by=["place"]).release(epsilon=4),
    "count": lambda: session().count(by=["place", "sex"]).release(epsilon=4),
    "workload": lambda: session().marginals(["place"], ["place", "sex"]).release(epsilon=8),
    "table of a workload": lambda: made("workload")[1],
    "probability": lambda: dc.posterior_probability(data=rows(), coefficient="x", at=0.5, **POSTERIOR),
    "quantile": lambda: dc.posterior_quantile(data=rows(), coefficient="x", probability=0.5, **POSTERIOR),
    "interval": lambda: dc.posterior_interval(data=rows(), coefficient="x", **POSTERIOR),
    "objective": lambda: dc.objective_perturbation(
        "y ~ x", rows(), bounds=(-8, 8), norm=2, penalty=1, epsilon=4, seed=1
    ),
    "exceptions": lambda: dc.exception_report(*change_frames()),
    "comparison": lambda: dc.compare_large_changes(*change_frames(), cutoff=0.8, resamples=50),
}
PLAIN = ("mixed", "plain shares", "plain events", "plain crossed", "bayes", "bayes crossed", "gibbs")
RELEASES = [name for name in MAKERS if name not in (*PLAIN, "exceptions", "comparison")]
_made: dict[str, Any] = {}


def made(name: str) -> Any:
    if name not in _made:
        _made[name] = MAKERS[name]()
    return _made[name]


@pytest.mark.parametrize("name", MAKERS)
def test_every_result_has_the_shape(name: str, tmp_path: Path) -> None:
    result = made(name)
    assert isinstance(result, Result)
    tidy = result.tidy()
    assert tidy.column_names == list(COLUMNS) and len(tidy) > 0
    assert [str(kind) for kind in tidy.schema.types] == ["string"] * 4 + ["double"] * 4 + ["string"]
    assert len(set(zip(*(tidy[key].to_pylist() for key in KEYS), strict=True))) == len(tidy)
    table = result.to_arrow()
    assert result.to_pandas().columns.tolist() == result.to_polars().columns == table.column_names
    assert pyarrow.parquet.read_table(result.save(tmp_path / "r.parquet")).equals(table)
    assert pyarrow.csv.read_csv(result.save(tmp_path / "r.csv")).column_names == table.column_names
    with zipfile.ZipFile(result.save(tmp_path / "r.xlsx")) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert sheet.count("<row ") == len(table) + 1 and "<f>" not in sheet
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.parquet", "r.xlsx"]
    html = result._repr_html_()
    shown = len(result.flagged) if name == "exceptions" else min(len(table), 10)
    assert html.count("<tr>") == shown + 1 and " at 0x" not in html
    assert len(repr(result)) <= 200 and "\n" not in repr(result) and " at 0x" not in repr(result), repr(result)


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_carries_its_promise(name: str, tmp_path: Path) -> None:
    release = made(name)
    assert isinstance(release.guarantee, dc.Guarantee)
    assert release.entry is not None and release.name
    assert release.check.guarantee.loss == release.guarantee.loss and release.check.affordable
    assert len(str(release.check.expected)) > 20 and pickle.loads(pickle.dumps(release.check)) is not None
    assert "NOT PRIVATE" in release._repr_html_()
    told = pyarrow.parquet.read_schema(release.save(tmp_path / "r.parquet")).metadata
    assert b"NOT PRIVATE" in b"".join(told.values())


def test_tables_of_one_release_are_a_tuple_and_one_table() -> None:
    found = made("workload")
    first, second = found
    assert isinstance(found, tuple) and [first, second] == [*found]
    table = found.to_arrow()
    assert table["table"].to_pylist() == ["place"] * len(first.to_arrow()) + ["place, sex"] * len(second.to_arrow())
    assert table["sex"].to_pylist()[: len(first.to_arrow())] == [None] * len(first.to_arrow())
    assert table["count"].to_pylist() == [*first.counts.ravel(), *second.counts.ravel()]
    assert found.entry == first.entry and set(first.guarantee.notes) <= set(found.guarantee.notes)


def test_what_is_estimated_has_its_own_word() -> None:
    kinds = {"count": "count", "sum": "sum", "mean": "mean", "flows": "flow", "changes": "change", "workload": "count"}
    assert {name: made(name).tidy()["effect"].to_pylist()[0] for name in kinds} == kinds


def test_private_plain_and_posterior_fits_join() -> None:
    plain, private, posterior = (made(name) for name in ("mixed", "private mixed", "bayes"))
    for levels in (False, True):
        tables = [fit.tidy(levels=levels) for fit in (plain, private, posterior)]
        frames = [pl.from_arrow(table).select(*KEYS, "estimate") for table in tables]
        joined = frames[0].join(frames[1], on=KEYS, nulls_equal=True)
        joined = joined.join(frames[2], on=KEYS, nulls_equal=True, suffix="_posterior")
        assert len(joined) == len(tables[0]) == len(tables[1]) == len(tables[2])
        estimates = joined.select(pl.col("^estimate.*$")).to_numpy()
        assert np.abs(estimates - estimates[:, :1]).max() < 1


@pytest.mark.parametrize(
    "names",
    [("plain shares", "shares"), ("plain events", "rare events"), ("plain crossed", "crossed", "bayes crossed")],
)
def test_fits_of_every_kind_join_with_the_effects_of_their_levels(names: tuple[str, ...]) -> None:
    fits = [made(name) for name in names]
    for levels in (False, True):
        keys = [{tuple(row[key] for key in KEYS) for row in fit.tidy(levels=levels).to_pylist()} for fit in fits]
        assert all(each == keys[0] for each in keys)
    assert all(fit.to_arrow().equals(fit.tidy(levels=True)) for fit in fits)
    for fit in fits:
        errors = [row["std_error"] for row in fit.tidy(levels=True).to_pylist() if row["effect"] == "random"]
        assert len(errors) == (19 if "crossed" in names else 12) and all(error > 0 for error in errors)


def test_intervals_are_those_of_95_per_cent() -> None:
    table = made("mixed").tidy(levels=True)
    width = np.array(table["upper"].to_pylist(), float) - np.array(table["lower"].to_pylist(), float)
    error = np.array(table["std_error"].to_pylist(), float)
    known = np.isfinite(error)
    assert known.sum() == 2 + 12
    np.testing.assert_allclose(width[known], 2 * 1.959963984540054 * error[known])
    law, row = made("bayes").coefficient("x"), made("bayes").tidy().to_pylist()[1]
    np.testing.assert_allclose([row["lower"], row["upper"]], law.quantile([0.025, 0.975]))


def test_a_number_that_is_none_is_null() -> None:
    table = tidy_table(effect="fixed", term=["a", "b"], estimate=[np.nan, 1.0], upper=[np.inf, 2.0])
    assert table["estimate"].to_pylist() == [None, 1.0] and table["upper"].to_pylist() == [None, 2.0]


def test_words_in_excel_stay_words(tmp_path: Path) -> None:
    class One(Result):
        def tidy(self) -> pa.Table:
            return tidy_table(effect="fixed", term=["=1+1", "https://a.example"], estimate=[1.0, 2.0])

    with zipfile.ZipFile(One().save(tmp_path / "r.xlsx")) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert "=1+1" in sheet and "<f>" not in sheet and "hyperlink" not in sheet


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = made("mixed")
    path = result.save(tmp_path / "r.csv")
    before = path.read_bytes()

    def broken(table: pa.Table, path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pyarrow.csv, "write_csv", broken)
    with pytest.raises(OSError, match="disk full"):
        result.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["r.csv"]


def test_an_ending_is_read_in_any_case(tmp_path: Path) -> None:
    """Before, r.CSV was refused."""
    result = made("mixed")
    for name in ("r.CSV", "r.Parquet", "r.XLSX"):
        plain = result.save(tmp_path / name.lower()).read_bytes()
        path = result.save(tmp_path / f"loud-{name}")
        assert path.name == f"loud-{name}" and path.read_bytes()[:4] == plain[:4]
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize("name", ["r.doc", "r", "nowhere/r.csv"])
def test_a_place_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("path")):
        made("mixed").save(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "ask"),
    [
        ("pandas", lambda result, folder: result.to_pandas()),
        ("polars", lambda result, folder: result.to_polars()),
        ("xlsxwriter", lambda result, folder: result.save(folder / "r.xlsx")),
    ],
)
def test_what_is_not_installed_is_named(module: str, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, check=about("extra")):
        ask(made("mixed"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("rows", "room"), [(20_000, 200_000), (10, 100)])
def test_a_full_disk_in_the_middle_of_an_excel_file_is_an_error_of_the_system(
    rows: int, room: int, tmp_path: Path
) -> None:
    """While rows are written, and when the file is closed: the writer has errors of its own kind for that."""
    table = pa.table({"a": np.random.default_rng(0).random(rows)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(OSError, check=lambda error: error.errno == errno.EFBIG):
            write_excel(table, tmp_path / "r.xlsx", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["r.xlsx"])
