"""Faults as values, and their words for four kinds of readers.

A fault has a subject (`about`), what was asked, what is possible and the next step. Its sentences hold terms, such as
`Argument("clip", (0, 1))`. Their spelling depends on the reader, who writes Python, a plan or a command, or fills in a
form. Programs use `about` and the error's class. Sentences are for people: nothing is ever looked up in them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from discreet.words.voices import PLAN, PYTHON, Symbol, Voice

Place: TypeAlias = tuple[str | int, ...]
"""A key of a plan by its path: ("release", 0, "by") is `by` of the first [[release]]."""


class Phrase(ABC):
    """A part of a sentence that each voice spells in its own way."""

    @abstractmethod
    def said(self, voice: Voice) -> str: ...

    def renamed(self, names: Mapping[str, str]) -> Phrase:
        """The same about parameters that have other names elsewhere."""
        return self


@dataclass(frozen=True, slots=True)
class Key(Phrase):
    """A parameter: Key("mechanism"); or a part of one: Key("where", "sex")."""

    path: tuple[str, ...]

    def __init__(self, *path: str) -> None:
        object.__setattr__(self, "path", path)

    def said(self, voice: Voice) -> str:
        return voice.key(self.path)

    def renamed(self, names: Mapping[str, str]) -> Key:
        return Key(names.get(self.path[0], self.path[0]), *self.path[1:])


@dataclass(frozen=True, slots=True)
class Argument(Phrase):
    """A parameter with its value: Argument("epsilon", 1); `under` is the table of a plan, where that is another one."""

    name: str
    value: Any
    under: str | None = None

    def said(self, voice: Voice) -> str:
        return voice.setting(self.name, self.value, self.under)

    def renamed(self, names: Mapping[str, str]) -> Argument:
        return replace(self, name=names.get(self.name, self.name))


@dataclass(frozen=True, slots=True)
class With(Phrase):
    """A parameter that may have been left out: with delta=None in Python is without delta in a plan."""

    of: Argument

    def said(self, voice: Voice) -> str:
        if self.of.value is None and voice is not PYTHON:
            return f"without {voice.key((self.of.name,))}"
        return f"with {self.of.said(voice)}"

    def renamed(self, names: Mapping[str, str]) -> Phrase:
        return With(self.of.renamed(names))


@dataclass(frozen=True, slots=True)
class Subject(Phrase):
    """The parameter that a fault is about, with which a sentence begins; a plan and a form have named its place."""

    of: Key | Argument

    def said(self, voice: Voice) -> str:
        if not voice.names_places:
            return self.of.said(voice)
        return voice.value(self.of.value) if isinstance(self.of, Argument) else "it"

    def renamed(self, names: Mapping[str, str]) -> Phrase:
        return Subject(self.of.renamed(names))


@dataclass(frozen=True, slots=True)
class Value(Phrase):
    """A value: ('a', 'b') in Python is ['a', 'b'] in a plan."""

    value: Any

    def said(self, voice: Voice) -> str:
        return voice.value(self.value)


@dataclass(frozen=True, slots=True)
class Spelled(Phrase):
    """Words that differ by no rule. A voice without its own uses those of Python; a form uses those of a plan."""

    python: str
    plan: str | None = None
    command: str | None = None
    form: str | None = None

    def said(self, voice: Voice) -> str:
        spellings: list[str | None] = [getattr(self, name) for name in voice.own]
        return next(words for words in spellings if words is not None)


@dataclass(frozen=True, slots=True)
class Capital(Phrase):
    """A term with which a sentence begins."""

    of: Phrase

    def said(self, voice: Voice) -> str:
        said = self.of.said(voice)
        return said[:1].upper() + said[1:]


BETWEEN = (Symbol("lower"), Symbol("upper"))
NOTHING = Spelled("")
GIVE = Spelled("Give", plan="Write", command="Add")
WHOLE = Spelled("session", plan="plan", command="request")
"""What promises a unit of privacy."""

Sentence: TypeAlias = str | Phrase | tuple[str | Phrase, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, plan.toml:12, and its content in a reader's words."""

    file: str
    line: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}{': ' if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes
    ----------
    about : the parameter, or its part: "where.sex". A place of a plan is written in the same way: "release.0.by".
    asked, possible, remedy : what was asked, what is possible, the next step. One sentence may be all three.
    place : the key of a plan.
    at : its line, known once the plan's text is.
    """

    about: str | None
    asked: Sentence
    possible: Sentence = ""
    remedy: Sentence = ""
    place: Place = ()
    at: Position | None = None

    def __init__(
        self,
        about: str | Place | None,
        asked: Sentence,
        possible: Sentence = "",
        remedy: Sentence = "",
        *,
        place: Place = (),
        at: Position | None = None,
    ) -> None:
        if isinstance(about, tuple):
            place, about = about, ".".join(map(str, about))
        for name, value in zip(self.__slots__, (about, asked, possible, remedy, place, at), strict=True):
            object.__setattr__(self, name, value)

    def said(self, voice: Voice = PYTHON) -> str:
        """The sentences, for one kind of reader."""
        said = (say(each, voice) for each in (self.asked, self.possible, self.remedy))
        return " ".join(filter(None, said)).replace(" \n", "\n")

    def told(self, voice: Voice = PYTHON) -> str:
        """The same with its place in a file, where that is known: then in the words of plans."""
        return self.said(voice) if self.at is None else f"{self.at}{self.said(PLAN)}"

    def renamed(self, names: Mapping[str, str]) -> Fault:
        """The same for parameters that are called otherwise where the fault is reported."""
        head, dot, rest = (self.about or "").partition(".")
        return Fault(
            f"{names.get(head, head)}{dot}{rest}" if self.about else None,
            *(_renamed(sentence, names) for sentence in (self.asked, self.possible, self.remedy)),
            place=self.place,
            at=self.at,
        )


def say(sentence: Sentence, voice: Voice) -> str:
    """A sentence in a voice."""
    pieces = sentence if isinstance(sentence, tuple) else (sentence,)
    return "".join(piece if isinstance(piece, str) else piece.said(voice) for piece in pieces)


def _renamed(sentence: Sentence, names: Mapping[str, str]) -> Sentence:
    if isinstance(sentence, tuple):
        return tuple(piece if isinstance(piece, str) else piece.renamed(names) for piece in sentence)
    return sentence if isinstance(sentence, str) else sentence.renamed(names)


def as_faults(said: Iterable[Fault | Sentence], about: str | None, remedy: Sentence) -> tuple[Fault, ...]:
    """The arguments of an error: faults, or the sentences of one."""
    given = list(said)
    sentences = [each for each in given if not isinstance(each, Fault)]
    if not sentences:
        return tuple(each for each in given if isinstance(each, Fault))
    fault = Fault(about, *sentences)
    return (replace(fault, remedy=remedy) if remedy else fault,)
