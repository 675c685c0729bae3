"""Sphinx settings. `make docs` builds into out/docs; warnings are errors."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parent))

import public

import discreet
from discreet.cli.app import app as command_line

project = "discreet"
author = "the discreet developers"
release = version = discreet.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "typeset", "accessible"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
html_static_path = ["static"]
html_css_files = ["discreet.css"]
html_show_sourcelink = False
html_copy_source = False
html_use_index = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
nitpicky = False
suppress_warnings = [
    "myst.xref_missing",  # links to files outside docs/: tests/docs holds them to the tree
    "ref.python",  # one name in two modules
]


class Commands(SphinxDirective):
    """Every command with its help, its arguments and its options, from the program itself."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(described("discreet", typer.main.get_command(command_line)))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def described(name: str, command: Any) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children:
        yield f"## `{name}`\n\n{inspect.cleandoc(command.help or '')}\n"
        for parameter in command.params:
            words = ", ".join(parameter.opts) if parameter.opts[0].startswith("-") else parameter.name.upper()
            yield f"- `{words}`: {parameter.help}"
        yield ""
    for word, child in children.items():
        yield from described(f"{name} {word}", child)


class Names(SphinxDirective):
    """The names of one group of `public.groups`, each with its docstring."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kinds = {True: "autoclass", False: "autofunction"}
        lines = []
        for name in public.groups()[self.arguments[0]]:
            is_class = inspect.isclass(public.value(name))
            lines += ["```{eval-rst}", f".. {kinds[is_class]}:: {name}", "   :members:" * is_class, "```", ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> None:
    app.add_directive("commands", Commands)
    app.add_directive("names", Names)
