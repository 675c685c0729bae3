"""Kendall's tau and its corrected p-value against R's cor.test."""

from __future__ import annotations

import pytest

from discreet.changes.kendall import kendall


def test_tau_and_p(reference):
    r = reference["kendall"]
    found = kendall(r["values"], r["ranks"])
    assert (found.tau, found.p) == (pytest.approx(r["tau"], abs=1e-12), pytest.approx(r["p"], abs=1e-12))
