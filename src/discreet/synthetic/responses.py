"""Synthetic responses of a private model: rates, and counts, for every row of a public design, at no cost in privacy.

Everything is computed from published estimates and public columns; the response is never read. A row has the model's
mean and its residual variance within the bounds of the response, by a beta law, so that rates near zero stay above it.
Effects of groups are drawn about their predictions with their standard errors, once for each replicate: shrunken
predictions alone would vary less than groups do.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import of_kinds
from discreet.arrays import Integers, Matrix, Vector
from discreet.errors import DataError
from discreet.faults import Argument, Key
from discreet.formula.design import Design
from discreet.formula.formula import Formula, lag_name, read_formula, without_lags
from discreet.formula.rows import number_column, plan, read_rows
from discreet.frames import collect, missing, open_frame
from discreet.lmm.matrix import linear, random_part
from discreet.lmm.private import PrivateFit
from discreet.privacy.units import Groups, Rows, Unit
from discreet.release.folder import ReleaseFolder, open_releases, refuse_inside, whole_or_not
from discreet.synthetic.microdata import WORD, refuse_file, refuse_seed

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "discreet synthetic responses, format 1"
MOST = 1000
INSIDE = 1e-6  # of the range: how near to an end a mean may lie
FULLEST = 0.99  # of the largest variance that a response with that mean within its bounds can have
DRAWN = (
    "responses have the model's means and residual variance, by beta laws within their bounds; effects of groups are "
    "drawn about their predictions with their standard errors, less what these have in common; of levels that the "
    "release does not have with the variance of their term; fixed effects and variances are the published ones"
)


@dataclass(frozen=True)
class PublishedModel:
    """A private model as everybody can read it.

    Attributes
    ----------
    fixed : coefficients by name; `variances`, of components by name.
    effects : of each component the levels with their predictions and standard errors.
    bounds : where responses lie; `promise`, the guarantee in a sentence.
    """

    name: str
    model: Formula
    fixed: Mapping[str, float] = field(repr=False)
    variances: Mapping[str, float] = field(repr=False)
    effects: Mapping[str, Mapping[str, tuple[float, float]]] = field(repr=False)
    bounds: tuple[float, float]
    promise: str

    @classmethod
    def of(cls, name: str, formula: str, table: pa.Table, unit: Unit, clip: Any, promise: str) -> PublishedModel:
        """Read the table that a release publishes, with the formula and the unit beside it."""
        model, lags = without_lags(read_formula(formula, needs_random=False))
        odd = [lag_name(model.response.column, lags[0])] if lags else [name for name, _ in model.made]
        terms = [*model.fixed, *(term for random in model.random for term in random.terms)]
        odd += sorted({str(f) for term in terms for f in term if f.function not in ("", "C", "log")})
        if odd:
            raise DataError(
                f"Synthetic responses were asked of {formula!r}, which has {odd[0]}.",
                "Columns as they are, factors and logarithms can be placed by a formula alone; other functions learn "
                "from the data, and lags are responses.",
                "Release a model without it.",
                about="release",
            )
        assert isinstance(unit, Rows | Groups)
        fixed: dict[str, float] = {}
        variances: dict[str, float] = {}
        effects: dict[str, dict[str, tuple[float, float]]] = {}
        for row in table.select(["effect", "group", "term", "estimate", "std_error"]).to_pylist():
            value, error = (np.nan if row[key] is None else float(row[key]) for key in ("estimate", "std_error"))
            if row["effect"] == "fixed":
                fixed[row["term"]] = value
            elif row["effect"] == "variance":
                variances[row["group"]] = value
            elif row["effect"] == "random":
                effects.setdefault(row["group"], {})[row["term"]] = (value, error)
        known = [*fixed.values(), *variances.values(), *(u for each in effects.values() for u, _ in each.values())]
        if "Residual" not in variances or not np.isfinite(known).all():
            raise DataError(
                f"Release {name!r} has an estimate that is empty, or no residual variance.",
                "Responses are drawn with all of them.",
                "Use another release.",
                about="release",
            )
        ends = (unit.lower, unit.upper) if clip is None else clip
        return cls(name, model, fixed, variances, effects, (float(ends[0]), float(ends[1])), promise)


@of_kinds
def synthetic_responses(
    release: PrivateFit | str | Path,
    rows: Any,
    *,
    replicates: int = 1,
    exposure: str | None = None,
    seed: int = 0,
    name: str | None = None,
    ledger: str | Path | None = None,
) -> pa.Table:
    """Draw responses of a private model for rows of public columns, as often as asked.

    It costs nothing: only published estimates and the public columns of the model are read, and the response never is.

    Parameters
    ----------
    release : a fit by `release_mixed`, or the folder of a released model, or of a plan that released it.
    rows : the design: every county, industry and quarter, say. Other columns than the model's are left out.
    replicates : how many responses each row has; the column `replicate` counts them.
    exposure : a public column that a rate is of, such as employment: there is then a column of counts, whole numbers,
        and the rates are theirs.
    seed : the same release, rows and seed give the same table.
    name : which model, where a folder has several.
    ledger : the ledger that paid; it finds a forged `release.json`.

    Returns
    -------
    The model's public columns, the response, `replicate`, and `synthetic`, which is true.

    Examples
    --------
    >>> from discreet.lmm.private import release_mixed
    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> fit = release_mixed("y ~ 1 + (1 | g)", data, epsilon=10, public=["g"], bounds=(0, 1), seed=1)
    >>> drawn = synthetic_responses(fit, {"g": ["a", "b"]}, replicates=2)
    >>> drawn.column_names, len(drawn)
    (['g', 'y', 'replicate', 'synthetic'], 4)
    """
    refuse_seed(seed)
    if isinstance(replicates, bool) or not isinstance(replicates, int) or not 1 <= replicates <= MOST:
        raise DataError(
            (Argument("replicates", replicates), " is no number of replicates."),
            f"It is a whole number from 1 to {MOST:,}.",
            ("Use for example ", Argument("replicates", 5), "."),
            about="replicates",
        )
    return _drawn(_published(release, name, ledger), rows, replicates, exposure, np.random.default_rng([seed, 21]))


def write_responses(
    release: str | Path,
    rows: Any,
    out: str | Path,
    *,
    force: bool = False,
    seed: int = 0,
    name: str | None = None,
    ledger: str | Path | None = None,
    **asked: Any,
) -> int:
    """Write `synthetic_responses` as a Parquet file with a description beside it; returns the number of rows."""
    import pyarrow.parquet as pq

    out = Path(out)
    beside = out.with_suffix(".json")
    refuse_inside(out, release)
    refuse_file(out, beside, force=force)
    known = _published(release, name, ledger)
    table = synthetic_responses(release, rows, seed=seed, name=name, ledger=ledger, **asked)
    about = {
        "format": FORMAT,
        "file": out.name,
        WORD: True,
        "release": known.name,
        "formula": known.model.text,
        "rows": len(table),
        "seed": seed,
        "drawn": DRAWN,
        "guarantee": known.promise,
    }
    hidden = [path.with_name(f".{path.name}.{secrets.token_hex(4)}") for path in (out, beside)]
    try:
        with whole_or_not(out):
            pq.write_table(table, hidden[0], compression="zstd")
            hidden[1].write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            for path, place in zip(reversed(hidden), (beside, out), strict=True):
                path.replace(place)
    finally:
        for path in hidden:
            path.unlink(missing_ok=True)
    return len(table)


def _published(release: PrivateFit | str | Path, name: str | None, ledger: str | Path | None) -> PublishedModel:
    if isinstance(release, PrivateFit):
        _refuse_family(release.name, release.family)
        unit, text = release.guarantee.unit, release.formula
        return PublishedModel.of(release.name, text, release.published(), unit, release.clip, str(release.guarantee))
    found = [each for each in open_releases(release, ledger=ledger) if each.kind == "model"]
    chosen = [each for each in found if name in (None, each.name)]
    if len(chosen) != 1:
        names = ", ".join(repr(each.name) for each in found) or "none"
        raise DataError(
            f"{str(release)!r} has {len(chosen)} models to draw responses of.",
            f"Models there: {names}.",
            ("Name one with ", Key("name"), "."),
            about="name" if found else "release",
        )
    _refuse_family(chosen[0].name, chosen[0].about["parameters"].get("family") or "gaussian")
    return _from_folder(chosen[0])


def _refuse_family(name: str, family: str) -> None:
    if family != "gaussian":
        raise DataError(
            f"Release {name!r} is of family {family!r}.",
            "Synthetic responses are of gaussian models.",
            "Draw from `fitted` in Python, which has the mean of every row.",
            about="release",
        )


def _from_folder(folder: ReleaseFolder) -> PublishedModel:
    forms = {table.form: table for form in (None, "research") for table in _tables(folder, form)}
    table = forms.get("research") or next(iter(forms.values()))
    asked = folder.about["parameters"]
    return PublishedModel.of(
        folder.name, str(asked["formula"]), table.read(), folder.unit, asked.get("clip"), folder.promise
    )


def _tables(folder: ReleaseFolder, form: str | None) -> list[Any]:
    try:
        return list(folder.tables(form))
    except DataError:
        return []


def _drawn(known: PublishedModel, rows: Any, replicates: int, exposure: str | None, rng: np.random.Generator) -> Any:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    response = known.model.response.column
    if exposure == response:
        raise DataError(
            (Argument("exposure", exposure), " is the response."),
            "It is confidential, and an exposure is public.",
            "Name another column.",
            about="exposure",
        )
    frame = open_frame(rows, ordered=True)
    have = frame.collect_schema().names()
    wanted = [*known.model.columns[1:], *([] if exposure is None else [exposure])]
    for column in wanted:
        if column not in have:
            about = "exposure" if column == exposure else "rows"
            raise DataError(missing(column, have, name="the rows", asked=tuple(wanted), about=about))
    columns = dict.fromkeys(wanted)
    held = collect(frame.lazy().select(*columns), step="public columns of the model")
    shown = open_frame(held.append_column(response, pa.nulls(len(held)).cast(pa.float64())), ordered=True)
    shown = shown.with_columns(nw.lit(0.0).alias(response))
    layout = plan(shown, known.model)
    placed, learned = read_rows(shown, layout)
    design = Design.of(layout, placed.codes, learned.levels)
    if set(design.names) != set(known.fixed):
        odd = sorted(set(design.names) ^ set(known.fixed))
        raise DataError(
            f"The rows make other fixed columns than the release has: {', '.join(odd[:3])}.",
            "Rows have every level of the factors of the fixed part, and no other; a release that dropped columns has "
            "no responses.",
            "Give rows with all levels.",
            about="rows",
        )
    beta = np.array([known.fixed[each] for each in design.names])
    fixed = linear(placed, layout.fixed, design.levels, beta)
    size = None if exposure is None else number_column(shown, exposure, "exposure", len(held), positive=True)
    parts = []
    for replicate in range(1, replicates + 1):
        mean = fixed.copy()
        for random in design.random:
            alone = random.names == ("(Intercept)",)
            names = [random.term.name if alone else f"{random.term.name}: {each}" for each in random.names]
            sizes = np.bincount(random.grouping.codes(placed.codes), minlength=len(random.grouping))
            effects = np.column_stack([_effects(known, each, random.grouping.labels, sizes, rng) for each in names])
            mean += random_part(placed, random, design.levels, effects, new_levels="error")
        y = within(mean, known.variances["Residual"], known.bounds, rng)
        part = held
        if size is not None:
            count = np.floor(y * size + rng.uniform(size=len(y)))
            y = count / size
            part = part.append_column(f"{response}_count", pa.array(count.astype(np.int64)))
        part = part.append_column(response, pa.array(y))
        parts.append(part.append_column("replicate", pa.array(np.full(len(y), replicate, dtype=np.int32))))
    whole = pa.concat_tables(parts)
    return whole.append_column(WORD, pa.array(np.ones(len(whole), dtype=bool)))


def _effects(
    known: PublishedModel, component: str, labels: tuple[str, ...], sizes: Integers, rng: np.random.Generator
) -> Vector:
    """A draw of the effects of these levels, which have so many rows.

    The common part of the errors of released levels is also an error of the fixed part, so it is removed.
    """
    there, spread = known.effects.get(component, {}), float(np.sqrt(max(known.variances[component], 0.0)))
    found = np.array([there.get(label, (0.0, spread)) for label in labels])
    away = np.nan_to_num(found[:, 1]) * rng.normal(size=len(labels))
    released = np.array([label in there for label in labels])
    if released.any():
        away[released] -= np.average(away[released], weights=sizes[released])
    return np.asarray(found[:, 0] + away)


def within(mean: Vector, variance: float, bounds: tuple[float, float], rng: np.random.Generator) -> Vector:
    """Responses with these means and this variance within the bounds, by beta laws.

    Means outside are pulled inside, and a variance that no response with such a mean can have is made smaller.
    """
    low, high = bounds
    share = np.clip((mean - low) / (high - low), INSIDE, 1 - INSIDE)
    spread = np.minimum(variance / (high - low) ** 2, FULLEST * share * (1 - share))
    total = share * (1 - share) / np.maximum(spread, 1e-18) - 1
    drawn: Matrix = rng.beta(share * total, (1 - share) * total)
    return np.asarray(np.clip(low + (high - low) * drawn, low, high))
