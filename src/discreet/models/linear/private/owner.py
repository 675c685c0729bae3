"""The owner's own look at the data, before a release and outside of it: what a release must not say.

A release takes declared columns as public, and pulls responses into their bounds silently, because a message would
reveal something about rows. A person who may see the data can check here whether a declared column contains the
response again and how many responses would be clipped. What comes out of here is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.data.frames import missing, open_frame, refuse
from discreet.models.linear.private.owners_note import MIDDLE, NOTHING, OwnersNote, without_numbers
from discreet.privacy.losses import Number, exact

if TYPE_CHECKING:
    from discreet.data.delimited import Reading

ALIKE = 0.999  # rank correlation, or share of the variance, from which a column is the response again
OFTEN = 0.5  # share of a column's values that are the response of other rows
FARTHEST = 12  # rows apart in which earlier responses are looked for
MANY = 50  # different values from which two rows of one value are no chance
LARGE = 1e140  # squares of smaller numbers, and sums of them, are finite
FEWEST = 8  # rows that can show anything
NEAR = 4  # rows before and after of which a column may be made: a year of quarters
CLOSE = 0.05  # what responses nearby leave of the typical distance of a column from its middle, if it is made of them
ROUGHLY = 0.99  # rank correlation from which a column tells responses to a few per cent
EXACTLY = 1e-3  # of a column's range: what it may be off from the mean response of the rows that share its value
NEXT = 0.01  # of all ranks: how far apart rows with neighbouring responses lie in a curve of them, most of the time
LOOKED = 20_000  # rows that are enough to see whether columns make up the response together
COMMON = 0.2  # a value that so many rows have is no number that was made of responses


def look(
    data: Any,
    *,
    response: str,
    public: Sequence[str],
    bounds: tuple[Number, Number],
    numbers: Sequence[str] = (),
    lagged: Sequence[str] = (),
    outcomes: bool = False,
) -> list[OwnersNote]:
    """What the owner of `data` should know before a release that protects `response` and takes `public` as known.

    `numbers` are protected columns beside the response; `lagged` are columns that are known to hold earlier responses;
    `outcomes` says that true and false are responses.
    """
    read: dict[str, Reading] = {**dict.fromkeys(numbers, "response"), response: "outcome" if outcomes else "response"}
    frame = open_frame(data, readings=read, ordered=True)
    names = frame.collect_schema().names()
    asked = (response, *public, *numbers)
    refuse(missing(name, names, name="the data", asked=asked) for name in asked if name not in names)
    empty = [note for name in numbers for note in without_numbers(name, _numbers(_column(frame, name)), NOTHING)]
    y = _numbers(_column(frame, response))
    empty += without_numbers(response, y, MIDDLE)
    if y is None or any(note.fault for note in without_numbers(response, y, MIDDLE)):
        return empty
    beyond, y = list(_outside(y, response, bounds)), _squared(y)
    told: list[str] = []
    found: dict[str, Vector] = {}
    levels: dict[str, Integers] = {}
    for name in public:
        column = _column(frame, name)
        x = _numbers(column)
        x = None if x is None else _squared(x)
        levels[name] = _levels(column)
        if x is None:
            inside = _numbers_in(column)
            decided = list(_decided(levels[name], y, name, response))
            told += decided or ([] if inside is None else _again(inside, y, name, response, lagged))
        else:
            again = list(_again(x, y, name, response, lagged))
            told += again
            found |= {} if again or name in lagged else {name: x}
    told += (
        list(_within(found, levels, y, response)) or list(_together(found, y, response)) or _pairs(found, y, response)
    )
    return [*beyond, *empty, *map(OwnersNote, told)]


def _squared(y: Vector) -> Vector:
    """The same in a unit in which squares are finite, a power of two: what is alike stays alike."""
    largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
    return y if largest < LARGE else np.ldexp(y, -int(np.frexp(largest)[1]))


def _column(frame: Any, name: str) -> Any:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import collect

    chosen = frame.select(nw.col(name))
    return (collect(chosen, step=f"column {name}") if isinstance(chosen, nw.LazyFrame) else chosen.to_arrow())[name]


def _numbers(column: Any) -> Vector | None:
    """The column as numbers, nan where there is none; labels that are numbers count, and None is no column of them."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    try:
        return np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _numbers_in(column: Any) -> Vector | None:
    """The first number in each text, where most texts have one: "v0.12" is 0.12."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return None
    found = pc.struct_field(pc.extract_regex(column, r"(?P<number>-?[0-9]+\.?[0-9]*)"), "number")
    return _numbers(found) if found.null_count < OFTEN * len(found) else None


def _outside(y: Vector, name: str, bounds: tuple[Number, Number]) -> Iterator[OwnersNote]:
    low, high = (float(exact(end)) for end in bounds)
    beyond = np.isfinite(y) & ((y < low) | (y > high))
    if beyond.any():
        yield OwnersNote.of_rows(
            f"Some values of {name!r} lie outside [{low:g}, {high:g}] and count as the nearer end.", beyond
        )


def _again(x: Vector, y: Vector, name: str, response: str, lagged: Sequence[str]) -> Iterator[str]:
    """Whether numbers are the response again, in the same rows or in others."""
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < FEWEST or not (np.ptp(x[both]) and np.ptp(y[both])):
        return
    alike = abs(_rank_correlation(x[both], y[both]))
    copied = len(np.unique(y[both])) >= MANY and _equal(x, _rare(y))
    if alike > ALIKE or copied:
        yield (
            f"Column {name!r} is declared public and follows {response!r} from row to row: it reveals every response. "
            "Leave it out, or declare it as protected too."
        )
    elif name not in lagged and _holds_others(x, y, both):
        yield (
            f"Column {name!r} is declared public and holds values of {response!r} of other rows, such as earlier ones: "
            "it reveals those responses. Name it under lagged if they were published, or leave it out."
        )
    elif alike > ROUGHLY:
        yield (
            f"Column {name!r} is declared public and goes almost with {response!r}: it tells every response to a few "
            "per cent. Leave it out, or declare it as protected too."
        )
    elif name not in lagged and _computed_from(x, y):
        yield (
            f"Column {name!r} is declared public and is computed from {response!r} of its row and rows nearby, such as "
            "rounded earlier values, differences or running sums: it reveals those responses. Name it under lagged "
            "if "
            "they were published, or leave it out."
        )
    elif _means_of(x[both], y[both]):
        yield (
            f"Column {name!r} is declared public and holds means of {response!r} of the rows that share its value: it "
            "tells what they have in common. Leave it out, or release it under the guarantee first."
        )
    elif _goes_with(_ranks(x[both]), y[both]):
        yield _ranges(name, response)


def _ranges(name: str, response: str) -> str:
    return (
        f"Column {name!r} is declared public and goes with {response!r} as its classes or a curve of it would: it "
        f"tells in which range a response lies. Leave it out if it was made of {response!r}."
    )


def _goes_with(x: Vector, y: Vector) -> bool:
    """Whether values hardly change from one response to the next larger one, for any curve or classes of it."""
    if len(np.unique(y)) < MANY:
        return False
    chance = np.random.default_rng(0).permutation(len(y))  # among equal responses the order of rows must not count
    ordered, n = np.sort(x), len(x)
    by_chance = 2 * float((2 * np.arange(n) - n + 1) @ ordered) / n**2
    return float(np.abs(np.diff(x[np.lexsort((chance, y))])).mean()) < CLOSE * by_chance


def _curve_of_others(x: Vector, y: Vector) -> bool:
    """Whether most values are one curve of the responses a fixed number of rows away."""
    looked = slice(None, None, -(-len(y) // LOOKED))
    for step in (step for far in range(1, FARTHEST + 1) for step in (far, -far)):
        near = np.roll(y, step)[looked]
        both = np.isfinite(x[looked]) & np.isfinite(near)
        ranks = _ranks(x[looked][both])[np.argsort(near[both])]
        if len(ranks) >= FEWEST * MANY and np.median(np.abs(np.diff(ranks))) < NEXT * len(ranks):
            return True
    return False


def _means_of(x: Vector, y: Vector) -> bool:
    """Whether each value of a column is the mean response of its rows, as where levels are coded by it."""
    values, at, counts = np.unique(x, return_inverse=True, return_counts=True)
    if len(values) < FEWEST or np.median(counts) < 2:
        return False
    off = np.abs(np.bincount(at, y) / counts - values)
    return bool(np.quantile(off, 1 - OFTEN / 2) < EXACTLY * np.ptp(values))


def _computed_from(x: Vector, y: Vector) -> bool:
    """Whether a column is made of responses nearby: a sum, a running sum, a ratio, growth, or a smoothed series."""
    made = [(x, y), (np.diff(x, prepend=np.nan), y)]
    if np.nanmin(y) >= 0 and np.nanmin(x) >= -1:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(y)
            made += [(np.log(each), logs) for each in (x, 1 + x) if np.nanmin(each) >= 0]
    return (
        any(_made_of(*each) for each in made)
        or _made_of(x, y, itself=True)
        or (_of_many_values(x) and _of_many_values(y) and _curve_of_others(x, y))
    )


def _of_many_values(x: Vector) -> bool:
    values, counts = np.unique(x[np.isfinite(x)], return_counts=True)
    return len(values) >= MANY and bool(counts.max() <= COMMON * len(x))


def _made_of(x: Vector, y: Vector, *, itself: bool = False) -> bool:
    """Whether most of `x` are one sum of responses of the same row and a few around it, for any other rows.

    With `itself`, the column's value before is in the sum too, and must not be enough alone.
    """
    steps = np.arange(-NEAR, NEAR + 1)
    if len(y) < FEWEST * (len(steps) + 1):
        return False
    near = np.stack([*([np.roll(x, 1)] if itself else []), *(np.roll(y, -step) for step in steps)], axis=1)[NEAR:-NEAR]
    X, x = np.column_stack([np.ones(len(near)), near]), x[NEAR:-NEAR]
    rows = np.isfinite(X).all(axis=1) & np.isfinite(x)
    X, x = X[rows], x[rows]
    if len(x) < FEWEST * X.shape[1]:
        return False
    return _of_many_values(x) and _left(x, X) < CLOSE * (
        _left(x, X[:, :2]) if itself else float(np.median(np.abs(x - np.median(x))))
    )


def _left(x: Vector, X: Matrix) -> float:
    """What a sum of columns leaves of the rows that fit best."""
    kept = np.ones(len(x), dtype=bool)
    for _ in range(10):  # the half that fits best, again and again: rows where series meet fit nothing
        off = np.abs(x - X @ np.linalg.lstsq(X[kept], x[kept], rcond=None)[0])
        kept = off <= np.quantile(off, 1 - OFTEN / 2)
    return float(np.median(off))


def _ranks(values: Vector) -> Vector:
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[at])


def _rank_correlation(x: Vector, y: Vector) -> float:
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])


def _holds_others(x: Vector, y: Vector, both: Mask) -> bool:
    """Whether most of `x` are values of `y`, if these are rare, or are a few rows away from their place in `y`."""
    different = np.unique(y[both])
    if len(different) < MANY:
        return False
    if len(different) > len(y) / 5 and len(np.unique(x[both])) >= MANY and np.isin(x[both], different).mean() > OFTEN:
        return True
    steps = [step for step in range(1, FARTHEST + 1) if step < len(y)]
    rare = _rare(y)
    return any(_equal(x[step:], rare[:-step]) or _equal(x[:-step], rare[step:]) for step in steps)


def _rare(y: Vector) -> Vector:
    """Without the commonest value: two columns that are mostly 0 are no copies."""
    different, counts = np.unique(y[np.isfinite(y)], return_counts=True)
    return np.where(y == different[counts.argmax()], np.nan, y) if counts.max() > 1 else y


def _equal(x: Vector, y: Vector) -> bool:
    """Whether most are the same, of those where both are numbers."""
    known = np.isfinite(x) & np.isfinite(y)
    return bool((x == y)[known].sum() > OFTEN * max(known.sum(), 1))


def _levels(column: Any) -> Integers:
    """Codes of a column's values, -1 where there is none."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(
        column.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64
    )


