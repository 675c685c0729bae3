"""What every run of the tests shares."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from typing import Any

import pytest

TOGETHER = ("tests/engines", "tests/ledger")  # each shares a server: Spark, PostgreSQL
LONGEST = (
    "tests/web/desk/test_look.py",
    "tests/distribution/audit/test_product_mechanisms.py",
    "tests/ledger",
    "tests/unit/tables/test_rings.py",
    "tests/unit/tables/test_ladder.py",
    "tests/plan/test_unpacking.py",
    "tests/plan/test_verification.py",
    "tests/engines",
    "tests/web/desk/test_release.py",
    "tests/web/desk/test_people.py",
    "tests/web/test_release_report.py",
    "tests/distribution/audit/test_product_doors.py",
    "tests/docs/test_pages.py",
    "tests/unit/test_extras.py",
    "tests/unit/audit/test_blackbox.py",
    "tests/unit/web/test_bounded_work.py",
    "tests/unit/mixed/test_conditioning.py",
)
"""Pieces of ten seconds and more, the longest first (`--durations=0` shows them)."""

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


def _piece(nodeid: str) -> str:
    """What goes to one worker: a file, or a folder that shares a server."""
    file = nodeid.split("::", 1)[0]
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with the longest pieces, so that none waits at the end for another's."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = {piece: at for at, piece in enumerate(LONGEST)}
        items.sort(key=lambda item: place.get(_piece(item.nodeid), len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A piece goes to one worker, so that what its tests share is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByPiece(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _piece(nodeid)

    config.option.loadscopereorder = False
    return ByPiece(config, log)
