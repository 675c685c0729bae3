"""What this process may still take of memory. Columns of a model that would not fit are refused before they exist."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from discreet.words.errors import FitError

CONTROL = Path("/sys/fs/cgroup")
SMALL = 2.0**24  # bytes: for less, nobody asks what is free, which takes longer than a small fit's search


def refuse_matrices(columns: int, needed: float) -> None:
    """Refuse matrices of a model's columns that would not fit into the free memory, before they are made."""
    if (free := lacking(needed)) is not None:
        raise FitError(
            f"The model has {columns:,} columns, whose matrices need about {needed / 2**30:.1f} GiB of memory.",
            f"{free / 2**30:.1f} GiB are free.",
            "Give a factor of many levels a random effect, such as (1 | firm), join its levels, or use a spline of "
            "fewer degrees.",
            about="formula",
        )


def lacking(needed: float) -> float | None:
    """The bytes that are free, where `needed` is more than them."""
    if needed <= SMALL:
        return None
    free = free_memory()
    return free if needed > free else None


def free_memory() -> float:
    """Bytes that this process may still take: of the machine, of its control group and of its own limit."""
    return max(min(_of_machine(), _of_group(), _of_process()), 0.0)


def _of_machine() -> float:
    """Bytes that are free on this machine, or all of its memory where it does not say."""
    try:
        with Path("/proc/meminfo").open() as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if hasattr(os, "sysconf") else np.inf


def _of_group() -> float:
    """What a container leaves; infinite where there is none."""
    try:
        limit, used = ((CONTROL / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        cached = next(
            int(line.split()[1])
            for line in (CONTROL / "memory.stat").read_text().splitlines()
            if line.startswith("inactive_file")
        )
    except (OSError, StopIteration, ValueError):
        return np.inf
    return np.inf if limit == "max" else float(int(limit) - int(used) + cached)


def _of_process() -> float:
    """What a limit of the address space (`ulimit -v`) leaves; infinite where there is none."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return np.inf
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return np.inf
    return float(limit - pages * os.sysconf("SC_PAGE_SIZE"))
