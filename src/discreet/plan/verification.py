"""Whether a reviewer's bundle is what it says: files, ledger lines, arithmetic and mechanisms, all checked anew.

Nothing in the bundle is believed. Hashes are taken again, seals recomputed, sums redone, the request priced again, the
worst loss of the stated mechanisms found by `privacy.verify`, intervals, basic form and report made anew. What cannot
be decided from a bundle is listed as not checked. No confidential data are needed.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from discreet.errors import PlanError, PrivacyError
from discreet.plan.bundle import FORMAT
from discreet.plan.constants import stated, stated_loss
from discreet.plan.counts import CountRequest
from discreet.plan.findings import Finding, RefutedError, UncheckedError
from discreet.plan.outputs import FORMAT as ABOUT_FORMAT
from discreet.plan.outputs import MANIFEST as ABOUT
from discreet.plan.outputs import SAMPLER, SUMMARY_SAMPLER, SYSTEM, source_hash
from discreet.plan.packing import LEDGER, MANIFEST, check_packing
from discreet.plan.rebuilding import Rebuilt
from discreet.plan.recount import check_basic, check_cells, check_intervals, check_rows
from discreet.plan.summaries import COLUMNS
from discreet.plan.unpacking import check_tables, opened, text, unpack
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Budget, Entry, Head, Ledger
from discreet.privacy.ledger.entries import EntryError
from discreet.privacy.losses import Loss, shown, total
from discreet.privacy.units import EstablishmentNodes, Establishments
from discreet.privacy.verify import verify

MALFORMED = (
    *(LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError, OSError, EOFError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading something that was not written by discreet may raise; brackets without end are a `RuntimeError`."""

ABOUT_KEYS = {
    *("format", "name", "dataset", "guarantee", "parameters", "columns", "ledger", "sampler", "randomness", "code"),
    "files",
}


def verify_bundle(
    path: str | Path, *, ledger: str | Path | None = None, progress: Callable[[str], None] = lambda subject: None
) -> list[Finding]:
    """Check a bundle, and with `ledger` also that its lines are in that ledger."""
    path = Path(path)
    if not path.is_file():
        raise PlanError(f"There is no file {str(path)!r}. `discreet run` writes a bundle.zip. Name one that is there.")
    with TemporaryDirectory(prefix="discreet-verify-") as scratch:
        folder = Path(scratch)
        try:
            about, there = _unpacked(path, folder)
        except RefutedError as refutation:
            return [Finding("files", "WRONG", str(refutation))]
        plan = Rebuilt(folder, tuple(about["releases"]))
        checks: list[tuple[str, Callable[[], str]]] = [
            ("bundle", partial(check_packing, path)),
            ("files", partial(_files, folder, there, about["files"])),
            ("ledger lines", lambda: _lines(folder)[1]),
            ("request", partial(_request, plan)),
            ("names", plan.check_names),
        ]
        for name in plan.releases:
            checks += [
                (f"{name}: publication", partial(_publication, plan, name, about["files"])),
                (f"{name}: guarantee", partial(_guarantee, plan, name)),
                (f"{name}: mechanisms", partial(_mechanisms, plan, name)),
                (f"{name}: description", partial(_description, plan, name)),
                (f"{name}: rows", partial(_rows, plan, name)),
                (f"{name}: intervals", partial(_intervals, plan, name)),
                (f"{name}: basic form", partial(_basic, plan, name)),
                (f"{name}: code", partial(_code, plan, name)),
            ]
        checks += [
            ("workplace cells", lambda: check_cells(plan.requests, plan.folder)),
            ("report.html", partial(_report, plan)),
            ("ledger", partial(_ledger, folder, ledger)),
            ("draws", partial(_draws, plan)),
        ]
        return [_found(subject, check, progress) for subject, check in checks]


def _found(subject: str, check: Callable[[], str], progress: Callable[[str], None]) -> Finding:
    progress(subject)
    try:
        return Finding(subject, "holds", check())
    except RefutedError as refutation:
        return Finding(subject, "WRONG", str(refutation))
    except UncheckedError as reason:
        return Finding(subject, "not checked", str(reason))
    except MALFORMED as error:
        return Finding(subject, "WRONG", f"cannot be checked: the bundle is malformed here ({type(error).__name__})")


