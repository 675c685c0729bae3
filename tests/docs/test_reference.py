"""The reference has every public name with words, and every key of a plan with an example that a plan may hold."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.plan import shape, source

DOCS = Path(__file__).parents[2] / "docs"


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


public = module("public")
fields = module("plan_fields")
NAMES = [name for group in public.groups().values() for name in group]


def test_the_reference_lists_every_group() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    for group in public.groups():
        assert f"```{{names}} {group}\n" in page
    assert {f"discreet.{name}" for name in discreet.__all__} - {*NAMES} == {
        "discreet.errors",
        "discreet.simulate",
    }
    assert {
        "discreet.tables.release.CountRelease",
        "discreet.models.linear.fit.MixedFit",
        "discreet.data.jobs.Jobs",
    } <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_and_member_has_words(name: str) -> None:
    value = public.value(name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        silent = [member for member, inner in public.members(value) if not inspect.getdoc(getattr(value, member))]
        assert not silent


def test_modules_of_data_are_reached_from_the_package() -> None:
    """As `discreet.__doc__` spells them, in an interpreter that imported nothing else."""
    names = [f"dc.simulate.{name}.write" for name in public.DATA]
    subprocess.run([sys.executable, "-c", f"import discreet as dc; {'; '.join(names)}"], check=True)
    with pytest.raises(AttributeError, match="it has: crime, histories, lodes"):
        _ = discreet.simulate.nothing


def test_the_keys_of_a_plan_are_those_of_the_schema() -> None:
    page = fields.PAGE.read_text(encoding="utf-8")
    assert page.partition(fields.START)[2].startswith(f"\n{fields.fields()}\n{fields.END}"), "`make pages` writes it"
    assert {*fields.EXAMPLES} == {"Plan", *shape.json_schema()["$defs"]}


@pytest.mark.parametrize("name", [name for name in fields.EXAMPLES if name != "Plan"])
def test_every_key_has_an_example_that_a_plan_may_hold(name: str) -> None:
    example = tomllib.loads(fields.EXAMPLES[name])
    table = next(iter(example.values()))
    table = table[0] if isinstance(table, list) else table.get("schema", table) if name == "Columns" else table
    inside = {
        "LevelsSection": ("industry",),
        "MagnitudeSection": ("schema", "magnitudes", "payroll"),
        "SourceSection": ("jobs",),
    }
    for key in inside.get(name, ()):
        table = table[key]
    section = getattr(shape, name, None) or getattr(source, name)
    section.model_validate(table)
    keys = {field.alias or key for key, field in section.model_fields.items()}
    assert keys - {"lookup", "per_year", "per_month", "fdr"} == {*table}  # those stand for another key
    assert all(field.description or key == "kind" for key, field in section.model_fields.items())
