"""From job histories to a private model of counties: what a budget of 4 keeps of the county effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise.flow_body import FLOWS
from discreet.simulate import histories, stream
from discreet.tables.flow_noise import flows_of
from discreet.tables.flow_release import rates_of
from discreet.tables.flows import statistics

QUARTERS = histories.quarter_names()


def effects(rate: str, tables: list[pa.Table]) -> dict[str, float]:
    panel = pa.concat_tables(tables)
    fit = dc.mixed(f"{rate} ~ 0 + quarter + (1 | county)", panel)
    found = fit.effects["county"]
    return dict(zip(map(str, found.levels), np.ravel(found.values).tolist(), strict=True))


def without_noise(table: Any, quarter: str) -> pa.Table:
    cells = statistics(table, quarter, ["county"])
    rates = rates_of(dict(zip(FLOWS, flows_of(cells.vectors).T, strict=True)))
    return pa.table({"county": cells.keys["county"], "quarter": [quarter] * len(cells.keys), **rates})


def correlations(share: float, rates: list[str]) -> dict[str, float]:
    data = stream.collect(histories.batches(share=share))
    schema = dc.Schema(["state", "county", "industry"], {})
    table = dc.read_histories(data["job"], quarters=QUARTERS, workplaces=data["workplace"], schema=schema)
    session = dc.Session(table, unit=dc.Establishments("0.1"), budget=4)
    private = [session.flows(quarter, "county").release(epsilon=1).to_arrow() for quarter in QUARTERS[1:5]]
    assert session.remaining == dc.Pure(0)
    plain = [without_noise(table, quarter) for quarter in QUARTERS[1:5]]
    found = {}
    for rate in rates:
        one, other = effects(rate, plain), effects(rate, private)
        found[rate] = float(np.corrcoef([one[county] for county in one], [other[county] for county in one])[0, 1])
    return found


@pytest.mark.full_size
def test_county_effects_survive_a_budget_of_four() -> None:
    found = correlations(0.25, ["jcr", "jdr", "ar", "sr"])
    print({rate: round(value, 3) for rate, value in found.items()})
    assert found["jcr"] >= 0.9 and found["ar"] >= 0.9


def test_histories_have_the_same_rows_for_a_seed_and_one_job_for_a_worker_in_a_quarter() -> None:
    one, other = (stream.collect(histories.batches(seed=3, share=0.001)) for _ in range(2))
    assert one["job"].equals(other["job"]) and one["workplace"].equals(other["workplace"])
    assert not one["job"].equals(stream.collect(histories.batches(seed=4, share=0.001))["job"])
    rows = one["job"].to_pandas()
    assert not rows.duplicated(["worker", "quarter"]).any()
    assert set(rows["quarter"]) == set(QUARTERS)
    stays = rows.merge(rows, on=["worker", "workplace"])
    assert (stays["quarter_x"] != stays["quarter_y"]).any()
