"""What may be said about releases: whom they protect, and how sure somebody can become; nothing where nothing is known.

Reports, sites, audits, ledgers and the desk take every sentence about protection and every bound from here. A `Claim`
is what one release states of itself. An `Assurance` is what follows for all releases of one data set, or for somebody
who is in several. What is not proved, not private, or not known to this version is a doubt. With a doubt there is no
sentence of protection and no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from discreet.privacy.belief import SizeBelief, permitted
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.identification import BeliefBound, belief_bounds, posterior, sure
from discreet.privacy.losses import Loss, Pure, from_dict, shown, total
from discreet.privacy.plain_words import by_jobs, plain_words, steps_of_one_job
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Unit, Workers, unit_of
from discreet.words.cases import case_of
from discreet.words.errors import PrivacyError

T = TypeVar("T")
People: TypeAlias = Literal["shared", "different"]
"""Whether anybody is in several data sets, as somebody who knows has declared it."""

MOST_DOUBTS = 3


class Flaw(NamedTuple):
    """Why a release promises nothing: a word for tables, and a clause."""

    name: str
    words: str

    @property
    def head(self) -> str:
        """How a sentence begins that has this doubt."""
        return HEADS.get(self.name, "NOT KNOWN")


UNPROVED = {
    "as published": Flaw("as published", "the claim is as published, and not proved"),
    "empirical": Flaw("empirical", "the figures were measured or stated, and promise nothing"),
}

HEADS = {"seeded": "NOT PRIVATE", "as published": "NOT PROVED", "empirical": "NO PROMISE"}


@dataclass(frozen=True, slots=True)
class Claim:
    """What one release states of itself.

    Attributes
    ----------
    unit, loss : whom it protects and what it cost; None where this version does not know them.
    definition, sentence : the guarantee by its name, and in words; with doubts, what the doubts are.
    """

    release: str
    dataset: str
    unit: Unit | None
    loss: Loss | None
    definition: str = ""
    sentence: str = ""
    doubts: tuple[Flaw, ...] = ()

    @classmethod
    def of(cls, guarantee: Guarantee, *, release: str, dataset: str) -> Claim:
        """That of a release whose guarantee is at hand."""
        return cls.stated(guarantee.to_dict(), release=release, dataset=dataset)

    @classmethod
    def stated(cls, guarantee: Any, *, release: str, dataset: str) -> Claim:
        """From what is stored beside a release; what is missing there, or new to this version, is a doubt."""
        told = guarantee if isinstance(guarantee, Mapping) else {}
        unit, loss = _known(unit_of, told.get("unit")), _known(from_dict, told.get("loss"))
        doubts = _doubts(unit, loss, basis=told.get("basis"), private=told.get("private"))
        if told.get("basis") == "proved" and not (isinstance(told.get("proof"), str) and told["proof"]):
            doubts.append(Flaw("unknown", "it names no proof"))
        if told.get("calibration") not in get_args(Calibration):
            doubts.append(_unknown("calibration", told.get("calibration")))
        doubts += [_unknown(str(name), value) for name, value in told.items() if name not in _fields()]
        words = {name: told.get(name) for name in ("definition", "sentence")}
        doubts += [_unknown(name, value) for name, value in words.items() if not isinstance(value, str)]
        if not doubts:
            return cls(release, dataset, unit, loss, str(words["definition"]), str(words["sentence"]))
        notes = told.get("notes")
        limits = [str(note) for note in notes] if isinstance(notes, list | tuple) else []
        because = _listed(doubts)
        heads = " and ".join(dict.fromkeys(doubt.head for doubt in doubts))
        sentence = f"{heads}: {because}. {''.join(f'{limit}. ' for limit in limits)}".rstrip()
        return cls(release, dataset, unit, loss, f"nothing is promised: {because}", sentence, tuple(doubts))

    @classmethod
    def charged(
        cls, details: Mapping[str, Any] | None, *, release: str, dataset: str, unit: str, loss: Loss | None
    ) -> Claim:
        """From a line of a ledger, which names a basis only where nothing is proved, and a seed where there is one."""
        found = _known(unit_of, unit)
        told = details or {}
        doubts = _doubts(found, loss, basis=told.get("basis", "proved"), private=told.get("private", True))
        return cls(release, dataset, found, loss, doubts=tuple(doubts))


@dataclass(frozen=True, slots=True)
class Assurance:
    """What may be said about all releases of one data set, or about somebody who is in several of them.

    Attributes
    ----------
    datasets : their names; none where only a definition is spoken of.
    unit, loss : whom all releases protect, and what they cost together; None where that is unknown.
    doubts : why nothing is promised; none where something is.
    jobs : the most jobs that a worker has, None where nothing bounds them.
    whole : whether these are all releases of the data, as a ledger knows; a folder may lack some.
    """

    datasets: tuple[str, ...]
    unit: Unit | None
    loss: Loss | None
    doubts: tuple[str, ...] = ()
    jobs: int | None = 1
    whole: bool = True

    @classmethod
    def of(cls, claims: Iterable[Claim], *, spent: Loss | None = None, jobs: int | None = 1) -> Assurance:
        """About all releases of one data set; `spent` is what its ledger has for all of them."""
        known = list(claims)
        datasets = tuple(dict.fromkeys(claim.dataset for claim in known))
        doubts = dict.fromkeys(
            f"of release {claim.release!r} {doubt.words}" for claim in known for doubt in claim.doubts
        )
        found = cls(datasets, *_together(known), tuple(doubts), jobs, spent is not None)._added_up("the releases")
        if not known:
            return found._doubted("nothing is known of any release")
        if len(datasets) > 1:
            return found._doubted("the releases are of several data sets")
        if spent is None or found.loss is None:
            return found
        return (
            replace(found, loss=spent)
            if _covers(spent, found.loss)
            else found._doubted(f"its releases cost {found.loss}, and its ledger has {spent}")
        )

    @classmethod
    def of_definition(cls, unit: Unit, loss: Loss, *, jobs: int | None = 1) -> Assurance:
        """What a definition would permit at a loss, without any release."""
        return cls((), unit, loss, (), jobs)

    @classmethod
    def in_several(cls, each: Sequence[Assurance], *, people: People | None = None) -> Assurance | None:
        """About somebody who is in several data sets. None where they are different people; unknown is shared."""
        if len(each) < 2 or case_of(people or "shared", {"different": True, "shared": False}):
            return None
        datasets = tuple(dict.fromkeys(name for one in each for name in one.datasets))
        most = [one.jobs for one in each]
        jobs = None if None in most else max(filter(None, most), default=1)
        doubts = tuple(dict.fromkeys(doubt for one in each for doubt in one.doubts))
        whole = all(one.whole for one in each)
        return cls(datasets, *_together(each), doubts, jobs, whole)._added_up("the data sets")

    def _added_up(self, parts: str) -> Assurance:
        if self.doubts or (self.unit is not None and self.loss is not None):
            return self
        return self._doubted(f"{parts} protect different units, or count losses that do not add up")

    def _doubted(self, doubt: str) -> Assurance:
        return replace(self, doubts=(*self.doubts, doubt))

    @property
    def promised(self) -> bool:
        """Whether anything is."""
        return not self.doubts and self.unit is not None and self.loss is not None

    @property
    def bounded(self) -> bool:
        """Whether a belief is bounded: a loss in rho alone bounds none."""
        return self.promised and self.loss is not None and "epsilon" in self.loss.amounts

    @property
    def names(self) -> str:
        """The data sets, as a sentence has them."""
        *most, last = [repr(name) for name in self.datasets] or ["the data"]
        return f"{', '.join(most)} and {last}" if most else last

    @property
    def scope(self) -> str:
        """What a bound is over."""
        return f"{'all' if self.whole else 'these'} releases of {self.names}"

    @property
    def refusal(self) -> str:
        """Why nothing is said; empty where something is."""
        if self.promised:
            return ""
        more = f"; and {len(self.doubts) - MOST_DOUBTS} more" if len(self.doubts) > MOST_DOUBTS else ""
        return (
            f"Nothing is promised about {self.names}: {'; '.join(self.doubts[:MOST_DOUBTS])}{more}. No bound is "
            "stated, because none is known."
        )

    @property
    def attribute(self) -> str:
        """What a title may add to the name of the data."""
        return " with proved privacy" if self.promised else ""

    @property
    def words(self) -> str:
        """Whom the releases protect, for a reader without mathematics; else why nothing is promised."""
        if not self.promised or self.unit is None:
            return self.refusal
        return plain_words(self.unit, self.jobs)

    @property
    def reach(self) -> str:
        """How far the words go: over which releases, and for whom not."""
        if not self.promised:
            return ""
        more = "" if self.whole else "Other releases of the same data add to it. "
        return (
            f"This is true of {self.scope}, whatever else somebody knows about these data. {more}It was paid for from "
            f"a budget: the more is published, the more the odds can move. {APART}"
        )

    @property
    def covered(self) -> str:
        """About somebody who is in several data sets, in a sentence."""
        if not self.promised or self.loss is None:
            return f"About somebody who is in several of {self.names}: {self.refusal}"
        ends = f" Others who were undecided about them end at most {sure(self._epsilon)} % sure."
        ends *= self.bounded and isinstance(self.loss, Pure)
        covered = f"Somebody who is in several of {self.names} is covered by the sum of their losses alone"
        return f"{covered}, {self.loss}.{ends}"

    @property
    def informed(self) -> str:
        """What the table of `beliefs` says; else why there is none."""
        if not self.promised:
            return self.refusal
        if not self.bounded:
            return f"A loss of {self.loss} bounds no belief: no figure is stated about {self.names}."
        delta = self.loss.amounts.get("delta") if self.loss is not None else None
        fails = f" With a probability of about {shown(delta)} more may be learnt." if delta else ""
        return (
            "An informed attacker knows everything about the data but one thing. The guarantee says how sure somebody "
            f"can become of it at most, whatever they compute from {self.scope}, synthetic files included.{fails} "
            f"{APART}"
        )

    @property
    def beliefs(self) -> tuple[BeliefBound, ...]:
        """How far beliefs of informed attackers can move at most."""
        if not self.bounded or self.unit is None or self.loss is None:
            return ()
        return belief_bounds(self.unit, self.loss)

    @property
    def beliefs_caption(self) -> str:
        """What the table of `beliefs` is called."""
        return f"Beliefs before and after, at most ({self.loss}, {self.scope})"

    @property
    def suspicions(self) -> tuple[tuple[str, float], ...]:
        """Columns of what suspicions can become, each with the log odds that all releases move; none without bounds."""
        if not self.bounded or self.unit is None or not isinstance(self.loss, Pure):
            return ()
        steps = steps_of_one_job(self.unit)
        jobs = self.jobs if self.jobs is not None and by_jobs(self.unit) else 1
        whose = "the kind or employer in one job" if self.jobs is None else "a worker's kind or employer"
        whose = f"all up to {jobs} jobs of one worker together" if jobs > 1 else whose
        first = (f"can become sure, from {self.scope}, to at most", self._epsilon)
        second = (f"or, of {whose}, to at most", jobs * steps * self._epsilon)
        return (first, second) if jobs * steps > 1 else (first,)

    def most_peaked(self, size: int) -> SizeBelief | None:
        """The most peaked belief about an establishment's size that is permitted; None where none is bounded."""
        if not self.bounded or not isinstance(self.unit, Establishments | Workers | EstablishmentNodes):
            return None
        return permitted(self.unit, self._epsilon, size)

    @property
    def _epsilon(self) -> float:
        return math.inf if self.loss is None else float(self.loss.amounts["epsilon"])

    def to_dict(self) -> dict[str, object]:
        """For machines; what is unknown is null."""
        return {
            "datasets": list(self.datasets),
            "promised": self.promised,
            "unit": None if self.unit is None else self.unit.key,
            "loss": None if self.loss is None else self.loss.to_dict(),
            "doubts": list(self.doubts),
        }


