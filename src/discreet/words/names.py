"""Allowed names of columns, levels and hierarchies: text that every engine, file and page can hold unchanged.

Names become columns of queries and files, and parts of paths. So they are refused before data are opened, by one rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category

from discreet.words.faults import Fault

LONGEST = 100
"""Characters of a name."""

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of the text after them, so that a page shows something else than its file."""

POSSIBLE = (
    f"A name is one line of 1 to {LONGEST} characters that can be seen, without dots, backticks and spaces at its ends."
)


def unseen(text: str) -> str | None:
    """The first character of a text that readers cannot see, or that breaks the line."""
    return next((c for c in text if category(c) in ("Cc", "Cs", "Zl", "Zp") or c in TURNING), None)


def misnamed(names: Iterable[str], about: str, *, what: str) -> list[Fault]:
    """The faults of names of columns and the like, each by itself and beside the others."""
    found, spelled = [], dict[str, str]()
    for name in dict.fromkeys(names):
        wrong = _wrong(name)
        if wrong is not None:
            found.append(Fault(about, f"{what} {name[:40]!r} {wrong}.", POSSIBLE, _remedy(name)))
        other = spelled.setdefault(name.casefold(), name)
        if other != name:
            asked = f"{what}s {other[:40]!r} and {name[:40]!r} differ in capitals alone."
            found.append(Fault(about, asked, "Databases take them for one.", "Rename one of them at the source."))
    return found


def _wrong(name: str) -> str | None:
    odd = unseen(name) or next((c for c in name if category(c) == "Cf"), None)
    if odd is not None:
        return f"holds U+{ord(odd):04X}, which nobody sees"
    if name != name.strip() or not name:
        return "has a space at an end" if name.strip() else "has no letter"
    if "." in name or name == "*":
        return "stands for several columns" if name == "*" else "has a dot, which separates a table from its column"
    if "`" in name:
        return "has a backtick, which engines take for a quotation mark"
    return f"has {len(name)} characters" if len(name) > LONGEST else None


def _remedy(name: str) -> str:
    """What to do, with a name that may be used where signs alone are wrong."""
    better = re.sub(r"\W+", "_", name).strip("_")
    return (
        "Rename it."
        if not {".", "`"} & {*name} or _wrong(better) is not None
        else f"Rename it, for example to {better!r}."
    )
