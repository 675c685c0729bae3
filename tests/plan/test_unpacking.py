"""A bundle that would swell is refused before it does: files, headers, directories, and the tables inside."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.archive import unpacking
from discreet.archive.packing import _entry, as_json, in_order, pack, unaccounted
from discreet.archive.unpacking import opened, unpack
from discreet.plan.run import run
from discreet.review import tables
from discreet.review.verdict import verify_bundle
from faults_of import about

Files = dict[str, bytes]
ZEROS = bytes(60 * 10**6)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, toys: Callable[[Path], Path]) -> Path:
    plan = toys(tmp_path_factory.mktemp("bundle") / "toys")
    head, one, *_, output = re.split(r"\n(?=\[\[release\]\]|\[output\])", plan.read_text())
    plan.write_text(f"{head}\n{one}\n{output}")
    run(plan)
    return plan.parent / "out" / "bundle.zip"


@pytest.fixture(scope="module")
def files(bundle: Path) -> Files:
    with zipfile.ZipFile(bundle) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def relisted(files: Files) -> Files:
    about = json.loads(files["bundle.json"])
    about["files"] = {name: sha256(content).hexdigest() for name, content in files.items() if name != "bundle.json"}
    return {**files, "bundle.json": as_json(about)}


def refused(path: Path) -> str:
    """Why the bundle is not unpacked: the one thing that is said of it."""
    (finding,) = verify_bundle(path)
    assert (finding.subject, finding.wrong) == ("files", True)
    return finding.words


def packed_with(path: Path, files: Files, change: Callable[[zipfile.ZipFile], object]) -> Path:
    pack(path, files, files.__getitem__)
    with zipfile.ZipFile(path, "a") as packed:
        change(packed)
    return path


def test_a_whole_bundle_passes(bundle: Path) -> None:
    assert not [finding for finding in verify_bundle(bundle) if finding.wrong]


@pytest.mark.parametrize("name", ["places/research.csv", "places/more.csv"])
def test_a_file_that_swells(files: Files, tmp_path: Path, name: str) -> None:
    changed = relisted({**files, name: ZEROS, "report.html": b""})
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    assert (tmp_path / "b.zip").stat().st_size < 400_000
    assert "it unpacks to 60," in refused(tmp_path / "b.zip")


def test_bundles_in_a_bundle_stay_packed(files: Files, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros", ZEROS)
    changed = {**files, "inner.zip": inner.getvalue()}
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    with opened(tmp_path / "b.zip") as packed:
        assert sorted(unpack(packed, tmp_path / "out")) == sorted(changed)
    assert {path for path in (tmp_path / "out").rglob("*") if path.is_file()} == {tmp_path / "out" / n for n in changed}
    assert (tmp_path / "out" / "inner.zip").read_bytes() == inner.getvalue()


@pytest.mark.parametrize("name", ["report.html", "ledger.json", "bundle.json", "places/research.csv"])
def test_a_header_that_lies(files: Files, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It declares what the file had and holds 60 MB: no more than declared is ever unpacked."""
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for each in in_order(files):
            packed.writestr(_entry(each), files[each] + (ZEROS if each == name else b""), compresslevel=1)
    content, true, stated = path.read_bytes(), len(files[name]) + len(ZEROS), len(files[name])
    assert content.count(struct.pack("<L", true)) == 2  # once before the file, once in the list
    path.write_bytes(content.replace(struct.pack("<L", true), struct.pack("<L", stated)))
    largest = 0
    inflate = unpacking._pieces

    def watched(*arguments: object) -> object:
        nonlocal largest
        for piece in inflate(*arguments):  # type: ignore[arg-type]
            largest = max(largest, len(piece))
            yield piece

    monkeypatch.setattr(unpacking, "_pieces", watched)
    if name == "bundle.json":
        with pytest.raises(ValueError, check=about("bundle")):
            verify_bundle(path)
    else:
        assert refused(path) == "the bundle cannot be unpacked"
    assert largest <= max(map(len, files.values()))
    assert name in unaccounted(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress(files: Files, tmp_path: Path, method: int) -> None:
    """Python unpacks these without a limit on what comes out of a piece."""
    path = packed_with(tmp_path / "b.zip", files, lambda packed: packed.writestr("x.csv", b"0" * 999, method))
    assert refused(path) == "'x.csv' is compressed in another way than discreet does"


def test_many_files(files: Files, tmp_path: Path) -> None:
    path = packed_with(
        tmp_path / "b.zip", files, lambda packed: [packed.writestr(f"{i}.csv", b"") for i in range(unpacking.FILES)]
    )
    assert "files. At most 10,000 are unpacked" in refused(path)


def test_a_long_directory(files: Files, tmp_path: Path) -> None:
    def commented(packed: zipfile.ZipFile) -> None:
        for i in range(70):
            entry = zipfile.ZipInfo(f"{i}.csv")
            entry.comment = b"c" * 65_000
            packed.writestr(entry, b"")

    assert "its list of files has 4," in refused(packed_with(tmp_path / "b.zip", files, commented))


def test_files_over_each_other(files: Files, tmp_path: Path) -> None:
    """One compressed kernel that the list names a hundred times."""

    def overlapping(packed: zipfile.ZipFile) -> None:
        packed.writestr("kernel.csv", bytes(10**6), zipfile.ZIP_DEFLATED)
        kernel = packed.getinfo("kernel.csv")
        for i in range(100):
            copy = zipfile.ZipInfo(f"{i}.csv")
            for part in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(copy, part, getattr(kernel, part))
            packed.filelist.append(copy)
            packed.NameToInfo[copy.filename] = copy

    assert "it unpacks to 101," in refused(packed_with(tmp_path / "b.zip", files, overlapping))


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a\\b", "folder/", "c:out", "a/../../out"])
def test_names_that_lead_elsewhere(files: Files, tmp_path: Path, name: str) -> None:
    path = packed_with(tmp_path / "b.zip", files, lambda packed: packed.writestr(name, b""))
    assert refused(path) == f"{name!r} cannot be the name of a file of a bundle"


def test_a_text_that_is_read_at_once(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "TEXT", len(files["ledger.json"]) - 1)
    pack(tmp_path / "b.zip", files, files.__getitem__)
    assert "Such a file has at most" in refused(tmp_path / "b.zip")


def parquet(column: pa.Array, **options: object) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"count": column}), written, compression="zstd", data_page_size=2**30, **options)
    return written.getvalue()


