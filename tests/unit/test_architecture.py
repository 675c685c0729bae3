"""The shape of the project: imports point one way, noise has one door, proofs exist, the start is light."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import get_args

import pytest

import discreet
from discreet.plan.shape import AnyRelease
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.registry import BASELINES, PRIVATE
from source_files import PACKAGE as SOURCE
from source_files import PAPERS, source_files

ROOT = Path(__file__).parents[2]

ROOMS = {"words", "data", "models"}
"""Rooms whose modules have places of their own."""

# A place may import those on lower rows and its own row's only where listed in SIDEWAYS.
LAYERS = [
    {"words/voices"},
    {"words/faults"},
    {"words/errors", "arrays", "chart", "words/caveats", "words/later", "words/progress"},
    {
        *("errors", "words/arguments", "words/cases", "words/extras", "words/names"),
        *("data/codes", "data/columns", "data/failures", "data/delimited", "data/magnitude"),
        *("data/one_at_a_time", "data/untyped"),
    },
    {"data/databases", "data/hierarchy", "results"},
    {"data/scans"},
    {"data/frames", "data/stamps", "privacy", "simulate", "archive"},
    {"noise", "ledger", "data/engines", "data/readers", "roc", "pages"},
    {"data/schema"},
    {"data/row_checks", "data/lineage", "data/unnamed"},
    {"data/jobs", "data/oddities", "release", "models/formula"},
    {"data/histories"},
    {"tables", "models/linear"},
    {"models/bayes"},
    {"models/mixed"},
    {"audit", "utility", "session", "report", "data_check", "lme4"},
    {"plan", "publication", "synthetic"},
    {"review"},
    {"changes"},
    {"demo"},
    {"desk"},
    {"cli"},
    {"__main__"},
    {"discreet_papers"},
]
WINGS = {
    "changes": {"arrays", "chart", "data", "pages", "results", "roc", "words"},
    "desk": None,
}
"""Rooms with a wall: nobody imports them but another wing and the papers, and the rooms that each may import."""
BORDER = {
    "data/frames.py",
    "data/engines/memory.py",
    "models/linear/private/panel.py",
}  # the others wrap tables that `frames` gave
SIDEWAYS: set[tuple[str, str]] = set()


@cache
def modules() -> list[tuple[str, str, ast.Module]]:
    """Of both projects: room, place, tree; the map of a room whose modules have places of their own has none."""
    return [
        (room_of(tuple(place.removesuffix(".py").split("/"))), place, ast.parse(path.read_text(encoding="utf-8")))
        for place, path in source_files()
        if place.removesuffix("/__init__.py") not in ROOMS
    ]


def room_of(parts: tuple[str, ...]) -> str:
    """Where a module stands in the house: a room, or a part of one."""
    return "/".join(parts[:2]) if parts[0] in ROOMS else parts[0]


def imported(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [(*node.module.split("."), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        else:
            continue
        for top, *below in names:
            if top == PAPERS.name:
                yield (top, *below)
            elif top == "discreet" and below:
                yield tuple(below)


def test_imports_point_one_way() -> None:
    level = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    wrong = []
    for package, place, tree in modules():
        if package == "__init__":
            continue
        assert package in level, f"{package} has no place in the architecture: add it to LAYERS and ARCHITECTURE.md"
        for target in imported(tree):
            there = room_of(target)
            if there not in level or there == package:
                continue
            if level[there] >= level[package] and (package, there) not in SIDEWAYS:
                wrong.append(f"{place} imports {'.'.join(target)}")
    assert not wrong, wrong


def test_the_papers_stand_outside_and_the_package_works_without_them() -> None:
    """Nothing of the package names a module of theirs, neither do its tests; and theirs use no screen."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if ROOT / "tests" / "papers" not in path.parents]
    package = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".html", ".js", ".toml", ".json")]
    assert len(tests) > 300 and len(package) > 500
    using = re.compile(r"^ *(from|import) discreet_papers|import_module\(.discreet_papers", re.MULTILINE)
    named = [path for path in tests if using.search(path.read_text(encoding="utf-8"))]
    named += [path for path in package if "discreet_papers" in path.read_text(encoding="utf-8")]
    assert not named, named
    screens = {target[:2] for package, _, tree in modules() if package == PAPERS.name for target in imported(tree)
               if target[0] in ("desk", "cli", "demo", "__main__")}  # fmt: skip
    assert not screens


def test_papers_and_package_are_one_version() -> None:
    ours, theirs = (tomllib.loads((folder / "pyproject.toml").read_text()) for folder in (ROOT, ROOT / "papers"))
    assert theirs["project"]["version"] == ours["project"]["version"] == discreet.__version__
    assert theirs["project"]["dependencies"] == [f"discreet[cli]=={discreet.__version__}"]
    assert ours["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/discreet"]}


def test_packages_have_no_cycles_and_the_layers_allow_only_what_exists() -> None:
    graph: dict[str, set[str]] = {}
    for package, _, tree in modules():
        if package != "__init__":
            graph.setdefault(package, set()).update({room_of(target) for target in imported(tree)} - {package})
    assert {name for layer in LAYERS for name in layer} == set(graph)
    unused = {(one, other) for one, other in SIDEWAYS if other not in graph[one]}
    assert not unused, unused
    TopologicalSorter({name: found & set(graph) for name, found in graph.items()}).prepare()  # CycleError


