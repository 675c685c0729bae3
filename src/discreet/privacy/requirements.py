"""The requirements of the Tables paper (Haney et al. 2017, Definitions 4.1 to 4.3), computed for every scheme.

A requirement bounds the Bayes factor of an attacker who knows everything but one thing: a worker's record, the size of
an establishment, or its shape. For an attacker who is sure of the rest, the factor is a ratio of two likelihoods. For
any other it is a ratio of their means, which is no larger. Over all mechanisms of a definition with a pure epsilon, the
worst log factor of two data sets is epsilon times their distance (`privacy.distance`). So the worst over the pairs of a
requirement is a worst distance, and this module searches for it over establishments of many sizes. If it keeps growing
with the size, there is no bound and the requirement fails. Noise infusion has no epsilon; its likelihoods are compared
directly.

The weak attacker (section 4.2) does not know kinds of workers. The worst factor is then one of two mixtures, and the
worst over all mechanisms a linear programme. Definition 4.3 fixes the size of the establishment, so other kinds shrink
as one grows. The paper's proof for the weak definition (equation 30) fixes the number of all others instead, and that
is examined too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias, assert_never

from discreet.privacy.distance import distance
from discreet.privacy.losses import Number, exact
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers, is_weak
from discreet.words.cases import case_of
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

Unit: TypeAlias = Establishments | Workers | EstablishmentNodes
Requirement: TypeAlias = Literal["individuals", "employer size", "employer shape"]
Attacker: TypeAlias = Literal["informed", "weak", "of one kind"]
"""One who knows all but one thing; who knows no kinds of workers; who asks for the number of one kind (equation 30)."""

REQUIREMENTS: tuple[Requirement, ...] = ("individuals", "employer size", "employer shape")
LESS_INFORMED: dict[Requirement, Attacker | None] = {
    "individuals": None,
    "employer size": "weak",
    "employer shape": "of one kind",
}
SIZES = (1, 3, 10, 15, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Establishments that are examined, beside the first that grow by more than a worker and not by whole ones."""

LARGE, LEAST_ALPHA, MOST_ALPHA = 1_000, Fraction(1, 10_000), 10
"""A factor that is larger at the last size than up to this one, or to the first that grow by more than a worker, has no
bound: between these values of alpha, steps grow in between."""

MIXED = (1, 5, 10, 15, 20, 25, 30)
"""Sizes for which the weak attacker's programme is solved."""


MOST_MIXED = 40
"""The larger of two sizes in that programme."""


@dataclass(frozen=True, slots=True)
class InfusedTable:
    """Noise infusion (section 5.1): one factor per establishment, |f - 1| from `low` to `high`, and small counts."""

    low: float = 0.05
    high: float = 0.15
    small: float = 2.5

    @property
    def key(self) -> str:
        return f"noise infusion ({self.low:g} to {self.high:g})"


@dataclass(frozen=True, slots=True)
class LearntAtMost:
    """The most that one attacker can learn about one thing.

    Attributes
    ----------
    steps : the worst log Bayes factor as a multiple of epsilon; infinite where there is no bound.
    by_size : the same by the size of the establishment, as far as it depends on it.
    pair : the two things that can be distinguished best, in words.
    """

    requirement: Requirement
    attacker: Attacker
    steps: float
    by_size: tuple[tuple[int, float], ...]
    pair: str

    @property
    def satisfied(self) -> bool:
        """Whether there is a bound for establishments of every size."""
        return math.isfinite(self.steps)

    def to_dict(self) -> dict[str, Any]:
        return {
            "requirement": self.requirement,
            "attacker": self.attacker,
            "satisfied": self.satisfied,
            "epsilons": self.steps if self.satisfied else None,
            "by_size": {size: steps if math.isfinite(steps) else None for size, steps in self.by_size},
            "pair": self.pair,
        }


