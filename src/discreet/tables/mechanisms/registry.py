"""The mechanisms by name, and the door for others.

A mechanism of another package is found by its entry point in the group `discreet.mechanisms`: its name, and where its
class is. It is imported when somebody asks for it by that name, never before. No name can be taken twice.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from pathlib import Path

from discreet.tables.mechanisms import outside
from discreet.tables.mechanisms.baselines import DownSensitivity, EdgeLaplace, NodeTruncation
from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise
from discreet.tables.mechanisms.joint_rings import JointRings
from discreet.tables.mechanisms.ladder import LadderNoise
from discreet.tables.mechanisms.log_laplace import LogLaplace
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.tables.mechanisms.smooth_gamma import SmoothGamma
from discreet.tables.mechanisms.smooth_laplace import SmoothLaplace
from discreet.tables.mechanisms.staircase import StaircaseNoise
from discreet.tables.mechanisms.two_sizes import TwoSizesNoise
from discreet.tables.mechanisms.weak_joint import WeakJoint
from discreet.tables.mechanisms.weak_unions import WeakUnions
from discreet.words.errors import PrivacyError

GROUP = "discreet.mechanisms"
OURS: tuple[type[Mechanism], ...] = (
    PolynomialNoise,
    JointPolynomialNoise,
    JointRings,
    LadderNoise,
    LogLaplace,
    SmoothGamma,
    SmoothLaplace,
    StaircaseNoise,
    TwoSizesNoise,
    WeakJoint,
    WeakUnions,
    EdgeLaplace,
    NodeTruncation,
    DownSensitivity,
)
OF_ONE_COUNT: type[Mechanism] = PolynomialNoise
OF_SEVERAL_COUNTS: type[Mechanism] = JointPolynomialNoise
OF_AMOUNTS: type[Mechanism] = JointPolynomialNoise
OF_WORKERS: type[Mechanism] = EdgeLaplace
OF_ESTABLISHMENTS: type[Mechanism] = NodeTruncation
"""Closed forms for one count, several and sums, and those of units that hide no establishment."""

PRIVATE = tuple(kind.name for kind in OURS if kind.hides_establishments)
BASELINES = tuple(kind.name for kind in OURS if not kind.hides_establishments)

_known: dict[str, type[Mechanism]] = {kind.name: kind for kind in OURS}


def register(kind: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its name, as a function or as a decorator of its class.

    It has to hide establishments, to answer everything that a mechanism is asked, to name its proof and to have a file
    of source, which is part of the hash of the code that draws. What "proved" takes is in `outside`.
    """
    name, proof = getattr(kind, "name", None), getattr(kind, "proof", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise PrivacyError(
            f"A mechanism called {name!r:.40} cannot be registered.",
            "Names are lower-case words with hyphens.",
            "Give its class a name such as 'staircase'.",
            about="mechanism",
        )
    if _known.get(name, kind) is not kind or (name in _known) != (kind in _known.values()):
        raise PrivacyError(
            f"A mechanism called {name!r} cannot be registered: there is another one of that name.",
            "A name means one mechanism in every ledger and bundle.",
            "Choose another name.",
            about="mechanism",
        )
    missing = sorted(kind.__abstractmethods__) if isabstract(kind) else []
    if missing or not isinstance(proof, str) or not proof or not kind.hides_establishments:
        why = f"it lacks {', '.join(missing)}" if missing else "it names no proof" if not proof else "it is a baseline"
        raise PrivacyError(
            f"The mechanism {name!r} cannot be registered: {why}.",
            "A mechanism is whole: see `Mechanism`.",
            "Add what is missing.",
            about="mechanism",
        )
    if kind not in OURS:
        outside.check(kind)
    _known[name] = kind
    return kind


def named(name: str) -> type[Mechanism]:
    """The mechanism of a name, or an error that lists all names."""
    known = isinstance(name, str)
    if known and name in _known:
        return _known[name]
    if not known or name not in _installed():
        raise PrivacyError(
            f"mechanism {name!r} is unknown.",
            f"There are: {', '.join(names())}.",
            "Leave it out for the default.",
            about="mechanism",
        )
    found = _installed()[name].load()
    if getattr(found, "name", None) != name:
        raise PrivacyError(
            f"mechanism {name!r} is announced by a package, and its class is called {getattr(found, 'name', None)!r}.",
            "Both are the same name.",
            "Correct that package.",
            about="mechanism",
        )
    return register(found)


def private_names() -> tuple[str, ...]:
    """Mechanisms that hide establishments: ours, then others."""
    return tuple(dict.fromkeys([*PRIVATE, *sorted({*_installed(), *_known} - {*PRIVATE, *BASELINES})]))


def names() -> tuple[str, ...]:
    """All mechanisms, baselines last."""
    return private_names() + BASELINES


def foreign() -> tuple[type[Mechanism], ...]:
    """Mechanisms of other packages that were asked for, in the order of their names."""
    return tuple(kind for name, kind in sorted(_known.items()) if kind not in OURS)


def sources() -> tuple[tuple[str, Path], ...]:
    """The files of those mechanisms, by what they are called in the hash of the source that drew."""
    return tuple((f"mechanism {kind.name}", outside.source(kind)) for kind in foreign())


@cache
def _installed() -> dict[str, EntryPoint]:
    """What other packages announce, beside our own names."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in {*PRIVATE, *BASELINES}}
