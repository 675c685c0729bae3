"""A desk on simulated data, to try everything: jobs by place and sector, and employment flows.

The public sizes are those of the year before the confidential one, as an agency would know them from last year's
publication. Models are tried on a stand-in: flows of the same shape from another seed. `furnish` puts work on it: a
release that is finished, a plan that waits for review, a draft.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from discreet.desk import planning, runs
from discreet.desk.accounts import Person, local_name
from discreet.desk.desk import SETTINGS, Desk
from discreet.desk.drafts import first_draft
from discreet.desk.store import DeskStore
from discreet.ledger.anchors import forget_simulated
from discreet.simulate import lodes, qwi
from discreet.words.errors import DataError

SEED = 1
PATIENCE = 0.1
"""Seconds between two looks at the run that makes the finished release."""

TEXT = """\
# A release desk on simulated data. `discreet serve FOLDER` opens it again.
title = "Demonstration desk"
{rules}ledger = "ledger.db"

[[source]]
name = "jobs"
title = "Jobs, simulated"
about = "One row for each job: where it is, in which sector, and what the worker is like."
path = "data/jobs"
dataset = "jobs"
unit = {{ kind = "establishments", alpha = 0.1 }}
epsilon = 8
sizes = "public/sizes.csv"
simulated = true

[[source]]
name = "flows"
title = "Employment flows, simulated"
about = "One row for each county, industry and quarter, with rates of job creation and destruction."
kind = "rows"
path = "data/flows/qwi.parquet"
dataset = "flows"
unit = {{ kind = "rows", lower = 0, upper = 2, response = "jcr" }}
public = ["county", "industry", "quarter", "season", "state"]
epsilon = 4
formula = "jcr ~ 0 + industry + quarter + (1 | county)"
stand_in = "public/flows/qwi.parquet"
simulated = true

[source.describes]
jcr = "job creation rate, 0 to 2"
jdr = "job destruction rate, 0 to 2"
industry = "20 sectors"
quarter = "number of the quarter"
county = "county of the establishment"
state = "state of the county"
season = "quarter of the year"
"""


def make(folder: Path, *, share: float = 0.02, rules: str = "") -> Desk:
    """A new desk in an empty folder; one that is there already is opened as it is."""
    if (folder / SETTINGS).is_file():
        return Desk.open(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(
            f"A demonstration desk cannot be put in {str(folder)!r}: something else is there.",
            "It needs a new or empty folder.",
            "Name another.",
            about="folder",
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    forget_simulated(folder / "ledger.db")
    lodes.write(folder / "data" / "jobs", seed=SEED, share=share, year=1)
    qwi.write(folder / "data" / "flows", seed=SEED, share=min(share, 0.01))
    qwi.write(folder / "public" / "flows", seed=SEED + 1, share=0.002)
    _sizes(folder / "public" / "sizes.csv", share=share)
    (folder / SETTINGS).write_text(TEXT.format(rules=rules), encoding="utf-8")
    return Desk.open(folder)


PUBLISHED: dict[str, Any] = {
    "title": "Jobs by place and sector",
    "release": [
        {
            **{"name": "jobs-by-sector", "kind": "count", "by": ["sector"]},
            **{"epsilon": "1", "scale_share": "0.1", "title": "Jobs by sector"},
        },
        {
            **{"name": "jobs-by-place-and-sector", "kind": "count", "by": ["place", "sector"]},
            **{"epsilon": "2", "scale_share": "0.1", "title": "Jobs by place and sector"},
        },
    ],
}
WAITING: dict[str, Any] = {
    "title": "Jobs by place and ownership",
    "release": [{"name": "jobs-by-place-and-ownership", "kind": "count", "by": ["place", "ownership"], "epsilon": "1"}],
}
DRAFTED: dict[str, Any] = {"title": "Job creation by industry"}


def furnish(desk: Desk) -> None:
    """Put work on a new desk: a finished release, a plan that waits for review, a draft; a used one stays as it is."""
    store, me = DeskStore(desk.database), Person(local_name(), "local", "")
    try:
        if planning.number(store):
            return
        _saved(desk, store, me, "flows", DRAFTED)
        waiting = _saved(desk, store, me, "jobs", WAITING)
        planning.submit(store, waiting.name, me)
        plan = _saved(desk, store, me, "jobs", PUBLISHED)
        planning.submit(store, plan.name, me)
        note = "Approved for the demonstration."
        planning.decide(desk, store, plan.name, me, verdict="approved", seen=plan.digest, note=note)
        name = runs.start(desk, store, plan.name, me)
        while runs.state_of(desk.runs, name) == "running":
            time.sleep(PATIENCE)
    finally:
        store.close()


def _saved(desk: Desk, store: DeskStore, me: Person, source: str, content: dict[str, Any]) -> planning.StoredPlan:
    draft = first_draft(desk, desk.sources[source]).model_copy(update=content)
    plan = planning.get(store, planning.save(desk, store, draft, me))
    assert plan is not None
    return plan


def _sizes(path: Path, *, share: float) -> None:
    """Jobs and the largest establishment of every cell in the year before."""
    import pyarrow as pa
    import pyarrow.csv

    tables = [batch for name, batch in lodes.batches(seed=SEED, share=share, year=0) if name == "jobs"]
    jobs = pa.Table.from_batches(tables)
    keys = ["place", "sector", "ownership"]
    text = pa.table({name: jobs[name].cast(pa.string()) for name in keys} | {"workplace": jobs["workplace"]})
    sizes = text.group_by([*keys, "workplace"]).aggregate([([], "count_all")])
    cells = sizes.group_by(keys).aggregate([("count_all", "sum"), ("count_all", "max")])
    order = np.lexsort([cells[name].to_numpy() for name in reversed(keys)])
    cells = cells.rename_columns({"count_all_sum": "jobs", "count_all_max": "largest"}).take(order)
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.csv.write_csv(cells.select([*keys, "jobs", "largest"]), path)
