"""Plans of models and posterior summaries, the whole way: odd designs of `models` as files, and what holds of each.

What must hold: no traceback; `check` and `run` agree; the owner is told of a response that counts as nothing;
whatever one response holds decides nothing that is said or refused; what is refused is refused before it is paid; the
ledger and the files agree; `verify` finds nothing wrong, and finds what was changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.csv
import pyarrow.parquet
from bench.accidents import faults as contradicting
from bench.accidents import hashed

from worlds import models
from worlds.forged import forge
from worlds.kinds import arrow
from worlds.models import World
from worlds.way import COUNTED, Ended, call

WORDS = 0.3
"""How often the response of a CSV file is words, which count as nothing."""

ODD = (None, math.nan, math.inf, -math.inf, 1e308, -0.0)


def drawn(seed: int) -> World:
    """The first private world from a seed on that a plan can ask for."""
    for at in range(1000 * seed, 1000 * seed + 1000):
        world = models.drawn(at)
        moments = "private" in world.door and world.asked.get("method", "moments") == "moments"
        if moments and not {"rho", "protect"} & {*world.asked}:
            return world
    raise AssertionError("no world of these can be planned")


def text_of(world: World, source: str, chance: Random) -> str:
    """Its plan, and a posterior summary of the same response where a number is beside it."""
    lower, upper = world.asked["bounds"]
    public = [name for name in world.used if name != world.response]
    numbers = [name for name in public if all(isinstance(v, float) for v in world.columns[name])]
    told = ["[data]", f"source = {json.dumps(source)}", f"public = {_list(public)}"]
    told += ["[unit]", 'kind = "rows"', f'lower = "{Fraction(lower)}"', f'upper = "{Fraction(upper)}"']
    told += [f"response = {json.dumps(world.response, ensure_ascii=False)}"]
    told += ["[budget]", "epsilon = 3000", 'ledger = "ledger.db"', 'dataset = "rows"']
    told += ["[[release]]", 'name = "model"', 'kind = "model"', f'epsilon = "{world.asked["epsilon"]}"']
    told += [f"formula = {json.dumps(world.formula, ensure_ascii=False)}"]
    for key, value in world.asked.items():
        if key in ("family", "exposure", "time"):
            told.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        elif key in ("series", "clip"):
            told.append(f"{key} = {json.dumps([*value], ensure_ascii=False)}")
    if numbers and "family" not in world.asked:
        x = chance.choice(numbers)
        formula = f"{models.quoted(world.response)} ~ {models.quoted(x)}"
        told += ["[[release]]", 'name = "summary"', 'kind = "posterior"', "epsilon = 2", "at = [0.5]"]
        told += [f"formula = {json.dumps(formula, ensure_ascii=False)}", f"coefficient = {_list([models.quoted(x)])}"]
        told += [f'summary = "{chance.choice(("probability", "quantile", "interval"))}"', "partitions = 3"]
    return "\n".join([*told, "[output]", 'folder = "out"', ""])


def _list(names: Any) -> str:
    return json.dumps([*names], ensure_ascii=False)


def written(world: World, path: Path) -> None:
    """The table of the columns that the model needs."""
    write = pyarrow.csv.write_csv if path.suffix == ".csv" else pyarrow.parquet.write_table
    write(arrow({name: world.columns[name] for name in world.used}), path)


def faults(seed: int, folder: Path) -> list[str]:
    """Everything that does not hold of the plan of a seed."""
    world, chance = drawn(seed), Random(seed)
    used = replace(world, columns={name: world.columns[name] for name in world.used})
    source = "rows.csv" if chance.random() < 0.3 and models.survives_csv(used) else "rows.parquet"
    if source.endswith(".csv") and chance.random() < WORDS:
        world = world.with_column(world.response, [chance.choice(("low", "high")) for _ in range(world.rows)])
    folder.mkdir(parents=True)
    written(world, folder / source)
    (folder / "plan.toml").write_text(text_of(world, source, chance), encoding="utf-8")
    ended = {
        "check": call(folder, "check", "plan.toml"),
        "owner": call(folder, "check", "plan.toml", "--owner"),
        "run": call(folder, "run", "plan.toml"),
    }
    COUNTED["plans of models: " + ("released" if ended["run"].code == 0 else "refused")] += 1
    found = [*_held(world, folder, ended, folder / source, chance)]
    found += [f"{name}: {each.said[-2500:]}" for name, each in ended.items() if _torn(each)]
    return [f"{each}\n{world.formula!r}" for each in found]


def _torn(ended: Ended) -> bool:
    return ended.code not in (0, 1, 2) or "Traceback (most recent call last)" in ended.said


def _held(world: World, folder: Path, ended: dict[str, Ended], source: Path, chance: Random) -> Iterator[str]:
    checked, run = ended["check"], ended["run"]
    if checked.code != run.code:
        yield f"check ended with {checked.code} and the run with {run.code}\n{checked.said[-900:]}\n{run.said[-900:]}"
    useless = source.suffix == ".csv" and all(isinstance(each, str) for each in world.columns[world.response])
    if checked.code == 0 and useless != (ended["owner"].code == 2):
        yield f"the owner's check of {useless=} ended with {ended['owner'].code}\n{ended['owner'].said[-900:]}"
    beside, row, values = folder.parent / "beside", chance.randrange(world.rows), [*world.columns[world.response]]
    odd = ("other", None) if useless else (True, False, None) if isinstance(values[row], bool) else ODD
    values[row] = chance.choice(odd)
    beside.mkdir()
    written(world.with_column(world.response, values), beside / source.name)
    (beside / "plan.toml").write_bytes((folder / "plan.toml").read_bytes())
    ended["check beside"] = call(beside, "check", "plan.toml")
    if ended["check beside"].said != checked.said:
        yield f"check depends on one response\n{checked.said[-900:]}\n{ended['check beside'].said[-900:]}"
    if run.code:
        if any((folder / name).exists() for name in ("out", "ledger.db")):
            yield "refused, and something is there"
        ended["run beside"] = call(beside, "run", "plan.toml")
        if (ended["run beside"].code, ended["run beside"].said) != (run.code, run.said):
            yield f"a refusal depends on one response\n{run.said[-900:]}\n{ended['run beside'].said[-900:]}"
        return
    names = [name for name in ("model", "summary") if f'name = "{name}"' in (folder / "plan.toml").read_text("utf-8")]
    prices = {"model": Fraction(world.asked["epsilon"]), "summary": Fraction(2)}
    drawn_ = {name: hashed(folder / "out" / name) for name in names}
    ended["again"] = call(folder, "run", "plan.toml")
    if drawn_ != {name: hashed(folder / "out" / name) for name in names}:
        yield "a run that had ended is another one when it is asked for again"
    yield from contradicting(folder, {name: prices[name] for name in names})
    ended["verify"] = call(folder, "verify", "out/bundle.zip", "--ledger", "ledger.db")
    ended["publish"] = call(folder, "publish", "out", "--out", "published", "--formats", "csv,parquet,xlsx,csvw")
    ended["site"] = call(folder, "site", "out", "--out", "site")
    for name in ("again", "verify", "site"):
        if ended[name].code or "WRONG" in ended[name].said:
            yield f"{name} ended with {ended[name].code}\n{ended[name].said[-2000:]}"
    what, _ = forge(folder / "out" / "bundle.zip", folder / "forged.zip", chance)
    ended["forged"] = call(folder, "verify", "forged.zip", "--ledger", "ledger.db")
    if ended["forged"].code != 1 or "WRONG" not in ended["forged"].said:
        yield f"verify does not find {what} ({ended['forged'].code})\n{ended['forged'].said[-1500:]}"
