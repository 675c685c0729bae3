"""Small simulated data, drawn once per session, and the public files the constants were fitted to."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from discreet.simulate import lodes, qwi, stream

PUBLIC = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="session")
def public_file():
    """A public data file beside the repository; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = PUBLIC / name
        if not path.exists():
            pytest.skip(f"public data file {name} is not beside the repository")
        return path

    return find


@pytest.fixture(scope="session")
def jobs():
    """The four tables at a fiftieth of full size."""
    return stream.collect(lodes.batches(seed=1, share=0.02))


@pytest.fixture(scope="session")
def flows():
    """QWI at a tenth of full size, as NumPy columns (categories as codes)."""
    table = stream.collect(qwi.batches(seed=0, share=0.1))["qwi"]
    codes = {name: table[name].combine_chunks().indices.to_numpy() for name in ("state", "county", "industry")}
    return codes | {name: table[name].to_numpy() for name in table.column_names if name not in codes}


@pytest.fixture
def query():
    """Run SQL over Arrow tables given by name; all rows."""

    def run(sql: str, **tables):
        with duckdb.connect() as connection:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.execute(sql).fetchall()

    return run
