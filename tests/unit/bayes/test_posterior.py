"""The three private summaries: what they answer, what they promise, what they charge and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.models.bayes.clipped import allowed_for
from discreet.models.bayes.combination import LogProbabilities, Normality
from discreet.models.bayes.conjugate import Conjugate, GPrior, SemiConjugate
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.partition import partition
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.bayes.reach import covering
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Establishments, Rows
from discreet.release.account import Account
from discreet.words.errors import BudgetExceeded, FitError, FormulaError, Infeasible, PrivacyError
from faults_of import about

HUGE = 1000  # an epsilon at which noise is far below every tolerance here
CALLS = {
    "probability": lambda data, **more: posterior_probability("y ~ x", data, "x", at=2.0, **more),
    "quantile": lambda data, **more: posterior_quantile("y ~ x", data, "x", probability=0.5, **more),
    "interval": lambda data, **more: posterior_interval("y ~ x", data, "x", **more),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def full(data, q: float = 0.5, prior=GPrior()) -> tuple[float, float]:  # noqa: B008
    """Location and q-quantile of the slope given all rows."""
    X = np.column_stack([np.ones(len(data["x"])), data["x"]])
    posterior = prior.posterior(partition(X, data["y"], 1, np.random.default_rng(0)), np.array([1]))
    return tuple(float(posterior.quantile(np.array([p]))[0, 0]) for p in (0.5, q))


def test_normality_corrected_matches_the_full_posterior_where_the_thesis_does_not(line) -> None:
    _, upper = full(line, 0.975)
    answer = {
        calibration: [
            float(
                posterior_probability(
                    "y ~ x", line, "x", at=upper, epsilon=HUGE, partitions=300, calibration=calibration, seed=i
                ).value
            )
            for i in range(12)
        ]
        for calibration in ("tight", "paper")
    }
    # Phi(1.96 / sqrt 2) = 0.917: what the thesis's scale makes of 0.975. Parts and halves scatter by 0.4 deviations.
    assert np.mean(stats.norm.ppf(answer["tight"])) == pytest.approx(1.96, abs=0.35)
    assert np.mean(answer["paper"]) == pytest.approx(stats.norm.cdf(1.96 * np.sqrt(300 / 599)), abs=0.025)


def test_one_part_without_noise_is_the_posterior_itself(line) -> None:
    _, upper = full(line, 0.9)
    for method in ("normality", "-2 log p"):
        p = posterior_probability("y ~ x", line, "x", at=upper, epsilon=10**6, partitions=1, method=method, floor=1e-9)
        # Fisher's combination of one probability p is 1 - F(-2 log p), which is p.
        assert float(p.value) == pytest.approx(0.9, abs=0.001)


def test_combinations_are_those_of_normal_and_chi_squared_laws() -> None:
    p = np.array([0.2, 0.4, 0.0001])
    assert Normality("paper").exact(p) == pytest.approx(stats.norm.cdf(3**0.5 * stats.norm.ppf(p.mean())))
    assert Normality().exact(p) == pytest.approx(stats.norm.cdf(5**0.5 * stats.norm.ppf(p.mean())))
    clipped = np.maximum(p, 0.001)
    assert LogProbabilities().exact(p) == pytest.approx(stats.combine_pvalues(clipped, method="fisher").pvalue)


@pytest.mark.parametrize("prior", [GPrior(), Conjugate(), SemiConjugate()])
def test_quantiles_of_all_priors_match_the_full_posterior(line, prior) -> None:
    middle, upper = full(line, 0.975, prior)
    deviation = (upper - middle) / 1.96
    answers = [
        posterior_quantile(
            "y ~ x",
            line,
            ["x", "x"],
            probability=[0.5, 0.975],
            epsilon=HUGE,
            partitions=300,
            prior=prior,
            seed=seed,
        ).value.quantile
        for seed in range(3)
    ]
    # The parts' mean has (p + 1) M / n = 3 % more variance than the posterior: it scatters by 0.17 deviations. Each
    # answer has a centre of its own to mend its skewness with, so that two of them are apart by 0.05 more or less.
    assert all(low == pytest.approx(middle, abs=0.6 * deviation) for low, _ in answers)
    assert all(high - low == pytest.approx(1.96 * deviation, rel=0.12) for low, high in answers)
    assert np.mean([high - low for low, high in answers]) == pytest.approx(1.96 * deviation, rel=0.05)


def test_interval_is_the_full_posteriors_when_there_is_no_noise(line) -> None:
    middle, upper = full(line, 0.975)
    interval = posterior_interval("y ~ x", line, "x", epsilon=HUGE, partitions=300, seed=1).value
    assert interval.half_width[0] == pytest.approx(upper - middle, rel=0.06)
    assert interval.location[0] == pytest.approx(middle, abs=0.4 * (upper - middle))
    # The scatter of the parts is found to an eighth octave, from above; parts of 100 rows, of which a tenth may carry
    # the slope, add up to 12 % to the deviation. What skewed errors might do is allowed for on top.
    reach = interval.high[0] - interval.location[0] - allowed_for(300, 30_000, 10) * interval.scatter[0]
    assert 0.9 < reach / interval.half_width[0] < 1.3
    own = posterior_interval("y ~ x", line, "x", epsilon=HUGE, partitions=300, cover_noise=False, seed=1).value
    assert own.high[0] - own.location[0] == pytest.approx(own.half_width[0])


@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_covering_is_a_quantile_of_normal_plus_laplace(scale: float, level: float) -> None:
    from scipy.integrate import quad

    h = covering(float(stats.norm.ppf((1 + level) / 2)), scale, level)
    inside = quad(
        lambda z: stats.norm.pdf(z) * (stats.laplace.cdf((h - z) / scale) - stats.laplace.cdf((-h - z) / scale)),
        *(-8, 8),
        points=[-h, h] if h < 8 else None,
        limit=400,
    )[0]
    assert inside == pytest.approx(level, abs=1e-6)


@pytest.mark.parametrize(("sets", "least"), [(40, 31), pytest.param(100, 83, marks=pytest.mark.full_size)])
def test_intervals_cover_the_truth(sets: int, least: int) -> None:
    """Data sets at epsilon 2: coverage of 95 % intervals within five binomial deviations."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(sets):
        x = rng.normal(size=12_000)
        data = {"x": x, "y": 1 - 3 * x + rng.normal(size=12_000)}
        interval = posterior_interval("y ~ x", data, "x", epsilon=2, partitions=400, seed=int(rng.integers(1 << 30)))
        hits += interval.value.low[0] <= -3 <= interval.value.high[0]
    assert least <= hits <= sets


