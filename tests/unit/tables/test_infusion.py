"""Noise infusion against its definition: a loop over establishments, its law, and expectations in closed form."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from discreet.data.jobs import Jobs
from discreet.noise.source import SeededSource
from discreet.tables.baseline.establishments import Histograms, histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.words.errors import PrivacyError
from faults_of import about

KEY = b"a key of the agency's that is long enough"


@pytest.fixture(scope="module")
def firms(jobs: Jobs) -> Histograms:
    return histograms(jobs, workplace_by=["place", "sector", "ownership"], worker_by=["sex", "education"])


def made(counts: list[list[int]], start: list[int]) -> Histograms:
    """Establishments 0, 1, 2, ... with these counts, in cells that begin at `start`."""
    levels = tuple((str(i),) for i in range(len(counts[0])))
    keys = pa.table({"place": [str(i) for i in range(len(start))]})
    table = np.array(counts)
    return Histograms(keys, ("kind",), levels, pa.array(range(len(table))), np.array(start), table, table.sum(axis=1))


def test_a_factor_is_a_keyed_hash_of_the_identifier_alone() -> None:
    ids = pa.array([7, 42, 1_000_003])
    factors = Infusion().factors(ids, key=KEY)
    for name, factor in zip(("7", "42", "1000003"), factors, strict=True):
        block = KEY.ljust(64, b"\0")
        inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + name.encode()).digest()
        digest = hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()
        u = (int.from_bytes(digest[:8], "little") >> 11) / 2**53
        distance = 0.05 + 0.10 * ((2 * u) % 1)
        assert factor == pytest.approx(1 - distance if u < 0.5 else 1 + distance, abs=1e-15)
    assert hmac.new(KEY, b"1000003", "sha256").digest() == digest
    later = Infusion().factors(pa.array([42, 5, 7]), key=KEY)  # another year, other company, another order
    assert (later[0], later[2]) == (factors[1], factors[0])
    assert not np.isclose(Infusion().factors(ids, key=KEY[::-1]), factors).any()


def test_factors_have_the_law_of_the_paper() -> None:
    factors = Infusion(0.1, 0.3).factors(pa.array(range(20_000)), key=KEY)
    distance = np.abs(factors - 1)
    assert distance.min() >= 0.1 and distance.max() <= 0.3
    assert stats.kstest(distance, stats.uniform(0.1, 0.2).cdf).pvalue > 1e-6
    assert stats.kstest(distance, stats.uniform(0.1, 0.21).cdf).pvalue < 1e-6
    assert stats.binomtest(int((factors > 1).sum()), 20_000).pvalue > 1e-6
    assert abs(stats.spearmanr(distance, factors > 1).statistic) < 0.05


def test_the_published_table_is_the_definition(firms: Histograms) -> None:
    factors = Infusion().factors(firms.establishment, key=KEY)
    published = Infusion().publish(firms, factors, source=SeededSource(1))
    cell = np.repeat(np.arange(len(firms.start)), firms.establishments)
    for v, c in [(v, c) for v in range(0, len(firms.start), 7) for c in range(8)]:
        own = [w for w in range(len(cell)) if cell[w] == v]
        true = sum(int(firms.counts[w, c]) for w in own)
        if true == 0:
            assert published[v, c] == 0
        elif true < 2.5:
            assert published[v, c] in (1, 2)
        else:
            assert published[v, c] == pytest.approx(sum(factors[w] * firms.counts[w, c] for w in own), rel=1e-12)


def test_small_counts_are_replaced_by_a_fair_draw() -> None:
    firms = made([[1, 2, 3]] * 4000, list(range(4000)))
    published = Infusion().publish(firms, np.full(4000, 1.1), source=SeededSource(3))
    for column in (0, 1):
        assert set(published[:, column]) == {1.0, 2.0}
        assert stats.binomtest(int((published[:, column] == 1).sum()), 4000).pvalue > 1e-6
    np.testing.assert_allclose(published[:, 2], 3.3)


def test_expected_errors_are_those_of_the_law() -> None:
    """One establishment: the mean distance of its factor. Two: the mean of |X + Y|, by integration on a grid."""
    firms = made([[40, 0, 1], [40, 3, 1], [100, 2, 0]], [0, 2])
    error = Infusion().expected_error(firms, rng=np.random.default_rng(1), trials=40_000)
    x = np.concatenate([s * np.linspace(0.05, 0.15, 401) for s in (-1, 1)])
    two = 40 * np.abs(x[:, None] + x).mean()
    assert error[0, 0] == pytest.approx(two, rel=0.02)
    assert error[0, 1:].tolist() == [pytest.approx(0.3), 0.5]  # 3 alone; 2 in all, replaced by 1 or 2
    assert error[1].tolist() == [pytest.approx(10.0), 0.5, 0.0]


def test_expected_errors_are_the_mean_of_publications(firms: Histograms) -> None:
    infusion, true = Infusion(), firms.total(firms.counts)
    source, rng = SeededSource(5), np.random.default_rng(2)
    drawn = np.mean(
        [
            np.abs(infusion.publish(firms, infusion.factor(rng.random(len(firms.counts))), source=source) - true)
            for _ in range(300)
        ],
        axis=0,
    )
    expected = infusion.expected_error(firms, rng=np.random.default_rng(3), trials=300)
    assert expected.sum() == pytest.approx(drawn.sum(), rel=0.02)
    assert Infusion(0.05, 0.17).expected_error(firms, rng=rng, trials=300).sum() != pytest.approx(drawn.sum(), rel=0.02)


@pytest.mark.parametrize("wrong", [{"low": 0.0}, {"low": 0.2}, {"high": 1.0}, {"small": -1.0}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PrivacyError, check=about("low")):
        Infusion(**wrong)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(PrivacyError, check=about("key")):
        Infusion().factors(pa.array([1]), key=b"1234")
