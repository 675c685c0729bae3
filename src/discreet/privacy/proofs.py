"""Which source a proof covers: `covers:` lines at its head, with a hash of what that code computes.

A line names a file, or one function of it, as in `tables/query.py::CountQuery._hidden`. Comments, docstrings, blank
lines, where names are imported from and the words of a function's refusals are not part of a hash. Our proofs are in
docs/proofs and name files below src/discreet; that of a mechanism from outside lies beside its code and names files
there. `stamp` writes the hashes, after somebody has read the proof against the code.
"""

from __future__ import annotations

import ast
import re
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

from discreet.privacy.source_code import Module

LINE = re.compile(r"^covers: (?P<file>\S+\.py(::\S+)?) sha256:(?P<hash>\S*)$", re.MULTILINE)


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


def hashed(covers: str, folder: Path) -> str:
    """The hash of a module, given by its path below a folder, or of a function of it."""
    file, _, name = covers.partition("::")
    source = (folder / file).read_text(encoding="utf-8")
    return sha256(Module.of(function(source, name) if name else source, words=not name).text.encode()).hexdigest()


def covered(proof: Path) -> dict[str, str]:
    """The files that a proof covers, with the hashes that it states."""
    return {found["file"]: found["hash"] for found in LINE.finditer(proof.read_text(encoding="utf-8"))}


def stamp(proof: Path, folder: Path) -> bool:
    """Write today's hashes; whether any has changed."""
    before = proof.read_text(encoding="utf-8")
    after = LINE.sub(lambda found: f"covers: {found['file']} sha256:{hashed(found['file'], folder)}", before)
    if after != before:
        proof.write_text(after, encoding="utf-8")
    return after != before
