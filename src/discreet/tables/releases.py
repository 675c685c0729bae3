"""The tables of one release together: a tuple of them that has the shape of every result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.ledger import Entry
from discreet.privacy.guarantee import Guarantee
from discreet.results import Result
from discreet.tables.release import CountRelease

if TYPE_CHECKING:
    import pyarrow as pa


class CountReleases(Result, tuple[CountRelease, ...]):
    """Published tables that one charge paid for; each is a `CountRelease`, and all have one promise."""

    __slots__ = ()

    @property
    def guarantee(self) -> Guarantee:
        """What all tables together promise, with the notes of each."""
        notes = dict.fromkeys(note for table in self for note in table.guarantee.notes)
        first = self[0].guarantee
        return first.noted(*(note for note in notes if note not in first.notes))

    @property
    def entry(self) -> Entry | None:
        """The ledger's line that paid."""
        return self[0].entry

    @property
    def name(self) -> str:
        """The release's name in the ledger."""
        return self[0].name

    @property
    def check(self) -> Any:
        """What was known before it was paid for: price, what was left, expected error."""
        return self[0].check

    def to_arrow(self) -> pa.Table:
        """One row per number: `table` names its attributes, and those of other tables are null."""
        import pyarrow as pa

        tables = [table.to_arrow() for table in self]
        named = [
            found.add_column(0, "table", pa.array([", ".join(table.by) or "all"] * len(found), pa.string()))
            for table, found in zip(self, tables, strict=True)
        ]
        attributes = dict.fromkeys(name for table in self for name in table.by)
        numbers = dict.fromkeys(name for found in tables for name in found.column_names if name not in attributes)
        return pa.concat_tables(named, promote_options="default").select(["table", *attributes, *numbers])

    def tidy(self) -> pa.Table:
        """One row per number of every table, in the columns of `discreet.results.COLUMNS`."""
        import pyarrow as pa

        return pa.concat_tables([table.tidy() for table in self])

    def __repr__(self) -> str:
        tables = "; ".join(", ".join(table.by) or "no attribute" for table in self)
        return f"<CountReleases of {len(self)} tables by {tables:.100}: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return "\n".join([*map(repr, self), str(self.guarantee)])
