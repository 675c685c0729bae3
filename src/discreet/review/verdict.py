"""Whether a reviewer's bundle is what it claims: files, ledger lines, arithmetic and mechanisms are all checked again.

Nothing in the bundle is believed. Hashes are taken again, seals recomputed, sums redone, the request priced again, the
worst loss of the stated mechanisms found by `privacy.verify`, intervals, basic form and report made anew. Claims that a
bundle cannot decide are listed as not checked. No confidential data are needed.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from discreet.archive.findings import Finding, RefutedError, UncheckedError
from discreet.archive.packing import MANIFEST, check_packing
from discreet.archive.unpacking import opened, text, unpack
from discreet.ledger import Ledger
from discreet.ledger.anchors import Anchor
from discreet.ledger.draws import DrawNumber, current
from discreet.noise.kept import LongTable, Unsolved, solving_at_most
from discreet.plan.bundle import FORMATS
from discreet.plan.kinds.registry import kind_of
from discreet.plan.shape import RELEASES
from discreet.privacy.guarantee import is_proved
from discreet.privacy.loss_verdict import LossVerdict
from discreet.privacy.losses import Loss, shown, total
from discreet.privacy.units import EstablishmentNodes, Establishments, first_said
from discreet.privacy.verify import verify
from discreet.release.code import computing_hash, source_hash
from discreet.release.files import FORMAT as ABOUT_FORMAT
from discreet.release.files import MANIFEST as ABOUT
from discreet.release.files import SYSTEM
from discreet.review.constants import stated, stated_loss
from discreet.review.rebuild import Rebuilt
from discreet.review.recompute import check_agency, check_basic, check_cells, check_intervals, check_rows
from discreet.review.tables import check_tables
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import sources
from discreet.words.errors import PlanError
from discreet.words.progress import Progress, silent

MALFORMED = (
    *(LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError, OSError, EOFError),
    *(zipfile.BadZipFile, zlib.error),
)
"""Errors that reading a file from elsewhere may raise; endless brackets are a `RuntimeError`."""

MOST_SECONDS = 60.0
"""A reviewer solves no table of noise that may take longer: a stranger's bundle chooses alpha and epsilon."""

ABOUT_KEYS = {
    *("format", "name", "dataset", "guarantee", "parameters", "columns", "ledger", "sampler", "randomness", "code"),
    "files",
}


def verify_bundle(path: str | Path, *, ledger: str | Path | None = None, progress: Progress = silent) -> list[Finding]:
    """Check a bundle, and with `ledger` also that its lines are in that ledger."""
    path = Path(path)
    if not path.is_file():
        raise PlanError(
            f"There is no file {str(path)!r}.",
            "`discreet run` writes a bundle.zip.",
            "Name one that is there.",
            about="bundle",
        )
    if ledger is not None:
        Ledger.open(ledger, read_only=True).close()  # one that cannot be read is no fault of the bundle
    with TemporaryDirectory(prefix="discreet-verify-") as scratch:
        folder = Path(scratch)
        try:
            about, there, rows = _unpacked(path, folder)
        except RefutedError as refutation:
            return [Finding("files", "WRONG", str(refutation))]
        plan = Rebuilt(folder, tuple(about["releases"]), tuple(rows))
        checks: list[tuple[str, Callable[[], str]]] = [
            ("bundle", partial(check_packing, path)),
            ("files", partial(_files, folder, there, about["files"])),
            ("ledger lines", lambda: str(plan.lines)),
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
            if plan.compares(name):
                checks.append((f"{name}: agency's table", partial(_agency, plan, name)))
        checks += [
            ("workplace cells", lambda: check_cells(plan.requests, plan.folder)),
            *([("alarms", plan.check_alarms)] if plan.alarmed else []),
            ("report.html", partial(_report, plan)),
            ("ledger", partial(_ledger, plan, ledger)),
            ("draws", partial(_draws, plan)),
        ]
        try:
            with solving_at_most(MOST_SECONDS):
                found = []
                for done, (subject, check) in enumerate(checks):
                    progress(subject, done / len(checks))
                    found.append(_found(subject, check))
                return found
        except LongTable as work:
            raise _too_long(path, work) from None


def _too_long(path: Path, work: LongTable) -> PlanError:
    return PlanError(
        f"{path.name} was not reviewed: its noise has a table that is not kept here, and solving it takes up to "
        f"{work.seconds / 60:,.0f} minutes.",
        f"A review solves tables of at most {MOST_SECONDS:.0f} seconds.",
        "If you trust its alpha and epsilon, solve and keep the table first with `discreet audit verify --mechanism "
        "ladder --alpha ... --epsilon ...`. Then verify again.",
        about="bundle",
    )


def _found(subject: str, check: Callable[[], str]) -> Finding:
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
        f"{str(path)!r} is not a reviewer's bundle of this version.",
        "`discreet run` writes one: bundle.zip.",
        "Name it.",
        about="bundle",
    )


