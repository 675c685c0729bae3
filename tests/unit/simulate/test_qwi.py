"""QWI-shaped flows: accounting identities exactly, and the documents' mixed-model figures by REML."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize

from discreet.simulate import draws, qwi, stream
from discreet.words.errors import DataError

GIB = 1 << 30
RESIDUAL, COUNTY = 0.01045409, 0.00016302  # improved model: 20 industries, four lags, county (table III / 3.4)
CORRELATION = {"industry": 0.30, "county": 0.35, "season": 0.44, "lags": 0.4967}


class Fit(NamedTuple):
    residual: float
    variances: np.ndarray
    correlation: float


def reml(y, X, county, kinds) -> Fit:
    """REML of y = X b + Z u + e from moments per county.

    `kinds` lists the random effects: each is a list of indicator columns that share a variance within a county.
    """
    Z = [column for columns in kinds for column in columns]
    owner = np.repeat(np.arange(len(kinds)), [len(columns) for columns in kinds])
    m = county.max() + 1
    per = lambda value: np.bincount(county, value, m)  # noqa: E731
    ZZ = np.stack([np.stack([per(a * b) for b in Z], -1) for a in Z], -1)
    ZX = np.stack([np.stack([per(a * x) for x in X.T], -1) for a in Z], 1)
    Zy = np.stack([per(a * y) for a in Z], -1)
    XX, Xy, yy, df = X.T @ X, X.T @ y, y @ y, len(y) - X.shape[1]

    def solve(theta):
        ratio = np.exp(theta)[owner]
        A = ZZ + np.diag(1 / ratio)
        right = np.linalg.solve(A, np.concatenate([ZX, Zy[..., None]], -1))
        AX, Ay = right[..., :-1], right[..., -1]
        XVX = XX - np.einsum("cqp,cqr->pr", ZX, AX)
        XVy = Xy - np.einsum("cqp,cq->p", ZX, Ay)
        b = np.linalg.solve(XVX, XVy)
        residual = (yy - (Zy * Ay).sum() - XVy @ b) / df
        logdet = np.linalg.slogdet(A)[1].sum() + m * np.log(ratio).sum() + np.linalg.slogdet(XVX)[1]
        return df * np.log(residual) + logdet, residual, b, Ay - AX @ b

    theta = minimize(
        lambda theta: solve(theta)[0], [-4.0] * len(kinds), method="Nelder-Mead", options={"xatol": 1e-4}
    ).x
    _, residual, b, u = solve(theta)
    fitted = X @ b + sum(column * u[county, k] for k, column in enumerate(Z))
    return Fit(residual, residual * np.exp(theta), np.corrcoef(y, fitted)[0, 1])


def fits(flows) -> dict[str, Fit]:
    """The documents' four models: industries; + trend and county; + county x season; four lags and county."""
    y, county, industry = flows["jcr"], flows["county"], flows["industry"]
    means = np.bincount(industry, y) / np.bincount(industry)
    one, indicators = np.ones(len(y)), np.eye(20)[industry]
    trend = np.column_stack([indicators, flows["quarter"]])
    seasons = [(flows["season"] == k).astype(float) for k in (1, 2, 3, 4)]
    out = {"industry": Fit(np.nan, np.array([]), np.corrcoef(y, means[industry])[0, 1])}
    out["county"] = reml(y, trend, county, [[one]])
    out["season"] = reml(y, trend, county, [[one], seasons])
    cell = county * 20 + industry
    at = 4 + np.nonzero(cell[4:] == cell[:-4])[0]
    lags = np.column_stack([indicators[at], *(y[at - k] for k in (1, 2, 3, 4))])
    out["lags"] = reml(y[at], lags, county[at], [[one[at]]])
    return out


def test_reml_agrees_with_the_closed_form():
    """Balanced one-way layout: REML is the analysis of variance."""
    rng = np.random.default_rng(1)
    y = (rng.normal(0, 0.7, (40, 1)) + rng.normal(size=(40, 9))).ravel()
    group = np.repeat(np.arange(40), 9)
    within = y.reshape(40, 9).var(axis=1, ddof=1).mean()
    between = 9 * y.reshape(40, 9).mean(axis=1).var(ddof=1)
    fit = reml(y, np.ones((360, 1)), group, [[np.ones(360)]])
    assert fit.residual == pytest.approx(within, rel=1e-5)
    assert fit.variances[0] == pytest.approx((between - within) / 9, rel=1e-3)


def test_accounting_identities_hold(flows):
    B, E, A, S = (flows[name] for name in "BEAS")
    mean = (B + E) / 2
    assert min(column.min() for column in (B, E, A, S)) >= 1
    assert np.array_equal(E - B, A - S)
    assert np.allclose(flows["jcr"] - flows["jdr"], flows["ar"] - flows["sr"], atol=1e-9, rtol=0)
    assert np.array_equal(flows["jcr"], np.maximum(E - B, 0) / mean)
    assert np.array_equal(flows["ar"], A / mean)
    for rate in ("jcr", "jdr"):
        assert flows[rate].min() >= 0
        assert flows[rate].max() < 2
    assert np.all(flows["jcr"] * flows["jdr"] == 0)


