"""Arguments of the wrong kind, refused by their names: what a function declares in its annotations is what it takes.

Plain kinds alone are compared: numbers, text, true or false, lists, tables by name, and classes that are loaded.
The function itself checks values of the right kind. No data are looked at.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from discreet.errors import DataError
from discreet.faults import Argument

LISTED = {str: "text", int: "whole numbers", float: "numbers"}
P = ParamSpec("P")
T = TypeVar("T")
SHORT = (str, int, float, bool, type(None))  # what a message shows; of anything else it names the kind


def of_kinds(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses arguments of other kinds than it declares before it does anything."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_kinds(function, *args, **kwargs)
        return function(*args, **kwargs)

    return checked


def refuse_kinds(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Refuse arguments of other kinds than a function declares; those that it lacks are Python's to refuse."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return
    kinds = _declared(inspect.unwrap(function))
    for name, value in given.items():
        if name in kinds and not any(_is(value, kind) for kind in kinds[name]):
            default = inspect.signature(function).parameters[name].default
            simple = default is not inspect.Parameter.empty and isinstance(default, SHORT)
            asked: tuple[str | Argument, ...] = (Argument(name, value), " has the wrong type.")
            if not isinstance(value, SHORT):
                asked = (f"{name} is a {type(value).__name__}.",)
            raise DataError(
                asked,
                f"It takes {' or '.join(dict.fromkeys(_called(kind) for kind in kinds[name]))}.",
                f"Leave it out for {default!r}, or correct it." if simple else "Correct it.",
                about=name,
            )


@lru_cache
def _declared(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The kinds of each parameter; those that take anything, or what cannot be compared, are not in it."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        try:
            kind = eval(str(parameter.annotation), function.__globals__)
        except (NameError, TypeError, SyntaxError, AttributeError):  # loaded for type checkers alone
            continue
        kinds = tuple(_parts(kind))
        if kinds and all(_comparable(each) for each in kinds):
            found[name] = kinds
    return found


def _parts(kind: Any) -> Iterator[Any]:
    if get_origin(kind) in (Union, UnionType):
        for part in get_args(kind):
            yield from _parts(part)
    else:
        yield NoneType if kind is None else kind


def _comparable(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    loose = getattr(origin, "_is_protocol", False) and not getattr(origin, "_is_runtime_protocol", False)
    return origin is Literal or (inspect.isclass(origin) and origin is not Any and not loose)


def _is(value: Any, kind: Any) -> bool:
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        return isinstance(value, tuple({type(each) for each in inside}))
    if origin is bool:
        return isinstance(value, bool | np.bool_)
    if origin in (int, float):
        return isinstance(value, Integral if origin is int else Real) and not isinstance(value, bool | np.bool_)
    if inside and hasattr(origin, "__iter__") and not issubclass(origin, Mapping):
        listed = hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)
        return listed and (inside[0] not in (str, int, float) or all(_is(each, inside[0]) for each in value))
    return isinstance(value, origin)


def _called(kind: Any) -> str:
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(repr, inside))}"
    words = {bool: "True or False", int: "a whole number", float: "a number", str: "text", NoneType: "None"}
    if origin in words:
        return words[origin]
    if issubclass(origin, Mapping):
        return "a dictionary"
    if inside and hasattr(origin, "__iter__"):
        return f"a list of {LISTED[inside[0]]}" if inside[0] in LISTED else "a list"
    return "a function" if origin is Callable else origin.__name__