def _unpacked(path: Path, folder: Path) -> tuple[dict[str, Any], list[str], list[int]]:
    """The bundle's own description, the names of the files that were unpacked into `folder`, the rows of its tables."""
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
            releases = [str(name) for name in about["releases"]] if about["format"] in FORMATS else []
        except MALFORMED:
            releases = []
        if not releases or not all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) for name in releases):
            raise _no_bundle(path)
        _check_releases(releases, packed.namelist())
        try:
            there = unpack(packed, folder)
        except MALFORMED:
            raise RefutedError("the bundle cannot be unpacked") from None
        rows = check_tables(packed, folder)
    return {"files": {}, **about, "releases": releases}, there, rows


def _check_releases(releases: list[str], there: list[str]) -> None:
    """Refuse names before anything is done for each of them."""
    if len(releases) > RELEASES:
        raise RefutedError(f"it lists {len(releases):,} releases. A plan has at most {RELEASES:,}")
    if len({*releases}) < len(releases):
        raise RefutedError("it lists a release twice")
    folders = {name.partition("/")[0] for name in there if "/" in name}
    for name in releases:
        if name not in folders:
            raise RefutedError(f"it lists the release {name!r}, which has no file")


def _files(folder: Path, there: list[str], listed: Mapping[str, str]) -> str:
    if len(set(there)) < len(there) or {*there} != {*listed, MANIFEST}:
        odd = sorted({*there} ^ {*listed, MANIFEST}) or sorted(name for name in there if there.count(name) > 1)
        raise RefutedError(f"the list of files and the files differ: {odd[0]!r}")
    for name, expected in listed.items():
        with (folder / name).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != expected:
                raise RefutedError(f"{name!r} is not the file that was packed")
    return f"{len(listed)} files, every SHA-256 as listed"


def _publication(plan: Rebuilt, name: str, listed: Mapping[str, str]) -> str:
    about = plan.about(name)
    charge = plan.lines.charge(about)
    published = [entry for entry in plan.lines.publications.get(name, ()) if entry.payload["charge"] == charge.seq]
    if len(published) != 1:
        raise RefutedError(f"the charge in entry {charge.seq} has {len(published)} publications, not one")
    drawn = current(charge, [entry for entry in plan.lines.entries if entry.kind == "draw"])
    if drawn is not None and DrawNumber(str(published[0].payload.get("draw"))).kept != drawn:
        raise RefutedError(
            f"entry {published[0].seq} publishes another draw than the last that entry {charge.seq} paid"
        )
    files = {path.removeprefix(f"{name}/"): digest for path, digest in listed.items() if path.startswith(f"{name}/")}
    if files != published[0].payload["files"]:
        raise RefutedError(f"the files are not those published in entry {published[0].seq}")
    if {path: digest for path, digest in files.items() if path != ABOUT} != about["files"]:
        raise RefutedError(f"{ABOUT} lists other files")
    if _asked(about["parameters"]) != charge.payload.get("details"):
        raise RefutedError(f"{ABOUT} states other parameters than entry {charge.seq} paid for")
    return f"{len(files)} files as published in entry {published[0].seq}, paid for in entry {charge.seq}"


def _request(plan: Rebuilt) -> str:
    unpublished = plan.lines.publications.keys() - {*plan.releases}
    others = f"; the ledger also published {', '.join(sorted(unpublished))}, not in this bundle" if unpublished else ""
    return plan.check_request() + others


