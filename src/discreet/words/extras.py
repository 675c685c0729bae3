"""Optional parts: what each is for, and the command that installs it here."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from discreet.words.errors import MissingExtra

Extra: TypeAlias = Literal[
    "plan", "charts", "cli", "web", "postgres", "mysql", "excel", "spark", "forecast", "rda", "arviz"
]

PURPOSE: dict[Extra, str] = {
    "plan": "reads plans and reports on them",
    "charts": "draws charts",
    "cli": "is the command `discreet`",
    "web": "is the release desk",
    "postgres": "keeps ledgers in PostgreSQL and reads tables from it",
    "mysql": "reads tables from MariaDB and MySQL",
    "excel": "writes Excel files",
    "spark": "reads data with Spark",
    "forecast": "forecasts panels",
    "rda": "reads files of R",
    "arviz": "hands draws to arviz",
}


@contextmanager
def needs(extra: Extra, asked: str) -> Iterator[None]:
    """Wraps the import of another package. If it is missing, the error says what needs it and how to install it."""
    try:
        yield
    except ImportError as error:
        package = (error.name or extra).partition(".")[0]
        if package == "discreet":
            raise  # not an extra: the installation itself is broken
        raise MissingExtra(
            f"{asked} needs {package!r}, which is not installed.",
            f"The extra `{extra}` {PURPOSE[extra]} and brings it.",
            f"Install it with `{command(extra)}`.",
        ) from None


def command(extra: Extra) -> str:
    """The command that installs an extra: into the environment of a checkout, or else as a package."""
    root = checkout()
    return f"pip install 'discreet[{extra}]'" if root is None else _editable(root, f"[{extra}]")


def papers() -> str:
    """The command that installs the papers' experiments beside this package, from the repository of both."""
    root = checkout()
    return "pip install ./papers" if root is None else _editable(root, "/papers")


def _editable(root: Path, what: str) -> str:
    place = shown(root)
    constraints = shlex.quote(str(Path(place) / "constraints.txt"))
    return f"{python()} -m pip install --constraint {constraints} --editable {shlex.quote(f'{place}{what}')}"


def checkout() -> Path | None:
    """The root of the checkout that this package is imported from, if it is."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "pyproject.toml").is_file() and (root / "constraints.txt").is_file() else None


def python() -> str:
    """The running interpreter, as a shell can start it from here."""
    return shlex.quote(shown(Path(sys.executable)))


def shown(path: Path) -> str:
    """A path as short as it stays right here: below this folder relative to it, elsewhere from the root."""
    here = Path(os.path.abspath(path))  # noqa: PTH100 - an environment's python is a link that must not be followed
    return str(here.relative_to(Path.cwd())) if here.is_relative_to(Path.cwd()) else str(here)
