"""Every page that shows a promise shows none where there is none, whatever made the release.

Doors are listed from the registries: mechanisms, functions made by `releases`, methods of models, kinds of plans. Each
makes one folder. Its `release.json` is then written as it would be for every basis and flag, known and unknown, and
every command, page and file that speaks of protection is made of it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
import release_doors
from discreet.audit.identification import of_data_sets, of_synthetic
from discreet.cli import main
from discreet.desk.published import Published
from discreet.models.linear.private.request import Method
from discreet.plan.run import run
from discreet.plan.shape import AnyRelease
from discreet.privacy.assurance import Assurance
from discreet.privacy.guarantee import Basis
from discreet.privacy.losses import Pure
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit, Workers
from discreet.publication.publish import publish_files
from discreet.publication.site import site
from discreet.release.account import Account
from discreet.release.folder import open_release, open_releases
from discreet.report.release import DataSet, Facts, Release, Results, page
from discreet.synthetic import synthesize
from discreet.tables.mechanisms.registry import names
from discreet.words.errors import DiscreetError

PROMISES = re.compile(
    r"proved privacy|how sure somebody can|become sure, from|come out (much )?the same|nobody can tell|whatever else"
    r"|times as likely|then at most|employee privacy|differential privacy|most peaked|at most [\d.]+ % sure",
)
ROWS = 240
MIXED: dict[str, Any] = {"public": ["x", "g"], "bounds": (-10, 10), "epsilon": 8}
SUMMARY: dict[str, Any] = {"epsilon": 60, "partitions": 12}
DRAW: dict[str, Any] = {"public": ["x", "g"], "bounds": (-10, 10)}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "release_mixed": {"formula": "y ~ x + (1 | g)", **MIXED},
    "release_draw": {"formula": "y ~ x + (1 | g)", "variances": {"Residual": 1, "g": 1}, "sd": 3, **DRAW},
    "release_audited_draw": {"formula": "y ~ x + (1 | g)", "prior": {"V": 1, "sd": 3}, "audited": 4, **DRAW},
    "posterior_probability": {"formula": "y ~ x", "coefficient": "x", "at": 2.0, **SUMMARY},
    "posterior_quantile": {"formula": "y ~ x", "coefficient": "x", "probability": 0.5, **SUMMARY},
    "posterior_interval": {"formula": "y ~ x", "coefficient": "x", "level": 0.9, **SUMMARY},
    "objective_perturbation": {"formula": "y ~ x", "bounds": (-10, 10), "norm": 4, "penalty": 50.0, "epsilon": 2},
}
METHODS: dict[str, dict[str, Any]] = {"strict": {"blocks": 10}, "paper": {"blocks": 10}, "moments": {}}
UNITS: tuple[Unit, ...] = (
    *(Establishments("0.1"), Establishments("0.1", "weak"), Workers(), EstablishmentNodes(50)),
    Establishments("0.02"),
)
UNRELEASED = {"down-sensitivity"}
"""A baseline that no unit's door takes; the last test here says so."""


def line() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=ROWS).round(3)
    return {"x": x, "g": np.arange(ROWS) % 8, "y": np.clip(1 + 2 * x + rng.normal(size=ROWS), -10, 10)}


def jobs() -> dc.jobs.Jobs:
    workplace = np.repeat(np.arange(12), np.arange(12) + 3)
    table = pa.table(
        {
            "workplace": workplace,
            "worker": np.arange(len(workplace)),
            "sex": np.where(workplace % 2, "f", "m"),
        }
    )
    places = pa.table({"workplace": np.arange(12), "place": [f"P{each % 4}" for each in range(12)]})
    return dc.read_jobs(table, workplaces=places, schema=dc.Schema(["place"], {"sex": ["f", "m"]}))


def of_mechanism(name: str, folder: Path, *, seed: int | None = None) -> Path:
    """A release of counts with this mechanism, under the first unit and table for which it can be used."""
    for unit in UNITS:
        for by in (["place"], ["place", "sex"]):
            for more in ({}, {"delta": "0.05"}):
                session = dc.Session(jobs(), unit=unit, budget=dc.Approximate(8, "0.1"), dataset="q1", seed=seed)
                try:
                    offer = session.count(by).offer(epsilon=8, mechanism=name, **more)
                except DiscreetError:
                    continue
                session.account.publish(offer, session.jobs, folder, name="r")
                return folder
    raise AssertionError(f"{name} made no release: add a unit or a table")


