"""Arguments of the wrong kind, refused by their names: what a function declares in its annotations is what it takes.

Plain kinds alone are compared: numbers, text, true or false, lists, tables by name, and classes that are loaded.
The function itself checks values of the right kind. No data are looked at.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from discreet.words.errors import DataError, DiscreetError
from discreet.words.faults import Argument

LISTED = {str: "text", int: "whole numbers", float: "numbers"}
P = ParamSpec("P")
T = TypeVar("T")
LARGEST = 2**63
SEEDS = ("seed",)  # these may be as long as people like
SHORT = (str, int, float, bool, type(None))  # what a message shows; of anything else it names the kind


def of_kinds(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses arguments of other kinds than it declares before it does anything."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_kinds(function, *args, **kwargs)
        return function(*args, **kwargs)

    return checked


def own_words_first(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose own refusals come first; kinds are compared where Python's errors would end the call."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except DiscreetError:  # also a ValueError
            raise
        except (TypeError, AttributeError, ValueError, OverflowError):
            refuse_kinds(function, *args, **kwargs)
            raise

    return checked


def refuse_kinds(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Refuse arguments that a function does not take, or not of their kind, and calls without one that it needs."""
    _refuse_unknown(function, kwargs)
    _refuse_missing(function, args, kwargs)
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # more places than it has, or one argument twice
        return
    refuse_large(given)
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


def _refuse_unknown(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse names that a function does not have."""
    known = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise DataError(
                f"{name} was given to {function.__name__}, which does not take it.",
                f"It takes {', '.join(each for each in known if each != 'self')}.",
                f"Use {near[0]}, or leave it out." if near else "Leave it out.",
                about=name,
            )


def _refuse_missing(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a call without an argument that has no default."""
    known = inspect.signature(function).parameters
    places = [name for name, one in known.items() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for name, parameter in known.items():
        open_ended = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if open_ended or parameter.default is not parameter.empty or name in kwargs or name in places[: len(args)]:
            continue
        raise DataError(
            f"{function.__name__} was called without {name}.",
            f"It takes {', '.join(each for each in known if each != 'self')}, and {name} has no default.",
            f"Give {name}.",
            about=name,
        )


def refuse_large(given: Mapping[str, Any]) -> None:
    """Refuse whole numbers that no computation takes, by their names; and seeds below 0."""
    for name, value in given.items():
        if name in SEEDS and isinstance(value, int) and value < 0:
            raise DataError(
                (Argument(name, value), " is not a seed."), "Seeds are 0 or more.", "Use for example 1.", about=name
            )
        if isinstance(value, int) and abs(value) >= LARGEST and name not in SEEDS:
            raise DataError(
                f"{name} is a whole number of {value.bit_length():,} bits.",
                "Whole numbers are below 2^63.",
                "Correct it.",
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
    if origin is tuple and Ellipsis not in inside and not (hasattr(value, "__len__") and len(value) == len(inside)):
        return False
    if inside and inspect.isclass(origin) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and _are(value.values(), inside[1])
    if inside and hasattr(origin, "__iter__"):
        listed = hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)
        return listed and _are(value, inside[0])
    return isinstance(value, origin)


def _are(values: Iterable[Any], kind: Any) -> bool:
    """Whether all values are of a plain kind; of other kinds it is not asked."""
    plain = tuple(_parts(kind))
    compared = all(part in LISTED or (inspect.isclass(part) and _comparable(part)) for part in plain)
    return not compared or all(any(_is(each, part) for part in plain) for each in values)


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
        listed = [LISTED.get(part) for part in _parts(inside[0])]
        return f"a list of {' or '.join(map(str, listed))}" if all(listed) else "a list"
    return "a function" if origin is Callable else origin.__name__