def _no_bundle(path: Path) -> PlanError:
    return PlanError(
        f"{str(path)!r} is not a reviewer's bundle of this version. `discreet run` writes one: bundle.zip. Name it."
    )


def _unpacked(path: Path, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The bundle's own description, and the names of the files that were unpacked into `folder`."""
    with ExitStack() as closing:
        try:
            packed = closing.enter_context(opened(path))
            written = text(packed, MANIFEST)
        except MALFORMED:
            raise _no_bundle(path) from None
        try:
            about = json.loads(written)
        except MALFORMED:
            raise RefutedError(f"{MANIFEST} cannot be read, so nothing can be checked") from None
        try:
            releases = [str(name) for name in about["releases"]] if about["format"] == FORMAT else []
        except MALFORMED:
            releases = []
        if not releases or not all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) for name in releases):
            raise _no_bundle(path)
        try:
            there = unpack(packed, folder)
        except MALFORMED:
            raise RefutedError("the bundle cannot be unpacked") from None
        check_tables(packed, folder)
    return {"files": {}, **about, "releases": releases}, there


def _files(folder: Path, there: list[str], listed: Mapping[str, str]) -> str:
    if len(set(there)) < len(there) or {*there} != {*listed, MANIFEST}:
        odd = sorted({*there} ^ {*listed, MANIFEST}) or sorted(name for name in there if there.count(name) > 1)
        raise RefutedError(f"the list of files and the files differ: {odd[0]!r}")
    for name, expected in listed.items():
        with (folder / name).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != expected:
                raise RefutedError(f"{name!r} is not the file that was packed")
    return f"{len(listed)} files, every SHA-256 as listed"


def _lines(folder: Path) -> tuple[list[Entry], str, dict[tuple[str, str], Budget]]:
    """The ledger's lines, in words, and the budgets they leave, after seals, links and sums were found right."""
    book = json.loads((folder / LEDGER).read_bytes())
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
    head = Head(**book["head"])
    if entries and (entries[-1].seq > head.seq or (entries[-1].seq == head.seq and entries[-1].hash != head.hash)):
        raise RefutedError("the head is before the last line, or another")
    sums = ", ".join(f"{budget.spent} of {budget.total} spent" for budget in accounts.values())
    return entries, f"{len(entries)} lines as sealed; {sums}; head {head.hash}", accounts


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


def _publication(plan: Rebuilt, name: str, listed: Mapping[str, str]) -> str:
    about = plan.about(name)
    charge = _charge(plan.folder, about)
    published = [
        entry
        for entry in _lines(plan.folder)[0]
        if entry.kind == "publish" and entry.release == name and entry.payload["charge"] == charge.seq
    ]
    if len(published) != 1:
        raise RefutedError(f"the charge in entry {charge.seq} has {len(published)} publications, not one")
    files = {path.removeprefix(f"{name}/"): digest for path, digest in listed.items() if path.startswith(f"{name}/")}
    if files != published[0].payload["files"]:
        raise RefutedError(f"the files are not those published in entry {published[0].seq}")
    if {path: digest for path, digest in files.items() if path != ABOUT} != about["files"]:
        raise RefutedError(f"{ABOUT} lists other files")
    if _asked(about["parameters"]) != charge.payload.get("details"):
        raise RefutedError(f"{ABOUT} states other parameters than entry {charge.seq} paid for")
    return f"{len(files)} files as published in entry {published[0].seq}, paid for in entry {charge.seq}"


def _request(plan: Rebuilt) -> str:
    entries, _, budgets = _lines(plan.folder)
    charges = {str(entry.release): entry for entry in entries if entry.kind == "charge"}
    unpublished = {str(entry.release) for entry in entries if entry.kind == "publish"} - {*plan.releases}
    others = f"; the ledger also published {', '.join(sorted(unpublished))}, not in this bundle" if unpublished else ""
    return plan.check_request(charges, budgets) + others


