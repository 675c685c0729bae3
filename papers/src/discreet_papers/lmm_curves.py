"""Risk against utility: the correlation of a response with private fitted values, method by method.

By lags, by the paper's blocks and strictly. The correlation, and noisy sums, are in `discreet.utility.model_curves`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula, without_lags
from discreet.models.linear.private import paper, strict
from discreet.models.linear.private.lag_release import PreparedLags
from discreet.models.linear.private.lag_release import solve as solve_lags
from discreet.models.linear.private.offers import ModelQuestion
from discreet.models.linear.private.partition import best_blocks, fit_partition, partition
from discreet.models.linear.private.release import release_mixed
from discreet.utility.model_curves import Case, Trials, row

Split = tuple[str, dict[str, str]]
SPLITS: tuple[Split, ...] = tuple(
    (f"{fixed}/{groups}/2", {"fixed": f"{fixed}/100", "groups": f"{groups}/100", "trend": "2/100"})
    for fixed, groups in ((49, 49), (88, 10), (10, 88), (97, 1), (1, 97))
)
"""Figures 2 and 4 to 7 (3.3, 3.5 to 3.8): shares of beta, u and the trend in per cent."""

STATE_SPLITS: tuple[Split, ...] = (("49/24.5/24.5/2", {"fixed": "49/100", "groups": "49/100", "trend": "2/100"}),)
"""Figure 2's shares, with those of u divided between states and counties."""

NESTED_SPLITS: tuple[Split, ...] = tuple(
    (name, {"fixed": f"{fixed}/100", "groups": f"{groups}/100", "trend": "2/100"})
    for name, fixed, groups in (("88/5/5/2", 88, 10), ("97/.5/.5/2", 97, 1))
)
"""Figures 3.9 and 3.10: beta, u, interactions, trend."""


SERIES, TIME = ("county", "industry"), "quarter"
"""The columns that identify the series of the flows, and the one that counts their periods."""


def by_lags(
    case: Case, formula: str, data: Any, epsilons: Sequence[float], trials: Trials, *, clip: Any = None
) -> Iterator[dict[str, Any]]:
    """Noisy sums with earlier responses inside the guarantee; `case` has the same rows, with lags as its last columns.

    `data` are all rows, those included that serve as lags only.
    """
    model, lags = without_lags(read_formula(formula))
    public_columns, frame = [*model.columns[1:], *SERIES, TIME], open_frame(data)
    for epsilon in epsilons:
        said: dict[str, Any] = {"public": public_columns, "clip": clip, "series": SERIES, "time": TIME, "seed": 0}
        request = cast("ModelQuestion", release_mixed.ask(formula, epsilon=epsilon, **said)).request
        prepared = PreparedLags.of(frame, model, request, None)
        exact, public, found, off = prepared.read(request), prepared.public, [], []
        for _ in range(trials.count):
            noisy = prepared.mechanism.draw(exact, trials.source)
            at, _, _ = solve_lags(noisy, prepared.mechanism, public, request)
            origin = request.scale.middle + noisy.centre * request.scale.step
            beta = public.origin.restore @ (at.at.beta + origin * (1 - at.phi.sum()) * public.constant)
            found.append(case.correlation(case.centred(np.append(beta, at.phi)), at.at.effects))
            off.append(np.abs(at.phi - case.whole.beta[-len(lags) :]).max())
        kind = f"clipped to [{clip[0]:g}, {clip[1]:g}]" if clip else "default"
        yield {
            **row(case, "moments", epsilon, kind, found, "proved, joint, lags inside"),
            "lag_off": float(np.mean(off)),
        }


