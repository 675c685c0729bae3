"""`PosteriorDraw`: one draw from a posterior and what it promises. Nothing confidential is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.bayes.draw_law import DrawLaw
from discreet.models.formula.design import Design
from discreet.models.formula.rows import Learned
from discreet.models.linear.effects import ByGroup, ByName, place
from discreet.models.linear.matrix import linear, place_rows, random_part
from discreet.privacy.guarantee import Guarantee
from discreet.results import Result, tidy_table

if TYPE_CHECKING:
    from discreet.models.linear.private.public import PublicDesign


@dataclass(frozen=True)
class DrawnEffects:
    """One draw of the effects of a random term."""

    group: str
    levels: tuple[str, ...] = field(repr=False)
    variance: float
    values: Vector = field(repr=False)

    def __getitem__(self, level: str) -> float:
        return float(self.values[place(level, self.levels, self.group)])


@dataclass(frozen=True, repr=False)
class PosteriorDraw(Result):
    """One draw from a posterior, and its guarantee.

    Attributes
    ----------
    formula : what was asked.
    names, beta : one draw of the fixed effects. `random` : of the effects of the only random term.
    std_error : standard deviations of the posterior that was drawn from; of effects in `effect_errors`. Not numbers
        where they would depend on responses.
    residual, power : the declared residual variance, and the power with which the likelihood counted.
    rows, guarantee, entry, name, check, notes : as in `PrivateFit`.
    """

    formula: str
    names: tuple[str, ...]
    beta: Vector
    std_error: Vector
    random: tuple[DrawnEffects, ...]
    effect_errors: Vector = field(repr=False)
    residual: float
    power: float
    rows: int
    guarantee: Guarantee
    notes: tuple[str, ...]
    released: tuple[Integers, ...] = field(repr=False, compare=False)
    design: Design = field(repr=False, compare=False)
    learned: Learned = field(repr=False, compare=False)
    centred: Vector = field(repr=False)
    entry: Any = field(default=None, repr=False)
    name: str = ""
    check: Any = field(default=None, compare=False)

    @property
    def fixed(self) -> dict[str, float]:
        """The drawn fixed effects by name."""
        return ByName(zip(self.names, self.beta.tolist(), strict=True))

    @property
    def effects(self) -> Mapping[str, DrawnEffects]:
        """The drawn effects by grouping factor."""
        return ByGroup({term.group: term for term in self.random})

    def fitted(self, data: Any) -> Vector:
        """The draw's predictions for rows of public columns; a level that was never seen is an error."""
        rows = place_rows(data, self.design, self.learned)
        total = linear(rows, self.design.layout.fixed, self.design.levels, self.centred)
        for term, drawn in zip(self.design.random, self.random, strict=True):
            total += random_part(rows, term, self.design.levels, drawn.values[:, None], new_levels="error")
        return total

    def tidy(self, *, levels: bool = False) -> Any:
        """The draw in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        rows: list[tuple[Any, ...]] = [
            ("fixed", None, name, None, b, None if np.isnan(s) else s)
            for name, b, s in zip(self.names, self.beta, self.std_error, strict=True)
        ]
        if levels:
            (term,) = self.random
            drawn = zip(term.levels, term.values, self.effect_errors, strict=True)
            at = "random", term.group, "(Intercept)"
            rows += [(*at, level, b, None if np.isnan(s) else s) for level, b, s in drawn]
        effect, group, name, level, value, error = (list(column) for column in zip(*rows, strict=True))
        return tidy_table(
            effect=effect,
            group=group,
            term=name,
            level=level,
            estimate=value,
            std_error=error,
            lower=[None] * len(rows),
            upper=[None] * len(rows),
            flag=None,
        )

    def to_arrow(self) -> Any:
        """The whole draw."""
        return self.tidy(levels=True)

    def to_dict(self) -> dict[str, Any]:
        """The draw as plain values, ready for JSON."""
        return {
            "formula": self.formula,
            "method": "posterior draw",
            "guarantee": str(self.guarantee),
            "loss": self.guarantee.loss.to_dict(),
            "power": self.power,
            "rows": self.rows,
            "fixed": self.fixed,
            "deviations": {n: s for n, s in zip(self.names, self.std_error.tolist(), strict=True) if not np.isnan(s)},
            "effects": {term.group: dict(zip(term.levels, term.values.tolist(), strict=True)) for term in self.random},
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """The draw as text, then what is promised."""
        lines = [f"One draw from the posterior of {self.formula}", *(f"Note: {note}" for note in self.notes)]
        wide = max(map(len, self.names))
        for name, b, s in zip(self.names, self.beta, self.std_error, strict=True):
            lines.append(f"  {name:{wide}}  {b:.5g}" + ("" if np.isnan(s) else f"  (posterior deviation {s:.3g})"))
        (term,) = self.random
        lines.append(f"  and effects of {len(term.levels):,} levels of {term.group}")
        return "\n".join([*lines, str(self.guarantee)])

    def __repr__(self) -> str:
        return f"<PosteriorDraw {self.formula!r}, {self.rows:,} rows: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, slots=True)
class DrawErrors:
    """Expected errors of a draw: posterior deviations times the root of two, if `supposed` is so."""

    names: tuple[str, ...]
    fixed: tuple[float, ...]
    effects: tuple[tuple[int, float], ...]
    power: float
    group: str
    supposed: str

    def __repr__(self) -> str:
        return f"<DrawErrors of {len(self.names)} fixed effects and effects of {self.group}>"

    @staticmethod
    def of(law: DrawLaw, public: PublicDesign, supposed: str) -> DrawErrors:
        """From the public design and two variances. Of effects: those with the fewest rows, the median and the most."""
        effects, _ = law.deviations()
        restore = public.origin.restore
        spread = law.s2**2 * np.linalg.inv(law.root @ law.root.T)
        fixed = np.sqrt(2 * np.diag(restore @ spread @ restore.T))
        order = np.argsort(law.n, kind="stable")
        shown = [int(order[int(q * (len(order) - 1))]) for q in (0.0, 0.5, 1.0)]
        by_rows = {int(law.n[i]): float(np.sqrt(2) * effects[i]) for i in shown}
        name = public.design.random[0].term.name
        return DrawErrors(public.names, tuple(fixed.tolist()), tuple(by_rows.items()), law.power, name, supposed)

    def __str__(self) -> str:
        lines = [f"One posterior draw, the likelihood to the power {self.power:.4g}. Expected errors:"]
        lines += [f"  {name}: {error:.3g}" for name, error in zip(self.names, self.fixed, strict=True)]
        lines += [f"  effect of a {self.group} with {rows:,} rows: {error:.3g}" for rows, error in self.effects]
        return "\n".join([*lines, f"{self.supposed}; half of the squares is the draw's own."])

    def to_dict(self) -> dict[str, Any]:
        return {
            "power": self.power,
            "fixed": dict(zip(self.names, self.fixed, strict=False)),
            "effects": [{"group": self.group, "rows": rows, "error": error} for rows, error in self.effects],
        }
