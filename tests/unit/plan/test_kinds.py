"""Every section of a plan has a kind, and one that nobody thought of is an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from discreet.plan.kinds.registry import KINDS, kind_of
from discreet.plan.shape import AnyRelease
from discreet.words.errors import DiscreetError
from faults_of import about

SECTIONS = {get_args(each.model_fields["kind"].annotation)[0]: each for each in get_args(get_args(AnyRelease)[0])}


def test_every_section_has_a_kind() -> None:
    assert {*KINDS} == {*SECTIONS} and len(SECTIONS) == 8


def test_an_unknown_section_is_named() -> None:
    unknown: Any = SimpleNamespace(kind="medians")
    with pytest.raises(DiscreetError, check=about("medians")):
        kind_of(unknown)


@pytest.mark.parametrize("word", SECTIONS)
def test_keys_that_a_kind_names_are_keys_of_its_section(word: str) -> None:
    """Faults are told at these keys: one that is missing would be told nowhere."""
    section, kind = SECTIONS[word], KINDS[word]
    optional = {"mechanism"}  # several tables choose theirs
    named = {kind.subject, *kind.steering, *kind.reported} - optional
    assert named <= section.model_fields.keys()
    assert section.model_fields[kind.steering[-1]].default is not None  # one of them is always to blame
    assert not {*kind.parameters} & section.model_fields.keys()
    if word in ("flows", "changes", "posterior"):
        assert {*kind.parameters.values()} <= section.model_fields.keys()
