"""The restricted likelihood of noisy sums: what a mixed model can be estimated from when every sum carries noise.

For y = X beta + sum_l Z_l u_l + xi with nested random intercepts, write Z for the finest groups and A = [Z X]. Noisy
sums t = A'y + e, with independent noise e of known variances d, have mean A'X beta and covariance

    V = sigma2 A'A + sum_l variance_l (A'Z_l)(A'Z_l)' + diag(d).

Z'Z is diagonal and the coarser levels are nested, so V is a tree with a border of p columns and nothing costs more than
O(G p^2). The residual variance is not in t: it comes from a noisy sum of squares, by an equation whose expectation is
exact. Only arrays here; docs/proofs/mixed-moments.md has the algebra.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Integers, Matrix, Vector

EPSILON, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Level:
    """A grouping of the finest groups, which are ordered so that each of its members is a run."""

    starts: Integers
    index: Integers

    @classmethod
    def of(cls, labels: Integers) -> Level:
        """From the label of each finest group; equal labels are neighbours."""
        new = np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))
        return cls(new, np.repeat(np.arange(len(new)), np.diff(np.append(new, len(labels)))))

    def sum(self, values: Matrix) -> Matrix:
        return np.add.reduceat(values, self.starts, axis=0) if len(self.starts) < len(self.index) else values

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Public design and noisy sums of a response, measured from a public origin.

    Attributes
    ----------
    n, Sx, XX : rows per finest group (G,), sums of the fixed columns (G, p), X'X (p, p). G is 0 without random effects.
    levels : groupings of the random terms, the finest first.
    s, Xy : noisy sums of the response by finest group (G,) and by fixed column (p,).
    ds, dx : variances of the noise in `s` and `Xy`: one number for all groups, or a vector (G,), and a vector (p,).
    squares : noisy sum of squares of the response; `squares_noise`, the standard deviation of its noise.
    kurtosis : excess kurtosis of the noise: 3 for Laplace's, 0 for Gauss's.
    """

    n: Vector
    Sx: Matrix
    XX: Matrix
    levels: tuple[Level, ...]
    s: Vector
    Xy: Vector
    ds: float | Vector
    dx: Vector
    squares: float
    squares_noise: float
    rows: float
    kurtosis: float


@dataclass(frozen=True, slots=True)
class NoisyEstimate:
    """The model at given variances.

    Attributes
    ----------
    criterion : -2 log restricted likelihood of the noisy sums, up to a constant.
    slopes : its derivatives in the variances.
    beta, covariance : fixed effects and their covariance, noise included.
    effects : per level, predictions of the random effects; `effect_variances`, those of their errors.
    believed : variances that the predictions suppose, where they are not those at which the rest was computed.
    """

    sigma2: float
    variances: Vector
    criterion: float
    slopes: Vector
    beta: Vector
    covariance: Matrix
    effects: tuple[Vector, ...]
    effect_variances: tuple[Vector, ...]
    believed: Vector | None = None


@dataclass(frozen=True, slots=True)
class _Tree:
    """The inverse of diag(d) + sum_l variance_l n n' within the runs of each coarser level, as rank-one steps."""

    diagonal: Vector
    steps: list[tuple[Level, Vector, Vector, Vector]]

    @classmethod
    def of(cls, diagonal: Vector, n: Vector, levels: tuple[Level, ...], variances: Vector) -> _Tree:
        tree = cls(diagonal, [])
        for level, variance in zip(levels, variances, strict=True):
            a = tree.solve(n[:, None])[:, 0]
            total = level.sum(n * a)
            tree.steps.append((level, a, variance / (1 + variance * total), total))
        return tree

    @property
    def logdet(self) -> float:
        # 1 + v t = 1 / (1 - c t) for c = v / (1 + v t).
        return float(np.log(self.diagonal).sum() - sum(np.log1p(-c * t).sum() for _, _, c, t in self.steps))

    def solve(self, right: Matrix) -> Matrix:
        found = right / self.diagonal[:, None]
        for level, a, c, _ in self.steps:
            found -= a[:, None] * (c[:, None] * level.sum(a[:, None] * right))[level.index]
        return found

    def quadratic(self, n: Vector, of: Level) -> Vector:
        """n' V^-1 n restricted to each run of `of`."""
        found = of.sum(n**2 / self.diagonal)
        for level, a, c, t in self.steps:
            if len(level) >= len(of):  # finer or equal: its runs lie inside those of `of`
                found = found - np.add.reduceat(c * t**2, level.index[of.starts])
            else:
                found = found - c[level.index[of.starts]] * of.sum(n * a) ** 2
        return np.asarray(found)

    def own(self, n: Vector, of: Level) -> Vector:
        """For each finest group g, the sum over the groups h of its run in `of` of n_h (V^-1)_hg."""
        found = n / self.diagonal
        for level, a, c, _ in self.steps:
            inner = of if len(of) > len(level) else level  # the finer of the two, whose runs lie in the other's
            found = found - a * c[level.index] * inner.sum(n * a)[inner.index]
        return np.asarray(found)


