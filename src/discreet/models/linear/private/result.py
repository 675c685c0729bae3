"""`PrivateFit`: what a private release of a mixed model lets everybody see. Nothing confidential is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.data.frames import missing, open_frame
from discreet.ledger import Entry
from discreet.models.formula.design import Design, RandomDesign
from discreet.models.formula.rows import Learned, read_rows, refuse_kinds
from discreet.models.linear.effects import ByGroup, ByName, place
from discreet.models.linear.families.family import Response
from discreet.models.linear.families.registry import named
from discreet.models.linear.matrix import linear, random_part
from discreet.models.linear.origin import basis
from discreet.models.linear.private.notes import Flag
from discreet.models.linear.private.request import Method
from discreet.privacy.guarantee import Guarantee
from discreet.results import Result
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError

INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class PrivateEffects:
    """One effect of the levels of a random term: its variance, and what is predicted for each level.

    Attributes
    ----------
    variance, std_errors : None if the method has none; standard errors of the predictions include the noise.
    name : what it multiplies: an intercept, or a slope's column. `term` : the place of its term in the formula.
    covariances : with the effects of the same term that come later, by their names.
    """

    group: str
    levels: tuple[str, ...] = field(repr=False)
    variance: float | None
    values: Vector = field(repr=False)
    std_errors: Vector | None = field(repr=False)
    name: str = INTERCEPT
    term: int = 0
    covariances: Mapping[str, float] = field(default_factory=dict)
    alone: bool = True

    @classmethod
    def of(
        cls, random: RandomDesign, covariance: Matrix, values: Matrix, term: int, errors: Matrix | None = None
    ) -> list[PrivateEffects]:
        """One for each effect of a term, from their covariance, their values (levels, width) and their errors'."""
        values, names = values.reshape(len(random.grouping), -1), random.names
        return [
            cls(
                random.term.name,
                random.grouping.labels,
                float(covariance[i, i]),
                values[:, min(i, values.shape[1] - 1)],
                None if errors is None else np.sqrt(np.maximum(errors[:, i, i], 0.0)),
                name,
                term,
                {names[j]: float(covariance[i, j]) for j in range(i + 1, len(names))},
                names == (INTERCEPT,),
            )
            for i, name in enumerate(names)
        ]

    @property
    def component(self) -> str:
        """Its name among the variances of a fit."""
        return self.group if self.alone else f"{self.group}: {self.name}"

    def __getitem__(self, level: str) -> float:
        return float(self.values[place(level, self.levels, self.group)])


