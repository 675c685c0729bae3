"""Effects that go with the sizes of their groups: seen in what is released, said first, and mended by a column."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.models.bayes import agreement, clipped, doubts, interval
from discreet.models.linear import fit_blocks, mixed
from discreet.models.linear.private import generalised, informative, notes, release_mixed, slopes
from discreet.models.linear.private.noisy import Level, NoisySums, evaluate
from discreet.report.flags import FLAGS
from discreet.words.caveats import FEW_SHAPES, NOT_MEASURED
from discreet.words.errors import DataError, FormulaError, PrivacyError
from faults_of import about

PLAIN, SIZED = "y ~ x + (1 | g)", "y ~ x + log_size(g) + (1 | g)"
CLASSED = "y ~ x + size_class(g) + (1 | g)"
WORD = "informative sizes"
Data = dict[str, np.ndarray]


SHAPES = {
    "linear": lambda log, rng: 0.24 * log,
    "parabola": lambda log, rng: 0.33 * (log**2 - 1),
    "largest": lambda log, rng: 1.1 * (log >= np.quantile(log, 0.95)),
    "step": lambda log, rng: 0.55 * (log >= np.median(log)),
    "random": lambda log, rng: rng.normal(0, 0.45, 100)[np.round(3 * (log - log.min())).astype(int)],
}
"""What effects of groups have in common, by their standardised log sizes, in deviations of effects."""


def grouped(together: float | str, seed: int, *, groups: int = 2_400, rows: int = 31_000, unequal: float = 0.9) -> Data:
    """Effects that correlate with log sizes, or go with them in one of the `SHAPES`."""
    rng = np.random.default_rng(seed)
    size = np.exp(unequal * rng.normal(size=groups))
    n = np.maximum(1, np.round(size / size.sum() * rows)).astype(int)
    log = np.log(n) - np.log(n).mean()
    log = log / max(log.std(), 1e-9)
    u = rng.normal(size=groups)
    common = SHAPES[together](log, rng) if isinstance(together, str) else together * log
    u = common + (u if isinstance(together, str) else np.sqrt(1 - together**2) * u)
    g = np.repeat(np.arange(groups), n)
    x = rng.normal(size=len(g))
    return {"y": 5 + 0.5 * x + u[g] + rng.normal(0, 2, len(g)), "x": x, "g": g}


def released(formula: str, data: Any, **asked: Any) -> Any:
    return release_mixed(formula, data, **{"epsilon": 1, "public": ["x", "g"], "bounds": (-10, 20), **asked})


def distances(private: Any, fit: Any) -> np.ndarray:
    """What all fixed effects but the slope are from the fit without noise, in standard errors."""
    return np.array([abs(private.fixed[k] - fit.fixed[k]) / private.se[k] for k in fit.fixed if k != "x"])


def joint(intervals: int) -> float:
    """Standard errors within which all of so many independent estimates lie in 95 % (Šidák)."""
    return NormalDist().inv_cdf((1 + 0.95 ** (1 / intervals)) / 2)


def told(private: Any) -> bool:
    unmeasured = any(flag.word == NOT_MEASURED for flag in private.flags)
    assert unmeasured or not any(flag.term == "x" for flag in private.flags if flag.word != slopes.WORD)
    return any(flag.word == WORD for flag in private.flags)


def study(formula: str, together: float | str, epsilon: float, sets: int) -> tuple[int, int, int]:
    """Sets whose intervals hold the fit without noise; that are told of sizes; that miss it and are not told.

    Classes have an interval each, so one of many may miss: a set with classes misses where it does jointly.
    """
    held = flagged = silent = 0
    for seed in range(sets):
        data = grouped(together, seed)
        private, fit = released(formula, data, epsilon=epsilon, seed=seed), mixed(formula, data)
        farthest, own = distances(private, fit).max(), len(fit.fixed) - 1
        held += bool(farthest < 1.96)
        flagged += told(private)
        silent += bool(farthest >= (joint(own) if formula == CLASSED else 1.96)) and not told(private)
    return held, flagged, silent


def test_an_interval_holds_the_fit_without_noise_though_effects_go_with_sizes() -> None:
    """Before, it held in 0 of 12 sets at epsilon 1 and in 1 of 12 at 5."""
    data = grouped(0.24, 0)
    sizes = np.bincount(data["g"])
    means = np.bincount(data["g"], data["y"]) / sizes
    assert 0.1 < np.corrcoef(means, sizes)[0, 1] < 0.3
    assert study(PLAIN, 0.24, 1, 3)[::2] == (3, 0)
    assert study(PLAIN, 0.24, 5, 2) == (2, 2, 0)
    assert study(SIZED, 0.24, 5, 2) == (2, 0, 0)


@pytest.mark.parametrize(
    ("shape", "formula"),
    [
        *((shape, SIZED) for shape in ("parabola", "largest")),
        *((shape, PLAIN) for shape in ("step", "random")),
        *(pytest.param(shape, PLAIN, marks=pytest.mark.full_size) for shape in ("parabola", "largest")),
        *(pytest.param(shape, SIZED, marks=pytest.mark.full_size) for shape in ("step", "random")),
    ],
)
def test_it_holds_whatever_effects_have_in_common_by_size(shape: str, formula: str) -> None:
    """Before, with log_size in the formula, 8 of 8 missed a parabola and 4 of 8 the largest groups, all in silence."""
    held, flagged, silent = study(formula, shape, 5, 3)
    assert held == 3 and silent == 0
    if formula == SIZED and shape in ("parabola", "largest"):
        assert flagged == 3


def test_classes_of_sizes_know_what_the_flag_told_of() -> None:
    for shape in ("parabola", "largest"):
        assert study(CLASSED, shape, 5, 2) == (2, 0, 0)


@pytest.mark.full_size
@pytest.mark.parametrize("formula", [PLAIN, SIZED, CLASSED])
@pytest.mark.parametrize("shape", [0.0, *SHAPES])
def test_the_table_of_the_page(shape: float | str, formula: str) -> None:
    found = [study(formula, shape, epsilon, 12) for epsilon in (1, 5)]
    print(shape, formula, found)
    assert all(silent <= 2 for _, _, silent in found)  # of twelve, as intervals of 95 % may
    assert found[1][0] >= 11


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", [1, 5])
def test_each_class_of_sizes_has_an_interval_that_holds_in_95_per_cent(epsilon: int) -> None:
    """All classes of 40 sets: a share of misses within three standard errors of 5 %, or fewer; none far out."""
    far = []
    for seed in range(40):
        data = grouped("parabola", 100 + seed)
        far.append(distances(released(CLASSED, data, epsilon=epsilon, seed=seed), mixed(CLASSED, data)))
    every = np.concatenate(far)
    # Estimates of one set share their intercept: what counts as one observation is a set.
    shares = np.array([np.mean(each >= 1.96) for each in far])
    print(epsilon, len(every), shares.mean(), every.max())
    assert shares.mean() < 0.05 + 3 * shares.std(ddof=1) / len(far) ** 0.5
    assert every.max() < joint(len(every)) + 1


def designed(groups: int, rows: int) -> Any:
    """A small design with unequal sizes, for estimates from simulated noisy sums."""
    data = grouped(0.0, 5, groups=groups, rows=rows)
    n = np.bincount(data["g"]).astype(float)
    Sx = np.column_stack([n, np.bincount(data["g"], data["x"])])
    X = np.column_stack([np.ones(len(data["g"])), data["x"]])
    return n, Sx, X.T @ X


def drawn(design: Any, together: float, noise: float, rng: np.random.Generator) -> NoisySums:
    """Noisy sums of a response with effects and residuals of variance 1, straight from their law."""
    n, Sx, XX = design
    log = (np.log(n) - np.log(n).mean()) / np.log(n).std()
    u = together * log + np.sqrt(1 - together**2) * rng.normal(size=len(n))
    e = np.sqrt(n) * rng.normal(size=len(n))
    s = n * u + e + noise * rng.laplace(size=len(n))
    slope = Sx[:, 1] @ u + rng.normal() * np.sqrt(XX[1, 1])
    Xy = np.array([n @ u + e.sum(), slope]) + noise * rng.laplace(size=2)
    ds, levels = 2 * noise**2, (Level.of(np.arange(len(n))),)
    return NoisySums(n, Sx, XX, levels, s, Xy, ds, np.full(2, ds), 2 * n.sum(), 1.0, n.sum(), 3.0)


def detections(together: float, noise: float, sets: int) -> float:
    """Share of sets in which the intercept was moved by more than chance."""
    rng, design = np.random.default_rng(11), designed(150, 3_000)
    found = 0
    for _ in range(sets):
        sums = drawn(design, together, noise, rng)
        at = evaluate(sums, sigma2=1.0, variances=np.ones(1))
        shift = informative.allowing_for_sizes(sums, at)[1]
        found += abs(shift.sign[0]) > informative.DETECTED * shift.chance[0, 0] ** 0.5
    return found / sets


def flags(together: float, noise: float, sets: int) -> float:
    """Share of sets in which the intercept is flagged as moved."""
    rng, design = np.random.default_rng(11), designed(150, 3_000)
    found = 0
    for _ in range(sets):
        sums = drawn(design, together, noise, rng)
        at, shift = informative.allowing_for_sizes(sums, evaluate(sums, sigma2=1.0, variances=np.ones(1)))
        notes = [flag.note for flag in informative.size_flags(shift, at, np.eye(2), ("a", "b")) if flag.term == "a"]
        found += any("was moved" in note for note in notes)
    return found / sets


@pytest.mark.parametrize("noise", [pytest.param(2.0, marks=pytest.mark.full_size), 20.0])
def test_the_level_of_the_flag_is_five_per_cent_and_it_finds_what_is_there(noise: float) -> None:
    """Before, a fixed effect was flagged in every set that had nothing to flag."""
    assert detections(0.0, noise, 400) < 0.075
    assert detections(0.5, noise, 100) > (0.95 if noise < 10 else 0.5)
    assert flags(0.0, noise, 150) < 0.1
    assert flags(0.5, noise, 50) == 0 if noise < 10 else flags(0.5, noise, 50) > 0.3  # little noise moves nothing far


def test_estimates_that_allow_for_sizes_are_those_of_a_model_with_a_prior() -> None:
    """Brute force: what effects have in common by size as random effects of their own, with dense matrices."""
    rng = np.random.default_rng(3)
    design = designed(30, 200)
    sums = drawn(design, 0.4, 5.0, rng)
    n, Sx, XX = design
    sigma2, v = 1.3, 0.7
    at = evaluate(sums, sigma2=sigma2, variances=np.array([v]))
    found, _ = informative.allowing_for_sizes(sums, at)
    B = informative._shapes(sums)[0]
    k = B.shape[1]
    means, weight = Sx / n[:, None], n / (sigma2 + v * n)
    A = (XX - means.T @ Sx) / sigma2 + means.T @ (weight[:, None] * means)
    fixed = np.linalg.solve(A, means.T @ (weight[:, None] * B))
    K = np.block([[np.diag(n), Sx], [Sx.T, XX]])
    AZ, t = K[:, : len(n)], np.append(sums.s, sums.Xy)
    F = np.column_stack([K[:, len(n) :], AZ @ B])
    V = sigma2 * K + v * AZ @ AZ.T + np.diag(np.append(np.full(len(n), sums.ds), sums.dx))
    C = np.linalg.inv(F.T @ np.linalg.solve(V, F) + np.diag([0, 0, *np.full(k, 1 / v)]))
    both = C @ F.T @ np.linalg.solve(V, t)
    T = np.column_stack([np.eye(2), fixed])
    assert k > 3 and found.beta == pytest.approx(T @ both, rel=1e-6)
    assert found.covariance == pytest.approx(T @ C @ T.T, rel=1e-6)
    quiet = v * weight[:, None] * (B - means @ fixed)
    D = np.column_stack([np.zeros((len(n), 2)), quiet]) - v * AZ.T @ np.linalg.solve(V, F)
    assert found.effects[0] == pytest.approx(v * AZ.T @ np.linalg.solve(V, t) + D @ both, rel=1e-5, abs=1e-8)
    errors = np.diag(v * np.eye(len(n)) - v**2 * AZ.T @ np.linalg.solve(V, AZ) + D @ C @ D.T)
    assert found.effect_variances[0] == pytest.approx(errors, rel=1e-5)


def left_over(common: np.ndarray, noise: float, design: Any) -> tuple[np.ndarray, np.ndarray]:
    """What estimates are off by, in their standard errors, and these over those of estimates that allow for nothing.

    At given variances estimates are linear in the sums: their mean is the estimate from the sums' means.
    """
    n, Sx, XX = design
    levels, at = (Level.of(np.arange(len(n))),), {"sigma2": 4.0, "variances": np.ones(1)}

    def with_noise(deviation: float) -> NoisySums:
        d = 2 * deviation**2
        means = (n * common, Sx.T @ common, d, np.full(len(XX), d))
        return NoisySums(n, Sx, XX, levels, *means, 5 * n.sum(), 1.0, n.sum(), 3.0)

    still, alone = (evaluate(with_noise(deviation), **at) for deviation in (1e-4, noise))
    found, _ = informative.allowing_for_sizes(with_noise(noise), alone)
    error = np.sqrt(np.diag(found.covariance))
    return (found.beta - still.beta) / error, error / np.sqrt(np.diag(alone.covariance))


@pytest.mark.parametrize("noise", [10.0, 20.0, 48.0, 100.0])
@pytest.mark.parametrize("shape", ["linear", "parabola", "largest", "step"])
def test_the_bias_that_is_left_is_small(shape: str, noise: float) -> None:
    """0.15 standard errors are three standard errors of the mean of 400 data sets.

    Before, the prior pulled a line in log size to zero, and 0.24 and 0.35 standard errors were left at the last two
    noises; a study found it at epsilon 2.
    """
    design = designed(150, 6_000)
    log = np.log(design[0])
    common = SHAPES[shape]((log - log.mean()) / log.std(), np.random.default_rng(1))
    off, wider = left_over(0.25 * (common - common.mean()) / common.std(), noise, design)
    assert abs(off[0]) < 0.15 and wider[0] < 2.3


def sums_of(design: Any, noise: float) -> NoisySums:
    n, Sx, XX = design
    d, levels = 2 * noise**2, (Level.of(np.arange(len(n))),)
    return NoisySums(n, Sx, XX, levels, 0 * n, np.zeros(len(XX)), d, np.full(len(XX), d), 0.0, 1.0, n.sum(), 3.0)


@pytest.mark.parametrize("noise", [10.0, 48.0])
@pytest.mark.parametrize("design", [(150, 6_000), (2_400, 31_000)])
def test_no_function_of_sizes_moves_an_estimate_further_than_is_told_before_paying(
    design: tuple[int, int], noise: float
) -> None:
    """The worst one does, so that the bound is no larger than need be."""
    known = designed(*design)
    n = known[0]
    left = informative.left_by_other_shapes(sums_of(known, noise), sigma2=4.0, variances=np.ones(1))
    error = np.sqrt(np.diag(informative.allowing_for_sizes(sums_of(known, noise), evaluate(
        sums_of(known, noise), sigma2=4.0, variances=np.ones(1)))[0].covariance))  # fmt: skip
    bound = np.linalg.norm(left, axis=1) / error
    among = np.searchsorted(np.quantile(n, np.arange(1, 20) / 20), n)
    log, share = (np.log(n) - np.log(n).mean()) / np.log(n).std(), np.bincount(among)[np.unique(among)] / len(n)
    steps = (among[:, None] == np.unique(among)) / np.sqrt(share)
    rng = np.random.default_rng(2)
    tried = [np.sin(3 * log), 1.0 * (np.abs(log) < 0.5), *(steps @ rng.normal(size=(5, len(share))).T).T]
    tried = [np.bincount(among, shape)[among] / np.bincount(among)[among] for shape in tried]
    farthest = [steps @ row / np.linalg.norm(row) for row in left]
    for k, shape in enumerate([*tried, *farthest]):
        common = 0.25 * (shape - shape.mean()) / shape.std()
        off = np.abs(left_over(common, noise, known)[0])
        assert (off <= 1.01 * bound).all(), k
        if k >= len(tried):
            assert off[k - len(tried)] == pytest.approx(bound[k - len(tried)], rel=0.02)


def test_what_other_shapes_may_move_is_told_before_paying_and_mended_by_classes() -> None:
    """With log_size at epsilon 1 a few of 12 sets miss; check says why, and which column takes care of it."""
    data = grouped("largest", 5)
    asked: Any = {"epsilon": 1, "public": ["x", "g"], "bounds": (-10, 20)}
    said = {formula: str(release_mixed.check(formula, data, **asked)) for formula in (PLAIN, SIZED, CLASSED)}
    assert all("nor whether effects go with sizes of groups" in told for told in said.values())
    assert [FEW_SHAPES in told for told in said.values()] == [True, True, False]
    assert re.search(r"\(Intercept\), log_size\(g\) may be off by up to 0\.[4-9] standard errors", said[SIZED])
    even = grouped(0.24, 1, groups=200, rows=20_000, unequal=0.0)
    told = str(release_mixed.check(PLAIN, even, **asked))
    assert FEW_SHAPES not in told and "would be flagged" in told and "sizes" not in told


def test_the_largest_groups_leave_little_bias_beside_a_column_of_sizes() -> None:
    """Without a shape of their own 0.44 standard errors of the column were left."""
    n, Sx, XX = designed(2_400, 31_000)
    log = (np.log(n) - np.log(n).mean()) / np.log(n).std()
    sized = np.block([[XX, (Sx.T @ log)[:, None]], [Sx.T @ log, n @ log**2]])
    off, _ = left_over(1.1 * (log >= np.quantile(log, 0.95)), 10.0, (n, np.column_stack([Sx, n * log]), sized))
    assert np.abs(off[[0, 2]]).max() < 0.15


def test_where_noise_hides_whether_effects_go_with_sizes_one_word_says_so() -> None:
    """Before, a release that missed the fit without noise was flagged by a variance that was hardly seen, or not."""
    fit = released(SIZED, grouped("largest", 5), epsilon=1, seed=5)
    flags = {flag.term: flag.note for flag in fit.flags if flag.word == WORD}
    assert {*flags} == {"(Intercept)", "log_size(g)"} and all("noise hides whether" in note for note in flags.values())
    assert not told(released(SIZED, grouped(0.24, 0), epsilon=5, seed=0))


def test_shapes_are_what_the_fixed_part_leaves_of_functions_of_sizes() -> None:
    sums = drawn(designed(150, 3_000), 0.0, 5.0, np.random.default_rng(3))
    log = np.log(sums.n)
    free = informative._shapes(sums)[0]
    assert np.abs(free.T @ np.ones(len(log))).max() < 1e-9
    known = replace(
        sums,
        Sx=np.column_stack([sums.Sx, sums.n * log]),
        XX=np.block([[sums.XX, (sums.Sx.T @ log)[:, None]], [sums.Sx.T @ log, sums.n @ log**2]]),
    )
    left = informative._shapes(known)[0]
    assert free.shape[1] > 4  # a line, a parabola and two shares of the largest are four: classes of sizes are more
    assert 0 < left.shape[1] < free.shape[1]
    assert np.abs(left.T @ np.column_stack([np.ones(len(log)), log])).max() < 1e-9


def test_where_it_cannot_matter_nothing_is_flagged() -> None:
    """Equal sizes; no groups; a release without much noise of effects that do not go with sizes."""
    for together in (0.0, 0.24):
        fit = released(PLAIN, grouped(together, 1, groups=200, rows=20_000, unequal=0.0), seed=1)
        assert not any(flag.word == WORD for flag in fit.flags)
    data = grouped(0.24, 1, groups=100, rows=5_000)
    assert not any(flag.word == WORD for flag in released("y ~ x", data, seed=1).flags)
    sure = released(PLAIN, grouped(0.0, 1, groups=100, rows=5_000), epsilon=10_000, seed=1)
    assert not any(flag.word == WORD for flag in sure.flags)


def test_every_word_of_a_flag_is_explained_in_reports() -> None:
    source = "".join(inspect.getsource(module) for module in (informative, notes))
    used = set(re.findall(r'(?:word = |Flag\([^)]*?, )"([a-z ]+)"(?=, note|\n)', source)) | {WORD, notes.SMALL_BLOCKS}
    answers = "".join(inspect.getsource(module) for module in (agreement, clipped, doubts, interval))
    used |= set(re.findall(r'Doubt\(\s*"([a-z ]+)"', answers)) | {agreement.NOT_CHECKED}
    assert used | {"clipped", generalised.EMPTY, slopes.WORD} == set(FLAGS)


def test_it_is_told_first_and_beside_the_estimate() -> None:
    fit = released(PLAIN, grouped(0.5, 2), epsilon=5, seed=2)
    flag = next(flag for flag in fit.flags if flag.word == "informative sizes")
    assert flag.term == "(Intercept)" and "log_size(group)" in flag.note
    sized = released(SIZED, grouped("parabola", 2), epsilon=5, seed=2)
    assert all("size_class(group)" in flag.note for flag in sized.flags if flag.word == WORD) and told(sized)
    assert f"Warning: {flag.note}" in fit.summary().split("Variances:")[0]
    rows = {row["term"]: row["flag"] for row in fit.tidy().to_pylist() if row["effect"] == "fixed"}
    assert rows == {"(Intercept)": "informative sizes", "x": slopes.WORD}


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
    with pytest.raises(DataError, check=about("data")):
        fits[0].fitted({name: new[name] for name in ("x", "g")})
    assert len(fits[0].fitted({"x": new["x"], "g": new["g"], "log_size(g)": new["size"]})) == 5
    assert fit_blocks(SIZED, data, blocks=5, seed=1).counts()["blocks"] == 5
    with pytest.raises(FormulaError, check=about("formula")):
        mixed(SIZED, tmp_path / "rows.parquet")


def test_classes_of_sizes_are_a_factor_in_every_kind_of_frame(tmp_path: Any) -> None:
    """Sizes at, below and above powers of two; an engine's logarithm must not move one into another class."""
    sizes = np.array([1, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 65])
    g = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(1)
    data = {"y": rng.normal(size=len(sizes))[g] + rng.normal(size=len(g)), "x": rng.normal(size=len(g)), "g": g}
    pq.write_table(pa.table(data), tmp_path / "rows.parquet")
    frames = [data, pa.table(data), pl.DataFrame(data), pl.LazyFrame(data), pa.table(data).to_pandas()]
    by_hand = {**data, "class": (2 ** np.floor(np.log2(sizes + 0.5))).astype(int).astype(str)[g]}
    expected = released("y ~ x + class + (1 | g)", by_hand, public=["x", "g", "class"], seed=1)
    for frame in [*frames, tmp_path / "rows.parquet"]:
        fit = released(CLASSED, frame, seed=1)
        assert fit.names == tuple(name.replace("class", "size_class(g)") for name in expected.names)
        assert fit.beta == pytest.approx(expected.beta, rel=1e-9)
    assert mixed(CLASSED, data).beta == pytest.approx(mixed("y ~ x + class + (1 | g)", by_hand).beta, rel=1e-9)
    with pytest.raises(FormulaError, check=about("formula")):
        mixed(CLASSED, tmp_path / "rows.parquet")


def test_sizes_of_the_response_or_of_an_undeclared_column_are_refused() -> None:
    data = grouped(0.24, 3, groups=20, rows=200)
    for formula in ("y ~ log_size(y) + (1 | g)", "y ~ x:log_size(y)", "y ~ size_class(y) + (1 | g)"):
        for method in ("moments", "strict", "paper"):
            with pytest.raises(FormulaError, check=about("formula")):
                released(formula, data, method=method)
        if "|" in formula:
            with pytest.raises(FormulaError, check=about("formula")):
                mixed(formula, data)
    with pytest.raises(PrivacyError, check=about("public")):
        released("y ~ log_size(h) + (1 | g)", {**data, "h": data["g"]})
    with pytest.raises(DataError, check=about("formula")):
        released("y ~ log_size(h) + (1 | g)", data, public=["g", "h"])
