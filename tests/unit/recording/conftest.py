"""A source that writes down every draw, and what each draw tells one data set from its neighbour.

A release is run twice. The first run, on the data, keeps a record: the law and the scale of every draw, the number to
which its noise was added, and the sum. The second run, on a neighbour, is given the same sums, whatever it adds them
to: it is the release on the neighbour that publishes the same. What the two runs add noise to differs by what one row
or one job can change, and that change over the recorded scale is the loss of the draw. No sensitivity of the code
under test enters. A number that reached the release without noise shows because the two releases differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.noise import sampler
from discreet.noise.laws import DiscreteLaplace, Gaussian, Laplace
from discreet.noise.transforms import LOG_LAPLACE, Transform
from discreet.release import account
from discreet.tables.mechanisms import ladder, two_sizes, weak_joint, weak_unions
from discreet.tables.movement import flow_noise


@dataclass(eq=False)
class Draw:
    """One call of the sampler.

    Attributes
    ----------
    law : its law; `parameters`, the scales, or multiplier, exponent and addend of Log-Laplace noise.
    bare : what noise was added to; `published`, the sums. Not a number where nothing was added yet.
    one_sided : the size of the noise was added, for a maximum; `compared` : sums were only compared with each other.
    taken : the noise was used as it is.
    """

    law: Any
    parameters: tuple[np.ndarray, ...]
    noise: np.ndarray
    bare: np.ndarray = field(init=False)
    published: np.ndarray = field(init=False)
    one_sided: bool = False
    compared: bool = False
    taken: bool = False

    def __post_init__(self) -> None:
        self.bare = np.full(self.noise.shape, None, dtype=object)
        self.published = np.full(self.noise.shape, None, dtype=object)

    @property
    def scale(self) -> np.ndarray:
        return np.stack(self.parameters, axis=1) if isinstance(self.law, Paired) else self.parameters[0]


class Noise(np.lib.mixins.NDArrayOperatorsMixin):
    """Noise that knows what it is added to. `at` says which entries of the draw it holds."""

    def __init__(self, draw: Draw, at: np.ndarray, given: Draw | None) -> None:
        self.draw, self.at, self.given = draw, at, given

    shape = property(lambda self: self.at.shape)
    ndim = property(lambda self: self.at.ndim)

    def _like(self, at: Any) -> Noise:
        return Noise(self.draw, np.asarray(at), self.given)

    def reshape(self, *shape: Any) -> Noise:
        return self._like(self.at.reshape(*shape))

    def swapaxes(self, a: int, b: int) -> Noise:
        return self._like(self.at.swapaxes(a, b))

    def __getitem__(self, key: Any) -> Noise:
        return self._like(self.at[key])

    def __len__(self) -> int:
        return len(self.at)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.draw.taken = True
        return self.draw.noise[self.at].astype(dtype or np.int64)

    def __int__(self) -> int:
        self.draw.taken = True
        return int(self.draw.noise[self.at])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.absolute:
            self.draw.one_sided = True
            return self
        if ufunc is not np.add:
            inputs = tuple(np.asarray(x) for x in inputs)
            return getattr(ufunc, method)(*inputs, **options)
        bare = np.broadcast_to(np.asarray(next(x for x in inputs if x is not self)), self.at.shape)
        drawn = np.abs(self.draw.noise[self.at]) if self.draw.one_sided else self.draw.noise[self.at]
        self.draw.bare[self.at] = bare.tolist()
        fresh = (bare + drawn).tolist()
        self.draw.published[self.at] = fresh if self.given is None else self.given.published[self.at]
        sums = self.draw.published[self.at]
        result = np.array(sums.tolist() if self.ndim else sums, dtype=np.result_type(bare.dtype, np.int64))
        if "out" in options:
            np.copyto(options["out"][0], result)
            return options["out"][0]
        return Published.of(result, self.draw)


class Published(np.ndarray):
    """Sums of numbers and noise, which see whether they are only compared."""

    draw: Draw

    @classmethod
    def of(cls, values: np.ndarray, draw: Draw) -> Published:
        found = values.view(cls)
        found.draw = draw
        return found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        draws = {id(getattr(x, "draw", None)) for x in inputs}
        if ufunc is np.greater_equal and len(draws) == 1:
            self.draw.compared = True
        plain = [np.asarray(x) if isinstance(x, Published) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


class Recorder:
    """The source that an account hands out. Whoever asks it for words has gone round the sampler."""

    private = True

    def __init__(self, seed: int, given: Sequence[Draw] | None, script: Sequence[np.ndarray]) -> None:
        self.draws: list[Draw] = []
        self.given, self.script = given, script
        self.rng = np.random.default_rng(seed)

    def words(self, n: int) -> np.ndarray:
        raise AssertionError("random words were drawn past the sampler")

    def draw(self, transform: Any, parameters: Sequence[np.ndarray], *, source: Any, exact: bool) -> Any:
        assert source is self, "noise was drawn from another source than the account's"
        size, place = parameters[0].size, len(self.draws)
        noise = self.rng.laplace(size=(size, transform.outputs))
        if place < len(self.script):
            integers = np.asarray(self.script[place], dtype=np.int64).reshape(size, transform.outputs)
        else:
            integers = np.rint(noise * parameters[0][:, None]).astype(np.int64)
        earlier = None if self.given is None else self.given[place]
        draw = Draw(transform.law, tuple(parameters), integers.ravel())
        self.draws.append(draw)
        if transform.law == "log-laplace":
            multiplier, exponent, addend = parameters
            draw.bare = multiplier
            fresh = np.rint(multiplier * np.exp(exponent * noise[:, 0]) + addend).astype(np.int64)
            draw.published = fresh if earlier is None else earlier.published
            return draw.published[:, None]
        return Noise(draw, np.arange(integers.size).reshape(integers.shape), earlier)

    def draw_within(self, law: Any, *, scale: np.ndarray, total: np.ndarray, source: Any) -> Any:
        return self.draw(Tagged(Within(law), scale.shape[1]), [total, *scale.T], source=source, exact=False)

    def draw_unions(self, law: Any, *, sizes: np.ndarray, scale: np.ndarray, source: Any) -> Any:
        d = sizes.shape[1].bit_length() - 1
        return self.draw(Tagged(Unions(law), d), list(scale[sizes].T[1:]), source=source, exact=False)

    def draw_flows(self, law: Any, *, scale: np.ndarray, source: Any) -> Any:
        return self.draw(Tagged(Within(law), 5), [scale], source=source, exact=False)


@dataclass(frozen=True)
class Within:
    """A law of rings in a norm whose scales are the parameters of the draw: of all, then of every kind."""

    law: Any


@dataclass(frozen=True)
class Unions:
    """A law of rings in a norm whose parameters are the bounds of all sets of kinds but the empty one."""

    law: Any


@dataclass(frozen=True)
class Laddered:
    """The law of a ladder's noise; its parameter is the workers of the largest establishment."""

    mechanism: Any
    dimension = 1

    def probability(self, j: np.ndarray, size: float) -> np.ndarray:
        return self.mechanism.integer_probability(j, size)


