"""Released tables with a hierarchy, kinds of workers, sums and categories that are hard to print."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.plan.run import run
from publication_jobs import write_jobs


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of the plan; only looked at."""
    folder = tmp_path_factory.mktemp("released")
    run(write_jobs(folder))
    return folder / "out"


@pytest.fixture
def copied(released: Path, tmp_path: Path) -> Callable[[], Path]:
    """A copy of the output folder, to be broken."""

    def copy() -> Path:
        return Path(shutil.copytree(released, tmp_path / "copy"))

    return copy
