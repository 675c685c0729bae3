"""Figures that a page carries over from another one are those that the other one computes."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_deltas_of_smooth_laplace_are_those_of_its_proof() -> None:
    [block] = re.findall(r"```output\n(alpha 0\.01: .*?)```", (DOCS / "proofs" / "smooth-laplace.md").read_text(), re.S)
    computed = {
        (alpha, float(epsilon)): float(delta)
        for alpha, row in re.findall(r"^alpha ([\d.]+): (.*)$", block, re.M)
        for delta, epsilon in re.findall(r"([\d.e-]+) at ([\d.]+)", row)
    }
    words = (DOCS / "explanation" / "five-documents.md").read_text()
    [(here, alpha, epsilon, most)] = re.findall(
        r"its delta is ([\d.e-]+) at alpha ([\d.]+), epsilon ([\d.]+), and up to ([\d.e-]+) elsewhere", words
    )
    assert computed[alpha, float(epsilon)] == float(here)
    assert max(computed.values()) == float(most)
