"""What every run of the tests shares."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from typing import Any

import pytest

TOGETHER = ("tests/engines", "tests/ledger", "tests/web/desk")  # each shares a server: Spark, PostgreSQL, a browser

if "PYTEST_XDIST_WORKER" in os.environ:
    # A test worker ends without taking the interpreter apart: DuckDB's binding would list on the terminal, after the
    # results, whatever a thread that is still waiting holds of it. What is registered later runs before it.
    atexit.register(os._exit, 0)


@pytest.fixture(scope="session", autouse=True)
def kept_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables of noise are kept in a folder of the run, which its workers share, and not in somebody's home."""
    run = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "cache"))
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file goes to one worker, so that what its tests share is made once; `TOGETHER` are folders that do."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)

    return ByFile(config, log)
