"""What columns are called: by people, by databases, by nobody."""

from __future__ import annotations

from random import Random

LEGAL = (
    *("place", "Place ID", "ålder", "Geschlecht", "産業", "Größe (ha)", "naics6", "naics", "naics2", "n", "N1"),
    *("select", "group", "order", "table", "from", "Where", "null", "index", "rowid", "values", "all", "key", "user"),
    *("class", "lambda", "None", "def", "self", "import", "type", "name", "data", "rows", "by", "kind", "columns"),
    *("a=b", "a,b", 'say "so"', "it's", "x#y", "[t]", "{u}", "50%", "a/b", "a\\b", "<b>", "&amp;", "$1", "?", "-v"),
    *("2024", "0", "1e5", "nan", "true", "_", "x" * 100, "é", "ﬁrm", "Ωmega", "ДОМ", "قسم", "🏭", "a:b", "a;b", "a|b"),
    *("jobs", "job", "cell", "total", "value", "time", "period", "quarter", "epsilon", "min", "max", "len", "size"),
    *("min place", "max place", "top", "rank", "below", "of", "number", "lag", "f", "m", "worker", "workplace"),
    *(
        "a;b--",
        "{x}",
        "{{7*7}}",
        "CON",
        "C:",
        "İ",
        "history",
        "1-a",
        "a]b",
        "a::b",
        "naïve-北京",
        "=1+1",
        "@SUM(A1)",
        "$HOME",
    ),
    *("place_2", "place 2", "Places", "places", "level", "label", "source", "share", "noise", "position", "literal"),
)
"""Names that a schema takes; each is a column of many engines, files and pages."""

ILLEGAL = (
    "a.b",
    "sector.",
    "a`b",
    "count",
    "Lower",
    "__x",
    "x" * 101,
    "a\u200bb",
    "tab\tname",
    "*",
    "QUALITY",
    "\u202eb",
)
"""Names that a schema refuses, before any row is read."""


def some(chance: Random, many: int) -> list[str]:
    """So many legal names that no database takes for another."""
    found: list[str] = []
    while len(found) < many:
        name = chance.choice(LEGAL)
        if name.casefold() not in {other.casefold() for other in found}:
            found.append(name)
    return found
