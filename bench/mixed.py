"""Mixed models beside lme4 and statsmodels: the 2,428,452-row model, 8,945 blocks, every leave-one-county-out refit.

Run `python -m bench.mixed [results.json] [--share 0.1]`. All programs get the same simulated rows and one thread for
linear algebra. Seconds are processor time, so that a busy machine slows all of them alike; the ratios count. Ours are
the best of three runs, the others' run once. Cold runs are single: a fresh process that has loaded its packages, as R
has loaded lme4, and then opens the file, starts its engine and fits; and whole processes from their start to their end,
reading included, for both. lme4's block loop is timed on a sample of the blocks and scaled up;
statsmodels, whose cost is prohibitive at full size, on a part of the rows that the others fit too. Needs R with lme4;
statsmodels is installed into a throw-away environment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"
BLOCKS = 8_945
SAMPLED_BLOCKS = 150
RUNS = 3
PART = 50  # statsmodels fits every fiftieth row
INSTEVAL = Path(__file__).parents[2] / "shared" / "data" / "lmm" / "lme4_InstEval.csv.gz"
CROSSED = "y ~ service + (1 | s) + (1 | d)"

LME4 = r"""
suppressMessages(library(lme4))
a <- commandArgs(trailingOnly = TRUE); folder <- a[1]
n <- as.integer(a[2]); size <- as.integer(a[3]); sampled <- as.integer(a[4]); part <- as.integer(a[5])
column <- function(name, what) readBin(file.path(folder, name), what, n)
d <- data.frame(jcr = column("jcr", "double"), industry = factor(column("industry", "integer")),
                quarter = column("quarter", "double"), county = factor(column("county", "integer")))
order <- readBin(file.path(folder, "order"), "integer", size * sampled)
reading <- sum(proc.time()[1:2])
spent <- function(expression) { t <- system.time(expression); unname(t[1] + t[2]) }
line <- function(name, value) cat(sprintf("%s %.17g\n", name, value))
formula <- jcr ~ 0 + industry + quarter + (1 | county)
some <- d[seq(1, n, part), ]
line("part", spent(suppressMessages(lmer(formula, some))))
parts <- lapply(seq_len(sampled), function(b) d[order[(b - 1) * size + seq_len(size)], ])
line("blocks", spent(for (rows in parts)
  tryCatch(suppressWarnings(suppressMessages(lmer(formula, rows))), error = function(e) NULL)))
