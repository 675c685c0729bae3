"""One rule of shares for every door: above 0, one for each part, exactly 1 together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.models.bayes.clipped import clipped_mean
from discreet.models.bayes.spending import by_question
from discreet.privacy.split import divided, read_split
from discreet.words.errors import PrivacyError

THIRDS = {"a": Fraction(1, 3), "b": Fraction(2, 3)}
DOORS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "parts": ("split", lambda split: read_split(split, THIRDS)),
    "stages": ("stages", lambda split: clipped_mean("zero", "tight", 1.0, split)),
    "questions": ("split", lambda split: by_question(["a", "b"], split, epsilon=Fraction(1))),
}
NAMES = {"parts": ("a", "b"), "stages": ("bounds", "mean"), "questions": ("a", "b")}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("wrong", [(1, 1), ("1/2", "1/3"), (0, 1), ("-1/2", "3/2"), (0.1,), ()])
def test_wrong_shares_are_refused_alike(door: str, wrong: tuple[Any, ...]) -> None:
    about, ask = DOORS[door]
    with pytest.raises(PrivacyError) as refused:
        ask(dict(zip(NAMES[door], wrong, strict=False)))
    assert [fault.about for fault in refused.value.faults] == [about]
    with pytest.raises(PrivacyError) as refused:
        ask([0.5, 0.5])
    assert [fault.about for fault in refused.value.faults] == [about]


@pytest.mark.parametrize("wrong", [(1, 1), ("1/2", "1/3"), (0, 1), (1,), ()])
def test_wrong_shares_of_tables_are_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(PrivacyError) as refused:
        divided(wrong, 2)
    assert [fault.about for fault in refused.value.faults] == ["split"]


def test_shares_are_exact() -> None:
    assert read_split({"a": "1/3", "b": "2/3"}, {"a": Fraction(1, 2), "b": Fraction(1, 2)}) == THIRDS
    assert read_split({"b": 1}, THIRDS, optional=("a",)) == {"b": 1}
    assert read_split(None, THIRDS) == THIRDS
    assert divided(None, 3) == [Fraction(1, 3)] * 3
