"""What a release reveals to an attacker: the most that the guarantee allows, and what attacks achieve.

Nobody may score attacks on the confidential data. So they are scored on a stand-in: establishments of the published
shape. A table is drawn from them again with the release's own mechanism, and infused tables are made from them for
comparison. Only published numbers and public constants enter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np

from discreet.arrays import Integers
from discreet.audit import informed
from discreet.audit.attacked import attack, larger
from discreet.audit.stand_in import MOST_JOBS, same_shape
from discreet.data.delimited import quoted
from discreet.data.frames import connect
from discreet.noise.source import SeededSource
from discreet.privacy.assurance import Assurance, Claim
from discreet.privacy.losses import Concentrated, Pure, from_dict
from discreet.privacy.units import Establishments, is_weak
from discreet.release.folder import PublishedTable, ReleaseFolder, by_data_set, most_jobs, one_data_set
from discreet.tables.baseline.establishments import Histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import named
from discreet.words.cases import case_of
from discreet.words.errors import DataError

MOST_CELLS = 4_000
"""Workplace cells of a stand-in; larger tables are sampled."""

MOST_AMOUNT = 2.0**50
"""Amounts that are attacked; larger ones are noise."""

TRIALS, LEAST_CASES = 5, 1_000
SAME = (
    "A synthetic file has the numbers of its release, as far as these agree. If it has them all, attacks on it "
    "achieve the same as on the release. Give the folder of the release too, to see both."
)
EARLIER = (
    "The file was written by an earlier version, which did not note what its release promises. Give the folder of the "
    "release too."
)
RELEASE, INFUSION = "this release", "noise infusion"
ROW_KINDS = ("model", "posterior")
MOVEMENT = {"flows": "employment", "changes": "earlier"}
"""The numbers of jobs in releases of several quarters."""


@dataclass(frozen=True, slots=True)
class Identification:
    """The bounds and the attacks, side by side.

    Attributes
    ----------
    said : what may be said about the releases: whom they protect, how far beliefs can move at most, or why neither.
    attacks : one row for each attack, table and scheme: targets, tried, exactly right, right by chance.
    notes : tables that were not attacked, and why.
    """

    said: Assurance
    attacks: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            **self.said.to_dict(),
            "bounds": [bound.to_dict() for bound in self.said.beliefs],
            "attacks": [dict(row) for row in self.attacks],
            "notes": list(self.notes),
        }


def identification(releases: Sequence[ReleaseFolder], *, seed: int = 0) -> Identification:
    """What releases of one data set reveal to an attacker: at most, and in simulated attacks."""
    one_data_set(releases)
    units = sorted({str(release.about["guarantee"].get("unit")) for release in releases})
    if len(units) > 1:
        raise DataError(
            f"The releases protect different units: {', '.join(units)}.",
            "Losses under different units do not add up to one bound.",
            "Give the folder of one release.",
            about="release",
        )
    said = Assurance.of([release.claim for release in releases], jobs=most_jobs(releases))
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for release in releases:
        if {doubt.name for doubt in release.claim.doubts} & {"seeded", "unknown"}:
            notes.append(f"{release.name} was not attacked: {release.claim.definition}.")
            continue
        by_rows = release.kind in ROW_KINDS
        for name, of in [(release.name, None)] if by_rows else [(of.name, of) for of in _as_drawn(release)]:
            found = attacked_rows(release, seed=seed) if of is None else attacked_table(release, of, seed=seed)
            if isinstance(found, str):
                notes.append(f"{name} was not attacked: {found}")
            else:
                rows += found
    return Identification(said, tuple(rows), tuple(notes))


def of_data_sets(releases: Sequence[ReleaseFolder], *, seed: int = 0) -> dict[str, Identification]:
    """What releases reveal, by their data sets; `in_several` adds up what they cost who is in several."""
    return {dataset: identification(mine, seed=seed) for dataset, mine in by_data_set(releases).items()}


def in_several(found: Mapping[str, Identification]) -> Assurance | None:
    """About somebody who is in several data sets. Nothing published says that nobody is."""
    return Assurance.in_several([each.said for each in found.values()])


def of_synthetic(path: str | Path, releases: Sequence[ReleaseFolder] | None = None, *, seed: int = 0) -> Identification:
    """What a synthetic file reveals to an attacker.

    The bounds are those of its releases, from what is written beside it. The same is true of the attacks if the folders
    of these releases are given; the notes then report for how many attacked counts the file has the published number.
    """
    beside = Path(path).with_suffix(".json")
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
        known = list(told["releases"].values())
        names, dataset = list(told["releases"]), str(told["data"])
        claims = [
            Claim.stated(each.get("stated", {}), release=name, dataset=dataset)
            for name, each in zip(names, known, strict=True)
        ]
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise DataError(
            f"{str(path)!r} is no synthetic file: {beside.name!r} beside it does not say what it was drawn from.",
            "`discreet synthesize` writes both.",
            "Give the folder of a release, or a synthetic file with the file beside it.",
            about="release",
        ) from None
    if releases is None:
        earlier = [] if all("stated" in each for each in known) else [EARLIER]
        return Identification(Assurance.of(claims), (), (*earlier, SAME))
    drawn_from = {name: each.get("files") for name, each in told["releases"].items()}
    given = {known.name: {n: d for n, d in known.files.items() if n.endswith(".parquet")} for known in releases}
    if drawn_from != given:
        raise DataError(
            f"{str(path)!r} was not drawn from these releases.",
            f"It was drawn from: {', '.join(drawn_from)}.",
            "Give the folder that `discreet synthesize` was given.",
            about="release",
        )
    found = identification(releases, seed=seed)
    attacked = {row["of"] for row in found.attacks}
    drawn = [of for known in releases for of in _as_drawn(known) if of.name in attacked and of.attributes]
    tables = [of for of in drawn if "count" in of.columns and not of.about.get("where")]
    return replace(found, notes=(*found.notes, *(_kept(Path(path), of) for of in tables)))


def _kept(path: Path, of: PublishedTable) -> str:
    """The number of a table's counts that a synthetic file has as published; it has none below zero."""
    keys = ", ".join(f"{quoted(name)}::varchar AS {quoted(name)}" for name in of.attributes)
    published = of.read().select([*of.attributes, "count"])
    with connect() as connection:
        connection.register("published", published)
        rows = connection.read_parquet(str(path))
        mine = rows.query("t", f"SELECT {keys}, count(*) AS n FROM t GROUP BY ALL").to_arrow_table()
        connection.register("mine", mine)
        asked = f"SELECT {keys}, greatest(count, 0) AS n FROM published"
        same = f"SELECT count(*), count(*) FILTER (a.n = coalesce(b.n, 0)) FROM ({asked}) a LEFT JOIN mine b USING ("
        [(total_rows, equal)] = connection.sql(f"{same}{', '.join(map(quoted, of.attributes))})").fetchall()
    return (
        f"Of {total_rows:,} counts of {of.name} the file has {equal:,} as published, none below 0; attacks on "
        f"these achieve the same as on the release. The others were moved within their intervals to agree with other "
        "tables."
    )


