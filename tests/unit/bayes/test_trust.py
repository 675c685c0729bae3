"""What answers from parts are worth: their ends hold what they say, and where they do not, a note says so.

Noise is seeded, so that nothing here depends on luck; docs/explanation/posterior-summaries.md has a larger table.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from discreet.models.bayes.conjugate import GPrior, Marginals, Parts, SemiConjugate
from discreet.models.bayes.halves import Shifted, corrects, drift, lost
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.partition import blocks, partition
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.bayes.within import in_parts
from lines_of_data import LINES

SLOPE = np.array([1])


def whole(data, prior=GPrior()):  # noqa: B008
    X = np.column_stack([np.ones(len(data["x"])), data["x"]])
    return prior.posterior(partition(X, data["y"], 1, np.random.default_rng(0)), SLOPE)


def draw(kind: str, rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    x, y = LINES[kind](rng, rows)
    return {"x": x, "y": y}


def test_ends_say_what_they_hold_and_when_not_to_trust_them(line) -> None:
    ask = {"epsilon": 3, "seed": 1}
    said = {
        "all rows' answer": [
            posterior_probability("y ~ x", line, "x", at=2.0, **ask),
            posterior_quantile("y ~ x", line, "x", probability=0.5, **ask),
        ],
        "noise alone": [
            posterior_probability("y ~ x", line, "x", at=2.0, method="-2 log p", **ask),
            posterior_probability("y ~ x", line, "x", at=2.0, calibration="paper", **ask),
            posterior_quantile("y ~ x", line, "x", probability=0.5, centre="zero", **ask),
        ],
    }
    for covers, answers in said.items():
        for answer in answers:
            assert re.search(rf"\(95 % for {covers}: \S+ to \S+\)", str(answer.value))
            assert answer.value.covers == covers and "if the model is right" in str(answer.value)
    assert "if the model is right" in str(posterior_interval("y ~ x", line, "x", **ask).value)


@pytest.mark.parametrize(("sets", "least"), [(20, 16), pytest.param(50, 44, marks=pytest.mark.full_size)])
@pytest.mark.parametrize("kind", [pytest.param("normal errors", marks=pytest.mark.full_size), "exponential errors"])
def test_ends_of_probabilities_and_quantiles_hold_the_answer_of_all_rows(kind: str, sets: int, least: int) -> None:
    """At large epsilons, where the noise is small beside what parts say otherwise than all rows."""
    rng = np.random.default_rng(5)
    hits = np.zeros(3)
    for seed in range(sets):
        data = draw(kind, rng, 3_000)
        middle, upper = (whole(data).quantile(np.array([q]))[0, 0] for q in (0.5, 0.841345))
        cuts = np.array([middle, upper])
        right = np.array([whole(data).cdf(np.array([cut]))[0, 0] for cut in cuts])
        ask = {"seed": seed, "partitions": 75}
        p = posterior_probability("y ~ x", data, "x", at=cuts, epsilon=16, **ask).value
        q = posterior_quantile("y ~ x", data, "x", probability=0.5, epsilon=8, **ask).value
        held = (np.array(p.low) <= right) & (right <= np.array(p.high))
        hits += [*held, q.low[0] <= middle <= q.high[0]]
    assert (hits >= least).all(), hits


@pytest.mark.parametrize("prior", [GPrior(), SemiConjugate()])
def test_halves_take_most_of_the_bias_away(prior) -> None:
    """A square taken for a line, 20,000 rows in 100 parts: posterior deviations between parts and all rows."""
    rng = np.random.default_rng(2)
    off = []
    for _ in range(8):
        data = draw("a square taken for a line", rng, 20_000)
        X = np.column_stack([np.ones(20_000), data["x"]])
        middle, upper = (whole(data, prior).quantile(np.array([q]))[0, 0] for q in (0.5, 0.841345))
        answers = [
            in_parts(
                *(prior, X, data["y"], 100, np.random.default_rng(1), SLOPE), inflated=True, corrected=corrected
            ).quantile(np.full(1, 0.5))
            for corrected in (False, True)
        ]
        off.append([(values.mean() - middle) / (upper - middle) for values in answers])
    before, after = np.abs(np.mean(off, axis=0))
    assert before > 4 and after < before / 3


def test_one_part_is_not_corrected_and_small_halves_correct_nothing() -> None:
    assert not corrects(1_000, 1, 2) and lost(1_000, 1, 2) == 0
    assert corrects(2_400, 100, 2) and not corrects(2_399, 100, 2)
    X, y = np.ones((2_300, 2)), np.ones(2_300)
    found = in_parts(GPrior(), X, y, 100, np.random.default_rng(0), SLOPE, inflated=True)
    assert not isinstance(found.posterior, Shifted) and found.count == 0


def test_a_half_that_cannot_be_used_shifts_nothing() -> None:
    """The one row with another x is in one half; the other half's line has no slope."""
    x, y = np.zeros(48), np.arange(48.0)
    x[7] = 1.0
    X = np.column_stack([np.ones(48), x])
    block, rows = blocks(X, y, 2, np.random.default_rng(0))

    def posterior(block: np.ndarray, rows: np.ndarray) -> Marginals:
        return GPrior().posterior(Parts.of(block, rows), SLOPE)

    assert not drift(posterior, posterior(block, rows), block, rows, 1).any()


def test_an_interval_follows_parts_that_scatter_more_widely() -> None:
    rng = np.random.default_rng(3)
    data = draw("unequal variances", rng, 20_000)
    middle, upper = (whole(data).quantile(np.array([q]))[0, 0] for q in (0.5, 0.841345))
    found = posterior_interval("y ~ x", data, "x", epsilon=50, seed=1, partitions=200).value
    assert found.scatter[0] / (upper - middle) == pytest.approx(1.5, abs=0.25)
    assert found.high[0] - found.location[0] > 1.3 * found.half_width[0]


@pytest.mark.parametrize("kind", LINES)
def test_notes_warn_of_a_wrong_line_and_not_of_a_right_one(kind: str) -> None:
    rng = np.random.default_rng(4)
    notes = [
        posterior_interval("y ~ x", draw(kind, rng, 20_000), "x", epsilon=2, seed=seed).value.notes for seed in range(6)
    ]
    doubted = [any("model in doubt" in note for note in each) for each in notes]
    if "taken for a line" in kind:
        assert all(doubted)
    elif kind != "unequal variances":  # where the model is wrong too, by a little
        assert not any(doubted)
    # What was known before anything was paid is said whatever the answers are.
    assert all(any("not to be trusted unless errors are near symmetric" in note for note in each) for each in notes)


def test_an_interval_is_as_wide_as_the_parts_scatter_where_the_model_says_less() -> None:
    """Errors that grow with x: the slope varies by twice what a model of one variance says, and ends follow that."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal(20_000)
    data = {"x": x, "y": 1 + 2 * x + np.abs(x) * np.exp(x / 2) * rng.standard_normal(len(x))}
    low, high = (whole(data).quantile(np.array([q]))[0][0] for q in (0.025, 0.975))
    found = posterior_interval("y ~ x", data, "x", epsilon=40, seed=1).value
    assert found.scatter[0] > 1.4 * (high - low) / (2 * 1.96)
    assert (found.high[0] - found.low[0]) / 2 > 1.9 * found.scatter[0]