def zeros(size: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), size // 8, [None, pa.py_buffer(bytes(size))])


BITS = bytes(5 * 10**6)
BOMBS: dict[str, Callable[[], bytes]] = {
    "rows without a value": lambda: parquet(pa.nulls(5 * 10**7, pa.int64())),
    "a page of zeros": lambda: parquet(zeros(4 * 10**8), use_dictionary=False),
    "a long text that many rows name": lambda: parquet(
        pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), pa.array(["x" * 10**6])), store_schema=False
    ),
    "rows of a bit each": lambda: parquet(pa.Array.from_buffers(pa.bool_(), 4 * 10**7, [None, pa.py_buffer(BITS)])),
}


LONGER = ("a page of zeros", "rows of a bit each")  # as the other two, with other encodings


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.full_size] if what in LONGER else []) for what in BOMBS]
)
def test_a_table_that_swells(files: Files, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MEMORY", 2**28)
    changed = relisted({**files, "places/research.parquet": BOMBS[what]()})
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    assert (tmp_path / "b.zip").stat().st_size < 400_000
    assert "its tables take more memory than" in refused(tmp_path / "b.zip")


def damaged() -> bytes:
    """A table whose second column swells, and whose first cannot be read: the page's header is overwritten."""
    written, rows = io.BytesIO(), 500
    swelling = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 10**6]))
    table = pa.table({"largest": pa.array(range(rows)), "count": swelling})
    pq.write_table(table, written, compression="zstd", store_schema=False, use_dictionary=["count"])
    content = written.getvalue()
    start = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0).data_page_offset
    return content[:start] + b"\xff" * 40 + content[start + 40 :]


UNREADABLE: dict[str, Callable[[], Files]] = {
    "a damaged column beside one that swells": lambda: {"places/research.parquet": damaged()},
    "no table": lambda: {"places/basic.parquet": b"PAR1"},
    "rows of different lengths": lambda: {"places/basic.csv": b'"count"\n1\n1,2\n'},
    "a count in words": lambda: {"places/basic.csv": b'"count"\n1\nmany\n'},
    "another spelling": lambda: {"places/more.Parquet": b"PAR1"},
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_table_that_cannot_be_read_whole(files: Files, tmp_path: Path, what: str) -> None:
    """It is refused: read in part, and without a bound, it could swell."""
    changed = relisted({**files, **UNREADABLE[what]()})
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    (name,) = UNREADABLE[what]()
    assert refused(tmp_path / "b.zip") == f"{name!r} cannot be read as a table"


def test_a_folder_in_place_of_a_table(files: Files, tmp_path: Path) -> None:
    """Its files would be read as one table, whatever they are called."""
    changed = relisted({name: content for name, content in files.items() if name != "places/research.parquet"})
    changed = relisted({**changed, "places/research.parquet/part": BOMBS["a long text that many rows name"]()})
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    assert "cannot be the name of a file" in refused(tmp_path / "b.zip")


def test_codes_that_first_look_like_numbers(files: Files, tmp_path: Path) -> None:
    """A genuine CSV file may have text after a megabyte of digits."""
    codes = "".join(f'"{code}",1\n' for code in range(10**6, 10**6 + 150_000))
    changed = {**files, "places/more.csv": f'"sector","count"\n{codes}"31-33",1\n'.encode()}
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    with opened(tmp_path / "b.zip") as packed:
        unpack(packed, tmp_path / "out")
        assert max(tables.check_tables(packed, tmp_path / "out")) == 150_001


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ([f"r{i}" for i in range(200_000)], "it lists 200,000 releases. A plan has at most 1,000"),
        (["places", "others"], "it lists the release 'others', which has no file"),
        (["places", "places"], "it lists a release twice"),
    ],
)
def test_releases_that_are_not_there(files: Files, tmp_path: Path, releases: list[str], words: str) -> None:
    changed = {**files, "bundle.json": as_json({**json.loads(files["bundle.json"]), "releases": releases})}
    pack(tmp_path / "b.zip", changed, changed.__getitem__)
    assert refused(tmp_path / "b.zip") == words
