"""Employment flows by county, industry and quarter, in the shape of the Quarterly Workforce Indicators.

Abowd, Schneider and Vilhuber (2012) and Schneider (2014, chapter 3) fit mixed models to 2,428,452 rows: 20 industries,
3,111 counties of 48 states, quarters 22 (1990:2) to 101 (2010:1). Employment is drawn as a level, so the end of one
quarter is the beginning of the next; rates follow the papers: Ebar = (B + E)/2, JCR = max(0, (E - B)/Ebar),
JDR = max(0, (B - E)/Ebar), AR = A/Ebar, SR = S/Ebar, and JCR - JDR = AR - SR.

log E(c, j, t) = base + season of industry and quarter, of county and quarter, of cell and quarter + slow AR(1) noise
with Student innovations whose scale depends on industry, size, state, county and cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.simulate import draws, stream
from discreet.simulate.sectors import EMPLOYERS, SECTORS
from discreet.words.progress import Progress, silent

BLOCK = 64
"""Counties in one batch of rows."""

# Growth in the first, second and third quarter and mean absolute deviation from it, by sector: QWI, North Carolina
# 2010, counties with four published quarters. The fourth quarter closes the year.
# fmt: off
_GROWTH = np.array([
    (.100, .135, -.007, .131), (.043, .024, -.028, .054), (-.002, .011, -.001, .034), (.036, .025, -.019, .056),
    (-.007, .022, -.001, .046), (.024, .008, .011, .049), (.013, .026, -.010, .028), (.008, .024, .002, .075),
    (-.052, -.007, -.002, .064), (.006, -.019, .013, .031), (.001, .023, -.041, .075), (.060, -.049, -.024, .073),
    (.014, .023, .043, .094), (.106, .105, .020, .126), (.047, -.347, .332, .067), (-.005, .010, .010, .036),
    (.110, .318, -.245, .173), (.056, .083, -.038, .070), (.018, .046, -.018, .068), (.014, .036, -.022, .036),
])
# fmt: on

_DESIGN, _FLOWS = range(2)


@dataclass(frozen=True, slots=True)
class PanelShape:
    """The shape of the simulated panel at full size.

    The second group was fitted, by a search over simulated panels, to the documents' REML variances and correlations
    of fit; none of it comes from a private estimator.

    Attributes
    ----------
    rows, counties, states, first, last : the documents' figures; time is the quarter's number.
    thin_counties : counties with fewer than 15 rows (Schneider 2014, section 3.5.2).
    entry : a state enters after a share of the period whose law is beta(entry); half of the possible rows exist.
    late : share of the cells that enter after their state.
    county_median, county_sigma, cell_sigma : lognormal employment of a county, and of a cell around its sector's share.
    persistence : of the slow noise, per quarter.
    tail : degrees of freedom of the innovations.
    size_exponent : the scale of growth falls with this power of employment (North Carolina: -0.12 to -0.17).
    decline : relative yearly fall of the scale.
    churn_sigma : lognormal spread of hires that replace leavers.

    season : multiplies the industries' seasons.
    season_sigma : lognormal spread between cells of the industry's season.
    county_season, cell_season : standard deviations of the counties' and the cells' own seasons.
    scale : of the growth innovations.
    industry_power : how strongly an industry's scale follows its figure in North Carolina.
    state_scale, county_scale, cell_scale : lognormal spreads of the growth scale.
    momentum : autocorrelation of growth from quarter to quarter.
    """

    rows: int = 2_428_452
    counties: int = 3_111
    states: int = 48
    first: int = 22
    last: int = 101
    thin_counties: int = 5
    entry: tuple[float, float] = (1.6, 2.7)
    late: float = 0.1
    county_median: float = 4_000.0
    county_sigma: float = 1.5
    cell_sigma: float = 0.7
    persistence: float = 0.95
    tail: float = 3.5
    size_exponent: float = -0.12
    decline: float = 0.01
    churn_sigma: float = 0.85

    season: float = 1.015
    season_sigma: float = 0.4
    county_season: float = 0.057
    cell_season: float = 0.027
    scale: float = 0.0505
    industry_power: float = 1.58
    state_scale: float = 0.15
    county_scale: float = 0.85
    cell_scale: float = 0.46
    momentum: float = 0.25


SHAPE = PanelShape()


@dataclass(frozen=True, slots=True)
class PanelCells:
    """County x industry cells, in that order, with the first quarter of each and the law of its growth."""

    county: Integers
    industry: Integers
    start: Integers
    base: Vector
    scale: Vector
    season: Matrix
    state_of_county: Integers

    def of_counties(self, low: int, high: int) -> PanelCells:
        """The cells of some counties."""
        part = slice(*np.searchsorted(self.county, [low, high]))
        return PanelCells(
            self.county[part],
            self.industry[part],
            self.start[part],
            self.base[part],
            self.scale[part],
            self.season[part],
            self.state_of_county,
        )


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    progress: Progress = silent,
    shape: PanelShape = SHAPE,
) -> dict[str, Any]:
    """Write `qwi.parquet`: state, county, industry, year, season, quarter, B, E, A, S, jcr, jdr, ar, sr.

    Rows are in order of county, industry and quarter, without gaps inside a cell, so a lag is the row before.
    """
    return stream.write(
        folder,
        batches(seed=seed, share=share, shape=shape),
        about={"data": "qwi", "seed": seed, "share": share},
        total=draws.scaled(shape.rows, share),
        progress=progress,
    )


def batches(*, seed: int = 0, share: float = 1.0, shape: PanelShape = SHAPE) -> stream.Batches:
    """Yield ("qwi", batch), a block of counties at a time."""
    draws.check(seed, share)
    cells = design(draws.generator(seed, _DESIGN), share=share, shape=shape)
    return (
        ("qwi", _rows(draws.generator(seed, _FLOWS, block), cells.of_counties(block, block + BLOCK), shape=shape))
        for block in range(0, len(cells.state_of_county), BLOCK)
    )


def design(rng: np.random.Generator, *, share: float, shape: PanelShape) -> PanelCells:
    """The cells, their first and last periods, and their growth; the rows add up to the share's number exactly."""
    from scipy.special import betaincinv, ndtri

    def normal(n: int) -> Vector:
        return np.asarray(ndtri(draws.midpoints(rng, n)))

    counties, rows = draws.scaled(shape.counties, share, least=3), draws.scaled(shape.rows, share)
    states = min(shape.states, counties)
    weight = np.exp(0.7 * normal(states))
    state = np.searchsorted(np.cumsum(weight) / weight.sum(), (np.arange(counties) + 0.5) / counties)
    length = shape.last - shape.first + 1
    entry = (length * betaincinv(*shape.entry, draws.midpoints(rng, states))).astype(np.int64)

    jobs = np.array([sum(count * mean for count, mean in filter(None, row[1:])) for row in EMPLOYERS])
    base = np.log(shape.county_median) + shape.county_sigma * normal(counties)[:, None] + np.log(jobs / jobs.sum())
    base = base + shape.cell_sigma * rng.standard_normal(base.shape)
    grid = base.shape
    room = length - 8 - entry[state][:, None]
    delay = np.where(rng.random(grid) < shape.late, (np.maximum(room, 0) * rng.random(grid)), 0).astype(np.int64)
    start = shape.first + entry[state][:, None] + delay

    rank = base + rng.gumbel(scale=0.5, size=grid)
    first_cell = (np.arange(counties), rank.argmax(axis=1))
    thin = rng.choice(counties, size=min(shape.thin_counties, counties // 10), replace=False)
    rank[thin] = -np.inf
    rank[first_cell] = np.inf
    start[thin] = shape.last + 1 - rng.integers(8, 15, len(thin))[:, None]
    start = _cut(rank, start, stop=shape.last + 1, rows=rows)
    county, industry = np.nonzero(start <= shape.last)

    growth = np.concatenate([_GROWTH[:, :3], -_GROWTH[:, :3].sum(axis=1, keepdims=True)], axis=1)
    own = shape.county_season * rng.standard_normal((counties, 4))[county]
    own = own + shape.cell_season * rng.standard_normal((len(county), 4))
    season = shape.season * np.exp(shape.season_sigma * rng.standard_normal(len(county)))[:, None] * growth[industry]
    season += own - own.mean(axis=1, keepdims=True)
    level = base[county, industry]
    log_scale = (
        shape.industry_power * np.log(_GROWTH[:, 3] / _GROWTH[:, 3].mean())[industry]
        + shape.size_exponent * (level - level.mean())
        + shape.state_scale * normal(states)[state[county]]
        + shape.county_scale * normal(counties)[county]
        + shape.cell_scale * normal(len(county))
    )
    scale = shape.scale * np.exp(log_scale)
    return PanelCells(county, industry, start[county, industry], level, scale, season, state)


def _cut(rank: Matrix, start: Integers, *, stop: int, rows: int) -> Integers:
    """Keep the cells of highest rank until there are `rows` rows; the last one kept starts later, the rest never."""
    order = np.argsort(-rank, axis=None, kind="stable")
    kept = start.ravel()[order]
    before = np.cumsum(stop - kept) - (stop - kept)
    kept = np.maximum(kept, stop - np.maximum(rows - before, 0))
    cut = np.empty(start.size, np.int64)
    cut[order] = kept
    return cut.reshape(start.shape)


def _rows(rng: np.random.Generator, cells: PanelCells, *, shape: PanelShape) -> Any:
    """Employment levels of some cells, then the flows that explain them, as one record batch."""
    import pyarrow as pa
    from scipy.signal import lfilter

    quarter = np.arange(shape.first - 1, shape.last + 1)
    fading = np.exp(-shape.decline / 4 * (quarter - quarter.mean()))
    shocks = cells.scale[:, None] * fading * rng.standard_t(shape.tail, (len(cells.county), len(quarter)))
    shocks *= np.sqrt(1 - 2 / shape.tail)
    shocks[:, 0] /= np.sqrt(1 - shape.persistence**2)
    slow = lfilter([1.0], np.convolve([1.0, -shape.persistence], [1.0, -shape.momentum]), shocks, axis=1)
    seasonal = np.cumsum(cells.season[:, (quarter - 1) % 4], axis=1)
    level = np.rint(np.exp(cells.base[:, None] + slow + seasonal).clip(1, 1e7)).astype(np.int64)

    cell, t = np.nonzero(quarter[1:] >= cells.start[:, None])
    B, E = level[cell, t], level[cell, t + 1]
    mean = (B + E) / 2
    rate = (0.05 + 1.5 * _GROWTH[:, 3])[cells.industry[cell]] * rng.lognormal(sigma=shape.churn_sigma, size=len(cell))
    churn = np.maximum(rng.poisson(rate * mean), 1)
    A, S = churn + np.maximum(E - B, 0), churn + np.maximum(B - E, 0)
    q, county, state = quarter[1:][t], cells.county[cell], cells.state_of_county
    return pa.record_batch(
        {
            "state": stream.categories(state[county], [f"S{k:02d}" for k in range(state.max() + 1)]),
            "county": stream.categories(county, [f"S{s:02d}-{k:04d}" for k, s in enumerate(state)]),
            "industry": stream.categories(cells.industry[cell], SECTORS),
            "year": 1985 + (q - 1) // 4,
            "season": 1 + (q - 1) % 4,
            "quarter": q,
            "B": B,
            "E": E,
            "A": A,
            "S": S,
            "jcr": np.maximum(E - B, 0) / mean,
            "jdr": np.maximum(B - E, 0) / mean,
            "ar": A / mean,
            "sr": S / mean,
        }
    )