def _decided(codes: Integers, y: Vector, name: str, response: str) -> Iterator[str]:
    """Whether levels determine the response: rows of one level, if there are several, have one response."""
    known = np.isfinite(y) & (codes >= 0)
    if known.sum() < FEWEST or not np.ptp(y[known]):
        return
    _, at, counts = np.unique(codes[known], return_inverse=True, return_counts=True)
    mean = np.bincount(at, y[known]) / counts
    several = counts[at] > 1
    spread = ((y[known] - mean[at]) ** 2)[several].sum()
    if several.mean() > OFTEN and spread < (1 - ALIKE) * ((y[known] - y[known].mean()) ** 2)[several].sum():
        yield (
            f"Column {name!r} is declared public and its levels decide {response!r}: each reveals its rows' responses. "
            "Leave it out, or declare it as protected too."
        )
    elif len(counts) < known.sum() / FEWEST:
        ordered = at[np.lexsort((np.random.default_rng(0).permutation(len(at)), y[known]))]
        if len(np.unique(y[known])) >= MANY and (ordered[1:] != ordered[:-1]).mean() < CLOSE * (
            1 - float(((counts / len(at)) ** 2).sum())
        ):
            yield _ranges(name, response)


def _within(found: dict[str, Vector], levels: dict[str, Integers], y: Vector, response: str) -> Iterator[str]:
    """Whether a column is the response in another unit for each value of another, such as parts of a group's mean."""
    for name, x in found.items():
        for other, codes in levels.items():
            rows = np.isfinite(x) & np.isfinite(y) & (codes >= 0)
            _, at, counts = np.unique(codes[rows], return_inverse=True, return_counts=True)
            if other == name or (counts >= FEWEST).sum() < 2 or counts[counts >= FEWEST].sum() < OFTEN * len(y):
                continue
            dx, dy = ((v - (np.bincount(at, v) / counts)[at]) for v in (x[rows], y[rows]))
            xx, yy, xy = (np.bincount(at, each) for each in (dx * dx, dy * dy, dx * dy))
            with np.errstate(divide="ignore", invalid="ignore"):
                alike = np.nan_to_num(xy**2 / (xx * yy))[counts >= FEWEST]
            if np.median(alike) > ALIKE:
                yield (
                    f"Column {name!r} is declared public and follows {response!r} within each value of {other!r}: it "
                    "reveals responses. Leave it out, or declare it as protected too."
                )
                break


