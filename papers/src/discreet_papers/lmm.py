"""Private mixed models of job creation: Abowd, Schneider and Vilhuber (2012) and Schneider (2014, chapter 3).

Figures 2 to 7 (3.3 to 3.10), Tables I to III (3.2 to 3.4), the numbers of blocks and the limits of estimability, on
simulated flows of the documents' size. The published method is compared with one that is proved for the whole release,
and with noisy sums. Curves are computed in `lmm_curves`, the page is in `lmm_page`. The study knows the truth and its
noise has a seed: it is a simulation, never a release.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from discreet.models.linear import influential, leave_groups_out, leave_rows_out, mixed
from discreet.models.linear.private import release_mixed, separation_rate
from discreet.models.linear.private.partition import best_blocks, most_blocks
from discreet.noise.source import SeededSource
from discreet.pages.study import Study
from discreet.simulate import qwi
from discreet.utility.model_curves import Case, Trials, by_moments
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent
from discreet_papers.blmm import lagged
from discreet_papers.lmm_changes import change_flags
from discreet_papers.lmm_curves import (
    NESTED_SPLITS,
    SPLITS,
    STATE_SPLITS,
    block_ranges,
    by_lags,
    by_paper,
    by_strict,
    estimable_blocks,
)
from discreet_papers.lmm_page import page
from discreet_papers.lmm_small import small_rows
from discreet_papers.lmm_terms import terms_rows

MODELS = {
    "LM": "{rate} ~ 0 + industry",
    "LMM": "{rate} ~ 0 + industry + quarter + (1 | county)",
    "LMM with states": "{rate} ~ 0 + industry + quarter + (1 | state) + (1 | county)",
    "LMM + season": "{rate} ~ 0 + industry + quarter + (1 | county/season)",
    "LMM + season with states": "{rate} ~ 0 + industry + quarter + (1 | state) + (1 | county/season)",
}
"""The documents' models. Theirs has states and counties; blocks are fitted to two nested terms at most."""
LAGS = ("lag1", "lag2", "lag3", "lag4")
IMPROVED = f"jcr ~ 0 + industry + {' + '.join(LAGS)} + (1 | county)"
INSIDE = f"jcr ~ 0 + industry + {' + '.join(f'lag(jcr, {k})' for k in range(1, 5))} + (1 | county)"
"""The improved model with lags as columns, which are taken as published, and with lags inside the guarantee."""
COLUMNS = ["state", "county", "industry", "quarter", "season", "jcr", "jdr", "ar", "sr"]

EPSILONS = {
    "LM": (0.1, 1.0, 2.0, 3.0, 4.0, 4.6),
    "LMM": (1.0, 2.0, 3.0, 4.0, 4.6),
    "LMM with states": (1.0, 2.0, 4.6),
    "LMM + season": (3.0, 4.0, 4.6),
    "LMM + season with states": (),
}
"""The points of the documents; fewer with states, because their blocks are fitted one after the other."""
SHARES = {"LM": (("100", None),), "LMM": SPLITS, "LMM with states": STATE_SPLITS, "LMM + season": NESTED_SPLITS}

