"""The digest of what tables rest on: equal for equal declarations, in whatever order they were made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import permutations
from typing import Any

MOST_ORDERS = 7
"""Hierarchies whose orders are tried, 5,040 at most: a reviewer reads bundles of strangers."""


class Digest(str):
    """SHA-256 of what tables rest on, in whatever order it was declared.

    Attributes
    ----------
    part : what it is of, without hierarchies.
    levels : the hierarchies, as JSON.
    """

    part: Mapping[str, Any]
    levels: tuple[str, ...]

    @classmethod
    def of(cls, part: Mapping[str, Any], levels: Iterable[str]) -> Digest:
        """The digest of `part` and of these hierarchies, in a sorted order."""
        order = tuple(sorted(levels))
        found = cls(_hash(part, order))
        found.part, found.levels = part, order
        return found

    def was(self, earlier: object) -> bool:
        """Whether an earlier version stated this: it took hierarchies in the order of their declaration."""
        orders = permutations(self.levels) if len(self.levels) <= MOST_ORDERS else (self.levels,)
        return any(_hash(self.part, order) == earlier for order in orders)


def _hash(part: Mapping[str, Any], levels: Iterable[str]) -> str:
    return sha256(json.dumps({**part, "levels": [*map(json.loads, levels)]}, sort_keys=True).encode()).hexdigest()