@dataclass(frozen=True, slots=True)
class _Solved:
    """V^-1 [A'X t] at given variances: by group less what the border takes (`groups`), and by fixed column (`columns`).

    `reach` is Vzz^-1 D means, `border` the inverse of the Schur complement of Vzz, `forms` [A'X t]' V^-1 [A'X t].
    """

    tree: _Tree
    means: Matrix
    groups: Matrix
    columns: Matrix
    reach: Matrix
    border: Matrix
    log_border: float
    forms: Matrix

    @classmethod
    def of(cls, sums: NoisySums, sigma2: float, variances: Vector, robust: bool) -> _Solved:
        n, Sx = sums.n, sums.Sx
        means = Sx / n[:, None]
        within = sums.XX - means.T @ Sx
        coarse = [level.sum(Sx) for level in sums.levels]
        spread = sum(((v * c)[level.index] for v, c, level in zip(variances, coarse, sums.levels, strict=True)), 0 * Sx)
        finest = variances[0] if len(variances) else 0.0
        tree = _Tree.of(sigma2 * n + finest * n**2 + sums.ds, n, sums.levels[1:], variances[1:])
        # V is [[Vzz, Vzx], [Vzx', Vxx]] with Vzx = (Vzz - D) means: in the Schur complement of Vzz nothing cancels.
        right = np.column_stack([Sx, sums.s])
        groups, H = tree.solve(right), tree.solve(np.reshape(sums.ds, (-1, 1)) * means)
        schur = sigma2 * within + np.diag(sums.dx) + H.T @ (sigma2 * Sx + n[:, None] * spread)
        log_border, border = _inverted(schur, robust)
        rest = np.column_stack([within, sums.Xy - means.T @ sums.s]) + H.T @ right
        columns = border @ rest
        return cls(tree, means, groups, columns, H, border, log_border, right.T @ groups + rest.T @ columns)


def evaluate(sums: NoisySums, *, sigma2: float, variances: Vector, robust: bool = True) -> NoisyEstimate:
    """The criterion, its slopes, and everything that the model predicts at these variances.

    Unless `robust`, a design that doubles cannot solve under this noise raises `numpy.linalg.LinAlgError`.
    """
    n, p = sums.n, len(sums.XX)
    at = _Solved.of(sums, sigma2, variances, robust)
    log_M, covariance = _inverted(at.forms[:p, :p], robust)
    beta = covariance @ at.forms[:p, p]
    criterion = at.tree.logdet + at.log_border + log_M + at.forms[p, p] - at.forms[:p, p] @ beta

    slopes, effects, errors = [], [], []
    for level, v in zip(sums.levels, variances, strict=True):
        reach = level.sum(n[:, None] * at.reach)
        seen = level.sum(n[:, None] * at.groups) + reach @ at.columns
        residual = seen[:, p] - seen[:, :p] @ beta
        leverage = at.tree.quadratic(n, level) + forms(reach, at.border) - forms(seen[:, :p], covariance)
        slopes.append(leverage.sum() - residual @ residual)
        effects.append(v * residual)
        errors.append(np.maximum(v - v**2 * leverage, 0.0))
    return NoisyEstimate(
        sigma2, variances, float(criterion), np.array(slopes), beta, covariance, tuple(effects), tuple(errors)
    )


def of_responses(
    sums: NoisySums, s: Matrix, Xy: Matrix, *, sigma2: float, variances: Vector
) -> tuple[Matrix, tuple[Matrix, ...]]:
    """Fixed effects and, by level, predicted effects of other sums on the same design, one column for each response."""
    p = len(sums.XX)
    at = _Solved.of(replace(sums, s=s, Xy=Xy), sigma2, variances, True)
    beta = _inverted(at.forms[:p, :p], True)[1] @ at.forms[:p, p:]
    effects = []
    for level, v in zip(sums.levels, variances, strict=True):
        seen = level.sum(sums.n[:, None] * at.groups) + level.sum(sums.n[:, None] * at.reach) @ at.columns
        effects.append(v * (seen[:, p:] - seen[:, :p] @ beta))
    return beta, tuple(effects)


