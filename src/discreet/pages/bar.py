"""One bar made of the parts of a whole. Every release's report has one, so it is drawn here, without a chart engine."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from discreet.pages import numbers
from discreet.pages.look import CHARACTER, FONT, PALETTE

WIDTH, HEIGHT, LINE = 640, 30, 24  # pixels: of the bar, and of a line of its legend


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts with their lengths, left to right."""

    parts: tuple[tuple[str, float], ...]
    unit: str

    def to_dict(self) -> dict[str, Any]:
        """What it draws, as a chart's data."""
        return {"data": {"values": [{"part": part, self.unit: length} for part, length in self.parts]}}

    def svg(self, *, alt: str, name: str) -> str:
        """The bar over a legend that names each part and its length."""
        whole = sum(length for _, length in self.parts) or 1.0
        drawn, x, across, line = [], 0.0, 0.0, 0
        for (part, length), colour in zip(self.parts, PALETTE, strict=False):
            word = f"{part}: {numbers.text(length)}"
            room = 22 + CHARACTER * len(word) + 18
            if across and across + room > WIDTH:
                across, line = 0.0, line + 1
            at, share = HEIGHT + 12 + LINE * line, WIDTH * length / whole
            drawn += [
                f'<rect x="{x:.2f}" y="0" width="{share:.2f}" height="{HEIGHT}" fill="{colour}"/>',
                f'<rect x="{across:.2f}" y="{at}" width="14" height="14" fill="{colour}"/>',
                f'<text x="{across + 22:.2f}" y="{at + 11.5}" fill="currentColor">{escape(word)}</text>',
            ]
            x, across = x + share, across + room
        height = HEIGHT + 12 + LINE * (line + 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
            f' role="img" aria-labelledby="{name}-alt" font-family="{FONT}" font-size="12.5">'
            f'<desc id="{name}-alt">{escape(alt)}</desc>{"".join(drawn)}</svg>'
        )
