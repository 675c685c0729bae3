"""How values and parameters are spelled for four kinds of readers: of Python, of a plan, of a command and of a form.

Each voice names what its reader can set: a keyword, a key of a plan, an option of the command that runs, a label.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

LONGEST, KEPT = 60, 40
"""Characters of a value that are shown whole, and how many of a longer one."""


def brief(value: object) -> str:
    """A value as Python writes it, or its beginning where it is long."""
    try:
        text = _python(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = "a number of thousands of digits"
    return _cut(text)


def written(value: object) -> str:
    """A value as TOML writes it, or its beginning where it is long."""
    if isinstance(value, Mapping):
        return _cut(f"{{ {', '.join(f'{key} = {written(item)}' for key, item in value.items())} }}")
    if isinstance(value, list | tuple):
        return _cut(f"[{', '.join(map(written, value))}]")
    if isinstance(value, date | time):
        return _cut(value.isoformat())
    if isinstance(value, bool | Decimal):
        return _cut(str(value).lower().replace("infinity", "inf"))
    if isinstance(value, Fraction) and value.denominator != 1:
        return _cut(_decimal(value) or repr(str(value)))
    return brief(value)


def _python(value: object) -> str:
    if isinstance(value, Fraction):
        return _decimal(value) or str(value)
    if isinstance(value, Decimal):
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "size", 0) == 1:
        return repr(value.item())  # a number of NumPy's as Python's
    if type(value) is tuple and len(value) == 1:
        return f"({_python(value[0])},)"
    if type(value) in (list, tuple):
        text = ", ".join(map(_python, value))  # type: ignore[call-overload]
        return f"[{text}]" if type(value) is list else f"({text})"
    return repr(value)


def _decimal(amount: Fraction) -> str:
    """A short decimal where it is exact, or nothing."""
    twos_and_fives = amount.denominator
    for factor in (2, 5):
        while twos_and_fives % factor == 0:
            twos_and_fives //= factor
    if twos_and_fives > 1 or amount.denominator > 10**12:
        return ""
    return f"{(Decimal(amount.numerator) / Decimal(amount.denominator)).normalize():f}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:KEPT]}... ({len(text)} characters)"


class Voice(ABC):
    """The spelling of terms for one kind of reader.

    `names_places` where each fault comes with the name of its key; `own` are the spellings that the reader takes, best
    first, of words that follow no rule.
    """

    names_places = False
    own: ClassVar[tuple[str, ...]] = ("python",)

    def value(self, value: object) -> str:
        return brief(value)

    @abstractmethod
    def key(self, path: tuple[str, ...]) -> str:
        """A parameter by its name, or a part of it."""

    @abstractmethod
    def setting(self, name: str, value: object, under: str | None) -> str:
        """A parameter with its value, and the table of a plan that has it."""


class _Python(Voice):
    def key(self, path: tuple[str, ...]) -> str:
        head, *rest = path
        return f"{head}{''.join(f'[{part!r}]' for part in rest)}" if rest else f"`{head}`"

    def setting(self, name: str, value: object, under: str | None) -> str:
        return f"{name}={self.value(value)}"


class _Plan(Voice):
    names_places = True
    own: ClassVar[tuple[str, ...]] = ("plan", "python")

    def value(self, value: object) -> str:
        return written(value)

    def key(self, path: tuple[str, ...]) -> str:
        return ".".join(path)

    def setting(self, name: str, value: object, under: str | None) -> str:
        return f"{name} = {self.value(value)}{f' under [{under}]' if under else ''}"


METAVARIABLES = {"lower": "LOW", "upper": "HIGH"}


class Command(Voice):
    """The spelling on a command line; `otherwise` spells what the command does not take.

    Attributes
    ----------
    options : those that the command takes, such as "--clip"; None where no command is known, which takes all.
    arguments : its other parameters, and what its help calls them.
    """

    own = ("command", "python")

    def __init__(
        self,
        options: Collection[str] | None = None,
        arguments: Mapping[str, str] | None = None,
        otherwise: Voice | None = None,
    ) -> None:
        self.options, self.arguments, self.otherwise = options, arguments or {}, otherwise or PYTHON

    def value(self, value: object) -> str:
        if isinstance(value, Symbol):
            return METAVARIABLES.get(repr(value), repr(value))
        if isinstance(value, str):
            return _cut(shlex.quote(value))
        if isinstance(value, list | tuple):
            return " ".join(map(self.value, value))
        return brief(value)

    def key(self, path: tuple[str, ...]) -> str:
        head, *rest = path
        taken = self._taken(head)
        return self.otherwise.key(path) if taken is None else " ".join([taken, *map(shlex.quote, rest)])

    def setting(self, name: str, value: object, under: str | None) -> str:
        taken = self._taken(name)
        if taken is None:
            return self.otherwise.setting(name, value, under)
        return taken if value is True else f"{taken} {self.value(value)}"

    def _taken(self, name: str) -> str | None:
        """The option or argument of the command for a parameter, if there is one."""
        option = f"--{name.replace('_', '-')}"
        return option if self.options is None or option in self.options else self.arguments.get(name)


LABELS = {
    "title": "Title",
    "alpha": "Alpha",
    "strength": "Definition",
    "substitution": "A worker's kind and employer inside one epsilon; otherwise they take two",
    "theta": "Largest workforce kept",
    "lower": "Smallest response",
    "upper": "Largest response",
    "response": "Protected column",
    "protect": "Rows protected together by",
    "name": "Name",
    "epsilon": "Epsilon",
    "kind": "What",
    "by": "Counts by",
    "quarter": "Quarter",
    "quarters": "Quarters",
    "mechanism": "Mechanism",
    "tables": "Tables",
    "add_up": "The tables add up",
    "measure": "Tables that are drawn",
    "establishments": "Also publish the number of establishments, which is public",
    "where": "Only these values",
    "scale_share": "Part of epsilon for narrow intervals",
    "delta": "Delta",
    "level": "Level of the intervals",
    "round_to": "Round counts for readers to",
    "suppress": "Leave out numbers below",
    "replaces": "Revision of",
    "compare": "Beside the agency's table",
    "of": "Sums of",
    "split": "Each table's share of epsilon",
    "stratum": "The report divides the error by",
    "shrink": "Draw shares of worker kinds towards those of groups by",
    "formula": "Formula",
    "family": "Family",
    "exposure": "Exposure",
    "clip": "Clip responses to",
    "lagged": "Columns of earlier responses",
    "series": "Series",
    "time": "Time",
    "summary": "Answer",
    "coefficient": "Coefficients",
    "at": "At",
    "scale": "Size of the coefficients",
    "formats": "Formats",
    "forms": "Forms",
    "horizon": "Periods ahead",
    "cutoff": "A change is large beyond the quantile",
    "cost_ratio": "False alarms that one miss is worth",
    "direction": "Look for",
    "indicators": "Columns that lead",
    "known": "Columns known ahead",
    "calendar": "Calendar",
    "late": "Later release",
    "early": "Earlier release",
    "folder": "Plan of the earlier release",
    "value": "Which number",
    "rate": "Chance of a false alarm",
    "fdr": "Share of false alarms",
    "least": "Least change",
}
"""What the desk's forms call a parameter. One that they do not have is set in the text of a plan."""


