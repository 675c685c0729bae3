"""Commands that other distributions and wings add, found by their entry points in the group `discreet.commands`.

An entry point has the command's name and says where its function or its `typer.Typer` is. That is imported when
somebody calls the command, never before: the list of all commands reads one file of each as text. A command whose file
is not found is listed as broken, one that fails says so when it is called, and all others work. No name of ours can be
taken.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.words import extras
from discreet.words.errors import DiscreetError, MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "discreet.commands"


@cache
def announced() -> dict[str, tuple[EntryPoint, ...]]:
    """Who announces each command."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, _owner(point))):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def loaded(name: str) -> Any:
    """What an announced command is, imported now."""
    point, *others = announced()[name]
    if others:
        raise _broken(name, f"{_owners(name)} announce it.", "Remove all of them but one.")
    try:
        return point.load()
    except DiscreetError:
        raise
    except Exception as error:
        raise _broken(name, f"{_owners(name)} failed: {type(error).__name__}: {error}.", _again(point)) from error


def described(name: str) -> str:
    """The first paragraph of a command's help, from the text of its file, or why the command is broken."""
    point, *others = announced()[name]
    if others:
        return f"Broken: {_owners(name)} announce it. Remove all of them but one."
    try:
        tree = _tree(point.module)
    except (OSError, SyntaxError, ValueError):
        tree = None
    if tree is None:
        return f"Broken: {_owners(name)} has no module {point.module} that can be read. {_again(point)}"
    return _help(tree, point.attr) or f"A command of {_owners(name)}."


def _tree(module: str) -> ast.Module | None:
    """The text of a module, parsed; it is found without the import of any package above it."""
    top, *below = module.split(".")
    spec = find_spec(top)
    if spec is None:
        return None
    files = [Path(spec.origin or "")]
    if below:
        places = [Path(folder, *below) for folder in spec.submodule_search_locations or ()]
        files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    file = next(filter(Path.is_file, files), None)
    return None if file is None else ast.parse(file.read_text(encoding="utf-8"))


def _help(tree: ast.Module, attribute: str) -> str:
    """The docstring of a function, or what a `Typer` is given as `help`."""
    said: Any = None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            said = ast.get_docstring(node)
        elif isinstance(node, ast.Assign) and attribute in map(ast.unparse, node.targets):
            given = node.value.keywords if isinstance(node.value, ast.Call) else []
            values = [each.value for each in given if each.arg == "help"]
            said = next((value.value for value in values if isinstance(value, ast.Constant)), None)
    return inspect.cleandoc(str(said or "")).partition("\n\n")[0].replace("\n", " ")


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown distribution"


def _owners(name: str) -> str:
    return " and ".join(_owner(point) for point in announced()[name])


def _again(point: EntryPoint) -> str:
    pip = f"{extras.python()} -m pip"
    return f"Install {_owner(point)} again, with what it needs, or remove it with `{pip} uninstall {_owner(point)}`."


def _broken(name: str, why: str, remedy: str) -> MissingExtra:
    return MissingExtra(f"The command {name!r} is broken: {why}", "All other commands work.", remedy, about="command")
