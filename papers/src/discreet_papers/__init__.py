"""One module per document's experiment; each has `run(*, quick, data, seed, progress) -> Study`.

Only names live here. A study is imported when it is asked for, and a study whose module is absent is not listed.

alarms           false alarms of private releases, and small p-values of equally good methods
amount_kinds     sums, means, flows, rates and changes between releases on kinds of establishments
beside           the paper's values beside ours, as a table
blmm             the Bayesian mixed model and its empirical epsilon
chance_kinds     chances, operating points and areas of large changes on kinds of panels
cities           crime counts of real cities for the crime study
command          `discreet study`: run one document's experiment and write its report
coverage         every kind of interval on every kind of data: does it hold, or is it said before paying?
coverage_page    the page of the study of intervals, and its tables for the docs
coverage_rule    when an interval is short or wide and an estimate off, and when that is a fault
crime            models fitted to large changes in crime counts: chapter 2 of the Dissertation
crime_page       the crime study for people: its tables and figures in order. Every number comes from `crime`
crime_trials     PMF beside least squares under what the paper leaves open
defaults         the product's defaults on the workloads of `lodes`, beside infusion and what was tried
draw             one posterior draw as the release, beside noisy sums at equal loss
fit_kinds        models without noise, Bayesian ones and lags on kinds of data: every interval that they print
kinds            private models on kinds of data that no document tried: do intervals hold, and is it said?
limits           the least error that each definition allows, computed, and every mechanism beside it
limits_page      the page of the limits study: what is fundamental, tables and charts
lmm              private mixed models of job creation
lmm_changes      which counties changed most between two periods, and do private mixed models of both still say so?
lmm_curves       risk against utility: the correlation of a response with private fitted values, method by method
lmm_improved     the improved model on the page of the mixed-model study: its refits, and what private ones keep of it
lmm_page         the report of the mixed-model study
lmm_small        is a private mixed model ever worse than the linear one at small losses?
lmm_terms        private trends of counties, and counties crossed with industries, on the paper's axes
lodes            employment tables under employer-employee privacy, beside noise infusion
lodes_definitions  what the Tables paper's definitions promise: its Table 1, Figure 1 and Table 2
lodes_defaults   the product's own mechanisms on the paper's workloads, in published integers and by stratum
lodes_findings   the five findings of section 10.1: each statement of the paper beside the numbers that decide it here
lodes_grid       the Tables paper's grid
lodes_page       the report of the LODES study
m3               large declines in the M3 competition's monthly micro series: chapter 1 of the Dissertation
perturbation_kinds  objective perturbation on kinds of data: do its intervals hold, and what is said before?
pmf              what wins, where: losses, optimisers and columns on real cities and in the paper's regime
posterior        posterior probabilities and quantiles by parts
posterior_kinds  posterior summaries on data that the thesis did not try: skewed, heavy-tailed, uneven and curved
posterior_page   the page of the posterior study
synthetic        what synthetic jobs keep of the data, in simulation only
time_effects     what trends and autoregression within series of a county and an industry add to the fit
tables           published tables on kinds of data: coverage, widths, and what adding up changes
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from discreet.words.errors import PlanError
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.pages.study import Study

STUDIES = {
    "lodes": "discreet_papers.lodes:run",
    "defaults": "discreet_papers.defaults:run",
    "lmm": "discreet_papers.lmm:run",
    "limits": "discreet_papers.limits:run",
    "kinds": "discreet_papers.kinds:run",
    "tables": "discreet_papers.tables:run",
    "synthetic": "discreet_papers.synthetic:run",
    "coverage": "discreet_papers.coverage:run",
    "blmm": "discreet_papers.blmm:run",
    "draw": "discreet_papers.draw:run",
    "time": "discreet_papers.time_effects:run",
    "posterior": "discreet_papers.posterior:run",
    "m3": "discreet_papers.m3:run",
    "crime": "discreet_papers.crime:run",
    "pmf": "discreet_papers.pmf:run",
    "alarms": "discreet_papers.alarms:run",
}


class StudyRun(Protocol):
    """Every study's door. `quick` is a minute's version, `data` replaces the study's own data."""

    def __call__(
        self, *, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent
    ) -> Study: ...


def available() -> list[str]:
    """The names that `load` accepts."""
    return [name for name, place in STUDIES.items() if find_spec(place.partition(":")[0])]


def load(name: str) -> StudyRun:
    """The function that runs the study `name`."""
    if name not in available():
        raise PlanError(
            f"There is no study {name!r}.", remedy=f"Choose one of: {', '.join(available())}.", about="study"
        )
    module, _, function = STUDIES[name].partition(":")
    return cast("StudyRun", getattr(import_module(module), function))