def of_function(name: str, folder: Path, *, seed: int | None = None, **more: Any) -> Path:
    asked = FUNCTIONS[name] | more
    question = getattr(dc, name).ask(**asked, seed=seed)
    offer = question.offer(line())
    guarantee = offer.guarantee
    account = Account.open(None, dataset="q1", unit=guarantee.unit, budget=guarantee.loss, seed=seed)
    account.publish(offer, None, folder, name="r")
    return folder


@cache
def planned(plan: str) -> dict[str, Path]:
    """The releases of a plan by their kinds, from the plans of `test_order`, which have every kind."""
    path = Path(__file__).parents[1] / "unit" / "test_order.py"
    spec = importlib.util.spec_from_file_location("plans_of_every_kind", path)
    assert spec is not None and spec.loader is not None
    order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(order)
    folder = Path(tempfile.mkdtemp())
    (folder / "data").mkdir()
    order.write_jobs(folder / "data")
    pq.write_table(pa.table(order.line()), folder / "data" / "line.parquet")
    (folder / "plan.toml").write_text(order.PLANS[plan])
    done = run(folder / "plan.toml")
    return {known.request.release.kind: done.folder / known.name for known in done.check.releases}


def of_plan(kind: str, folder: Path) -> Path:
    found = next(made for plan in ("tables", "histories", "rows") if kind in (made := planned(plan)))
    return Path(shutil.copytree(found[kind], folder))


def doors() -> dict[str, Callable[[Path], Path]]:
    found: dict[str, Callable[[Path], Path]] = {}
    for name in [name for name in names() if name not in UNRELEASED]:
        found[f"mechanism {name}"] = lambda folder, name=name: of_mechanism(name, folder)  # type: ignore[misc]
    for name in release_doors.releasing():
        found[f"function {name}"] = lambda folder, name=name: of_function(name, folder)  # type: ignore[misc]
    for method in get_args(Method):
        more = {"method": method, **METHODS[method]}
        found[f"method {method}"] = lambda folder, more=more: of_function("release_mixed", folder, **more)  # type: ignore[misc]
    kinds = {get_args(each.model_fields["kind"].annotation)[0] for each in get_args(get_args(AnyRelease)[0])}
    return found | {f"plan {kind}": lambda folder, kind=kind: of_plan(kind, folder) for kind in sorted(kinds)}  # type: ignore[misc]


def without(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


DOUBTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    **{f"basis {b}": lambda told, b=b: told | {"basis": b} for b in get_args(Basis) if b != "proved"},  # type: ignore[misc]
    "seeded": lambda told: told | {"private": False},
    "no flag": lambda told: without(told, "private"),
    "no basis": lambda told: without(told, "basis"),
    "another basis": lambda told: told | {"basis": "trust me"},
    "another unit": lambda told: told | {"unit": "households(3)"},
    "another field": lambda told: told | {"withdrawn": True},
}


