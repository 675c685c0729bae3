"""What every run of the tests shares."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import pickle
import sys
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

TOGETHER = ("tests/engines", "tests/ledger")  # each shares a server: Spark, PostgreSQL
LONGEST = (
    "tests/engines",
    "tests/docs/test_pages.py",
    "tests/desk/desk/test_release.py",
    "tests/desk/desk/test_look.py",
    "tests/desk/desk/test_people.py",
    "tests/plan/test_kills.py",
    "tests/distribution/audit/test_product_doors.py",
    "tests/unit/test_refusals_rows.py",
    "tests/plan/test_examples.py",
    "tests/plan/test_verification.py",
    "tests/unit/test_parts.py",
    "tests/unit/desk/test_bounded_work.py",
    "tests/desk/test_release_report.py",
    "tests/ledger",
    "tests/plan/test_broken.py",
    "tests/unit/tables/test_consistency.py",
    "tests/plan/test_check.py",
    "tests/unit/tables/test_flows.py",
    "tests/papers/test_lmm.py",
    "tests/unit/tables/test_session.py",
    "tests/unit/tables/test_advice.py",
    "tests/plan/test_unpacking.py",
    "tests/desk/desk/test_leaving.py",
    "tests/unit/desk/test_planning.py",
    "tests/unit/recording/test_flows.py",
    "tests/papers/test_tables.py",
    "tests/distribution/noise/test_draws.py",
    "tests/unit/tables/test_hierarchy.py",
    "tests/plan/test_databases.py",
    "tests/unit/recording/test_tables.py",
    "tests/plan/test_expected_errors.py",
    "tests/plan/test_run.py",
    "tests/unit/privacy/test_verify.py",
    "tests/desk/desk/test_behind_tls.py",
    "tests/distribution/mixed/test_coverage.py",
    "tests/plan/test_flows.py",
    "tests/distribution/audit/test_product_mechanisms.py",
    "tests/distribution/mixed/test_moments_audit.py",
)
"""Pieces of about eight processor seconds and more, the longest first."""

BROWSERS = {"browse", "browser", "chromium"}
"""Fixtures that start one."""

_ended: list[pytest.Session] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    _ended.append(session)


@atexit.register
def _leave() -> None:
    """End without taking the interpreter apart, with the status of the run.

    Otherwise DuckDB's binding lists on the terminal, after the results, whatever is still held of it. What is
    registered later runs before this.
    """
    if _ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(_ended[-1].exitstatus))


@pytest.fixture(scope="session", autouse=True)
def kept_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables of noise are kept in a folder of the run, which its workers share, and not in somebody's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(_of_all_workers(tmp_path_factory) / "cache"))
        patch.setenv("XDG_STATE_HOME", str(_of_all_workers(tmp_path_factory) / "state"))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The worst loss of a mechanism takes seconds to find: the workers of a run find each once, for both."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    from discreet.privacy import verify

    folder, find = _of_all_workers(tmp_path_factory) / "verdicts", verify._over_all
    folder.mkdir(exist_ok=True)

    @lru_cache(maxsize=256)
    def found(mechanism: Any) -> Any:
        try:
            kept = folder / sha256(pickle.dumps(mechanism)).hexdigest()
        except (pickle.PicklingError, AttributeError, TypeError):  # a mechanism that a test has made up
            return find(mechanism)
        if not kept.exists():
            beside = kept.with_suffix(f".{os.getpid()}")
            beside.write_bytes(pickle.dumps(find(mechanism)))
            beside.rename(kept)
        return pickle.loads(kept.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_over_all", found)
        yield


@pytest.fixture(scope="session")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a small demo told and wrote, once for all workers: copy its folder to change anything."""
    from discreet import demo

    run = _of_all_workers(tmp_path_factory)
    kept = run / "demo.pickle"
    with (run / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(demo.run(run / "demo", share=0.02)))
    return pickle.loads(kept.read_bytes())


def _of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def _piece(nodeid: str) -> str:
    """What goes to one worker: a file, or a folder that shares a server."""
    file = nodeid.split("::", 1)[0]
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs a browser or a JVM is a walk."""
    if item.get_closest_marker("spark") or BROWSERS & set(getattr(item, "fixturenames", ())):
        item.add_marker("walk")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with the longest pieces, so that none waits at the end for another's."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = {piece: at for at, piece in enumerate(LONGEST)}
        items.sort(key=lambda item: place.get(_piece(item.nodeid), len(place)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests stay to the end: the garbage collector does not look through them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A piece goes to one worker, so that what its tests share is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByPiece(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _piece(nodeid)

    config.option.loadscopereorder = False
    return ByPiece(config, log)
