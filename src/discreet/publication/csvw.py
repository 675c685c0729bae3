"""Metadata of published CSV files as W3C tabular metadata (CSV on the Web, 2015).

One group of tables: the published ones, with titles, data types, primary keys and foreign keys into code lists, which
are tables too. Notes for readers are included: guarantee, level of the intervals, meaning of the quality flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.publication.codes import CodeList
from discreet.publication.imprint import Imprint
from discreet.release.folder import PublishedTable, ReleaseFolder

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = "csv-metadata.json"
CONTEXT = ["http://www.w3.org/ns/csvw", {"@language": "en"}]


def csvw(
    releases: Sequence[ReleaseFolder],
    tables: Mapping[str, tuple[PublishedTable, pa.Table]],
    lists: Mapping[str, tuple[CodeList, pa.Table]],
    imprint: Imprint,
) -> dict[str, Any]:
    """The metadata of CSV files, by their names: published tables and code lists."""
    by_name = {release.name: release for release in releases}
    title = imprint.title or ", ".join(by_name)
    files = {codes.attribute: url for url, (codes, _) in lists.items()}
    return {
        "@context": CONTEXT,
        "dc:title": title,
        **_said(imprint),
        "tables": [
            *(_table(url, by_name[of.release], of, table, files) for url, (of, table) in tables.items()),
            *(_list(url, codes, table, files) for url, (codes, table) in lists.items()),
        ],
    }


def _said(imprint: Imprint) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if imprint.publisher:
        said["dc:publisher"] = imprint.publisher
    if imprint.licence:
        said["dc:license"] = {"@id": imprint.licence}
    if imprint.contact:
        said["dcat:contactPoint"] = {"@id": imprint.contact_address}
    if imprint.period:
        said["dc:temporal"] = imprint.period
    return said


def _table(
    url: str, release: ReleaseFolder, of: PublishedTable, table: pa.Table, lists: Mapping[str, str]
) -> dict[str, Any]:
    level = "" if release.level is None else f" ({float(release.level):.4g} probability)"
    columns = []
    for field in table.schema:
        meaning = of.columns[field.name]
        ends = level if field.name in ("lower", "upper") else ""
        columns.append(
            {
                "name": field.name,
                "titles": field.name.replace("_", " "),
                "datatype": datatype(field.type),
                "dc:description": (f"{meaning}{ends}" if meaning else field.name),
                "required": field.name in of.attributes,
            }
        )
    notes = [
        {"kind": "guarantee", "text": release.promise},
        {"kind": "definition", "text": release.definition},
        {"kind": "form", "text": of.form},
    ]
    if release.level is not None:
        notes.append({"kind": "interval level", "text": str(float(release.level))})
    notes += [{"kind": "rule", "text": rule} for rule in release.rules(of.form)]
    if "quality" in of.columns:
        notes.append({"kind": "quality", "text": of.columns["quality"]})
    schema: dict[str, Any] = {"columns": columns}
    if of.attributes and not any(table[name].null_count for name in of.attributes):
        schema["primaryKey"] = list(of.attributes)
        schema["foreignKeys"] = [
            {"columnReference": name, "reference": {"resource": lists[name], "columnReference": name}}
            for name in of.attributes
        ]
    else:
        for column in columns:
            column["required"] = False
    return {
        "url": url,
        "dc:title": f"{of.name}: {' by '.join(filter(None, (', '.join(of.numbers), ', '.join(of.attributes))))}",
        "dc:provenance": release.promise,
        "notes": notes,
        "tableSchema": schema,
    }


def _list(url: str, codes: CodeList, table: pa.Table, lists: Mapping[str, str]) -> dict[str, Any]:
    return {
        "url": url,
        "dc:title": f"Codes of {codes.attribute}",
        "tableSchema": {
            "columns": [
                {
                    "name": field.name,
                    "titles": field.name.replace("_", " "),
                    "datatype": datatype(field.type),
                    "required": field.name == codes.attribute,
                }
                for field in table.schema
            ],
            "primaryKey": [codes.attribute],
            "foreignKeys": [
                {"columnReference": level, "reference": {"resource": lists[level], "columnReference": level}}
                for level in codes.parents
            ],
        },
    }


def datatype(kind: pa.DataType) -> str:
    """An Arrow type as CSVW calls it."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    return "double" if pa.types.is_floating(kind) else "string"