def words(folder: Path) -> Iterator[tuple[str, str]]:
    """The text of every file in a folder, also that inside of tables."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            yield path.name, str(pq.read_schema(path).metadata)
        elif path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as book:
                yield path.name, "".join(book.read(name).decode(errors="replace") for name in book.namelist())
        elif path.is_file():
            yield path.name, path.read_text(encoding="utf-8", errors="replace")


def shown(release: Path, out: Path, *, whole: bool) -> dict[str, str]:
    """Every page and file that speaks of the protection of a release; `whole` makes those that take long, too."""
    known = open_release(release)
    found: dict[str, str] = {}
    if whole:
        site(release, out / "site", formats=("csv", "parquet", "csvw"))
        found |= {f"site {name}": text for name, text in words(out / "site")}
        if known.tables()[0].numbers in (("count",), ("sum",)):
            publish_files(release, out / "files", formats=("sdmx", "xlsx"))
            found |= {f"files {name}": text for name, text in words(out / "files")}
        assert json.dumps(of_data_sets([known])[known.dataset].to_dict())
    bare = [Assurance.of([known.claim], jobs=known.jobs)]
    found["audit"] = " ".join(
        f"{s.words} {s.informed} {s.reach} {s.attribute} {s.beliefs_caption * bool(s.beliefs)}" for s in bare
    )
    found["claim"] = f"{known.promise} {known.definition}"
    desk = Published("plan", "r", release, dict(known.about))
    found["desk"] = f"{desk.claim.sentence} {desk.claim.definition}"
    mine = Release("r", "", Pure(8), known.claim, 2, "2026-01-01T00:00", Results(), {})
    unit = known.claim.unit or Workers()
    data = DataSet("q1", unit, known.claim.loss or Pure(8), (known.claim.loss or Pure(8)).zero(), [mine])
    found["report"] = page(Facts("", [data], "ab", "0")).html()
    return found


@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
@pytest.mark.parametrize("door", doors())
def test_no_page_of_any_door_promises_what_is_not_promised(door: str, tmp_path: Path) -> None:
    folder = doors()[door](tmp_path / "r")
    told = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    own = open_release(folder).claim
    if own.doubts:
        assert not _promising(shown(folder, tmp_path / "own", whole=True))
    else:
        promising = _promising(shown(folder, tmp_path / "own", whole=False))
        assert {"claim", "desk", "report", "audit"} <= promising, "this test could not fail"
    for name, change in DOUBTS.items():
        (folder / "release.json").write_text(json.dumps(told | {"guarantee": change(told["guarantee"])}))
        found = shown(folder, tmp_path / name, whole=name == "seeded" and door in LONG)
        assert not _promising(found), (name, {k: PROMISES.search(found[k]) for k in _promising(found)})


LONG = {"plan count", "plan flows", "plan model", "function posterior_interval"}
"""Doors of which every kind of file is written for a release that is seeded: one for each shape of files."""


def _promising(found: dict[str, str]) -> set[str]:
    return {name for name, text in found.items() if PROMISES.search(text.replace("\u00a0", " "))}


def test_releases_that_are_seeded_are_said_to_be_so(tmp_path: Path) -> None:
    """Seeded by their own door, not by a changed file."""
    for folder in (
        of_mechanism("polynomial", tmp_path / "table", seed=1),
        of_function("release_mixed", tmp_path / "model", seed=1),
    ):
        assert [doubt.name for doubt in open_release(folder).claim.doubts] == ["seeded"]
        assert not _promising(shown(folder, tmp_path / f"{folder.name} out", whole=True))


@pytest.mark.parametrize("name", sorted(UNRELEASED))
def test_what_has_no_door_has_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        of_mechanism(name, tmp_path / "r")


def test_the_command_states_no_bound_for_a_seeded_release_and_adds_up_data_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red before: 'The guarantee says how sure somebody can become of it at most', with figures."""
    seeded, good, again = (tmp_path / name for name in ("seeded", "good", "again"))
    of_function("release_mixed", seeded, seed=1, formula="y ~ x")
    of_function("release_mixed", good, formula="y ~ x")
    shutil.copytree(good, again)
    told = json.loads((again / "release.json").read_text())
    (again / "release.json").write_text(json.dumps(told | {"dataset": "q2"}))

    def printed(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["discreet", "audit", "identification", *map(str, arguments)])
        with pytest.raises(SystemExit):
            main()
        return " ".join(capsys.readouterr().out.split())

    for how in ([], ["--json"], ["--out", tmp_path / "page.html"]):
        assert not PROMISES.search(printed(seeded, *how)), how
    assert not PROMISES.search((tmp_path / "page.html").read_text())
    assert "seeded" in printed(seeded)
    both = printed(good, again)
    assert "Data set q1" in both and "Data set q2" in both
    assert "Somebody who is in several of 'q1' and 'q2' is covered by the sum of their losses alone, epsilon=16" in both
    assert json.loads(printed(good, again, good, "--json"))["in_several"]["loss"] == {"epsilon": "16"}
    assert "in several" not in printed(good, good).replace("who is in several is covered by their sum alone", "")


def test_a_synthetic_file_promises_what_its_release_does_and_an_older_one_nothing(tmp_path: Path) -> None:
    """A file written before releases were noted with basis and flags has no bound, and says what to give."""
    folder = Path(shutil.copytree(planned("tables")["counts"], tmp_path / "r"))
    told = json.loads((folder / "release.json").read_text())
    for name in ("good", "seeded"):
        changed = told["guarantee"] if name == "good" else DOUBTS[name](told["guarantee"])
        (folder / "release.json").write_text(json.dumps(told | {"guarantee": changed}))
        made = synthesize(folder, tmp_path / f"synthetic-{name}.parquet")
        assert bool(of_synthetic(made.path).said.beliefs) == (name == "good")
        about = json.loads(made.about.read_text())
        for each in about["releases"].values():
            del each["stated"]
        made.about.write_text(json.dumps(about))
        old = of_synthetic(made.path)
        assert not old.said.beliefs and any("earlier version" in note for note in old.notes)
        assert bool(of_synthetic(made.path, open_releases(folder)).said.beliefs) == (name == "good")
