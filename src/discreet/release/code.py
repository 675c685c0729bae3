"""The code that computes, as text and as a hash: a reviewer can tell whether other code than this made a release.

What computes a release is reached by imports from what releases, `DOORS`, without the packages that only say or show
something, `SAYS`. Comments, docstrings, blank lines, where names are imported from and the words of refusals are no
part of it: a better word changes no number. Proofs hash what they cover in the same way (`tests/proofs.py`).

Text is read by patterns, because a release has no second to lose with a parser. A test compares what they find in every
file with Python's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

Sources: TypeAlias = tuple[tuple[str, Path], ...]
ROOT = Path(__file__).parents[1]
DOORS = (
    *("session.py", "models.py", "plan/run.py", "lmm/private/release.py"),
    *("bayes/audited_draw.py", "bayes/erm.py", "bayes/posterior_draw.py"),
)
"""What releases, so that everything is reached that has a part in it."""
SAYS = frozenset(
    {
        *("cli", "web", "report", "studies", "demo", "review", "audit", "utility", "publication", "synthetic"),
        *("data_check", "change", "simulate", "archive", "readers", "chart", "lme4"),
        *("voices", "faults", "errors", "extras", "later", "progress"),
    }
)
"""Packages and modules without a part in the numbers of a release: commands, pages, words, checks, simulations."""

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

    @property
    def files(self) -> frozenset[str]:
        """Where what it imports may be, without what only says something."""
        modules = {place for module, name in self.imports for place in (module, f"{module}.{name.split()[0]}")}
        ours = [module.split(".")[1:] for module in modules if module.startswith("discreet.")]
        places = ["/".join(parts) for parts in ours if parts[0] not in SAYS]
        return frozenset(f"{place}{end}" for place in places for end in (".py", "/__init__.py"))


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


@cache
def computing() -> Mapping[str, Module]:
    """What computes a release, by its files in the order of their places in the package."""
    found: dict[str, Module] = {}
    ours, new = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}, {*DOORS}
    while new:
        read = {file: Module.of((ROOT / file).read_text(encoding="utf-8"), words=False) for file in new}
        found |= read
        new = ({file for each in read.values() for file in each.files} & ours) - found.keys()
    return dict(sorted(found.items()))


@cache
def computing_hash(more: Sources = ()) -> str:
    """SHA-256 of what computes; `more` are files of other packages that drew too, by name, with all that they say."""
    digest = sha256()
    for file, module in computing().items():
        digest.update(file.encode() + b"\0" + module.text.encode() + b"\0")
    for name, path in more:
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def source_hash(more: Sources = ()) -> str:
    """SHA-256 over all of the package's source files, with every word: a report then has the same bytes."""
    digest = sha256()
    ours = ((path.relative_to(ROOT).as_posix(), path) for path in sorted(ROOT.rglob("*.py")))
    for name, path in (*ours, *more):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