APART = "Other data sets about the same people are counted apart: who is in several is covered by their sum alone."
DIFFERENT = "The plan declares that nobody is in two of its data sets. No computation here knows that."
ASKED = (
    "The plan does not say whether anybody is in several of its data sets, so their losses are added up. If nobody is, "
    "write people = 'different' at its top"
)


RISK = "Risk: how sure somebody can become of one protected change, by how sure they were before"
SURE = "sure of it afterwards, at most"
SUSPICIONS = "The guarantee in plain words: suspicions about one protected change, before and after"


def sure_at_most(prior: float, log_odds: float) -> float:
    """How sure somebody can become of one of two neighbours at a loss, by the definition alone."""
    return posterior(prior, log_odds)


def whom(unit: Unit, jobs: int | None) -> str:
    """Whom a definition protects, before there is any release."""
    return plain_words(unit, jobs)


def titled(each: Iterable[Assurance]) -> str:
    """What a title may add to the names of several data sets."""
    known = list(each)
    return known[0].attribute if known and all(one.promised for one in known) else ""


def _doubts(unit: Unit | None, loss: Loss | None, *, basis: object, private: object) -> list[Flaw]:
    """Everything that keeps a release from promising anything, as far as every record of it tells."""
    found = [] if unit is not None else [Flaw("unknown", "the unit is missing, or unknown to this version")]
    found += [] if loss is not None else [Flaw("unknown", "the loss is missing, or unknown to this version")]
    match private:
        case True:
            pass
        case False:
            found.append(Flaw("seeded", "the noise was seeded, or is too small, so it is not private"))
        case _:
            found.append(_unknown("private", private))
    if basis != "proved":
        found.append(UNPROVED.get(str(basis)) or _unknown("basis", basis))
    return found


