"""Mechanisms of other packages: their source, whether "proved" is true of them, and what they must be able to state.

"proved" takes two things. A proof file lies beside the code: `proof` is its name, and its `covers:` lines have the hash
of every file of that package that the class is built on (`discreet.privacy.proofs`). And the complete check of `verify`
holds: for some requests when the mechanism is registered, and for the one that is offered. It is complete for classes
that choose constants for noise of ours (`privacy.closed_forms`). Without both the word is "as published".
"""

from __future__ import annotations

import inspect
import json
import sys
from itertools import product
from pathlib import Path
from typing import get_args

from discreet.privacy.guarantee import Basis, is_proved
from discreet.privacy.neighbours import neighbouring_cells
from discreet.privacy.proofs import covered, hashed
from discreet.privacy.units import Establishments
from discreet.privacy.verify import verify
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.words.cases import case_of
from discreet.words.errors import DiscreetError, PrivacyError

ALPHAS, EPSILONS = ("0.01", "0.1", "1"), (1, 2, 8)
"""Requests for which a mechanism that says "proved" is verified when it is registered."""

LARGEST = 150
"""Of the establishments that are searched: the complete check needs none, and a search only finds what is wrong."""


def check(kind: type[Mechanism]) -> None:
    """Refuse a class without a file of source, or one that says "proved" without ground."""
    source(kind)
    if is_proved(_word(kind)) and (why := _unproved(kind)):
        raise PrivacyError(
            f"The mechanism {kind.name!r} cannot be registered as proved: {why}.",
            "That takes a proof file beside its code whose hashes cover it, and a complete check that holds.",
            "Add what is missing, or leave its basis out: it is then as published.",
            about="mechanism",
        )


def source(kind: type) -> Path:
    """The file of a class, or an error where it has none: in a notebook, or by `python -c`."""
    module = sys.modules.get(kind.__module__)
    try:
        if _in_package(kind) and getattr(module, kind.__qualname__, None) is not kind:
            raise OSError  # it says that it is ours
        path = Path(inspect.getfile(kind))
        path.read_bytes()
    except (TypeError, OSError):
        raise PrivacyError(
            f"The class {kind.__name__} has no file of source that can be read.",
            "A release states a hash of the code that drew its noise.",
            "Put the class into a file and import it from there.",
            about="mechanism",
        ) from None
    return path


def basis_of(mechanism: Mechanism) -> Basis:
    """What may be said of this mechanism with these constants; it is refused if the verifier finds that it is false."""
    basis = _word(type(mechanism))
    verdict = verify(mechanism, neighbours=neighbouring_cells(mechanism.unit, largest=LARGEST, step=mechanism.step))
    if verdict.violated:
        drawn = "its draws do not have the probabilities that it states"
        found = (
            drawn
            if case_of(verdict.drawn, {"not as stated": True, "as stated": False, "not compared": False})
            else f"it loses {verdict.worst_loss:.6g}"
        )
        raise PrivacyError(
            f"{mechanism.name} does not keep its promise of {verdict.claimed}: {found}.",
            "A mechanism that the verifier refutes is not used.",
            "Leave mechanism out, or correct that package.",
            about="mechanism",
        )
    _refuse_unwritten(mechanism)
    if not is_proved(basis):
        return basis
    return "proved" if verdict.holds and not _uncovered(type(mechanism)) else "as published"


def _word(kind: type[Mechanism]) -> Basis:
    """What a class says of itself; only text says it, because an object of another class may compare as it likes."""
    basis = kind.basis
    if type(basis) is str and basis in get_args(Basis):
        return basis
    raise PrivacyError(
        f"The basis of {kind.name} is {basis!s:.40}.",
        f"It is a word of the class: {', '.join(map(repr, get_args(Basis)))}.",
        "Correct it, or leave it out: it is then as published.",
        about="mechanism",
    )


def _refuse_unwritten(mechanism: Mechanism) -> None:
    """Refuse one whose constants or proof could not be written after the charge."""
    try:
        json.dumps([mechanism.constants(), mechanism.proof, mechanism.basis, mechanism.calibration], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PrivacyError(
            f"The constants of {mechanism.name} cannot be written: {type(error).__name__}.",
            "A release states them as JSON, with a law that is a dataclass of numbers.",
            "Correct `constants` of that class.",
            about="mechanism",
        ) from None


def _unproved(kind: type[Mechanism]) -> str:
    """Why a class may not say "proved"; nothing where it may."""
    if why := _uncovered(kind):
        return why
    held = 0
    for alpha, epsilon in product(ALPHAS, EPSILONS):
        try:
            built = _calibrated(kind, alpha, epsilon)
        except DiscreetError:
            continue  # there is no such noise
        if not verify(built, neighbours=neighbouring_cells(built.unit, largest=20)).holds:
            return f"at alpha {alpha} and epsilon {epsilon} no complete check holds"
        held += 1
    return "" if held else "it refuses every request for which it could be checked"


def _calibrated(kind: type[Mechanism], alpha: str, epsilon: int) -> Mechanism:
    from discreet.tables.calibration import calibrate

    unit, delta = Establishments(alpha), "1e-6" if kind.needs_delta else None
    return calibrate(kind, unit=unit, epsilon=epsilon, delta=delta, cells=2 if kind.vector else 1)


def _uncovered(kind: type[Mechanism]) -> str:
    """Which file of the class is not covered by its proof as it is now; nothing where all are."""
    file = source(kind)
    try:
        stated = covered(file.parent / kind.proof)
    except (OSError, UnicodeDecodeError, ValueError):
        return f"there is no proof file {kind.proof!r:.80} beside {file.name}"
    own = {source(each) for each in kind.__mro__ if not _in_package(each) and _has_file(each)}
    for each in sorted(own):
        name = each.relative_to(file.parent).as_posix() if each.is_relative_to(file.parent) else each.as_posix()
        if stated.get(name) != hashed(name, file.parent):
            return f"{kind.proof} does not cover {name} as it is now"
    return ""


def _in_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "discreet"


def _has_file(kind: type) -> bool:
    """Whether a class is written in Python outside its standard library."""
    return kind.__module__ not in ("builtins", "abc", "typing")