def _asked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without the constants that the mechanism adds: what the ledger was asked to pay for."""
    asked = {name: value for name, value in parameters.items() if name != "mechanism"}
    if "tables" in asked:
        asked["tables"] = [{k: v for k, v in table.items() if k != "noise"} for table in asked["tables"]]
    return asked


def _guarantee(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    claim, charge = about["guarantee"], _charge(plan.folder, about)
    if claim["private"] is not True or about["randomness"] != SYSTEM:
        raise RefutedError("the noise was seeded: it is not private")
    promised = stated_loss(claim["loss"])
    tables = about["parameters"].get("tables")
    parts = (
        promised if tables is None else total([stated_loss(table["loss"]) for table in tables], zero=promised.zero())
    )
    if charge.loss is None or charge.loss.to_dict() != promised.to_dict():
        raise RefutedError(f"{promised} is claimed, {charge.loss} was paid in entry {charge.seq}")
    if parts.to_dict() != promised.to_dict():
        raise RefutedError(f"{promised} is claimed, its tables add up to {parts}")
    if charge.unit != claim["unit"]:
        raise RefutedError(f"it claims to protect {claim['unit']}, entry {charge.seq} says {charge.unit}")
    if not all(str(amount) in claim["definition"] for amount in _shown(promised)):
        raise RefutedError(f"the words {claim['definition']!r} do not state {promised}")
    request = plan.requests[name]
    stated = {part: claim[part] for part in ("calibration", "basis", "proof")}
    rebuilt = Guarantee(request.guarantee.unit, promised, **stated, notes=tuple(claim["notes"]))
    if isinstance(request, CountRequest):
        rebuilt = request.guarantee
    odd = sorted(part for part, value in rebuilt.to_dict().items() if claim.get(part) != value)
    if odd or claim.keys() != rebuilt.to_dict().keys():
        raise RefutedError(f"its words are not those of what it promises: {', '.join(odd) or 'more is said'}")
    return f"{claim['definition']}, {claim['basis']}; it is what was paid, and its parts add up to it"


def _mechanisms(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    if "tables" not in about["parameters"]:
        _constants(about)
    unit, words = plan.requests[name].guarantee.unit, []
    for table in about["parameters"]["tables"]:
        epsilon = stated_loss(table["loss"]).amounts["epsilon"]
        if not isinstance(unit, Establishments):
            needed = (unit.theta if isinstance(unit, EstablishmentNodes) else 1) / epsilon
            law = "DiscreteLaplace" if table["calibration"] == "tight" else "Laplace"
            if table["noise"]["law"] != law or not table["noise"]["width"] >= needed:
                raise RefutedError(f"{table['mechanism']} needs {law} noise of width {float(needed):.6g} and has less")
            words.append(f"{table['mechanism']}: {law} noise of width {float(needed):.6g}, as the definition needs")
            continue
        for mechanism in stated(table, unit):
            verdict = verify(mechanism)
            if not verdict.holds:
                raise RefutedError(f"{mechanism.name} loses {verdict.worst_loss:.6g}, more than {verdict.claimed}")
            words.append(f"{mechanism.name}: worst loss {verdict.worst_loss:.6g} of {verdict.claimed}")
    return "; ".join(dict.fromkeys(words))


def _constants(about: Mapping[str, Any]) -> NoReturn:
    """Of models and summaries the losses of the parts are added up; their scales rest on a proof and on the design."""
    constants, promised = about["parameters"]["mechanism"], stated_loss(about["guarantee"]["loss"])
    proof = about["guarantee"]["proof"]
    if "parts" not in constants:
        raise UncheckedError(f"its noise rests on {proof} and was not computed again")
    parts = total([*(stated_loss(part["loss"]) for part in constants["parts"]), stated_loss(constants["squares"])])
    if parts.to_dict() != promised.to_dict():
        raise RefutedError(f"{promised} is claimed, its parts add up to {parts}")
    raise UncheckedError(
        f"its {len(constants['parts']) + 1} parts add up to {promised}; that their noise suffices rests on {proof} and "
        "on the design of the model, and was not computed again"
    )


def _description(plan: Rebuilt, name: str) -> str:
    """The words about sampler and columns are those that this version writes."""
    about, request = plan.about(name), plan.requests[name]
    counts = isinstance(request, CountRequest)
    columns = (
        request.columns
        if isinstance(request, CountRequest)
        else {column: COLUMNS.get(column) for column in about["columns"]}
    )
    expected = {"sampler": SAMPLER if counts else SUMMARY_SAMPLER, "columns": columns, "format": ABOUT_FORMAT}
    odd = sorted(part for part, value in expected.items() if about[part] != value)
    odd += sorted(about.keys() ^ ABOUT_KEYS)
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    if not odd and text.encode() != (plan.folder / name / ABOUT).read_bytes():
        odd = ["the way it is written"]
    if odd:
        raise RefutedError(f"{ABOUT} says something else than discreet writes: {', '.join(odd)}")
    return "sampler and columns in the words that discreet writes"


def _rows(plan: Rebuilt, name: str) -> str:
    return check_rows(plan.requests[name], plan.folder / name, plan.about(name))


def _intervals(plan: Rebuilt, name: str) -> str:
    return check_intervals(plan.requests[name], plan.folder / name, plan.about(name))


def _basic(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    return check_basic(plan.requests[name], plan.folder / name, about, same_code=_same_code(about))


def _report(plan: Rebuilt) -> str:
    """The report made again from the bundle; it has the same bytes whenever the same code makes it."""
    if not all(_same_code(plan.about(name)) for name in plan.releases):
        raise UncheckedError("not proved by this check: other code than this made the releases it is about")
    entries, _, budgets = _lines(plan.folder)
    published = {str(entry.release): entry for entry in entries if entry.kind == "publish"}
    asked = plan.file.plan
    budget = budgets[asked.budget.dataset, asked.unit.unit().key]
    head = Head(**json.loads((plan.folder / LEDGER).read_bytes())["head"])
    if plan.report(published, budget=budget, head=head) != plan.packed_report():
        raise RefutedError("it is not the report that this code makes of the bundle")
    return "made again from the bundle: the same bytes"


def _draws(plan: Rebuilt) -> str:
    counts = {isinstance(request, CountRequest) for request in plan.requests.values()}
    claims = [
        *(["that the counts are the true ones plus this noise"] if True in counts else []),
        *(["that the answers are those of the data plus this noise"] if False in counts else []),
        "that the noise came from the operating system",
        *(["that no workplace cell was left out"] if True in counts else []),
    ]
    raise UncheckedError(f"{', '.join(claims[:-1])} and {claims[-1]}, cannot be seen without the data")


def _ledger(folder: Path, where: str | Path | None) -> str:
    if where is None:
        raise UncheckedError("that these are the lines of the agency's ledger: give it with --ledger")
    entries = _lines(folder)[0]
    head = json.loads((folder / LEDGER).read_bytes())["head"]["hash"]
    with Ledger.open(where, read_only=True) as ledger:
        verdict = ledger.verify(contains=[head, *(entry.hash for entry in entries)])
    if not verdict:
        raise RefutedError(f"{verdict}")
    return f"{verdict}; it contains every line of the bundle"


def _charge(folder: Path, about: Mapping[str, Any]) -> Entry:
    seal = about["ledger"]["hash"]
    found = [entry for entry in _lines(folder)[0] if entry.hash == seal and entry.kind == "charge"]
    if not found or found[0].release != about["name"] or found[0].dataset != about["dataset"]:
        raise RefutedError(f"no line of the ledger paid for it ({seal[:12]}...)")
    return found[0]


def _shown(loss: Loss) -> Iterator[str]:
    yield from (f"{name}={shown(amount)}" for name, amount in loss.amounts.items())


def _same_code(about: Mapping[str, Any]) -> bool:
    return bool(about["code"]["source"] == source_hash())


def _code(plan: Rebuilt, name: str) -> str:
    code = plan.about(name)["code"]
    if code["source"] != source_hash():
        raise UncheckedError(f"it names discreet {code['discreet']}, which is other code than this")
    if code["discreet"] != version("discreet"):
        raise RefutedError(f"it names discreet {code['discreet']}, whose source is that of {version('discreet')}")
    return f"it names discreet {code['discreet']}, this very code"
