"""What counts as the same answer, and what does not: each comparison's own judgement."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import accuracy, cluster, counts, data, mixed, peers, roc, sampler


def test_counts_must_have_their_laws_error_and_a_peer_one_near_it() -> None:
    ours, off = {"error": 1 / math.sinh(1), "cells": 10_000}, {"error": 0.96, "cells": 10_000}
    assert counts.errors(ours)({"error": 0.85}).ok
    assert not counts.errors(off)({"error": 0.85}).ok
    assert not counts.errors(ours)({"error": 0.5}).ok


@pytest.mark.parametrize(
    ("changed", "theirs", "protected", "ok"),
    [
        ({}, True, "jobs", True),
        ({}, False, "jobs", False),
        ({"covered": 0.9}, True, "jobs", False),
        ({"error": 12.0}, True, "jobs", False),
        ({"error": 12.0}, True, "establishments", True),
    ],
)
def test_beside_true_counts_ours_must_cover_and_they_must_be_exact(
    changed: dict[str, float], theirs: bool, protected: str, ok: bool
) -> None:
    ours = {"error": 1 / math.sinh(1), "covered": 0.95, "cells": 10_000, **changed}
    assert counts.exact(ours, protected)({"exact": theirs}).ok is ok


def test_errors_drawn_must_be_those_of_the_closed_form_at_the_loss_that_was_promised() -> None:
    found = {"errors": [10.0, 10.0, 12.0], "kept": [True, False, True]}
    said = accuracy.agreements(found, [10.0, 10.0, 10.0], 10_000)
    assert [one.ok for one in said] == [True, False, False]


@pytest.mark.parametrize(
    ("ours", "theirs", "same", "ok"),
    [(1.0, 1.0, True, True), (1.1, 1.0, True, False), (1.0, 1.1, True, False), (1.0, 9.0, False, True)],
)
def test_the_mean_of_noise_must_be_the_laws(ours: float, theirs: float, same: bool, ok: bool) -> None:
    mine = {"mean": ours, "law": 1.0, "se": 0.001}
    assert sampler.said(mine, {"mean": theirs, "se": 0.001}, same=same).ok is ok


def test_criteria_must_agree_to_eight_digits() -> None:
    agree = mixed.criterion({"criterion": -1000.0})
    assert agree({"criterion": -1000.000_001}).ok
    assert not agree({"criterion": -1000.000_1}).ok
    assert not agree({"criterion": -999.999_9}).ok


def test_areas_must_agree_to_ten_digits_and_statistics_within_their_error() -> None:
    assert roc.same_area({"area": 0.7}, {"area": 0.7 + 1e-12}).ok
    assert not roc.same_area({"area": 0.7}, {"area": 0.7 - 1e-9}).ok
    ours = {"area": [0.7, 0.6], "statistic": 3.5}
    assert roc.same_test(ours, {"area": [0.7, 0.6], "statistic": 3.8}).ok
    assert not roc.same_test(ours, {"area": [0.7, 0.6], "statistic": 4.2}).ok
    assert not roc.same_test(ours, {"area": [0.7, 0.61], "statistic": 3.5}).ok


def test_engines_that_give_different_cells_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {"same": True, "counts": 3}
    monkeypatch.setattr(cluster, "find_spec", lambda _: True)
    monkeypatch.setattr(peers, "java", lambda: None)
    monkeypatch.setattr(data, "jobs", lambda _: Path("jobs"))
    monkeypatch.setattr(peers, "ours", lambda *_: found)
    assert cluster.engines(1e5) == found
    found["same"] = False
    with pytest.raises(peers.Failed, match="different cells"):
        cluster.engines(1e5)