def learnt_at_most(
    scheme: Unit | InfusedTable, requirement: Requirement, *, alpha: Number = "0.1", attacker: Attacker = "informed"
) -> LearntAtMost:
    """The worst Bayes factor of an attacker under a scheme; `alpha` is that of the requirement on establishments.

    Examples
    --------
    >>> found = learnt_at_most(Workers(), "employer size", alpha="0.1")
    >>> found.satisfied, found.pair
    (False, '1,000,000 or 1,100,000 workers')
    """
    share = exact(alpha, name="alpha")
    if not LEAST_ALPHA <= share <= MOST_ALPHA:
        raise PrivacyError(
            (Argument("alpha", alpha), " is not a share to which a size is hidden."),
            f"It is at least {float(LEAST_ALPHA):g} and at most {MOST_ALPHA}.",
            ("Use for example ", Argument("alpha", "0.1"), "."),
            about="alpha",
        )
    mixed = (requirement, attacker) == ("employer size", "weak")
    if mixed and isinstance(scheme, Establishments) and is_weak(scheme.strength):
        small = [x for x in MIXED if math.ceil((1 + share) * x) <= MOST_MIXED]
        rows = [(x, *_mixed(scheme, share, x)) for x in small]
        rows += [(x, *_of_a_kind(scheme, share, x)) for x in _uneven(share) if x not in small]
        return _worst(requirement, attacker, sorted(rows), up_to=None)
    sizes = sorted({*SIZES, *_uneven(share)})
    found = [(x, *max(_pairs(scheme, requirement, attacker, share, x), key=lambda pair: pair[0])) for x in sizes]
    return _worst(requirement, attacker, found, up_to=max(LARGE, *_uneven(share)))


def _uneven(alpha: Fraction) -> tuple[int, int]:
    """The first sizes that grow by more than a worker; by no whole number, one of them, unless alpha is one."""
    first = math.floor(1 / alpha) + 1
    return first, first + 1


def requirements(scheme: Unit | InfusedTable, *, alpha: Number = "0.1") -> tuple[LearntAtMost, ...]:
    """All three requirements; where the informed attacker has no bound, also another who has one."""
    found = []
    for requirement in REQUIREMENTS:
        found.append(learnt_at_most(scheme, requirement, alpha=alpha))
        if not found[-1].satisfied and (attacker := case_of(requirement, LESS_INFORMED)) is not None:
            less = learnt_at_most(scheme, requirement, alpha=alpha, attacker=attacker)
            found += [less] if less.satisfied else []
    return tuple(found)


def _worst(
    requirement: Requirement, attacker: Attacker, found: Sequence[tuple[int, float, str]], *, up_to: int | None
) -> LearntAtMost:
    """The largest of factors by size, or none where they go on growing beyond a size."""
    grows = up_to is not None and found[-1][1] > max(steps for size, steps, _ in found if size <= up_to)
    _, steps, pair = max(found, key=lambda row: row[1])
    by_size = tuple((size, steps) for size, steps, _ in found)
    return LearntAtMost(requirement, attacker, math.inf if grows else steps, by_size, pair)


def _pairs(
    scheme: Unit | InfusedTable, requirement: Requirement, attacker: Attacker, alpha: Fraction, x: int
) -> Iterator[tuple[float, str]]:
    """Pairs of a requirement at an establishment of x workers: the log Bayes factor over epsilon, and the pair."""
    if requirement == "individuals":
        yield _apart(scheme, (x - 1, 0), (x - 1, 1)), f"whether somebody is one of {x:,} workers"
        yield _apart(scheme, (x, 0), (x - 1, 1)), f"the kind of one of {x:,} workers"
        elsewhere = _apart(scheme, (x - 1, 0), (x, 0)) + _apart(scheme, (x, 0), (x - 1, 0))
        yield elsewhere, f"which of two employers of {x:,} somebody has"
    elif requirement == "employer size":
        y = math.ceil((1 + alpha) * x)
        # Who knows all others: newcomers are of a kind that the establishment has, or of one that it has not.
        for own in {0, x}:
            yield _apart(scheme, (x - own, own), (x - own, own + y - x)), f"{x:,} or {y:,} workers"
    elif requirement == "employer shape":
        for p in sorted({1, math.ceil(x / 2), math.ceil(x / (1 + alpha))}):
            q = min(math.floor((1 + alpha) * p), x)
            alone = case_of(attacker, {"of one kind": True, "weak": False, "informed": False})
            others = x - p if alone else x - q
            beside = f"beside {others:,} others" if alone else f"of {x:,}"
            apart = _apart(scheme, (p, x - p), (q, others)) if q > p else 0.0
            yield apart, f"{p:,} or {q:,} {beside} are of a kind"
    else:
        assert_never(requirement)


