"""Where the time goes in the three main jobs: the release of workload 3, a mixed model from Parquet, a posterior audit.

Self time by function, as shares of the whole, of a second run: the first also compiles and loads modules. The engine's
work shows as the call that fetches its result.
"""

from __future__ import annotations

from bench import data, peers
from bench.comparison import Comparison

SHOWN = 8

PROFILED = """
import cProfile, pstats
from pathlib import Path
def profiled(run):
    run()
    profile = cProfile.Profile()
    clock = time.perf_counter()
    profile.runcall(run)
    seconds = time.perf_counter() - clock
    stats = pstats.Stats(profile).stats
    whole = sum(entry[2] for entry in stats.values())
    found = []
    for (file, _, name), (_, _, own, _, _) in sorted(stats.items(), key=lambda item: -item[1][2])[:SHOWN]:
        path = Path(file)
        home = "/".join(path.parts[path.parts.index("discreet") + 1:]) if "discreet" in path.parts else path.name
        found.append({"function": f"{home}: {name}" if path.suffix == ".py" else name, "share": own / whole})
    report(seconds=seconds, profile=found)
""".replace("SHOWN", str(SHOWN))

RELEASE = (
    PROFILED
    + """
import discreet as dc
from discreet.schema import LODES
jobs = dc.read_jobs(sys.argv[1], schema=LODES, validate=False)
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=100)
query = session.count(by=["place", "sector", "ownership", "sex", "education"])
profiled(lambda: query.release(epsilon=4))
"""
)

MIXED = (
    PROFILED
    + """
from discreet.mixed import mixed
profiled(lambda: mixed("jcr ~ 0 + industry + quarter + (1 | county)", sys.argv[1]))
"""
)

AUDIT = (
    PROFILED
    + """
import discreet as dc
from discreet.bayes.blmm import bayes_mixed
model = bayes_mixed("jcr ~ 0 + industry + quarter + (1 | county)", sys.argv[1])
profiled(lambda: dc.audit_posterior(model, rows="all"))
"""
)


def compare(*, quick: bool) -> Comparison:
    """Three profiles."""
    rows, audited = data.rows(0.042 if quick else 1), data.rows(0.042 if quick else 0.42)
    return Comparison(
        facts={
            "release of workload 3": peers.ours(RELEASE, data.jobs(1e6 if quick else 10.9e6)),
            "mixed model from Parquet": peers.ours(MIXED, rows),
            "posterior audit, every row": peers.ours(AUDIT, audited),
        }
    )
