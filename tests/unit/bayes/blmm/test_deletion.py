"""Rank-one deletion against the posterior computed anew without the row; the bound against every other group."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.deletion import Elsewhere, leave_each_out, leave_out
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.prior import Prior

ROWS = [0, 1, 4, 11, 25, 59]


@pytest.fixture(scope="module")
def edges(data):
    return data.posterior.effects.quantile(np.arange(1, 20) / 20)


def test_deletion_is_exact(data, edges) -> None:
    extreme = int(np.abs(data.y - data.x @ [0.5, -0.3]).argmax())
    each = leave_each_out(data.posterior, group=data.group, x=data.x, y=data.y).own.bins(edges[data.group])
    for row in {*ROWS, extreme}:
        g = int(data.group[row])
        left = data.moments.downdate(group=g, x=data.x[row : row + 1], y=data.y[row : row + 1])
        anew = Posterior.of(PosteriorModel.of(left, Prior()), tolerance=1e-6).effects.bins(edges)
        all_groups = leave_out(data.posterior, group=g, x=data.x[row], y=data.y[row]).bins(edges)
        np.testing.assert_allclose(all_groups, anew, atol=1e-7)
        np.testing.assert_allclose(each[row], anew[g], atol=1e-7)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.full_size)])
def test_bound_holds_in_every_other_group(every: int, data, edges) -> None:
    rest = Elsewhere.of(data.posterior, edges)
    found = leave_each_out(rest.posterior, group=data.group, x=data.x, y=data.y, reach=rest.reach)
    bound = rest.bound(found)
    for row, g in [*enumerate(data.group.tolist())][::every]:
        law = leave_out(data.posterior, group=g, x=data.x[row], y=data.y[row])
        change = np.delete(np.abs(law.bins(edges) - 0.05), g, axis=0).max()
        assert change <= bound[row]
    assert np.median(bound) < 0.05  # a bound of a whole bin would say nothing
