"""Exact integer noise: our draws beside OpenDP's.

Both are exact: every integer has its law's probability, whatever the rounding of doubles. Seconds are per draw, of one
processor, the best of five runs each. Agreement is the mean of |noise| over the scale, which must be the law's own in
closed form, on both sides: 1 for the Laplace law of integers, 0.798 for the Gaussian. OpenDP has no polynomial law and
none of rings; ours is then beside its Laplace for time only. NumPy's rounded doubles, not exact, are in the facts. The
time of `weak-unions` depends on the cells. Those of the simulated jobs, by place, sector and ownership, are what users
have; cells whose largest establishment has 20 to 50 workers take the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bench import peers
from bench.comparison import Agreement, Comparison, Row, beside

SCALE = 77.3

OURS = """
import numpy as np
from discreet.noise.laws import DiscreteLaplace, Gaussian, Polynomial, RadialPolynomial
from discreet.noise.rings import Rings
from discreet.noise.sampler import draw_integers
from discreet.noise.source import SystemSource
draws, scale = int(sys.argv[1]), float(sys.argv[2])
laws = {"Laplace": DiscreteLaplace(), "Gaussian": Gaussian(), "polynomial": Polynomial(21.98, core=0.0992),
        "polynomial, 8 counts together": RadialPolynomial(49.97, 8, core=0.4031),
        "rings, 8 counts together": Rings(8, 4.0, 0.1, True, 128, 0.0, 1.0)}
