"""Distances of workforces, against a search through all neighbouring workforces that knows only the definitions."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.distance import distance, rung, rungs, size_steps
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers
from discreet.words.errors import PrivacyError
from faults_of import about

SIDE = 12
ALPHAS = ("0.1", "0.25", "0.5", "1")


def neighbours(unit: Establishments, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Definitions 7.1 and 7.3, word for word, with the last term of the second restored."""
    small, large = sorted((one, other), key=sum)
    if one == other or any(a > b for a, b in zip(small, large, strict=True)):
        return False
    unions = list(product((0, 1), repeat=len(one))) if unit.strength == "weak" else [(1,) * len(one)]
    return all(
        sum(b for b, c in zip(large, union, strict=True) if c)
        <= max((1 + unit.alpha) * (have := sum(a for a, c in zip(small, union, strict=True) if c)), have + 1)
        for union in unions
    )


def searched(unit: Establishments, start: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The price of the cheapest way to every workforce of the square, by Dijkstra's rule."""
    states = list(product(range(SIDE), repeat=len(start)))
    price, queue = {start: Fraction(0)}, [(Fraction(0), start)]
    while queue:
        cost, here = heappop(queue)
        if cost > price[here]:
            continue
        for there in states:
            if neighbours(unit, here, there):
                one = abs(sum(here) - sum(there)) == 1
                more = cost + (Fraction(1, 2) if unit.substitution and one else 1)
                if more < price.get(there, more + 1):
                    price[there] = more
                    heappush(queue, (more, there))
    return price


@pytest.mark.parametrize("strength", ["strong", "weak"])
@pytest.mark.parametrize("substitution", [False, True])
@pytest.mark.parametrize(("alpha", "start"), [("0.25", (5, 2)), ("0.5", (0, 6)), ("1", (3, 3))])
def test_two_kinds_are_as_far_apart_as_a_search_finds(
    alpha: str, start: tuple[int, int], strength: str, substitution: bool
) -> None:
    unit = Establishments(alpha, strength, substitution=substitution)  # type: ignore[arg-type]
    found = searched(unit, start)
    for end in product(range(7), repeat=2):  # ways through larger workforces stay inside the square
        assert distance(unit, start, end) == found[end], end


@pytest.mark.parametrize("alpha", ALPHAS)
def test_sizes_are_as_far_apart_as_a_search_finds(alpha: str) -> None:
    unit = Establishments(alpha)
    for start in (0, 1, 7, 30):
        reached, queue = {start: 0}, deque([start])
        while queue:
            here = queue.popleft()
            for there in range(here + 1, min(unit.largest_neighbour(here), 60) + 1):
                if there not in reached:
                    reached[there] = reached[here] + 1
                    queue.append(there)
        assert all(size_steps(unit, start, size) == steps for size, steps in reached.items())


@pytest.mark.parametrize("alpha", ["0.07", *ALPHAS, "2.5"])
@pytest.mark.parametrize("substitution", [False, True])
def test_the_way_down_has_the_steps_of_the_way_up(alpha: str, substitution: bool) -> None:
    unit = Establishments(alpha, substitution=substitution)
    for large, small in ((a, b) for a in range(60) for b in range(a + 1)):
        assert sum(1 for _ in rungs(unit, large, small)) * rung(unit) == size_steps(unit, small, large)


@given(st.tuples(*[st.integers(0, 8)] * 2), st.tuples(*[st.integers(0, 8)] * 2), st.tuples(*[st.integers(0, 8)] * 2))
def test_it_is_a_distance(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> None:
    for unit in (Workers(), EstablishmentNodes(100), Establishments("0.2"), Establishments("0.2", "weak")):
        assert (distance(unit, a, b) == 0) == (a == b)
        assert distance(unit, a, b) == distance(unit, b, a)
        assert distance(unit, a, c) <= distance(unit, a, b) + distance(unit, b, c)


def test_weak_distances_are_no_shorter() -> None:
    for a, b in [((3, 40), (4, 60)), ((10, 10), (0, 20)), ((1, 1), (5, 5))]:
        assert distance(Establishments("0.1"), a, b) <= distance(Establishments("0.1", "weak"), a, b)


def test_three_kinds_that_grow_at_once_respect_their_unions() -> None:
    """Each may gain one worker, and all together one as well: three steps, not one."""
    assert distance(Establishments("0.1", "weak"), (1, 1, 1), (2, 2, 2)) == 3
    assert distance(Establishments("0.1", "weak"), (30, 30, 30), (33, 33, 33)) == 1


def test_equation_8_and_13() -> None:
    """|E'| = (1 + alpha)^k |E| is k steps; delta grows by e^eps with each."""
    unit = Establishments("0.1")
    steps = distance(unit, 1000, 1331)
    assert steps == 3
    assert Pure("0.5").at_distance(int(steps)) == Pure("1.5")
    delta = Approximate(1, "0.001").at_distance(2).amounts["delta"]
    assert float(delta) == pytest.approx(0.001 * (1 + 2.718281828459045))


def test_establishments_that_are_left_out_are_not_seen() -> None:
    unit = EstablishmentNodes(50)
    assert [distance(unit, 40, 45), distance(unit, 40, 60), distance(unit, 60, 70)] == [2, 1, 0]


@pytest.mark.parametrize("wrong", [-1, (), (1, -1), (True, 2), ("a",), 1.5])
def test_what_is_no_workforce_is_refused(wrong: object) -> None:
    with pytest.raises(PrivacyError, check=about("before")):
        distance(Workers(), (wrong,) if isinstance(wrong, float) else wrong, 3)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, check=about("after")):
        distance(Workers(), (1, 2), (1, 2, 3))
    with pytest.raises(PrivacyError, check=about("after")):
        distance(Establishments("0.1", "weak"), (1, 1), (1000, 1000))