def _asked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without the constants that the mechanism adds: what the ledger was asked to pay for."""
    asked = {name: value for name, value in parameters.items() if name != "mechanism"}
    if "tables" in asked:
        asked["tables"] = [{k: v for k, v in table.items() if k != "noise"} for table in asked["tables"]]
    return asked


def _guarantee(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    claim, charge = about["guarantee"], plan.lines.charge(about)
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
    rebuilt = plan.requests[name].promise(claim, promised)
    weaker = rebuilt.basis
    if claim["basis"] == "proved" and not is_proved(weaker) and "basis" not in charge.payload["details"]:
        rebuilt = replace(rebuilt, basis="proved")  # as it was paid for
    found = rebuilt.to_dict()
    if claim["sentence"] == str(rebuilt).replace(str(rebuilt.unit), first_said(rebuilt.unit)):
        found["sentence"] = claim["sentence"]
    odd = sorted(part for part, value in found.items() if claim.get(part) != value)
    if odd or claim.keys() != found.keys():
        raise RefutedError(f"its words are not those of what it promises: {', '.join(odd) or 'more is said'}")
    if weaker != claim["basis"]:
        raise UncheckedError(f"it says proved, as {name!r} did when it was released. Today its ground is {weaker}")
    return f"{claim['definition']}, {claim['basis']}; it is what was paid, and its parts add up to it"


def _mechanisms(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    if "tables" not in about["parameters"]:
        _constants(about)
    unit = plan.requests[name].guarantee.unit
    words: list[str] = []
    unproved: list[str] = []
    for table in about["parameters"]["tables"]:
        epsilon = stated_loss(table["loss"]).amounts["epsilon"]
        if not isinstance(unit, Establishments):
            needed = (unit.theta if isinstance(unit, EstablishmentNodes) else 1) / epsilon
            law = "DiscreteLaplace" if table["calibration"] == "tight" else "Laplace"
            if table["noise"]["law"] != law or not table["noise"]["width"] >= needed:
                raise RefutedError(f"{table['mechanism']} needs {law} noise of width {float(needed):.6g} and has less")
            words.append(f"{table['mechanism']}: {law} noise of width {float(needed):.6g}, as the definition needs")
            continue
        for mechanism, verdict in _examined(table, unit):
            if verdict.drawn == "not as stated":
                raise RefutedError(f"{mechanism.name} draws integers that have other probabilities than it states")
            if verdict.violated:
                raise RefutedError(f"{mechanism.name} loses {verdict.worst_loss:.6g}, more than {verdict.claimed}")
            words.append(f"{mechanism.name}: worst loss {verdict.worst_loss:.6g} of {verdict.claimed}")
            if not verdict.holds:
                unproved.append(f"{words.pop()}: {verdict.outcome}, and no check that is complete")
    if unproved:
        raise UncheckedError("; ".join(dict.fromkeys(words + unproved)))
    return "; ".join(dict.fromkeys(words))


def _examined(table: Mapping[str, Any], unit: Establishments) -> list[tuple[Mechanism, LossVerdict]]:
    """The mechanisms of a table with their exact losses."""
    try:
        return [(mechanism, verify(mechanism)) for mechanism in stated(table, unit)]
    except Unsolved:
        words = f"{table['mechanism']} has no noise with the stated constants that loses no more than "
        raise RefutedError(f"{words}{stated_loss(table['loss'])}") from None


def _constants(about: Mapping[str, Any]) -> NoReturn:
    """For models and summaries the parts' losses are added up; their scales depend on a proof and the design."""
    constants, promised = about["parameters"]["mechanism"], stated_loss(about["guarantee"]["loss"])
    proof = about["guarantee"]["proof"]
    if "parts" not in constants:
        raise UncheckedError(f"its noise rests on {proof} and was not computed again")
    losses = [part["loss"] for part in (*constants["parts"], *constants.get("products", ()))]
    losses += [constants["squares"]] if "squares" in constants else []  # with lags, products take their place
    ways = [losses]
    if "otherwise" in constants:  # after a look, which is the first part, either the others were drawn or these
        other = constants["otherwise"]
        ways.append([losses[0], *(part["loss"] for part in other["parts"]), other["squares"]])
    for way in ways:
        parts = total([stated_loss(each) for each in way])
        if parts.to_dict() != promised.to_dict():
            raise RefutedError(f"{promised} is claimed, its parts add up to {parts}")
    raise UncheckedError(
        f"its {len(losses)} parts add up to {promised}; that their noise suffices rests on {proof} and "
        "on the design of the model, and was not computed again"
    )


