from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """What R said, written by reference.R."""
    return json.loads((HERE / "reference.json").read_text())


@pytest.fixture(scope="session")
def roc_data() -> tuple[np.ndarray, np.ndarray]:
    data = np.loadtxt(HERE / "roc_data.csv", delimiter=",", skiprows=1)
    return data[:, 0].astype(bool), data[:, 1:].T


@pytest.fixture(scope="session")
def quantile_data() -> tuple[np.ndarray, np.ndarray]:
    data = np.loadtxt(HERE / "quantile_data.csv", delimiter=",", skiprows=1)
    return np.column_stack([np.ones(len(data)), data[:, 1:]]), data[:, 0]
