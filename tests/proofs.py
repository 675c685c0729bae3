"""The hashes of the source that our proofs cover: what `discreet.privacy.proofs` computes, for docs/proofs and src/discreet.

What decides outside of the mechanisms how much noise there is, `DECIDES`, stands in every proof of one. When what is
covered changes, `tests/unit/test_proofs.py` fails. Read the proof again; then write the new hashes with

    python tests/proofs.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from discreet.privacy import proofs
from discreet.privacy.proofs import covered

__all__ = ["DECIDES", "PROOFS", "SOURCE", "covered", "hashed", "refresh"]

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


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)  # nothing is stamped by a question
    print("changed:", ", ".join(refresh()) or "nothing")
    sys.exit(0)
