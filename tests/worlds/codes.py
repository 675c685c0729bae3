"""What stands for a category: text of every kind, whole numbers, true and false."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

Code: TypeAlias = str | int | bool

POOLS: tuple[tuple[Code, ...], ...] = (
    ("P0", "P1", "P2", "P3", "P4", "P5", "P6"),
    ("01", "1", "001", "10", "2", "02", "0"),
    ("06001", "06037", "48201", "00000", "99999"),
    (1, 2, 10, 9, 11, 100, 0),
    (-1, 0, 1, 2**31, 2**62, 7),
    (True, False),
    ("true", "false", "True", "TRUE"),
    ("31-33", "44-45", "1.0", "1e5", "47.10", "0x10", "1_000", "+5", "-0"),
    ("NA", "nan", "null", "None", "NULL", "N/A", "inf", "."),
    ("Zürich", "Ålesund", "東京", "Москва", "القاهرة", "São Paulo", "🏭", "e\u0301"),
    ("=1+1", "@x", "+1", "-1", "'quoted'", '"double"', 'a "b" c', "a,b", "a;b", "a\tb", "a|b", "#x"),
    ("<b>x</b>", "&amp;", "</script>", "<!--", "{{x}}", "%s", "{0}", "\\", "a\\nb", "$HOME"),
    ("2024-01-31", "2024Q1", "2024", "31.12.2024", "01/02/2024", "T1", "46053"),
    ("a" * 200, "a" * 199 + "b", "b", "c" * 64),
    ("a b", "a  b", "a\u00a0b", "A b", "a B", "a-b", "a_b"),
    ("ss", "ß", "ẞ", "i", "ı", "İ", "I"),
    ("two\nlines", "one", "x"),
    ("a", "aa", "aaa", "ab", "A", "B", "b"),
)


def some(chance: Random, most: int = 5, *, text: bool = False, digits: int = 0) -> tuple[Code, ...]:
    """A few different codes of one kind; of a prefix hierarchy all with so many characters."""
    if digits:
        kind = chance.choice(("0123456789", "01", "AbÅß", "0A-"))
        return tuple(sorted({"".join(chance.choices(kind, k=digits)) for _ in range(chance.randint(1, most))}))
    pool = chance.choice([pool for pool in POOLS if not text or isinstance(pool[0], str)])
    return tuple(chance.sample(pool, chance.randint(1, min(most, len(pool)))))


def spelled(code: Code) -> str:
    """The code as every table has it."""
    return str(code).lower() if isinstance(code, bool) else str(code)
