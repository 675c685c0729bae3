"""What the reference of Python lists: the names of `discreet`, the types that they give, readers, data and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import discreet

SOURCE = Path(discreet.__file__).parent
READERS = ("lodes.read_lodes_wac", "qwi.read_qwi", "qcew.read_qcew", "m3.read_m3")
DATA = ("lodes", "histories", "qwi", "crime", "regression")
INSIDE = {
    "ByLargest",
    "Cells",
    "Curve",
    "Drawn",
    "Family",
    "Kinds",
    "Marginal",
    "Mixtures",
    "Moments",
    "Prepared",
    "Table",
}
"""Types that only our own modules ask for."""


@cache
def groups() -> dict[str, list[str]]:
    """Every documented name by the group in which the reference lists it."""
    return {
        "names": [f"discreet.{name}" for name in sorted(discreet._HOMES)],
        "types": given(),
        "readers": [f"discreet.data.readers.{name}" for name in READERS],
        "data": [f"discreet.simulate.{name}.write" for name in DATA],
        "errors": [
            f"discreet.errors.{name}"
            for name, value in vars(import_module("discreet.words.errors")).items()
            if inspect.isclass(value) and value.__module__ == "discreet.words.errors" and name not in discreet._HOMES
        ],
    }


def value(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def given() -> list[str]:
    """The types that public functions and methods return, and those that the methods of these return."""
    homes, found = _homes(), {"Result": "discreet.results"}
    now = [getattr(discreet, name) for name in discreet._HOMES]
    for _ in range(2):
        words = {word for one in now for text in _returns(one) for word in re.findall(r"[A-Z]\w+", text)}
        new = {word: homes[word] for word in words - {*found, *discreet._HOMES, *INSIDE} if word in homes}
        found |= new
        now = [getattr(import_module(home), name) for name, home in new.items()]
    return [f"{home}.{name}" for name, home in sorted(found.items())]


def members(kind: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a type that are defined in it."""
    for name, value in vars(kind).items():
        inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(inner):
            yield name, inner


def _returns(value: Any) -> Iterator[str]:
    functions = [value] if inspect.isfunction(value) else [inner for _, inner in members(value)]
    yield from (str(one.__annotations__.get("return", "")) for one in functions)


def _homes() -> dict[str, str]:
    """The module of every public class; a class name means one thing."""
    return {
        name: ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