def test_wings_have_walls() -> None:
    through = []
    for _, place, tree in modules():
        room = place.removesuffix(".py").split("/")[0]
        for target in imported(tree):
            there, allowed = target[0], WINGS.get(room)
            if there in WINGS and room not in {*WINGS, PAPERS.name}:
                through.append(f"{place} imports {'.'.join(target)}")
            if allowed is not None and there not in {*allowed, room}:
                through.append(f"{place} imports {'.'.join(target)}")
    assert not through, through


def test_rooms_have_no_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for _, place, tree in modules():
        room = place.removesuffix(".py").split("/")[0]
        graph.setdefault(room, set()).update({target[0] for target in imported(tree)} - {room, "__init__"})
    TopologicalSorter({room: below & set(graph) for room, below in graph.items()}).prepare()  # CycleError


def test_the_picture_of_the_house_is_of_today() -> None:
    """`make map` draws it again."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
    assert spec is not None and spec.loader is not None
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture()
    assert house.PAGE.read_text(encoding="utf-8") == house.page()


MAPS = [*sorted(path.parent for path in SOURCE.rglob("*/__init__.py") if path.parent != SOURCE), PAPERS]


@pytest.mark.parametrize("folder", MAPS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_packages_map_is_its_folder(folder: Path) -> None:
    """The docstring of every package names each of its modules."""
    map_ = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    parts = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    if folder.name == "families":  # whose families a registry finds: one that is added names itself
        parts -= {path.stem for path in folder.glob("*.py") if " = Family(" in path.read_text(encoding="utf-8")}
    missing = {name for name in parts - {"__init__"} if not re.search(rf"(^|`){name}\b", map_, re.MULTILINE)}
    assert not missing, missing


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for _, place, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(place)
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert not twice, twice


def test_numerical_modules_know_no_frames() -> None:
    numerical = [
        "models/linear/reml.py",
        "roc/curve.py",
        "noise/laws.py",
        "tables/shrinkage.py",
        "tables/intervals/counts.py",
    ]
    for name in numerical:
        text = (SOURCE / name).read_text(encoding="utf-8")
        assert not re.search(r"import (narwhals|pandas|polars|pyarrow|duckdb)", text), name


def test_the_border_is_one_function() -> None:
    """Only `frames` opens what a user has."""
    found = set()
    for _, place, tree in modules():
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if calls & {"nw.from_native", "from_native"}:
            found.add(place)
    assert found <= BORDER, found


def test_only_the_owners_own_commands_ask_which_rows_are_at_fault() -> None:
    """A refusal that others read knows kinds of faults. Nothing that makes a release looks for the rows."""
    asking = {place for _, place, tree in modules() for target in imported(tree)
              if target[:1] == ("data_check",) and target[-1] != "plain_type"}  # fmt: skip
    assert {name for name in asking if not name.startswith("desk/pages/")} == {"cli/data.py"}


KINDS = "plan/kinds/"


def asked_kinds(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines that ask whether a value is of one of some classes."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = [*node.args[1:]]
        elif isinstance(node, ast.Compare) and any("type(" in ast.unparse(each) for each in ast.walk(node)):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        if {getattr(each, "id", getattr(each, "attr", "")) for part in asked for each in ast.walk(part)} & names:
            yield node.lineno  # type: ignore[attr-defined]


def test_nobody_outside_of_the_room_asks_for_the_kind_of_a_release() -> None:
    """A planned release and the section that asks for it answer for themselves."""
    sections = {each.__name__ for kind in get_args(get_args(AnyRelease)[0]) for each in kind.__mro__}
    requests = {
        node.name
        for _, place, tree in modules()
        if place.startswith(KINDS)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Planned")
    }
    assert {"Count", "Movement", "PosteriorSection"} <= sections and len(requests) > 4
    names = (sections | requests) - {"BaseModel", "Section", "ABC", "object"}
    for seen in (
        "isinstance(release, Movement)",
        "isinstance(each, shape.Count | None)",
        "type(request) is PlannedCounts",
        "match release:\n    case Flows():\n        pass",
    ):
        assert list(asked_kinds(ast.parse(seen), names)), seen
    wrong = [
        f"{place}:{line}"
        for _, place, tree in modules()
        if not place.startswith(KINDS)
        for line in asked_kinds(tree, names)
    ]
    assert not wrong, wrong


def test_noise_has_one_door() -> None:
    """Only the account makes a private source; only mechanisms that got one from it draw."""
    makers = {place for _, place, tree in modules() for target in imported(tree) if target[-1] == "SystemSource"}
    assert makers == {"release/account.py"}


def test_there_is_one_way_to_release() -> None:
    """Only the account charges and publishes; nothing is an account of another kind, and nothing is rehearsed."""
    callers: dict[str, set[str]] = {"charge": set(), "publish": set(), "release_once": set()}
    for _, place, tree in modules():
        assert not re.search("Rehears|UnreadError|RehearsedError", ast.unparse(tree)), place
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                assert "Account" not in {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}, place
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).removeprefix("self.").removeprefix("ledger.")
                if name in callers and not place.startswith("ledger/"):
                    callers[name].add(place)
    assert set(map(frozenset, callers.values())) == {frozenset({"release/account.py"})}, callers


def test_privacy_noise_never_comes_from_numpy() -> None:
    exempt = {"source.py", "infusion.py"}  # the seeded source, and noise infusion, which promises nothing
    for package, place, tree in modules():
        if package in {"noise", "privacy", "tables", "release", "session"} and Path(place).name not in exempt:
            assert "np.random" not in ast.unparse(tree), place


@pytest.mark.parametrize("name", [*PRIVATE, *BASELINES])
def test_every_mechanism_has_a_proof(name: str) -> None:
    mechanism = calibrate(name, unit=Establishments(0.1), epsilon=4, delta="0.05" if name == "smooth-laplace" else None)  # type: ignore[call-overload]
    text = (ROOT / mechanism.proof).read_text(encoding="utf-8")
    assert f"`{name}`" in text


def test_public_names_exist_and_are_documented() -> None:
    for name in discreet.__all__:
        assert getattr(discreet, name).__doc__, name
    with pytest.raises(AttributeError, match="it has"):
        discreet.nonsense  # noqa: B018


def test_import_is_light() -> None:
    """No frame library, no SciPy, no SQLAlchemy until something needs them. (The time itself is in bench/.)"""
    heavy = "pandas polars pyarrow duckdb narwhals scipy numpy sqlalchemy altair flint pyspark typer"
    code = f"import sys, discreet; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_machine_paths_or_addresses_in_the_tree() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(/home/\w+/|/root/|index-url\s*=|https?://[^ )]*/simple/)")
    for name in tracked.stdout.split():
        path = ROOT / name
        if path.suffix in {".py", ".toml", ".txt", ".md", ".yaml", ".cfg"} and path.name != "test_architecture.py":
            assert not pattern.search(path.read_text(encoding="utf-8")), name


PROTECTION = re.compile(
    r"proved privacy|how sure|become sure|come out (much )?the same|nobody can tell|whatever else|covered by the sum"
    r"|sum of their losses|of different people|then at most",
    re.IGNORECASE,
)
SAID_IN = {"privacy/assurance.py", "privacy/plain_words.py"}
DRAWN_FROM_THEM = {"report/belief.py", "publication/pages.py"}
"""Captions of figures and tables whose numbers an `Assurance` gives, or does not."""


def test_sentences_of_protection_stand_in_one_place() -> None:
    """A page that promises takes its words from there, where a doubt leaves none."""
    found = set()
    for _, place, tree in modules():
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (
            n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
        )
        if any(PROTECTION.search(node.value) for node in texts):
            found.add(place)
    pages = [path for path in SOURCE.rglob("*") if path.suffix in (".html", ".js")]
    found |= {path.relative_to(SOURCE).as_posix() for path in pages if PROTECTION.search(path.read_text("utf-8"))}
    assert found == SAID_IN | DRAWN_FROM_THEM, found


def test_bounds_on_beliefs_come_from_one_place() -> None:
    """Whoever states how far a belief can move asks an `Assurance`, which knows basis, flags and unit."""
    bounds = {("identification", n) for n in ("belief_bounds", "posterior", "sure")}
    bounds |= {("belief", "permitted"), ("plain_words", "plain_words")}
    asking = {place for _, place, tree in modules() for target in imported(tree)
              if target[:1] == ("privacy",) and target[1:] in bounds}  # fmt: skip
    exact_laws = {"privacy/exchange.py", "tables/likelihood.py"}  # of a mechanism's noise, not of a release's promise
    assert asking == {"privacy/assurance.py"} | exact_laws, asking
    definitions = {place for _, place, tree in modules() for node in ast.walk(tree)
                   if isinstance(node, ast.Attribute) and node.attr == "of_definition"}  # fmt: skip
    assert definitions == {"report/requirements.py", "discreet_papers/lodes_definitions.py"}, (
        "no release is a definition"
    )


def test_nobody_shows_a_stored_guarantee_but_by_its_claim() -> None:
    """The words beside a release are those of a version that may have promised more: `Claim.stated` judges them."""
    stored = re.compile(
        r"""guarantee(\.|"\]\["?)(sentence|definition|basis|private)|\["guarantee"\]\["(sentence|definition)"\]"""
    )
    pages = [*source_files(), *((path.relative_to(SOURCE).as_posix(), path) for path in SOURCE.rglob("*.html"))]
    found = {place for place, path in pages if stored.search(path.read_text("utf-8"))}
    made_here = {
        "review/recompute.py",
        "discreet_papers/lmm.py",
        "models/bayes/audited_draw.py",
        "models/linear/private/identity.py",
        "plan/kinds/counts.py",
        "release/account.py",
        "release/files.py",
    }
    assert found - made_here <= {"release/folder.py"}, found
