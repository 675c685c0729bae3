"""The simulated economies of the bench."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import data

from discreet.simulate import lodes, qwi, stream


def test_the_economy_grows_in_proportion_up_to_fifty_states() -> None:
    assert data.shape(10.9e6) == lodes.SHAPE
    assert [data.shape(count).states for count in (1e5, 4e7, 1.5e8, 1e9)] == [4, 15, 50, 50]
    nation = data.shape(1.5e8)
    assert nation.jobs == 150_000_000
    assert nation.jobs / nation.places == pytest.approx(lodes.SHAPE.jobs / lodes.SHAPE.places, rel=1e-3)


def test_every_state_has_a_name_of_its_own_and_its_counties_and_places_begin_with_it() -> None:
    small = replace(lodes.SHAPE, establishments=3_000, jobs=30_000, places=600, counties=120, states=50)
    kept = ((name, batch) for name, batch in lodes.batches(shape=small) if name == "workplace")
    found = stream.collect(kept)["workplace"].to_pylist()
    assert {row["state"] for row in found} == {
        *"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        *("A" + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"),
    }
    assert all(row[part].rstrip("0123456789") == row["state"] for row in found for part in ("county", "place"))


def test_what_is_interrupted_leaves_nothing_and_what_is_whole_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "columns"

    def torn(folder: Path) -> None:
        folder.mkdir()
        (folder / "first").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.kept(path, torn)
    assert not any(path.parent.iterdir())
    assert data.kept(path, lambda new: new.write_text("whole")).read_text() == "whole"
    assert data.kept(path, torn).read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_data_are_kept_by_the_code_that_made_them() -> None:
    made = {path.name for path in data.MAKERS}
    assert {"data.py", "lodes.py", "qwi.py", "draws.py", "stream.py"} <= made
    assert data.HOME.parent == data.peers.ROOT / "out" / "bench"


def test_a_torn_panel_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = tmp_path / "qwi-1" / "qwi.parquet"
    found = iter([panel])
    monkeypatch.setattr(data, "HOME", tmp_path)
    monkeypatch.setattr(data, "rows", lambda _: next(found))
    qwi.write(panel.parent, share=0.001)
    with pytest.raises(StopIteration):
        data.longer(2)
    with monkeypatch.context() as broken:
        broken.setattr(data.np.random, "default_rng", lambda _: next(found))
        with pytest.raises(StopIteration):
            data.columns(panel)
    assert list(tmp_path.iterdir()) == [panel.parent]
    folder, rows = data.columns(data.every(panel, 2))
    order = np.fromfile(folder / "order", "i4")
    assert sorted(order) == list(range(1, rows + 1))
    assert np.fromfile(folder / "jcr").size == rows == (pq.read_metadata(panel).num_rows + 1) // 2
