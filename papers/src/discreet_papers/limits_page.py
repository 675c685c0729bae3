"""The page of the limits study: the limit of each definition, every mechanism over it, and what is fundamental."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Note, Page, Prose, Table

TITLE = "Which part of the error is fundamental? The limit of each definition, and every mechanism beside it"
DEFAULT = "two-sizes"
SHOWN = (DEFAULT, "ladder", "polynomial", "smooth-gamma, paper", "smooth-laplace, paper", "log-laplace, paper")
UNITS = {"ratio": "mean error / optimum", "size": "workers of the largest establishment"}

METHOD = """
**One count.** The state of a cell is its count and its largest establishment; neighbours are all growths of any of its
establishments. On integers the best noise is a linear programme: all laws, all moves, the sum over sizes of the mean
error over its floor. For large establishments it is the programme of laws in proportion to the size, extrapolated
from two grids. The floor is below every law, whatever it does at other sizes: another establishment may grow and leave
the largest as it is, and the best law that bears this shift is a staircase. The truth lies between floor and optimum.

**With and without bias.** The optimum errs upwards by up to a seventh of its mean error, and a total over ten thousand
cells would show it. All mechanisms of the product have mean zero; `unbiased optimum` is the programme with that
constraint.

**Two sizes.** A law that follows the second largest establishment as well may narrow its scale when the largest
shrinks. Its errors are those of laws that keep epsilon on the cells of a grid, by a linear programme over all moves;
finer cells would lower them. The mechanism `two-sizes` has such a law from the size on at which its table ends. A lone
establishment has no second one, so there `two-sizes` may err less than the optimum of laws of one size.

**Counts by kind.** d counts of the same establishments under one epsilon. The limit is that of laws which follow a
radius: of |z_1| + ... + |z_d| under the strong definition, whose unit ball is the hull of all neighbours; of the norm
of `weak-joint` under the weak one. Errors are before rounding, in units of alpha times the size of a large
establishment; weakly, with as many workers of every kind. Mechanisms for single counts get epsilon / d for each.
"""


def page(results: Mapping[str, Any]) -> Page:
    """All tables and charts."""
    rows = results["one_count"]
    blocks: list[Block] = [
        Note("result", "\n".join(f"- {line}" for line in answers(results))),
        Prose(METHOD),
        Heading("One count of all workers"),
    ]
    for alpha in results["alphas"]:
        own = [row for row in rows if row["alpha"] == alpha]
        lines = [
            {"epsilon": f"epsilon {row['epsilon']}", "size": row["size"], "mechanism": name, "ratio": ratio}
            for row in own
            for name in SHOWN
            if (ratio := _over(row, name, "unbiased optimum")) is not None
        ]
        alt = (
            f"Mean error over the unbiased optimum by size at alpha {alpha}, a panel per epsilon, a line per mechanism."
        )
        blocks += [
            Figure(
                charts.lines(
                    lines,
                    "size",
                    "ratio",
                    "mechanism",
                    facet="epsilon",
                    log_x=True,
                    log_y=True,
                    titles=UNITS,
                    reference=1.0,
                ),
                alt=alt,
                caption=f"Mean error of the published integer over the unbiased optimum, alpha {alpha}.",
                name=f"one-count-{alpha}",
            ),
            Table.of([_told(row) for row in own], f"One count, alpha {alpha}: a lone establishment", f"count-{alpha}"),
        ]
    if results["two_sizes"]:
        blocks += [
            Heading("What a law of the two largest establishments could err"),
            Table.of(results["two_sizes"], "Mean error of a large cell in units of alpha x, by ratio.", "two-sizes"),
        ]
    blocks += [Heading("Counts by kind of worker under one epsilon"), *_kinds(results["by_kind"])]
    return Page(TITLE, blocks)


def answers(results: Mapping[str, Any]) -> list[str]:
    """What is fundamental, for each definition, in numbers."""
    said = []
    for epsilon in results["epsilons"]:
        own = [r for r in results["one_count"] if (r["alpha"], r["epsilon"]) == ("0.1", epsilon)]
        ours = [ratio for row in own if (ratio := _over(row, DEFAULT, "unbiased optimum")) is not None]
        paper = {
            name: max(ratios)
            for name in SHOWN
            if name.endswith("paper")
            and (ratios := [ratio for row in own if (ratio := _over(row, name, "unbiased optimum")) is not None])
        }
        if ours and paper:
            name = min(paper, key=paper.__getitem__)
            said.append(
                f"One count, alpha 0.1, epsilon {epsilon}: `{DEFAULT}` errs at most {max(ours):.2f} times the unbiased "
                f"optimum at any size shown. The paper's best, {name.removesuffix(', paper')}, errs up to "
                f"{paper[name]:.1f} times it: so much of its error is not fundamental."
            )
    own = [row for row in results["by_kind"] if row["default"] and (row["alpha"], row["kinds"]) == ("0.1", 8)]
    return said + [
        f"Eight kinds, {row['definition']} definition, alpha 0.1, epsilon {row['epsilon']}: the limit of laws of a "
        f"radius is {row['limit']:.3f} alpha x for a count; `{row['mechanism']}` has {row['ratio']:.2f} times it."
        for row in own
        if row["ratio"] is not None
    ]


def _kinds(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    blocks: list[Block] = []
    for strength in ("strong", "weak"):
        own = [row for row in rows if row["definition"] == strength]
        lines = [
            {**row, "alpha": f"alpha {row['alpha']}, {row['kinds']} kinds", "epsilon": float(row["epsilon"])}
            for row in own
            if row["ratio"] is not None and row["mechanism"] in ("joint-rings", "joint-polynomial", "weak-joint")
        ]
        if lines:
            blocks.append(
                Figure(
                    charts.lines(
                        lines, "epsilon", "ratio", "mechanism", facet="alpha", log_x=True, titles=UNITS, reference=1.0
                    ),
                    alt=f"Mean error over the limit by epsilon, {strength} definition, a line per mechanism.",
                    caption=f"Mean error over the limit of laws of a radius, {strength} definition.",
                    name=f"kinds-{strength}",
                )
            )
        columns = ("kinds", "alpha", "epsilon", "mechanism", "limit", "error", "ratio")
        told = [{name: row[name] for name in columns} for row in own]
        blocks.append(Table.of(told, f"Counts by kind, {strength} definition", f"kinds-{strength}"))
    return blocks


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] for name in ("epsilon", "size", "programme", "floor", "optimum", "unbiased optimum")}
    shown[DEFAULT] = row["errors"].get(DEFAULT)
    shown[f"{DEFAULT} / optimum"] = _over(row, DEFAULT, "optimum")
    return shown | {f"{name} / unbiased": _over(row, name, "unbiased optimum") for name in row["errors"]}


def _over(row: Mapping[str, Any], name: str, limit: str) -> float | None:
    error = row["errors"].get(name)
    return None if error is None or row[limit] is None else error / row[limit]
