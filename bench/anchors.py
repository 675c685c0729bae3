"""Solve the laws that come with the package: `python bench/anchors.py 0.1` writes those of alpha = 0.1 (a minute).

Tables are solved from nothing, whatever is in the package already, and are checked before they are written. The outer
law is the package's where it has one; `python bench/anchors.py --anew 0.1` solves that one from nothing, too.
`python bench/anchors.py --rows 0.1` solves the rows of `two-sizes` that are missing beside what is there (some
minutes), and all of them with `--anew`. `python bench/anchors.py --polish 0.1` makes the tables of the package better
by a linear programme (`polish.py`; some minutes).
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from pathlib import Path

ALPHAS = (0.05, 0.1, 0.2)
EPSILONS = tuple(8 * 2 ** (-step / 4) for step in range(19))
BESIDE = 2**0.25
"""Tables of a length are solved one epsilon beyond their range, so that every epsilon lies between two of its own."""

PATIENCE = 4
"""So many times the passes that a release allows."""


def main(alphas: list[float], *, anew: bool) -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="anchors-")
    from discreet.noise import anchors, steps
    from discreet.privacy.units import Establishments
    from discreet.tables.calibration import calibrate
    from discreet.tables.mechanisms import ladder as mechanisms
    from discreet.tables.mechanisms.ladder import LadderNoise
    from discreet.tables.optimal import ladder
    from discreet.words.errors import Infeasible

    known = anchors.between
    anchors.between = lambda kind, alpha, epsilon: (  # type: ignore[assignment]
        None if anew or kind != "steps" else known(kind, alpha, epsilon)
    )
    ladder.MOST_SWEEPS *= PATIENCE
    lengths, most = mechanisms.STEPS, math.inf
    for alpha in alphas:
        found = {}
        for least, steps_of in lengths:
            mechanisms.STEPS = ((0.0, steps_of),)
            for epsilon in (each for each in EPSILONS if least / BESIDE < each < most * BESIDE):
                begun = time.process_time()
                try:
                    mechanism = calibrate("ladder", unit=Establishments(alpha), epsilon=epsilon)
                except Infeasible as refused:
                    print(alpha, epsilon, refused)
                    continue
                assert isinstance(mechanism, LadderNoise)
                found[f"steps {mechanism.law.epsilon!r}"] = steps.anchor(mechanism.law)
                found[f"{ladder.kind(mechanism.tabled)} {epsilon!r}"] = ladder.anchor(mechanism.window)
                print(alpha, epsilon, mechanism.tabled, f"{time.process_time() - begun:.1f} s", flush=True)
            most = least
        most = math.inf
        path = Path(anchors.__file__).parent / "solved" / anchors.file_name(alpha)
        kept = {k: v for k, v in anchors.unpacked(path.read_bytes()).items() if k.startswith("rows")}
        path.write_bytes(anchors.packed(found | ({} if anew else kept)))
        print(path.name, path.stat().st_size, "bytes")


def add_rows(alphas: list[float], *, anew: bool) -> None:
    """Solve the rows of `two-sizes` for the outer laws of the package, which stay as they are."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="anchors-")
    from discreet.noise import anchors, row_search, rows
    from discreet.noise.kept import Unsolved
    from discreet.privacy.losses import Pure
    from discreet.privacy.units import Establishments
    from discreet.tables.mechanisms.two_sizes import TwoSizesNoise
    from discreet.words.errors import PrivacyError

    for alpha in alphas:
        path = Path(anchors.__file__).parent / "solved" / anchors.file_name(alpha)
        found = anchors.unpacked(path.read_bytes())
        if anew:
            found = {k: v for k, v in found.items() if not k.startswith("rows")}
        for epsilon in EPSILONS:
            begun, unit = time.process_time(), Establishments(alpha)
            try:
                law = TwoSizesNoise._with(unit, Pure(epsilon), epsilon).rows[0]
                if f"rows {law.epsilon!r}" in found:
                    continue
                weights = row_search.programme(law)
                rows.check(law, weights)
            except (Unsolved, PrivacyError) as refused:
                print(alpha, epsilon, repr(refused))
                continue
            found[f"rows {law.epsilon!r}"] = row_search.anchor(law, weights)
            path.write_bytes(anchors.packed(found))
            print(alpha, epsilon, f"{time.process_time() - begun:.1f} s", path.stat().st_size, "bytes", flush=True)


def polish(alphas: list[float]) -> None:
    """Improve the tables that are in the package; a table that does not come out is left as it is."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="anchors-")
    from bench.polish import polished
    from discreet.noise import anchors
    from discreet.privacy.units import Establishments
    from discreet.tables.calibration import calibrate
    from discreet.tables.mechanisms import ladder as mechanisms
    from discreet.tables.mechanisms.ladder import LadderNoise

    def shortest(name: str) -> tuple[int, float]:
        kind, epsilon = name.split()
        return int(kind.removeprefix("ladder-")), -float(epsilon)

    for alpha in alphas:
        path = Path(anchors.__file__).parent / "solved" / anchors.file_name(alpha)
        found = anchors.unpacked(path.read_bytes())
        for name in sorted((each for each in found if each.startswith("ladder-")), key=shortest):
            begun, (kind, epsilon) = time.process_time(), name.split()
            mechanisms.STEPS = ((0.0, round(int(kind.removeprefix("ladder-")) * alpha)),)
            mechanism = calibrate("ladder", unit=Establishments(alpha), epsilon=float(epsilon))
            assert isinstance(mechanism, LadderNoise)
            levels = polished(mechanism)
            if levels is not None:
                found[name] = levels
                path.write_bytes(anchors.packed(found))
            said = "left as it is" if levels is None else f"{path.stat().st_size} bytes"
            print(alpha, name, f"{time.process_time() - begun:.1f} s", said, flush=True)


if __name__ == "__main__":
    given = [float(text) for text in sys.argv[1:] if not text.startswith("--")] or list(ALPHAS)
    if "--polish" in sys.argv:
        polish(given)
    elif "--rows" in sys.argv:
        add_rows(given, anew="--anew" in sys.argv)
    else:
        main(given, anew="--anew" in sys.argv)
