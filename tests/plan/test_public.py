"""What counts as public: the list of establishments does, wherever it lies; a check reads nothing else of the data."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.plan.confidential import shown_as_public
from discreet.plan.reading import read_plan


def _public(plan: Path, line: str, source: str = "data/jobs.parquet") -> Path:
    text = plan.read_text(encoding="utf-8").replace('"data/jobs.parquet"', f'"{source}"')
    plan.write_text(text.replace("[unit]", f"[public]\n{line}\n\n[unit]"), encoding="utf-8")
    return plan


def test_the_list_of_establishments_is_public_in_the_folder_of_the_data_too(plan: Path, command) -> None:
    listed = plan.parent / "data" / "places.parquet"
    table = pq.read_table(listed)
    pq.write_table(table.append_column("jobs", pa.array(np.arange(1, 41))), listed)
    _public(plan, "sizes = 'data/places.parquet'", source="data")
    assert not list(shown_as_public(read_plan(plan).sources[0]))
    code, out, err = command("check", plan)
    assert code == 0, err
    assert "publicly known sizes" in out
    assert "Nothing confidential was read" in out


def test_calling_the_jobs_a_list_of_establishments_does_not_make_them_public(plan: Path) -> None:
    _public(plan, "sizes = 'data/jobs.parquet'", source="data")
    plan.write_text(plan.read_text().replace("places.parquet", "jobs.parquet"), encoding="utf-8")
    assert list(shown_as_public(read_plan(plan).sources[0]))


def test_a_glob_and_a_linked_folder_are_seen_through(plan: Path) -> None:
    (plan.parent / "other").symlink_to("data", target_is_directory=True)
    assert list(
        shown_as_public(read_plan(_public(plan, "sizes = 'other/jobs.parquet'", source="dat?/jobs.parquet")).sources[0])
    )


def test_a_copy_elsewhere_and_an_earlier_release_pass(plan: Path) -> None:
    """Only whoever writes the plan knows whether another file is public."""
    shutil.copy(plan.parent / "data" / "jobs.parquet", plan.parent / "s.parquet")
    assert not list(shown_as_public(read_plan(_public(plan, "sizes = 's.parquet'")).sources[0]))


@pytest.mark.parametrize("sizes", ["/", "..", "/**", "/**/s.parquet", "empty"])
def test_a_folder_that_is_no_table_is_refused_unwalked(plan: Path, command, monkeypatch, sizes: str) -> None:
    from discreet.plan import confidential

    (plan.parent / "empty").mkdir()
    walk = confidential.files_of
    monkeypatch.setattr(
        confidential, "files_of", lambda path: walk(path) if path.is_file() else pytest.fail(f"{path} was walked")
    )
    code, _, err = command("check", _public(plan, f"sizes = '{sizes}'"))
    assert code == 2
    assert f"[public], sizes: '{sizes}' is a folder without Parquet files, or" in err


def test_folders_of_parquet_files_are_tables(plan: Path, command) -> None:
    sizes = pa.table({"place": ["P0", "P1"], "sector": ["farm", "shop"], "jobs": [5, 9]})
    for name in ("flat", "parts/year=2025"):
        (plan.parent / name).mkdir(parents=True)
        pq.write_table(sizes, plan.parent / name / "s.parquet")
    text = plan.read_text(encoding="utf-8")
    for name in ("flat", "parts", "flat/?.parquet"):
        plan.write_text(text, encoding="utf-8")
        code, out, err = command("check", _public(plan, f"sizes = '{name}'"))
        assert code == 0, err
        assert "publicly known sizes" in out
