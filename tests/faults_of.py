"""What an error is about, for `pytest.raises(DataError, check=about("by"))`: tests compare that, and never its words.

Where several faults are about one thing, `naming` tells them apart by the facts that they quote: a column, a file, a
number. `tests/unit/test_own_messages.py` refuses `match=` on our errors.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.words.errors import DiscreetError


def about(*subjects: str | None, naming: tuple[object, ...] = ()) -> Callable[[BaseException], bool]:
    """Whether the first fault of an error is about one of these, and its text quotes each of these values."""
    return lambda error: (
        isinstance(error, DiscreetError) and error.about in subjects and all(str(fact) in str(error) for fact in naming)
    )
