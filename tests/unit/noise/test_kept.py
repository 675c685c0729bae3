"""Tables that are kept between processes: whatever lies in the cache is checked, refused or solved again."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from discreet.errors import PrivacyError
from discreet.noise.kept import BITS, kept
from faults_of import about

LAW = np.array([[2 ** (BITS - 1), 2 ** (BITS - 1)]], dtype=object)


def ask(solved: list[int]) -> np.ndarray:
    def solve() -> np.ndarray:
        solved.append(1)
        return LAW

    return kept("toy, format 1", "key", solve, lambda rows: None, seconds=0.0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "discreet"


def test_a_table_is_solved_once(cache: Path) -> None:
    solved: list[int] = []
    assert np.array_equal(ask(solved), LAW) and np.array_equal(ask(solved), LAW)
    assert len(solved) == 1 and len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b"[]", b"[[1]]", b'[["zz"]]', b'[["1", "1"]]', b'{"a": 1}', b"\xff\xfe\x00", b"[" * 100_000, b"null"],
    ids=["empty", "cut", "no rows", "number", "letters", "no law", "object", "bytes", "deep", "null"],
)
def test_what_is_no_table_is_refused(cache: Path, content: bytes) -> None:
    ask([])
    (path,) = cache.iterdir()
    path.write_bytes(content)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        ask([])


def test_without_a_folder_to_keep_it_a_table_is_solved_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []
    cache.parent.joinpath("discreet").write_text("a file in the way")
    assert np.array_equal(ask(solved), LAW) and np.array_equal(ask(solved), LAW) and len(solved) == 2
    # Nobody's home.
    monkeypatch.delenv("XDG_CACHE_HOME")
    with patch.object(Path, "home", side_effect=RuntimeError("Could not determine home directory.")):
        assert np.array_equal(ask(solved), LAW) and len(solved) == 3


def test_a_file_that_may_not_be_read_or_written_is_solved_again(cache: Path) -> None:
    solved: list[int] = []
    ask(solved)
    for refused in ("read_bytes", "write_text"):
        with patch.object(Path, refused, side_effect=PermissionError("no")):
            for path in cache.iterdir() if refused == "write_text" else ():
                path.unlink()
            assert np.array_equal(ask(solved), LAW)
    assert len(solved) == 3


def test_a_process_that_dies_while_writing_leaves_no_table(cache: Path) -> None:
    with patch.object(Path, "replace", side_effect=OSError("full")):
        ask([])
    assert not list(cache.glob("*.json")) and all(str(os.getpid()) in path.name for path in cache.iterdir())
    solved: list[int] = []
    assert np.array_equal(ask(solved), LAW) and solved
