"""The source of a module as it computes: without comments, docstrings, blank lines and where names are imported from.

A better word changes no number, so it changes no hash. Hashes of releases and of proofs are both of this text.
Text is read by patterns, because a release has no second to lose with a parser. A test compares what they find in every
file with Python's own parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PIECE = re.compile(
    r"""
    (?P<text>r?\"{3}(?:[^\\"]|\\.|"(?!""))*\"{3})
    |(?P<word>"(?:[^"\\\n]+|\\.)*"|'(?:[^'\\\n]+|\\.)*')
    |(?P<comment>\#[^\n]*)
    |\n[ \t]*(?:from\ +(?P<module>[\w.]+)\ +)?(?P<import>import\ +(?P<names>\([^)]*\)|[^\n(]*)(?=\n))
    |(?P<refusal>raise\s+(?P<kind>[\w.]+)\()
    |(?P<help>description=\(?\s*(?:f?"(?:[^"\\\n]+|\\.)*"\s*)+)
    |(?P<fault>Fault\(|Error\(|Infeasible\()
    """,
    re.DOTALL | re.VERBOSE,
)
BRACKET = re.compile(PIECE.pattern.partition("|\\n")[0] + r"|(?P<open>[(\[{])|(?P<close>[)\]}])", PIECE.flags)


@dataclass(frozen=True, slots=True)
class Module:
    """A module as it computes: its text without what it says, and the modules and names that it imports."""

    text: str
    imports: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, source: str, *, words: bool) -> Module:
        """The module with this source; without `words`, those of its refusals and of its help are gone too."""
        pieces, imports, at = [], [], 0
        while found := PIECE.search(source, at):
            end, kind = found.end(), found.lastgroup
            pieces.append(source[at : found.start()])
            if kind == "import":
                names = re.sub("#[^\n]*", "", found["names"]).strip("() \n").split(",")
                imports += [(found["module"] or "", " ".join(name.split())) for name in names if name.strip()]
            elif kind == "refusal" and not words:
                pieces.append(f"raise {found['kind']}")
                end = (source + "\n").index("\n", _closed(source, end))
            elif kind == "fault" and not words:
                pieces.append(found["fault"])
                end = _closed(source, end) - 1
            elif kind == "help" and not words:
                pieces.append("description=")
            elif kind != "comment" and not (kind == "text" and _is_docstring(source, found)):
                pieces.append(found[0])
            at = end
        lines = map(str.rstrip, "".join([*pieces, source[at:]]).split("\n"))
        return cls("\n".join([*sorted(name for _, name in imports), *(line for line in lines if line)]), tuple(imports))


def _is_docstring(source: str, found: re.Match[str]) -> bool:
    """Whether a text of several lines is a statement: it has its lines for itself, and nothing is open before it."""
    line = source.rfind("\n", 0, found.start()) + 1
    alone = not source[line : found.start()].strip() and source[found.end() : found.end() + 1] in ("\n", "")
    return alone and not source[:line].rstrip().endswith((",", "(", "[", "{", "=", "+", "%"))


def _closed(source: str, at: int) -> int:
    """The end of the brackets that were opened before this place."""
    depth = 1
    while depth and (found := BRACKET.search(source, at)):
        depth += (found.lastgroup == "open") - (found.lastgroup == "close")
        at = found.end()
    return at