def _unknown(name: str, value: object) -> Flaw:
    return Flaw("unknown", f"{name} is {str(value)[:40]!r}, which this version does not know")


def _listed(doubts: Sequence[Flaw]) -> str:
    return "; ".join(dict.fromkeys(doubt.words for doubt in doubts))


def _known(read: Callable[[Any], T], stated: object) -> T | None:
    """What a text or a table stands for, or nothing."""
    try:
        return read(dict(stated) if isinstance(stated, Mapping) else stated) if stated else None
    except (PrivacyError, TypeError, ValueError, KeyError, AttributeError):
        return None


def _together(parts: Sequence[Claim | Assurance]) -> tuple[Unit | None, Loss | None]:
    """The one unit of all parts and the sum of their losses; None where there are several units, or no sum."""
    units = {None if part.unit is None else part.unit.key: part.unit for part in parts}
    losses = [part.loss for part in parts]
    try:
        whole = None if None in losses else total([loss for loss in losses if loss is not None])
    except PrivacyError:
        whole = None
    return (next(iter(units.values())), whole) if len(units) == 1 else (None, None)


def _covers(spent: Loss, cost: Loss) -> bool:
    try:
        return cost <= spent
    except PrivacyError:
        return False


@cache
def _fields() -> frozenset[str]:
    """What a guarantee of this version states of itself."""
    return frozenset(Guarantee(AnyRow(), Pure(1)).to_dict())
