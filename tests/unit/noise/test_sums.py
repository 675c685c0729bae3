"""Sums with noise: what is drawn beyond the sampler's cut shows nothing of the exact sum."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.noise import sampler
from discreet.noise.laws import Laplace
from discreet.noise.source import SeededSource


def test_noise_that_was_cut_hides_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = np.array([-sampler.MOST, -7, 0, 7, sampler.MOST])
    for sign in (1, -1):
        monkeypatch.setattr(sampler, "draw_integers", lambda *_, s=sign, **__: np.full(5, s * 2**62))
        assert set(sampler.add_noise(exact, Laplace(), scale=np.ones(5), source=SeededSource(1))) == {sign * 2**61}


def test_every_sum_with_noise_goes_through_one_function() -> None:
    """Elsewhere noise is compared (selection), continued beyond the cut (erm), drawn again (ladder) or a
    number of its own (audited_draw)."""
    root = Path(discreet.__file__).parent
    uses = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\bdraw_integers\(|\bdraw_on_grid\(", path.read_text()) and path.parent.name != "noise"
    }
    tables = {"tables/mechanisms/ladder.py", "tables/mechanisms/two_sizes.py"}
    assert uses == {
        "models/bayes/selection.py",
        "models/bayes/erm.py",
        "models/bayes/audited_draw.py",
        "models/linear/private/paper.py",
        *tables,
    }
    assert "return add(count, self.noise(largest, source))" in (root / "tables/mechanisms/ladder.py").read_text()
