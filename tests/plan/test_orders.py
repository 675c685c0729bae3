"""No verdict depends on the order in which a plan declares things: sources, columns, domains, hierarchies, keys."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.plan.run import run
from discreet.review.verdict import verify_bundle

FARMS = ["1111", "1112", "2361", "5221"]
LEVELS = {
    "industry": {"levels": ["naics", "naics2"], "prefix": [4, 2]},
    "Area 1": {"levels": ["county", "zone"], "lookup": "zones.csv"},
    "area-1": ["town", "state"],
}
"""Of each kind one; two names are spelled alike in file names."""

NOT_CHECKED = ("cells", "draws", "names", "slopes: mechanisms", "slopes: intervals")


def shuffled(rng: random.Random, value: Any) -> Any:
    """The same mapping, its keys in another order."""
    if not isinstance(value, dict):
        return value
    return {key: shuffled(rng, value[key]) for key in rng.sample(list(value), len(value))}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def write_source(rng: random.Random, folder: Path, name: str) -> dict[str, Any]:
    draw = np.random.default_rng(rng.randrange(2**32))
    town = draw.integers(0, 4, 40)
    places = {
        "workplace": np.arange(40),
        "naics": draw.choice(FARMS, 40),
        "county": [f"c{i}" for i in draw.integers(0, 4, 40)],
        "town": [f"t{i}" for i in town],
        "state": [f"s{i // 2}" for i in town],
        "kind": draw.choice(["a", "b"], 40),
    }
    workplace = np.repeat(np.arange(40), draw.geometric(0.1, 40))
    jobs = {"workplace": workplace, "worker": np.arange(len(workplace))}
    jobs |= {"sex": draw.choice(["f", "m"], len(workplace)), "age": draw.choice(["old", "young"], len(workplace))}
    pq.write_table(pa.table(places), folder / f"{name}-places.parquet")
    pq.write_table(pa.table(jobs), folder / f"{name}-jobs.parquet")
    (folder / "zones.csv").write_text("county,zone\n" + "".join(f"c{i},z{i // 2}\n" for i in range(4)))
    listed = rng.sample(["naics", "county", "town", "state", "kind"], 5)
    return {
        "data": {
            "source": f"{name}-jobs.parquet",
            "workplaces": f"{name}-places.parquet",
            "schema": {
                "workplace_attributes": listed,
                "worker_attributes": {"sex": rng.sample(["f", "m"], 2), "age": ["young", "old"]},
            },
            "labels": {"sex": {"f": "women", "m": "men"}, "state": {"s1": "South"}},
        },
        "hierarchy": LEVELS,
        "unit": {"kind": "establishments", "alpha": 0.1},
        "budget": {"epsilon": 4, "ledger": "ledger.db", "dataset": name},
    }


def write_panel(rng: random.Random, folder: Path) -> dict[str, Any]:
    """A table of rows, of which two public columns are in the formula."""
    draw = np.random.default_rng(rng.randrange(2**32))
    rows = {"y": draw.random(400), "g": [f"g{i}" for i in draw.integers(0, 8, 400)], "x": draw.random(400)}
    pq.write_table(pa.table(rows | {"b": draw.random(400)}), folder / "panel.parquet")
    unit = {"kind": "rows", "lower": 0, "upper": 1, "response": rng.sample(["y", "b"], 2)}
    data = {"source": "panel.parquet", "public": rng.sample(["x", "g"], 2)}
    return {"data": data, "unit": unit, "budget": {"epsilon": 2, "ledger": "ledger.db", "dataset": "mice"}}


def write_plan(rng: random.Random, folder: Path) -> Path:
    names = rng.sample(["zebra", "ant"], rng.randint(1, 2))
    sources = {name: write_source(rng, folder, name) for name in names}
    releases: list[dict[str, Any]] = []
    for name in names:
        by = rng.sample(["naics", "county", "town"], 3)
        coarse = rng.sample([["zone", "naics2"], ["state"], ["naics2", "town"], ["zone"], []], 3)
        tables = rng.sample([by, *coarse], 4)
        levels = {"name": f"{name}-levels", "kind": "counts", "tables": tables, "measure": "finest", "epsilon": 2}
        levels |= {"add_up": rng.random() < 0.5, "mechanism": None}
        where = {"naics2": rng.sample(["11", "23", "52"], 2), "state": ["s0", "s1"], "age": ["young"]}
        kinds = {"name": f"{name}-kinds", "kind": "count", "by": rng.sample(["zone", "sex", "kind"], 3), "where": where}
        kinds |= {"epsilon": 2, "mechanism": "polynomial", "establishments": True}
        releases += [{key: each for key, each in release.items() if each is not None} for release in (levels, kinds)]
        for release in releases[-2:]:
            release |= {"source": name} if len(names) > 1 else {}
    if len(names) > 1:
        sources["mice"] = write_panel(rng, folder)
        model = {"name": "slopes", "kind": "model", "formula": "y ~ x + (1 | g)", "epsilon": 2, "source": "mice"}
        releases.append(model)
    output = {"folder": "out", "forms": rng.sample(["basic", "research"], 2)}
    output |= {"formats": rng.sample(["parquet", "csv"], 2)}
    content = {"output": output, **({"source": sources} if len(names) > 1 else sources[names[0]])}
    lines = [f"{key} = {toml(each)}" for key, each in shuffled(rng, content).items()]
    for release in rng.sample(releases, len(releases)):
        lines += ["[[release]]", *(f"{key} = {toml(each)}" for key, each in shuffled(rng, release).items())]
    plan = folder / "plan.toml"
    plan.write_text("\n".join(lines), encoding="utf-8")
    return plan


@pytest.mark.parametrize("seed", range(5))
def test_nothing_of_a_genuine_release_is_called_wrong(seed: int, tmp_path: Path) -> None:
    plan = write_plan(random.Random(seed), tmp_path)
    done = run(plan)
    findings = verify_bundle(done.bundle, ledger=tmp_path / "ledger.db")
    assert not [one for one in findings if one.wrong], plan.read_text()
    states = {one.subject: one.state for one in findings}
    assert {states[name] for name in states if not name.endswith(NOT_CHECKED)} == {"holds"}, findings