def test_several_questions_share_one_budget(line) -> None:
    account = Account.open(None, dataset="line", unit=AnyRow(), budget=Pure(3))
    released = posterior_probability("y ~ x", line, ["x", "(Intercept)"], at=[2.0, 1.0], epsilon=1, account=account)
    assert released.guarantee.loss == Pure(1) and account.remaining == Pure(2)
    assert released.value.coefficient == ("x", "(Intercept)")
    posterior_quantile("y ~ x", line, "x", probability=[0.25, 0.75], epsilon=2, account=account, partitions=700)
    assert account.remaining == Pure(0)
    with pytest.raises(BudgetExceeded):
        posterior_interval("y ~ x", line, "x", epsilon=1, account=account)


def test_an_uneven_split_moves_the_noise(line) -> None:
    split = {"x": "0.9", "(Intercept)": "0.1"}
    value = posterior_quantile(
        "y ~ x", line, ["x", "(Intercept)"], probability=0.5, epsilon=1, split=split, centre="zero", partitions=1000
    ).value
    noise = [(high - low) / width for low, high, width in zip(value.low, value.high, value.width, strict=True)]
    assert noise[1] / noise[0] == pytest.approx(9)


def test_guarantees_say_what_is_true(line) -> None:
    proved = posterior_probability("y ~ x", line, "x", at=2.0, epsilon="0.25").guarantee
    assert proved.basis == "proved" and proved.private and "one whole row" in str(proved)
    paper = posterior_probability("y ~ x", line, "x", at=2, epsilon=0.25, method="-2 log p", calibration="paper")
    assert paper.guarantee.basis == "as published"
    assert "Not private as published" in str(paper.guarantee)
    assert f"proves epsilon={paper.value.partitions * 0.25:g}" in str(paper.guarantee)
    seeded = posterior_interval("y ~ x", line, "x", epsilon=3, seed=1).guarantee
    assert not seeded.private and "NOT PRIVATE" in str(seeded)


