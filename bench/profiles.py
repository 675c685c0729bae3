"""Where the time goes in the five main jobs: a release, a plan, a mixed model, a posterior audit, an exception report.

Self time by function, as shares of the whole, of a second run: the first also compiles and loads modules. pyinstrument
looks at the stack a thousand times a second, so short functions are not slowed down by being watched. The engine's
work shows as the call that fetches its result.
"""

from __future__ import annotations

from typing import Any

from bench import data, exceptions, peers, plan
from bench.comparison import Comparison

SHOWN = 8

PROFILED = """
from collections import Counter
from pathlib import Path
from pyinstrument import Profiler
def home(frame):
    path = Path(frame.file_path or frame.function)
    inside = "/".join(path.parts[path.parts.index("discreet") + 1:]) if "discreet" in path.parts else path.name
    return f"{inside}: {frame.function}"
def own(frame, shares):
    "Seconds spent in each function itself: those that no child has."
    children = [child for child in frame.children if child.function != "[self]"]
    shares[home(frame)] += frame.time - sum(child.time for child in children)
    for child in children:
        own(child, shares)
def profiled(run):
    run()
    profiler = Profiler(interval=0.001, async_mode="disabled")
    with profiler:
        run()
    root, shares = profiler.last_session.root_frame(), Counter()
    own(root, shares)
    found = [{"function": name, "share": seconds / root.time} for name, seconds in shares.most_common(SHOWN)]
    report(seconds=root.time, profile=found)
""".replace("SHOWN", str(SHOWN))

RELEASE = (
    PROFILED
    + """
import discreet as dc
from discreet.data.schema import LODES
jobs = dc.read_jobs(sys.argv[1], schema=LODES, validate=False)
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=100)
query = session.count(by=["place", "sector", "ownership", "sex", "education"])
profiled(lambda: query.release(epsilon=4))
"""
)

MIXED = (
    PROFILED
    + """
from discreet.models.linear import mixed
profiled(lambda: mixed("jcr ~ 0 + industry + quarter + (1 | county)", sys.argv[1]))
"""
)

AUDIT = (
    PROFILED
    + """
import discreet as dc
from discreet.models.bayes.blmm import bayes_mixed
model = bayes_mixed("jcr ~ 0 + industry + quarter + (1 | county)", sys.argv[1])
profiled(lambda: dc.audit_posterior(model, rows="all"))
"""
)

PLAN = (
    PROFILED
    + """
from tempfile import TemporaryDirectory
from discreet.plan.run import run
def carried_out():
    with TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(sys.argv[1], encoding="utf-8")
        run(plan)
profiled(carried_out)
"""
)

REPORT = (
    PROFILED
    + """
import discreet as dc
profiled(lambda: dc.exception_report(sys.argv[1], capacity=200))
"""
)


def compare(*, quick: bool) -> Comparison:
    """Five profiles."""
    jobs = data.jobs(1e6 if quick else 10.9e6)
    rows, audited = data.rows(0.042 if quick else 1), data.rows(0.042 if quick else 0.42)

    def profile(script: str, source: object) -> dict[str, Any]:
        return peers.ours(script, source, PYTHONPATH=str(peers.PYINSTRUMENT.packages_folder))

    return Comparison(
        facts={
            "release of workload 3": profile(RELEASE, jobs),
            "plan of two tables": profile(PLAN, plan.PLAN.format(folder=str(jobs))),
            "mixed model from Parquet": profile(MIXED, rows),
            "posterior audit, every row": profile(AUDIT, audited),
            "exception report": profile(REPORT, exceptions.panel_of(200 if quick else 25_000)),
        }
    )
