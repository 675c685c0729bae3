"""The code that computes, as text and as a hash: a reviewer can tell whether other code than this made a release.

What computes a release is reached by imports from what releases, `DOORS`, without the packages that only say or show
something, `SAYS`. Comments, docstrings, blank lines, where names are imported from and the words of refusals are no
part of it: a better word changes no number (`source_code`). Proofs hash what they cover in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from discreet.privacy.source_code import Module

Sources: TypeAlias = tuple[tuple[str, Path], ...]
ROOT = Path(__file__).parents[1]
DOORS = (
    *("session.py", "models/mixed.py", "plan/run.py", "models/linear/private/release.py"),
    *("models/bayes/audited_draw.py", "models/bayes/erm.py", "models/bayes/posterior_draw.py"),
)
"""What releases, so that everything is reached that has a part in it."""
SAYS = frozenset(
    {
        *("cli", "desk", "pages", "report", "roc", "demo", "review", "audit", "utility", "publication", "synthetic"),
        *("data_check", "changes", "simulate", "archive", "data/readers", "chart", "lme4"),
        "plan/kinds/recomputed",
        *(f"words/{name}" for name in ("voices", "faults", "errors", "extras", "later", "progress")),
    }
)
"""Packages and modules without a part in the numbers of a release: commands, pages, words, checks, simulations."""


@cache
def computing() -> Mapping[str, Module]:
    """What computes a release, by its files in the order of their places in the package."""
    found: dict[str, Module] = {}
    ours, new = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}, {*DOORS}
    while new:
        read = {file: Module.of((ROOT / file).read_text(encoding="utf-8"), words=False) for file in new}
        found |= read
        new = ({file for each in read.values() for file in _files(each)} & ours) - found.keys()
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


def _files(module: Module) -> frozenset[str]:
    """Where what a module imports may be, without what only says something."""
    modules = {place for name, part in module.imports for place in (name, f"{name}.{part.split()[0]}")}
    ours = [name.split(".")[1:] for name in modules if name.startswith("discreet.")]
    places = ["/".join(parts) for parts in ours if not {"/".join(parts[:depth]) for depth in range(1, 4)} & SAYS]
    return frozenset(f"{place}{end}" for place in places for end in (".py", "/__init__.py"))
