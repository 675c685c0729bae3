"""The picture of the README: a released table beside the same table under noise infusion. `make pages` draws it.

The data are simulated, so the true counts may stand beside both. The noise has a seed, so that the picture can be drawn
again: a rehearsal, not private.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

import discreet as dc
from discreet import demo
from discreet.audit.attacked import attack
from discreet.noise.source import SeededSource
from discreet.tables.baseline.establishments import histograms
from discreet.tables.baseline.infusion import Infusion

PICTURE = Path(__file__).parent / "images" / "tables.svg"
BY, KINDS = ["place", "sector", "ownership"], ["sex", "education"]
PLACE, ROWS = "A00022", 9
ALPHA, EPSILON, SHARE, SEED = 0.1, 2, 0.02, 1
WIDTH, LINE = 640, 25
SECTOR, TRUE, INFUSED, COUNT, INTERVAL = 12, 300, 432, 510, 628
"""Where columns stand: text of the first starts there, all others end there."""

LOOK = """
svg { font: 14px system-ui, sans-serif; font-variant-numeric: tabular-nums }
.ground { fill: #fff } .ink { fill: #1d2126 } .soft { fill: #575d66 } .line { stroke: #c9ced6 }
.theirs { fill: #a34700 } .ours { fill: #005f94 } .head { font-weight: 600 } .end { text-anchor: end }
@media (prefers-color-scheme: dark) {
  .ground { fill: #14181d } .ink { fill: #e8ebef } .soft { fill: #aab2bd } .line { stroke: #3c444e }
  .theirs { fill: #ff9d5c } .ours { fill: #63b8ee }
}
"""


def draw() -> str:
    """The picture as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        dc.simulate.lodes.write(Path(folder), seed=SEED, share=SHARE)
        jobs = dc.read_jobs(folder)
        session = dc.Session(jobs, unit=dc.Establishments(ALPHA), budget=2 * EPSILON, seed=SEED)
        release = session.count(by=BY).release(epsilon=EPSILON)
        by_kinds = session.count(by=[*BY, *KINDS]).release(epsilon=EPSILON)
        target, infusion = histograms(jobs, workplace_by=BY, worker_by=KINDS), Infusion()
        factors = infusion.factors(target.establishment, key=demo.KEY)
        attacked = attack(
            {
                "noise infusion": infusion.publish(target, factors, source=SeededSource(1)),
                "this release": np.maximum(by_kinds.counts, 0).astype(np.float64),
            },
            target,
        )
        firms = histograms(jobs, workplace_by=BY, worker_by=[])
    true = firms.cells().counts
    factors = infusion.factors(firms.establishment, key=demo.KEY)
    infused = np.rint(infusion.publish(firms, factors, source=SeededSource(SEED)))
    at = [i for i, key in enumerate(release.keys.to_pylist()) if key["place"] == PLACE][:ROWS]
    rows = [
        (
            release.keys["sector"][i].as_py().split(" ", 1)[1],
            *(int(column[i, 0]) for column in (true, infused, release.counts, release.lower, release.upper)),
        )
        for i in at
    ]
    found = {str(row["table"]): str(row["exact"]) for row in attacked if row["attack"] == "size"}
    facts = [
        ("", "noise infusion", "discreet"),
        (
            f"mean error of all {len(true):,} counts",
            *(f"{np.abs(table - true).mean():.1f}" for table in (infused, release.counts)),
        ),
        ("workforces that an attack finds exactly", found["noise infusion"], found["this release"]),
        ("what is proved", "nothing", f"alpha {ALPHA}, epsilon {EPSILON}"),
    ]
    return svg(rows, facts)


def svg(rows: list[tuple[str, int, int, int, int, int]], facts: list[tuple[str, str, str]]) -> str:
    """The picture of `rows` (sector, true, infused, count, lower, upper) above `facts` (what, theirs, ours)."""
    inside = len(rows) + 1
    height = LINE * (inside + len(facts)) + 26
    alt = "; ".join(f"{row[0]}: true {row[1]}, infused {row[2]}, released {row[3]}" for row in rows)
    alt += ". " + "; ".join(f"{what}: {a} under noise infusion, {b} with discreet" for what, a, b in facts[1:]) + "."
    body = [*_table(rows), f'<path class="line" d="M12 {LINE * inside + 9}H{WIDTH - 12}"/>']
    for number, (what, theirs, ours) in enumerate(facts, start=inside + 1):
        head = "head " * (not what)
        y = LINE * number + 4
        body += [_text(SECTOR, y, what, "soft"), _text(INFUSED, y, theirs, f"{head}theirs end")]
        body.append(_text(INTERVAL, y, ours, f"{head}ours end"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'style="max-width: 100%; height: auto" role="img" aria-labelledby="tables-alt">'
        f'<desc id="tables-alt">{escape(alt)}</desc><style>{LOOK}</style>\n'
        f'<rect class="ground" width="100%" height="100%" rx="6"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _table(rows: list[tuple[str, int, int, int, int, int]]) -> Iterator[str]:
    yield _text(SECTOR, LINE, "jobs in one place", "head ink")
    for x, title, look in (
        (TRUE, "true", "soft"),
        (INFUSED, "noise infusion", "theirs"),
        (COUNT, "discreet", "ours"),
        (INTERVAL, "95 % interval", "ours"),
    ):
        yield _text(x, LINE, title, f"head {look} end")
    for number, (sector, true, infused, count, lower, upper) in enumerate(rows, start=2):
        y = LINE * number
        yield _text(SECTOR, y, sector, "ink")
        yield _text(TRUE, y, true, "soft end")
        yield _text(INFUSED, y, infused, "theirs end")
        yield _text(COUNT, y, count, "ours end")
        yield _text(INTERVAL, y, f"{lower} to {upper}", "ours end")


def _text(x: float, y: float, text: object, look: str) -> str:
    return f'<text class="{look}" x="{x}" y="{y}">{escape(str(text))}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
