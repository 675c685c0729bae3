"""The study of limits: rows of one point, the page, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from discreet.words.errors import DataError
from discreet_papers.limits import count_rows, kind_rows, pair_rows, run
from discreet_papers.limits_page import answers, page
from faults_of import about


def test_every_mechanism_is_at_or_above_its_limit() -> None:
    counts = count_rows("0.1", "4", growths=1, parts=8)
    for row in counts:
        for name, error in row["errors"].items():
            assert row["floor"] <= error * (1 + 1e-6), (row["size"], name)
            # From FAR on the programme is that of laws in proportion, which a table of single sizes may beat a little.
            # A lone establishment has no second one, which two-sizes makes use of.
            least = {
                "integers": 1.01,
                "in proportion": {"ladder": 1.04, "two-sizes": 1.05}.get(name, 1.01),
            }.get(row["programme"], math.inf)
            assert (row["unbiased optimum"] or 0) <= least * error, (row["size"], name)
    assert counts[0]["errors"]["ladder"] < 1.01 * counts[0]["unbiased optimum"]
    assert all(row["errors"]["two-sizes"] <= row["errors"]["ladder"] * (1 + 1e-9) for row in counts)
    assert counts[-1]["errors"]["two-sizes"] < 0.99 * counts[-1]["errors"]["ladder"]
    kinds = [row for strength in ("strong", "weak") for row in kind_rows("0.1", "4", 2, strength)]
    chosen = {row["definition"]: row for row in kinds if row["default"]}
    assert {row["mechanism"] for row in chosen.values()} == {"joint-rings", "weak-joint"}
    assert all(1 - 1e-6 <= row["ratio"] < 1.03 for row in chosen.values())
    pairs = pair_rows("0.1", "4", parts=8)
    assert pairs[-1]["second over largest"] == "0.00 to 0.47" and 0.95 < pairs[-1]["ratio"] < 0.98 < pairs[0]["ratio"]
    ours = [row["mechanism two-sizes"] for row in pairs]
    assert ours == sorted(ours, reverse=True) and ours[-1] == pytest.approx(pairs[-1]["two sizes"], rel=0.01)
    assert pairs[-1]["mechanism two-sizes"] < 0.99 * pairs[-1]["ladder"] == 0.99 * pairs[0]["mechanism two-sizes"]
    found = {"alphas": ["0.1"], "epsilons": ["4"], "one_count": counts, "two_sizes": pairs, "by_kind": kinds}
    assert len(answers(found)) == 1 and "fundamental" in answers(found)[0]
    assert "One count" in page(found).html()


def test_where_no_law_in_proportion_has_a_mean_there_is_no_limit_of_them() -> None:
    rows = count_rows("0.2", "0.5", growths=1, parts=4)
    assert rows[0]["optimum"] is not None and {row["optimum"] for row in rows if row["size"] >= 100} == {None}


def test_where_no_law_has_a_mean_two_sizes_have_none() -> None:
    assert pair_rows("0.2", "0.5", parts=4) == []


def test_it_needs_no_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("data")):
        run(data=tmp_path)
