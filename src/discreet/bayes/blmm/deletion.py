"""The posterior without one row, exactly, for many rows at once.

Deleting row i from M'V^-1 M, M = [X y], is a rank-one change at every pair of variances: with q = M'V^-1 e_i and
c = (V^-1)_ii, the products lose q q'/c and det V gains the factor c. In a model with one random intercept
q = m_i - k m-bar (k the group's shrinkage, m-bar its means) and c = (1 + lambda (n - 1)) / (1 + lambda n).
With t = q_x' S q_x / (c s2) the row's leverage on the fixed effects (S their covariance), e = q_y - q_x' beta:

    beta without i   = beta - S q_x e / (c s2 (1 - t)),       S without i = S + S q_x q_x' S / (c s2 (1 - t)),
    density of the variances without i / with i = 1 / N(e / (c (1 - t)); 0, s2 / (c (1 - t))), up to a constant.

Nothing is linearised: at each node these are identities, so the nodes are kept and only reweighted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.bayes.blmm.exact import Posterior
from discreet.bayes.blmm.mixture import Mixtures

SLOPE = 0.24197072451914337  # sup |phi'| = sup |z phi(z)| = phi(1)


@dataclass(frozen=True)
class Without:
    """Posteriors of m rows' own random effects, each without its row.

    Attributes
    ----------
    own : one law per row.
    pull : how far the fixed effects move at each node, in the norm of their covariance, (K, m).
    leverage : t above, (K, m).
    """

    own: Mixtures
    pull: Matrix
    leverage: Matrix


def leave_each_out(posterior: Posterior, *, group: Integers, x: Matrix, y: Vector) -> Without:
    """Delete each of m rows in turn: their groups (m,), designs (m, p) and responses (m,)."""
    model, nodes = posterior.model, posterior.nodes
    n, means = model.n[group], model.means
    K, m = len(posterior.weights), len(y)
    log_weight, mean, deviation, pull, leverage = (np.empty((K, m)) for _ in range(5))
    for k in range(K):
        residual, ratio, beta, root = nodes.residual[k], nodes.ratio[k], nodes.beta[k], nodes.root[k]
        shrink = ratio * n / (1 + ratio * n)
        here, there = x @ root, (means[:, :-1] @ root)[group]
        gap, mean_gap = y - x @ beta, (means[:, -1] - means[:, :-1] @ beta)[group]
        q, e = here - shrink[:, None] * there, gap - shrink * mean_gap
        scale = (1 + ratio * (n - 1)) / (1 + ratio * n) * residual  # c s2
        t = np.einsum("mi,mi->m", q, q) / scale
        left = scale * (1 - t)
        log_weight[k] = 0.5 * (e * e / left - np.log(left)) + np.log(residual)
        weight = ratio / (1 + ratio * (n - 1))  # of the sums of the other rows of the group
        others = n[:, None] * there - here
        move = np.einsum("mi,mi->m", others, q)
        mean[k] = weight * (n * mean_gap - gap + move * e / left)
        brought = np.einsum("mi,mi->m", others, others) + move * move / left
        deviation[k] = np.sqrt(residual * weight + weight * weight * brought)
        pull[k], leverage[k] = np.sqrt(t / scale) * np.abs(e) / (1 - t), t
    log_weight += np.log(posterior.weights)[:, None] - log_weight.max(axis=0)
    weights = np.exp(log_weight)
    weights /= weights.sum(axis=0)
    return Without(Mixtures(weights, mean, deviation), pull, leverage)


def leave_out(posterior: Posterior, *, group: int, x: Vector, y: float) -> Mixtures:
    """The posteriors of all random effects without one row."""
    nodes, n = posterior.nodes, posterior.model.n
    means, at = posterior.model.means[:, :-1], posterior.model.means[group]
    ratio = nodes.ratio[:, None]
    shrink = ratio * n / (1 + ratio * n)
    own = shrink[:, group]
    q = np.einsum("kp,kpr->kr", x - own[:, None] * at[:-1], nodes.root)
    e = y - own * at[-1] - np.einsum("kp,kp->k", x - own[:, None] * at[:-1], nodes.beta)
    left = nodes.residual * (1 - own / n[group]) - (q * q).sum(axis=1)
    move = shrink * (np.einsum("kpr,kr->kp", nodes.root, q) @ means.T)
    mean = posterior.effects.means + move * (e / left)[:, None]
    deviation = np.sqrt(posterior.effects.deviations**2 + move * move / left[:, None])
    found = leave_each_out(posterior, group=np.array([group]), x=x[None], y=np.array([y])).own
    mean[:, group], deviation[:, group] = found.means[:, 0], found.deviations[:, 0]
    return Mixtures(found.weights[:, 0], mean, deviation)


@dataclass(frozen=True)
class Elsewhere:
    """What a deletion can do, at most, to the bin probabilities of the groups that the row is not in.

    A bin's probability is a weighted mean over nodes. New weights move it by at most the sum over nodes of |change of
    weight| times the node's largest distance from the bin's probability (`spread`). At one node a group's law moves
    by at most `share` times the pull on the fixed effects, in its own deviations, and a bin of slope `slope` follows.
    """

    weights: Vector
    spread: Vector
    share: Vector
    slope: Vector

    @classmethod
    def of(cls, posterior: Posterior, edges: Matrix) -> Elsewhere:
        """`edges` (G, bins - 1) bound bins of equal probability in the posterior with all rows."""
        from scipy.special import ndtr

        laws, bins = posterior.effects, edges.shape[1] + 1
        spread, slope = np.empty(len(posterior.weights)), np.empty(len(posterior.weights))
        for k, (mean, deviation) in enumerate(zip(laws.means, laws.deviations, strict=True)):
            z = (edges - mean[:, None]) / deviation[:, None]
            spread[k] = np.abs(np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0) - 1 / bins).max()
            phi = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
            slope[k] = np.abs(np.diff(phi, axis=1, prepend=0.0, append=0.0)).max()
        return cls(posterior.weights, spread, posterior.brought.max(axis=1), slope)

    def bound(self, without: Without) -> Vector:
        """The largest possible change of a bin's probability, for each row deleted."""
        new = without.own.weights
        reweighted = self.spread @ np.abs(new - self.weights[:, None])
        shift = self.share[:, None] * without.pull
        wider = self.share[:, None] ** 2 * without.leverage / (1 - without.leverage)
        moved = shift * self.slope[:, None] + SLOPE * (shift**2 + wider)
        found: Vector = reweighted + (new * moved).sum(axis=0)
        return found
