"""What every fit by maximum likelihood has: effects by name, information criteria, simulated responses, its data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.effects import ByGroup, ByName, RandomEffects
from discreet.models.linear.memory import refuse_responses
from discreet.results import Result
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError, FitError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.models.formula.source import ModelData


class LikelihoodFit(Result):
    """A fit by maximum or restricted likelihood; `criterion` is -2 log-likelihood."""

    names: tuple[str, ...]
    beta: Vector
    covariance: Matrix
    criterion: float
    rows: int
    random: tuple[RandomEffects, ...]
    source: ModelData | None

    if TYPE_CHECKING:  # a field of one fit, a property of the other

        @property
        def parameters(self) -> int: ...

    @property
    def fixed(self) -> dict[str, float]:
        """Fixed effects by name."""
        return ByName(zip(self.names, self.beta.tolist(), strict=True))

    @property
    def se(self) -> dict[str, float]:
        """Standard errors of the fixed effects by name."""
        return ByName(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def loglik(self) -> float:
        """The log-likelihood at the optimum: restricted with REML, approximate for counts and shares."""
        return -self.criterion / 2

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return self.criterion + 2 * self.parameters

    @property
    def bic(self) -> float:
        """The Bayesian information criterion."""
        return float(self.criterion + np.log(self.rows) * self.parameters)

    @property
    def effects(self) -> dict[str, RandomEffects]:
        """Predicted effects by grouping factor; terms that share one keep lme4's suffix, as in ``g.1``."""
        found: ByGroup[RandomEffects] = ByGroup()
        for at, term in enumerate(self.random):
            again = sum(earlier.group == term.group for earlier in self.random[:at])
            found[f"{term.group}.{again}" if again else term.group] = term
        return found

    @of_kinds
    def simulate(
        self, count: int = 1, *, effects: Literal["new", "kept"] = "new", seed: int | np.random.Generator | None = None
    ) -> Matrix:
        """Responses drawn from the fitted model, shape (rows, count), with new random effects or the predicted ones."""
        one_of("effects", effects, ("new", "kept"))
        if count < 1:
            raise DataError(
                (Argument("count", count), " draws nothing."),
                "It is 1 or more.",
                "Use 1, or leave it out.",
                about="count",
            )
        refuse_responses(self.rows, count)
        return np.column_stack(list(self._drawn(count, np.random.default_rng(seed), effects=effects)))

    @abstractmethod
    def _drawn(self, count: int, rng: np.random.Generator, *, effects: Literal["new", "kept"]) -> Iterator[Vector]:
        """Responses of the fitted rows, one array after another."""

    @property
    def _open_source(self) -> ModelData:
        if self.source is None:
            raise FitError(
                "This fit was stored, and its data were not.",
                "Estimates and predictions for given data are possible.",
                "Fit the formula to the data again.",
                about="data",
            )
        return self.source

    def __getstate__(self) -> dict[str, Any]:
        """The stored state: estimates, what predictions need, and the rows that are in memory, without the source."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"source": None}  # type: ignore[arg-type]


def responses_of(y: Any, rows: int) -> Vector:
    """Other responses to the rows of a fit, one finite number for each."""
    try:
        found: Vector = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(rows, np.nan)
    if found.shape != (rows,) or not np.isfinite(found).all():
        raise DataError(
            f"A refit was asked with responses of shape {found.shape}, or with some that are no finite numbers.",
            f"The fit has {rows:,} rows, each with a finite response on the model's scale.",
            "Give one number for each row, in the fitted order.",
            about="y",
        )
    return found


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise DataError(
            (Argument(name, value), " is not known."),
            f"There are: {', '.join(map(repr, allowed))}.",
            f"Use {allowed[0]!r}, or another of them.",
            about=name,
        )
