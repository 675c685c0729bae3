"""Draws decided in Arb, with as many random bits as the decision takes.

A uniform variable is an infinite sequence of random bits of which a prefix is known; more are taken from the source
when the known ones leave the answer open. Precision and prefix grow together until every answer is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.noise.source import Source
    from discreet.noise.transforms import Transform

SATURATION = 2**62


class Uniform:
    """A uniform variable on (0, 1) known to ``bits`` binary digits, and a sign, from a first word and more."""

    __slots__ = ("bits", "digits", "sign")

    def __init__(self, word: int) -> None:
        self.digits, self.bits, self.sign = word >> 1, 63, 1 - 2 * (word & 1)

    def extend(self, word: int) -> None:
        self.digits, self.bits = self.digits << 64 | word, self.bits + 64

    def ball(self) -> Any:
        from flint import arb

        exponent = -self.bits - 1
        return arb(mid=(2 * self.digits + 1, exponent), rad=(1, exponent))


def propose(
    transform: Transform, *, words: Sequence[int], parameters: Sequence[float], source: Source
) -> list[int] | None:
    """The integers nearest to the values of one proposal, or None if the proposal is rejected."""
    from flint import arb, ctx

    uniforms = [Uniform(word) for word in words]
    precision = 128
    while True:
        with ctx.workprec(precision):
            values, test = transform.function(
                [u.ball() for u in uniforms], [u.sign for u in uniforms], *map(arb, parameters)
            )
            if test is not None and test > 0:
                return None
            if test is None or test < 0:
                integers = [nearest(value) for value in values]
                decided = [j for j in integers if j is not None]
                if len(decided) == len(integers):
                    return decided
        for u, word in zip(uniforms, source.words(len(uniforms)).tolist(), strict=True):
            u.extend(word)
        precision += 64


def nearest(value: Any) -> int | None:
    """The integer nearest to an Arb ball, at most `SATURATION` in size, or None while it is uncertain."""
    if value > SATURATION:
        return SATURATION
    if value < -SATURATION:
        return -SATURATION
    integer = (value + 0.5).floor().unique_fmpz()
    return None if integer is None else int(integer)