LAGGED_COLUMNS = ["county", "industry", "quarter", "jcr"]
LAGGED = (0.1, 1.0, 4.6)
JOINT = (0.1, 0.25, 0.5, 1.0, 2.0, 4.6)
STRICT = (1.0, 2.0, 4.6)
CLIP = (0, 0.5)
LIMITS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.6)
QUICK_SHARE = 0.02
PAPER_TRIALS, MOMENT_TRIALS, NESTED_TRIALS = 30, 10, 5


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Fit, release and compare; `quick` simulates a fiftieth of the rows and draws three times at fewer epsilons."""
    trials = (3, 3, 2) if quick else (PAPER_TRIALS, MOMENT_TRIALS, NESTED_TRIALS)
    with flows_file(data, seed=seed, share=QUICK_SHARE if quick else 1.0, progress=progress) as path:
        table = read_flows(path)
        results: dict[str, Any] = {
            "data": {"rows": table.num_rows, "counties": len(table["county"].unique()), "trials": trials[0]},
            "k_star": k_star(table.num_rows),
        }
        results |= _curves(table, trials, quick=quick, seed=seed, progress=progress)
        progress("ranges over blocks", 0.81)
        results["ranges"] = {
            rate.upper(): block_ranges(
                Case.of("LMM", MODELS["LMM"].format(rate=rate), table),
                best_blocks(table.num_rows, spread=2, epsilon=1),
                seed,
            )
            for rate in ("jcr", "ar")
        }
        progress("other rates", 0.83)
        results["rates"] = rate_rows(table, Trials(trials[1], SeededSource(seed + 2), seed))
        progress("changes of counties", 0.85)
        draws = Trials(trials[1], SeededSource(seed + 4), seed)
        results["changes"] = change_flags(table, MODELS["LMM"].format(rate="jcr"), JOINT, draws)
        progress("trends and crossed factors", 0.86)
        some = Trials(trials[2], SeededSource(seed + 9), seed)
        results["terms"] = terms_rows(table, LAGGED, some)
        results["small"] = small_rows(table, Trials(trials[2] + 1, SeededSource(seed + 11), seed))
        del table
        progress("four lags", 0.88)
        few = Trials(trials[2], SeededSource(seed + 7), seed)
        results |= improved(path, Trials(trials[1], SeededSource(seed + 3), seed), few, progress)
    results["global"] = [*results["global"], *results.pop("improved_global")]
    progress("drawing figures", 0.97)
    written = page(results, quick=quick)
    return Study(name="lmm", title=written.title, results=results, page=written)


@contextmanager
def flows_file(data: Path | None, *, seed: int, share: float, progress: Progress) -> Iterator[Path]:
    """The data given, or simulated ones for as long as they are read."""
    if data is not None:
        yield data / "qwi.parquet" if data.is_dir() else data
        return
    with tempfile.TemporaryDirectory(prefix="discreet-lmm-") as folder:

        def rows(step: str, done: float) -> None:
            progress("simulating flows", 0.05 * done)

        qwi.write(Path(folder, "qwi"), seed=seed, share=share, progress=rows)
        yield Path(folder, "qwi", "qwi.parquet")


def read_flows(path: Path, columns: list[str] = COLUMNS) -> Any:
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns).unify_dictionaries()
    except (OSError, ValueError):
        raise DataError(
            f"{path.name!r} is not a Parquet file with {', '.join(COLUMNS)}.",
            "`discreet simulate qwi` writes one.",
            "Name that file or its directory.",
            about="data",
        ) from None


def k_star(rows: int) -> list[dict[str, Any]]:
    """Figure 3.1: the optimal number of blocks and their size, for the documents' data and for these."""
    documents = 2_428_452
    found = []
    for epsilon in LIMITS:
        k, ours = (best_blocks(n, spread=2, epsilon=epsilon) for n in (documents, rows))
        found.append(
            {
                "epsilon": epsilon,
                "documents": k,
                "documents_rows_per_block": documents // k,
                "ours": ours,
                "ours_rows_per_block": rows // ours,
                "most": most_blocks(rows),
            }
        )
    return found


def _curves(table: Any, trials: tuple[int, int, int], *, quick: bool, seed: int, progress: Progress) -> dict[str, Any]:
    """Risk against utility of every model by every method, and where the published method stops."""
    published, joint, nested = (Trials(n, SeededSource(seed + i), seed) for i, n in enumerate(trials))
    states, others = (Trials(trials[i], SeededSource(seed + 5 + i), seed) for i in (2, 0))
    fits, limits = [], []
    curve: list[dict[str, Any]] = []
    start = dict(zip(MODELS, (0.06, 0.14, 0.35, 0.5, 0.75), strict=True))
    for model, formula in MODELS.items():

        def report(step: str, at: float = start[model]) -> None:
            progress(step, at)

        case = Case.of(model, formula.format(rate="jcr"), table)
        report(f"fitting {model}")
        fits.append(_global(case))
        report(f"noisy sums of {model}")
        with_states = model.endswith("states")
        draws = states if with_states else nested if model == "LMM + season" else joint
        by_blocks = states if with_states else published
        some = (0.1, 1.0, 4.6) if quick else JOINT
        curve += by_moments(case, some, draws)
        curve += by_moments(case, some, draws, clip=CLIP) if model != "LM" else []
        few = 1 if quick and with_states else None
        points = _few(EPSILONS[model], quick)[:few]
        if points:
            limits += [
                {
                    "epsilon": epsilon,
                    **estimable_blocks(case, best_blocks(case.public.rows, spread=2, epsilon=epsilon), seed),
                }
                for epsilon in LIMITS
            ]
            curve += by_paper(case, points, SHARES[model], by_blocks, report)
        if model in ("LM", "LMM", "LMM with states"):
            curve += by_strict(case, _few(STRICT, quick)[:few], by_blocks, report)
    progress("published curves of other rates", 0.78)
    rates = []
    for rate in ("jdr", "ar"):
        case = Case.of("LMM", MODELS["LMM"].format(rate=rate), table)
        found = by_paper(case, _few(EPSILONS["LMM"], quick), SPLITS[:1], others, lambda step: progress(step, 0.79))
        rates += [{"rate": rate.upper(), **row, "mle": case.best} for row in found]
    return {"global": fits, "risk_utility": curve, "published_rates": rates, "estimable": _limits(curve, limits)}


def _few(epsilons: tuple[float, ...], quick: bool) -> tuple[float, ...]:
    """The ends only, if it must be quick."""
    return tuple(dict.fromkeys((*epsilons[:1], *epsilons[-1:]))) if quick else epsilons


