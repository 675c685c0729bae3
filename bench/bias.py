"""What a bias would buy: `python bench/bias.py` (a minute) prints the least mean errors of one count beside the bias.

The best integer noise of one count at alpha 0.1 may have a mean of at most a share of the size's floor. `shows in` is
how many cells of that size a total has when its bias is two of its standard errors. No data are used.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.optimal.limits import best_laws
from discreet.tables.optimal.two_sizes import RatioRows, two_sizes

POINTS = ((1.0, 19, 32, 14), (2.0, 19, 32, 10), (4.0, 50, 60, 16))
"""Epsilon, size, and the sizes and noise that the programme has."""

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, math.inf)


def main() -> None:
    alpha = Fraction(1, 10)
    for epsilon, size, most, reach in POINTS:
        k = np.arange(-reach, reach + 1)
        sizes = np.array([[float(size), 0.0]])
        own = calibrate("two-sizes", unit=Establishments("0.1"), epsilon=epsilon).integer_error(sizes[:, 0], sizes)[0]
        print(f"epsilon {epsilon:g}, {size} workers, two-sizes {own:.4f}")
        laws = [best_laws(alpha, epsilon, most=most, reach=reach, bias=share)[size - 1] for share in SHARES]
        free = float(laws[-1] @ np.abs(k))
        for share, law in zip(SHARES, laws, strict=True):
            error, mean, square = (float(law @ each) for each in (np.abs(k), k, k**2))
            cells = f"{4 * (square - mean**2) / mean**2:,.0f}" if share else "no"
            print(
                f"  share {share:4g}: error {error:.4f}, mean {mean:+.4f}, two-sizes over it {own / error:.3f},", end=""
            )
            print(f" over the optimum {error / free:.3f}, shows in {cells} cells")
    for epsilon in (1.0, 2.0, 4.0):
        for unbiased in (True, False):
            coarse, fine = (two_sizes(RatioRows(0.1, epsilon, n), unbiased=unbiased).errors[-1] for n in (8, 16))
            print(f"epsilon {epsilon:g}, a lone large one, mean zero {unbiased}: {2 * fine - coarse:.4f} alpha x")


if __name__ == "__main__":
    main()
