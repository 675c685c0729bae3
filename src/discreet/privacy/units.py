"""Who is protected: the pairs of data sets that a release must keep apart by at most its loss.

Definitions are those of the Tables paper (Haney et al. 2017), section 7. The last term of the weak definition is
restored to phi(E) + 1. With the printed 1, hiring a sixth worker would not be a neighbouring change, and the paper's
own Theorem 7.2 would fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.privacy.losses import Number, exact, shown
from discreet.words.cases import case_of
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Spelled

Strength: TypeAlias = Literal["strong", "weak"]


def is_weak(strength: Strength) -> bool:
    """Whether a change is hidden only where no kind of workers grows by more than the share."""
    return case_of(strength, {"strong": False, "weak": True})


BY_ESTABLISHMENTS = Spelled(
    "open a session with unit=Establishments(alpha=0.1)",
    plan="use [unit] kind = 'establishments' with alpha = 0.1",
    form="protect 'establishments and their workers' with 'Alpha' 0.1",
)
BY_WORKERS = Spelled(
    "open a session with unit=Workers() or EstablishmentNodes(theta)",
    plan="use [unit] kind = 'workers', or kind = 'establishment-nodes' with theta",
    form="protect 'single jobs only', or 'whole establishments, large ones left out'",
)
WEAK = Spelled("Establishments(alpha, 'weak')", plan="strength = 'weak' under [unit]", form="the 'Definition' 'weak'")
"""Advice to protect others, or less."""


@dataclass(frozen=True, slots=True)
class Establishments:
    """Employer-employee privacy: one establishment's workforce may grow by a share alpha, or by one worker.

    Strong neighbours: E is a subset of E' and ``|E| < |E'| <= max((1 + alpha) |E|, |E| + 1)``.
    Weak neighbours: the same bound for the number of workers with any attribute, not only for all of them; fewer
    pairs are neighbours, so the promise is weaker.

    Neighbours may be read in either direction: from E' to E a workforce shrinks to 1 / (1 + alpha) of its size. A
    worker of another kind, or with another employer, is one worker less and one more: two steps, and twice the loss.
    With `substitution`, one worker more or less costs only half of the loss, so that such an exchange costs one loss.

    Parameters
    ----------
    alpha : the share by which a workforce may change unnoticed, above 0.
    strength : "strong" or "weak".
    substitution : whether the exchange of one worker for another costs one loss and not two.

    Examples
    --------
    >>> print(Establishments(alpha=0.1).key)
    establishments(alpha=1/10,strong)
    """

    alpha: Fraction
    strength: Strength = "strong"
    substitution: bool = False

    def __init__(self, alpha: Number, strength: Strength = "strong", *, substitution: bool = False) -> None:
        share = exact(alpha, name="alpha")
        if share <= 0:
            raise PrivacyError(
                (Argument("alpha", alpha), " protects no establishment's size."),
                "It is the share by which a workforce may change unnoticed and must be above 0.",
                ("Use for example ", Argument("alpha", 0.1), ", or Workers() to protect single jobs only."),
                about="alpha",
            )
        if not isinstance(strength, str) or strength not in ("strong", "weak"):
            raise PrivacyError(
                (Argument("strength", strength), " is unknown."),
                "It is 'strong' or 'weak'.",
                "Leave it out for strong.",
                about="strength",
            )
        if not isinstance(substitution, bool):
            raise PrivacyError(
                (Argument("substitution", substitution), " is neither yes nor no."),
                "It is True or False.",
                "Leave it out for False.",
                about="substitution",
            )
        object.__setattr__(self, "alpha", share)
        object.__setattr__(self, "strength", strength)
        object.__setattr__(self, "substitution", substitution)

    @property
    def log_growth(self) -> float:
        """b = ln(1 + alpha), the unit in which feasibility is decided."""
        return math.log1p(float(self.alpha))

    def largest_neighbour(self, size: int, *, step: int = 1) -> int:
        """The largest workforce that neighbours one of `size` workers; or amount, of which a worker adds `step`."""
        return size + max(self.alpha.numerator * size // self.alpha.denominator, step)

    def smallest_neighbour(self, size: int) -> int:
        """The smallest workforce that neighbours one of `size` workers, from 1 on."""
        part, whole = self.alpha.denominator, self.alpha.numerator + self.alpha.denominator
        return min(-(-part * size // whole), size - 1)

    @property
    def exchange(self) -> int:
        """How many times the loss it may cost to give a worker another kind or another employer."""
        return 1 if self.substitution else 2

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return f"establishments(alpha={self.alpha},{self.strength}{',substitution' * self.substitution})"

    def __str__(self) -> str:
        whom = "workforce of any kind, and of any kinds together," if is_weak(self.strength) else "whole workforce"
        share = shown(self.alpha * 100)
        exchanged = ", or in which one worker with one job is exchanged for another or changes employer"
        grows = f"two data sets in which one establishment's {whom} grows by at most {share} % or one worker"
        return grows + exchanged * self.substitution


@dataclass(frozen=True, slots=True)
class Workers:
    """Edge privacy: one job is added or removed. Does not hide the size of a large establishment.

    Examples
    --------
    >>> print(Workers())
    two data sets that differ in one job
    """

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return "workers"

    def __str__(self) -> str:
        return "two data sets that differ in one job"


@dataclass(frozen=True, slots=True)
class EstablishmentNodes:
    """Node privacy after truncation: one whole establishment of at most `theta` workers is added or removed.

    Parameters
    ----------
    theta : the largest workforce that is kept, a whole number of workers.

    Examples
    --------
    >>> print(EstablishmentNodes(1000))
    two data sets that differ in one whole establishment of at most 1,000 workers
    """

    theta: int

    def __post_init__(self) -> None:
        if isinstance(self.theta, bool) or not isinstance(self.theta, int) or self.theta < 1:
            raise PrivacyError(
                (Argument("theta", self.theta), " is not the size of a workforce."),
                "It is the largest one that is kept, a whole number of workers of at least 1.",
                ("Use for example ", Argument("theta", 1000), "."),
                about="theta",
            )

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return f"establishment-nodes(theta={self.theta})"

    def __str__(self) -> str:
        return f"two data sets that differ in one whole establishment of at most {self.theta:,} workers"


@dataclass(frozen=True, slots=True)
class Rows:
    """One row's response is replaced, whatever it holds, or none; the columns that a release declares are public.

    Parameters
    ----------
    lower, upper : where responses lie, known without the data; others count as the nearer end, or as a release says.
    response : the column that is protected, or several of them, which may all change in that row. A unit without a
        name is that of older ledgers, under which nothing is released any more.

    Examples
    --------
    >>> print(Rows(0, 2, "rate"))
    two data sets that differ in one row's response rate, whatever it holds, or none (bounds [0, 2])
    """

    lower: Fraction
    upper: Fraction
    responses: tuple[str, ...]

    def __init__(self, lower: Number, upper: Number, response: str | Sequence[str] = ()) -> None:
        low, high = exact(lower, name="lower"), exact(upper, name="upper")
        if not low < high:
            raise PrivacyError(
                (
                    Spelled(
                        f"Rows(lower={lower}, upper={upper})",
                        plan=f"lower = {lower} with upper = {upper}",
                        form=f"'Smallest response' {lower} with 'Largest response' {upper}",
                    ),
                    " has no width.",
                ),
                "The response must lie in an interval known without the data.",
                "Give lower < upper.",
                about="lower",
            )
        names = names_of(response)
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            raise PrivacyError(
                (Argument("response", response), " names no columns, or one twice."),
                "It says which column is protected.",
                ("Give for example ", Argument("response", "jcr"), "."),
                about="response",
            )
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "responses", names)

    @property
    def width(self) -> Fraction:
        """The distance between the bounds."""
        return self.upper - self.lower

    @property
    def bounds(self) -> str:
        """Where responses lie, in words."""
        return f"(bounds [{shown(self.lower)}, {shown(self.upper)}])"

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return f"rows({','.join([str(self.lower), str(self.upper), *_spelled(self.responses)])})"

    def __str__(self) -> str:
        *most, last = self.responses or ("",)
        several = f"responses {', '.join(most)} and {last}, whatever they hold" if most else ""
        one = f"response {last}, whatever it holds".replace(" ,", ",")
        return f"two data sets that differ in one row's {several or one}, or none {self.bounds}"


@dataclass(frozen=True, slots=True)
class Groups:
    """All responses of one group of rows are replaced, whatever they hold, or none; who is in it is public.

    Parameters
    ----------
    by : the public column, or several, that name a group: an establishment, a county, a county and an industry.
    lower, upper, response : as for `Rows`.

    Examples
    --------
    >>> print(Groups("area", 0, 2, "ar"))
    two data sets that differ in the responses ar of all rows with one area, whatever they hold, or none (bounds [0, 2])
    """

    by: tuple[str, ...]
    rows: Rows

    def __init__(
        self, by: str | Sequence[str], lower: Number, upper: Number, response: str | Sequence[str] = ()
    ) -> None:
        rows = Rows(lower, upper, response)
        names = names_of(by)
        wrong = not names or not all(isinstance(name, str) and name for name in names)
        if wrong or len({*names, *rows.responses}) < len(names) + len(rows.responses):
            raise PrivacyError(
                (Argument("by", by), " names no columns, or one twice, or a response."),
                "It says which rows change together, and is public.",
                ("Give for example ", Argument("by", "establishment"), "."),
                about="by",
            )
        object.__setattr__(self, "by", names)
        object.__setattr__(self, "rows", rows)

    @property
    def lower(self) -> Fraction:
        """The smallest response."""
        return self.rows.lower

    @property
    def upper(self) -> Fraction:
        """The largest response."""
        return self.rows.upper

    @property
    def responses(self) -> tuple[str, ...]:
        """The columns that are protected."""
        return self.rows.responses

    @property
    def width(self) -> Fraction:
        """The distance between the bounds."""
        return self.rows.width

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return f"groups({'+'.join(_spelled(self.by))};{self.rows.key.removeprefix('rows(')}"

    def __str__(self) -> str:
        several = "responses " + " and ".join(self.responses) if self.responses else "responses"
        whose = f"all rows with one {' and '.join(self.by)}"
        return f"two data sets that differ in the {several} of {whose}, whatever they hold, or none {self.rows.bounds}"


def names_of(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several; what is neither has no text in it."""
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns) if isinstance(columns, Iterable) else ("",)