@dataclass(frozen=True, repr=False)
class PrivateFit(Result):
    """A private linear mixed model.

    Attributes
    ----------
    formula, method : what was asked.
    names, beta, covariance : fixed effects and their covariance, noise included; None where the method has none.
    random : one `PrivateEffects` per effect of each random term, in the formula's order.
    sigma2 : residual variance, of counts their dispersion; None for a model that follows from others.
    family : the law of the response. Estimates of shares and counts are on the scale of the logit and of the log.
    exposure : the public column that counts are of; empty where there is none.
    rows : number of observations, which is public.
    guarantee : what the release promises; `entry`, the ledger line that paid; `name`, the release's.
    flags : what must be read before the estimates, in every table beside the estimates concerned.
    notes : what a reader of the estimates should know; flags come first.
    clip : the range into which responses were pulled: the bounds, or a tighter one.
    check : what was known before it was paid for: price, what was left, expected error.
    released : the noisy statistics behind the estimates, which are just as public.
    """

    formula: str
    method: Method
    names: tuple[str, ...]
    beta: Vector
    covariance: Matrix | None = field(repr=False)
    random: tuple[PrivateEffects, ...] = field(repr=False)
    sigma2: float | None
    rows: int
    guarantee: Guarantee
    notes: tuple[str, ...]
    released: Any = field(repr=False, compare=False)
    design: Design = field(repr=False, compare=False)
    learned: Learned = field(repr=False, compare=False)
    centred: Vector = field(repr=False)
    kept: Integers = field(repr=False)
    flags: tuple[Flag, ...] = ()
    clip: tuple[float, float] | None = None
    family: str = "gaussian"
    exposure: str = ""
    entry: Entry | None = field(default=None, repr=False)
    name: str = ""
    check: Any = field(default=None, compare=False)

    @property
    def fixed(self) -> dict[str, float]:
        """Fixed effects by name."""
        return ByName(zip(self.names, self.beta.tolist(), strict=True))

    @property
    def se(self) -> dict[str, float | None]:
        """Standard errors of the fixed effects by name, noise included; None where the method has none."""
        if self.covariance is None:
            return ByName(dict.fromkeys(self.names))
        return ByName(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def law(self) -> Response:
        """What the family answers."""
        return named(self.family)

    @property
    def variances(self) -> dict[str, float | None]:
        """Variance components by grouping factor, covariances of slopes after them, then the residual's."""
        found: ByName[float | None] = ByName()
        for position in dict.fromkeys(effects.term for effects in self.random):
            own = [effects for effects in self.random if effects.term == position]
            found |= {effects.component: effects.variance for effects in own}
            found |= {f"{each.component}, {other}": v for each in own for other, v in each.covariances.items()}
        return ByName({**found, "Residual": self.sigma2}) if self.law.linear else found

    @property
    def effects(self) -> Mapping[str, PrivateEffects]:
        """Random effects by grouping factor; those of slopes by group and column, such as "county: quarter"."""
        return ByGroup({term.component: term for term in self.random})

    @of_kinds
    def fitted(self, data: Any, *, new_levels: Literal["error", "zero"] = "error") -> Vector:
        """Fitted values for rows of public columns; a level the release never saw is an error, or has effect zero.

        Of counts they are for an exposure of 1. Earlier responses of a model with lags are columns with the names of
        their terms, such as "lag(y, 1)".
        """
        frame = open_frame(data, ordered=True)
        schema = frame.collect_schema()
        for column in self.design.layout.model.columns[1:]:
            if column not in schema:
                raise DataError(missing(column, schema.names(), name="the new data", about="data"))
        refuse_kinds(schema, self.design.layout, response=False)
        rows, _ = read_rows(
            frame.drop(self.design.layout.model.response.column, strict=False), self.design.layout, self.learned
        )
        for column in sorted({column for piece in self.design.layout.fixed for column, _ in piece.coded}):
            if (rows.codes[column] < 0).any():
                raise DataError(
                    f"Column {column!r} of the new data has levels the release never saw.",
                    remedy="Drop those rows.",
                    about="data",
                )
        beta = np.zeros(len(self.design.names))
        beta[self.kept] = self.centred
        total = linear(rows, self.design.layout.fixed, self.design.levels, beta)
        for name, coefficient in zip(self.names[len(self.centred) :], self.beta[len(self.centred) :], strict=True):
            total = total + coefficient * _earlier(frame, name)
        for position, term in enumerate(self.design.random):
            own = np.column_stack([effects.values for effects in self.random if effects.term == position])
            centred = own @ basis(term).T
            total += random_part(rows, term, self.design.levels, centred, new_levels=new_levels)
        return self.law.link.mean(total)

    @of_kinds
    def tidy(self, *, levels: bool = False) -> Any:
        """The estimates in the columns of `discreet.results.COLUMNS`; if asked, also the effects of all levels."""
        from discreet.models.linear.private.text import tidy

        return tidy(self, levels=levels)

    def to_arrow(self) -> Any:
        """Every estimate, with the effects of all levels."""
        return self.tidy(levels=True)

    def published(self) -> Any:
        """The table that a plan publishes: `term` names a coefficient, a level, or says that it is a variance."""
        from discreet.models.linear.private.text import published

        return published(self)

    def summary(self) -> str:
        """The release as text: estimates, then what is promised."""
        from discreet.models.linear.private.text import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """The release as plain values, ready for JSON."""
        from discreet.models.linear.private.text import to_dict

        return to_dict(self)

    def __repr__(self) -> str:
        return f"<PrivateFit {self.formula!r}, {self.method}, {self.rows:,} rows: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return self.summary()


def _earlier(frame: Any, name: str) -> Vector:
    """A column of earlier responses, in the rows that fitted values are for."""
    import narwhals.stable.v2 as nw

    from discreet.data.frames import collect

    if name not in (schema := frame.collect_schema()):
        raise DataError(
            f"The new data have no column {name!r}, which the model multiplies.",
            f"There are: {', '.join(schema.names())}.",
            "Add earlier responses under that name, where they may be known.",
            about="data",
        )
    chosen = frame.select(nw.col(name).cast(nw.Float64()))
    column = (collect(chosen, step=name) if isinstance(chosen, nw.LazyFrame) else chosen.to_arrow())[name]
    return np.asarray(column.to_numpy(), dtype=np.float64)
