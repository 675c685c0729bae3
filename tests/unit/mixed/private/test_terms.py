"""Random slopes and crossed factors in noisy sums: dense matrices, slopes, nests, fits without noise, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet import mixed
from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear.private import moments, release_mixed, terms
from discreet.models.linear.private.arrow import TermSums, evaluate_terms, sources_of_terms
from discreet.models.linear.private.noisy import evaluate, sources
from discreet.models.linear.private.public import public_design
from discreet.models.linear.private.sums import response_sums, units_of
from discreet.models.linear.private.term_estimation import _best, _shapes
from discreet.models.linear.private.term_release import term_sums
from discreet.noise.source import SeededSource
from discreet.words.errors import FitError, FormulaError
from faults_of import about

EXACT = 1e-8  # relative: matrices of some tens of columns in double precision
SIGMA2 = 0.7


def panel(rows: int = 240, groups: int = 7, kinds: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    g, h, x = rng.integers(0, groups, rows), rng.integers(0, kinds, rows), rng.uniform(-1, 2, rows)
    y = 4 + 0.5 * x + rng.normal(0, 0.5, groups)[g] + rng.normal(0, 0.4, groups)[g] * x
    y = y + rng.normal(0, 0.3, kinds)[h] + rng.normal(0, 0.3, kinds)[h] * x + rng.normal(0, 0.6, rows)
    y = y + rng.normal(0, 0.6, groups)[g // 3]
    return {
        "y": y,
        "x": x,
        "g": np.array([f"g{i}" for i in g]),
        "s": np.array([f"s{i // 3}" for i in g]),
        "h": np.array([f"h{i}" for i in h]),
    }


def drawn(formula: str, data: dict[str, Any], epsilon: float = 30) -> TermSums:
    """Noisy sums of a model, whose random terms are treated as any terms."""
    frame, model = open_frame(data, ordered=True), read_formula(formula)
    public = public_design(frame, model, any_terms=True)
    if public.others is None:
        own = terms.term_design(public.cells, public.design, public.kept)
        public = replace(public, others=own, terms=(), levels=(), n=np.empty(0))
    asked = release_mixed.ask(formula, epsilon=epsilon, bounds=(0, 10), public=["x", "g", "s", "h"], seed=1).request
    units = units_of(frame, public)
    mechanism = moments.mechanism_for(public, units, asked, None)
    exact = mechanism.exact(response_sums(frame, public, units, asked.scale), public)
    return term_sums(mechanism.draw(exact, SeededSource(3)), mechanism, public, asked)


FORMULAS = [
    "y ~ x + (1 + x | g)",
    "y ~ x + (1 + x || g) + (1 | h)",
    "y ~ x + (1 | g) + (1 + x | h)",
    "y ~ x + (1 + x | g) + (1 | h) + (1 | s)",
    "y ~ x + (1 | g) + (1 | s) + (1 | h)",
]


def correlated(sums: TermSums) -> TermSums:
    free = np.full(sum(place.width * (place.width - 1) // 2 for place in sums.places), 0.6)
    return replace(sums, shapes=_shapes(sums, free))


def dense(sums: TermSums, variances: np.ndarray) -> dict[str, Any]:
    """All matrices in full, columns of blocks first, level after level."""
    G, k, m = sums.ZB.shape
    K = np.zeros((G * k + m, G * k + m))
    for g in range(G):
        own = slice(g * k, (g + 1) * k)
        K[own, own], K[own, G * k :] = sums.ZZ[g], sums.ZB[g]
        K[G * k :, own] = sums.ZB[g].T
    K[G * k :, G * k :] = sums.BB
    drawn = np.append(np.arange(G * k), G * k + sums.drawn)
    T, T_border = sums.spread(sums.factors(variances))
    prior = np.zeros_like(K)
    for g in range(G):
        prior[g * k : (g + 1) * k, g * k : (g + 1) * k] = T @ T.T
    free = m - sums.fixed
    prior[G * k : G * k + free, G * k : G * k + free] = (T_border @ T_border.T)[:free, :free]
    noise = np.append(sums.ds.ravel(), sums.db)[drawn]
    t = np.append(sums.s.ravel(), sums.sb)
    C = K[drawn]
    V = SIGMA2 * K[np.ix_(drawn, drawn)] + np.diag(noise) + C @ prior @ C.T
    X = C[:, -sums.fixed :]
    inverse = np.linalg.inv(V)
    covariance = np.linalg.inv(X.T @ inverse @ X)
    P = inverse - inverse @ X @ covariance @ X.T @ inverse
    beta = covariance @ X.T @ inverse @ t[drawn]
    effects = prior @ C.T @ P @ t[drawn]
    logs = np.linalg.slogdet(V)[1] + np.linalg.slogdet(X.T @ inverse @ X)[1]
    # Errors of all effects and fixed effects together, and what the sum of squares falls short of.
    H = prior @ C.T @ P
    H[-sums.fixed :] = covariance @ X.T @ inverse
    D = H @ C - np.eye(len(K))  # fixed effects drop out of D
    errors = D @ prior @ D.T + H @ (SIGMA2 * K[np.ix_(drawn, drawn)] + np.diag(noise)) @ H.T
    return {
        "criterion": logs + t[drawn] @ P @ t[drawn],
        "beta": beta,
        "covariance": covariance,
        "effects": effects,
        "errors": errors,
        "lost": np.sum(K * errors),
        "map": covariance @ X.T @ inverse,
        "noise": noise,
        "K": K[np.ix_(drawn, drawn)],
    }


@pytest.mark.parametrize("formula", FORMULAS)
def test_everything_is_what_dense_matrices_give(formula: str) -> None:
    sums = correlated(drawn(formula, panel()))
    variances = np.linspace(0.05, 0.3, len(sums.coefficients))
    found, full = evaluate_terms(sums, sigma2=SIGMA2, variances=variances), dense(sums, variances)
    assert found.criterion == pytest.approx(full["criterion"], rel=EXACT)
    assert found.beta == pytest.approx(full["beta"], rel=EXACT)
    assert found.covariance == pytest.approx(full["covariance"], rel=EXACT, abs=1e-12)
    assert found.lost == pytest.approx(full["lost"], rel=EXACT)
    G, k, _ = sums.ZB.shape
    for at, (term, column) in enumerate(sums.coefficients):
        place = sums.places[term]
        start = place.start + column + (0 if place.in_blocks else G * k)
        own = start + (k if place.in_blocks else place.width) * np.arange(place.levels)
        assert found.effects[at] == pytest.approx(full["effects"][own], rel=1e-6, abs=1e-10)
        assert found.effect_variances[at] == pytest.approx(np.diag(full["errors"])[own], rel=1e-6)
    parts = sources_of_terms(sums, sigma2=SIGMA2, variances=variances)
    assert parts.noise == pytest.approx(full["map"] * full["noise"] @ full["map"].T, rel=1e-6, abs=1e-12)
    assert parts.residuals == pytest.approx(SIGMA2 * full["map"] @ full["K"] @ full["map"].T, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("formula", FORMULAS)
def test_slopes_of_the_criterion_are_its_derivatives(formula: str) -> None:
    sums = correlated(drawn(formula, panel()))
    variances = np.linspace(0.05, 0.3, len(sums.coefficients))
    at, h = evaluate_terms(sums, sigma2=SIGMA2, variances=variances), 1e-5
    for i in range(len(variances)):
        near = [
            np.where(np.arange(len(variances)) == i, v * (1 + s * h), v) for v, s in ((variances, 1), (variances, -1))
        ]
        up, down = (evaluate_terms(sums, sigma2=SIGMA2, variances=v).criterion for v in near)
        assert at.slopes[i] == pytest.approx((up - down) / (2 * h * variances[i]), rel=1e-4, abs=1e-3)


def test_the_search_ends_where_the_criterion_is_flat_in_correlations_too() -> None:
    sums = drawn(FORMULAS[0], panel(2000, 40), epsilon=1000)
    logs, free = _best(sums, 0.36, 5.0, np.log(np.full(2, 0.3)), np.zeros(1))

    def value(free: float) -> float:
        shapes = _shapes(sums, np.array([free]))
        doubt = -2 * sum(np.log(np.diag(shape)).sum() for shape in shapes)
        at = evaluate_terms(replace(sums, shapes=shapes), sigma2=0.36, variances=np.exp(2 * logs))
        return at.criterion + float(doubt)

    assert value(free[0]) < min(value(free[0] + 0.05), value(free[0] - 0.05))


def test_nested_intercepts_are_what_the_tree_gives() -> None:
    """The same sums with the same noise, once by the nest and once as any terms."""
    data, formula = panel(), "y ~ x + (1 | s) + (1 | g)"
    general = drawn(formula, data)
    frame, model = open_frame(data, ordered=True), read_formula(formula)
    public = public_design(frame, model)
    asked = release_mixed.ask(formula, epsilon=30, bounds=(0, 10), public=["x", "g", "s"], seed=1).request
    mechanism = moments.mechanism_for(public, units_of(frame, public), asked, None)
    nested = moments.sums_of_nothing(mechanism, public, asked)
    block = next(place for place in general.places if place.in_blocks)
    nested = replace(
        nested,
        s=general.s[:, block.start],
        ds=general.ds[:, block.start],
        Xy=general.sb[-2:],
        dx=general.db[-2:],
        squares=general.squares,
    )
    variances = np.array([0.2, 0.1])  # g, s
    tree = evaluate(nested, sigma2=SIGMA2, variances=variances)
    any_terms = evaluate_terms(general, sigma2=SIGMA2, variances=variances[::-1])
    assert any_terms.criterion == pytest.approx(tree.criterion, rel=EXACT)
    assert any_terms.beta == pytest.approx(tree.beta, rel=EXACT)
    assert any_terms.covariance == pytest.approx(tree.covariance, rel=EXACT)
    assert any_terms.effects[1] == pytest.approx(tree.effects[0], rel=1e-6)
    one, other = (
        each(s, sigma2=SIGMA2, variances=v).noise
        for each, s, v in ((sources_of_terms, general, variances[::-1]), (sources, nested, variances))
    )
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("formula", [*FORMULAS[:4], "y ~ year + (1 + year | g)"])
def test_without_noise_worth_mention_it_is_the_fit_of_all_rows(formula: str) -> None:
    data = panel(4000, 30, 10)
    data["year"] = np.round(2000 + 4 * data["x"])
    fit = release_mixed(formula, data, epsilon=10_000, bounds=(-5, 15), public=["x", "g", "s", "h", "year"], seed=1)
    best = mixed(formula, data)
    assert np.abs(fit.fitted(data) - best.fitted).max() < 0.01
    for name, value in best.fixed.items():
        assert abs(fit.fixed[name] - value) < 0.02 * best.se[name]
        assert best.se[name] < (fit.se[name] or 0) * 1.01 < 1.6 * best.se[name]
    assert list(fit.variances) == list(best.variances)
    for term in fit.random:
        value = next(e.values[:, e.names.index(term.name)] for e in best.random[term.term : term.term + 1])
        assert term.values == pytest.approx(value, abs=0.02 * value.std())
    assert fit.tidy(levels=True).num_rows == best.tidy(levels=True).num_rows
    assert "Variances" in fit.summary() and fit.to_dict()["random"].keys() == fit.effects.keys()


@pytest.mark.full_size
def test_check_tells_the_errors_that_releases_have() -> None:
    """Standard errors of the check, at its own variances, against the deviations of releases."""
    rng, rows, groups = np.random.default_rng(8), 3000, 60
    g, x = rng.integers(0, groups, rows), rng.uniform(-1, 1, rows)
    design = {"x": x, "g": np.array([f"g{i}" for i in g])}
    asked: dict[str, Any] = {"epsilon": 20, "bounds": (0, 10), "public": ["x", "g"]}
    off = []
    for i in range(60):
        effects = rng.normal(0, 0.1, (groups, 2))
        y = 5 + effects[g, 0] + effects[g, 1] * x / np.sqrt((x**2).mean()) + rng.normal(0, 0.5, rows)
        fit = release_mixed("y ~ x + (1 + x | g)", {**design, "y": y}, seed=i, **asked)
        off.append([fit.fixed["(Intercept)"] - 5, fit.fixed["x"]])
    check = release_mixed.check("y ~ x + (1 + x | g)", {**design, "y": y}, **asked).expected
    assert np.std(off, axis=0) == pytest.approx(check.error, rel=0.25)
    assert np.std(off, axis=0) * 0.6 != pytest.approx(check.error, rel=0.25)
    assert [each.group for each in check.groups] == ["g: (Intercept)"] * 3


def test_what_is_too_large_or_of_another_method_is_refused_before_a_response_is_read() -> None:
    rng = np.random.default_rng(0)
    rows = 30_000
    wide = {
        "y": np.zeros(rows),
        "a": np.array([f"a{i}" for i in rng.integers(0, 9000, rows)]),
        "b": np.array([f"b{i}" for i in rng.integers(0, 8000, rows)]),
    }
    with pytest.raises(FitError, check=about("formula")):
        release_mixed("y ~ 1 + (1 | a) + (1 | b)", wide, epsilon=1, bounds=(0, 1), public=["a", "b"])
    data = panel()
    for formula, method in (("y ~ x + (x | g)", "strict"), ("y ~ 1 + (1 | g) + (1 | h)", "paper")):
        with pytest.raises((FitError, FormulaError), check=about("formula")):
            release_mixed(formula, data, epsilon=1, bounds=(0, 9), public=["x", "g", "h"], method=method)


def test_sums_that_cost_more_than_they_tell_are_not_drawn_and_this_is_said_before_paying() -> None:
    """Few kinds with many rows are worth their share where many groups with few rows are not."""
    data = panel(4000, 400, 4)
    asked: dict[str, Any] = {"bounds": (0, 10), "public": ["x", "g", "h"]}
    formula = "y ~ x + (1 | g) + (1 | h)"
    told = str(release_mixed.check(formula, data, epsilon=1, **asked))
    assert "effects of g are not measured" in told and "effects of h are not measured" not in told
    fit = release_mixed(formula, data, epsilon=1, seed=1, **asked)
    assert {flag.group for flag in fit.flags if flag.word == "not measured"} == {"g", "Residual"}
    assert not fit.effects["g"].values.any() and fit.effects["h"].values.any()
    assert "not measured" not in str(release_mixed.check(formula, data, epsilon=50, **asked))


@pytest.mark.parametrize("unit", [1e-150, 1e-60, 1e-10, 1e14, 1e60, 1e80])
@pytest.mark.parametrize("split", [None, {"groups": "1/2", "fixed": "1/4", "squares": "1/4"}])
def test_slopes_of_columns_in_extreme_units_are_refused_before_paying(
    unit: float, split: dict[str, str] | None
) -> None:
    data = panel()
    asked: dict[str, Any] = {"epsilon": 4, "public": ["x", "g"], "bounds": (0, 9), "split": split, "seed": 1}
    with pytest.raises(FitError, check=about("formula", naming=("x",))):
        release_mixed.check("y ~ x + (x | g)", data | {"x": unit * data["x"]}, **asked)
    assert np.isfinite(release_mixed("y ~ x + (x | g)", data | {"x": 1e6 * data["x"]}, **asked).beta).all()
