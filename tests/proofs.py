"""The hashes of the source that our proofs cover: what `privacy.proofs` computes, for docs/proofs and src/discreet.

What decides outside of the mechanisms how much noise there is, `DECIDES`, stands in every proof of one. When what is
covered changes, `tests/unit/test_proofs.py` fails. Read the proof again; then write the new hashes with

    python tests/proofs.py

After files have moved, this writes their new places. It changes no hash: a file is known by the one that is stated.

    python tests/proofs.py --moved
"""

from __future__ import annotations

import sys
from pathlib import Path

from discreet.privacy import proofs
from discreet.privacy.proofs import covered

__all__ = ["DECIDES", "PROOFS", "SOURCE", "covered", "hashed", "moved", "refresh"]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"
PROOFS = ROOT / "docs" / "proofs"
EXERCISE = Path(__file__).parent / "plan" / "exercise"
DECIDES = (
    "tables/query.py::CountQuery._hidden",
    "tables/query.py::CountQuery._draw",
    "tables/query.py::CountQuery.concerns_workers",
    "tables/query.py::CountQuery.levels",
    "tables/query.py::CountQuery.prepare",
    "tables/query.py::CountQuery.statistics",
    "tables/calibration.py::part",
    "tables/cells.py::Cells.pairs",
    "tables/cells.py::_by_cell",
    "tables/cells.py::_assemble",
    "tables/grouping.py::grouped",
    "tables/grouping.py::_in_duckdb",
)
"""Which contribution is hidden, how large it is, and with which part of epsilon."""


def hashed(covers: str) -> str:
    """The hash of a module, given by its path below src/discreet, or of a function of it."""
    return proofs.hashed(covers, SOURCE)


def refresh() -> list[str]:
    """Write today's hashes; the names of the proofs that changed."""
    ours = [proof.name for proof in sorted(PROOFS.glob("*.md")) if proofs.stamp(proof, SOURCE)]
    return ours + [proof.name for proof in sorted(EXERCISE.glob("*.md")) if proofs.stamp(proof, EXERCISE)]


def moved(folder: Path, source: Path) -> list[str]:
    """Write the new places of covered files that are not where a proof says; the names of the proofs that changed."""
    changed = []
    for proof in sorted(folder.glob("*.md")):
        before = after = proof.read_text(encoding="utf-8")
        for covers, stated in covered(proof).items():
            file, mark, name = covers.partition("::")
            if (source / file).exists():
                continue
            places = [path.relative_to(source).as_posix() for path in sorted(source.rglob("*.py"))]
            same = [place for place in places if _is(f"{place}{mark}{name}", stated, source)]
            if len(same) != 1:
                raise SystemExit(f"{proof.name}: {covers} is gone, and {len(same)} files have its hash")
            after = after.replace(f"covers: {covers} sha256:", f"covers: {same[0]}{mark}{name} sha256:")
        if after != before:
            proof.write_text(after, encoding="utf-8")
            changed.append(proof.name)
    return changed


def _is(covers: str, stated: str, source: Path) -> bool:
    try:
        return proofs.hashed(covers, source) == stated
    except (LookupError, SyntaxError):
        return False


if __name__ == "__main__":
    if sys.argv[1:] == ["--moved"]:
        print("changed:", ", ".join(moved(PROOFS, SOURCE)) or "nothing")
        sys.exit(0)
    if sys.argv[1:]:
        sys.exit(__doc__)  # nothing is stamped by a question
    print("changed:", ", ".join(refresh()) or "nothing")
    sys.exit(0)