def _global(case: Case) -> dict[str, Any]:
    """Tables I and 3.2: what is estimated, and how well it fits."""
    variances = case.whole.variances
    return {
        "model": case.model,
        "rows": case.public.rows,
        "fixed_effects": len(case.public.kept),
        "random_effects": sum(len(level) for level in case.public.levels),
        "correlation": case.best,
        "residual_variance": float(variances[-1]),
        "group_variances": variances[:-1].tolist(),
    }


def _limits(curve: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Where each model stops being estimable by blocks, and where noisy sums stop beating the smaller model."""
    smaller = {"LMM": "LM", "LMM with states": "LMM", "LMM + season": "LMM"}
    sums = []
    for model, less in smaller.items():
        for split in ("default", f"clipped to [{CLIP[0]:g}, {CLIP[1]:g}]"):
            for row in (r for r in curve if (r["model"], r["method"], r["split"]) == (model, "moments", split)):
                other = [
                    r["correlation"]
                    for r in curve
                    if (r["model"], r["method"], r["epsilon"]) == (less, "moments", row["epsilon"])
                ]
                sums.append(
                    {
                        "model": model,
                        "split": split,
                        "epsilon": row["epsilon"],
                        "correlation": row["correlation"],
                        "smaller_model": max(other),
                        "better": row["correlation"] > max(other),
                    }
                )
    return {"blocks": blocks, "moments": sums}


def rate_rows(table: Any, trials: Trials) -> list[dict[str, Any]]:
    """JCR, JDR and AR by noisy sums at a joint epsilon of 1 each, and SR from JCR - JDR = AR - SR for nothing more."""
    releases, found = {}, []
    for rate in ("jcr", "jdr", "ar"):
        case = Case.of("LMM", MODELS["LMM"].format(rate=rate), table)
        found += [{"rate": rate.upper(), **row} for row in by_moments(case, (1.0,), trials)]
        text, *public = case.public.model.text, *case.public.model.columns[1:]
        releases[rate] = release_mixed(text, table, epsilon=1, public=public, seed=trials.seed)
    fit = separation_rate(**releases)
    case = Case.of("LMM", MODELS["LMM"].format(rate="sr"), table)
    correlation = case.correlation(fit.centred, case.runs([term.values for term in fit.random]))
    found.append(
        {
            "rate": "SR",
            "model": "LMM",
            "method": "identity",
            "epsilon": float(fit.guarantee.loss.amounts["epsilon"]),
            "split": "sum of the three",
            "correlation": correlation,
            "relative_to_mle": correlation / case.best,
            "trials": 1,
            "guarantee": f"{fit.guarantee.basis}, joint",
        }
    )
    return found


def improved(path: Path, trials: Trials, few: Trials, progress: Progress) -> dict[str, Any]:
    """The model with four lagged rates: its fit, Table III / 3.4, and what noisy sums keep with lags of either kind."""
    frame, table = lagged(path), read_flows(path, LAGGED_COLUMNS)
    case = Case.of("LMM with lags", IMPROVED, frame, lagged=LAGS)
    fit = mixed(IMPROVED, frame)
    progress("leaving counties out", 0.9)
    refits = leave_groups_out(fit)
    quantiles = {
        name: dict(zip(("low", "high"), np.nanquantile(refits.variances[:, i], [0.001, 0.999]).tolist(), strict=True))
        for i, name in ((1, "residual"), (0, "county"))
    }
    ranges = np.nanmax(refits.beta, axis=0) - np.nanmin(refits.beta, axis=0)
    industry = [i for i, name in enumerate(refits.names) if name.startswith("industry")]
    lags = [i for i, name in enumerate(refits.names) if name in LAGS]
    public = [i for i in industry if refits.names[i].startswith("industry92")]
    others = [i for i in industry if i not in public]
    n = fit.moments.n
    single = leave_rows_out(fit, influential(fit).rows)
    moved = np.abs(single.beta - fit.beta)
    return {
        "influential_rows": {
            "rows": len(single.criterion),
            "largest_change_of_an_effect": float(np.nanmax(single.effect_change)),
            "largest_change_of_an_industry": float(np.nanmax(moved[:, industry])),
        },
        "improved_global": [_global(case)],
        "improved": [
            *({**row, "guarantee": "proved if earlier rates are public"} for row in by_moments(case, LAGGED, trials)),
            *by_lags(case, INSIDE, table, LAGGED, few),
            *by_lags(case, INSIDE, table, LAGGED, few, clip=CLIP),
        ],
        "leave_county_out": {
            "counties": len(refits.criterion),
            "rows_removed": {"least": int(n.min()), "median": float(np.median(n)), "most": int(n.max())},
            "residual": {"estimate": fit.sigma2, **quantiles["residual"]},
            "county": {"estimate": fit.variances["county"], **quantiles["county"]},
            "range_of_industries": float(ranges[others].max()),
            "range_of_public_administration": float(ranges[public].max()) if public else None,
            "range_of_lags": float(ranges[lags].max()),
            "largest_change_of_an_effect": float(np.nanmax(refits.effect_change)),
        },
    }
