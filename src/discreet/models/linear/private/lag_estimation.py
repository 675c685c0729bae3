"""Coefficients of lags from noisy sums, corrected for the noise in them and with the noise in their errors.

For phi known, y - W phi is a response without lags, whose noisy sums `noisy` solves: B t(phi) are its effects and fixed
effects, t(phi) = t_0 - sum_l phi_l t_l its sums. Lags solve what likelihood without noise would ask of them,

    w_l'(y - W phi) - t_l' B t(phi) = 0,

where noise shared by t_l and t(phi) has an expectation that is known and is taken out, as is what effects leave in the
residuals where noise makes B shrink them more than without it. Without noise it is the likelihood's own equation. Only
arrays here; docs/proofs/mixed-lags.md has the algebra.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.estimation import at_best_variances, credibility, estimate
from discreet.models.linear.private.noisy import (
    Level,
    NoisyEstimate,
    NoisySums,
    Responses,
    evaluate,
    responses,
    visibility,
)

ROUNDS = 40  # of the alternation between lags and variances
TOLERANCE = 1e-6  # change of a coefficient where it ends
LEAST_GAIN = 0.05  # of 1 - sum phi: beyond, series would grow without end
LARGEST = 2.0  # coefficients of a lag are within this
LONGEST = 0.5  # step of a coefficient
NEAR = 0.01  # coefficients between which derivatives are taken
FLOOR = 2.0  # standard deviations of its noise from which a sum of squares of lags counts


@dataclass(frozen=True, slots=True)
class LagSums:
    """Public design and noisy sums of a response and its lags, measured from a public origin. Place 0 is the response.

    Attributes
    ----------
    n, Sx, XX, levels : as in `NoisySums`.
    s, Xy : noisy sums in each place by finest group (places, G) and by fixed column (places, p).
    gram : noisy products of places (places, places).
    ds, dx : variances of one draw of noise in `s` and in each column of `Xy` (p,).
    shared_s, shared_x : draws that two places share, (places, places, G) and (places, places, p).
    products, pairs : variances of the draws in `gram` (draws,), and where each is (draws, places, places).
    """

    n: Vector
    Sx: Matrix
    XX: Matrix
    levels: tuple[Level, ...]
    s: Matrix
    Xy: Matrix
    gram: Matrix
    ds: float
    dx: Vector
    shared_s: Matrix
    shared_x: Matrix
    products: Vector
    pairs: Matrix
    rows: float
    kurtosis: float

    def at(self, phi: Vector) -> NoisySums:
        """The sums of the response less its lags."""
        a = np.append(1.0, -phi)
        return NoisySums(
            n=self.n,
            Sx=self.Sx,
            XX=self.XX,
            levels=self.levels,
            s=a @ self.s,
            Xy=a @ self.Xy,
            ds=self.ds * _form(self.shared_s, a, a),
            dx=self.dx * _form(self.shared_x, a, a),
            squares=float(a @ self.gram @ a),
            squares_noise=float(np.sqrt(self.products @ np.einsum("cpq,p,q->c", self.pairs, a, a) ** 2)),
            rows=self.rows,
            kurtosis=self.kurtosis,
        )


@dataclass(frozen=True, slots=True)
class LagEstimate:
    """The model with its lags.

    Attributes
    ----------
    at : the model of the response less its lags; its fixed effects and effects include what lags leave open.
    sums : what it was made from.
    phi : coefficients of the lags. `covariance` : of fixed effects and lags, (p + lags, p + lags).
    seen : what lags vary by beyond the rest of the model, in standard deviations of the noise there; the least.
    sampled : the share of the square of each lag's standard error that supposes residuals of one variance (lags,).
    pull : how many of its standard errors a lag moves by for a unit of the variance of effects; the most.
    """

    at: NoisyEstimate
    sums: NoisySums = field(repr=False)
    phi: Vector
    covariance: Matrix
    seen: float
    pull: float
    sampled: Vector


@dataclass(frozen=True, slots=True)
class _Equation:
    """H phi = q at the variances that go with phi, and what its errors follow from.

    `beta` and `effects` are what the model finds in the sums of each place; `doubt` is the noise in the diagonal of H.
    """

    phi: Vector
    drawn: NoisySums
    best: NoisyEstimate
    H: Matrix
    q: Vector
    response: Responses
    beta: Matrix
    effects: Matrix
    doubt: Vector

    @property
    def raised(self) -> Matrix:
        """H with what lags vary by raised to where noise ends: coefficients go to zero there and never explode."""
        values, vectors = np.linalg.eigh(self._scaled)
        lift = (vectors * np.maximum(FLOOR - values, 0.0)) @ vectors.T
        return np.asarray(self.H + lift * self._unit)

    @property
    def off(self) -> Vector:
        return np.asarray(self.q - self.raised @ self.phi)

    @property
    def seen(self) -> float:
        """The least that lags vary by, in standard deviations of the noise there."""
        return float(np.linalg.eigvalsh(self._scaled)[0])

    @property
    def _scaled(self) -> Matrix:
        return np.asarray((self.H + self.H.T) / (2 * self._unit))

    @property
    def _unit(self) -> Matrix:
        return np.sqrt(np.outer(self.doubt, self.doubt))


def estimate_lags(sums: LagSums, *, largest: float) -> LagEstimate:
    """Alternate lags and variances until they agree. `largest` bounds every standard deviation, as in `estimate`."""
    phi = np.zeros(len(sums.gram) - 1)
    at = _equation(sums, phi, largest)
    slope, left = -at.raised, at.off
    for _ in range(ROUNDS):  # Broyden's: variances, and with them the equation, follow the lags
        step = np.clip(-np.linalg.solve(slope, left), -LONGEST, LONGEST)
        new = np.clip(phi + step, -LARGEST, LARGEST)
        step, phi = new - phi, new
        at = _equation(sums, phi, largest)
        if np.abs(step).max() < TOLERANCE:
            break
        change, left = at.off - left, at.off
        turned = slope + np.outer(change - slope @ step, step) / (step @ step)
        slope = turned if np.linalg.cond(turned) < 1e12 else -at.raised
    return _with_errors(sums, at, estimate(at.drawn, largest=largest), _slope(sums, phi, largest))


def _slope(sums: LagSums, phi: Vector, largest: float) -> Matrix:
    """The derivative of the equations in the lags, variances and all."""
    ends = [[_equation(sums, phi + sign * NEAR * row, largest).off for sign in (1, -1)] for row in np.eye(len(phi))]
    return np.asarray(np.column_stack([(high - low) / (2 * NEAR) for high, low in ends]))


def _equation(sums: LagSums, phi: Vector, largest: float) -> _Equation:
    drawn = sums.at(phi)
    best = at_best_variances(drawn, largest=largest)
    whole, beta, effects, response = unexplained(sums, drawn, sigma2=best.sigma2, variances=best.variances)
    left = float(np.sum(drawn.ds * response.alone)) / _gain(phi)
    found = _Equation(phi, drawn, best, whole[1:, 1:], whole[1:, 0] - left, response, beta, effects, np.empty(0))
    return replace(found, doubt=_doubt(sums, found))


def unexplained(
    sums: LagSums, drawn: NoisySums, *, sigma2: float, variances: Vector
) -> tuple[Matrix, Matrix, Matrix, Responses]:
    """w_p'w_q - t_p'B t_q of all places, noise taken out of it; what the model finds in each place; how B responds."""
    of = [_predicted(drawn, s, Xy, sigma2, variances) for s, Xy in zip(sums.s, sums.Xy, strict=True)]
    beta, effects = np.array([b for b, _ in of]), np.array([u for _, u in of])
    response = responses(drawn, sigma2=sigma2, variances=variances)
    explained = sums.s @ effects.T + sums.Xy @ beta.T
    noise = sums.ds * sums.shared_s @ response.effects + sums.shared_x @ (sums.dx * response.columns)
    return sums.gram - explained + noise, beta, effects, response


def _predicted(sums: NoisySums, s: Vector, Xy: Vector, sigma2: float, variances: Vector) -> tuple[Vector, Vector]:
    """Fixed effects, and the effect of each finest group, that the model finds in other sums."""
    found = evaluate(replace(sums, s=s, Xy=Xy), sigma2=sigma2, variances=variances)
    return found.beta, _by_group(sums, found.effects)


def _by_group(sums: NoisySums, effects: tuple[Vector, ...]) -> Vector:
    return sum((u[level.index] for u, level in zip(effects, sums.levels, strict=True)), np.zeros(len(sums.n)))


def _doubt(sums: LagSums, at: _Equation) -> Vector:
    """Standard deviations of the noise in the diagonal of H."""
    own = np.diagonal(sums.shared_s, axis1=0, axis2=1).T[1:] * sums.ds
    squares = (2 + sums.kurtosis) * (own**2) @ at.response.effects**2
    for p in range(len(squares)):
        squares[p] += sums.products @ sums.pairs[:, p + 1, p + 1]
        squares[p] += 4 * own[p] @ at.effects[p + 1] ** 2
        squares[p] += 4 * (sums.dx * sums.shared_x[p + 1, p + 1]) @ at.beta[p + 1] ** 2
    return np.asarray(np.sqrt(squares))


def _with_errors(sums: LagSums, equation: _Equation, at: NoisyEstimate, slope: Matrix) -> LagEstimate:
    """The covariance of lags and fixed effects; that of fixed effects at known lags is in `at`."""
    phi, drawn, best, H = equation.phi, equation.drawn, equation.best, equation.raised
    J = -np.linalg.inv(slope)
    M, cross = _variation(sums, drawn, best, equation, np.append(1.0, -phi))
    sampling = best.sigma2 * (H + H.T) / 2
    M = M + sampling + _doubt_of_variances(sums, equation)
    lags = J @ _positive(M) @ J.T
    moved = equation.beta[1:].T
    across = (cross.T @ J.T) - moved @ lags
    fixed = at.covariance - moved @ J @ cross - cross.T @ J.T @ moved.T + moved @ lags @ moved.T
    variances = tuple(
        v + np.einsum("lg,lk,kg->g", u, lags, u)
        for v, u in zip(at.effect_variances, _level_effects(sums, drawn, best), strict=True)
    )
    covariance = _positive(np.block([[fixed, across], [across.T, lags]]))
    return LagEstimate(
        at=replace(at, covariance=covariance[: len(fixed), : len(fixed)], effect_variances=variances),
        sums=drawn,
        phi=phi,
        covariance=covariance,
        seen=equation.seen,
        sampled=np.diag(J @ sampling @ J.T) / np.maximum(np.diag(lags), 1e-300),
        pull=float(np.max(np.abs(J.sum(axis=1)) / np.sqrt(np.maximum(np.diag(lags), 1e-300)))) * _pull(equation),
    )


def _level_effects(sums: LagSums, drawn: NoisySums, best: NoisyEstimate) -> list[Matrix]:
    """Per level, the effects in each lag, (lags, groups): what a unit of its coefficient takes from an effect."""
    found = [
        evaluate(replace(drawn, s=s, Xy=Xy), sigma2=best.sigma2, variances=best.variances).effects
        for s, Xy in zip(sums.s[1:], sums.Xy[1:], strict=True)
    ]
    return [np.array(each) for each in zip(*found, strict=True)]


def _variation(sums: LagSums, drawn: NoisySums, best: NoisyEstimate, at: _Equation, a: Vector) -> tuple[Matrix, Matrix]:
    """The covariance of the equations beyond sigma2 H, (lags, lags), and theirs with the fixed effects, (lags, p).

    An equation at the truth is w'xi + t_l'(c - c^) - e_l'c^ + noise of products; c are effects and fixed effects, c^
    their estimates with error covariance S, e_l the noise in t_l.
    """
    sigma2, s, x = best.sigma2, sums.s[1:], sums.Xy[1:]
    K = [sum((v * lv.sum(row[:, None])[:, 0])[lv.index] for v, lv in zip(best.variances, drawn.levels, strict=True))
         for row in s] if len(drawn.levels) else [np.zeros(0) for _ in s]  # fmt: skip
    Ks = np.array(K)
    inside = [_predicted(drawn, drawn.n * k, drawn.Sx.T @ k, sigma2, best.variances) for k in Ks]
    beta_h, u_h = np.array([b for b, _ in inside]), np.array([u for _, u in inside])
    C = best.covariance
    Sx_part = x @ C - beta_h
    whole = x @ C @ x.T - x @ beta_h.T - beta_h @ x.T + s @ Ks.T - s @ u_h.T
    extra = whole - sigma2 * (s @ at.effects[1:].T + x @ at.beta[1:].T)
    # The sums in these forms carry noise of their own.
    shared_s, shared_x = sums.ds * sums.shared_s, sums.dx * sums.shared_x
    spread = _by_group(drawn, best.effect_variances)
    extra = extra - shared_s[1:, 1:] @ (spread - sigma2 * at.response.effects)
    extra = extra - shared_x[1:, 1:] @ (np.diag(C) - sigma2 * at.response.columns)
    effects, beta = a @ at.effects, a @ at.beta
    noise = shared_s[1:, 1:] @ effects**2 + shared_x[1:, 1:] @ beta**2
    with_s, with_x = np.einsum("lqg,q->lg", shared_s[1:], a), np.einsum("lqj,q->lj", shared_x[1:], a)
    both = (with_s * effects) @ at.effects[1:].T + (with_x * beta) @ at.beta[1:].T
    twice = (with_s * at.response.effects) @ (with_s * at.response.effects).T * (1 + sums.kurtosis)
    products = np.einsum("cpq,q->cp", sums.pairs, a)[:, 1:]
    drawn_products = (products * sums.products[:, None]).T @ products
    M = _positive(extra) + noise + both + both.T + twice + drawn_products
    cross = sigma2 * at.beta[1:] - Sx_part - with_x * beta * at.response.columns
    return M, cross


def _doubt_of_variances(sums: LagSums, at: _Equation) -> Matrix:
    """What doubt about variances of effects adds: they decide what effects leave in the residuals."""
    R, drawn, best = len(at.phi), at.drawn, at.best
    if not len(best.variances):
        return np.zeros((R, R))
    believed = credibility(drawn, best.sigma2, float(best.variances.sum()))
    seen = visibility(drawn, sigma2=best.sigma2, variances=best.variances)
    known = sum(2 / (believed * float(each @ each)) for each in seen)
    return np.full((R, R), _pull(at) ** 2 * known)


def _pull(at: _Equation) -> float:
    """What a unit of the variance of effects moves an equation by: the derivative of what they leave in residuals."""
    n, best = at.drawn.n, at.best
    V = best.sigma2 * n + float(best.variances.sum()) * n**2 + at.drawn.ds
    return float(np.sum(at.drawn.ds * n / V * np.maximum(1 - n * at.response.alone, 0.0))) / _gain(at.phi)


def _gain(phi: Vector) -> float:
    """What a lasting effect of one adds to a series is the inverse of this."""
    return max(1 - float(phi.sum()), LEAST_GAIN)


def expected_lag_errors(nothing: LagSums, *, sigma2: float, variances: Vector) -> tuple[Vector, Vector]:
    """Expected standard errors of lags, and the part that is noise, if lags vary as residuals do beside the rest.

    From the design and the noise; sums of the response may be anything.
    """
    lags = len(nothing.gram) - 1
    drawn, information = nothing.at(np.zeros(lags)), nothing.rows * sigma2
    response = responses(drawn, sigma2=sigma2, variances=variances)
    own = np.diagonal(nothing.shared_s, axis1=0, axis2=1).T * nothing.ds
    noise = nothing.products @ nothing.pairs[:, 0, 1:]
    noise = noise + own[1:] @ (own[0] * response.effects**2 + float(variances.sum()))
    squares = noise + sigma2 * information
    return np.sqrt(squares) / information, np.sqrt(noise) / information


def _form(shared: Matrix, a: Vector, b: Vector) -> Vector:
    return np.asarray(np.einsum("p,pqg,q->g", a, shared, b))


def _positive(matrix: Matrix) -> Matrix:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
