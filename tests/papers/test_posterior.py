"""The posterior study on small data: the thesis's agreement of means, and where its constants fail.

The study's privacy noise has no seed; what is asserted about noisy answers has a dozen deviations of room.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.models.bayes.clipped import clipped_mean
from discreet.noise.source import SeededSource
from discreet.words.errors import DataError
from discreet_papers import posterior
from discreet_papers.posterior_kinds import FURTHER, KINDS, diamonds, unsaid
from faults_of import about

pytestmark = pytest.mark.walk  # a study from its beginning to its page


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "ROWS", 24_000)
        patch.setattr(posterior, "PARTS", 240)
        patch.setattr(posterior, "FEW_PARTS", 24)
        patch.setattr(posterior, "QUICK", 24)
        patch.setattr(posterior, "EPSILON", Fraction(1))
        patch.setattr(posterior, "QUICK_OF_A_KIND", 2)
        patch.setattr(posterior, "ROWS_OF_A_KIND", 8_000)
        patch.setattr(posterior, "EPSILONS", (2.0,))
        yield posterior.run(quick=True, seed=3)


def rows(study, key: str, **wanted):
    return [row for row in study.results[key] if all(row[name] == value for name, value in wanted.items())]


def test_every_key_of_the_results_is_there(study) -> None:
    needed = {"method", "at", "full", "partitioned", "private", "calibration"}
    assert all(needed <= row.keys() for row in study.results["probability"])
    assert all(needed | {"centre"} <= row.keys() for row in study.results["quantile"])
    assert {row["interval"] for row in study.results["coverage"]} >= {"full", "private, noise covered"}
    assert set(study.page.figures) == {f"figure-{n}" for n in ("3-1", "3-2", "3-3", "3-4", "4-1", "4-2")} | {"gain"}


@pytest.mark.parametrize("method", ["normality", "-2 log p"])
def test_means_of_full_partitioned_and_private_probabilities_agree(study, method: str) -> None:
    """Within the error of 24 data sets, as in Figures 3.1 and 3.3; the means follow a normal distribution function."""
    tight = rows(study, "probability", method=method, calibration="tight", partitions=240)
    full, partitioned, private = (np.array([row[name] for row in tight]) for name in ("full", "partitioned", "private"))
    assert np.abs(full - partitioned).max() < (0.06 if method == "normality" else 0.15)
    assert np.abs(full - private).max() < 0.3
    assert (np.diff(full) > 0).all() and (np.diff(partitioned) > 0).all()


def test_the_published_scale_draws_probabilities_to_one_half_and_the_corrected_one_does_not(study) -> None:
    paper, tight = (
        rows(study, "probability", method="normality", calibration=c, partitions=240) for c in ("paper", "tight")
    )
    for row, better in zip(paper, tight, strict=True):
        if 0.02 < row["full"] < 0.2:
            assert row["partitioned"] > row["full"] + 0.01
            assert abs(better["partitioned"] - better["full"]) < abs(row["partitioned"] - row["full"])
        if 0.8 < row["full"] < 0.98:
            assert row["partitioned"] < row["full"] - 0.01


def test_means_of_quantiles_agree_and_a_private_centre_errs_less(study) -> None:
    private, zero = (rows(study, "quantile", centre=centre)[:5] for centre in ("private", "zero"))  # the thesis's parts
    for row, other in zip(private, zero, strict=True):
        assert row["partitioned"] == pytest.approx(row["full"], abs=0.01)
        assert row["private"] == pytest.approx(row["full"], abs=0.05)
        assert row["rms_private"] < other["rms_private"]


def test_a_private_centre_has_at_least_three_times_less_noise_far_from_zero(study) -> None:
    gain = {row["away"]: row["times_less"] for row in study.results["noise"]}
    assert all(times >= 3 for away, times in gain.items() if away >= study.results["far"])
    assert max(gain.values()) > 20  # and it goes on growing
    assert gain[0.5] < 3  # near zero there is little to gain: the figure does not hide it


@pytest.mark.parametrize("parts", [300, 2000])
@pytest.mark.parametrize("location", [-50.0, 0.4 * 7.1, 7.0, 3000.0])
def test_the_gain_does_not_depend_on_luck(parts: int, location: float) -> None:
    """Same values, same epsilon, 20 seeds each: the worst private scale against the best around zero."""
    values = location + 0.4 * np.random.default_rng(0).normal(size=parts)
    scales = {}
    for centre, calibration in (("zero", "paper"), ("private", "tight")):
        plan = clipped_mean(centre, calibration, 1.0, None).sold(parts, Fraction(9, 10), count=1)
        draws = [plan.release(values, epsilon=Fraction(9, 10), source=SeededSource(seed)) for seed in range(20)]
        scales[centre] = [draw.scale for draw in draws]
    assert min(scales["zero"]) / max(scales["private"]) >= 3


def test_the_audit_in_the_study_refutes_the_published_noise_only(study) -> None:
    refuted = {name for name, verdict in study.results["audit"].items() if verdict["refuted"]}
    assert refuted == {"-2 log p, paper"}


def test_other_kinds_of_data_are_in_the_study_with_what_ends_hold_and_how_far_answers_are_off(study) -> None:
    """Every kind, coefficient and epsilon; a curve has its note in every summary."""
    found = study.results["kinds"]
    assert {row["data"] for row in found} == set(KINDS | FURTHER) and len(found) == 2 * len(KINDS | FURTHER)
    for summary in ("interval", "quantile", "probability_0.5", "probability_2"):
        assert all(0 <= row[key] <= 1 for row in found for key in (summary, f"{summary}_noted", f"{summary}_unnoted"))
        assert all(row[f"{summary}_noted"] for row in found if row["data"].startswith("a square"))
    assert all(row["quantile_bias_error"] > 0 and row["quantile_width"] > 0 for row in found)
    said = {(row["data"], row["coefficient"]): row["quantile_before"] for row in found}
    assert said["a public level of a fiftieth, lognormal errors", "x"] == "small parts"


def test_a_file_of_diamonds_is_a_population(tmp_path) -> None:
    rng = np.random.default_rng(0)
    carat, cut = rng.uniform(0.2, 3, 400).round(2), rng.choice(["Fair", "Ideal"], 400)
    lines = [f"{c},{k},{60 + c},{4000 * c:.0f}" for c, k in zip(carat, cut, strict=True)]
    (tmp_path / "diamonds.csv").write_text("\n".join(["carat,cut,depth,price", *lines]))
    real = diamonds(tmp_path / "diamonds.csv")
    draw, truth, straight, public = real["diamonds: price by carat"]
    assert not straight and not public and real["diamonds: price by public cut"].public
    x, y = draw(rng, 1_000)
    assert truth == pytest.approx((0, 4000), abs=1) and np.allclose(y, 4000 * x, atol=1)
    assert set(real["diamonds: price by cut = Fair (3 %)"][0](rng, 100)[0]) == {0.0, 1.0}
    (tmp_path / "other.csv").write_text("price,carat\n1,2\n")
    with pytest.raises(DataError, check=about("data")):
        diamonds(tmp_path / "other.csv")


def test_the_study_writes_itself_and_takes_no_data(study, tmp_path) -> None:
    assert (study.write(tmp_path / "out") / "report.html").exists()
    with pytest.raises(DataError, check=about("data")):
        posterior.run(data=tmp_path)


def test_what_is_not_said_before_is_a_fault_of_the_study() -> None:
    fine = {"data": "d", "coefficient": "x", "epsilon": 2.0, "straight": True}
    for summary in ("interval", "quantile", "probability_0.5", "probability_2"):
        fine |= {summary: 0.95, f"{summary}_error": 0.01, f"{summary}_before": ""}
    for summary in ("interval", "quantile"):
        fine |= {f"{summary}_bias": 0.5, f"{summary}_bias_error": 0.05, f"{summary}_allowed": 0.6}
    assert unsaid([fine]) == []
    wrong = fine | {"probability_2": 0.8, "quantile": 0.9, "interval_bias": -0.9}
    assert len(unsaid([wrong])) == 3
    assert unsaid([wrong | {"straight": False}]) == []
    assert len(unsaid([wrong | {"quantile_before": "small parts", "interval_before": "not checked"}])) == 1