@dataclass(frozen=True)
class Paired(Laddered):
    """The law of noise that follows the two largest establishments, whose workers are its parameters."""

    def probability(self, j: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        return self.mechanism.integer_probability(j, *sizes)


def _ladder(mechanism: Any, largest: np.ndarray, source: Any) -> Any:
    size = np.maximum(largest, 1).ravel().astype(np.float64)
    noise = source.draw(Tagged(Laddered(mechanism), 1), [size], source=source, exact=False)
    return noise.reshape(largest.shape)


def _two_sizes(mechanism: Any, largest: np.ndarray, source: Any) -> Any:
    sizes = [np.maximum(largest[..., 0], 1).ravel().astype(np.float64), largest[..., 1].ravel().astype(np.float64)]
    noise = source.draw(Tagged(Paired(mechanism), 1), sizes, source=source, exact=False)
    return noise.reshape(largest.shape[:-1])


@dataclass(frozen=True)
class Tagged:
    """A transform that remembers its law."""

    law: Any
    outputs: int


@dataclass(frozen=True)
class Record:
    """A release with its draws: what is public of it, and what the ledger was charged."""

    public: Any
    charged: Any
    draws: list[Draw]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Record]:
    """`record(door)`, or `record(door, given=earlier)` with the sums of an earlier record.

    `door()` releases and gives what is public and the charge.
    """
    monkeypatch.setattr(sampler, "ring_radii", lambda law, n, source: [])  # rings are part of the draw
    monkeypatch.setattr(ladder.LadderNoise, "noise", _ladder)
    monkeypatch.setattr(two_sizes.TwoSizesNoise, "noise", _two_sizes)
    own = Transform.of
    monkeypatch.setattr(Transform, "of", lambda law: Tagged(law, own(law).outputs))
    monkeypatch.setattr(sampler, "LOG_LAPLACE", Tagged("log-laplace", LOG_LAPLACE.outputs))

    def run(
        door: Callable[[], tuple[Any, Any]],
        *,
        given: Record | None = None,
        seed: int = 0,
        script: Sequence[np.ndarray] = (),
    ) -> Record:
        recorder = Recorder(seed, None if given is None else given.draws, script)
        monkeypatch.setattr(sampler, "_draw", recorder.draw)
        monkeypatch.setattr(weak_joint, "draw_within", recorder.draw_within)
        monkeypatch.setattr(weak_unions, "draw_unions", recorder.draw_unions)
        monkeypatch.setattr(flow_noise, "draw_flows", recorder.draw_flows)
        monkeypatch.setattr(account, "SystemSource", lambda: recorder)
        monkeypatch.setattr(account, "SeededSource", lambda seed: recorder)
        public, charged = door()
        for draw in recorder.draws:
            assert draw.taken or all(value is not None for value in draw.bare), "noise was drawn and not used"
        return Record(public, charged, recorder.draws)

    return run


