"""`make bench`: every comparison in turn, each to its own JSON file in bench/results/.

python -m bench              all of them
python -m bench sampler      one
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the named comparisons, or all; a comparison that fails is reported and does not stop the others."""
    known = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"bench: {unknown[0]!r} is not a comparison; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    failed = []
    for name in names or known:
        print(f"== {name}", flush=True)
        try:
            import_module(f"bench.{name}").main(results / f"{name}.json")
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
