"""The agencies' files: their types, their totals, and what is said of a file that is another one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.data.readers.lodes import read_lodes_wac
from discreet.data.readers.m3 import read_m3
from discreet.data.readers.qcew import read_qcew
from discreet.data.readers.qwi import read_qwi
from discreet.words.errors import DataError
from faults_of import about

DATA = Path(__file__).parents[4] / "shared" / "data"
shared = pytest.mark.skipif(not DATA.is_dir(), reason="needs the public data files in ../shared/data")

LODES = "lodes_utah/ut_wac_S000_JT00_2019.csv.gz"
MARGINS = {"CA": 3, "CE": 3, "CNS": 20, "CR": 6, "CT": 2, "CS": 2}


@shared
def test_lodes_margins_add_up_in_every_block() -> None:
    table = read_lodes_wac(DATA / LODES)
    assert len(table) == 22_676
    assert set(pc.utf8_length(table["w_geocode"]).to_pylist()) == {15}
    for margin, parts in MARGINS.items():
        columns = [name for name in table.column_names if name.rstrip("0123456789") == margin]
        assert len(columns) == parts
        total = table[columns[0]]
        for name in columns[1:]:
            total = pc.add(total, table[name])
        assert total.equals(table["C000"]), margin


@shared
def test_qcew_counties_add_up_and_codes_keep_their_zeros() -> None:
    table = read_qcew(DATA / "qcew/qcew_2016_q1q4_county_sector_allown.csv.gz")
    assert len(table) == 471_916
    assert table.schema.field("qtrly_estabs").type == pa.int64()
    assert set(pc.utf8_length(table["area_fips"]).to_pylist()) == {5}
    autauga = table.filter((pc.field("area_fips") == "01001") & (pc.field("qtr") == "1"))
    establishments = {(row["own_code"], row["industry_code"]): row["qtrly_estabs"] for row in autauga.to_pylist()}
    by_ownership = [count for (own, industry), count in establishments.items() if own != "0" and industry == "10"]
    assert establishments["0", "10"] == 856 == sum(by_ownership)
    assert set(table["disclosure_code"].unique().to_pylist()) == {None, "-", "N"}


@shared
def test_qwi_is_null_exactly_where_its_flag_says_so() -> None:
    table = read_qwi(DATA / "qwi/nc_qwi_2010_county_sector_Emp.csv.gz")
    assert len(table) == 7_756
    assert len(table["geography"].unique()) == 100  # counties of North Carolina
    assert set(pc.utf8_slice_codeunits(table["geography"], 0, 2).to_pylist()) == {"37"}
    assert pc.equal(table["sEmp"], 5).equals(pc.is_null(table["Emp"]))
    assert {"31-33", "44-45"} <= set(table["industry"].unique().to_pylist())


@shared
def test_m3_has_18_held_out_months_in_each_of_474_series() -> None:
    table = read_m3(DATA / "m3/m3_monthly_micro_series.csv.gz")
    spans = table.group_by(["series", "part"]).aggregate([("t", "min"), ("t", "max"), ("t", "count")]).to_pylist()
    train = {row["series"]: row for row in spans if row["part"] == "train"}
    test = {row["series"]: row for row in spans if row["part"] == "test"}
    assert len(train) == len(test) == 474
    assert {row["t_count"] for row in test.values()} == {18}
    assert all(test[name]["t_min"] == row["t_max"] + 1 for name, row in train.items())


QCEW_SLICE = (
    "area_fips,own_code,industry_code,agglvl_code,size_code,year,qtr,disclosure_code,qtrly_estabs,month1_emplvl,"
    "month2_emplvl,month3_emplvl,total_qtrly_wages,lq_qtrly_estabs,oty_qtrly_estabs_pct_chg\n"
    '"01001","5","31-33","74","0","2024","A"," ",856,10664,10701,10750,95178391,1.02,-2.7\n'
)
QWI_FILE = (
    "periodicity,seasonadj,geo_level,geography,ind_level,industry,ownercode,sex,agegrp,race,ethnicity,education,"
    "firmage,firmsize,year,quarter,Emp,TurnOvrS,EarnS,sEmp,sTurnOvrS,sEarnS\n"
    "Q,U,C,01001,S,11,A05,0,A00,A0,A0,E0,0,0,2019,1,45,0.103,3021,1,1,9\n"
    "Q,U,C,01001,S,21,A05,0,A00,A0,A0,E0,0,0,2019,1,,,,5,5,5\n"
)


def test_the_layout_of_the_bls_slices(tmp_path: Path) -> None:
    (tmp_path / "slice.csv").write_text(QCEW_SLICE)
    (row,) = read_qcew(tmp_path / "slice.csv").to_pylist()
    assert row["area_fips"] == "01001"
    assert (row["qtr"], row["size_code"], row["disclosure_code"]) == ("A", "0", None)
    assert (row["lq_qtrly_estabs"], row["oty_qtrly_estabs_pct_chg"], row["month1_emplvl"]) == (1.02, -2.7, 10664)


def test_the_layout_of_the_lehd_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "qwi_al.csv.gz", "wt") as file:
        file.write(QWI_FILE)
    first, second = read_qwi(tmp_path / "qwi_al.csv.gz").to_pylist()
    assert (first["geography"], first["Emp"], first["TurnOvrS"], first["EarnS"]) == ("01001", 45, 0.103, 3021)
    assert (second["Emp"], second["TurnOvrS"], second["sEmp"], second["year"]) == (None, None, 5, 2019)


@pytest.mark.parametrize("read", [read_lodes_wac, read_qwi, read_qcew, read_m3])
def test_other_files_are_refused_by_name(read: Any, tmp_path: Path) -> None:
    other, empty, binary = tmp_path / "other.csv", tmp_path / "empty.csv", tmp_path / "binary.csv"
    other.write_text("colour,shape\nred,round\n")
    empty.write_text("")
    binary.write_bytes(bytes(range(256)))
    for path, fact in ((other, "colour, shape"), (empty, "nothing"), (binary, "not a")):
        with pytest.raises(DataError, check=about("path", naming=(path.name, fact))):
            read(path)
    with pytest.raises(DataError, check=about("path")):
        read(tmp_path / "absent.csv")
    (tmp_path / "plain.csv.gz").write_text(other.read_text())
    with pytest.raises(DataError, check=about("path")):
        read(tmp_path / "plain.csv.gz")


def test_a_damaged_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wac.csv").write_text("w_geocode,C000\n010010201001000,three\n")
    with pytest.raises(DataError, check=about("path")):
        read_lodes_wac(tmp_path / "wac.csv")
