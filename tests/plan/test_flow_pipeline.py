"""From job histories to a private model of counties: what a budget of 4 keeps of the county effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.simulate import histories, stream

QUARTERS = histories.quarter_names()


def effects(rate: str, panel: pa.Table) -> dict[str, float]:
    fit = dc.mixed(f"{rate} ~ 0 + industry + (1 | county)", panel, weights="weight")
    found = fit.effects["county"]
    return dict(zip(map(str, found.levels), np.ravel(found.values).tolist(), strict=True))


def without_noise(table: Any, ready: Any) -> pa.Table:
    """The same rows from the flows themselves."""
    cells = ready.read(table)
    return ready.released(cells.keys, cells.vectors, None).panel()


def correlations(share: float, *, releases: int = 3) -> dict[str, list[float]]:
    data = stream.collect(histories.batches(share=share))
    schema = dc.Schema(["state", "county", "industry"], {})
    table = dc.read_histories(data["job"], quarters=QUARTERS, workplaces=data["workplace"], schema=schema)
    found: dict[str, list[float]] = {rate: [] for rate in ("jcr", "jdr", "ar", "sr")}
    for _ in range(releases):
        session = dc.Session(table, unit=dc.Establishments("0.1"), budget=4)
        query = session.flows(QUARTERS[1:7], ["county", "industry"])
        private = query.release(epsilon=4).panel()
        assert session.remaining == dc.Pure(0)
        plain = without_noise(table, query.prepare(epsilon=4))
        for rate, values in found.items():
            one, other = effects(rate, plain), effects(rate, private)
            values.append(float(np.corrcoef([one[county] for county in one], [other[county] for county in one])[0, 1]))
    return found


@pytest.mark.full_size
def test_county_effects_survive_a_budget_of_four() -> None:
    """A quarter of full size: 50 counties, 40,000 establishments, 5 million rows."""
    found = correlations(0.25)
    print({rate: [round(value, 3) for value in values] for rate, values in found.items()})
    assert min(value for values in found.values() for value in values) >= 0.9


def test_histories_have_the_same_rows_for_a_seed_and_one_job_for_a_worker_in_a_quarter() -> None:
    one, other = (stream.collect(histories.batches(seed=3, share=0.001)) for _ in range(2))
    assert one["job"].equals(other["job"]) and one["workplace"].equals(other["workplace"])
    assert not one["job"].equals(stream.collect(histories.batches(seed=4, share=0.001))["job"])
    rows = one["job"].to_pandas()
    assert not rows.duplicated(["worker", "quarter"]).any()
    assert set(rows["quarter"]) == set(QUARTERS)
    stays = rows.merge(rows, on=["worker", "workplace"])
    assert (stays["quarter_x"] != stays["quarter_y"]).any()
