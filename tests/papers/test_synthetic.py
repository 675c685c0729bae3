"""The study of synthetic jobs: what it measures is measured right, and a file that keeps nothing is told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from discreet.words.errors import DataError
from discreet_papers import synthetic
from faults_of import about

pytestmark = pytest.mark.walk  # a study from its beginning to its page

FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def results() -> dict[str, list[dict[str, object]]]:
    return synthetic.run(quick=True, seed=1).to_dict()


def test_every_released_number_is_met_and_noise_is_all_that_moves_them(results: dict[str, list]) -> None:
    for row in results["met"]:
        asked = row["numbers with an interval"]
        missed, failed = asked - row["met"], asked - row["met by the data"]
        assert row["met"] > 200
        assert failed <= binom.isf(FALSE_ALARM, asked, 0.05)  # each interval holds with at least 95 %
        assert (
            row["sectors at odds"] <= missed <= failed
        )  # the data miss only what failed, so a file need not miss more
    at = {(row["epsilon"], row["margin"]): row["apart"] for row in results["margins"]}
    for by in ("county by sector", "sector by sex by education", "sector by age", "county", "sex by education"):
        assert at[200, by] < 0.002 < 0.1, by
        assert at[200, by] <= at[4, by]


def test_what_no_table_has_together_is_lost_at_any_epsilon(results: dict[str, list]) -> None:
    """Education goes with age in the data, and not in the file; so the study finds what a file lacks."""
    at = {(row["epsilon"], row["margin"]): row for row in results["margins"]}
    assert at[200, "age by education"]["kind"] == "across tables"
    assert at[200, "age by education"]["apart"] > 10 * at[200, "sex by education"]["apart"]
    assert at[200, "race"]["apart"] is None and at[200, "race"]["kind"] == "in no table"
    [kept, lost] = [row for row in results["regressions"] if row["epsilon"] == 200]
    assert abs(kept["synthetic"] - kept["data"]) < kept["error"]
    assert abs(lost["data"]) > 20 * lost["error"] and abs(lost["synthetic"]) < abs(lost["data"]) / 5


def test_distances_and_coefficients_are_those_of_a_textbook(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n = 400
    rows = {
        "workplace": np.repeat([1, 2, 3], [60, 300, 40]),
        "sector": rng.choice(["a", "b"], n),
        "sex": rng.choice(["female", "male"], n),
        "education": rng.choice(["bachelor or more", "high school"], n),
    }
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    pq.write_table(pa.table(rows), one)
    pq.write_table(pa.table(rows | {"sex": np.where(np.arange(n) < 100, "female", rows["sex"])}), other)
    men = int((rows["sex"][:100] == "male").sum())
    assert synthetic.apart(one, other, ("sex",)) == pytest.approx(men / n)
    assert synthetic.apart(one, other, ("age",)) is None
    assert synthetic.large(one) == pytest.approx(360 / 400)
    X = np.column_stack([rows["sector"] == "a", rows["sector"] == "b", rows["education"] == "bachelor or more"])
    y = (rows["sex"] == "female").astype(float)
    beta, rest, *_ = np.linalg.lstsq(X.astype(float), y, rcond=None)
    found = synthetic.slope(one, synthetic.REGRESSIONS[0])
    assert found[0] == pytest.approx(beta[2], abs=1e-12)
    variance = rest[0] / (n - 3) * np.linalg.inv(X.T.astype(float) @ X)[2, 2]
    assert found[1] == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_real_data_are_refused() -> None:
    with pytest.raises(DataError, check=about("data")):
        synthetic.run(data=Path("jobs"))