@each_call
def test_a_seed_reproduces_and_rows_of_a_response_are_protected_too(line, call) -> None:
    assert call(line, epsilon=3, seed=5).value == call(line, epsilon=3, seed=5).value
    account = Account.open(None, dataset="line", unit=Rows(-30, 30), budget=Pure(3))
    assert call(line, epsilon=3, account=account).guarantee.unit == Rows(-30, 30)
    wrong = Account.open(None, dataset="jobs", unit=Establishments("0.1"), budget=Pure(3))
    with pytest.raises(PrivacyError, check=about("account")):
        call(line, epsilon=3, account=wrong)
    with pytest.raises(PrivacyError, check=about("seed")):
        call(line, epsilon=3, account=account, seed=1)


@each_call
def test_more_parts_than_rows_allow_are_refused(line, call) -> None:
    for wrong in (10_001, 0, -3):
        with pytest.raises(FitError, check=about("partitions")):
            call(line, epsilon=3, partitions=wrong)
    with pytest.raises(FitError, check=about("formula")):
        call({name: column[:2] for name, column in line.items()}, epsilon=3)


@each_call
def test_bad_epsilons_priors_and_coefficients_are_refused_before_anything_is_charged(line, call) -> None:
    account = Account.open(None, dataset="line", unit=AnyRow(), budget=Pure(3))
    for wrong in (0, -1, "nan"):
        with pytest.raises(PrivacyError):
            call(line, epsilon=wrong, account=account)
    with pytest.raises(FitError, check=about("prior")):
        call(line, epsilon=3, account=account, prior=Conjugate(covariance=np.inf))
    with pytest.raises(PrivacyError, check=about("split")):
        call(line, epsilon=3, account=account, split={"x": 2})
    with pytest.raises(PrivacyError, check=about("split")):
        call(line, epsilon=3, account=account, split={"z": 1})
    assert account.remaining == Pure(3)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.2, 1.5, [0.5, 1.0]])
def test_probabilities_outside_0_1_are_refused(line, probability) -> None:
    with pytest.raises(PrivacyError, check=about("probability")):
        posterior_quantile("y ~ x", line, "x", probability=probability, epsilon=1)
    with pytest.raises(PrivacyError, check=about("level")) as refused:
        posterior_interval("y ~ x", line, "x", level=probability, epsilon=1)
    assert "level=" in str(refused.value) and "probability=" not in str(refused.value)


def test_stages_that_do_not_add_up_are_refused(line) -> None:
    ask = {"probability": 0.5, "epsilon": 0.9, "calibration": "paper"}
    right = posterior_quantile("y ~ x", line, "x", stages={"bounds": 0.4, "mean": 0.6}, **ask)
    assert right.guarantee.loss == Pure("0.9")
    sums: list[dict] = [{"bounds": 0.45, "mean": 0.45}, {"bounds": 0, "mean": 1}, {"bounds": 1.1, "mean": -0.1}]
    for wrong in (*sums, {"centre": 0.9}):
        with pytest.raises(PrivacyError) as refused:
            posterior_quantile("y ~ x", line, "x", stages=wrong, **ask)
        assert refused.value.about == "stages"