@pytest.fixture
def losses(record: Callable[..., Record]) -> Callable[..., tuple[list[Fraction], Record]]:
    """The largest loss of every draw over all neighbours, and the record of the release on the data."""

    def found(
        door: Callable[[Any], tuple[Any, Any]], data: Any, neighbours: Iterable[Any], **options: Any
    ) -> tuple[list[Fraction], Record]:
        told = record(lambda: door(data), **options)
        worst = [Fraction(0)] * len(told.draws)
        for other in neighbours:
            again = record(lambda other=other: door(other), given=told, **options)
            assert same(told.public, again.public), "what is published depends on data to which no noise was added"
            pairs = zip(worst, told.draws, again.draws, strict=True)
            worst = [max(most, loss(a, b), loss(b, a)) for most, a, b in pairs]
        return worst, told

    return found


def loss(a: Draw, b: Draw) -> Fraction:
    """What a draw tells two data sets apart by, in epsilon, or rho for the Gaussian law; exact."""
    assert type(a.law) is type(b.law) and not a.taken
    assert np.array_equal(a.scale, b.scale), "the scale of the noise depends on the data"
    scale = [Fraction(s) for s in a.scale]
    moved = [Fraction(y) - Fraction(x) for x, y in zip(a.bare, b.bare, strict=True)]
    if isinstance(a.law, Gaussian):
        return sum((d**2 / (2 * s**2) for d, s in zip(moved, scale, strict=True)), Fraction(0))
    assert isinstance(a.law, Laplace | DiscreteLaplace), a.law
    if a.one_sided:  # the chosen place catches up with the one that gained most
        return (max(moved) - min(moved)) / min(scale)
    if a.compared:  # the threshold, last, is raised above those that were passed over; the chosen one makes up for it
        *before, threshold = moved
        raised, worst = Fraction(0), Fraction(0)
        for d, s in zip(before, scale, strict=False):
            worst = max(worst, abs(raised - threshold) / scale[-1] + max(raised - d, Fraction(0)) / s)
            raised = max(raised, d)
        return worst
    return sum((abs(d) / s for d, s in zip(moved, scale, strict=True)), Fraction(0))


def same(a: Any, b: Any) -> bool:
    """Whether two released values are equal in every number."""
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b != b)


@pytest.fixture
def amount() -> Callable[[Any], Fraction]:
    """The one number of a loss."""

    def only(charged: Any) -> Fraction:
        (value,) = charged.amounts.values()
        return value

    return only
