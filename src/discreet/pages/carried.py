"""What a page carries for programs: a value in its head, written and read here. Nobody reads the page's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser

NAME = "discreet-published"


def tag(published: Mapping[str, str]) -> str:
    """The line of the head that lists published files with their hashes; empty if there are none."""
    return (
        f'<meta name="{NAME}" content="{escape(json.dumps(dict(published), sort_keys=True))}">\n' if published else ""
    )


def published_files(page: str) -> dict[str, str] | None:
    """The published files that a page carries, with their hashes; None for a page that carries no list."""
    reader = _Head()
    reader.feed(page)
    try:
        found = json.loads(reader.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class _Head(HTMLParser):
    content = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "meta" and given.get("name") == NAME:
            self.content = given.get("content") or ""
