"""A lower bound on the epsilon of any mechanism, from its outputs on two neighbouring data sets.

Half of the outputs teach an event that is much likelier on one data set than on the other; the other half count it.
Clopper-Pearson bounds of the two probabilities then bound epsilon from below. Their confidence holds for every
mechanism, because the event was fixed before it was counted. A bound above the claim refutes the claim. A bound below
it proves nothing: these two data sets, these events and this many trials have found nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.audit.outputs import Encoded, Failure, encode
from discreet.audit.scores import BINS, Outputs, Score, scores_between
from discreet.models.bayes.spending import whole
from discreet.privacy.losses import Number, exact
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

Likelier: TypeAlias = Literal["a", "b"]

FEW = 8  # outputs in the last interval of a tail
TRIALS = 50_000
FIRST = 8  # runs on each data set that show whether the mechanism runs at all
OFTEN = 0.1  # seconds between reports of progress
SHOWN = 5  # kinds of output named in an event


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """What the audit found.

    Attributes
    ----------
    epsilon : with the stated confidence, the mechanism's epsilon between the two data sets is at least this.
    claimed : the epsilon that was promised, if one was given.
    delta : the failure probability that the claim allows.
    event : the outputs that were counted, in words.
    likelier : the data set on which the event is likelier.
    hits : how often it occurred on `likelier` and on the other one, each out of `trials` held-out outputs.
    raised : in how many of all runs the mechanism raised an error, which counts as an output.
    """

    epsilon: float
    confidence: float
    claimed: float | None
    delta: float
    event: str
    likelier: Likelier
    hits: tuple[int, int]
    trials: int
    raised: int = 0

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, with the stated confidence."""
        return self.claimed is not None and self.epsilon > self.claimed

    def __str__(self) -> str:
        other = "b" if case_of(self.likelier, {"a": True, "b": False}) else "a"
        delta = f" at delta={self.delta:g}" if self.delta else ""
        found = (
            f"epsilon is at least {self.epsilon:.4g}{delta} with confidence {self.confidence:.10g}: {self.event} "
            f"occurred {self.hits[0]:,} times on {self.likelier} and {self.hits[1]:,} times on {other}, "
            f"in {self.trials:,} held-out runs on each"
        ) + (f"; {self.raised:,} of {4 * self.trials:,} runs raised an error" if self.raised else "")
        if self.claimed is None:
            return found
        word = "REFUTED" if self.refuted else "not refuted (which is no proof)"
        return f"claimed epsilon={self.claimed:g}: {word}; {found}"

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values, ready for JSON."""
        return {
            "epsilon_at_least": self.epsilon,
            "confidence": self.confidence,
            "claimed": self.claimed,
            "delta": self.delta,
            "refuted": self.refuted,
            "event": self.event,
            "likelier": self.likelier,
            "hits": list(self.hits),
            "trials": self.trials,
            "raised": self.raised,
        }


@of_kinds
def blackbox(
    mechanism: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    claimed: Number | None = None,
    delta: float = 0.0,
    trials: int = TRIALS,
    confidence: float = 0.99,
    many: bool = False,
    progress: Progress = silent,
) -> AuditVerdict:
    """Bound the epsilon of `mechanism` between the data sets `a` and `b` from below.

    Parameters
    ----------
    mechanism : called as mechanism(data); returns a number, a list or a mapping of them, a label such as text, or any
        of these in turn. A run that raises counts as an output too, by the kind of the error.
    a, b : two data sets that differ in one unit.
    claimed, delta : the promise under test.
    trials : runs on each data set, half of them to learn and half to count.
    confidence : of the bound.
    many : the mechanism is called as mechanism(data, n) instead and returns n outputs at once.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The largest epsilon that the outputs rule out, and whether it refutes the claim.

    Examples
    --------
    >>> import random
    >>> blackbox(lambda data: data + random.random(), 0, 5, claimed=1, trials=2_000).refuted
    True
    """
    if not 0 < confidence < 1:
        raise PrivacyError(
            (Argument("confidence", confidence), " is not between 0 and 1."),
            "It is a probability.",
            "Use for example 0.99.",
            about="confidence",
        )
    if not 0 <= delta < 1:
        raise PrivacyError(
            (Argument("delta", delta), " is not a failure probability."),
            "It is at least 0 and below 1.",
            "Use 0 for none.",
            about="delta",
        )
    if not whole(trials, least=100):
        raise PrivacyError(
            (Argument("trials", trials), " can show nothing."),
            "An audit needs 100 runs at least, a whole number.",
            f"Use {TRIALS:,}.",
            about="trials",
        )
    promise = None if claimed is None else float(exact(claimed, name="claimed"))
    if promise is not None and promise < 0:
        raise PrivacyError(
            (Argument("claimed", claimed), " is no epsilon: nothing can promise less than 0."),
            "Amounts from 0 on are possible.",
            "Give the promised one, or leave it out for the bound alone.",
            about="claimed",
        )
    half = trials // 2
    _refuse_what_never_runs(mechanism, a, b, many)
    drawn = [_run(mechanism, data, half, many, i / 4, progress) for i, data in enumerate((a, b, a, b))]
    raised = sum(isinstance(output, Failure) for sample in drawn for output in sample)
    encoded = encode(drawn)
    count_a, count_b = encoded.samples[2:]
    risk = (1 - confidence) / 2
    event = _learn(encoded, delta=delta, risk=risk)
    hits = {"a": int(event.holds(count_a).sum()), "b": int(event.holds(count_b).sum())}
    order: tuple[Likelier, Likelier] = ("a", "b") if case_of(event.likelier, {"a": True, "b": False}) else ("b", "a")
    high, low = hits[order[0]], hits[order[1]]
    bound = float(epsilon_bound(np.array([high]), np.array([low]), half, delta=delta, risk=risk)[0])
    return AuditVerdict(bound, confidence, promise, delta, str(event), event.likelier, (high, low), half, raised)


def epsilon_bound(high: Integers, low: Integers, trials: int, *, delta: float, risk: float) -> Vector:
    """ln((P - delta) / Q), P bounded from below and Q from above, each wrong with probability `risk` at most."""
    from scipy.special import betaincinv

    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(high > 0, betaincinv(np.maximum(high, 1), trials - high + 1, risk), 0.0)
        q = np.where(low < trials, betaincinv(low + 1, np.maximum(trials - low, 1), 1 - risk), 1.0)
        return np.asarray(np.maximum(np.where(p > delta, np.log(np.maximum(p - delta, 1e-300) / q), 0.0), 0.0))


@dataclass(frozen=True, slots=True)
class Event:
    """Outputs whose score lies in some of the intervals between `edges`."""

    score: Score
    edges: Vector
    chosen: Mask
    likelier: Likelier

    def holds(self, outputs: Outputs) -> Mask:
        return np.asarray(self.chosen[np.searchsorted(self.edges, self.score(outputs), side="left")])

    def __str__(self) -> str:
        where = np.flatnonzero(self.chosen)
        if self.score.labels:
            named = [self.score.labels[i] for i in where if i < len(self.score.labels)]
            more = f" and {len(named) - SHOWN:,} others" if len(named) > SHOWN else ""
            return f"output in {{{', '.join(named[:SHOWN])}{more}}}"
        if len(where) and where[-1] - where[0] + 1 == len(where):
            low = "" if where[0] == 0 else f"{self.edges[where[0] - 1]:.6g} < "
            high = "" if where[-1] == len(self.edges) else f" <= {self.edges[where[-1]]:.6g}"
            return f"{low}{self.score.name}{high}"
        return f"{self.score.name} in {len(where)} of {len(self.chosen)} intervals"


def _refuse_what_never_runs(mechanism: Callable[..., Any], a: Any, b: Any, many: bool) -> None:
    runs = [output for data in (a, b) for output in _run(mechanism, data, FIRST, many, 0.0, silent)]
    if all(isinstance(output, Failure) for output in runs):
        raise DataError(
            f"The mechanism raised {runs[0].error} in each of {len(runs)} runs, so there is nothing to compare.",
            f"It is called with a data set{' and a number of runs' if many else ''} and returns its output.",
            "Call it by hand to see the error.",
            about="mechanism",
        )


def _run(
    mechanism: Callable[..., Any], data: Any, n: int, many: bool, done: float, progress: Progress
) -> Sequence[Any]:
    if many:
        outputs = _guarded(mechanism, data, n)
        progress("running the mechanism", done + 0.25)
        if isinstance(outputs, Failure):
            return [outputs] * n
        if not hasattr(outputs, "__len__") or len(outputs) != n:
            given = f"{len(outputs)}" if hasattr(outputs, "__len__") else f"a single {type(outputs).__name__}"
            raise DataError(
                f"The mechanism was asked for {n} outputs and gave {given}.",
                "It must give n of them.",
                about="mechanism",
            )
        return outputs  # type: ignore[no-any-return]
    outputs, told = [], 0.0
    for i in range(n):
        outputs.append(_guarded(mechanism, data))
        if time.monotonic() - told > OFTEN:
            told = time.monotonic()
            progress("running the mechanism", done + 0.25 * (i + 1) / n)
    return outputs


def _guarded(mechanism: Callable[..., Any], *arguments: Any) -> Any:
    """The output, or that there was none."""
    try:
        return mechanism(*arguments)
    except (Exception, SystemExit) as error:
        return Failure(type(error).__name__)


def _learn(encoded: Encoded, *, delta: float, risk: float) -> Event:
    """The event with the best bound: the first half of what is learnt from proposes, the second half chooses."""
    a, b = encoded.samples[:2]
    half = len(a) // 2
    best: tuple[float, Event] | None = None
    for score in scores_between(a[:half], b[:half], encoded.kinds):
        scored = {"a": score(a), "b": score(b)}
        edges = _edges(np.concatenate([scored["a"][:half], scored["b"][:half]]), score.labels)
        first, second = (
            {name: np.bincount(np.searchsorted(edges, s[part]), minlength=len(edges) + 1) for name, s in scored.items()}
            for part in (slice(half), slice(half, None))
        )
        sides: tuple[tuple[Likelier, Likelier], ...] = (("a", "b"), ("b", "a"))
        for likelier, other in sides:
            for order in _orders(first[likelier], first[other], labelled=bool(score.labels)):
                high, low = np.cumsum(second[likelier][order]), np.cumsum(second[other][order])
                bounds = epsilon_bound(high, low, len(a) - half, delta=delta, risk=risk)
                top = int(np.argmax(bounds))
                if best is None or bounds[top] > best[0]:
                    chosen = np.zeros(len(edges) + 1, dtype=np.bool_)
                    chosen[order[: top + 1]] = True
                    best = float(bounds[top]), Event(score, edges, chosen, likelier)
    assert best is not None
    return best[1]


def _edges(scores: Vector, labels: tuple[str, ...]) -> Vector:
    """Quantiles that cut the scores: evenly in the middle, ever finer in both tails; labels are cut one by one."""
    if labels:
        return np.arange(len(labels), dtype=np.float64)
    n = len(scores)
    tail = np.geomspace(FEW / n, 1 / BINS, 12) if n > FEW * BINS else np.array([])
    shares = np.unique(np.concatenate([tail, np.arange(1, BINS) / BINS, 1 - tail]))
    return np.asarray(np.unique(np.quantile(scores, shares, method="inverted_cdf")), dtype=np.float64)


def _orders(high: Integers, low: Integers, *, labelled: bool) -> Iterator[Integers]:
    """Orders in which intervals join the event: by their likelihood ratio, from the left, from the right."""
    yield np.argsort(-(high + 1.0) / (low + 1.0), kind="stable")
    if not labelled:
        yield np.arange(len(high))
        yield np.arange(len(high))[::-1]
