"""The whole way of a world through the product, in this process, and what each step ended with."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random

from bench.accidents import faults as contradicting
from bench.accidents import hashed

from worlds.data import Data, unmet
from worlds.plan import prepared, source
from worlds.world import OF_FILES, World

FORMATS = "csv,parquet,xlsx,csvw,sdmx"


@dataclass(frozen=True)
class Ended:
    """How a command ended: 3 is a traceback."""

    command: str
    code: int
    said: str


SEVERAL = ("twice", "two periods", "torn", "no rows", "outside", *OF_FILES)
"""What makes a row odd in more than one way, or not the same way elsewhere."""

COUNTED: Counter[str] = Counter()
"""What became of worlds, for who runs many."""


@dataclass
class Walk:
    """What became of a world.

    Attributes
    ----------
    ended : each step by its name.
    forgery : what was changed in a copy of the bundle.
    contradictions : what the ledger and the files said against each other after an accident.
    frames : what a rehearsal in Python gave, by the kind of frame.
    strange : which column was of a strange type, and what a rehearsal gave with it.
    """

    world: World
    folder: Path
    data: Data
    ended: dict[str, Ended] = field(default_factory=dict)
    frames: dict[str, str] = field(default_factory=dict)
    strange: tuple[str, str] = ("", "")
    forgery: str = ""
    contradictions: list[str] = field(default_factory=list)

    def step(self, name: str, *arguments: object) -> Ended:
        """Carry a command out in the world's folder, and keep how it ended."""
        self.ended[name] = call(self.folder, *arguments)
        return self.ended[name]

    def check(self, name: str, plan: str) -> None:
        """Look at a plan before it is paid."""
        if self.world.command:
            self.step(name, "check", plan, *(["--owner"] if name == "owner" else []))
        else:
            self.ended[name] = _checked(self.folder / plan, owner=name == "owner")

    @property
    def released(self) -> bool:
        return "run" in self.ended and self.ended["run"].code == 0


def call(folder: Path, *arguments: object) -> Ended:
    """A command in this process: its exit code and all that it says. A warning is an error."""
    from discreet.cli import main

    said, words = io.StringIO(), [*map(str, arguments)]
    before, code = sys.argv, 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        sys.argv = ["discreet", *words]
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:
            traceback.print_exc(file=said)
            code = 3
        finally:
            sys.argv = before
    return Ended(" ".join(words), code, said.getvalue())


def _checked(path: Path, *, owner: bool) -> Ended:
    """The same by Python's functions, without a page and its advice."""
    from discreet.plan.check import check
    from discreet.plan.owner import OwnerRefusal, owner_notes
    from discreet.plan.reading import read_plan
    from discreet.words.errors import DiscreetError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = check(read_plan(path))
            said, code = [str(fault) for fault in (*found.faults, *found.missing)], 2 * bool(found.faults)
            notes = owner_notes(found.file) if owner and not said else []
            code = 2 if any(isinstance(note, OwnerRefusal) for note in notes) else code
            return Ended(f"check {path.name}", code, "\n".join([*said, *notes]))
        except DiscreetError as error:
            return Ended(f"check {path.name}", 2, str(error))
        except Exception:
            return Ended(f"check {path.name}", 3, traceback.format_exc())


def walked(world: World, folder: Path) -> Walk:
    """Take the world from its data to what is published."""
    walk = Walk(world, folder, prepared(world, folder))
    place, options = source(world, folder)
    walk.step("data check", "data", "check", place, *options)
    if walk.step("plan new", "plan", "new", place, *options, "--out", "new.toml").code == 0:
        walk.check("check new", "new.toml")
    walk.check("check", "plan.toml")
    walk.check("owner", "plan.toml")
    if world.accidents and walk.ended["check"].code == 0:
        from worlds.accidents import happened

        walk.contradictions = happened(walk)
    if walk.step("run", "run", "plan.toml").code == 0:
        after(walk)
    if world.desk:
        from worlds.desk import opened

        walk.ended |= {f"desk: {name}": ended for name, ended in opened(walk).items()}
    if world.odd:
        _beside(walk)
    if world.damaged:
        from worlds.damage import tried

        tried(walk)
    if world.memory and not world.quarters and not world.refused and not world.misnamed:
        from worlds.session import rehearsed, strange

        walk.frames |= rehearsed(walk)
        walk.strange = strange(walk)
    return walk


def _beside(walk: Walk) -> None:
    """The same plan on rows of which none is odd, and on rows of which another one is."""
    what = walk.world.odd[0].what
    if what in OF_FILES or (what == "one row more" and "at_most" in walk.world.public):
        return  # `check` reads the names of columns, and bounds that are public
    for name, world in (
        ("check", replace(walk.world, odd=())),
        ("run", replace(walk.world, odd=walk.world.odd * 2, rows=walk.world.rows + 1)),
    ):
        folder = walk.folder / f"beside-{name}" / walk.folder.name
        folder.parent.mkdir()
        prepared(world, folder)
        if name == "check":
            beside = Walk(world, folder, walk.data)
            beside.check("check", "plan.toml")
            walk.ended["check beside"] = beside.ended["check"]
        elif walk.ended["run"].code == 2 and _alone_odd(walk):
            walk.ended["run beside"] = call(folder, "run", "plan.toml")