def _description(plan: Rebuilt, name: str) -> str:
    """The words about sampler and columns are those that this version writes."""
    about, request = plan.about(name), plan.requests[name]
    expected = {"sampler": request.sampler, "columns": request.described(about["columns"]), "format": ABOUT_FORMAT}
    odd = sorted(part for part, value in expected.items() if about[part] != value)
    odd += sorted(about.keys() ^ ABOUT_KEYS)
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    if not odd and text.encode() != (plan.folder / name / ABOUT).read_bytes():
        odd = ["the way it is written"]
    if odd:
        raise RefutedError(f"{ABOUT} differs from what discreet writes: {', '.join(odd)}")
    return "sampler and columns in the words that discreet writes"


def _rows(plan: Rebuilt, name: str) -> str:
    return check_rows(plan.requests[name], plan.folder / name, plan.about(name))


def _intervals(plan: Rebuilt, name: str) -> str:
    return check_intervals(plan.requests[name], plan.folder / name, plan.about(name), read=plan.recomputed(name))


def _basic(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    request, read = plan.requests[name], plan.recomputed(name)
    return check_basic(request, plan.folder / name, about, same_code=_same_code(about), read=read)


def _agency(plan: Rebuilt, name: str) -> str:
    return check_agency(plan.requests[name], plan.folder / name)


def _report(plan: Rebuilt) -> str:
    """The report made again from the bundle; it has the same bytes whenever the same code makes it."""
    every_word = all(_same_words(plan.about(name)["code"]) for name in plan.releases)
    try:
        same = plan.report() == plan.packed_report()
    except (RefutedError, *MALFORMED):
        if every_word:
            raise
        same = False
    if same:
        return "made again from the bundle: the same bytes"
    if every_word:
        raise RefutedError("it is not the report that this code makes of the bundle")
    raise UncheckedError("not proved by this check: code with other words than this made the releases it is about")


def _draws(plan: Rebuilt) -> str:
    counts = {kind_of(request.release).of_jobs for request in plan.requests.values()}
    claims = [
        *(["that the counts are the true ones plus this noise"] if True in counts else []),
        *(["that the answers are those of the data plus this noise"] if False in counts else []),
        "that the noise came from the operating system",
        *(["that no workplace cell was left out"] if True in counts else []),
    ]
    raise UncheckedError(f"{', '.join(claims[:-1])} and {claims[-1]}, cannot be seen without the data")


def _ledger(plan: Rebuilt, where: str | Path | None) -> str:
    if where is None:
        raise UncheckedError("that these are the lines of the agency's ledger: give it with --ledger")
    lines = plan.lines
    with Ledger.open(where, read_only=True) as ledger:
        verdict = ledger.verify(contains=[lines.head, *lines.entries])
        known = [] if verdict or lines.ledger is None else [Anchor(lines.ledger, entry) for entry in lines.entries]
        if known and ledger.verify() and ledger.declares_lost(known):
            raise UncheckedError("its lines: the ledger given declares them lost, and counts them as spent")
        if verdict and lines.ledger not in (None, ledger.identity):
            raise RefutedError("the bundle names a ledger with another first line")
    if not verdict:
        raise RefutedError(f"{verdict}")
    return f"{verdict}; it contains every line of the bundle"


def _shown(loss: Loss) -> Iterator[str]:
    yield from (f"{name}={shown(amount)}" for name, amount in loss.amounts.items())


def _same_words(code: Mapping[str, Any]) -> bool:
    return bool(code["source"] == source_hash(sources()))


def _same_code(about: Mapping[str, Any]) -> bool:
    """Whether this code computed the release, whatever it says of itself; earlier versions tell the whole alone."""
    code = about["code"]
    return _same_words(code) or bool(code.get("computes") == computing_hash(sources()))


def _code(plan: Rebuilt, name: str) -> str:
    about = plan.about(name)
    code, named = about["code"], f"it names discreet {about['code']['discreet']}"
    if not _same_code(about):
        whole = "" if "computes" in code else ", or the same with other words: earlier versions do not tell them apart"
        raise UncheckedError(f"{named}, which is other code than this{whole}")
    if not _same_words(code):
        return f"{named}; what computes is this code, and words differ"
    if code["discreet"] != version("discreet"):
        raise RefutedError(f"{named}, whose source is that of {version('discreet')}")
    return f"{named}, this very code"
