"""Bundles that version 0.1.0 wrote still verify, word for word: `bundle-0.1.0-*.zip`, from `discreet run` on toys.

That of codes has whole numbers as codes, and hierarchies declared as `industry`, then `area`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

BUNDLES = sorted(Path(__file__).parent.glob("bundle-0.1.0-*.zip"))


def test_there_is_one_of_codes_one_of_rows_and_one_of_tables() -> None:
    assert [path.stem.rpartition("-")[2] for path in BUNDLES] == ["codes", "rows", "tables"]


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_an_old_bundle_verifies(bundle: Path, command) -> None:
    code, out, err = command("verify", bundle)
    assert code == 0, out + err


def test_and_one_that_was_changed_does_not(command, tmp_path: Path) -> None:
    """The verdict comes from the content: one byte more in a published table is found."""
    changed = tmp_path / "bundle.zip"
    with zipfile.ZipFile(BUNDLES[0]) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(old.getinfo(name), content + b"\n" if name.endswith("research.csv") else content)
    code, out, err = command("verify", changed)
    assert code != 0, out + err