class _Form(_Plan):
    own = ("form", "plan", "python")
    labels: ClassVar[Mapping[str, str]] = LABELS

    def value(self, value: object) -> str:
        if isinstance(value, list | tuple):
            return _cut(", ".join(map(self.value, value)))
        return str(value) if isinstance(value, Fraction) else super().value(value)

    def key(self, path: tuple[str, ...]) -> str:
        head, *rest = path
        return " ".join([repr(self.labels[head]), *rest]) if head in self.labels else super().key(path)

    def setting(self, name: str, value: object, under: str | None) -> str:
        if name not in self.labels:
            return PLAN.setting(name, value, None)
        return self.key((name,)) if value is True else f"{self.key((name,))} {self.value(value)}"


class _UnitForm(_Form):
    """The form's part about who is protected, where `by` names rows that belong together."""

    labels: ClassVar[Mapping[str, str]] = {**LABELS, "by": LABELS["protect"]}


PYTHON, PLAN = _Python(), _Plan()
COMMAND, FORM, UNIT_FORM = Command(), _Form(), _UnitForm()


@dataclass(frozen=True, slots=True, repr=False)
class Symbol:
    """A value that stands for others, written as it is: (lower, upper), 1e-6."""

    text: str

    def __repr__(self) -> str:
        return self.text
