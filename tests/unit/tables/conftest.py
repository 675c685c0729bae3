"""One small simulated economy, shared by all tests of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.data.jobs import Jobs, read_jobs
from discreet.simulate import lodes


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    folder: Path = tmp_path_factory.mktemp("jobs") / "lodes"
    lodes.write(folder, seed=5, share=0.004)
    return read_jobs(folder)
