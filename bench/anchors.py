"""Solve the laws that come with the package: `python bench/anchors.py 0.1` writes those of alpha = 0.1 (minutes).

Each is solved from nothing, whatever is in the package already, and is checked before it is written.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ALPHAS = (0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)
EPSILONS = tuple(8 * 2 ** (-step / 4) for step in range(19))


def main(alphas: list[float]) -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="anchors-")
    from discreet.errors import Infeasible
    from discreet.noise import anchors, steps
    from discreet.privacy.units import Establishments
    from discreet.tables import ladder
    from discreet.tables.calibration import calibrate
    from discreet.tables.mechanisms.ladder import LadderNoise

    anchors.between = lambda kind, alpha, epsilon: None  # type: ignore[assignment]
    for alpha in alphas:
        found = {}
        for epsilon in EPSILONS:
            begun = time.process_time()
            try:
                mechanism = calibrate("ladder", unit=Establishments(alpha), epsilon=epsilon)
            except Infeasible as refused:
                print(alpha, epsilon, refused)
                continue
            assert isinstance(mechanism, LadderNoise)
            found[f"steps {mechanism.law.epsilon!r}"] = steps.anchor(mechanism.law)
            found[f"ladder {epsilon!r}"] = ladder.anchor(mechanism.window)
            print(alpha, epsilon, f"{time.process_time() - begun:.1f} s", flush=True)
        path = Path(anchors.__file__).parent / "solved" / anchors.file_name(alpha)
        path.write_bytes(anchors.packed(found))
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main([float(text) for text in sys.argv[1:]] or list(ALPHAS))
