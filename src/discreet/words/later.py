"""A sequence that is found when somebody looks at it: what few people read of a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")


class Later(Sequence[Item]):
    """The value that `find` gives, computed once; in another process it is a tuple."""

    def __init__(self, find: Callable[[], Sequence[Item]]) -> None:
        self._found = cache(lambda: tuple(find()))

    def __getitem__(self, place: Any) -> Any:
        return self._found()[place]

    def __len__(self) -> int:
        return len(self._found())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._found() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._found())

    def __repr__(self) -> str:
        return repr(self._found())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._found(),)
