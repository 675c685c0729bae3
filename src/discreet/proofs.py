"""Which source a proof covers: `covers:` lines at its head, with a hash of what that code computes.

A line names a file, or one function of it, as in `tables/query.py::CountQuery._hidden`. Comments, docstrings, blank
lines, where names are imported from and the words of a function's refusals are not part of a hash. Our proofs are in
docs/proofs and name files below src/discreet; that of a mechanism from outside lies beside its code and names files
there. `stamp` writes the hashes, after somebody has read the proof against the code.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

LINE = re.compile(r"^covers: (?P<file>\S+\.py(::\S+)?) sha256:(?P<hash>\S*)$", re.MULTILINE)


def computes(source: str) -> str:
    """The text of a module without what it says about itself."""
    lines, dropped, names = source.splitlines(), set(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in node.names]
        elif not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            continue
        dropped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, start=1) if number not in dropped)
    return "\n".join([*sorted(names), *(line for line in kept if line)])


def function(source: str, name: str) -> str:
    """The text of one function of a module, or of one method: of its refusals the kind, and not the words."""
    found: ast.AST = ast.parse(source)
    for part in name.split("."):
        named = [each for each in getattr(found, "body", ()) if getattr(each, "name", None) == part]
        if len(named) != 1:
            raise LookupError(f"{name} is there {len(named)} times")
        (found,) = named
    assert isinstance(found, ast.FunctionDef)
    lines = source.splitlines()
    for node in ast.walk(found):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            start = lines[node.lineno - 1][: node.col_offset]
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
            lines[node.lineno - 1] = f"{start}raise {ast.unparse(node.exc.func)}"
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return dedent("\n".join(lines[first - 1 : found.end_lineno]))


def hashed(covers: str, folder: Path) -> str:
    """The hash of a module, given by its path below a folder, or of a function of it."""
    file, _, name = covers.partition("::")
    source = (folder / file).read_text(encoding="utf-8")
    return sha256(computes(function(source, name) if name else source).encode()).hexdigest()


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
