"""Divide one loss among parts: shares are above 0 and add up to exactly 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from discreet.privacy.losses import Number, exact
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Value


def read_split(
    split: Mapping[str, Number] | None,
    default: Mapping[str, Fraction],
    *,
    optional: Collection[str] = (),
    name: str = "split",
) -> dict[str, Fraction]:
    """The share of each part: its default, or what `split` gives it. A split may leave out `optional` parts.

    `name` is the argument that gave the split.
    """
    if split is None:
        return dict(default)
    if not isinstance(split, Mapping):
        raise PrivacyError(
            (Argument(name, split), " gives no shares."),
            f"It gives one to each of {', '.join(default)}.",
            f"Use for example { {part: str(share) for part, share in default.items()} }.",
            about=name,
        )
    parts = [part for part in default if part in split or part not in optional]
    if set(split) != set(parts):
        raise PrivacyError(
            f"{name} names {', '.join(map(str, split)) or 'nothing'}; this release has the parts {', '.join(parts)}.",
            remedy=f"Give each a share, for example { {part: str(default[part]) for part in parts} }.",
            about=name,
        )
    found = {part: exact(split[part], name=part) for part in parts}
    if not _whole(found.values()):
        raise PrivacyError(
            f"The shares {', '.join(f'{part} {split[part]}' for part in parts)} add up to "
            f"{float(sum(found.values())):g}.",
            "They must be positive and add up to 1 exactly.",
            "Use decimals or fractions such as '1/3'.",
            about=name,
        )
    return found


def divided(split: Sequence[Number] | None, tables: int) -> list[Fraction]:
    """The share of each of several tables: equal ones, or those in `split`."""
    if split is None:
        return [Fraction(1, tables)] * tables
    shares = [split] if isinstance(split, str) or not isinstance(split, Iterable) else list(split)
    parts = [exact(share, name="split") for share in shares]
    if len(parts) != tables or not _whole(parts):
        raise PrivacyError(
            (Argument("split", list(map(str, parts))), f" does not divide the budget among {tables} tables."),
            "The shares are positive and add up to 1.",
            ("Use for example ", Value([f"1/{tables}"] * tables), "."),
            about="split",
        )
    return parts


def _whole(parts: Iterable[Fraction]) -> bool:
    """The rule itself."""
    listed = list(parts)
    return min(listed) > 0 and sum(listed) == 1