def _spelled(names: Sequence[str]) -> list[str]:
    return [name if re.fullmatch(r"[\w.]+", name) else repr(name) for name in names]


@dataclass(frozen=True, slots=True)
class AnyRow:
    """One whole row is replaced by any other; the number of rows is public.

    Examples
    --------
    >>> print(AnyRow())
    two data sets of the same size that differ in one whole row, whatever it holds
    """

    @property
    def key(self) -> str:
        """The unit as the ledger spells it."""
        return "any-row"

    def __str__(self) -> str:
        return "two data sets of the same size that differ in one whole row, whatever it holds"


Unit: TypeAlias = Establishments | Workers | EstablishmentNodes | Rows | Groups | AnyRow


def first_said(unit: Unit) -> str:
    """The unit in the words of the first bundles, which did not say that a response may be missing."""
    if not isinstance(unit, Rows | Groups):
        return str(unit)
    said, _, rest = str(unit).rpartition(", whatever ")
    lie = "lies" if rest.startswith("it ") else "lie"
    return f"{said}, which {lie} in [{shown(unit.lower)}, {shown(unit.upper)}]"


def _named(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip("'\"") for part in parts)


def unit_of(key: str) -> Unit:
    """The unit that the ledger spells so: the inverse of `key`, for what is published under it.

    Examples
    --------
    >>> unit_of("establishments(alpha=1/10,weak)").strength
    'weak'
    """
    name, _, rest = key.rstrip(")").partition("(")
    parts = rest.split(",") if rest else []
    known = {word: word in parts for word in ("strong", "weak", "substitution")}
    try:
        if name == "establishments" and parts[0].startswith("alpha=") and (known["strong"] or known["weak"]):
            alpha, strength = parts[0].removeprefix("alpha="), parts[1]
            return Establishments(Fraction(alpha), strength, substitution=known["substitution"])  # type: ignore[arg-type]
        if name == "establishment-nodes":
            return EstablishmentNodes(int(parts[0].rpartition("=")[2]))
        if name == "rows":
            return Rows(Fraction(parts[0]), Fraction(parts[1]), _named(parts[2:]))
        if name == "groups":
            by, _, others = rest.partition(";")
            low, high, *responses = others.split(",")
            return Groups(_named(by.split("+")), Fraction(low), Fraction(high), _named(responses))
        return Workers() if ("workers", "any-row").index(key) == 0 else AnyRow()
    except (IndexError, KeyError, ValueError):
        raise PrivacyError(
            f"{key!r} is no unit of privacy that is known here.",
            "A release names one as `Establishments(...).key` does.",
            "Use the version of discreet that made the release.",
            about="unit",
        ) from None
