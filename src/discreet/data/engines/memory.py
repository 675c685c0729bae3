"""Arrow tables in this process: no database, every step is computed as a whole. For small data and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.data.frames import called, collect, open_frame, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.delimited import Reading
    from discreet.data.frames import Frame


class Memory:
    """A shelf of Arrow tables. Files are read whole; frames of other libraries become Arrow."""

    def __init__(self) -> None:
        self._kept: dict[str, pa.Table] = {}

    def read(
        self,
        source: Any,
        *,
        name: str | None = None,
        table: str | None = None,
        readings: Mapping[str, Reading] | None = None,
    ) -> Frame:
        """A lazy frame over an Arrow table: a kept one, a frame in memory, or all rows of a path or another engine."""
        import narwhals.stable.v2 as nw

        name = name or called(source)
        if isinstance(source, str) and source in self._kept:
            held = self._kept[source]
        else:
            held = to_arrow(source, name=name)
            if held is None:
                held = collect(open_frame(source, name=name, table=table, readings=readings), step=f"read {name}")
        return open_frame(nw.from_native(held), name=name)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute the step and shelve it under `name`."""
        self._kept[name] = collect(frame, step=name)
        return self.read(name)

    def close(self) -> None:
        """Empty the shelf."""
        self._kept.clear()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
