"""Which source a proof covers: `covers:` lines at the head of docs/proofs, with a hash of what the code computes.

A line names a file, or one function of it, as in `tables/query.py::CountQuery._hidden`. What decides outside of the
mechanisms how much noise there is, `DECIDES`, stands in every proof of one. Comments, docstrings, blank lines, where
names are imported from and the words of a function's refusals are not part of a hash. When what is covered changes,
`tests/unit/test_proofs.py` fails. Read the proof again; then write the new hashes with

    python tests/proofs.py
"""

from __future__ import annotations

import ast
import re
import sys
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

from discreet.release.code import Module

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"
PROOFS = ROOT / "docs" / "proofs"
LINE = re.compile(r"^covers: (?P<file>\S+\.py(::\S+)?) sha256:(?P<hash>\S*)$", re.MULTILINE)
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


def function(source: str, name: str) -> str:
    """The text of one function of a module, or of one method."""
    found: ast.AST = ast.parse(source)
    for part in name.split("."):
        named = [each for each in getattr(found, "body", ()) if getattr(each, "name", None) == part]
        if len(named) != 1:
            raise LookupError(f"{name} is there {len(named)} times")
        (found,) = named
    assert isinstance(found, ast.FunctionDef)
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return dedent("\n".join(source.splitlines()[first - 1 : found.end_lineno]))


def hashed(covers: str) -> str:
    """The hash of a module, given by its path below src/discreet, or of a function of it."""
    file, _, name = covers.partition("::")
    source = (SOURCE / file).read_text(encoding="utf-8")
    return sha256(Module.of(function(source, name) if name else source, words=not name).text.encode()).hexdigest()


def covered(proof: Path) -> dict[str, str]:
    """The files that a proof covers, with the hashes that it states."""
    return {found["file"]: found["hash"] for found in LINE.finditer(proof.read_text(encoding="utf-8"))}


def refresh() -> list[str]:
    """Write today's hashes; the names of the proofs that changed."""
    changed = []
    for proof in sorted(PROOFS.glob("*.md")):
        before = proof.read_text(encoding="utf-8")
        after = LINE.sub(lambda found: f"covers: {found['file']} sha256:{hashed(found['file'])}", before)
        if after != before:
            proof.write_text(after, encoding="utf-8")
            changed.append(proof.name)
    return changed


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)  # nothing is stamped by a question
    print("changed:", ", ".join(refresh()) or "nothing")
    sys.exit(0)
