"""Answers by the word of a closed vocabulary: complete, or an error that names the word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from discreet.words.errors import DiscreetError

T = TypeVar("T")
Word = TypeVar("Word", bound=str)


def case_of(word: str, cases: Mapping[Word, T]) -> T:
    """The case of a word; a word that nobody thought of here has none, whatever the others have.

    Examples
    --------
    >>> case_of("poisson", {"binomial": "shares", "poisson": "counts"})
    'counts'
    """
    for known, case in cases.items():
        if word == known:
            return case
    raise unknown(word, cases)


def unknown(word: object, known: Iterable[str]) -> DiscreetError:
    """The error for a word that has no case."""
    return DiscreetError(
        f"{word!r} has no case here.",
        f"There are: {', '.join(known)}.",
        "It was added elsewhere and not here: report this.",
        about=str(word),
    )