def _as_drawn(release: ReleaseFolder) -> list[PublishedTable]:
    """The tables as drawn, or as readers have them if only that form was released."""
    drawn = any(of.form == "basic" for of in release.tables()) and any("/research." in f"/{n}" for n in release.files)
    return release.tables("research" if drawn else None)


def attacked_table(release: ReleaseFolder, of: PublishedTable, *, seed: int = 0) -> list[dict[str, Any]] | str:
    """The attacks on a stand-in of one table, over several draws; or why there are none."""
    domains = of.about.get("domains")
    if release.kind in MOVEMENT and isinstance(release.unit, Establishments):
        return _attack_movement(release, of, seed=seed)
    if not {"count", "sum"} & {*of.columns} or not isinstance(release.unit, Establishments):
        return "attacks are on counts of jobs and sums that protect establishments."
    if domains is None or not of.about.get("mechanism"):
        return "it is a sum of drawn tables, and reveals no more than they do."
    if not domains or "sum" in of.columns:
        return _attack_amounts(of, _mechanism(release.unit, of), seed=seed)
    kinds = [name for name in of.attributes if name in domains]
    levels = int(np.prod([len(domains[name]) for name in kinds], dtype=np.int64))
    table, rng = of.read(), np.random.default_rng(seed)
    counts = np.maximum(np.asarray(table["count"].to_numpy(zero_copy_only=False), dtype=np.float64), 0)
    counts = counts.astype(np.int64).reshape(-1, levels)
    filled = np.flatnonzero(counts.sum(axis=1))
    chosen = np.sort(rng.choice(filled, min(MOST_CELLS, filled.size), replace=False))
    if not chosen.size or counts[chosen].sum() > MOST_JOBS:
        return "no cell has jobs, or its counts are too large for a stand-in."
    names = [name for name in of.attributes if name not in kinds]
    keys = table.select(names).take(chosen * levels) if names else table.select([])
    mechanism = _mechanism(release.unit, of)
    told: list[dict[str, Any]] = []
    for trial in range(TRIALS):
        firms = same_shape(counts[chosen], tuple(kinds), _combinations(domains, kinds), keys, rng)
        told += _attack_once(firms, mechanism, of.name, seed=seed + trial)
    return _added(told)


