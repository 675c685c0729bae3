"""Effects that go with the sizes of their groups: seen in what is released, said first, and mended by a column."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError, FormulaError
from discreet.lmm import fit_blocks, mixed
from discreet.lmm.private import informative, notes, release_mixed
from discreet.report.release import FLAGS

PLAIN, SIZED = "y ~ x + (1 | g)", "y ~ x + log_size(g) + (1 | g)"
WORDS = {"informative sizes", "sizes not ruled out"}
Data = dict[str, np.ndarray]


def grouped(together: float, seed: int, *, groups: int = 2_400, rows: int = 31_000, unequal: float = 0.9) -> Data:
    rng = np.random.default_rng(seed)
    size = np.exp(unequal * rng.normal(size=groups))
    n = np.maximum(1, np.round(size / size.sum() * rows)).astype(int)
    log = np.log(n) - np.log(n).mean()
    u = together * log / max(log.std(), 1e-9) + np.sqrt(1 - together**2) * rng.normal(size=groups)
    g = np.repeat(np.arange(groups), n)
    x = rng.normal(size=len(g))
    return {"y": 5 + 0.5 * x + u[g] + rng.normal(0, 2, len(g)), "x": x, "g": g}


def released(formula: str, data: Any, **asked: Any) -> Any:
    return release_mixed(formula, data, **{"epsilon": 1, "public": ["x", "g"], "bounds": (-10, 20), **asked})


def holds(private: Any, fit: Any) -> bool:
    name = "(Intercept)"
    return abs(private.fixed[name] - fit.fixed[name]) < 1.96 * private.se[name]


def words(private: Any, name: str) -> set[str]:
    return {flag.word for flag in private.flags if flag.term == name}


def study(together: float, epsilon: float, sets: int) -> tuple[int, int, int, int]:
    """Sets whose interval holds the fit without noise; that are flagged, as informative; that hold with the size."""
    plain = flagged = informative = mended = 0
    for seed in range(sets):
        data = grouped(together, seed)
        private = released(PLAIN, data, epsilon=epsilon, seed=seed)
        plain += holds(private, mixed(PLAIN, data))
        flagged += bool(words(private, "(Intercept)") & WORDS)
        informative += "informative sizes" in words(private, "(Intercept)")
        assert not words(private, "x")
        private = released(SIZED, data, epsilon=epsilon, seed=seed)
        mended += holds(private, mixed(SIZED, data))
        assert not any(flag.word in WORDS for flag in private.flags)
    return plain, flagged, informative, mended


def test_an_intercept_that_sizes_move_is_flagged_and_the_size_mends_it() -> None:
    data = grouped(0.24, 0)
    sizes = np.bincount(data["g"])
    means = np.bincount(data["g"], data["y"]) / sizes
    assert 0.1 < np.corrcoef(means, sizes)[0, 1] < 0.3
    plain, flagged, _, mended = study(0.24, 1, 3)
    assert (plain, flagged, mended) == (0, 3, 3)
    assert study(0.24, 5, 1)[1:] == (1, 1, 1)


@pytest.mark.full_size
def test_the_table_of_the_page() -> None:
    found = {asked: study(*asked, 12) for asked in ((0.24, 1), (0.24, 5), (0, 1), (0, 5))}
    assert found == {
        (0.24, 1): (0, 12, 8, 12),
        (0.24, 5): (1, 12, 12, 12),
        (0, 1): (11, 12, 0, 12),
        (0, 5): (12, 12, 2, 12),
    }


def test_where_it_cannot_matter_nothing_is_flagged() -> None:
    """Equal sizes; no groups; a release without much noise of effects that do not go with sizes."""
    for together in (0.0, 0.24):
        fit = released(PLAIN, grouped(together, 1, groups=200, rows=20_000, unequal=0.0), seed=1)
        assert not any(flag.word in WORDS for flag in fit.flags)
    data = grouped(0.24, 1, groups=100, rows=5_000)
    assert not any(flag.word in WORDS for flag in released("y ~ x", data, seed=1).flags)
    sure = released(PLAIN, grouped(0.0, 1, groups=100, rows=5_000), epsilon=10_000, seed=1)
    assert not any(flag.word in WORDS for flag in sure.flags)


def test_every_word_of_a_flag_is_explained_in_reports() -> None:
    source = "".join(inspect.getsource(module) for module in (informative, notes))
    used = set(re.findall(r'(?:word = |Flag\([^)]*?, )"([a-z ]+)"(?=, note|\n)', source)) | WORDS
    assert used | {"clipped"} == set(FLAGS)


def test_it_is_told_first_and_beside_the_estimate() -> None:
    fit = released(PLAIN, grouped(0.5, 2), epsilon=5, seed=2)
    flag = next(flag for flag in fit.flags if flag.word == "informative sizes")
    assert flag.term == "(Intercept)" and "log_size(group)" in flag.note
    assert f"Warning: {flag.note}" in fit.summary().split("Variances:")[0]
    rows = {row["term"]: row["flag"] for row in fit.tidy().to_pylist() if row["effect"] == "fixed"}
    assert rows == {"(Intercept)": "informative sizes", "x": None}


def test_the_size_is_a_column_in_every_kind_of_frame(tmp_path: Any) -> None:
    data = grouped(0.24, 3, groups=60, rows=1_500)
    frames = [data, pa.table(data), pl.DataFrame(data), pl.LazyFrame(data), pa.table(data).to_pandas()]
    pq.write_table(pa.table(data), tmp_path / "rows.parquet")
    fits = [released(SIZED, frame, seed=1) for frame in [*frames, tmp_path / "rows.parquet"]]
    for fit in fits:
        assert fit.names == ("(Intercept)", "x", "log_size(g)")
        assert fit.beta == pytest.approx(fits[0].beta, rel=1e-9)
    by_hand = {**data, "size": np.log(np.bincount(data["g"])[data["g"]])}
    expected = mixed("y ~ x + size + (1 | g)", by_hand)
    assert mixed(SIZED, data).beta == pytest.approx(expected.beta, rel=1e-9)
    assert mixed(SIZED, data).release(epsilon=1, public=["x", "g"], bounds=(-10, 20), seed=1).beta == pytest.approx(
        fits[0].beta, rel=1e-9
    )
    new = {name: column[:5] for name, column in by_hand.items() if name != "y"}
    with pytest.raises(DataError, match="log_size"):
        fits[0].fitted({name: new[name] for name in ("x", "g")})
    assert len(fits[0].fitted({"x": new["x"], "g": new["g"], "log_size(g)": new["size"]})) == 5
    assert fit_blocks(SIZED, data, blocks=5, rng=1).counts()["blocks"] == 5
    with pytest.raises(FormulaError, match="lose their order"):
        mixed(SIZED, tmp_path / "rows.parquet")


def test_sizes_of_the_response_or_of_an_undeclared_column_are_refused() -> None:
    data = grouped(0.24, 3, groups=20, rows=200)
    for formula in ("y ~ log_size(y) + (1 | g)", "y ~ x:log_size(y)"):
        for method in ("moments", "strict", "paper"):
            with pytest.raises(FormulaError, match="'y' is the response"):
                released(formula, data, method=method)
        if "|" in formula:
            with pytest.raises(FormulaError, match="'y' is the response"):
                mixed(formula, data)
    with pytest.raises(Exception, match="'h' is in the formula and is not declared public"):
        released("y ~ log_size(h) + (1 | g)", {**data, "h": data["g"]})
    with pytest.raises(DataError, match="'h'"):
        released("y ~ log_size(h) + (1 | g)", data, public=["g", "h"])
