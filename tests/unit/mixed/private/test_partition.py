"""Blocks: how many, which rows, and estimates of each block against fits of that block alone."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear import MixedWarning, mixed
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.partition import best_blocks, count_blocks, fit_partition, most_blocks, partition
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.words.errors import FitError, PrivacyError
from faults_of import about

Flows = dict[str, np.ndarray]
DOCUMENTS = 2_428_452


def opened(formula: str, data: Flows) -> tuple[ModelRows, PublicDesign]:
    frame = open_frame(data, ordered=True)
    public = public_design(frame, read_formula(formula, needs_random=False))
    return read_rows(frame, public.design.layout, public.learned)[0], public


def test_numbers_of_blocks_are_the_documents() -> None:
    found = {epsilon: best_blocks(DOCUMENTS, spread=2, epsilon=epsilon) for epsilon in (1.0, 4.6, 0.1)}
    assert found == {1.0: 8945, 4.6: 4858, 0.1: 22470}
    assert DOCUMENTS // found[1.0] == 271 == int((DOCUMENTS / 2) ** 0.4)
    assert most_blocks(DOCUMENTS) == 18067
    assert count_blocks("most", DOCUMENTS, spread=2, epsilon=1) == 18067
    assert count_blocks(16_000, DOCUMENTS, spread=2, epsilon=1) == 16_000
    assert DOCUMENTS // 16_000 == 151  # "n_k = 151 does not permit any estimation at all"


@pytest.mark.parametrize("blocks", [0, -3, 2000, "many", 2.5, True])
def test_impossible_numbers_of_blocks_are_refused(blocks: object) -> None:
    with pytest.raises(PrivacyError, check=about("blocks")):
        count_blocks(blocks, 3000, spread=2, epsilon=1)  # type: ignore[arg-type]


def test_no_rule_asks_for_blocks_that_are_refused() -> None:
    """Before, 2,000 rows at a width of 20,000 made 3,237 blocks, which nobody had asked for and which were refused."""
    for rows in (2, 3, 4, 10, 100, 2_000):
        for epsilon in (1e-6, 1.0, 1e6):
            for rule in ("optimal", "most"):
                found = count_blocks(rule, rows, spread=2, epsilon=epsilon)  # type: ignore[arg-type]
                assert 1 <= found <= max(most_blocks(rows), 1)
    with pytest.raises(PrivacyError, check=about("method")):
        count_blocks("optimal", 1, spread=2, epsilon=1)


@pytest.mark.parametrize("method", ["strict", "paper"])
def test_the_number_of_blocks_does_not_depend_on_the_unit_of_the_response(method: str) -> None:
    rng = np.random.default_rng(1)
    g, x = rng.integers(0, 20, 400), rng.normal(size=400)
    y, counts = 1 + 0.2 * rng.normal(size=400), set()
    for unit in (1e-3, 1.0, 1e3):
        asked = release_mixed(
            "y ~ x + (1 | g)",
            {"y": unit * y, "x": x, "g": g},
            epsilon=1,
            public=["x", "g"],
            bounds=(0, 2 * unit),
            method=method,  # type: ignore[arg-type]
            seed=1,
        )
        counts |= set(re.findall(r"blocks of ([\d,]+) rows", asked.flags[0].note))
    assert len(counts) == 1


def test_blocks_are_disjoint_and_of_one_size() -> None:
    chosen = partition(1000, 7, np.random.default_rng(1))
    assert chosen.shape == (7, 142) and len(np.unique(chosen)) == chosen.size
    assert not np.array_equal(chosen, partition(1000, 7, np.random.default_rng(2)))


def test_linear_blocks_are_least_squares(flows: Flows) -> None:
    rows, public = opened("rate ~ 0 + industry + quarter", flows)
    chosen = partition(3000, 40, np.random.default_rng(1))
    found = fit_partition(rows, public, chosen)
    for b in (0, 17, 39):
        at = chosen[b]
        x = flows["quarter"][at] - flows["quarter"].mean()
        X = np.column_stack([*(flows["industry"][at] == k for k in ("farms", "mines", "shops")), x]).astype(float)
        beta, rss, *_ = np.linalg.lstsq(X, flows["rate"][at], rcond=None)
        assert found.beta[b] == pytest.approx(beta, abs=1e-10)
        assert found.variances[b, 0] == pytest.approx(float(rss[0]) / (len(at) - 4))


@pytest.mark.parametrize("formula", ["rate ~ industry + (1 | county)", "rate ~ industry + (1 | county/season)"])
def test_mixed_blocks_are_fits_of_the_block(flows: Flows, formula: str) -> None:
    rows, public = opened(formula, flows)
    chosen = partition(3000, 5, np.random.default_rng(1))
    found = fit_partition(rows, public, chosen)
    for b in (3,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)
            fit = mixed(formula, {name: column[chosen[b]] for name, column in flows.items()})
        assert public.origin.beta(found.beta[b]) == pytest.approx(fit.beta, abs=2e-4)
        expected = [float(fit.random[i].covariance[0, 0]) for i in public.terms]
        assert found.variances[b] == pytest.approx([*expected, fit.sigma2], abs=2e-4)
        for (block, level, effect), term in zip(found.effects, public.terms, strict=True):
            names = public.design.random[term].grouping.labels
            of_block = {names[i]: u for i, u in zip(level[block == b], effect[block == b], strict=True)}
            values = dict(zip(fit.random[term].levels, fit.random[term].values[:, 0], strict=True))
            assert of_block == pytest.approx(values, abs=2e-3)


def test_missing_columns_and_levels_are_missing(flows: Flows) -> None:
    rows, public = opened("rate ~ 0 + industry + (1 | county)", flows)
    farms = np.flatnonzero(flows["industry"] != "shops")[:60]
    found = fit_partition(rows, public, farms[None])
    assert np.isnan(found.beta[0]).tolist() == [False, False, True]
    _, level, _ = found.effects[0]
    assert len(level) == len(np.unique(flows["county"][farms])) == len(np.unique(level))


def test_a_block_that_is_reproduced_exactly_is_not_estimable_and_spoils_no_other(flows: Flows) -> None:
    rows, public = opened("rate ~ 0 + industry + (1 | county)", flows)
    chosen = partition(3000, 6, np.random.default_rng(1))
    y = flows["rate"].copy()
    whole = fit_partition(rows, public, chosen)
    y[chosen[2]] = 0.0
    spoiled = ModelRows(rows.count, rows.codes, {**rows.values, public.model.response: y[:, None]})
    found = fit_partition(spoiled, public, chosen)
    others = np.arange(6) != 2
    assert found.beta[others] == pytest.approx(whole.beta[others], abs=1e-9)
    assert not found.estimable[2] or found.variances[2, -1] == pytest.approx(0, abs=1e-12)


def test_collinear_columns_are_refused(flows: Flows) -> None:
    rows, public = opened("rate ~ quarter + twice + (1 | county)", {**flows, "twice": 2 * flows["quarter"]})
    with pytest.raises(FitError, check=about("formula")):
        fit_partition(rows, public, partition(3000, 5, np.random.default_rng(1)))


def test_a_block_without_the_first_level_is_not_solved() -> None:
    """Its constant is the sum of the other levels; how far that shows depends on how rare one of them is."""
    data = {"y": np.arange(60.0) % 7, "h": ["a"] * 30 + ["b"] * 29 + ["c"]}
    frame, model = open_frame(data, ordered=True), read_formula("y ~ h", needs_random=False)
    public = public_design(frame, model)
    rows, _ = read_rows(frame, public.design.layout, public.learned)
    blocks = np.array([[*range(30)], [*range(30, 60)], [*range(0, 60, 2)]])
    assert fit_partition(rows, public, blocks).estimable.tolist() == [True, False, True]
