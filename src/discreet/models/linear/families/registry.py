"""The families by name: the values of `Response` in the files beside this one."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from discreet.models.linear import families
from discreet.models.linear.families.family import Family, PrivateFamily, Response
from discreet.words.errors import FitError


@cache
def known() -> dict[str, Response]:
    """Every family, by the order of their files."""
    modules = (import_module(f"{families.__name__}.{each.name}") for each in iter_modules(families.__path__))
    return {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Response)}


def named(name: str) -> Response:
    """The family of this name."""
    if name not in known():
        raise FitError(
            f"family={name!r} is not known.",
            f"There are: {', '.join(known())}.",
            "Use one of them.",
            about="family",
        )
    return known()[name]


def fitted() -> tuple[str, ...]:
    """Names of the families that have a density, which are fitted by maximum likelihood."""
    return tuple(name for name, each in known().items() if isinstance(each, Family))


def family(name: str) -> Family:
    """A family that has a density."""
    found = named(name)
    if not isinstance(found, Family):
        raise FitError(
            f"family={name!r} was asked of a fit by its density.",
            f"Families with one are {', '.join(fitted())}.",
            "Use one of them.",
            about="family",
        )
    return found


def released() -> dict[str, PrivateFamily]:
    """How families are released privately, the linear one first."""
    ordered = sorted(known().values(), key=lambda each: not each.linear)
    return {each.name: each.private for each in ordered if each.private is not None}
