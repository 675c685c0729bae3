"""Draws per second: our exact sampler beside OpenDP's exact integers and NumPy's inexact ones.

Run `python bench/sampler.py [results.json]`. OpenDP is installed into a throw-away environment. Rates are per second
of one processor's time, the best of several runs, so that a busy machine slows all of them alike; the ratios count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.noise.laws import Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.noise.sampler import draw_integers
from discreet.noise.source import SystemSource

SCALE = 77.3
DRAWS = 1_000_000
RUNS = 5
LAWS = [
    Laplace(),
    Polynomial(11.5),
    Polynomial(21.98, core=0.0992),
    RadialPolynomial(20.0, 8),
    RadialPolynomial(49.97, 8, core=0.4031),
    GeneralisedCauchy(),
    Gaussian(),
]
OPENDP = f"""
import json, time
import opendp.prelude as dp
dp.enable_features("contrib")
draws = 50_000
rates = {{}}
for name, make, distance in [
    ("laplace", dp.m.make_laplace, dp.l1_distance),
    ("gaussian", dp.m.make_gaussian, dp.l2_distance),
]:
    measure = make(dp.vector_domain(dp.atom_domain(T=int)), distance(T=int), {SCALE})
    best = 0.0
    for _ in range({RUNS}):
        start = time.process_time()
        measure([0] * draws)
        best = max(best, draws / (time.process_time() - start))
    rates[name] = best
print(json.dumps(rates))
"""


def main(path: Path | None = None) -> None:
    """Measure, print a table of rates and ratios, and write them to `path` as JSON."""
    console = Console(stderr=True)
    rows = []
    with console.status("Measuring our exact draws"):
        for law in LAWS:
            scale = np.full(DRAWS // law.dimension, SCALE)
            fast = rate(lambda law=law, scale=scale: draw_integers(law, scale=scale, source=SystemSource()))
            slow = rate(
                lambda law=law, scale=scale: draw_integers(law, scale=scale[:2000], source=SystemSource(), exact=True)
            )
            rows += [(f"discreet {law}", fast), (f"discreet {law}, all in Arb", slow)]
        generator = np.random.default_rng()
        rows.append(
            ("NumPy Laplace, rounded, inexact", rate(lambda: np.rint(generator.laplace(scale=SCALE, size=DRAWS))))
        )
    with console.status("Installing and measuring OpenDP"):
        opendp, note = measure_opendp()
    rows += [(f"OpenDP integer {name}", rate) for name, rate in opendp.items()]

    table = Table("sampler", "million draws/s", "x OpenDP Laplace", "x NumPy")
    numpy_rate = dict(rows)["NumPy Laplace, rounded, inexact"]
    for name, value in rows:
        ratio = f"{value / opendp['laplace']:.1f}" if opendp else note
        table.add_row(name, f"{value / 1e6:.3f}", ratio, f"{value / numpy_rate:.3f}")
    Console().print(table)
    if path is not None:
        path.write_text(json.dumps({"scale": SCALE, "draws_per_second": dict(rows), "opendp": note}, indent=2) + "\n")


def rate(draw: Callable[[], np.ndarray]) -> float:
    """Numbers drawn per second of processor time."""
    best = 0.0
    for _ in range(RUNS):
        start = time.process_time()
        size = draw().size
        best = max(best, size / (time.process_time() - start))
    return best


def measure_opendp() -> tuple[dict[str, float], str]:
    """OpenDP's rates and what was measured; no rates where it could not be installed."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(Path(folder).glob("[bS]*/python*"))
        try:
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "opendp"]
            subprocess.run(install, check=True, capture_output=True)
            run = subprocess.run([python, "-c", OPENDP], check=True, capture_output=True, text=True)
            version = "import importlib.metadata as m; print(m.version('opendp'))"
            shown = subprocess.run([python, "-c", version], check=True, capture_output=True, text=True)
        except (subprocess.CalledProcessError, OSError):
            return {}, "could not install"
        return json.loads(run.stdout), f"OpenDP {shown.stdout.strip()}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
