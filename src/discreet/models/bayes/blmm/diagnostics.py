"""Have the chains converged? Split R-hat and effective sample size, for many parameters at once.

Gelman et al. (2013), section 11.4: every chain is cut in half; R-hat compares the halves' means with their spread;
autocorrelations are summed in pairs, positive and not increasing (Geyer 1992). Arrays are (chains, draws, parameters).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.words.errors import DataError

BLOCK = 256  # parameters together


def split(draws: Matrix) -> Matrix:
    """Every chain as two."""
    half = draws.shape[1] // 2
    if half < 2:
        raise DataError(
            f"Chains of {draws.shape[1]} draws cannot be judged.", "At least 4 are needed.", "Draw more.", about="draws"
        )
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _variances(halves: Matrix) -> tuple[Vector, Vector]:
    """Within-chain variance, and the pooled estimate that also includes the variance between chains."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return within, within * (n - 1) / n + between


def rhat(draws: Matrix) -> Vector:
    """Split R-hat of each parameter; 1 where all chains tell the same."""
    return _by_blocks(_rhat, draws)


def effective_size(draws: Matrix) -> Vector:
    """Independent draws that would estimate each posterior mean as well."""
    return _by_blocks(lambda part: _effective(split(part)), draws)


def _by_blocks(statistic: Callable[[Matrix], Vector], draws: Matrix) -> Vector:
    """A statistic of each parameter, a few at a time: chains are large."""
    parts = [statistic(draws[:, :, i : i + BLOCK]) for i in range(0, draws.shape[2], BLOCK)]
    return np.concatenate(parts) if parts else np.empty(0)


def _rhat(draws: Matrix) -> Vector:
    within, pooled = _variances(split(draws))
    found: Vector = np.sqrt(pooled / within)
    return found


def _effective(halves: Matrix) -> Vector:
    chains, n, parameters = halves.shape
    _, pooled = _variances(halves)
    length = 1 << (2 * n - 1).bit_length()
    covariance = np.zeros((n, parameters))
    for chain in halves:
        spectrum = np.fft.rfft(chain - chain.mean(axis=0), n=length, axis=0)
        covariance += np.fft.irfft((spectrum * spectrum.conj()).real, n=length, axis=0)[:n] / (n * chains)
    within = covariance[0] * n / (n - 1)
    rho = 1 - (within - covariance) / pooled
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(n // 2, 2, parameters).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(positive, pairs, np.inf), axis=0)
    tau = -1 + 2 * np.where(positive, pairs, 0.0).sum(axis=0)
    found: Vector = chains * n / np.maximum(tau, 1 / np.log10(chains * n))
    return found


def standard_error(draws: Matrix) -> Vector:
    """Monte Carlo standard error of each posterior mean."""
    return _by_blocks(lambda part: part.std(axis=(0, 1), ddof=1) / np.sqrt(_effective(split(part))), draws)
