"""The examples run as they are, on the simulated data that their first lines name."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet.plan.reading import read_plan

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in a place of their own, with the data that their commands simulate."""
    from discreet.simulate import histories, lodes, national, regression

    home = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", home / "examples")
    lodes.write(home / "out" / "lodes", share=0.01)
    lodes.write(home / "out" / "lodes-next", share=0.01, seed=2)
    regression.write(home / "out" / "line", share=0.1)
    national.write(home / "out" / "national", share=0.01)
    histories.write(home / "out" / "histories", share=0.01)
    return home


@pytest.mark.walk
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_runs(path: Path, home: Path, command) -> None:
    plan = home / "examples" / path.name
    assert command("check", plan)[0] == 0
    code, out, err = command("run", plan)
    assert code == 0, err
    output = home / "examples" / read_plan(plan).plan.output.folder
    assert (output / "report.html").exists()
    assert f"{output}/report.html" in out
    code, out, _ = command("verify", output / "bundle.zip", "--ledger", home / "out" / "ledger.db")
    assert code == 0, out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_tells_how_to_run_it(path: Path) -> None:
    commands = re.findall(r"^#   (discreet .*?)(?:  .*)?$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert any(line.startswith("discreet simulate") for line in commands)
    assert f"discreet run examples/{path.name}" in commands


def test_the_answers_are_sensible(home: Path, command) -> None:
    """The line is y = 1 + 2 x: private answers about it are near, at ten thousand rows."""
    assert command("run", home / "examples" / "posterior.toml")[0] == 0  # released already, it changes nothing
    folder = home / "out" / "examples" / "posterior" / "slope-interval"
    answers = {row["coefficient"]: row for row in pq.read_table(folder / "research.parquet").to_pylist()}
    assert answers["(Intercept)"]["answer"] == pytest.approx(1, abs=0.5)
    assert answers["x"]["answer"] == pytest.approx(2, abs=0.5)
    assert answers["x"]["low"] < answers["x"]["high"]