def by_paper(
    case: Case,
    epsilons: Sequence[float],
    splits: Sequence[tuple[str, Mapping[str, str] | None]],
    trials: Trials,
    report: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """Sub-sample and aggregate as published; blocks are fitted once for each number of blocks."""
    for epsilon in epsilons:
        request = case.request(epsilon=epsilon)
        ranges = paper.ranges_of(request, case.public)
        k = best_blocks(case.public.rows, spread=ranges.effect, epsilon=epsilon)
        report(f"{k:,} blocks of {case.model}")
        exact = paper.averages(case.rows, case.public, case.whole, k, np.random.default_rng(trials.seed))
        for name, split in splits:
            scales = paper.scales_for(case.public, request, ranges, k, split)
            found = []
            for _ in range(trials.count):
                noisy = scales.draw(exact, trials.source)
                found.append(case.correlation(case.centred(noisy.beta), case.runs(noisy.effects)))
            yield row(case, "paper", epsilon, name, found, "as published, one fitted value")


def by_strict(
    case: Case, epsilons: Sequence[float], trials: Trials, report: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Sub-sample and aggregate with one budget: Laplace noise for epsilon, Gaussian for rho = epsilon^2 / 2."""
    public = case.public
    units = strict.column_units(case.rows, public)
    for epsilon in epsilons:
        k = best_blocks(public.rows, spread=2, epsilon=epsilon)
        report(f"{k:,} blocks of {case.model}, strictly")
        rng = np.random.default_rng(trials.seed)
        chosen = partition(public.rows, k, rng)
        presence = strict.presence_of(case.rows, public, chosen)
        scale = case.request(epsilon=epsilon).scale
        whole = scale.whole(case.response)
        response = strict.dithered(whole, scale.step, rng)
        blocks = fit_partition(strict.with_response(case.rows, public, response), public, chosen)
        for name, asked in (
            ("Laplace", {"epsilon": epsilon}),
            ("Gaussian, rho = epsilon^2/2", {"rho": epsilon**2 / 2}),
        ):
            request = case.request(**asked)
            mechanism = strict.mechanism_for(public, request, presence, units, None, None)
            found = []
            for _ in range(trials.count):
                noisy = strict.draw(mechanism, blocks, public, int(whole.sum()), scale.step, trials.source)
                origin = scale.middle + noisy.centre * scale.step
                centred, effects, _ = strict.averages(noisy, mechanism, presence, public, origin)
                found.append(case.correlation(centred, case.runs(effects)))
            yield row(
                case, "strict", epsilon, name, found, "proved, joint" if "epsilon" in asked else "proved, joint, zCDP"
            )


def estimable_blocks(case: Case, blocks: int, seed: int) -> dict[str, Any]:
    """Of k random blocks: the share whose model can be estimated, and the share that has every fixed column.

    A variance between groups needs a group with two rows (lme4's rule: fewer groups than rows).
    """
    chosen = partition(case.public.rows, blocks, np.random.default_rng(seed))
    repeated = np.ones(len(chosen), dtype=bool)
    if case.public.terms:
        group = np.sort(case.public.group(case.rows.codes)[chosen], axis=1)
        repeated = (np.diff(group, axis=1) == 0).any(axis=1)
    industry = case.rows.codes["industry"][chosen]
    every = [(industry == code).any(axis=1) for code in range(int(industry.max()) + 1)]
    return {
        "model": case.model,
        "blocks": blocks,
        "rows_per_block": chosen.shape[1],
        "estimable_blocks": float(repeated.mean()),
        "with_every_industry": float(np.logical_and.reduce(every).mean()),
    }


def block_ranges(case: Case, blocks: int, seed: int) -> dict[str, float]:
    """Tables II and 3.3: the largest range over blocks of an industry effect, the trend, a county effect, variances."""
    public = case.public
    found = fit_partition(case.rows, public, partition(public.rows, blocks, np.random.default_rng(seed)))
    beta = public.origin.beta(found.beta)
    spread = np.nanmax(beta, axis=0) - np.nanmin(beta, axis=0)
    trend = np.array([name == "quarter" for name in public.names])
    _, level, u = found.effects[0]
    low, high = np.full(len(public.n), np.inf), np.full(len(public.n), -np.inf)
    np.minimum.at(low, level, u)
    np.maximum.at(high, level, u)
    seen = high >= low
    variances = np.nanmax(found.variances, axis=0) - np.nanmin(found.variances, axis=0)
    return {
        "industry": float(spread[~trend].max()),
        "trend": float(spread[trend].max()),
        "county": float((high - low)[seen].max()),
        "residual variance": float(variances[-1]),
        "county variance": float(variances[0]),
    }
