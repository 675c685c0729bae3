"""Which source a proof covers: `covers:` lines at the head of docs/proofs, with a hash of what the code computes.

Comments, docstrings, blank lines and where names are imported from are not part of it. When a covered file changes,
`tests/unit/test_proofs.py` fails. Read the proof again; then write the new hashes with

    python tests/proofs.py
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"
PROOFS = ROOT / "docs" / "proofs"
LINE = re.compile(r"^covers: (?P<file>\S+\.py) sha256:(?P<hash>\S*)$", re.MULTILINE)


def computes(source: str) -> str:
    """The text of a module without what it says about itself."""
    lines, dropped, names = source.splitlines(), set(), []
    for node in ast.walk(ast.parse(source)):
        is_words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in node.names]
        elif not is_words:
            continue
        dropped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, start=1) if number not in dropped)
    return "\n".join([*sorted(names), *(line for line in kept if line)])


def hashed(file: str) -> str:
    """The hash of a module, given by its path below src/discreet."""
    return sha256(computes((SOURCE / file).read_text(encoding="utf-8")).encode()).hexdigest()


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
    print("changed:", ", ".join(refresh()) or "nothing")
    sys.exit(0)