def visibility(sums: NoisySums, *, sigma2: float, variances: Vector) -> tuple[Vector, ...]:
    """Per level, n' V^-1 n within each of its runs: what the sums tell of its effects, in units of its variance."""
    finest = variances[0] if len(variances) else 0.0
    tree = _Tree.of(sigma2 * sums.n + finest * sums.n**2 + sums.ds, sums.n, sums.levels[1:], variances[1:])
    return tuple(tree.quadratic(sums.n, level) for level in sums.levels)


@dataclass(frozen=True, slots=True)
class Sources:
    """The three parts of the covariance of fixed effects at given variances; they add up to it."""

    noise: Matrix
    residuals: Matrix
    groups: Matrix


def sources(sums: NoisySums, *, sigma2: float, variances: Vector) -> Sources:
    """beta^ = C X'A V^-1 t, and the covariance V of t is a sum of noise, residuals and effects."""
    p = len(sums.XX)
    at = _Solved.of(sums, sigma2, variances, robust=True)
    _, C = _inverted(at.forms[:p, :p], True)
    b = at.columns[:, :p] @ C
    a = at.groups[:, :p] @ C - (at.means - at.reach) @ b
    cross = a.T @ sums.Sx @ b
    residuals = sigma2 * (a.T @ (sums.n[:, None] * a) + cross + cross.T + b.T @ sums.XX @ b)
    groups = np.zeros((p, p))
    for level, v in zip(sums.levels, variances, strict=True):
        seen = level.sum(sums.n[:, None] * a + sums.Sx @ b)
        groups += v * seen.T @ seen
    return Sources(a.T @ (np.reshape(sums.ds, (-1, 1)) * a) + b.T @ (sums.dx[:, None] * b), residuals, groups)


@dataclass(frozen=True, slots=True)
class Responses:
    """How estimates at given variances respond to single noisy sums.

    Attributes
    ----------
    effects : of the effect of each finest group, all levels together, to its own sum (G,).
    columns : of each fixed effect to its own sum (p,).
    alone : of the effect of each finest group to its own sum if fixed effects were known (G,).
    """

    effects: Vector
    columns: Vector
    alone: Vector


def responses(sums: NoisySums, *, sigma2: float, variances: Vector) -> Responses:
    """The diagonals of the matrices that turn noisy sums into effects and fixed effects."""
    n, p = sums.n, len(sums.XX)
    at = _Solved.of(sums, sigma2, variances, robust=True)
    _, C = _inverted(at.forms[:p, :p], True)
    b = at.columns[:, :p] @ C
    weights = at.groups[:, :p] - (at.means - at.reach) @ at.columns[:, :p]  # V^-1 A'X, by group
    effects, alone = np.zeros(len(n)), np.zeros(len(n))
    for level, v in zip(sums.levels, variances, strict=True):
        reach = level.sum(n[:, None] * at.reach)
        seen = level.sum(n[:, None] * at.groups[:, :p]) + reach @ at.columns[:, :p]
        own = at.tree.own(n, level)
        alone += v * own
        effects += v * (own - _dots(reach[level.index] @ at.border, at.means - at.reach))
        effects -= v * _dots(seen[level.index] @ C, weights)
    return Responses(effects, np.diag(b).copy(), alone)


def _inverted(matrix: Matrix, robust: bool) -> tuple[float, Matrix]:
    """Log determinant and inverse of a positive definite matrix whose columns may have very different units.

    The drawn numbers must be solved. If rounding has made the matrix indefinite, a `robust` inverse raises eigenvalues
    to the size of rounding, so directions that nobody can know get a large variance instead of none.
    """
    unit = np.sqrt(np.maximum(np.diag(matrix), TINY))
    scaled = (matrix + matrix.T) / (2 * np.outer(unit, unit))
    try:
        L = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        if not robust:
            raise
        values, vectors = np.linalg.eigh(scaled)
        values = np.maximum(values, len(values) * EPSILON * values[-1])
        inverse, logs = (vectors / np.sqrt(values)).T, np.log(values) / 2
    else:
        inverse, logs = np.linalg.inv(L), np.log(np.diag(L))
    return float(2 * (logs + np.log(unit)).sum()), inverse.T @ inverse / np.outer(unit, unit)


def _dots(a: Matrix, b: Matrix) -> Vector:
    return np.asarray(np.einsum("gi,gi->g", a, b))


def forms(rows: Matrix, matrix: Matrix) -> Vector:
    """x' M x for every row x."""
    return _dots(rows @ matrix, rows)
