"""Synthetic responses of a private model: rates, and counts, for every row of a public design, at no cost in privacy.

Everything is computed from published estimates and public columns; the response is never read. In a linear model a row
has the model's mean and its residual variance within the bounds of the response, by a beta law, so that rates near zero
stay above it. Models of counts and shares have the law of their family, which draws them.
Effects of groups are drawn about their predictions with their standard errors, once for each replicate: shrunken
predictions alone would vary less than groups do.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.data.frames import collect, missing, open_frame
from discreet.models.formula.design import Design, RandomDesign
from discreet.models.formula.rows import ModelRows, number_column, plan, read_rows
from discreet.models.linear.families.counts import MOST as MOST_EVENTS
from discreet.models.linear.matrix import linear, random_part
from discreet.models.linear.private import PrivateFit
from discreet.release.folder import refuse_inside, whole_or_not
from discreet.synthetic.microdata import WORD, refuse_file, refuse_seed
from discreet.synthetic.published import PublishedModel, published
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "discreet synthetic responses, format 1"
MOST = 1000


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
        and the rates are theirs. Of a model of shares it is the number of trials; of counts, which are the response
        themselves, what they are proportional to. Without it there is one trial, and an exposure of 1.
    seed : the same release, rows and seed give the same table.
    name : which model, where a folder has several.
    ledger : the ledger that paid; it finds a forged `release.json`.

    Returns
    -------
    The model's public columns, the response, `replicate`, and `synthetic`, which is true.

    Examples
    --------
    >>> from discreet.models.linear.private import release_mixed
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
    return _drawn(published(release, name, ledger), rows, replicates, exposure, np.random.default_rng([seed, 21]))


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
    known = published(release, name, ledger)
    table = synthetic_responses(release, rows, seed=seed, name=name, ledger=ledger, **asked)
    about = {
        "format": FORMAT,
        "file": out.name,
        WORD: True,
        "release": known.name,
        "formula": known.model.text,
        "rows": len(table),
        "seed": seed,
        "drawn": known.drawn,
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
    _refuse_size(known, exposure, size)
    groups = _groups(known, design, placed)
    if not known.law.linear:
        fixed = _before_errors(known, fixed, groups, placed, design)
    parts = []
    for replicate in range(1, replicates + 1):
        mean = fixed.copy()
        for random, found in groups:
            effects = np.column_stack([each.draw(rng) for each in found])
            mean += random_part(placed, random, design.levels, effects, new_levels="error")
        part = held
        y, count = known.private.draw(mean, size, known.spread, rng)
        if count is not None:
            part = part.append_column(f"{response}_count", pa.array(count.astype(np.int64)))
        part = part.append_column(response, pa.array(y))
        parts.append(part.append_column("replicate", pa.array(np.full(len(y), replicate, dtype=np.int32))))
    whole = pa.concat_tables(parts)
    return whole.append_column(WORD, pa.array(np.ones(len(whole), dtype=bool)))


@dataclass(frozen=True)
class LevelEffects:
    """Effects of the levels of a component: predictions, errors, which are released, and the weights of these."""

    values: Vector
    errors: Vector
    released: Mask
    weights: Vector

    @classmethod
    def of(cls, known: PublishedModel, component: str, labels: tuple[str, ...], sizes: Integers) -> LevelEffects:
        there, spread = known.effects.get(component, {}), float(np.sqrt(max(known.variances[component], 0.0)))
        found = np.array([there.get(label, (0.0, spread)) for label in labels])
        released = np.array([label in there for label in labels])
        rows = sizes * released
        return cls(found[:, 0], np.nan_to_num(found[:, 1]), released, rows / max(rows.sum(), 1))

    def draw(self, rng: np.random.Generator) -> Vector:
        """The common part of the errors of released levels is also an error of the fixed part, so it is removed."""
        away = self.errors * rng.normal(size=len(self.errors))
        away[self.released] -= self.weights @ away
        return np.asarray(self.values + away)

    @property
    def variances(self) -> Vector:
        """Of draws of released levels about their predictions; others have the law of their term."""
        own = self.errors**2
        return np.where(self.released, own * (1 - 2 * self.weights) + self.weights**2 @ own, 0.0)


def _groups(known: PublishedModel, design: Design, placed: ModelRows) -> list[tuple[RandomDesign, list[LevelEffects]]]:
    found = []
    for random in design.random:
        alone = random.names == ("(Intercept)",)
        names = [random.term.name if alone else f"{random.term.name}: {each}" for each in random.names]
        sizes = np.bincount(random.grouping.codes(placed.codes), minlength=len(random.grouping))
        found.append((random, [LevelEffects.of(known, each, random.grouping.labels, sizes) for each in names]))
    return found


def _before_errors(
    known: PublishedModel,
    fixed: Vector,
    groups: list[tuple[RandomDesign, list[LevelEffects]]],
    placed: ModelRows,
    design: Design,
) -> Vector:
    """The fixed part, moved so that errors of effects leave the means of rows where they are."""
    predicted, variance = np.zeros(len(fixed)), np.zeros(len(fixed))
    for random, (each,) in groups:  # models of counts and shares have random intercepts alone
        predicted += random_part(placed, random, design.levels, each.values[:, None], new_levels="error")
        variance += random_part(placed, random, design.levels, each.variances[:, None], new_levels="error")
    return known.law.link.before_errors(fixed + predicted, variance) - predicted


def _refuse_size(known: PublishedModel, exposure: str | None, size: Vector | None) -> None:
    if known.private.trials and size is not None and (size != np.rint(size)).any():
        raise DataError(
            (Argument("exposure", exposure), " has values that are not whole."),
            f"Release {known.name!r} is of shares, and an exposure is their number of trials.",
            "Name a column of whole numbers, or leave it out.",
            about="exposure",
        )
    largest = known.private.largest(known.bounds)
    if size is not None and largest is not None and (size > MOST_EVENTS / largest).any():
        raise DataError(
            (Argument("exposure", exposure), f" makes counts above {MOST_EVENTS:.0e} possible."),
            "Counts are whole numbers, and doubles do not tell such large ones apart.",
            "Name a column of smaller numbers, in a larger unit, or leave it out.",
            about="exposure",
        )