def _apart(scheme: Unit | InfusedTable, before: tuple[int, int], after: tuple[int, int]) -> float:
    """The worst log likelihood ratio over epsilon."""
    if not isinstance(scheme, InfusedTable):
        return float(distance(scheme, before, after))
    return infused_factor(scheme, before, after)


def infused_factor(infusion: InfusedTable, before: Sequence[int], after: Sequence[int]) -> float:
    """The worst log likelihood ratio of infused counts of a lone establishment: 0 or without bound.

    Zeros stay zeros and small counts are drawn alike, whatever they are. The others are multiplied by one factor: two
    workforces give the same outputs only if they are the same, because their ranges f h have different ends.
    """
    for a, b in zip(before, after, strict=True):
        kinds = {"zero" if n == 0 else "small" if n < infusion.small else "infused" for n in (a, b)}
        if len(kinds) > 1 or (kinds == {"infused"} and a != b):
            return math.inf
    return 0.0


def _mixed(unit: Establishments, alpha: Fraction, x: int) -> tuple[float, str]:
    y = math.ceil((1 + alpha) * x)
    return max(
        weak_attacker(unit, x, y, epsilon=1.0), weak_attacker(unit, y, x, epsilon=1.0)
    ), f"{x:,} or {y:,} workers"


def _of_a_kind(unit: Establishments, alpha: Fraction, x: int) -> tuple[float, str]:
    """For an attacker to whom all workers are of one kind."""
    y = math.ceil((1 + alpha) * x)
    return float(distance(unit, x, y)), f"{x:,} or {y:,} workers"


def weak_attacker(unit: Establishments, x: int, y: int, *, epsilon: float, share: float = 0.5) -> float:
    """The worst log Bayes factor of size x against y for somebody to whom workers are of one kind with chance `share`.

    Largest E_x f / E_y f over f > 0 with f(h) <= e^(epsilon d(h, h')) f(h'), h the numbers of both kinds: a linear
    programme in g = P f. Pairs whose bound could not bind are left out.
    """
    import numpy as np
    from scipy import sparse
    from scipy.optimize import linprog

    if not (isinstance(share, int | float) and 0 < share < 1):
        raise _unsolved(share, x, y)
    chance = np.concatenate([_binomial(n, share) for n in (x, y)])
    forces = [(i, n - i) for n in (x, y) for i in range(n + 1)]
    top, bottom = np.arange(len(forces)) <= x, np.arange(len(forces)) > x
    apart = _weak_table(unit, forces)
    bound = np.exp(np.minimum(epsilon * apart, 600.0)) * chance[:, None] / chance[None, :]
    one, other = np.nonzero((bound < BINDING) & ~np.eye(len(forces), dtype=np.bool_))
    rows = np.arange(len(one))
    above = sparse.csr_matrix((np.ones(len(one)), (rows, one)), shape=(len(one), len(forces)))
    below = sparse.csr_matrix((bound[one, other], (rows, other)), shape=above.shape)
    solved = linprog(
        -top.astype(np.float64),
        A_ub=above - below,
        b_ub=np.zeros(len(one)),
        A_eq=bottom[None, :].astype(np.float64),
        b_eq=[1.0],
        method="highs",
    )
    if solved.fun is None:
        raise _unsolved(share, x, y)
    return math.log(-solved.fun)


