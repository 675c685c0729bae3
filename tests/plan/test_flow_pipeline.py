"""From job histories to a private model of counties: what a budget of 4 keeps of the county effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise.source import SeededSource
from discreet.simulate import histories, stream

QUARTERS = histories.quarter_names()


def effects(rate: str, panel: pa.Table) -> dict[str, float]:
    fit = dc.mixed(f"{rate} ~ 0 + industry + (1 | county)", panel, weights="weight")
    found = fit.effects["county"]
    return dict(zip(map(str, found.levels), np.ravel(found.values).tolist(), strict=True))


def without_noise(table: Any, ready: Any) -> pa.Table:
    """The same rows from the flows themselves."""
    cells = ready.read(table)
    return ready.released(cells.keys, cells.vectors, None, cells.establishments).panel()


def correlations(share: float, *, releases: int = 100) -> dict[str, np.ndarray]:
    """The county effects of private fits beside those of the same fit without noise, for many releases of one nation.

    One goes through the door and empties its budget; the others are drawn in the same way from the same cells.
    """
    data = stream.collect(histories.batches(share=share))
    schema = dc.Schema(["state", "county", "industry"], {})
    table = dc.read_histories(data["job"], quarters=QUARTERS, workplaces=data["workplace"], schema=schema)
    session = dc.Session(table, unit=dc.Establishments("0.1"), budget=4)
    query = session.flows(QUARTERS[1:7], ["county", "industry"])
    ready = query.prepare(epsilon=4)
    cells = ready.read(table)
    private = [query.release(epsilon=4)] + [ready.draw(cells, SeededSource(i)) for i in range(1, releases)]
    assert session.remaining == dc.Pure(0)
    panels, plain = [each.panel() for each in private], without_noise(table, ready)
    found = {}
    for rate in ("jcr", "jdr", "ar", "sr"):
        one, others = effects(rate, plain), [effects(rate, panel) for panel in panels]
        values = [[[each[county] for county in one] for each in (one, other)] for other in others]
        found[rate] = np.array([np.corrcoef(*pair)[0, 1] for pair in values])
    return found


@pytest.mark.full_size
@pytest.mark.parametrize("share", [0.25, 1.0])
def test_county_effects_survive_a_budget_of_four(share: float) -> None:
    """In every one of 100 releases. A quarter of full size has 50 counties, 40,000 establishments, 5 million rows."""
    found = correlations(share)
    for rate, values in found.items():
        print(share, rate, "mean", values.mean().round(4), "least", values.min().round(3))
    assert all(values.mean() >= 0.95 and values.min() >= 0.9 for values in found.values())


def test_histories_have_the_same_rows_for_a_seed_and_one_job_for_a_worker_in_a_quarter() -> None:
    one, other = (stream.collect(histories.batches(seed=3, share=0.001)) for _ in range(2))
    assert one["job"].equals(other["job"]) and one["workplace"].equals(other["workplace"])
    assert not one["job"].equals(stream.collect(histories.batches(seed=4, share=0.001))["job"])
    rows = one["job"].to_pandas()
    assert not rows.duplicated(["worker", "quarter"]).any()
    assert set(rows["quarter"]) == set(QUARTERS)
    stays = rows.merge(rows, on=["worker", "workplace"])
    assert (stays["quarter_x"] != stays["quarter_y"]).any()