def _pairs(found: dict[str, Vector], y: Vector, response: str) -> list[str]:
    """Whether two numeric columns give the response as a product or a ratio, as counts do whose ratio it is."""
    step = -(-len(y) // LOOKED)
    y, told = y[::step], []
    for one, other in combinations(found, 2):
        x, z = found[one][::step], found[other][::step]
        rows = np.isfinite(x) & np.isfinite(z) & np.isfinite(y)
        if rows.sum() < 4 * FEWEST or not all(np.ptp(each[rows]) for each in (x, y, z)):
            continue
        x, z, w = (each[rows] / np.abs(each[rows]).max() for each in (x, z, y))
        if any(_bilinear(*each) for each in ((x, z, w), (z, x, w), (w, z, x))):
            told.append(
                f"Columns {one}, {other} are declared public and {response!r} is their product or ratio: together they "
                "reveal every response. Leave one out, or declare it as protected too."
            )
    return told


def _bilinear(of: Vector, given: Vector, told: Vector) -> bool:
    """Whether `told` makes up nearly all of what `given` leaves of `of`, by itself and times `given`."""

    def left(*columns: Vector) -> float:
        X = np.column_stack([np.ones(len(of)), *columns])
        off = of - X @ np.linalg.lstsq(X, of, rcond=None)[0]
        return float(off @ off)

    without = left(given)
    return without > 1e-12 * float(of @ of) and left(given, told, told * given) < (1 - ALIKE) * without


def _together(found: dict[str, Vector], y: Vector, response: str) -> Iterator[str]:
    """Whether several numeric columns add up to the response, as rates of one identity do."""
    X = np.column_stack([np.ones(len(y)), *found.values()])
    rows = np.isfinite(X).all(axis=1) & np.isfinite(y)
    if len(found) < 2 or rows.sum() < FEWEST * X.shape[1] or not np.ptp(y[rows]):
        return
    X, y = X[rows] / np.maximum(np.abs(X[rows]).max(axis=0), 1e-300), y[rows]
    left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    if float(left @ left) < (1 - ALIKE) * float(((y - y.mean()) ** 2).sum()):
        yield (
            f"Columns {', '.join(found)} are declared public and add up to {response!r}: together they reveal every "
            "response. Leave one out, or declare it as protected too."
        )
