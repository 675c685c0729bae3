"""The posterior without one row, exactly, for many rows at once.

Deleting row i from M'V^-1 M, M = [X y], is a rank-one change at every pair of variances: with q = M'V^-1 e_i and
c = (V^-1)_ii, the products lose q q'/c and det V gains the factor c. In a model with one random intercept
q = m_i - k m-bar (k the group's shrinkage, m-bar its means) and c = (1 + lambda (n - 1)) / (1 + lambda n).
With t = q_x' S q_x / (c s2) the row's leverage on the fixed effects (S their covariance), e = q_y - q_x' beta:

    beta without i   = beta - S q_x e / (c s2 (1 - t)),       S without i = S + S q_x q_x' S / (c s2 (1 - t)),
    density of the variances without i / with i = 1 / N(e / (c (1 - t)); 0, s2 / (c (1 - t))), up to a constant.

Nothing is linearised: these are identities at each node, so the nodes are kept and only reweighted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.mixture import Mixtures

SLOPE = 0.24197072451914337  # sup |phi'| = sup |z phi(z)| = phi(1)


@dataclass(frozen=True)
class Without:
    """Posteriors of m rows' own random effects, each without its row.

    Attributes
    ----------
    own : one law per row.
    pull : how far each coordinate of the fixed effects moves at each node, weighed by `reach`, (K, m).
    leverage : t above, (K, m).
    """

    own: Mixtures
    pull: Matrix
    leverage: Matrix


def leave_each_out(
    posterior: Posterior, *, group: Integers, x: Matrix, y: Vector, reach: Matrix | None = None
) -> Without:
    """Delete each of m rows in turn: groups (m,), designs (m, p), responses (m,); `reach` is that of `Elsewhere`."""
    model, nodes = posterior.model, posterior.nodes
    present, at = np.unique(group, return_inverse=True)
    sizes, means = model.n[present], model.means[present]
    K, m = len(posterior.weights), len(y)
    log_weight, mean, deviation, pull, leverage = (np.empty((K, m)) for _ in range(5))
    for k in range(K):
        residual, ratio, beta, root = nodes.residual[k], nodes.ratio[k], nodes.beta[k], nodes.root[k]
        shrink = ratio * sizes / (1 + ratio * sizes)
        there, mean_gap = means[:, :-1] @ root, means[:, -1] - means[:, :-1] @ beta
        gap = y - x @ beta
        e = gap - (shrink * mean_gap)[at]
        q = x @ root
        q -= (shrink[:, None] * there).take(at, axis=0)
        scale = ((1 + ratio * (sizes - 1)) / (1 + ratio * sizes) * residual)[at]  # c s2
        own = np.einsum("mi,mi->m", q, q)
        t = own / scale
        left = scale * (1 - t)
        log_weight[k] = 0.5 * (e * e / left - np.log(left)) + np.log(residual)
        # The sums of the other rows of the group are (n - shrink) there - q, in the coordinates of the root.
        weight, others = (ratio / (1 + ratio * (sizes - 1)))[at], (sizes - shrink)[:, None] * there
        cross = np.einsum("mi,mi->m", others.take(at, axis=0), q)
        move = cross - own
        mean[k] = weight * ((sizes * mean_gap)[at] - gap + move * e / left)
        brought = np.einsum("gi,gi->g", others, others)[at] - cross - move + move * move / left
        deviation[k] = np.sqrt(residual * weight + weight * weight * brought)
        pull[k] = 0.0 if reach is None else np.abs(q, out=q) @ reach[k] * np.abs(e) / left
        leverage[k] = t
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
    """The most that a deletion can do to the bin probabilities of the groups that do not contain the row.

    A bin's probability is a weighted mean over nodes. New weights change it by (w' - w)'D, where D are the distances of
    the nodes' bins from the mean. In the singular basis U of diag(sqrt w) D, this is at most the sum over j of |(w' -
    w)' diag(1 / sqrt w) u_j| max |u_j' diag(sqrt w) D|. At one node a group's law moves, in its own deviations, by a'v.
    Here v is the move of the fixed effects in the coordinates of their root, and a is the group's direction. In the
    singular basis of all directions this is at most the sum of |v_j| times `reach_j`, and a bin moves by at most
    `slope` times that.

    Attributes
    ----------
    posterior : the posterior with its roots rotated into those bases; delete rows from this one.
    reach : max over groups of |a_j|, (K, p).
    share : max over groups of |a|, (K,).
    basis, spread : U / sqrt(w), (K, K), and the maxima beside it, (K,).
    slope : largest change of a bin's probability per deviation of shift, (K,).
    """

    posterior: Posterior
    reach: Matrix
    share: Vector
    basis: Matrix
    spread: Vector
    slope: Vector

    @classmethod
    def of(cls, posterior: Posterior, edges: Matrix) -> Elsewhere:
        """`edges` (G, bins - 1) bound bins of equal probability in the posterior with all rows."""
        from scipy.special import ndtr

        nodes, laws, bins = posterior.nodes, posterior.effects, edges.shape[1] + 1
        n, x = posterior.model.n, posterior.model.means[:, :-1]
        K, p = nodes.beta.shape
        distances, slope = np.empty((K, edges.shape[0] * bins)), np.empty(K)
        root, reach = np.empty_like(nodes.root), np.empty((K, p))
        for k in range(K):
            z = (edges - laws.means[k][:, None]) / laws.deviations[k][:, None]
            distances[k] = (np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0) - 1 / bins).ravel()
            phi = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
            slope[k] = np.abs(np.diff(phi, axis=1, prepend=0.0, append=0.0)).max()
            shrink = nodes.ratio[k] * n / (1 + nodes.ratio[k] * n)
            directions = (shrink / laws.deviations[k])[:, None] * (x @ nodes.root[k])
            _, turn = np.linalg.eigh(directions.T @ directions)
            root[k], reach[k] = nodes.root[k] @ turn, np.abs(directions @ turn).max(axis=0)
        weight = np.sqrt(posterior.weights)
        distances *= weight[:, None]
        _, U = np.linalg.eigh(distances @ distances.T)
        spread = np.array([np.abs(u @ distances).max() for u in U.T])
        rotated = replace(posterior, nodes=replace(nodes, root=root))
        return cls(rotated, reach, posterior.brought.max(axis=1), U / weight[:, None], spread, slope)

    def bound(self, without: Without) -> Vector:
        """The largest possible change of a bin's probability, for each row deleted from `posterior` with `reach`."""
        new = without.own.weights
        reweighted = self.spread @ np.abs(self.basis.T @ (new - self.posterior.weights[:, None]))
        shift = without.pull
        wider = self.share[:, None] ** 2 * without.leverage / (1 - without.leverage)
        moved = shift * self.slope[:, None] + SLOPE * (shift**2 + wider)
        found: Vector = reweighted + (new * moved).sum(axis=0)
        return found
