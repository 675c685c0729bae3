"""Every block must equal the ordinary fit of its own rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from discreet.models.linear import Blocks, MixedWarning, fit_blocks, mixed
from discreet.words.errors import FitError
from faults_of import about

FORMULA = "y ~ 0 + industry + t + (1 | g)"
SEED = 5


@pytest.fixture(scope="module")
def wide() -> dict[str, np.ndarray]:
    """Many small groups and a rare industry, so that blocks miss levels and some find no variance."""
    rng = np.random.default_rng(2)
    n, groups = 3000, 80
    g, k = rng.integers(0, groups, n), rng.choice(5, n, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    y = 1 + k + 0.02 * np.arange(n) % 7 + rng.normal(0, 0.4, groups)[g] + rng.normal(size=n)
    return {"y": y, "g": g, "industry": np.array([f"i{j}" for j in k]), "t": rng.integers(22, 102, n)}


@pytest.fixture(scope="module")
def blocks(wide: dict) -> Blocks:
    return fit_blocks(FORMULA, wide, blocks=40, seed=SEED)


def rows_of(wide: dict, block: int, size: int) -> dict[str, np.ndarray]:
    """The documented order: a permutation from the seed, cut into blocks."""
    order = np.random.default_rng(SEED).permutation(len(wide["y"]))[block * size : (block + 1) * size]
    return {name: values[order] for name, values in wide.items()}


def test_each_block_is_the_ordinary_fit_of_its_rows(wide: dict, blocks: Blocks) -> None:
    seen_zero = seen_missing = 0
    for block in range(0, 40, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)
            fit = mixed(FORMULA, rows_of(wide, block, 75))
        expected = np.array([fit.fixed.get(name, np.nan) for name in blocks.names])
        np.testing.assert_allclose(blocks.beta[block], expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(blocks.variances[block], list(fit.variances.values()), rtol=1e-6, atol=1e-9)
        own = blocks.block == block
        levels = [blocks.levels[level] for level in blocks.level[own]]
        assert sorted(levels) == sorted(fit.random[0].levels)
        theirs = dict(zip(fit.random[0].levels, fit.random[0].values[:, 0], strict=True))
        np.testing.assert_allclose(blocks.effect[own], [theirs[level] for level in levels], atol=1e-7)
        assert blocks.missing_levels[block] == 80 - len(levels)
        assert blocks.missing_columns[block] == np.isnan(expected).sum()
        assert blocks.zero_variance[block] == (fit.variances["g"] == 0)
        seen_zero += fit.variances["g"] == 0
        seen_missing += bool(np.isnan(expected).any())
    assert seen_zero
    assert seen_missing


def test_averages_leave_out_what_is_missing(blocks: Blocks) -> None:
    level = int(blocks.level[0])
    own = blocks.effect[blocks.level == level]
    assert blocks.presence[level] == len(own)
    assert blocks.mean_effects[level] == pytest.approx(own.mean())
    np.testing.assert_allclose(blocks.mean_beta, np.nanmean(blocks.beta, axis=0))


def test_counts(wide: dict, blocks: Blocks) -> None:
    assert blocks.size == 75
    assert blocks.unused == 0
    counts = blocks.counts()
    assert counts["blocks"] == len(blocks) == 40
    assert counts["not_estimable"] == 0
    assert counts["zero_variance"] == int((blocks.variances[:, 0] == 0).sum()) > 0
    assert fit_blocks(FORMULA, wide, blocks=7, seed=0).unused == 3000 - 7 * 428


def test_small_blocks_are_not_estimable_and_counted(wide: dict) -> None:
    """With 8 rows a block often has 8 groups, or as many columns as rows: lme4 refuses those too."""
    tiny = fit_blocks(FORMULA, wide, blocks=375, seed=1)
    lost = ~tiny.estimable
    assert 0 < lost.sum() < 375
    assert tiny.counts()["not_estimable"] == lost.sum()
    assert np.isnan(tiny.beta[lost]).all()
    assert np.isnan(tiny.variances[lost]).all()
    assert np.isfinite(tiny.variances[tiny.estimable]).all()
    assert not np.isin(tiny.block, np.flatnonzero(lost)).any()


def test_chunks_do_not_matter_and_seeds_do(wide: dict, blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, float]] = []
    monkeypatch.setattr("discreet.models.linear.blocks.CHUNK_NUMBERS", 2000)
    again = fit_blocks(FORMULA, wide, blocks=40, seed=SEED, progress=lambda *told: calls.append(told))
    np.testing.assert_allclose(again.beta, blocks.beta, rtol=1e-9)
    np.testing.assert_array_equal(again.block, blocks.block)
    assert len(calls) > 5
    assert calls[-1] == ("40 of 40 blocks", 1.0)
    assert not np.array_equal(fit_blocks(FORMULA, wide, blocks=40, seed=SEED + 1).beta, blocks.beta)


def test_one_block_is_the_whole_fit(wide: dict) -> None:
    fit, whole = mixed(FORMULA, wide), fit_blocks(FORMULA, wide, blocks=1, seed=0)
    np.testing.assert_allclose(whole.beta[0], fit.beta, rtol=1e-7)
    np.testing.assert_allclose(whole.mean_effects, fit.random[0].values[:, 0], atol=1e-8)


def test_requests_that_make_no_blocks(wide: dict) -> None:
    for blocks in (0, 2000, -3):
        with pytest.raises(FitError, check=about("blocks")):
            fit_blocks(FORMULA, wide, blocks=blocks, seed=0)
    with pytest.raises(FitError, check=about("formula")):
        fit_blocks("y ~ t + (t | g)", wide, blocks=4, seed=0)
    with pytest.raises(FitError, check=about("formula")):
        fit_blocks("y ~ t + u + (1 | g)", wide | {"u": wide["t"] * 2}, blocks=4, seed=0)
