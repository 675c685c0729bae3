"""A reviewer whose code computes the same says so, whatever words differ; other code is never called wrong for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.plan.run import run
from discreet.review import verdict
from discreet.review.verdict import verify_bundle

CODE = {"computing_hash", "source_hash"}


@pytest.mark.parametrize(
    ("differ", "code", "basic"),
    [
        (set(), "holds", "holds"),
        ({"source_hash"}, "holds", "holds"),
        (CODE, "not checked", "holds"),
    ],
    ids=["this code", "a changed help text", "other code"],
)
def test_words_are_no_other_code(
    plan: Path, differ: set[str], code: str, basic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = run(plan).bundle
    for name in differ:
        monkeypatch.setattr(verdict, name, lambda more: "0" * 64)
    states = {one.subject: one.state for one in verify_bundle(bundle)}
    assert {states[f"{name}: code"] for name in ("places", "sexes", "margins")} == {code}
    assert {states[f"{name}: basic form"] for name in ("places", "sexes", "margins")} == {basic}
    assert states["report.html"] == "holds", "the same bytes prove themselves"


def test_a_report_with_other_words_is_wrong_only_where_every_word_is_ours(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = run(plan).bundle
    monkeypatch.setattr(verdict.Rebuilt, "report", lambda plan: b"another")
    assert {one.subject for one in verify_bundle(bundle) if one.wrong} == {"report.html"}
    monkeypatch.setattr(verdict, "source_hash", lambda more: "0" * 64)
    assert not [one for one in verify_bundle(bundle) if one.wrong]