found = {}
for name, law in laws.items():
    scales = np.full(draws // law.dimension, scale)
    time_, noise = measured(lambda: draw_integers(law, scale=scales, source=SystemSource()), 5)
    means = np.abs(noise).reshape(-1, law.dimension).mean(axis=1) / scale
    closed = law.mean_abs if name == "Gaussian" else law.mean(np.array([scale]))[0] / scale
    found[name] = {"seconds": time_["cpu"] / noise.size, "mean": float(means.mean()), "law": float(closed),
                   "se": float(means.std() / len(means) ** 0.5)}
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
for name, size in (("ladder", 30), ("ladder", 1000), ("two-sizes", 30), ("two-sizes", 1000)):
    count, called = calibrate(name, unit=Establishments("0.1"), epsilon=4), f"{name}, establishments of {size}"
    sizes = np.tile([size, 0], (draws, 1)) if count.by_pairs else np.full(draws, size)
    count.noise(sizes[:10], SystemSource())
    time_, noise = measured(lambda: count.noise(sizes, SystemSource()), 5)
    width = count.scale(np.array([float(size)]))[0]
    found[called] = {"seconds": time_["cpu"] / draws, "mean": float(np.abs(noise).mean() / width),
                     "law": float(count.integer_error(np.full(1, size), sizes[:1])[0] / width),
                     "se": float(np.abs(noise).std() / width / draws ** 0.5)}
numbers, _ = measured(lambda: np.rint(np.random.default_rng().laplace(scale=scale, size=draws)), 5)
report(laws=found, numpy=numbers["cpu"] / draws)
"""

UNIONS = """
import tempfile
from pathlib import Path
import numpy as np
from discreet.data.jobs import read_jobs
from discreet.noise.source import SystemSource
from discreet.privacy.units import Establishments
from discreet.simulate import lodes
from discreet_papers.lodes import WORKER_BY, WORKPLACE_BY
from discreet.tables.calibration import calibrate
from discreet.tables.baseline.establishments import histograms
draws, found = int(sys.argv[1]), {}
weak = calibrate("weak-unions", unit=Establishments("0.1", "weak"), epsilon=4, cells=8)
sets = np.arange(256)[:, None] >> np.arange(8) & 1
def unions(firms):
    return np.stack([(firms @ some).max(axis=1) for some in sets], axis=1)
shares = [0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.05, 0.05]
rng = np.random.default_rng(1)
asked = {f"three establishments of {size:,}": unions(rng.multinomial(size, shares, (draws // 8, 3)))
         for size in (30, 60, 1_000)}
with tempfile.TemporaryDirectory() as folder:
    lodes.write(Path(folder, "lodes"), seed=1, share=0.3)
    jobs = read_jobs(Path(folder, "lodes"), validate=False)
    cells = histograms(jobs, workplace_by=WORKPLACE_BY, worker_by=WORKER_BY).cells(unions=True).unions
asked["cells of simulated jobs"] = np.resize(cells, (draws // 8, 256))
for called, sizes in asked.items():
    zeros = np.zeros((len(sizes), 8), dtype=np.int64)
    weak.draw(zeros[:10], sizes[:10], SystemSource())
    time_, noise = measured(lambda: weak.draw(zeros, sizes, SystemSource()), 5)
    most = weak.integer_error(sizes[:, 255].astype(float), sizes[:, 255].astype(float)).mean()
    found[f"weak-unions, 8 counts together, {called}"] = {
        "seconds": time_["cpu"] / noise.size, "most": float(most), "mean": float(np.abs(noise).mean())}
report(laws=found)
"""

OPENDP = """
import opendp.prelude as dp
dp.enable_features("contrib")
draws, scale = int(sys.argv[1]), float(sys.argv[2])
found = {}
for name, make, distance in (("Laplace", dp.m.make_laplace, dp.l1_distance),
                             ("Gaussian", dp.m.make_gaussian, dp.l2_distance)):
    measure = make(dp.vector_domain(dp.atom_domain(T=int)), distance(T=int), scale)
    time_, noise = measured(lambda: measure([0] * draws), 5)
    mean = sum(map(abs, noise)) / draws / scale
    found[name] = {"seconds": time_["cpu"] / draws, "mean": mean,
                   "se": (sum((abs(k) / scale - mean) ** 2 for k in noise) / draws) ** 0.5 / draws ** 0.5}
report(laws=found, version=version("opendp"))
"""


def compare(*, quick: bool) -> Comparison:
    """Processor seconds per draw, each law beside OpenDP's of the same name, or its Laplace where it has none."""
    draws = 200_000 if quick else 1_000_000
    ours, unions = peers.ours(OURS, draws, SCALE), peers.ours(UNIONS, draws)
    laws = {name: {**law, "mib": each["mib"]} for each in (ours, unions) for name, law in each["laws"].items()}
    kept: dict[str, Any] = {}

    def opendp(law: str) -> dict[str, Any]:
        if not kept:
            kept.update(peers.OPENDP.measure(OPENDP, 20_000 if quick else 50_000, SCALE))
        return {**kept, **kept["laws"].get(law, kept["laws"]["Laplace"])}

    rows: list[Row] = []
    for law, mine in laws.items():
        theirs = law if law in ("Laplace", "Gaussian") else "Laplace"
        rows.append(
            beside(
                f"exact integer noise, {law}",
                f"OpenDP, {theirs}",
                mine,
                partial(opendp, law),
                agree=partial(said, mine, same=theirs == law),
                why="Its process holds a list of numbers, ours simulated jobs and 256 numbers for a vector"
                if "most" in mine
                else "Its process holds a list of numbers, ours a million draws; drawing fewer at a time would "
                "remove the gap",
                same_work=theirs == law,
            )
        )
    return Comparison(
        tuple(rows), facts={"times NumPy's inexact Laplace": ours["laws"]["Laplace"]["seconds"] / ours["numpy"]}
    )


def said(ours: Mapping[str, Any], theirs: Mapping[str, Any], *, same: bool) -> Agreement:
    """Both means of |noise| over the scale beside the law's: within five standard errors and what rounding moves.

    Of a Gaussian as wide as this one, rounding moves less than one part in 10,000; of the other laws it is counted in.
    """

    def right(side: Mapping[str, Any]) -> bool:
        return bool(abs(side["mean"] - ours["law"]) < 5 * side["se"] + 1e-4 * ours["law"])

    if "most" in ours:  # its mean has no closed form
        words = f"mean of noise {ours['mean']:.3f}, at most {ours['most']:.3f} by the bound; it has no such law"
        return Agreement(0 < ours["mean"] <= ours["most"], words)
    words = f"mean of noise / scale {ours['mean']:.3f}, in closed form {ours['law']:.3f}"
    if same:
        return Agreement(right(ours) and right(theirs), f"{words}, its {theirs['mean']:.3f}")
    return Agreement(right(ours), f"{words}; it has no such law")
