"""The main job on embedded defaults, from nothing: simulate, check, run, report, verify, attack.

Everything is real but the data: the plan is a file, DuckDB reads Parquet, the ledger is a SQLite file, the noise is
exact and from the operating system. Because the data are simulated, the demo may also compare the release with the
truth, and attack it beside noise infusion; a report on confidential data never could.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from discreet.audit.attacked import attack
from discreet.ledger.anchors import forget_simulated
from discreet.noise.source import SeededSource
from discreet.pages.page import Block, Heading, Note, Prose, Table
from discreet.report.release import percent
from discreet.tables.baseline.establishments import Histograms, histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.release import CountRelease
from discreet.words.errors import DataError

MARK = ".discreet-demo"
KEY = b"the agency's own secret"
"""Of the infusion's factors, which nobody may guess. In a demo everybody may know it."""

PLAN = """\
# The demo's plan. Add a release and run it again: `discreet check`, then `discreet run`, with the path of this file.
# What is released stays as it is, so something else needs another name; 1 of the budget is left for it.
title = "Demo: private counts of jobs"

[data]
source = "data"                 # simulated jobs, with the public list of workplaces

[unit]                          # one establishment's workforce may grow by 5 %, or by one worker, unnoticed
kind = "establishments"
alpha = 0.05

[budget]
epsilon = 3.5
ledger = "ledger.db"
dataset = "demo"

[[release]]
name = "jobs"
kind = "count"
by = ["place", "sector", "ownership"]
stratum = "sector"
epsilon = 1

[[release]]
name = "sexes"
title = "jobs by workplace and sex"
kind = "count"
by = ["place", "sector", "ownership", "sex"]
stratum = "sector"
epsilon = 1.5                   # two counts for each cell cost more than one; with education too, most would be noise

[output]
folder = "release"
"""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The files that the demo wrote, and one line about each step."""

    folder: Path
    lines: tuple[str, ...]


def run(
    out: Path, *, share: float = 0.05, seed: int = 1, tell: Callable[[str], None] = lambda line: None
) -> DemoResult:
    """Run the demo into `out`, which must be new, empty or hold nothing but an earlier demo."""
    folder = _fresh(out)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        tell(line)

    try:
        _tell_the_story(folder, share=share, seed=seed, say=say)
    finally:
        _record(folder)
    return DemoResult(folder, tuple(lines))


def _tell_the_story(folder: Path, *, share: float, seed: int, say: Callable[[str], None]) -> None:
    from discreet.ledger.budget import amounts
    from discreet.plan.check import check
    from discreet.plan.confidential import Confidential
    from discreet.plan.reading import read_plan
    from discreet.plan.run import run as carry_out
    from discreet.report.release import page
    from discreet.review.verdict import verify_bundle
    from discreet.simulate import lodes

    rows = lodes.write(folder / "data", seed=seed, share=share)["rows"]
    say(f"simulated: {rows['job']:,} jobs at {rows['workplace']:,} establishments, in {folder / 'data'}")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    plan = read_plan(folder / "plan.toml")
    found = check(plan)
    found.refuse()
    cost, whole = amounts(found.only.cost), amounts(found.only.before.total)
    say(f"checked: {folder / 'plan.toml'} costs {cost} of {whole}; nothing read")
    done = carry_out(plan)
    say(f"released: {' and '.join(done.publications)} in {done.folder}, {amounts(done.remaining)} left")
    assert done.facts is not None and done.bundle is not None
    findings = verify_bundle(done.bundle, ledger=folder / "ledger.db")
    wrong, holding = (sum(getattr(finding, state) for finding in findings) for state in ("wrong", "holds"))
    verdict = "SOMETHING IS WRONG" if wrong else f"{len(findings) - holding} could not be checked, nothing is wrong"
    say(f"verified: {holding} claims of {done.bundle} hold, {verdict}")
    jobs = Confidential(plan.sources[0]).jobs()
    tables = {release.name: release.results.counts[0].table for release in done.facts.releases}
    firms = {
        name: histograms(jobs, workplace_by=table.keys.column_names, worker_by=table.worker_by)
        for name, table in tables.items()
    }
    factors = Infusion().factors(firms["sexes"].establishment, key=KEY)
    infused = Infusion().publish(firms["sexes"], factors, source=SeededSource(1))
    published = np.maximum(tables["sexes"].counts, 0).astype(np.float64)
    attacked = attack({"noise infusion": infused, "this release": published}, firms["sexes"])
    for row in attacked:
        chance = f", {row['by_chance']:,} by chance alone" if row["by_chance"] else ""
        say(f"attacked: {row['attack']} on {row['table']}: {row['exact']:,} of {row['cases']:,} exactly right{chance}")
    more = [*_truth(tables, firms), *_attacks(attacked)]
    page(done.facts, more=more).write(folder / "report.html")
    (folder / "results.json").write_text(json.dumps(done.to_dict() | {"attacks": attacked}, indent=2) + "\n")
    say(f"report: {folder / 'report.html'}")


def _truth(tables: dict[str, CountRelease], firms: dict[str, Histograms]) -> Iterator[Block]:
    yield Heading("Beside the truth, because these data are simulated")
    yield Note("limitation", "On confidential data this section and the next cannot be published, and are not made.")
    rows = []
    for name, table in tables.items():
        true = firms[name].cells().counts
        infused = Infusion().expected_error(firms[name], rng=np.random.default_rng(1))
        inside = (table.lower <= true) & (true <= table.upper)
        rows.append(
            {
                "Release": name,
                "Counts": true.size,
                "Mean count": float(true.mean()),
                "Mean error": float(np.abs(table.counts - true).mean()),
                "Of infusion": float(infused.mean()),
                "Intervals that hold": percent(float(inside.mean())),
            }
        )
    yield Table.of(rows, "How far off the releases really are: mean absolute error of a count", "truth")


def _attacks(rows: list[dict[str, str | int | float]]) -> Iterator[Block]:
    yield Heading("Attacks on noise infusion, and on this release")
    yield Prose(
        "Cells with one establishment are attacked as in section 5.2 of the Tables paper. Shape: the make-up of a "
        "workforce. Size: all counts of an establishment, by somebody who knows one of them. Re-identification: the "
        "sex of the only worker, by somebody who knows that there is one. Under noise infusion one factor "
        "multiplies all counts of an establishment and zeros stay zero, so what is learnt is exactly true. On this "
        "release the same attacks return guesses. How much better than chance a guess may be is what epsilon says; "
        "chance is the best guess that is the same for every case.\n\n"
        "Both tables are attacked on the same targets: the establishments that are alone in their cells, and for "
        "re-identification those with one worker. Shares are of these targets. Shape and size are tried only where "
        "all published counts are above the small cell limit of 2.5, so how many are tried differs between the tables."
    )
    columns = {
        "Attack": "attack",
        "On": "table",
        "Targets": "targets",
        "Tried": "cases",
        "Exactly right": "exact",
        "Right by chance": "by_chance",
    }
    yield Table.of(
        [
            {title: row[key] for title, key in columns.items()}
            | {"Right, of all targets": percent(float(row["exact"]) / max(float(row["targets"]), 1))}
            for row in rows
        ],
        "What the attacker gets right, on the same targets",
        "attacks",
    )
    said = {(row["attack"], row["table"]): row["example"] or None for row in rows}
    yield Table(
        ("Attack", "On noise infusion", "On this release"),
        [
            (attack, *(said.get((attack, table)) for table in ("noise infusion", "this release")))
            for attack in dict.fromkeys(attack for attack, _ in said)
        ],
        "One of the attacker's conclusions each, in words",
        "conclusions",
    )


def _fresh(out: Path) -> Path:
    """An empty folder at `out`. An earlier demo there is removed as it was written; anything else is left alone."""
    if out.exists() and not out.is_dir():
        raise _refusal(out, "it is a file")
    written, there = _recorded(out), _files(out) if out.is_dir() else {}
    others = [name for name, path in there.items() if name not in {*written, MARK} and not _of_ledger(path)]
    changed = [name for name in there if name in written and _digest(out / name) != written[name]]
    if others or changed:
        word = f"{changed[0]!r} was changed since" if changed else f"{others[0]!r} is not from an earlier demo"
        raise _refusal(out, f"something else is there, {word}")
    for path in there.values():
        path.unlink()
    try:
        for folder in sorted((path for path in out.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        out.mkdir(parents=True, exist_ok=True)
        (out / MARK).write_text("{}", encoding="utf-8")
        forget_simulated(out / "ledger.db")
    except OSError as error:
        raise _refusal(out, str(error.strerror)) from None
    return out


def _refusal(out: Path, why: str) -> DataError:
    return DataError(
        f"The demo cannot be put in {str(out)!r}: {why}.",
        "It needs a new or empty folder that you can write, or an untouched demo, which it replaces.",
        "Choose another with --out, or move that away.",
        about="out",
    )


def _record(folder: Path) -> None:
    """Record the files that the demo wrote, so that the next demo may remove them.

    The folder was empty before, so these are all files in it.
    """
    written = {name: _digest(path) for name, path in _files(folder).items() if name != MARK}
    (folder / MARK).write_text(json.dumps(written, indent=0), encoding="utf-8")


def _recorded(folder: Path) -> dict[str, str]:
    try:
        return dict(json.loads((folder / MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _files(folder: Path) -> dict[str, Path]:
    """Every file and link by its path in the folder."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return {name: path for name, path in found.items() if path.is_symlink() or not path.is_dir()}


def _of_ledger(path: Path) -> bool:
    """Whether a file is one that SQLite leaves beside a ledger that was read; a log that holds changes is not."""
    return path.name == "ledger.db-shm" or (path.name == "ledger.db-wal" and not path.stat().st_size)


def _digest(path: Path) -> str:
    return "" if path.is_symlink() or not path.is_file() else sha256(path.read_bytes()).hexdigest()
