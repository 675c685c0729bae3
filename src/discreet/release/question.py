"""Questions: releases that were asked for and found possible without data, and the functions that users call for them.

A function that releases is written once, as `ask`: it takes everything but the data, checks it and answers with a
`Question`. `releases` makes the public function of it, with `data` after the formula, under the same docstring.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from discreet.data.one_at_a_time import in_turn
from discreet.data.scans import origin_of
from discreet.data.stamps import Stamps
from discreet.release.account import Released
from discreet.release.known_data import content_of_rows
from discreet.release.offer import Check, Offer
from discreet.release.payer import Payer
from discreet.words.arguments import own_words_first, refuse_kinds, refuse_large
from discreet.words.errors import DiscreetError

P = ParamSpec("P")
T = TypeVar("T", covariant=True)


class Question(ABC, Generic[T]):
    """A release whose arguments were found possible; `T` is what it gives."""

    payer: Payer

    @property
    @abstractmethod
    def response(self) -> str:
        """The column that the release is about, by which a copy of the rows is recognised."""

    @abstractmethod
    def offer(self, data: Any) -> Offer[None, Any, Any]:
        """The offer for these data; only their public facts are read."""

    @abstractmethod
    def release(self, data: Any) -> T:
        """Pay and draw."""

    def check(self, data: Any) -> Check[Any]:
        """Price, feasibility and expected error; nothing confidential is read and nothing spent."""
        with in_turn:
            offer = self.offer(data)
        return offer.check(self.payer.remaining)

    def paid(self, data: Any) -> Released[Any]:
        """The release, charged to the payer and drawn. Files that are written to while they are read are refused."""
        files = Stamps.of({"data": data})
        with in_turn:
            offer = self.offer(data)
        read = offer.read

        def unchanged(nothing: None) -> Any:
            found = read(nothing)
            files.refuse_changes()
            return found

        account = self.payer.opened(offer.guarantee, origin_of(data), partial(content_of_rows, data, self.response))
        return account.release(replace(offer, read=unchanged), None, name=self.payer.name)


class Releases(Protocol[P, T]):
    """A function that releases.

    Beside it are two steps that come before: `check` with the same arguments, and `ask` without data.
    """

    def ask(self, formula: str, *args: P.args, **kwargs: P.kwargs) -> Question[T]: ...
    def __call__(self, formula: str, data: Any, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def check(self, formula: str, data: Any, *args: P.args, **kwargs: P.kwargs) -> Check[Any]: ...


def releases(ask: Callable[Concatenate[str, P], Question[T]]) -> Releases[P, T]:
    """The function `f(formula, data, ...)` that releases what `ask` asks for, with `f.check` and `f.ask`."""

    @wraps(ask)
    def asked_for(formula: str, *args: P.args, **kwargs: P.kwargs) -> Question[T]:
        if not isinstance(formula, str):
            refuse_kinds(ask, formula, *args, **kwargs)
        try:
            found = ask(formula, *args, **kwargs)
            refuse_large(kwargs)
            return found
        except DiscreetError:  # also a ValueError: a refusal in the function's own words stays
            raise
        except (TypeError, AttributeError, ValueError, OverflowError):
            refuse_kinds(ask, formula, *args, **kwargs)
            raise

    @wraps(ask)
    def release(formula: str, data: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        return asked_for(formula, *args, **kwargs).release(data)

    def check(formula: str, data: Any, *args: P.args, **kwargs: P.kwargs) -> Check[Any]:
        return asked_for(formula, *args, **kwargs).check(data)

    asked = inspect.signature(ask)
    formula, *rest = asked.parameters.values()
    data = inspect.Parameter("data", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Any")
    gives = asked.return_annotation.removeprefix("Question[").removesuffix("]")
    for each in (release, check):
        cast("Any", each).__signature__ = asked.replace(parameters=[formula, data, *rest], return_annotation=gives)
    found = cast("Any", own_words_first(release))
    found.ask, found.check = asked_for, own_words_first(check)
    return cast("Releases[P, T]", found)
