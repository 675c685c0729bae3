"""Estimates by name, and random effects by group and level; a wrong name is an error that names others."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np

from discreet.arrays import Matrix
from discreet.models.formula.design import RandomDesign
from discreet.models.linear.origin import basis
from discreet.words.errors import UnknownName

Term = TypeVar("Term")
Value = TypeVar("Value")


class ByGroup(dict[str, Term]):
    """Random terms by the name of their grouping factor."""

    def __missing__(self, group: object) -> NoReturn:
        raise UnknownName(
            f"{group!r} is not a group of this model.",
            f"It has {_some(group, list(self))}." if self else "It has no random effects.",
            "Use one of `effects.keys()`." if self else "Add a term such as (1 | county) to the formula.",
            about="group",
        )


class ByName(dict[str, Value]):
    """Numbers of a fit by the names of what they are of: fixed effects, their standard errors, or variances."""

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownName(
            f"{name!r} is not among the {len(self)} names of these estimates.",
            f"There are {_some(name, list(self))}." if self else "There are none.",
            "Use one of `keys()`.",
            about="name",
        )


def place(level: object, levels: Sequence[str], group: str) -> int:
    """The position of a level within its group."""
    if level not in levels:
        raise UnknownName(
            f"{level!r} is not a level of {group!r}, which has {len(levels):,}.",
            "Levels are text, as in `levels`.",
            f"Use for example {_some(level, levels)}.",
            about="level",
        )
    return levels.index(str(level))


def _some(asked: object, names: Sequence[str]) -> str:
    return " or ".join(map(repr, difflib.get_close_matches(str(asked), names, n=2) or names[:2]))


@dataclass(frozen=True, repr=False)
class RandomEffects:
    """One random term of a fit: its covariance and what it predicts for each level.

    Attributes
    ----------
    group, names, levels : grouping factor, effects of one level, levels.
    covariance : between the effects of one level, shape (q, q).
    values : EBLUPs, shape (levels, q).
    """

    group: str
    names: tuple[str, ...]
    levels: tuple[str, ...]
    covariance: Matrix
    values: Matrix

    @classmethod
    def of(cls, random: RandomDesign, covariance: Matrix, values: Matrix) -> RandomEffects:
        """From the covariance and the effects of the centred columns."""
        back = np.linalg.inv(basis(random))
        return cls(random.term.name, random.names, random.grouping.labels, back @ covariance @ back.T, values @ back.T)

    def __repr__(self) -> str:
        return f"<RandomEffects of {self.group!r}: {', '.join(self.names)} for {len(self.levels):,} levels>"

    def component(self, i: int, j: int | None = None) -> str:
        """The name of a variance or a covariance in `fit.variances`."""
        if self.names == ("(Intercept)",):
            return self.group
        effects = self.names[i] if j is None else f"{self.names[i]}, {self.names[j]}"
        return f"{self.group}: {effects}"

    def __getitem__(self, level: str) -> Mapping[str, float]:
        return dict(zip(self.names, self.values[place(level, self.levels, self.group)].tolist(), strict=True))


def variances_of(terms: Sequence[RandomEffects]) -> dict[str, float]:
    """Variances of the effects of every term, then their covariances, by name."""
    found: ByName[float] = ByName()
    for term in terms:
        q = len(term.names)
        found |= {term.component(i): float(term.covariance[i, i]) for i in range(q)}
        found |= {term.component(i, j): float(term.covariance[i, j]) for i in range(q) for j in range(i + 1, q)}
    return found
