"""What every run of the tests shares."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # A test worker ends without taking the interpreter apart: DuckDB's binding would list on the terminal, after the
    # results, whatever a thread that is still waiting holds of it. What is registered later runs before it.
    atexit.register(os._exit, 0)


@pytest.fixture(scope="session", autouse=True)
def kept_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables of noise are kept in a folder of the run, and not in somebody's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
