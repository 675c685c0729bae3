"""Counties that changed between two halves: the truth against separate fits, noise that fades, the limits of flags."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from discreet.models.linear import mixed
from discreet.noise.source import SeededSource
from discreet.simulate import qwi, stream
from discreet.utility.flags import flags_raised
from discreet.utility.model_curves import Trials
from discreet_papers import lmm
from discreet_papers.lmm_changes import SHARE, blocks, change_flags, halves

FORMULA = lmm.MODELS["LMM"].format(rate="jcr")


@pytest.fixture(scope="module")
def flows():  # type: ignore[no-untyped-def]
    return stream.collect(qwi.batches(seed=1, share=0.012))["qwi"]


def test_halves_share_counties_and_no_quarter(flows) -> None:  # type: ignore[no-untyped-def]
    early, late = halves(flows)
    assert pc.max(early["quarter"]).as_py() < pc.min(late["quarter"]).as_py()
    assert set(early["county"].to_pylist()) == set(late["county"].to_pylist())


def test_without_noise_the_flags_are_those_of_separate_fits(flows) -> None:  # type: ignore[no-untyped-def]
    (row,) = change_flags(flows, FORMULA, [1e6], Trials(1, SeededSource(3), 0))
    fits = [mixed(FORMULA, half) for half in halves(flows)]
    effects = [dict(zip(fit.random[0].levels, fit.random[0].values.ravel(), strict=True)) for fit in fits]
    true = np.array([effects[1][county] - effects[0][county] for county in effects[0]])
    assert row["counties"] == len(true) and row["most"] == len(true) // SHARE
    assert flags_raised(true, true, most=row["most"]).pauc == pytest.approx(row["pauc"], abs=0.005)
    assert row["spearman"] > 0.99


def test_more_epsilon_finds_more(flows) -> None:  # type: ignore[no-untyped-def]
    rows = change_flags(flows, FORMULA, [0.01, 100], Trials(4, SeededSource(3), 0))
    assert rows[0]["pauc"] < rows[1]["pauc"] - 0.05 and rows[1]["kept"] > 0.5
    assert all(row["pauc_low"] - 1e-12 <= row["pauc"] <= row["pauc_high"] + 1e-12 for row in rows)
    _, prose, table, figure = blocks(rows)
    assert "counties" in prose.text and len(table.rows) == 2 and "PAUC" in figure.alt
