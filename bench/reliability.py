"""The page about accidents, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.comparison import Comparison


def page(found: Mapping[str, Comparison]) -> str:
    """One part for each kind of accident that was measured, and what was not."""
    parts = []
    for name, title, words in PARTS:
        if name in found:
            parts += [f"## {title}", words(found[name].facts), f"`python -m bench {name}`"]
    missing = [name for name, _, _ in PARTS if name not in found]
    if missing:
        parts.append(f"Not measured in the last run: {', '.join(missing)}.")
    return "\n\n".join(parts)


def kills(facts: Mapping[str, Any]) -> str:
    steps = ", ".join(f"{many} in '{step}'" for step, many in facts["steps"].items())
    hit = facts["kills of the JVM"]
    java = f" {hit} of them hit the JVM, and Python ended by itself." if hit else ""
    return (
        f"{facts['kills']} kills with SIGKILL at random instants of {facts['programmes']} programmes (seed "
        f"{facts['seed']}): {steps}.{java} Faults after a kill: {facts['faults']}. Every programme was resumed and "
        f"ended with each of its five releases paid once. {facts['changed data refused']} runs with other data and "
        f"{facts['changed prices refused']} with another price in between were refused with nothing spent. "
        f"{facts['bundles reviewed']} bundles went to the reviewer, who found nothing."
    )


def ledgers(facts: Mapping[str, Any]) -> str:
    lines = [
        "| ledger | processes | charges | per second | median wait | 95 % | longest | faults |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['ledger']} | {row['processes']}{', ' + str(row['killed']) + ' killed' if row['killed'] else ''} | "
        f"{row['charges']:,} | {row['per_second']:,.0f} | {1e3 * row['median']:,.0f} ms | {1e3 * row['p95']:,.0f} ms | "
        f"{row['longest']:,.1f} s | {row['faults']} |"
        for row in facts["rows"]
    ]
    slow = facts["slow programme"]
    return (
        "All processes want the same budget until it is refused to them. What was spent is exactly the budget; every "
        "charge that a process was told of is one line of the ledger, and there is no other line but those of killed "
        "processes, at most one each.\n\n" + "\n".join(lines) + f"\n\nA slow disk takes {1e3 * facts['sync']:.0f} ms "
        "longer for every sync (`bench/disturbed.c` stands before the C library of our processes, or of the "
        f"PostgreSQL server). There a whole programme with its ledger takes {slow['seconds']:.1f} s instead of "
        f"{slow['quick']:.1f} s and ends with {slow['faults']} faults."
    )


def disks(facts: Mapping[str, Any]) -> str:
    lines = ["| accident | times | runs that ended well | refused in words | faults |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {row['accident']} | {row['times']} | {row['well']} | {row['refused']} | {row['faults']} |"
        for row in facts["rows"]
    ]
    return (
        f"Each at a random instant of a run (seed {facts['seed']}); then the disk is repaired and the run resumed. A "
        "fault is a traceback, a visible file that was not paid or is not what the ledger fixed, a charge that is "
        "lost or made twice, or a run that cannot be resumed.\n\n" + "\n".join(lines)
    )


def clocks(facts: Mapping[str, Any]) -> str:
    return (
        f"The time of day jumped {facts['jumps']:,} times, by up to {facts['years']} years forwards and backwards, "
        f"during {facts['programmes']} programmes (seed {facts['seed']}), {facts['kills']} of them killed and resumed, "
        f"and while {facts['openings']} processes opened {facts['ledgers']} new ledgers at once. Faults: "
        f"{facts['faults']}. The ledger's order is that of its chain; `at` is what the clock said, and decides nothing."
    )


PARTS = (
    ("kills", "Kills", kills),
    ("kills_on_spark", "Kills on Spark", kills),
    ("ledgers", "Many processes, and a slow disk", ledgers),
    ("disks", "Disks", disks),
    ("clocks", "Clocks", clocks),
)
