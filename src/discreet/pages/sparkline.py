"""A small picture of a series: SVG, no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, PAD = 120, 28, 3


def sparkline(recent: Sequence[float], forecast: float, *, name: str) -> str:
    """The recent values as a line and the forecast as a point, with words for those who cannot see it."""
    values = [*recent, forecast]
    low, high = min(values), max(values)
    step = (WIDTH - 2 * PAD) / max(len(values) - 1, 1)
    scale = (HEIGHT - 2 * PAD) / (high - low if high > low else 1)
    points = [(PAD + k * step, HEIGHT - PAD - (value - low) * scale) for k, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[:-1])
    x, y = points[-1]
    words = (
        f"{name}: {len(recent)} periods from {min(recent):.4g} to {max(recent):.4g}, last {recent[-1]:.4g}, "
        f"forecast {forecast:.4g}"
    )
    return (
        f'<svg class="spark" role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{escape(words, quote=True)}">'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.2"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="#c2410c"/></svg>'
    )
