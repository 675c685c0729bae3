"""Checks of rows, as aggregates: each is not zero where its fault occurs. No value and no count leaves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from discreet.faults import Argument, Fault, Phrase, Spelled
from discreet.frames import count_if, tally
from discreet.schema import Label

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from discreet.frames import Frame

    Checks: TypeAlias = dict[Fault, nw.Expr]
    """A fault, and the aggregate that is not zero where it occurs. How often it does is confidential."""


def faults_of(frame: Frame, checks: Checks, *, step: str) -> Iterator[Fault]:
    """The faults that some rows have, in one pass."""
    return (fault for fault, n in tally(frame, checks, step=step).items() if n)


def empty(name: str) -> Checks:
    """No rows at all."""
    import narwhals.stable.v2 as nw

    fault = Fault(role(name), f"{name} has no rows.", remedy="Check the export, or the filter that made it.")
    return {fault: (nw.len() == 0).cast(nw.Int64)}


def role(name: str) -> str:
    """The parameter that a table came as; jobs have a name of their own."""
    return name if name in ("workplaces", "workers") else "source"


def nulls(name: str, columns: Sequence[str]) -> Checks:
    """Rows without a value."""
    import narwhals.stable.v2 as nw

    return {
        Fault(
            role(name),
            f"Column {column!r} of {name} has no value in some rows.",
            remedy="Fill them in or drop them at the source.",
        ): count_if(nw.col(column).is_null())
        for column in columns
    }


def outside(name: str, domains: Mapping[str, Sequence[Label]]) -> Checks:
    """Categories that the public domain does not have. The domain is shown, what was found is not."""
    import narwhals.stable.v2 as nw

    return {
        Fault(
            role(name),
            f"Column {column!r} of {name} has rows outside its public domain, which is: {', '.join(map(str, domain))}.",
            remedy="Recode them, or add the category to the schema's worker_attributes.",
        ): count_if(~nw.col(column).is_null() & ~nw.col(column).is_in(domain))
        for column, domain in domains.items()
    }


def twice(rows: Frame, *, name: str) -> Iterator[Fault]:
    """Whether some rows that carry a size are the same in every column."""
    import narwhals.stable.v2 as nw

    step, count = f"check rows of {name}", {"rows": nw.len()}
    if tally(rows, count, step=step) != tally(rows.unique(), count, step=step):
        yield Fault(
            "source",
            f"{name} has rows that are there twice, with the same value in every column.",
            "Their jobs would be counted twice.",
            "Drop the repetitions, or add the column that tells such rows apart.",
        )


SEVERAL = (
    " Or ",
    Spelled("pass", plan="write"),
    " ",
    Argument("allow_multiple", True, under="data"),
    ", if several jobs are meant.",
)


def repeats(name: str, key: str, way_out: tuple[str | Phrase, ...] = ()) -> Checks:
    """A key that is there more than once."""
    import narwhals.stable.v2 as nw

    fault = Fault(
        role(name),
        f"Column {key!r} of {name} repeats; each must be there once.",
        remedy=("Drop the repetitions.", *way_out),
    )
    return {fault: nw.len() - nw.col(key).n_unique()}
