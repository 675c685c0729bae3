"""Whether a reviewer's bundle is what it says: files, ledger lines, arithmetic and mechanisms, all checked anew.

Nothing in the bundle is believed. Hashes are taken again, seals recomputed, sums redone, mechanisms calibrated again
from the claimed loss and their worst loss found by `privacy.verify`. No confidential data are needed.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import file_digest
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import LedgerError, PlanError, PrivacyError
from discreet.noise.laws import GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.plan.bundle import FORMAT, LEDGER, MANIFEST
from discreet.plan.outputs import MANIFEST as ABOUT
from discreet.plan.outputs import read_table, rounded, source_hash
from discreet.privacy.ledger import Budget, Entry, Ledger
from discreet.privacy.ledger.entries import EntryError
from discreet.privacy.losses import Loss, from_dict, loss, shown, total
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit, Workers
from discreet.privacy.verify import verify
from discreet.tables.mechanisms import LogLaplace, NoiseLaw, SmoothNoise

LAWS: Mapping[str, Callable[..., NoiseLaw]] = {
    law.__name__: law for law in (Laplace, GeneralisedCauchy, Polynomial, RadialPolynomial)
}
MALFORMED = (LookupError, ValueError, TypeError, AttributeError, PrivacyError, LedgerError, OSError, zipfile.BadZipFile)
"""What reading something that was not written by discreet may raise."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked, and how it came out."""

    subject: str
    holds: bool
    words: str


class RefutedError(Exception):
    """A claim of the bundle is wrong; the message says which."""


def verify_bundle(
    path: str | Path, *, ledger: str | Path | None = None, progress: Callable[[str], None] = lambda subject: None
) -> list[Finding]:
    """Check a bundle, and with `ledger` also that its lines are in that ledger."""
    try:
        packed = zipfile.ZipFile(path)
        about = json.loads(packed.read(MANIFEST))
        releases = [str(name) for name in about["releases"]] if about["format"] == FORMAT else None
    except MALFORMED:
        releases = None
    if releases is None:
        raise PlanError(
            f"{str(path)!r} is not a reviewer's bundle of this version. `discreet run` writes one: bundle.zip. Name it."
        )
    with packed:
        checks: list[tuple[str, Callable[[], str]]] = [
            ("files", partial(_files, packed, about["files"])),
            ("ledger lines", lambda: _lines(packed)[1]),
        ]
        for name in releases:
            checks += [
                (f"{name}: publication", partial(_publication, packed, name, about["files"])),
                (f"{name}: guarantee", partial(_guarantee, packed, name)),
                (f"{name}: mechanisms", partial(_mechanisms, packed, name)),
                (f"{name}: basic form", partial(_forms, packed, name)),
            ]
        if ledger is not None:
            checks.append(("ledger", partial(_ledger, packed, ledger)))
        return [_found(subject, check, progress) for subject, check in checks]


def _found(subject: str, check: Callable[[], str], progress: Callable[[str], None]) -> Finding:
    progress(subject)
    try:
        return Finding(subject, True, check())
    except RefutedError as refutation:
        return Finding(subject, False, str(refutation))
    except MALFORMED as error:
        return Finding(subject, False, f"cannot be checked: the bundle is malformed here ({type(error).__name__})")


def _files(packed: zipfile.ZipFile, listed: Mapping[str, str]) -> str:
    there = [entry.filename for entry in packed.infolist()]
    if len(set(there)) < len(there) or {*there} != {*listed, MANIFEST}:
        odd = sorted({*there} ^ {*listed, MANIFEST}) or sorted(name for name in there if there.count(name) > 1)
        raise RefutedError(f"the list of files and the files differ: {odd[0]!r}")
    for name, expected in listed.items():
        with packed.open(name) as file:
            if file_digest(file, "sha256").hexdigest() != expected:  # type: ignore[arg-type]
                raise RefutedError(f"{name!r} is not the file that was packed")
    return f"{len(listed)} files, every SHA-256 as listed"


def _lines(packed: zipfile.ZipFile) -> tuple[list[Entry], str]:
    """The ledger's lines, after seals, links, sums and budgets were found right."""
    book = json.loads(packed.read(LEDGER))
    entries: list[Entry] = []
    accounts: dict[tuple[str, str], Budget] = {}
    for row in book["lines"]:
        try:
            entry = Entry.from_row(row)
            before = entries[-1] if entries else None
            if before is not None and entry.seq <= before.seq:
                raise RefutedError(f"entry {entry.seq} follows entry {before.seq}")
            if before is not None and entry.seq == before.seq + 1 and entry.previous != before.hash:
                raise RefutedError(f"entry {entry.seq} does not continue entry {before.seq}")
            account = (entry.dataset, entry.unit)
            accounts[account] = _posted(entry, accounts.get(account))
        except EntryError as fault:
            raise RefutedError(f"entry {row.get('seq')}: {fault}") from None
        except PrivacyError:
            raise RefutedError(f"entry {row.get('seq')} overspends its budget") from None
        entries.append(entry)
    if entries and entries[-1].seq > book["head"]["seq"]:
        raise RefutedError("the head is before the last line")
    sums = ", ".join(f"{budget.spent} of {budget.total} spent" for budget in accounts.values())
    return entries, f"{len(entries)} lines as sealed; {sums}; head {book['head']['hash']}"