def after(walk: Walk) -> None:
    """What is done with a release."""
    drawn = {name: hashed(walk.folder / "out" / name) for name in (each.name for each in walk.world.releases)}
    walk.step("again", "run", "plan.toml")
    if drawn != {name: hashed(walk.folder / "out" / name) for name in drawn}:
        walk.contradictions.append("a run that had ended is another one when it is asked for again")
    prices = {each.name: Fraction(each.epsilon) for each in walk.world.releases}
    walk.contradictions += contradicting(walk.folder, prices)
    walk.step("verify", "verify", "out/bundle.zip", "--ledger", "ledger.db")
    walk.step("ledger", "ledger", "verify", "ledger.db")
    walk.step("show", "ledger", "show", "ledger.db")
    if walk.world.forged:
        from worlds.forged import forge, forge_ledger

        chance = Random(walk.world.rows)
        what = forge_ledger(walk.folder / "ledger.db", walk.folder / "forged.db", chance)
        ended = walk.step("forged ledger", "verify", "out/bundle.zip", "--ledger", "forged.db")
        if ended.code != 1 or "WRONG" not in ended.said:
            walk.contradictions.append(f"verify does not find {what}\n{ended.said[-1500:]}")
        walk.forgery, _ = forge(walk.folder / "out" / "bundle.zip", walk.folder / "forged.zip", chance)
        walk.step("forged", "verify", "forged.zip", "--ledger", "ledger.db")
    if walk.world.publishes:
        period = ["--period", walk.world.period or "2026-Q1"]
        walk.step("publish", "publish", "out", "--out", "published", "--formats", FORMATS, *period)
        walk.step("site", "site", "out", "--out", "site")
        walk.step("synthesize", "synthesize", "out", "--out", "jobs-synthetic.parquet")


def _alone_odd(walk: Walk) -> bool:
    """Whether a run was refused for nothing but what is odd, which is the same in another row."""
    same = walk.world.odd[0].what not in SEVERAL
    return same and walk.ended["check"].code == 0 and not unmet(walk.world)


@contextlib.contextmanager
def somewhere() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="world-") as place:
        yield Path(place) / "w"


def faults(world: World, *, keep: Path | None = None) -> list[str]:
    """Everything that does not hold in a world; its folder is kept if anything does not."""
    from worlds import invariants

    with somewhere() as folder:
        try:
            walk = walked(world, folder)
            found = [*invariants.broken(walk)]
            COUNTED.update(_counted(walk))
        except Exception:
            found, walk = [f"the walk itself: {traceback.format_exc()}"], None
        if found and keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(folder, keep)
            (keep / "world.py").write_text(world.script, encoding="utf-8")
            (keep / "faults.txt").write_text("\n\n".join(found), encoding="utf-8")
            if walk is not None:
                said = (f"$ {e.command}\n[{e.code}]\n{e.said}\n" for e in walk.ended.values())
                (keep / "said.txt").write_text("\n".join(said), encoding="utf-8")
    return found


def verified(world: World) -> list[str]:
    """What `verify` says wrongly of a genuine release of a world, and of a copy with one thing changed."""
    from worlds.forged import forge

    world = replace(world, odd=(), accidents=())
    with somewhere() as folder:
        walk = Walk(world, folder, prepared(world, folder))
        if walk.step("run", "run", "plan.toml").code:
            return []
        genuine = walk.step("verify", "verify", "out/bundle.zip", "--ledger", "ledger.db")
        what, _ = forge(folder / "out" / "bundle.zip", folder / "forged.zip", Random(world.rows))
        forged = walk.step("forged", "verify", "forged.zip", "--ledger", "ledger.db")
    COUNTED[f"genuine bundles: verify ended with {genuine.code}"] += 1
    COUNTED[f"with one thing changed: verify ended with {forged.code}"] += 1
    COUNTED[f"changed: {what.partition(',')[0]}"] += 1
    found = [f"verify calls a genuine release wrong\n{genuine.said[-2500:]}"] * (
        genuine.code != 0 or "WRONG" in genuine.said
    )
    missed = forged.code != 1 or "WRONG" not in forged.said
    return found + [f"verify does not find {what} ({forged.code})\n{forged.said[-2500:]}"] * missed


def _counted(walk: Walk) -> Iterator[str]:
    yield "released" if walk.released else "refused"
    if "verify" in walk.ended:
        yield f"genuine bundles: verify ended with {walk.ended['verify'].code}"
    if walk.forgery:
        yield f"forged bundles: verify ended with {walk.ended['forged'].code}"
    yield from (f"accidents: {name}" for name in walk.world.accidents if walk.ended["check"].code == 0)
    for door, there in (("at the desk", walk.world.desk), ("in memory", bool(walk.frames))):
        if there:
            yield door
    if "publish" in walk.ended:
        yield "published"


def repeat(world: World) -> None:
    """Say what does not hold in a world."""
    found = faults(world)
    print("\n\n".join(found) or "everything holds")
    sys.exit(bool(found))
