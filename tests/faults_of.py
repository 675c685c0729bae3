"""What an error is about, for `pytest.raises(DataError, check=about("by"))`: tests compare that, not its words."""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import DiscreetError


def about(*subjects: str) -> Callable[[BaseException], bool]:
    """Whether the first fault of an error is about one of these."""
    return lambda error: isinstance(error, DiscreetError) and error.about in subjects