def _posted(entry: Entry, budget: Budget | None) -> Budget:
    """The account after one line."""
    if entry.kind == "budget" and entry.loss is not None:
        opened = Budget(entry.dataset, entry.unit, entry.loss, entry.loss.zero())
        after = opened if budget is None else budget.resized(entry.loss)
    elif budget is None:
        raise RefutedError(f"entry {entry.seq} spends from a budget that was never opened")
    elif entry.kind == "charge" and entry.loss is not None:
        after = budget.spend(entry.loss, release=str(entry.release))
    else:
        after = budget
    if after.spent.to_dict() != entry.spent_after.to_dict():
        raise RefutedError(f"entry {entry.seq} says {entry.spent_after} is spent, the lines add up to {after.spent}")
    return after


def _publication(packed: zipfile.ZipFile, name: str, listed: Mapping[str, str]) -> str:
    about = _about(packed, name)
    charge = _charge(packed, about)
    published = [
        entry
        for entry in _lines(packed)[0]
        if entry.kind == "publish" and entry.release == name and entry.payload["charge"] == charge.seq
    ]
    if len(published) != 1:
        raise RefutedError(f"the charge in entry {charge.seq} has {len(published)} publications, not one")
    files = {path.removeprefix(f"{name}/"): digest for path, digest in listed.items() if path.startswith(f"{name}/")}
    if files != published[0].payload["files"]:
        raise RefutedError(f"the files are not those published in entry {published[0].seq}")
    if {path: digest for path, digest in files.items() if path != ABOUT} != about["files"]:
        raise RefutedError(f"{ABOUT} lists other files")
    return f"{len(files)} files as published in entry {published[0].seq}, paid for in entry {charge.seq}"


def _guarantee(packed: zipfile.ZipFile, name: str) -> str:
    about = _about(packed, name)
    claim, charge = about["guarantee"], _charge(packed, about)
    if claim["private"] is not True or about["randomness"] != "operating system":
        raise RefutedError("the noise was seeded: it is not private")
    promised = _loss(claim["loss"])
    tables = about["parameters"].get("tables")
    parts = promised if tables is None else total([_loss(table["loss"]) for table in tables], zero=promised.zero())
    if charge.loss is None or charge.loss.to_dict() != promised.to_dict():
        raise RefutedError(f"{promised} is claimed, {charge.loss} was paid in entry {charge.seq}")
    if parts.to_dict() != promised.to_dict():
        raise RefutedError(f"{promised} is claimed, its tables add up to {parts}")
    if charge.unit != claim["unit"]:
        raise RefutedError(f"it claims to protect {claim['unit']}, entry {charge.seq} says {charge.unit}")
    if not all(str(amount) in claim["definition"] for amount in _shown(promised)):
        raise RefutedError(f"the words {claim['definition']!r} do not state {promised}")
    return f"{claim['definition']}, {claim['basis']}; it is what was paid, and its tables add up to it"


def _mechanisms(packed: zipfile.ZipFile, name: str) -> str:
    about = _about(packed, name)
    if "tables" not in about["parameters"]:
        return f"{about['guarantee']['basis']} ({about['guarantee']['proof']}), not recomputed; {_code(about)}"
    unit, words = _unit(about["guarantee"]["unit"]), []
    for table in about["parameters"]["tables"]:
        epsilon = _loss(table["loss"]).amounts["epsilon"]
        if not isinstance(unit, Establishments):
            needed = (unit.theta if isinstance(unit, EstablishmentNodes) else 1) / float(epsilon)
            if table["noise"]["law"] != "Laplace" or not table["noise"]["width"] >= needed * (1 - 1e-12):
                raise RefutedError(f"{table['mechanism']} needs Laplace noise of width {needed:.6g} and has less")
            words.append(f"{table['mechanism']}: Laplace noise of width {needed:.6g}, as the definition needs")
            continue
        verdict = verify(_mechanism(table, unit))
        if not verdict.holds:
            raise RefutedError(f"{table['mechanism']} loses {verdict.worst_loss:.6g}, more than {verdict.claimed}")
        words.append(f"{table['mechanism']}: worst loss {verdict.worst_loss:.6g} of {verdict.claimed}")
    return f"{'; '.join(dict.fromkeys(words))}; {_code(about)}"