def test_other_bad_requests_name_what_is_possible(line) -> None:
    with pytest.raises(PrivacyError, check=about("method")):
        posterior_probability("y ~ x", line, "x", at=2.0, epsilon=1, method="magic")
    with pytest.raises(PrivacyError, check=about("floor")):
        posterior_probability("y ~ x", line, "x", at=2.0, epsilon=1, method="-2 log p", floor=0)
    with pytest.raises(PrivacyError, check=about("coefficient")):
        posterior_probability("y ~ x", line, "x", at=np.nan, epsilon=1)
    with pytest.raises(PrivacyError, check=about("coefficient")):
        posterior_probability("y ~ x", line, ["x", "(Intercept)"], at=[1.0, 2.0, 3.0], epsilon=1)
    with pytest.raises(FormulaError, check=about("coefficient")):
        posterior_probability("y ~ x", line, "z", at=1.0, epsilon=1)
    with pytest.raises(Infeasible, check=about("epsilon")):
        posterior_quantile("y ~ x", line, "x", probability=0.5, epsilon=0.1, partitions=100)
    with pytest.raises(TypeError, match="2 answers"):
        float(posterior_probability("y ~ x", line, "x", at=[1.0, 2.0], epsilon=1).value)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ scale(x)",
        "y ~ center(x)",
        "y ~ poly(x, 2)",
        "y ~ ns(x, df=3)",
        "y ~ log_size(x)",
        "scale(y) ~ x",
        "y ~ x + (1 | x)",
    ],
)
def test_formulas_that_learn_from_all_rows_are_refused(line, formula: str) -> None:
    with pytest.raises(FormulaError):
        posterior_probability(formula, line, "x", at=1.0, epsilon=1)


def test_a_formula_error_shows_the_formula_as_it_was_written(line) -> None:
    with pytest.raises(FormulaError, check=about("formula")):
        posterior_probability("y ~ x + f(", line, "x", at=1.0, epsilon=1)


def test_categories_and_interactions_become_a_design() -> None:
    rng = np.random.default_rng(0)
    sector = rng.choice(["a", "b", "c"], size=9000)
    x = rng.normal(size=9000)
    data = {"x": x, "sector": sector, "y": 2 * x + (sector == "b") * (3 + x) + rng.normal(size=9000)}
    found = posterior_quantile(
        "y ~ x * sector", data, ["sectorb", "x:sectorb"], public=["sector"], probability=0.5, epsilon=HUGE
    ).value
    assert found.quantile == pytest.approx((3.0, 1.0), abs=0.15)


def test_by_default_parts_balance_noise_and_bias(line) -> None:
    parts = {e: posterior_probability("y ~ x", line, "x", at=2.0, epsilon=e).value.partitions for e in (0.25, 2, 20)}
    # A fifth of epsilon looks at the model.
    assert parts == {e: int(np.cbrt(4 * np.pi * 3e4 / (0.22 * 3 * 0.8 * e) ** 2)) for e in (0.25, 2, 20)}
    wide = {"x": line["x"][:900], "y": line["y"][:900]}  # at most n / (10 (p + 1)) parts, of 30 rows
    assert posterior_probability("y ~ x", wide, "x", at=2.0, epsilon=0.1).value.partitions == 30
    for epsilon in (1, 2):  # two looks at a private centre have 95 / epsilon of their own, whatever is best
        interval = posterior_interval("y ~ x", line, "x", level=[0.5, 0.9], epsilon=epsilon).value
        assert interval.partitions >= 95 / (epsilon / 2 * 0.3)


def test_partition_is_disjoint_complete_and_even() -> None:
    X, y = np.arange(23.0)[:, None], np.arange(23.0)
    parts = partition(X, y, 5, np.random.default_rng(0))
    assert sorted(parts.rows) == [4, 4, 5, 5, 5]
    # R'R has the sums of squares of each part: together those of all rows.
    assert (parts.factor[:, 0, 0] ** 2).sum() == pytest.approx((y**2).sum())