def _unsolved(share: float, x: int, y: int) -> PrivacyError:
    return PrivacyError(
        (
            Argument("share", share),
            f" of sizes of {x:,} and {y:,} workers leaves masses that no programme tells apart.",
        ),
        f"Sizes of up to {MOST_MIXED} and shares between 0.3 and 0.7 are solved.",
        ("Use for example ", Argument("share", 0.5), "."),
        about="share",
    )


BINDING = 1e8
"""A ratio of masses beyond which a constraint is left out: the optimum can only become larger."""


def _binomial(n: int, share: float) -> Any:
    from scipy.stats import binom

    return binom.pmf(range(n + 1), n, share)


def _weak_table(unit: Establishments, forces: Sequence[tuple[int, int]]) -> Any:
    """Distances between all pairs of workforces of two kinds: shortest ways on the lattice of all workforces."""
    import numpy as np
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    side = max(map(sum, forces)) + 1
    edges = [
        (i * side + j, (i + a) * side + j + b)
        for i in range(side)
        for j in range(side)
        for a in range(min(unit.largest_neighbour(i), side - 1) - i + 1)
        for b in range(min(unit.largest_neighbour(j), side - 1) - j + 1)
        if 0 < a + b <= unit.largest_neighbour(i + j) - i - j
    ]
    one, other = np.array(edges).T
    workers = [sum(divmod(there, side)) - sum(divmod(here, side)) for here, there in edges]
    price = np.where(np.array(workers) == 1, 0.5, 1.0) if unit.substitution else np.ones(len(edges))
    graph = sparse.csr_matrix((price, (one, other)), shape=(side**2, side**2))
    places = np.array([i * side + j for i, j in forces])
    return shortest_path(graph, directed=False, indices=places)[:, places]


MARKS: dict[Attacker, str] = {"informed": "", "weak": "*", "of one kind": "+"}
"""The marks of a verdict: the paper's star, and a plus for what is true only as equation 30 reads it."""


@dataclass(frozen=True, slots=True)
class SchemeFindings:
    """A row of Table 1: a scheme, with everything that its attackers learn at most."""

    name: str
    section: str
    findings: tuple[LearntAtMost, ...]

    def verdict(self, requirement: Requirement) -> str:
        """Yes, No, or a marked Yes where only another attacker is bounded."""
        for found in self.findings:
            if found.requirement == requirement and found.satisfied:
                return f"Yes{MARKS[found.attacker]}"
        return "No"

    def level(self, requirement: Requirement) -> float:
        """The bound as a multiple of epsilon, of the attacker of the verdict."""
        return min(found.steps for found in self.findings if found.requirement == requirement)

    def to_dict(self) -> dict[str, Any]:
        return {
            "scheme": self.name,
            "section": self.section,
            "verdicts": {requirement: self.verdict(requirement) for requirement in REQUIREMENTS},
            "findings": [found.to_dict() for found in self.findings],
        }


@lru_cache(maxsize=4)
def table_1(*, alpha: Number = "0.1", theta: int = 1_000_000_000) -> tuple[SchemeFindings, ...]:
    """Table 1 of the paper, computed. Node privacy keeps establishments of up to `theta` workers: all of them."""
    schemes: dict[tuple[str, str], Unit | InfusedTable] = {
        ("input noise infusion", "5"): InfusedTable(),
        ("differential privacy of individuals (edge)", "6"): Workers(),
        ("differential privacy of establishments (node)", "6"): EstablishmentNodes(theta),
        ("employer-employee privacy, strong", "7"): Establishments(alpha),
        ("employer-employee privacy, weak", "7"): Establishments(alpha, "weak"),
    }
    return tuple(
        SchemeFindings(name, section, requirements(scheme, alpha=alpha)) for (name, section), scheme in schemes.items()
    )


PAPER = {
    "input noise infusion": ("No", "No", "No"),
    "differential privacy of individuals (edge)": ("Yes", "No", "No"),
    "differential privacy of establishments (node)": ("Yes", "Yes", "Yes"),
    "employer-employee privacy, strong": ("Yes", "Yes", "Yes"),
    "employer-employee privacy, weak": ("Yes", "Yes*", "Yes"),
}
"""What the paper prints."""
