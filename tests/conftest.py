"""What every run of the tests shares."""

from __future__ import annotations

import atexit
import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # A test worker ends without taking the interpreter apart: DuckDB's binding would list on the terminal, after the
    # results, whatever a thread that is still waiting holds of it. What is registered later runs before it.
    atexit.register(os._exit, 0)