def attacked_rows(release: ReleaseFolder, *, seed: int = 0) -> list[dict[str, Any]] | str:
    """The informed attacker of one response, on the noise that a model or a posterior summary states; or why not."""
    stated, loss = dict(release.about["parameters"].get("mechanism") or {}), release.loss
    found = None
    if "parts" in stated:
        found = informed.of_sums(stated, seed=seed)
    elif isinstance(loss, Pure) and stated.get("summary") == "posterior probability":
        found = informed.of_probabilities(stated, loss, seed=seed)
    elif isinstance(loss, Pure) and stated.get("summary") in ("posterior quantile", "posterior interval"):
        found = informed.of_quantiles(stated, loss, seed=seed)
    elif isinstance(loss, Pure) and stated.get("summary") == "objective perturbation":
        found = informed.of_objective(stated, loss, seed=seed)
    elif isinstance(loss, Concentrated) and stated.get("method") == "posterior draw":
        found = informed.of_draw(loss, seed=seed)
    elif {"blocks", "mean", "fixed", "groups", "deviations"} <= stated.keys():
        found = informed.of_blocks(stated, seed=seed)
    if found is None:
        what = " by ".join(str(stated[key]) for key in ("summary", "method") if stated.get(key)) or release.kind
        return f"there is no attack on {what} here. Only the bound is given, and it holds for every attack."
    cases, right = found
    tried = {"targets": 1, "cases": cases, "exact": right, "by_chance": cases // 2}
    return [{"of": release.name, "attack": "one response: least or largest", "table": RELEASE, **tried}]


def _attack_movement(release: ReleaseFolder, of: PublishedTable, *, seed: int) -> list[dict[str, Any]] | str:
    """The p % rule on every published number of jobs, as if one establishment had it in all quarters."""
    name = MOVEMENT[release.kind]
    if name not in of.columns or not of.about.get("mechanism"):
        return "it does not state its noise, or has no numbers of jobs."
    assert isinstance(release.unit, Establishments)
    mechanism, rng, infusion = _mechanism(release.unit, of), np.random.default_rng(seed), Infusion()
    attack = case_of(release.kind, {"flows": informed.flows, "changes": informed.changes})
    draw = attack(mechanism, _quarters(of), rng)

    def infused(sums: Integers, largest: Integers, trial: int) -> Integers:
        return np.rint(sums * infusion.factor(rng.random(len(sums)))).astype(np.int64)

    return _percent({INFUSION: infused, RELEASE: draw}, of, name, float(release.unit.alpha), rng)


def _quarters(of: PublishedTable) -> int:
    """How many quarters a release of flows or changes has."""
    named_ = of.about.get("flows", of.about.get("changes"))
    return 1 if isinstance(named_, str | int) else len(named_ or ())


def _attack_amounts(of: PublishedTable, mechanism: Mechanism, *, seed: int) -> list[dict[str, Any]] | str:
    """The p % rule on every published number, as if one establishment had it; noise follows its size alone."""
    rng, infusion = np.random.default_rng(seed), Infusion()

    def released(sums: Integers, largest: Integers, trial: int) -> Integers:
        hidden = largest if mechanism.joint else largest[:, None]
        if mechanism.by_kinds:
            hidden = np.column_stack([largest, largest])
        if mechanism.by_pairs:
            hidden = np.stack([hidden, np.zeros_like(hidden)], axis=-1)
        return mechanism.draw(sums[:, None], hidden, SeededSource(int(rng.integers(2**62))))[:, 0]

    def infused(sums: Integers, largest: Integers, trial: int) -> Integers:
        return np.rint(sums * infusion.factor(rng.random(len(sums)))).astype(np.int64)

    column = "sum" if "sum" in of.columns else "count"
    return _percent({INFUSION: infused, RELEASE: released}, of, column, float(mechanism.unit.alpha), rng)


def _percent(
    draws: dict[str, informed.Draw], of: PublishedTable, column: str, share: float, rng: np.random.Generator
) -> list[dict[str, Any]] | str:
    """The p % rule on the numbers of a column."""
    numbers = np.asarray(of.read()[column].to_numpy(zero_copy_only=False), dtype=np.float64)
    numbers = numbers[(numbers > 0) & (numbers < MOST_AMOUNT)].astype(np.int64)
    chosen = rng.choice(numbers, min(MOST_CELLS, numbers.size), replace=False)
    rows = larger(draws, chosen, share=share, trials=max(TRIALS, LEAST_CASES // max(chosen.size, 1)))
    return [{"of": of.name, **row} for row in rows] or f"no number is so large that {share:g} of it is 1 or more."


def _mechanism(unit: Establishments, of: PublishedTable) -> Mechanism:
    """The release's mechanism again, from what it says of itself."""
    about = of.about
    loss = from_dict(dict(about["loss"]))
    known = named(str(about["mechanism"]))
    return known.stated(about["noise"], unit=unit, loss=loss, calibration=about["calibration"])


def _combinations(domains: Any, kinds: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    return tuple(product(*(domains[name] for name in kinds)))


def _attack_once(firms: Histograms, mechanism: Mechanism, name: str, *, seed: int) -> list[dict[str, Any]]:
    """Attacks on one stand-in, drawn once."""
    cells = firms.cells(unions=mechanism.by_unions)
    infusion = Infusion()
    factors = infusion.factor(np.random.default_rng(seed).random(len(firms.counts)))
    infused = infusion.publish(firms, factors, source=SeededSource(seed))
    if mechanism.by_unions:
        hidden = cast("Integers", cells.unions)
    elif mechanism.by_kinds:
        hidden = np.column_stack([cells.largest, cells.largest_total])
    elif mechanism.joint:
        hidden = cells.largest_total
    else:
        strong = not is_weak(mechanism.unit.strength)
        hidden = np.broadcast_to(cells.largest_total[:, None], cells.counts.shape) if strong else cells.largest
    if mechanism.by_pairs:
        hidden = cells.pairs(hidden)
    drawn = np.maximum(mechanism.draw(cells.counts, hidden, SeededSource(seed)), 0).astype(np.float64)
    return [{"of": name, **row} for row in attack({INFUSION: infused, RELEASE: drawn}, firms)]


def _added(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all draws together."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["of"], row["attack"], row["table"]
        known = found.setdefault(key, {"of": row["of"], "attack": row["attack"], "table": row["table"]})
        for name in ("targets", "cases", "exact", "by_chance"):
            known[name] = known.get(name, 0) + row[name]
    return list(found.values())
