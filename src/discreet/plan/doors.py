"""Plans from Python, by the name of their file."""

from __future__ import annotations

from pathlib import Path

from discreet.plan.check import PlanCheck, check
from discreet.plan.file import PlanFile
from discreet.plan.reading import read_plan
from discreet.plan.run import RunResult, run
from discreet.words.arguments import of_kinds
from discreet.words.progress import Progress, silent


@of_kinds
def check_plan(plan: PlanFile | str | Path) -> PlanCheck:
    """Price a plan and look for everything that is wrong with it; read nothing confidential and spend nothing.

    Parameters
    ----------
    plan : the plan's file, or what `read_plan` made of it.

    Returns
    -------
    The price of each release, its expected error, and what is wrong.

    Examples
    --------
    >>> check_plan("plan.toml").faults                                              # doctest: +SKIP
    ()
    """
    return check(plan if isinstance(plan, PlanFile) else read_plan(plan)).without_data


@of_kinds
def run_plan(
    plan: PlanFile | str | Path,
    *,
    dry_run: bool = False,
    changed_data: bool = False,
    progress: Progress = silent,
) -> RunResult:
    """Release everything in a plan that is not released yet.

    Runs of one plan on one machine take turns: a second one finds everything released and ends like the first.

    Parameters
    ----------
    plan : the plan's file, or what `read_plan` made of it.
    dry_run : stop before anything is written or spent.
    changed_data : resume an interrupted run although its data have changed since.
    progress : called with what is being done and the share of the steps that are done.

    Returns
    -------
    What was released, where, and what the budget has left.

    Examples
    --------
    >>> print(run_plan("plan.toml", dry_run=True).remaining)                        # doctest: +SKIP
    epsilon=4
    """
    return run(plan, dry_run=dry_run, changed_data=changed_data, progress=progress)