if (nzchar(a[6])) {
  i <- read.csv(gzfile(a[6])); i$s <- factor(i$s); i$d <- factor(i$d)
  line("crossed", spent(m <- lmer(y ~ service + (1 | s) + (1 | d), i))); line("crossed_criterion", REMLcrit(m))
}
before <- sum(proc.time()[1:2])
line("whole", spent(m <- suppressMessages(lmer(formula, d))))
line("process", reading + sum(proc.time()[1:2]) - before)
line("criterion", REMLcrit(m)); line("residual", sigma(m)^2); line("county", as.data.frame(VarCorr(m))$vcov[1])
"""

STATSMODELS = """
import sys, time
import numpy as np, statsmodels.api as sm
folder, n, part = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
read = lambda name, kind: np.fromfile(f"{folder}/{name}", dtype=kind)[::part]
y, industry, quarter, county = read("jcr", "f8"), read("industry", "i4"), read("quarter", "f8"), read("county", "i4")
X = np.column_stack([industry[:, None] == np.unique(industry), quarter]).astype(float)
start = time.process_time()
fit = sm.MixedLM(y, X, groups=county).fit(reml=True)
print("part", time.process_time() - start)
print("part_criterion", -2 * fit.llf)
"""


def main(path: Path | None = None, share: float = 1.0) -> None:
    """Measure, print the table, and write it to `path` as JSON."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # read when NumPy loads, so a fresh process it is
        again = [sys.executable, "-m", "bench.mixed", *([str(path)] if path else []), "--share", str(share)]
        subprocess.run(again, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, cwd=Path(__file__).parents[1], check=True)
        return
    import numpy as np
    import pyarrow.parquet as pq
    from rich.console import Console
    from rich.table import Table

    from discreet.mixed import fit_blocks, leave_groups_out, mixed
    from discreet.simulate import qwi

    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with console.status("Simulating"):
            qwi.write(folder, seed=0, share=share)
            parquet = folder / "qwi.parquet"
            data = pq.read_table(parquet, columns=["jcr", "industry", "quarter", "county"])
            n = data.num_rows
            blocks = max(1, int(BLOCKS * share))
            size = n // blocks
            order = np.random.default_rng(1).permutation(n)
            for column in ("industry", "county"):
                codes = data[column].combine_chunks().dictionary_encode().indices
                codes.to_numpy(zero_copy_only=False).astype("i4").tofile(folder / column)
            for column in ("jcr", "quarter"):
                data[column].to_numpy().astype("f8").tofile(folder / column)
            (order[: size * SAMPLED_BLOCKS] + 1).astype("i4").tofile(folder / "order")
        mixed(FORMULA, data.slice(0, 10_000))  # imports are not part of a fit
        with console.status("Ours"):
            in_memory, fit = spent(lambda: mixed(FORMULA, data))
            from_file, _ = spent(lambda: mixed(FORMULA, parquet))
            left_out, refits = spent(lambda: leave_groups_out(fit))
            in_blocks, many = spent(lambda: fit_blocks(FORMULA, data, blocks=blocks, rng=1))
            part, fit_part = spent(lambda: mixed(FORMULA, data.take(np.arange(0, n, PART))))
            cold, process = cold_run(parquet)
            crossed, fit_crossed = spent(lambda: mixed(CROSSED, INSTEVAL)) if INSTEVAL.exists() else (None, None)
            growth = {
                f"{k}/4 of the rows": spent(lambda k=k: mixed(FORMULA, data.slice(0, n * k // 4)))[0] for k in (1, 2, 4)
            }
            after = spent(lambda: resolve(fit))[0]
        with console.status("lme4, minutes at full size"):
            lme4 = run_lme4(folder, n, size)
        with console.status("statsmodels"):
            statsmodels = run_statsmodels(folder, n)
        with console.status("Memory"):
            memory = peak_memory(parquet)

    rows: list[tuple[str, float | None, float | None, float | None]] = [
        (f"{n:,} rows, in memory", in_memory, lme4.get("whole"), None),
        (f"{n:,} rows, from Parquet", from_file, lme4.get("whole"), None),
        (f"{n:,} rows, from Parquet, one cold fit", cold, lme4.get("whole"), None),
        (f"{n:,} rows, whole process", process, lme4.get("process"), None),
        (f"{blocks:,} blocks of {size} rows", in_blocks, scaled(lme4, blocks), None),
        (f"{len(refits.criterion):,} refits without a county, against one fit", left_out, lme4.get("whole"), None),
        (f"{fit_part.rows:,} rows", part, lme4.get("part"), statsmodels.get("part")),
        ("InstEval, students crossed with lecturers", crossed, lme4.get("crossed"), None),
    ]
    table = Table("job", "discreet s", "lme4 s", "statsmodels s", "x lme4", "x statsmodels")
    for job, ours, theirs, other in rows:
        if ours is not None:
            table.add_row(job, *(shown(v) for v in (ours, theirs, other)), times(theirs, ours), times(other, ours))
    Console().print(table)
    Console().print("\n".join(verdicts([(ours, theirs) for _, ours, theirs, _ in rows], memory)))
    facts: dict[str, Any] = {
        "peak_memory_mib_from_parquet": memory,
        "seconds_by_rows": growth,
        "seconds_after_the_pass": after,
        "blocks": many.counts(),
        "criterion": {"discreet": fit.criterion, "lme4": lme4.get("criterion")},
        "variances": {"discreet": fit.variances, "lme4": {k: lme4.get(k) for k in ("county", "residual")}},
        "part_criterion": {"discreet": fit_part.criterion, "statsmodels": statsmodels.get("part_criterion")},
        "crossed_criterion": {"discreet": fit_crossed and fit_crossed.criterion, "lme4": lme4.get("crossed_criterion")},
        "county_variance_0.1_and_99.9_percent": np.quantile(refits.variances[:, 0], [0.001, 0.999]).tolist(),
    }
    Console().print_json(json.dumps(facts))
    if path is not None:
        jobs = [dict(zip(("job", "discreet", "lme4", "statsmodels"), row, strict=True)) for row in rows]
        path.write_text(json.dumps({"jobs": jobs, **facts}, indent=2) + "\n")


def spent(job: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a job, all threads together, the best of several runs; and its result."""
    best, result = float("inf"), None
    for _ in range(RUNS):
        start = time.process_time()
        result = job()
        best = min(best, time.process_time() - start)
    return best, result


def resolve(fit: Any) -> Any:
    """What a fit costs once the pass over the rows is done."""
    from discreet.mixed.solution import solve

    return solve(fit.statistics, reml=True)


def run_lme4(folder: Path, n: int, size: int) -> dict[str, float]:
    if not shutil.which("Rscript"):
        return {}
    script = folder / "bench.R"
    script.write_text(LME4)
    crossed = str(INSTEVAL) if INSTEVAL.exists() else ""
    command = ["Rscript", script, folder, n, size, SAMPLED_BLOCKS, PART, crossed]
    return figures(subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False))


def run_statsmodels(folder: Path, n: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        venv.create(home, with_pip=True)
        python = next(Path(home).glob("[bS]*/python*"))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "statsmodels"]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            return {}
        command = [str(python), "-W", "ignore", "-c", STATSMODELS, str(folder), str(n), str(PART)]
        return figures(subprocess.run(command, capture_output=True, text=True, check=False))


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    return {name: float(value) for name, _, value in (line.partition(" ") for line in done.stdout.splitlines())}


def cold_run(parquet: Path) -> tuple[float, float]:
    """Processor seconds of one fit in a fresh process with its packages loaded, and of that process as a whole."""
    code = f"""
import time
import duckdb, narwhals.stable.v2, numpy, pyarrow.compute
from discreet.mixed import estimate
loaded = time.process_time()
fit = estimate.mixed({FORMULA!r}, {str(parquet)!r})
print(time.process_time() - loaded, time.process_time())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    cold, process = done.stdout.split()
    return float(cold), float(process)


def peak_memory(parquet: Path) -> int:
    """Peak resident MiB of a fresh process that fits the file."""
    code = f"""
from discreet.mixed import mixed
mixed({FORMULA!r}, {str(parquet)!r})
print(open("/proc/self/status").read())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    peak = next((line for line in done.stdout.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return int(peak.split()[1]) // 1024


ASKED = {0: 100, 1: 100, 2: 100, 4: 50, 5: 1, 7: 1}
"""By line of the table: how many times faster than lme4 it is to be."""


def verdicts(rows: list[tuple[float | None, float | None]], memory: int) -> list[str]:
    """Whether this run reached each figure that is asked of it."""
    said = []
    for line, factor in ASKED.items():
        ours, theirs = rows[line]
        held = "not run" if ours is None or theirs is None else "reached" if theirs >= factor * ours else "MISSED"
        said.append(f"line {line + 1}: at least {factor} times lme4: {held}")
    return [*said, f"memory under 1 GiB: {'reached' if memory < 1024 else 'MISSED'} ({memory} MiB)"]


def scaled(lme4: dict[str, float], blocks: int) -> float | None:
    return lme4["blocks"] / SAMPLED_BLOCKS * blocks if "blocks" in lme4 else None


def shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g}"


def times(theirs: float | None, ours: float) -> str:
    return "" if theirs is None else f"{theirs / ours:.0f}" if theirs > 10 * ours else f"{theirs / ours:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, help="where to write results.json")
    parser.add_argument("--share", type=float, default=1.0, help="size relative to 2,428,452 rows")
    arguments = parser.parse_args()
    main(arguments.path, arguments.share)
