"""A picture as a value: a Vega-Lite specification that notebooks draw, `pages.svg` draws and altair takes further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Layer: TypeAlias = dict[str, Any]
MEDIA_TYPE = "application/vnd.vegalite.v5+json"


@dataclass(frozen=True, slots=True, repr=False)
class Chart:
    """One chart; `altair.Chart.from_dict(chart.to_dict())` makes an altair chart of it."""

    specification: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The Vega-Lite specification with its data."""
        return self.specification

    def __repr__(self) -> str:
        return f"<chart of {sum(map(len, _rows(self.specification))):,} rows; a notebook draws it>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {MEDIA_TYPE: self.specification, "text/plain": repr(self)}


def mark(kind: str, channels: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None, **look: Any) -> Layer:
    """A layer: a kind of mark, what its channels show and, where they are its own, the rows."""
    data = {} if rows is None else {"data": {"values": list(rows)}}
    return {**data, "mark": {"type": kind, **look}, "encoding": dict(channels)}


def number(field: str, title: str | None = "", **more: Any) -> dict[str, Any]:
    """A channel that shows a quantity; without a title the field's name is it."""
    return {"field": field, "type": "quantitative", **({} if title == "" else {"title": title}), **more}


def name(field: str, title: str | None = "", **more: Any) -> dict[str, Any]:
    """A channel that tells names apart."""
    return {**number(field, title, **more), "type": "nominal"}


def _rows(part: object) -> list[list[Any]]:
    if isinstance(part, list):
        return [rows for each in part for rows in _rows(each)]
    if not isinstance(part, dict):
        return []
    own = part.get("data", {}).get("values") if isinstance(part.get("data"), dict) else None
    return ([own] if own else []) + [rows for key, each in part.items() if key != "data" for rows in _rows(each)]
