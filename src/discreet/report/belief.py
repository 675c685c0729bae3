"""The Tables paper's Figure 1 for a release: what can be believed about an establishment's size, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from discreet.arrays import Vector
from discreet.pages.numbers import percent, text
from discreet.pages.page import Block, Figure, Prose, Table
from discreet.pages.plot import LinePlot
from discreet.privacy.assurance import Assurance
from discreet.privacy.belief import NEAR, SPREAD, TRUE_SIZES, SizeBelief
from discreet.privacy.losses import Approximate, shown
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers, is_weak

MOST_TABLES = 3
"""Tables of a release whose typical beliefs are shown: a reader can tell so many lines apart."""

DRAWN = 100
"""The establishment of the figure has so many workers."""

LEAST = 1e-6
"""Smaller beliefs are not drawn."""

BEFORE, AT_MOST = "before", "after, at most"


def size_beliefs(
    said: Assurance, typical: Mapping[str, Mapping[int, Vector] | None], *, number: int | None = None
) -> Iterator[Block]:
    """Beliefs about an establishment's size: the most that is permitted, and what tables typically lead to.

    Nothing is plotted where no bound is known, and for units that do not protect an establishment's workers. `number`
    is the figure's in the paper.
    """
    beliefs = {size: belief for size in TRUE_SIZES if (belief := said.most_peaked(size)) is not None}
    if not beliefs:
        return
    shown_tables = dict([(name, known) for name, known in typical.items() if known is not None][:MOST_TABLES])
    curves = {f"typically, by {name}": known[DRAWN] for name, known in shown_tables.items()}
    yield _figure(beliefs[DRAWN], curves, number)
    yield Prose(_words(said, drawn=list(shown_tables), others=[name for name in typical if name not in shown_tables]))
    rows = [
        (
            text(size),
            percent(belief.near(belief.prior, NEAR)),
            *(percent(belief.near(known[size], NEAR)) for known in shown_tables.values()),
            percent(belief.near(belief.permitted, NEAR), up=True),
        )
        for size, belief in beliefs.items()
    ]
    yield Table(
        ("Workers", BEFORE.capitalize(), *(f"Typically after {name}" for name in shown_tables), "After, at most"),
        rows,
        f"How sure somebody is of an establishment's size to {percent(NEAR)}, who knew it to a factor of {SPREAD}",
        "size beliefs",
    )


def _figure(belief: SizeBelief, typical: Mapping[str, Vector], number: int | None) -> Figure:
    curves = {BEFORE: belief.prior, **typical, AT_MOST: belief.permitted}
    rows = [
        {"size": int(size), "belief": float(f"{value:.5g}"), "curve": name}
        for name, curve in curves.items()
        for size, value in zip(belief.sizes, belief.density(curve), strict=True)
        if value >= LEAST
    ]
    chart = LinePlot(
        rows,
        "size",
        "belief",
        "curve",
        log=True,
        points=False,
        titles={"size": "workers of the establishment", "belief": "belief in this size"},
    )
    peak = max(float(belief.density(curve).max()) for curve in curves.values())
    return Figure(
        chart,
        f"Before, a flat line from {text(int(belief.sizes[0]))} to {text(int(belief.sizes[-1]))} workers. Afterwards, "
        f"curves that are highest at {text(belief.truth)} workers, with a belief of at most {percent(peak, up=True)} "
        "in that size, and fall on both sides.",
        f"Belief about the size of an establishment of {text(belief.truth)} workers, before and after: made up, and "
        "computed from public constants alone" + (f" (the paper's Figure {number})" if number else ""),
        f"figure-{number}" if number else "size-belief",
    )


def _words(said: Assurance, *, drawn: Sequence[str], others: Sequence[str]) -> str:
    """How the figure is read."""
    unit, loss = said.unit, said.loss
    read = (
        f"**After, at most** is the most peaked belief that {loss} permits to somebody who knows everything else, over "
        f"{said.scope}. "
    )
    if isinstance(unit, Establishments):
        share = percent(float(unit.alpha))
        read += (
            f"A size that is {share} larger or smaller, or one worker, is less likely by a factor of e to the power of "
            "epsilon at most. So sizes that close are hidden from each other, and sizes far apart are not. "
        )
        if is_weak(unit.strength):
            read += (
                "This person knows all workers but those of one kind, and no other worker is of that kind. The "
                "weak definition does not hide the size from them as it does from others. "
            )
    elif isinstance(unit, Workers):
        read += "Each worker is a step, so the size of a large establishment is not hidden. "
    elif isinstance(unit, EstablishmentNodes):
        read += (
            f"All sizes up to {text(unit.theta)} are two steps apart, and all larger ones are left out: they "
            f"cannot be distinguished better. "
        )
    if isinstance(loss, Approximate):
        read += f"With a probability of about {shown(loss.delta)} more may be learnt. "
    if drawn:
        read += (
            "**Typically** is the mean belief of somebody who sees the table alone, where the establishment is alone "
            "in its cell; among others it is hidden better. "
        )
    if others:
        names = " and ".join(part for part in (", ".join(others[:-1]), others[-1]) if part)
        read += f"{'None is' if drawn else 'A typical belief is not'} drawn for {names}."
    return read.rstrip()
