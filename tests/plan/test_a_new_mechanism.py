"""A new mechanism is one file in a package of its own: checked, released, verified, reported with nothing changed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.verify import neighbouring_cells, verify
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms import registry
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.words.errors import PrivacyError
from faults_of import about

EXERCISE = Path(__file__).with_name("exercise") / "power_law.py"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages that has the exercise and the line that announces it."""
    site = tmp_path / "site"
    about = site / "power_law-1.dist-info"
    about.mkdir(parents=True)
    shutil.copy(EXERCISE, site)
    shutil.copy(EXERCISE.with_suffix(".md"), site)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: power-law\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\npower-law = power_law:PowerLaw\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    registry._installed.cache_clear()
    yield site
    registry._installed.cache_clear()
    sys.modules.pop("power_law", None)


def test_one_file_is_enough(installed: Path, plan: Path, command: Command) -> None:
    assert "power_law" not in sys.modules, "nothing is imported before somebody asks for it"
    code, out, err = command("audit", "verify", "--mechanism", "power-law", "--epsilon", 2)
    assert (code, "holds" in out) == (0, True), err
    head, first, *_, output = re.split(
        r"(?=^\[\[release|^\[output)", plan.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    first = first.replace("epsilon = 2", 'epsilon = 2\nscale_share = "0.1"\nmechanism = "power-law"')
    plan.write_text(head + first + output, encoding="utf-8")
    code, out, err = command("check", plan)
    assert (code, "power-law (tight)" in out) == (0, True), err
    code, out, err = command("run", plan)
    assert code == 0, err
    folder = plan.parent / "out"
    about = json.loads((folder / "places" / "release.json").read_text(encoding="utf-8"))
    assert (about["guarantee"]["basis"], about["guarantee"]["proof"]) == ("proved", "power_law.md")
    assert about["parameters"]["tables"][0]["noise"]["law"] == "Polynomial"
    assert "power-law (tight)" in (folder / "report.html").read_text(encoding="utf-8")
    code, out, err = command("verify", folder / "bundle.zip")
    assert (code, "power-law: worst loss" in out) == (0, True), out + err


def test_expected_errors_and_intervals_of_the_exercise_are_those_of_its_draws(installed: Path) -> None:
    from discreet.noise.source import SeededSource
    from discreet.tables.intervals.counts import intervals

    mechanism = calibrate("power-law", unit=dc.Establishments("0.1"), epsilon=2)
    truth = np.full((20_000, 1), 300)
    drawn = mechanism.draw(truth, truth, SeededSource(1))
    expected = float(mechanism.integer_error(truth[:1].astype(float), truth[:1].astype(float))[0, 0])
    assert np.abs(drawn - truth).mean() == pytest.approx(expected, rel=0.05)
    lower, upper = intervals(drawn, mechanism, level=0.9, bounded=True)
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.9
    near = neighbouring_cells(mechanism.unit, largest=40)
    assert verify(mechanism, neighbours=near).holds
    assert not verify(mechanism.scaled(0.85), neighbours=near).holds


def test_the_code_of_a_foreign_mechanism_is_part_of_the_fingerprint(installed: Path) -> None:
    from discreet.release.code import computing_hash

    before = computing_hash(registry.sources())
    registry.named("power-law")
    assert computing_hash(registry.sources()) != before


def test_names_are_taken_once_and_by_whole_mechanisms(installed: Path) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Taken(PolynomialNoise):
        """Another one that is called polynomial."""

    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(Taken)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Odd(PolynomialNoise):
        """A name that no plan could write."""

        name: ClassVar[str] = "Odd name"

    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(Odd)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Unproved(PolynomialNoise):
        """No proof."""

        name: ClassVar[str] = "unproved"
        proof: ClassVar[str] = ""

    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(Unproved)

    class Part(registry.Mechanism):
        """Not whole."""

        name: ClassVar[str] = "part"
        proof: ClassVar[str] = "nowhere"

    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.register(Part)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Fine(PolynomialNoise):
        """A second name."""

        name: ClassVar[str] = "fine"

    assert registry.register(Fine) is Fine and registry.register(Fine) is Fine
    assert registry.names() == (*registry.PRIVATE, "fine", "power-law", *registry.BASELINES)
    (installed / "power_law-1.dist-info" / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\nanother = power_law:PowerLaw\n"
    )
    registry._installed.cache_clear()
    with pytest.raises(PrivacyError, check=about("mechanism")):
        registry.named("another")


def test_nothing_outside_asks_of_which_kind_a_mechanism_is() -> None:
    """Classes of mechanisms are named in their own files and where noisy sizes are made, nowhere else."""
    root = Path(dc.__file__).parent
    kinds = {
        each.__name__ for kind in registry.OURS for each in kind.__mro__ if each.__module__.startswith("discreet.")
    }
    own = root / "tables" / "mechanisms"
    for path in root.rglob("*.py"):
        if own in path.parents or path.name == "sizes.py":
            continue
        words = set(path.read_text(encoding="utf-8").replace("(", " ").replace(",", " ").replace("|", " ").split())
        named = words & (kinds - {"Mechanism", "Baseline"})  # names of other packages, too
        assert not named, (path, named)
