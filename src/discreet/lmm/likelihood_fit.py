"""What every fit by maximum likelihood has: fixed effects by name, and information criteria."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.results import Result


class LikelihoodFit(Result):
    """A fit by maximum or restricted likelihood; `criterion` is -2 log-likelihood."""

    names: tuple[str, ...]
    beta: Vector
    covariance: Matrix
    criterion: float
    rows: int

    if TYPE_CHECKING:  # a field of one fit, a property of the other

        @property
        def parameters(self) -> int: ...

    @property
    def fixed(self) -> dict[str, float]:
        """Fixed effects by name."""
        return dict(zip(self.names, self.beta.tolist(), strict=True))

    @property
    def se(self) -> dict[str, float]:
        """Standard errors of the fixed effects by name."""
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

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
