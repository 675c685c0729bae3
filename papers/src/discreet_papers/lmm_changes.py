"""Which counties changed most between two periods, and do private mixed models of both still say so?

Not in the documents. The quarters are split in the middle, the model is fitted to each half, and the change of a county
is that of its random effect. Fits of all rows are the truth; noisy sums give each half its own epsilon, and since a row
lies in one half, both together have that epsilon too. The area and its limits are those of `utility.flags`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private import moments
from discreet.models.linear.private.look import noise_for
from discreet.models.linear.private.sums import response_sums, units_of
from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Prose, Table
from discreet.tables.ranking import spearman
from discreet.utility.flags import flags_raised
from discreet.utility.model_curves import Case, Trials

SHARE = 10
"""One county in so many is a large change."""


def change_flags(table: Any, formula: str, epsilons: Sequence[float], trials: Trials) -> list[dict[str, Any]]:
    """PAUC of the counties flagged from two private fits against those flagged from the fits of all rows."""
    early, late = (Case.of("LMM", formula, half) for half in halves(table))
    labels = [case.public.design.random[case.public.terms[0]].grouping.labels for case in (early, late)]
    order = np.argsort(labels[1])[np.argsort(np.argsort(labels[0]))]
    true = late.whole.effects[0][order] - early.whole.effects[0]
    most = max(len(true) // SHARE, 1)
    rows = []
    effects = [private_effects(case, epsilons, trials) for case in (early, late)]
    for epsilon, before, after in zip(epsilons, *effects, strict=True):
        published = after[:, order] - before
        flags = flags_raised(published, true, most=most, rng=trials.seed)
        rows.append(
            {
                "method": "moments",
                "epsilon": epsilon,
                "counties": flags.cells,
                "most": flags.positives,
                "spearman": float(np.mean([_order(changes, true) for changes in published])),
                "pauc": flags.pauc,
                "pauc_low": flags.low,
                "pauc_high": flags.high,
                "kept": flags.kept,
                "trials": trials.count,
            }
        )
    return rows


def _order(changes: Vector, true: Vector) -> float:
    """The correlation of ranks; 0 where noise hid the effects of all counties, so that all changes are equal."""
    return spearman(changes, true) if np.ptp(changes) else 0.0


def halves(table: Any) -> tuple[Any, Any]:
    """The rows of the early and of the late quarters, of counties that have both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    middle = pc.approximate_median(table["quarter"])
    county = table["county"]
    plain = county.cast(pa.string()) if pa.types.is_dictionary(county.type) else county
    before = pc.less_equal(table["quarter"], middle)
    both = pc.and_(
        pc.is_in(plain, value_set=pc.unique(plain.filter(before))),
        pc.is_in(plain, value_set=pc.unique(plain.filter(pc.invert(before)))),
    )
    return table.filter(pc.and_(both, before)), table.filter(pc.and_(both, pc.invert(before)))


def private_effects(case: Case, epsilons: Sequence[float], trials: Trials) -> Iterator[Matrix]:
    """Effects of the groups from noisy sums, one row per draw, in the grouping's own order, for each epsilon."""
    units = units_of(case.frame, case.public)
    sums = response_sums(case.frame, case.public, units, case.request(epsilon=1).scale)
    for epsilon in epsilons:
        request = case.request(epsilon=epsilon)
        mechanism = noise_for(case.public, units, request, None)
        exact, found = mechanism.exact(sums, case.public), []
        for _ in range(trials.count):
            noisy = mechanism.draw(exact, trials.source)
            at = moments.solve(noisy, mechanism.chosen(noisy), case.public, request).estimate
            found.append(case.public.in_own_order(0, at.effects[0]))
        yield np.stack(found)


def blocks(rows: Sequence[dict[str, Any]]) -> list[Block]:
    """The section of the report."""
    return [
        Heading("Which counties changed most?"),
        Prose(
            "Beyond the documents: the quarters are split in the middle and the mixed model is fitted to each half, "
            f"from all rows and from noisy sums. The {rows[0]['most']} of {rows[0]['counties']:,} counties whose "
            "effects truly changed most are to be flagged. PAUC is the area under the ROC curve for false positive "
            "rates up to 0.2: 0.02 by chance, 0.2 for the truth; its limits hold 95 % of releases and resampled "
            "counties. Kept: 0 for chance, 1 for the truth."
        ),
        Table.of(rows, "Flags from two private fits against flags from the fits of all rows.", "changes"),
        Figure(
            charts.lines(rows, "epsilon", "pauc", log_x=True, titles={"pauc": "PAUC", "epsilon": "epsilon of a half"}),
            alt=f"PAUC over epsilon, from {rows[0]['pauc']:.3f} at {rows[0]['epsilon']:g} to {rows[-1]['pauc']:.3f} at "
            f"{rows[-1]['epsilon']:g}; chance is 0.02 and the truth 0.2.",
            caption="Partial area of flagged counties over epsilon.",
            name="changes",
        ),
    ]
