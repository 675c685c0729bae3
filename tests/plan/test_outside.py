"""What a mechanism from outside may say of itself, in every file; and that nothing fails after the charge."""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dc
from discreet.privacy.proofs import stamp
from discreet.release import files
from discreet.review import verdict as reviewer
from discreet.tables.mechanisms import outside, registry
from discreet.words.errors import PrivacyError
from faults_of import about

EXERCISE = Path(__file__).with_name("exercise")
Command = Callable[..., tuple[int, str, str]]
SOURCE = EXERCISE.joinpath("power_law.py").read_text(encoding="utf-8").replace('"power-law"', '"theirs"')
PUBLISHED = SOURCE.replace('    basis: ClassVar[Basis] = "proved"\n', "").replace("power_law.md", "trust me")
WEAK = PUBLISHED.replace("- 1\n", "* 7\n")  # a loss of 14 at epsilon 2


OWN_SCALE = "\n    def scale(self, largest):\n        return SmoothNoise.scale(self, largest)\n"


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Writes a module from outside, with a proof if it has a text, and gives its class; forgotten after the test."""
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def made(source: str, *, proof: str | None = None) -> Any:
        sys.modules.pop("theirs", None)
        importlib.invalidate_caches()
        (site / "theirs.py").write_text(source, encoding="utf-8")
        if proof is not None:
            (site / "power_law.md").write_text(proof, encoding="utf-8")
            stamp(site / "power_law.md", site)
        return importlib.import_module("theirs").PowerLaw

    yield made
    sys.modules.pop("theirs", None)


@pytest.fixture
def session() -> dc.Session:
    rows = pa.table({"workplace": [1, 1, 2, 3], "place": ["a", "a", "a", "b"], "worker": [1, 2, 3, 4]})
    jobs = dc.read_jobs(rows, schema=dc.Schema(workplace_attributes=["place"]))
    return dc.Session(jobs, unit=dc.Establishments("0.1"), budget=8, seed=1)


def test_proved_is_not_inherited(theirs: Callable[..., Any], session: dc.Session) -> None:
    registry.register(theirs(PUBLISHED))
    check = session.count("place").check(epsilon=2, mechanism="theirs")
    assert check.guarantee.basis == "as published"
    assert all("basis" in vars(kind) for kind in registry.OURS)  # none of ours inherits it either
    for kind in registry.OURS:
        assert type("Theirs", (kind,), {"__slots__": ()}).basis == "as published"


@pytest.mark.parametrize(
    ("source", "proof"),
    [
        (SOURCE, None),
        (SOURCE, "covers: other.py sha256:"),
        (SOURCE, "A proof that covers nothing."),
        (SOURCE.replace("- 1\n", "* 7\n"), "covers: theirs.py sha256:"),
        (SOURCE + OWN_SCALE, "covers: theirs.py sha256:"),
        (SOURCE + "\n    def draw(self, count, largest, source):\n        return count\n", "covers: theirs.py sha256:"),
        (SOURCE.replace("if p <= 2:", "if p <= 1e9:"), "covers: theirs.py sha256:"),
    ],
    ids=["no-file", "another-file", "nothing", "too-little", "own-scale", "own-draw", "refuses-all"],
)
def test_proved_needs_a_proof_that_covers_and_a_complete_check(
    theirs: Callable[..., Any], source: str, proof: str | None
) -> None:
    if proof is not None and "other.py" in proof:
        theirs(source)
        (Path(sys.modules["theirs"].__file__ or "").parent / "other.py").write_text("x = 1\n", encoding="utf-8")
    kind = theirs(source, proof=proof)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(kind)
    assert "theirs" not in registry.names()


WORDS = {
    "another word": "'Proved'",
    "no word": "True",
    "a property": "property(lambda self: 'proved')",
    "a word that compares as none": "type('Word', (str,), {'__eq__': lambda *_: False, '__hash__': None})('proved')",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_basis_is_one_of_the_words_that_there_are(theirs: Callable[..., Any], word: str, session: dc.Session) -> None:
    """Red before: the last was sold as proved without a proof file, and the first went into releases."""
    kind = theirs(SOURCE.replace(' = "proved"', f" = {WORDS[word]}"))
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(kind)
    assert "theirs" not in registry.names()
    later = registry.register(theirs(PUBLISHED))
    later.basis = vars(kind)["basis"]  # after it was looked at
    with pytest.raises(PrivacyError, check=about("mechanism")):
        session.count("place").release(epsilon=2, mechanism="theirs")
    assert session.remaining == dc.Pure(8)


def test_a_proof_covers_the_code_as_it_is(theirs: Callable[..., Any], session: dc.Session) -> None:
    kind = registry.register(theirs(SOURCE, proof="covers: theirs.py sha256:"))
    assert session.count("place").check(epsilon=2, mechanism="theirs").guarantee.basis == "proved"
    file = outside.source(kind)
    file.write_text(file.read_text(encoding="utf-8").replace("- 1\n", "- 1.5\n"), encoding="utf-8")
    assert session.count("place").check(epsilon=2, mechanism="theirs").guarantee.basis == "as published"


@pytest.mark.parametrize("covered", [False, True])
def test_a_proof_covers_the_files_of_all_classes_that_one_is_built_on(
    theirs: Callable[..., Any], tmp_path: Path, covered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "from discreet.tables.mechanisms.smooth import SmoothNoise\n\n"
    base += "class Shared(SmoothNoise):\n    __slots__ = ()\n"
    (tmp_path / "site" / "shared_base.py").write_text(base, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "shared_base", raising=False)
    source = SOURCE.replace("PowerLaw(SmoothNoise)", "PowerLaw(Shared)")
    source = source.replace(
        "from discreet.noise.law import", "from shared_base import Shared\n\nfrom discreet.noise.law import"
    )
    kind = theirs(source, proof="covers: theirs.py sha256:" + "\ncovers: shared_base.py sha256:" * covered)
    if covered:
        assert registry.register(kind) is kind
        return
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(kind)


def test_a_broken_promise_is_not_sold(theirs: Callable[..., Any], session: dc.Session) -> None:
    registry.register(theirs(WEAK))
    with pytest.raises(PrivacyError, check=about("mechanism")):
        session.count("place").release(epsilon=2, mechanism="theirs")
    assert session.remaining == dc.Pure(8)


OTHERS = {
    "alpha": 'replace(ask, unit=Establishments("0.001"))',
    "substitution": "replace(ask, unit=replace(ask.unit, substitution=False))",
    "epsilon": "replace(ask, loss=Pure(ask.loss.epsilon * 2))",
    "ours, alpha": 'PolynomialNoise.calibrate(replace(ask, unit=Establishments("0.001")))',
    "fewer counts": "JointPolynomialNoise.calibrate(replace(ask, cells=2))",
    "more counts": "PolynomialNoise.calibrate(replace(ask, cells=1))",
}


@pytest.mark.parametrize("of_all", [True, False], ids=["always", "off the grid of registration"])
@pytest.mark.parametrize("basis", [SOURCE, PUBLISHED], ids=["proved", "as published"])
@pytest.mark.parametrize("other", OTHERS)
def test_noise_for_another_request_is_not_sold_as_noise_for_this_one(
    theirs: Callable[..., Any], other: str, basis: str, of_all: bool
) -> None:
    """Its own promise holds, and would be written as the promise of what was asked."""
    head = (
        "from dataclasses import dataclass, replace\n"
        "from discreet.privacy.losses import Pure\nfrom discreet.privacy.units import Establishments\n"
        "from discreet.tables.mechanisms.polynomial import PolynomialNoise\n"
        "from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise\n"
    )
    made = f"        {'ask =' if other in ('alpha', 'substitution', 'epsilon') else 'return'} {OTHERS[other]}\n"
    when = "" if of_all else "        if ask.unit.alpha == ask.unit.alpha.__class__('0.07'):\n    "
    several = "counts" in other
    source = basis.replace("from dataclasses import dataclass\n", head)
    source = source.replace("        p = ask", f"{when}{made}        p = ask")
    source = source.replace(
        "    laws:", f"    vector: ClassVar[bool] = {several}\n    halves: ClassVar[bool] = False\n    laws:"
    )
    proof = "covers: theirs.py sha256:" if basis == SOURCE else None
    rows = pa.table({"workplace": [1, 1, 2], "place": ["a", "a", "b"], "worker": [1, 2, 3], "kind": ["x", "y", "z"]})
    jobs = dc.read_jobs(
        rows, schema=dc.Schema(workplace_attributes=["place"], worker_attributes={"kind": ["x", "y", "z"]})
    )
    unit = dc.Establishments("0.07", substitution=other == "substitution")
    session = dc.Session(jobs, unit=unit, budget=8, seed=1)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(theirs(source, proof=proof))
        session.count(["place", "kind"] if several else "place").check(epsilon=4, mechanism="theirs")
    assert session.remaining == dc.Pure(8)


def test_every_page_says_as_published(theirs: Callable[..., Any], plan: Path, command: Command) -> None:
    registry.register(theirs(PUBLISHED))
    asked(plan)
    code, _, err = command("run", plan)
    assert code == 0, err
    folder = plan.parent / "out"
    stated = json.loads((folder / "places" / "release.json").read_text(encoding="utf-8"))["guarantee"]
    assert stated["basis"] == "as published" and "NOT PROVED" in stated["sentence"]
    page = re.sub(r"<[^>]+>", "", (folder / "report.html").read_text(encoding="utf-8"))
    assert "NOT PROVED" in page and "proved (trust me)" not in page
    code, out, err = command("verify", folder / "bundle.zip")
    assert code == 0 and "as published" in out, out + err
    # The class that only chooses constants is checked completely, so the reviewer says so of its loss.
    assert "theirs: worst loss" in out


def test_a_search_alone_is_not_checked(theirs: Callable[..., Any], plan: Path, command: Command) -> None:
    registry.register(theirs(PUBLISHED + OWN_SCALE))
    asked(plan)
    assert command("run", plan)[0] == 0
    found = {one.subject: one for one in reviewer.verify_bundle(plan.parent / "out" / "bundle.zip")}
    assert found["places: mechanisms"].state == "not checked" and found["places: guarantee"].holds
    code, out, _ = command("audit", "verify", "--mechanism", "theirs", "--epsilon", 2)
    assert (code, "searched, nothing found" in out, "holds" in out) == (1, True, False)
    assert "sure" not in out, "a search bounds nothing"


def test_constants_that_are_read_for_another_request_are_refuted(
    theirs: Callable[..., Any], plan: Path, command: Command
) -> None:
    own = (
        "\n    @classmethod\n    def stated(cls, noise, *, unit, loss, calibration):\n"
        "        other = type(unit)('0.001')\n"
        "        return SmoothNoise.stated.__func__(cls, noise, unit=other, loss=loss, calibration=calibration)\n"
    )
    registry.register(theirs(PUBLISHED + own))
    asked(plan)
    assert command("run", plan)[0] == 0
    found = {one.subject: one for one in reviewer.verify_bundle(plan.parent / "out" / "bundle.zip")}
    assert found["places: mechanisms"].wrong and "1/1000" in found["places: mechanisms"].words


def test_an_older_bundle_that_says_proved_gets_an_advisory(
    theirs: Callable[..., Any], plan: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(theirs(PUBLISHED))
    asked(plan)
    with monkeypatch.context() as before:
        before.setattr(outside, "basis_of", lambda mechanism: "proved")
        assert command("run", plan)[0] == 0
    monkeypatch.setattr(reviewer, "_same_code", lambda about: False)
    found = {one.subject: one for one in reviewer.verify_bundle(plan.parent / "out" / "bundle.zip")}
    assert found["places: guarantee"].state == "not checked" and not [one for one in found.values() if one.wrong]
    code, out, err = command("run", plan)  # and what was paid for is there, and is not paid for again
    assert code == 0, out + err


def test_one_that_was_paid_for_as_published_does_not_become_proved_by_a_word(
    theirs: Callable[..., Any], plan: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(theirs(PUBLISHED))
    asked(plan)
    assert command("run", plan)[0] == 0
    honest = reviewer._guarantee

    def forged(whole: Any, name: str) -> str:
        said = replace(whole.requests[name].guarantee, basis="proved").to_dict()
        about = {**whole.about(name), "guarantee": said}
        with monkeypatch.context() as read:
            read.setattr(reviewer.Rebuilt, "about", lambda self, name: about)
            return honest(whole, name)

    monkeypatch.setattr(reviewer, "_guarantee", forged)
    found = {one.subject: one for one in reviewer.verify_bundle(plan.parent / "out" / "bundle.zip")}
    assert found["places: guarantee"].wrong and "basis" in found["places: guarantee"].words


def asked(plan: Path) -> None:
    """One release, with their mechanism."""
    head, first, *_, output = re.split(
        r"(?=^\[\[release|^\[output)", plan.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    plan.write_text(head + first.replace("epsilon = 2", 'epsilon = 2\nmechanism = "theirs"') + output, encoding="utf-8")


def sourceless() -> Any:
    """A class as a notebook or `python -c` has it."""
    module = types.ModuleType("nowhere")
    sys.modules["nowhere"] = module
    exec(compile(PUBLISHED, "<input>", "exec"), vars(module))
    return vars(module)["PowerLaw"]


def test_a_class_without_a_file_is_refused_before_it_is_known() -> None:
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(sourceless())
    sys.modules.pop("nowhere")
    assert "theirs" not in registry.names()


def test_one_that_says_it_is_ours_has_no_file(theirs: Callable[..., Any]) -> None:
    kind = theirs(PUBLISHED)
    kind.__module__ = registry.PolynomialNoise.__module__
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(kind)


CASES = [(name, lost) for name in registry.names() for lost in ("file", "version")]


@pytest.mark.parametrize(("name", "lost"), [*CASES, ("theirs", "file"), ("theirs", "version"), ("theirs", "constants")])
def test_what_writing_needs_is_asked_for_before_the_charge(
    name: str,
    lost: str,
    theirs: Callable[..., Any],
    session: dc.Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For every mechanism: if a file or a version cannot be had afterwards, nothing was charged."""
    kind = registry.register(theirs(PUBLISHED))
    if name in registry.BASELINES:
        unit = dc.EstablishmentNodes(9) if name == "node-truncation" else dc.Workers()
        session = dc.Session(session.jobs, unit=unit, budget=8, seed=1)
    if registry.named(name).needs_delta:
        session = dc.Session(session.jobs, unit=dc.Establishments("0.1"), budget=dc.Approximate(8, "0.1"), seed=1)
    account, whole = session.account, session.remaining
    ask: dict[str, Any] = {"epsilon": 2, "mechanism": name}
    ask |= {"delta": "0.01"} if registry.named(name).needs_delta else {}
    try:
        session.count().offer(**ask)
    except PrivacyError:
        assert name == "down-sensitivity"  # which is for no unit
        return
    with monkeypatch.context() as broken:
        if lost == "file":
            outside.source(kind).unlink()
        elif lost == "constants":
            broken.setattr(kind, "constants", lambda self: {"law": object()})
        else:
            files.code_of.cache_clear()
            broken.setattr(files, "version", _raises)
        with pytest.raises(Exception):  # noqa: B017
            account.publish(session.count().offer(**ask), session.jobs, tmp_path / "out", name="one")
        assert account.remaining == whole and not (tmp_path / "out").exists()
    if lost == "version":  # an offer that was made before knows all that is written
        offer = session.count().offer(**ask)
        monkeypatch.setattr(files, "version", _raises)
        account.publish(offer, session.jobs, tmp_path / "out", name="one")
        assert (tmp_path / "out" / "release.json").is_file()


def _raises(name: str) -> str:
    raise LookupError(name)


def test_what_an_offer_of_any_kind_needs_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models, summaries, flows and all others: there is no offer whose manifest could not be written."""
    from discreet.release.offer import Offer

    files.code_of.cache_clear()
    monkeypatch.setattr(files, "version", _raises)
    with pytest.raises(LookupError):
        Offer(dc.Guarantee(dc.AnyRow(), dc.Pure(1)), {}, lambda: None, lambda data: data, lambda data, source: data)  # type: ignore[arg-type, return-value]
