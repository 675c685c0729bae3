"""What a run had spent when it was interrupted, in words that go with the interruption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.data.failures import interrupted
from discreet.plan.budgets import State, standings
from discreet.plan.file import PlanFile

NOTHING = "Nothing was spent. The same command begins again."
UNKNOWN = "What was spent is in the ledger, which cannot be read now. The same command goes on, and pays nothing twice."


@contextmanager
def told_spent(file: PlanFile, *, dry_run: bool = False) -> Iterator[None]:
    """Let an interruption say what the plan's ledger has; every engine's becomes Python's own."""
    try:
        yield
    except BaseException as error:
        if not interrupted(error):
            raise
        known = KeyboardInterrupt(*error.args)
        known.add_note("A dry run spends nothing." if dry_run else _spent(file))
        raise known from None


def _spent(file: PlanFile) -> str:
    try:
        known, broken = standings(file)
    except (Exception, KeyboardInterrupt):
        return UNKNOWN
    if broken:
        return UNKNOWN
    names = [(source.dataset, release.name) for source in file.sources for release in source.releases]
    states: Counter[State] = Counter(known[dataset].state(name) for dataset, name in names)
    released, paid = states["released"], states["paid, not released"]
    if not released and not paid:
        return NOTHING
    return (
        f"Of {len(names)} releases, {released} {'is' if released == 1 else 'are'} published and {paid} "
        f"{'is' if paid == 1 else 'are'} paid for and not published. The same command goes on, and pays nothing twice."
    )
