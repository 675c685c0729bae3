"""Optional parts: the core works without any, and each that is missing says what asked for it and how to get it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from discreet.changes.forecasters import forecast_panel
from discreet.data import engines
from discreet.data.databases import copied
from discreet.data.readers.m3 import read_m3
from discreet.ledger import Ledger
from discreet.pages import svg
from discreet.words import extras
from discreet.words.errors import MissingExtra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

EXTRA = (
    *(
        "typer",
        "rich",
        "click",
        "pydantic",
        "altair",
        "vl_convert",
        "formulaic",
        "pandas",
        "polars",
        "fastapi",
        "starlette",
    ),
    *("starlette", "uvicorn", "jinja2", "argon2", "psycopg", "adbc_driver_postgresql", "pyspark", "statsforecast"),
    "pymysql",
    "rdata",
)
WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
"""


def without_extras(code: str, folder: Path, *, but: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run `code` where no extra is installed, `but` some packages of them."""
    program = f"BLOCKED = {[name for name in EXTRA if name not in but]}{WITHOUT}{code}"
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


CORE = """
import numpy as np
import discreet as dc
from discreet.simulate import lodes
lodes.write("jobs", seed=1, share=0.001)
session = dc.Session(dc.read_jobs("jobs"), unit=dc.Establishments(alpha=0.1), budget=4, ledger="ledger.db", dataset="d")
table = session.count(by=["place", "sector"])
print(table.check(epsilon=2))
assert table.release(epsilon=2).to_arrow().num_rows
x, g = np.arange(60.0), np.arange(60) % 6
data = {"y": np.sin(x) + g, "x": x, "g": g}
print(dc.mixed("y ~ bs(x, df=4) + (1 | g)", data))
print(dc.mixed("y ~ poly(x, 2) + (1 | g)", data).plot_effects())
"""


def test_the_core_releases_tables_and_models(tmp_path: Path) -> None:
    done = without_extras(CORE, tmp_path)
    assert not done.returncode, done.stderr


def test_every_module_loads_without_extras_or_names_the_extra(tmp_path: Path) -> None:
    code = """
import pkgutil
from importlib import import_module
import discreet
from discreet.words.errors import MissingExtra
for module in pkgutil.walk_packages(discreet.__path__, "discreet.", onerror=lambda name: None):
    package = module.name.split(".")[1]
    commands = module.name.endswith((".command", ".panel_options"))
    if package not in ("cli", "desk", "__main__") and not commands:  # they begin at `discreet`, which is tested below
        try:
            import_module(module.name)
        except MissingExtra as error:
            assert "[plan]" in str(error), error
            assert package in ("plan", "review", "demo"), module.name
"""
    done = without_extras(code, tmp_path)
    assert not done.returncode, done.stderr


def test_a_plan_is_carried_out_without_the_command(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from discreet.demo import PLAN
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.simulate import lodes
lodes.write("data", seed=1, share=0.001)
Path("plan.toml").write_text(PLAN)
plan = read_plan(Path("plan.toml"))
print(check(plan).only.cost, run(plan).report)
"""
    done = without_extras(code, tmp_path, but=("pydantic", "vl_convert"))
    assert not done.returncode, done.stderr
    assert (tmp_path / "release" / "report.html").is_file()


def test_the_command_without_its_extra_says_so(tmp_path: Path) -> None:
    done = without_extras("from discreet.cli import main; main()", tmp_path)
    assert done.returncode == 2
    assert re.match(r"discreet: The command line needs 'typer', .*Install it with `.*\[cli\]'`\.\n", done.stderr), (
        done.stderr
    )


DOORS: dict[extras.Extra, tuple[str, Callable[[], Any]]] = {
    "charts": ("vl_convert", lambda: svg.svg({"mark": "point"}, alt="never drawn before")),
    "postgres": ("psycopg", lambda: Ledger.open("postgresql://officer@host/ledger")),
    "mysql": ("pymysql", lambda: copied("mysql://reader@host/labour::jobs")),
    "spark": ("pyspark", lambda: engines.open("spark")),
    "forecast": ("statsforecast", lambda: forecast_panel(PANEL, methods=("ets",))),
    "rda": ("rdata", lambda: read_m3(Path("M3.rda"))),
}
PANEL = pa.table({"series": ["a", "b"] * 40, "t": np.arange(80) // 2, "value": np.arange(80.0) ** 1.5})


@pytest.mark.parametrize("extra", DOORS)
@pytest.mark.parametrize("place", [None, ROOT], ids=["installed", "checkout"])
def test_a_missing_extra_has_three_parts(
    extra: extras.Extra, place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, door = DOORS[extra]
    for loaded in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, loaded)  # another test may have used it
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(extras, "checkout", lambda: place)
    with pytest.raises(MissingExtra) as caught:
        door()
    asked, possible, step = re.split(r"(?<=\.) (?=[A-Z])", str(caught.value))
    assert f"needs {package!r}" in asked
    assert f"`{extra}`" in possible
    line = step.removeprefix("Install it with `").removesuffix("`.")
    if place is None:
        assert line == f"pip install 'discreet[{extra}]'"
    else:
        words = shlex.split(line)
        assert Path(words[0]).exists() and Path(words[words.index("--constraint") + 1]).is_file()
        assert words[-2:] == ["--editable", f"{extras.shown(ROOT)}[{extra}]"]


def test_a_broken_installation_is_not_called_a_missing_extra() -> None:
    with pytest.raises(ImportError) as caught, extras.needs("web", "The desk"):
        import discreet.nonsense  # noqa: F401
    assert not isinstance(caught.value, MissingExtra)


def test_every_extra_is_known_and_all_is_what_a_desk_needs() -> None:
    offered = PROJECT["optional-dependencies"]
    assert {*get_args(extras.Extra), "all", "docs", "dev"} == set(offered)
    assert set(extras.PURPOSE) == set(get_args(extras.Extra))
    assert offered["all"] == ["discreet[cli,web,postgres,excel]"]


def test_versions_are_fixed_for_all_that_is_asked_for() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    fixed = {line.partition("==")[0] for line in lines if "==" in line}
    asked = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]
    names = {re.split(r"[\[<>=]", each)[0] for each in asked} - {"discreet"}
    assert names <= fixed


@pytest.mark.full_size  # fetches packages
def test_the_wheel_installs_in_an_empty_environment(tmp_path: Path) -> None:
    """First the core, which releases a table; then everything of a desk, of which the command runs the demo."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def call(*words: object) -> str:
        done = subprocess.run(
            [*map(str, words)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        if "No matching distribution" in done.stderr:
            pytest.skip("no package registry can be reached")
        assert not done.returncode, done.stderr
        return done.stdout

    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("discreet-*.whl")
    call(sys.executable, "-m", "venv", tmp_path / "empty")
    python, install = tmp_path / "empty" / "bin" / "python", ("-m", "pip", "install", "--quiet")
    call(python, *install, "--constraint", ROOT / "constraints.txt", wheel)
    call(python, "-c", CORE)
    distributions = call(python, "-m", "pip", "list", "--format=freeze").split()
    assert len({line.partition("==")[0] for line in distributions} - {"pip", "setuptools"}) <= 10, distributions
    call(python, *install, "--constraint", ROOT / "constraints.txt", f"{wheel}[all]")
    command = tmp_path / "empty" / "bin" / "discreet"
    assert call(command, "--version") == f"discreet {PROJECT['version']}\n"
    assert "empty/bin/discreet verify" in call(command, "demo", "--out", "demo", "--share", "0.005")
