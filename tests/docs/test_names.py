"""Names in the prose of the docs exist: `discreet.a.b`, `dc.name` and, on the page about large changes, `changes.a`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import discreet

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
NAME = re.compile(r"`((?:discreet|dc|changes|roc|utility)(?:\.[A-Za-z_]\w*)+)(?![\w.*])")
FILES = {"toml", "json", "csv", "parquet", "db", "html", "py", "duckdb", "sqlite"}


def found(page: Path) -> set[str]:
    names = NAME.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.S))
    return {name for name in names if name.rsplit(".", 1)[1] not in FILES}


def resolve(name: str) -> object:
    first, *rest = name.split(".")
    start = "discreet" if first in ("discreet", "dc") else f"discreet.{first}"
    value: object = discreet if start == "discreet" else import_module(start)
    for part in rest:
        start = f"{start}.{part}"
        try:
            value = import_module(start)
        except ModuleNotFoundError:
            value = getattr(value, part)
    return value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_resolves(page):
    for name in found(page):
        assert resolve(name) is not None, name


def test_it_can_fail():
    assert len(set.union(*map(found, PAGES))) > 20
    for name in ("discreet.roc.curve.pauc", "dc.nothing", "roc.curve.pauc"):
        with pytest.raises(AttributeError):
            resolve(name)
