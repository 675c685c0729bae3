"""LODES-shaped data against the Tables paper's description, public margins and the Dirichlet-multinomial law."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from discreet.simulate import lodes, stream
from discreet.simulate.sectors import EMPLOYERS, SECTORS, WORKERS
from discreet.words.errors import DataError

GIB = 1 << 30


def concentration_of_cells(w: lodes.Workplaces) -> tuple[float, float]:
    """Shares of place x sector x ownership cells with a dominant establishment, and with fewer than 1,000 jobs."""
    cell = np.unique((w.place * 20 + w.sector) * 2 + w.ownership, return_inverse=True)[1]
    total = np.bincount(cell, w.size)
    largest = np.zeros_like(total)
    np.maximum.at(largest, cell, w.size)
    return float(np.mean(largest > 0.65 * total)), float(np.mean(total < 1000))


def establishments_by_stratum(w: lodes.Workplaces):
    stratum = np.searchsorted(lodes.STRATA, w.places.population[w.place], side="right")
    return np.bincount(stratum, minlength=4)


def test_the_frame_at_full_size_meets_the_paper():
    for seed in (0, 1, 2):
        w = lodes.workplaces(seed=seed)
        assert len(w.id) == 527_000
        assert w.size.sum() == 10_900_000
        assert w.size.min() >= 1
        assert 740 <= (w.size > 1000).sum() <= 815
        dominated, small = concentration_of_cells(w)
        assert 0.5 <= dominated < 0.6  # the paper's median cell has one establishment with 65 % of the jobs
        assert 0.93 <= small < 0.96
        assert establishments_by_stratum(w).min() > 150
        assert len(np.unique(w.sector)) == 20
        assert np.all(w.size <= w.places.population[w.place])


@pytest.mark.parametrize("share", [0.01, 0.02, 0.1])
def test_a_small_share_keeps_the_shape(share):
    w = lodes.workplaces(seed=1, share=share)
    dominated, small = concentration_of_cells(w)
    assert len(w.id) == round(527_000 * share)
    assert w.size.sum() == round(10_900_000 * share)
    assert dominated >= 0.5
    assert small >= 0.9
    assert np.all(establishments_by_stratum(w) > 0)
    assert (w.size > 1000).sum() == pytest.approx(777 * share, rel=0.15, abs=5)


def test_tables_have_one_job_per_worker_and_join(jobs, query):
    ((workers, distinct, joined, equal),) = query(
        """select (select count(*) from worker), (select count(distinct worker) from worker), count(*),
                  count(*) filter (where to_json(f) = to_json(g))
           from (select w.*, p.* from job join workplace w using (workplace) join worker p using (worker)) f
           join jobs g using (worker)""",
        **jobs,
    )
    assert workers == distinct == joined == equal == 218_000
    assert {field.name for field in jobs["jobs"].schema if pa.types.is_dictionary(field.type)} == {
        "state", "county", "place", "sector", "ownership", "sex", "age", "race", "ethnicity", "education",
    }  # fmt: skip
    ((places, nested),) = query(
        "select count(distinct place), count(distinct (state, county, place)) from jobs", **jobs
    )
    assert places == nested


def test_the_seed_decides_everything(jobs):
    again = stream.collect(lodes.batches(seed=1, share=0.02))
    other = stream.collect(lodes.batches(seed=2, share=0.02))
    assert all(again[name].equals(jobs[name]) for name in jobs)
    assert not other["jobs"]["sector"].equals(jobs["jobs"]["sector"])


def test_worker_shares_follow_their_sector(jobs, query):
    """Sex and education of two large sectors lie within sampling error of the public margins."""
    establishments = query(
        """select sector, count(*), count(*) filter (where sex = 'female'),
                  count(*) filter (where education = 'bachelor or more') from jobs group by workplace, sector""",
        **jobs,
    )
    for name in ("44-45 Retail trade", "62 Health care and social assistance"):
        size, female, bachelor = np.array([row[1:] for row in establishments if row[0] == name]).T
        margin = WORKERS[SECTORS.index(name)]
        # A Dirichlet-multinomial count has variance n p (1 - p) (n + c) / (1 + c).
        spread = np.sqrt((size * (size + 30) / 31).sum()) / size.sum()
        for count, p in ((female, margin.female), (bachelor, margin.education[3] / sum(margin.education))):
            assert abs(count.sum() / size.sum() - p) < 5 * spread * np.sqrt(p * (1 - p))


def test_establishments_differ_as_a_dirichlet_multinomial_says(query):
    """The moment estimate of the concentration from the sexes of large establishments is near 30."""
    rows = query(
        """select sector, count(*) n, count(*) filter (where sex = 'female')
           from jobs group by workplace, sector having n >= 100""",
        **stream.collect(lodes.batches(seed=3, share=0.05)),
    )
    women = dict(zip(SECTORS, lodes.sector_shares()[0][:, 4:].sum(axis=1), strict=True))
    p, n, f = np.array([(women[sector], n, f) for sector, n, f in rows]).T
    # E (f/n - p)^2 / (p (1 - p)) = 1/n + (1 - 1/n) / (c + 1)
    excess = np.mean(((f / n - p) ** 2 / (p * (1 - p)) - 1 / n) / (1 - 1 / n))
    assert len(n) > 500
    assert 1 / excess - 1 == pytest.approx(30, rel=0.25)


def test_nobody_below_nineteen_has_a_degree(jobs, query):
    crossed = query("select distinct age, education from worker", **jobs)
    assert len(crossed) == 8 * 4 - 1
    assert ("14-18", "bachelor or more") not in crossed


def test_the_next_year_is_the_same_economy_a_year_older():
    first, second = (lodes.workplaces(seed=4, share=0.1, year=year) for year in (0, 1))
    stay, a, b = np.intersect1d(first.id, second.id, return_indices=True)
    assert np.array_equal(first.place[a], second.place[b])
    assert np.array_equal(first.sector[a], second.sector[b])
    assert 0.98 < len(stay) / len(first.id) < 0.995
    assert 0.01 < 1 - len(stay) / len(second.id) < 0.02
    assert second.size.min() >= 1
    assert second.size.sum() / first.size.sum() == pytest.approx(1.01, abs=0.03)
    size, growth = first.size[a], np.log(second.size[b] / first.size[a])
    small, large = growth[(size >= 20) & (size < 50)], growth[size >= 500]
    assert small.std() > 1.3 * large.std()
    for part, typical in ((small, 32), (large, 900)):
        assert part.std() == pytest.approx(np.sqrt(2) * 0.2 * typical**-0.15, rel=0.25)
    third = lodes.workplaces(seed=4, share=0.1, year=2)
    assert np.isin(third.id, np.arange(len(first.id) * 2)).all()
    assert not np.array_equal(third.size[:100], second.size[:100])


def test_a_worker_stays_the_same_person(query):
    before, after = (
        stream.collect(lodes.batches(seed=5, share=0.005, year=year))["jobs"].drop(["place_population"])
        for year in (0, 1)
    )
    ((same, met),) = query(
        "select count(*) filter (where to_json(a) = to_json(b)), count(*) from before a join after b using (worker)",
        before=before,
        after=after,
    )
    assert same == met > 40_000


def test_years_before_the_first_are_refused():
    with pytest.raises(DataError) as refused:
        lodes.workplaces(year=-1)
    assert refused.value.about == "year"


def test_employers_are_those_of_qcew(public_file, query):
    """Establishments and published mean sizes, recomputed from the file."""
    path = str(public_file("qcew/qcew_2016_q1q4_county_sector_allown.csv.gz"))
    rows = query(
        f"""select industry_code, own_code = 5, sum(qtrly_estabs_count),
                   sum(month3_emplvl) filter (where disclosure_code is null)
                   / sum(qtrly_estabs_count) filter (where disclosure_code is null)
            from read_csv('{path}', types = {{'industry_code': 'VARCHAR', 'disclosure_code': 'VARCHAR'}})
            where agglvl_code = 74 and qtr = 1 and industry_code <> '99' group by 1, 2"""
    )
    found = {(code, private): (count, mean) for code, private, count, mean in rows if count >= 200}
    ours = {
        (row.sector.split()[0], private): known
        for row in EMPLOYERS
        for private, known in ((True, row.private), (False, row.public))
        if known
    }
    assert found.keys() == ours.keys()
    for key, (count, mean) in found.items():
        assert ours[key][0] == count
        assert ours[key][1] == pytest.approx(mean, abs=0.006)


def test_workers_are_those_of_utah(public_file):
    """Shares in the blocks where one sector holds at least 90 % of the jobs, recomputed from the file."""
    sums: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with gzip.open(public_file("lodes_utah/ut_wac_S000_JT00_2019.csv.gz"), "rt") as lines:
        for row in csv.DictReader(lines):
            jobs = [int(row[f"CNS{k:02d}"]) for k in range(1, 21)]
            if max(jobs) >= 0.9 * int(row["C000"]):
                for name in row:
                    if name[:2] in ("CS", "CD", "CA", "CR", "CT"):
                        sums[jobs.index(max(jobs))][name] += int(row[name])
    for sector, workers in enumerate(WORKERS):
        have = sums[sector]

        def shares(*names, have=have):
            counts = np.array([have[name] for name in names])
            return counts / counts.sum()

        assert workers.female == pytest.approx(shares("CS01", "CS02")[1], abs=6e-4)
        assert workers.hispanic == pytest.approx(shares("CT01", "CT02")[1], abs=6e-4)
        assert workers.education == pytest.approx(shares("CD01", "CD02", "CD03", "CD04"), abs=6e-4)
        assert workers.age == pytest.approx(shares("CA01", "CA02", "CA03"), abs=6e-4)
        assert workers.race == pytest.approx(shares("CR01", "CR02", "CR03", "CR04", "CR05", "CR07"), abs=6e-4)


@pytest.mark.full_size
def test_full_size_streams_in_bounded_memory(tmp_path, query):
    program = (
        "import resource, sys; from discreet.simulate import lodes; lodes.write(sys.argv[1], seed=0); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    run = subprocess.run([sys.executable, "-c", program, tmp_path / "out"], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2 * GIB
    out = tmp_path / "out"
    ((rows, workers),) = query(f"select count(*), count(distinct worker) from '{out}/jobs.parquet'")
    assert rows == workers == 10_900_000
    assert query(f"select count(*) from '{out}/workplace.parquet'") == [(527_000,)]
    ((dominated, small, above),) = query(
        f"""with e as (select place, sector, ownership, workplace, count(*) n from '{out}/jobs.parquet' group by all),
                 c as (select max(n) top, sum(n) total from e group by place, sector, ownership)
            select avg((top > 0.65 * total)::int), avg((total < 1000)::int), (select count(*) from e where n > 1000)
            from c"""
    )
    assert dominated >= 0.5
    assert small > 0.93
    assert 740 <= above <= 815
