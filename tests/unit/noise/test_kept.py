"""Tables that are kept between processes: whatever lies in the cache is checked, refused or solved again."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from discreet.noise.kept import BITS, kept, sealed
from discreet.words.errors import PrivacyError
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
@pytest.mark.parametrize("forged", [False, True])
def test_what_is_no_table_is_refused(cache: Path, content: bytes, forged: bool) -> None:
    """Also under a hash that somebody made for it: hashes tell accidents, and what is read is checked all the same."""
    ask([])
    (path,) = cache.iterdir()
    path.write_bytes(sealed(path.name, content) if forged else content)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        ask([])


def test_a_table_with_any_other_byte_or_length_is_refused(cache: Path) -> None:
    """Nothing in it is without meaning: also spaces, the hash itself, and laws that would be private too."""
    ask([])
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    harmed = [whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :] for i in range(len(whole)) for bit in (1, 32, 128)]
    harmed += [whole[:n] for n in range(len(whole))] + [whole + b" ", whole + b"\n", b" " + whole]
    for content in harmed:
        path.write_bytes(content)
        with pytest.raises(PrivacyError, check=about("mechanism")):
            ask([])
    path.write_bytes(whole)
    assert np.array_equal(ask([]), LAW)


def test_the_table_of_another_request_is_refused(cache: Path) -> None:
    ask([])
    (path,) = cache.iterdir()
    kept("toy, format 1", "another", lambda: LAW, lambda rows: None, seconds=0.0)
    (other,) = set(cache.iterdir()) - {path}
    path.write_bytes(other.read_bytes())
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
    for refused in ("read_bytes", "write_bytes"):
        with patch.object(Path, refused, side_effect=PermissionError("no")):
            for path in cache.iterdir() if refused == "write_bytes" else ():
                path.unlink()
            assert np.array_equal(ask(solved), LAW)
    assert len(solved) == 3


def test_a_process_that_dies_while_writing_leaves_no_table(cache: Path) -> None:
    with patch.object(Path, "replace", side_effect=OSError("full")):
        ask([])
    assert not list(cache.glob("*.json")) and all(str(os.getpid()) in path.name for path in cache.iterdir())
    solved: list[int] = []
    assert np.array_equal(ask(solved), LAW) and solved
