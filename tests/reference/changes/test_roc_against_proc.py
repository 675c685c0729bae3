"""Areas, variances and tests against pROC, by the values that reference.R stored."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from discreet.roc import curve as roc
from discreet.roc.bootstrap import band, replicate

EXACT = 1e-10


def test_areas(reference, roc_data):
    positive, scores = roc_data
    assert roc.auc(positive, scores) == pytest.approx(reference["auc"], abs=EXACT)
    for name, fpr in {"0_20": (0, 0.2), "10_50": (0.1, 0.5)}.items():
        assert roc.partial_auc(positive, scores, fpr=fpr) == pytest.approx(reference[f"pauc_{name}"], abs=EXACT)
        standardised = roc.partial_auc(positive, scores, fpr=fpr, scale="mcclish")
        assert standardised == pytest.approx(reference[f"mcclish_{name}"], abs=EXACT)


def test_delong(reference, roc_data):
    d = roc.delong(*roc_data)
    assert np.diag(d.covariance) == pytest.approx(reference["delong_var"], abs=EXACT)
    assert d.covariance[0, 1] == pytest.approx(reference["delong_cov_12"], abs=EXACT)
    assert d.test(0, 1)[1] == pytest.approx(reference["delong_p"], abs=EXACT)


@pytest.mark.parametrize(("fpr", "name"), [((0, 1), "bootstrap_auc"), ((0, 0.2), "bootstrap_pauc")])
def test_paired_bootstrap(reference, roc_data, fpr, name):
    # Both spreads come from 20,000 resamples: their ratio has a standard deviation of 0.7 %; 4 % is six of them.
    z, p = replicate(*roc_data, fpr=fpr, resamples=20_000, rng=5).test(0, 1, alternative="two-sided")
    assert z == pytest.approx(reference[name]["D"], rel=0.04)
    assert p == pytest.approx(reference[name]["p"], rel=0.3)
    other = "bootstrap_auc" if name == "bootstrap_pauc" else "bootstrap_pauc"
    assert z != pytest.approx(reference[other]["D"], rel=0.04)


def test_band(reference, roc_data):
    positive, scores = roc_data
    ours = band(positive, scores[0], at=[0.05, 0.1, 0.2, 0.5], resamples=4000, rng=2)
    assert ours == pytest.approx(np.array(reference["band"]), abs=1.5 / positive.sum())


def test_binormal_curve(reference, roc_data):
    positive, scores = roc_data
    smooth = roc.binormal(roc.curve(positive, scores[0]), points=200_001)
    assert smooth.at(reference["binormal"]["fpr"]) == pytest.approx(reference["binormal"]["tpr"], abs=1e-6)


@pytest.mark.live_r
def test_areas_with_r_beside_us(roc_data):
    if not shutil.which("Rscript"):
        pytest.skip("R is not installed")
    data = Path(__file__).with_name("roc_data.csv")
    code = (
        f'd <- read.csv("{data}"); r <- pROC::roc(d$g, d$x3, direction = "<", quiet = TRUE);'
        "cat(format(pROC::auc(r, partial.auc = c(.93, .61)), digits = 15))"
    )
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("R has no pROC")
    positive, scores = roc_data
    assert roc.partial_auc(positive, scores[2], fpr=(0.07, 0.39)) == pytest.approx(float(done.stdout), abs=EXACT)