def test_a_cell_is_a_gapless_spell_whose_quarters_join(flows):
    cell = flows["county"] * 20 + flows["industry"]
    next_ = cell[1:] == cell[:-1]
    assert np.all(np.diff(cell) >= 0)
    assert np.all(np.diff(flows["quarter"])[next_] == 1)
    assert np.array_equal(flows["B"][1:][next_], flows["E"][:-1][next_])
    assert flows["quarter"].max() == 101
    assert flows["quarter"].min() >= 22
    year, season = flows["year"], flows["season"]
    assert np.array_equal(flows["quarter"], 4 * (year - 1985) + season)
    assert (year.max(), season[flows["quarter"] == 101][0]) == (2010, 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_design_has_the_documents_size(seed):
    cells = qwi.design(draws.generator(seed), share=1.0, shape=qwi.SHAPE)
    length = 102 - cells.start
    rows = np.bincount(cells.county, length)
    lagged = np.bincount(cells.county, np.maximum(length - 4, 0))
    assert length.sum() == 2_428_452
    assert (len(rows), len(np.unique(cells.state_of_county)), len(np.unique(cells.industry))) == (3111, 48, 20)
    assert 5 <= (rows < 15).sum() <= 8
    # Rows per county in the model with lags: 4 to 1,481, median 674.
    assert lagged.min() >= 4
    assert 1300 <= lagged.max() <= 1520
    assert np.median(lagged) == pytest.approx(674, rel=0.1)


@pytest.mark.parametrize("share", [0.001, 0.003, 0.01, 2.5])
def test_every_share_has_its_rows_exactly(share):
    for seed in range(5):
        cells = qwi.design(draws.generator(seed), share=share, shape=qwi.SHAPE)
        assert (102 - cells.start).sum() == round(2_428_452 * share)


def test_the_seed_decides_everything():
    one, again, other = (stream.collect(qwi.batches(seed=seed, share=0.005))["qwi"] for seed in (3, 3, 4))
    assert one.equals(again)
    assert not one.equals(other)


def test_mixed_models_give_the_documents_figures(flows):
    """At a tenth of full size 311 counties leave the variances some room; the full size is tested below."""
    got = fits(flows)
    for name, value in CORRELATION.items():
        assert got[name].correlation == pytest.approx(value, abs=0.02), name
    assert got["lags"].residual == pytest.approx(RESIDUAL, rel=0.15)
    assert got["lags"].variances[0] == pytest.approx(COUNTY, rel=0.25)


def test_rates_are_spread_as_in_north_carolina(flows, public_file, query):
    """Mean and upper quantiles of job creation across counties and sectors of 2010."""
    path = str(public_file("qwi/nc_qwi_2010_county_sector_Emp.csv.gz"))
    rows = query(
        f"""with e as (select county, industry, quarter::int q, try_cast(Emp as double) n
                       from read_csv('{path}', all_varchar = true) where try_cast(Emp as double) > 0),
                 c as (select county, industry from e group by all having count(*) = 4)
            select (b.n - a.n) / ((a.n + b.n) / 2) g from e a join e b using (county, industry)
            join c using (county, industry) where b.q = a.q + 1"""
    )
    real, ours = np.maximum(np.ravel(rows), 0), flows["jcr"]
    assert ours.mean() == pytest.approx(real.mean(), rel=0.1)
    for q in (0.9, 0.95, 0.99):
        assert np.quantile(ours, q) == pytest.approx(np.quantile(real, q), rel=0.2)


def test_requests_that_make_no_sense_are_refused():
    with pytest.raises(DataError) as refused:
        qwi.batches(share=0)
    assert refused.value.about == "share"


@pytest.mark.full_size
def test_full_size_gives_the_documents_figures_in_bounded_memory(tmp_path):
    program = (
        "import resource, sys; from discreet.simulate import qwi; qwi.write(sys.argv[1], seed=0); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    run = subprocess.run([sys.executable, "-c", program, tmp_path / "out"], capture_output=True, text=True, check=True)
    assert int(run.stdout) < GIB
    table = pq.read_table(tmp_path / "out" / "qwi.parquet", columns=["jcr", "county", "industry", "quarter", "season"])
    flows = {name: table[name].to_numpy() for name in ("jcr", "quarter", "season")}
    for name in ("county", "industry"):
        flows[name] = table[name].unify_dictionaries().combine_chunks().indices.to_numpy()
    assert len(flows["jcr"]) == 2_428_452
    got = fits(flows)
    for name, value in CORRELATION.items():
        assert got[name].correlation == pytest.approx(value, abs=0.006), name
    assert got["lags"].residual == pytest.approx(RESIDUAL, rel=0.03)
    assert got["lags"].variances[0] == pytest.approx(COUNTY, rel=0.06)
