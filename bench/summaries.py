"""Private posterior summaries beside the answers of all rows: a slope's median and interval at several epsilons.

y = 1 + 2 x + a sector's effect + error, 100,000 rows. The full-data posterior of the slope is that of the g-prior: the
least-squares estimate times n / (n + 1) with its standard error, written here from the textbook. Each figure is a mean
over releases of new data: how far the private median lies from the full one in posterior deviations, how long the
private interval is over the full one, and how often it holds the true slope, which must be nine times in ten. Beside
them is diffprivlib's private linear regression at the same epsilon, with bounds of the data told to it: both protect
one row, and only the error of the slope can be compared, for it has no interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench import peers
from bench.comparison import Accuracy, Comparison

EPSILONS = (0.5, 1, 2, 4)
LEVEL = 0.9

SIMULATED = """
import numpy as np
rows, releases, epsilons = int(sys.argv[1]), int(sys.argv[2]), [float(each) for each in sys.argv[3:]]
def simulated(seed):
    rng = np.random.default_rng(seed)
    x, sector = rng.normal(size=rows), rng.integers(0, 3, rows)
    return x, sector, 1 + 2 * x + np.array([0, 0.5, -0.5])[sector] + rng.normal(size=rows)
def full(x, sector, y):
    X = np.column_stack([np.ones(len(x)), x, sector == 1, sector == 2]).astype(float)
    XX, n = X.T @ X, len(x)
    beta = np.linalg.solve(XX, X.T @ y)
    left = y - X @ beta
    return beta[1] * n / (n + 1), (left @ left / n * np.linalg.inv(XX)[1, 1]) ** 0.5
"""

OURS = (
    SIMULATED
    + """
import discreet as dc
found, taken = {}, []
for epsilon in epsilons:
    off, length, holds = [], [], []
    for seed in range(releases):
        x, sector, y = simulated(seed)
        table = {"y": y, "x": x, "sector": np.array(["a", "b", "c"])[sector]}
        time_, released = measured(lambda: dc.posterior_interval("y ~ x + sector", table, "x", level=LEVEL,
                                                                 epsilon=epsilon, public=["sector"]))
        middle, deviation = full(x, sector, y)
        value = released.value
        off.append(abs(value.location[0] - middle) / deviation)
        length.append((value.high[0] - value.low[0]) / (2 * 1.6449 * deviation))
        holds.append(bool(value.low[0] <= 2 <= value.high[0]))
        taken.append(time_["cpu"])
    found[epsilon] = {"off": float(np.mean(off)), "length": float(np.mean(length)), "holds": sum(holds) / len(holds)}
report(found=found, seconds=min(taken))
""".replace("LEVEL", str(LEVEL))
)

DIFFPRIVLIB = (
    SIMULATED
    + """
import warnings
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression
found = {}
for epsilon in epsilons:
    off = []
    for seed in range(releases):
        x, sector, y = simulated(seed)
        X = np.column_stack([x, sector == 1, sector == 2]).astype(float)
        model = LinearRegression(epsilon=epsilon, bounds_X=([-4.5, 0, 0], [4.5, 1, 1]), bounds_y=(-11, 13))
        middle, deviation = full(x, sector, y)
        off.append(abs(model.fit(X, y).coef_[0] - middle) / deviation)
    found[epsilon] = {"off": float(np.mean(off))}
report(found=found, version=version("diffprivlib"))
"""
)


def compare(*, quick: bool) -> Comparison:
    """A table of our releases, and rows beside diffprivlib."""
    rows, releases, epsilons = (20_000, 5, EPSILONS[1:]) if quick else (100_000, 40, EPSILONS)
    ours = peers.ours(OURS, rows, releases, *epsilons)
    theirs: Mapping[str, Any] = {}
    try:
        theirs = peers.DIFFPRIVLIB.measure(DIFFPRIVLIB, rows, releases, *epsilons)["found"]
        why = ""
    except peers.Missing as reason:
        why = f"not measured: {reason}"
    errors = []
    for epsilon, found in ours["found"].items():
        other = theirs.get(epsilon)
        said = f"{other['off']:.3g} posterior deviations, ours {found['off']:.3g}" if other else why
        promise = f"slope of {rows:,} rows, one row protected, epsilon {float(epsilon):g}"
        ratio = other["off"] / found["off"] if other else None
        errors.append(Accuracy(promise, "diffprivlib, LinearRegression, bounds told", ratio, "the same", said))
        print(f"   {promise}: {found}", flush=True)
    least = LEVEL - 3 * (LEVEL * (1 - LEVEL) / releases) ** 0.5
    broken = tuple(
        f"intervals at epsilon {epsilon} hold the slope in {100 * found['holds']:.0f} %"
        for epsilon, found in ours["found"].items()
        if found["holds"] < least
    )
    facts = {"rows": rows, "releases": releases, "level": LEVEL, "summaries": ours["found"], "cpu": ours["seconds"]}
    return Comparison(accuracy=tuple(errors), facts=facts, broken=broken)