def _mechanism(table: Mapping[str, Any], unit: Establishments) -> SmoothNoise | LogLaplace:
    """The mechanism with the constants that are stated, promising what one of its counts costs."""
    noise = table["noise"]
    law = LAWS[noise["law"]](**noise["parameters"])
    shares = int(table["levels"]) if law.dimension == 1 else 1
    if law.dimension not in (1, table["levels"]):
        raise RefutedError(f"the noise is for {law.dimension} counts of a cell, which has {table['levels']}")
    amounts = {name: amount / shares for name, amount in _loss(table["loss"]).amounts.items()}
    if table["mechanism"] == "log-laplace":
        return LogLaplace(unit, loss(**amounts), noise["exponent"], noise["shrink"], table["calibration"], "")
    return SmoothNoise(table["mechanism"], unit, loss(**amounts), law, noise["factor"], table["calibration"], "")


def _forms(packed: zipfile.ZipFile, name: str) -> str:
    """Recompute the basic form's numbers from the research form, where that needs no more than rounding."""
    parameters = _about(packed, name)["parameters"]
    if {*parameters["forms"]} != {"basic", "research"} or "tables" not in parameters:
        return "no two forms of counts to compare"
    if parameters["shrink"] is not None or parameters["add_up"]:
        return "not compared: its counts were moved on purpose, as the guarantee's parameters say"
    to = int(parameters["round_to"])
    for table in parameters["tables"]:
        research, basic = (_read(packed, name, table, form, parameters["formats"]) for form in ("research", "basic"))
        counts = np.array(research["count"], dtype=np.float64)
        counts = np.maximum(counts, 0) if parameters["non_negative"] else counts
        lower, upper = (np.array(basic[end], dtype=np.float64) for end in ("lower", "upper"))
        inside = [
            np.isnan(lower) | (lower <= np.array(research["lower"], dtype=np.float64)),
            np.isnan(upper) | (upper >= np.array(research["upper"], dtype=np.float64)),
        ]
        if not np.array_equal(rounded(counts, to), np.array(basic["count"])) or not np.all(inside):
            raise RefutedError("the basic form does not follow from the research form")
    return f"follows from the research form: rounded to {to}, intervals not narrower"


def _read(packed: zipfile.ZipFile, name: str, table: Mapping[str, Any], form: str, formats: list[str]) -> Any:
    kind = "parquet" if "parquet" in formats else "csv"
    place = "/".join(part for part in (name, table["folder"], f"{form}.{kind}") if part)
    return read_table(BytesIO(packed.read(place)), kind=kind, attributes=table["by"])


def _ledger(packed: zipfile.ZipFile, where: str | Path) -> str:
    entries = _lines(packed)[0]
    head = json.loads(packed.read(LEDGER))["head"]["hash"]
    with Ledger.open(where, read_only=True) as ledger:
        verdict = ledger.verify(contains=[head, *(entry.hash for entry in entries)])
    if not verdict:
        raise RefutedError(f"{verdict}")
    return f"{verdict}; it contains every line of the bundle"


def _about(packed: zipfile.ZipFile, name: str) -> dict[str, Any]:
    return dict(json.loads(packed.read(f"{name}/{ABOUT}")))


def _charge(packed: zipfile.ZipFile, about: Mapping[str, Any]) -> Entry:
    seal = about["ledger"]["hash"]
    found = [entry for entry in _lines(packed)[0] if entry.hash == seal and entry.kind == "charge"]
    if not found or found[0].release != about["name"] or found[0].dataset != about["dataset"]:
        raise RefutedError(f"no line of the ledger paid for it ({seal[:12]}...)")
    return found[0]


def _loss(amounts: Mapping[str, str]) -> Loss:
    return from_dict(dict(amounts))


def _shown(loss: Loss) -> Iterator[str]:
    yield from (f"{name}={shown(amount)}" for name, amount in loss.amounts.items())


def _unit(key: str) -> Unit:
    """The unit with this key."""
    if found := re.fullmatch(r"establishments\(alpha=([\d/]+),(strong|weak)\)", key):
        return Establishments(Fraction(found[1]), "strong" if found[2] == "strong" else "weak")
    if found := re.fullmatch(r"establishment-nodes\(theta=(\d+)\)", key):
        return EstablishmentNodes(int(found[1]))
    if key == "workers":
        return Workers()
    raise RefutedError(f"{key!r} protects nobody that is known here")


def _code(about: Mapping[str, Any]) -> str:
    same = about["code"]["source"] == source_hash()
    return f"drawn by discreet {about['code']['discreet']}, " + ("this very code" if same else "other code than this")
