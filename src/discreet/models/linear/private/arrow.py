"""The restricted likelihood of noisy sums of any random terms: slopes, crossed factors, nests.

For y = F theta + xi, with columns F = [Z X] of all effects, theta = (T b, beta) and b of unit variance, noisy sums
t = F'y + e with independent noise of variances d have, with K = F'F and W = sigma2 K + diag(d),

    [W    K T] [lambda]   [t]
    [T'K  -P ] [b beta] = [0],        P = 1 for b and 0 for beta:

lambda = P_V t, and the inverse holds P_V, the covariance of errors of theta and all determinants of the restricted
likelihood. The grouping with most levels has blocks, one for each level; the rest is a border. If the sums of a border
term's effects add up from those of the blocks, they need not be drawn. Only arrays here; docs/proofs/mixed-moments.md
has the algebra.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.linear.private.noisy import NoisyEstimate, Sources

FAINT = 1e-4  # of what residuals leave open: a variance at which effects are told as at none
QUIET = 1e-9  # noise of sums, in their sampling variances, that stands for none


@dataclass(frozen=True, slots=True)
class TermPlace:
    """The places of the effects of a random term: columns of each block, or of the border, level after level.

    `levels` and `width` are numbers of levels and of effects of one level; `unit`, the root mean square of the columns.
    """

    in_blocks: bool
    start: int
    levels: int
    width: int
    unit: Vector = field(repr=False)

    @property
    def columns(self) -> slice:
        return slice(self.start, self.start + (1 if self.in_blocks else self.levels) * self.width)


@dataclass(frozen=True, slots=True)
class TermSums:
    """Public design and noisy sums of a response, measured from a public origin, of any random terms.

    Attributes
    ----------
    ZZ, ZB, BB : cross-products of the columns of blocks (G, k, k), with those of the border (G, k, m), of the border
        (m, m). The border has the effects of other terms first, and then the p fixed columns.
    drawn : the columns of the border whose sums are drawn.
    s, ds : noisy sums of the blocks and variances of their noise (G, k); `sb`, `db`, of all columns of the border (m,).
    places : the random terms; `shapes`, for each the factor of the correlations of its effects, with rows of length 1.
    squares, squares_noise, rows, kurtosis : as in `NoisySums`.
    """

    ZZ: Matrix = field(repr=False)
    ZB: Matrix = field(repr=False)
    BB: Matrix = field(repr=False)
    drawn: Integers = field(repr=False)
    s: Matrix = field(repr=False)
    ds: Matrix = field(repr=False)
    sb: Vector = field(repr=False)
    db: Vector = field(repr=False)
    fixed: int
    places: tuple[TermPlace, ...]
    shapes: tuple[Matrix, ...]
    squares: float
    squares_noise: float
    rows: float
    kurtosis: float

    @property
    def coefficients(self) -> list[tuple[int, int]]:
        """The term, and the place in it, of each random coefficient."""
        return [(i, j) for i, place in enumerate(self.places) for j in range(place.width)]

    def factors(self, variances: Vector) -> list[Matrix]:
        """For each term the factor of the covariance of its effects, from the variances of what they add to a row."""
        found, start = [], 0
        for place, shape in zip(self.places, self.shapes, strict=True):
            own = np.sqrt(variances[start : start + place.width]) / place.unit
            found.append(own[:, None] * shape)
            start += place.width
        return found

    def spread(self, factors: list[Matrix]) -> tuple[Matrix, Matrix]:
        """T of the blocks (k, k), and of the border (m, m)."""
        block, border = np.zeros(self.ZZ.shape[1:]), np.eye(len(self.BB))
        for place, L in zip(self.places, factors, strict=True):
            if place.in_blocks:
                block[place.columns, place.columns] = L
            else:
                border[place.columns, place.columns] = np.kron(np.eye(place.levels), L)
        return block, border


@dataclass(frozen=True, slots=True)
class TermEstimate(NoisyEstimate):
    """The model at given variances of what each random coefficient adds to a row.

    Attributes
    ----------
    gradients : of the criterion in the factors of the terms' covariances.
    covariances : for each term, of the errors of its predicted effects (levels, width, width).
    misfit : the sum of squares about the predictions that noisy sums show; `lost`, what it falls short of
        rows times sigma2 in expectation.
    """

    gradients: tuple[Matrix, ...] = ()
    covariances: tuple[Matrix, ...] = ()
    misfit: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class _Arrow:
    """The system above, solved: inverses of the blocks (G, 2k, 2k), times the border, and the border's inverse.

    Unknowns of a block are lambda and b; of the border, lambda of drawn sums, b, beta. `unit` are the border's.
    """

    T: Matrix
    T_border: Matrix
    own: Matrix
    reach: Matrix
    border: Matrix
    block_unit: Matrix
    unit: Vector
    log_determinant: float
    block: Matrix
    columns: Vector

    @classmethod
    def of(cls, sums: TermSums, sigma2: float, factors: list[Matrix]) -> _Arrow:
        T, T_border = sums.spread(factors)
        G, k, m = sums.ZB.shape
        drawn, p = sums.drawn, sums.fixed
        W = sigma2 * sums.ZZ
        W[:, np.arange(k), np.arange(k)] += sums.ds
        block_unit = 1 / np.sqrt(W[:, np.arange(k), np.arange(k)])
        S = np.zeros((G, 2 * k, 2 * k))
        S[:, :k, :k] = W * block_unit[:, :, None] * block_unit[:, None, :]
        S[:, :k, k:] = block_unit[:, :, None] * (sums.ZZ @ T)
        S[:, k:, :k] = S[:, :k, k:].transpose(0, 2, 1)
        S[:, k:, k:] = -np.eye(k)
        Wb = sigma2 * sums.BB[np.ix_(drawn, drawn)] + np.diag(sums.db[drawn])
        unit = np.ones(len(drawn) + m)
        unit[: len(drawn)] = 1 / np.sqrt(np.diag(Wb))
        unit[-p:] = 1 / (unit[len(drawn) - p : len(drawn)] * np.diag(sums.BB)[m - p :])
        F = np.zeros((G, 2 * k, len(unit)))
        F[:, :k, : len(drawn)] = sigma2 * sums.ZB[:, :, drawn]
        F[:, :k, len(drawn) :] = sums.ZB @ T_border
        F[:, :k] *= block_unit[:, :, None]
        F[:, k:, : len(drawn)] = T.T @ sums.ZB[:, :, drawn]
        F *= unit
        B = np.zeros((len(unit), len(unit)))
        B[: len(drawn), : len(drawn)] = Wb
        B[: len(drawn), len(drawn) :] = (sums.BB @ T_border)[drawn]
        B[len(drawn) :, : len(drawn)] = B[: len(drawn), len(drawn) :].T
        B[np.arange(len(drawn), len(unit) - p), np.arange(len(drawn), len(unit) - p)] = -1.0
        B *= np.outer(unit, unit)
        own = np.linalg.inv(S)
        reach = own @ F
        flat = F.reshape(-1, len(unit))
        schur = B - flat.T @ reach.reshape(-1, len(unit))
        schur = (schur + schur.T) / 2
        border = np.linalg.inv(schur)
        logs = np.linalg.slogdet(S)[1].sum() + np.linalg.slogdet(schur)[1]
        logs -= 2 * (np.log(block_unit).sum() + np.log(unit).sum())
        right = np.concatenate([block_unit * sums.s, np.zeros((G, k))], axis=1)
        other = np.zeros(len(unit))
        other[: len(drawn)] = unit[: len(drawn)] * sums.sb[drawn]
        columns = border @ (other - np.einsum("gij,gi->j", reach, right))
        block = np.einsum("gij,gj->gi", own, right) - reach @ columns
        if not (np.isfinite(columns).all() and np.isfinite(logs)):
            raise np.linalg.LinAlgError("the border cannot be solved")
        return cls(T, T_border, own, reach, (border + border.T) / 2, block_unit, unit, float(logs), block, columns)


def evaluate_terms(sums: TermSums, *, sigma2: float, variances: Vector) -> TermEstimate:
    """The criterion, its slopes, and everything that the model predicts at these variances."""
    factors = sums.factors(variances)
    at = _Arrow.of(sums, sigma2, factors)
    k, m, p = sums.ZB.shape[1], len(sums.BB), sums.fixed
    first = len(at.unit) - m  # of the unknowns of the border that are effects
    b, c = at.block[:, k:], at.columns[first:]
    u, theta = b @ at.T.T, at.T_border @ (at.unit[first:] * c)
    fitted = (at.block_unit * at.block[:, :k] * sums.s).sum()
    fitted += (at.unit[:first] * at.columns[:first]) @ sums.sb[sums.drawn]
    # Errors of b, of theta, and of both together: the inverse's own block, with its sign.
    far = at.reach[:, k:] @ at.border
    errors = -(at.own[:, k:, k:] + far @ at.reach[:, k:].transpose(0, 2, 1))
    outer = -at.border[first:, first:]
    B_border = at.T_border @ (np.outer(at.unit[first:], at.unit[first:]) * outer) @ at.T_border.T
    B_block = at.T @ errors @ at.T.T
    across = (at.T @ far[:, :, first:] * at.unit[first:]) @ at.T_border.T
    lost = np.einsum("gij,gji->", sums.ZZ, B_block) + np.sum(sums.BB * B_border)
    lost += 2 * np.sum(sums.ZB * across)
    misfit = sums.squares - 2 * (np.sum(u * sums.s) + theta @ sums.sb)
    misfit += np.einsum("gi,gij,gj->", u, sums.ZZ, u) + theta @ sums.BB @ theta
    misfit += 2 * np.einsum("gi,gij,j->", u, sums.ZB, theta)

    slopes, effects, spreads, gradients, covariances = [], [], [], [], []
    start = 0
    for place, L in zip(sums.places, factors, strict=True):
        n, q, own = place.levels, place.width, place.columns
        if place.in_blocks:
            told, unit_effects = errors[:, own, own].sum(axis=0), b[:, own]
            values, spread = u[:, own], B_block[:, own, own]
        else:
            square = outer[own, own].reshape(n, q, n, q)
            told, unit_effects = np.einsum("aiaj->ij", square), c[own].reshape(n, q)
            values, spread = theta[own].reshape(n, q), np.einsum("aiaj->aij", B_border[own, own].reshape(n, q, n, q))
        v = variances[start : start + q]
        gradient = np.zeros((q, q))
        if (v > 0).all():
            gradient = 2 * np.linalg.solve(L.T, n * np.eye(q) - told - unit_effects.T @ unit_effects)
            slopes += ((gradient * L).sum(axis=1) / (2 * v)).tolist()
        else:
            slopes += [0.0] * q
        gradients.append(gradient)
        effects += list(values.T)
        spreads += list(np.maximum(np.einsum("gii->ig", spread), 0.0))
        covariances.append(spread)
        start += q
    return TermEstimate(
        sigma2,
        variances,
        at.log_determinant + float(fitted),
        np.array(slopes),
        theta[m - p :],
        B_border[m - p :, m - p :],
        tuple(effects),
        tuple(spreads),
        None,
        tuple(gradients),
        tuple(covariances),
        float(misfit),
        float(lost),
    )


def sources_of_terms(sums: TermSums, *, sigma2: float, variances: Vector) -> Sources:
    """The parts of the covariance of fixed effects, which are linear in the noisy sums."""
    at = _Arrow.of(sums, sigma2, sums.factors(variances))
    k, m, p = sums.ZB.shape[1], len(sums.BB), sums.fixed
    first = len(at.unit) - m
    scaled = at.border[:, -p:] * at.unit[-p:]
    border = np.zeros((m, p))
    border[sums.drawn] = at.unit[:first, None] * scaled[:first]
    block = -at.block_unit[:, :, None] * (at.reach[:, :k] @ scaled)
    noise = np.einsum("gip,gi,giq->pq", block, sums.ds, block) + border.T @ (sums.db[:, None] * border)
    cross = np.einsum("gip,gij,jq->pq", block, sums.ZB, border)
    residuals = np.einsum("gip,gij,gjq->pq", block, sums.ZZ, block) + cross + cross.T + border.T @ sums.BB @ border
    whole = -at.border[-p:, -p:] * np.outer(at.unit[-p:], at.unit[-p:])
    return Sources(noise, sigma2 * residuals, whole - noise - sigma2 * residuals)


def told_of(sums: TermSums, coefficient: int, *, sigma2: float, variances: Vector) -> Vector:
    """For each level, the sums' information on one coefficient's effect, in units of its variance, if that is zero."""
    i, _ = sums.coefficients[coefficient]
    place = sums.places[i]
    shapes = tuple(np.eye(len(shape)) if t == i else shape for t, shape in enumerate(sums.shapes))
    faint = FAINT * sigma2 * place.levels / sums.rows
    changed = variances.copy()
    changed[coefficient] = faint
    at = evaluate_terms(replace(sums, shapes=shapes), sigma2=sigma2, variances=changed)
    unit = place.unit[sums.coefficients[coefficient][1]]
    own = at.effect_variances[coefficient] * unit**2
    return np.asarray(np.maximum(1 - own / faint, 0.0) / faint)


def hidden_of(sums: TermSums, coefficient: int, *, sigma2: float, variances: Vector) -> float:
    """The share of what the sums would tell of a coefficient's variance that noise hides."""
    quiet = replace(
        sums,
        ds=QUIET * sigma2 * np.maximum(np.einsum("gii->gi", sums.ZZ), 1e-100),
        db=QUIET * sigma2 * np.diag(sums.BB),
    )
    told, whole = (told_of(each, coefficient, sigma2=sigma2, variances=variances) for each in (sums, quiet))
    return float(np.clip(1 - (told @ told) / max(float(whole @ whole), 1e-300), 0.0, 1.0))


def believed_of(sums: TermSums, *, sigma2: float, variances: Vector) -> float:
    """How much of the criterion's curvature is trusted: squares of Laplace noise vary more than normal ones."""
    factors = sums.factors(variances)
    claimed = true = 0.0
    for place, L in zip(sums.places, factors, strict=True):
        if place.in_blocks:
            K, d = sums.ZZ[:, place.columns, place.columns], sums.ds[:, place.columns]
        elif np.isin(np.arange(place.columns.start, place.columns.stop), sums.drawn).all():
            n, q = place.levels, place.width
            K = np.einsum("aiaj->aij", sums.BB[place.columns, place.columns].reshape(n, q, n, q))
            d = sums.db[place.columns].reshape(n, q)
        else:
            continue
        own = np.einsum("gii->gi", K)
        V = sigma2 * own + np.einsum("gii->gi", K @ (L @ L.T) @ K) + d
        told = np.where(V > 0, own**4 / V**2, 0.0)
        claimed += float(2 * told.sum())
        true += float((2 * told + sums.kurtosis * np.where(V > 0, own**4 * d**2 / V**4, 0.0)).sum())
    return claimed / true if true else 1.0
