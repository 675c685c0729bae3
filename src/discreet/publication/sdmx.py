"""Published tables as SDMX: data as SDMX-CSV 2.0, and their structure as SDMX-ML 3.0.

The structure has a code list for every attribute, a concept scheme, and for each table a data structure definition and
a dataflow. Categories are seldom identifiers, so a code has an identifier and the category is its name. A published
number is OBS_VALUE; a table with several has a measure for each. Every observation has its status, confidentiality,
unit, quality flag, the ends and the level of its interval, and the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from discreet.publication.codes import CodeList, component, identifiers
from discreet.publication.csvw import datatype
from discreet.publication.imprint import Imprint
from discreet.release.folder import BESIDE, PublishedTable, ReleaseFolder
from discreet.tables.quality import NOISE, NONE, QUALITY, SUPPRESSED

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "1.0.0"
STRUCTURE = "structure.xml"
CONCEPTS = "CS_DISCREET"
TEXT_TYPES = {"integer": "Long", "double": "Double", "boolean": "Boolean", "string": "String"}
STATUS = {"A": "Normal value", "U": "Low reliability", "Q": "Missing value; suppressed"}
CONFIDENTIALITY = {"F": "Free: may be published"}
FLAGS = {
    **{flag: f"The interval reaches at most {100 * share:.0f} % of the number" for flag, share in QUALITY.items()},
    NOISE: "The interval reaches further than the number itself",
    NONE: "There is no interval",
    SUPPRESSED: "A rule of the agency leaves the number out",
}
UNRELIABLE = ("poor", NOISE)
TOTAL = CodeList("total", ("all",), ("_T",), {})
"""The one dimension of a table that no attribute spans."""

NAMES = {
    "OBS_VALUE": "Published number, with noise",
    "OBS_STATUS": "Observation status",
    "CONF_STATUS": "Confidentiality status",
    "UNIT_MEASURE": "Unit of measure",
    "QUALITY": "How much of the number is noise",
    "INT_LOWER": "Lower end of the interval",
    "INT_UPPER": "Upper end of the interval",
    "INT_LEVEL": "Probability with which intervals hold the true number",
    "GUARANTEE": "Privacy guarantee",
    "CONTACT": "Whom to ask",
    "TIME_PERIOD": "Period of reference",
}
ENDS = {"lower": "INT_LOWER", "upper": "INT_UPPER", "quality": "QUALITY"}


@dataclass(frozen=True, slots=True)
class Part:
    """A component of a data structure: a dimension, a measure or an attribute."""

    name: str
    role: str
    concept: str
    codes: str = ""
    type: str = "String"


def sdmx_csv(
    release: ReleaseFolder,
    of: PublishedTable,
    table: pa.Table,
    lists: Mapping[str, CodeList],
    imprint: Imprint,
) -> pa.Table:
    """A table in the columns of SDMX-CSV 2.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = len(table)
    columns: dict[str, Any] = {
        "STRUCTURE": _same("dataflow", rows),
        "STRUCTURE_ID": _same(f"{imprint.agency}:{flow(of)}({VERSION})", rows),
        "ACTION": _same("R", rows),
    }
    for part, name in zip(_dimensions(of), of.attributes or ("total",), strict=True):
        known = lists[name]
        if name == TOTAL.attribute and not of.attributes:
            columns[part.name] = _same("_T", rows)
            continue
        place = pc.index_in(
            table[name].combine_chunks(), value_set=pa.array(known.values, table.schema.field(name).type)
        )
        columns[part.name] = pa.array(known.identifiers, pa.string()).take(place)
    if imprint.period:
        columns["TIME_PERIOD"] = _same(imprint.period, rows)
    for part, name in zip(_measures(of, table), of.values, strict=True):
        columns[part.name] = table[name]
    flags = table["quality"].to_pylist() if "quality" in of.columns else []
    status = ["Q" if flag == SUPPRESSED else "U" if flag in UNRELIABLE else "A" for flag in flags] or ["A"] * rows
    columns |= {"OBS_STATUS": pa.array(status), "CONF_STATUS": _same("F", rows)}
    columns["UNIT_MEASURE"] = _same(unit(of)[0], rows)
    quality = dict(zip(FLAGS, identifiers(FLAGS), strict=True))
    for name, called in _beside(of).items():
        coded = name == "quality"
        columns[called] = pa.array([quality[flag] for flag in flags], pa.string()) if coded else table[name]
    if release.level is not None:
        columns["INT_LEVEL"] = _same(str(float(release.level)), rows)
    columns["GUARANTEE"] = _same(release.definition, rows)
    if imprint.contact:
        columns["CONTACT"] = _same(imprint.contact, rows)
    return pa.table(columns)


def _same(text: str, rows: int) -> Any:
    import pyarrow as pa

    return pa.repeat(text, rows)


def structure(
    releases: Sequence[ReleaseFolder],
    tables: Sequence[tuple[PublishedTable, pa.Table]],
    lists: Mapping[str, CodeList],
    imprint: Imprint,
    *,
    now: datetime | None = None,
) -> str:
    """Code lists, concepts, data structures and dataflows of the tables, as one message."""
    by_name = {release.name: release for release in releases}
    parts = {of.name: list(_parts(by_name[of.release], of, table, imprint)) for of, table in tables}
    every = {part.concept: part for known in parts.values() for part in known}
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            _open(),
            "<mes:Header><mes:ID>DISCREET</mes:ID><mes:Test>false</mes:Test>"
            f"<mes:Prepared>{(now or datetime.now(UTC)).strftime('%Y-%m-%dT%H:%M:%SZ')}</mes:Prepared>"
            f"<mes:Sender id={quoteattr(imprint.agency)}/></mes:Header>",
            "<mes:Structures>",
            "<str:Dataflows>",
            *(_flow(of, by_name[of.release], imprint) for of, _ in tables),
            "</str:Dataflows>",
            "<str:Codelists>",
            *_code_lists(lists, tables, imprint),
            "</str:Codelists>",
            "<str:ConceptSchemes>",
            f'<str:ConceptScheme id={quoteattr(CONCEPTS)} {_of(imprint)} isPartial="false">{_name("Concepts")}',
            *(
                f"<str:Concept id={quoteattr(concept)}>{_name(_called(part))}</str:Concept>"
                for concept, part in every.items()
            ),
            "</str:ConceptScheme>",
            "</str:ConceptSchemes>",
            "<str:DataStructures>",
            *(_data_structure(of, parts[of.name], imprint) for of, _ in tables),
            "</str:DataStructures>",
            "</mes:Structures>",
            "</mes:Structure>",
            "",
        )
    )


def flow(of: PublishedTable) -> str:
    """The identifier of a table's dataflow."""
    return f"DF_{component(of.name)}"


def with_total(lists: Iterable[CodeList], tables: Iterable[PublishedTable]) -> dict[str, CodeList]:
    """Code lists by attribute; also that of the total, where a table has no attribute."""
    found = {codes.attribute: codes for codes in lists}
    if any(not of.attributes for of in tables):
        found.setdefault(TOTAL.attribute, TOTAL)
    return found


def unit(of: PublishedTable) -> tuple[str, str]:
    """The unit of measure: its code, and in words."""
    if "count" in of.columns:
        return "JOBS", "Jobs"
    if "sum" in of.columns:
        what = of.columns["sum"].partition(",")[0] or "amount"
        return component(what), what
    return "NUMBER", "As the formula's response"


def _parts(release: ReleaseFolder, of: PublishedTable, table: pa.Table, imprint: Imprint) -> Iterator[Part]:
    yield from _dimensions(of)
    if imprint.period:
        yield Part("TIME_PERIOD", "time", "TIME_PERIOD", type="ObservationalTimePeriod")
    yield from _measures(of, table)
    yield Part("OBS_STATUS", "attribute", "OBS_STATUS", "CL_OBS_STATUS")
    yield Part("CONF_STATUS", "attribute", "CONF_STATUS", "CL_CONF_STATUS")
    yield Part("UNIT_MEASURE", "attribute", "UNIT_MEASURE", "CL_UNIT_MEASURE")
    for name, called in _beside(of).items():
        if name == "quality":
            yield Part(called, "attribute", called, "CL_QUALITY")
        else:
            yield Part(called, "attribute", called, type=TEXT_TYPES[datatype(table.schema.field(name).type)])
    if release.level is not None:
        yield Part("INT_LEVEL", "attribute", "INT_LEVEL", type="Double")
    yield Part("GUARANTEE", "attribute", "GUARANTEE")
    if imprint.contact:
        yield Part("CONTACT", "attribute", "CONTACT")


def _dimensions(of: PublishedTable) -> list[Part]:
    names = of.attributes or (TOTAL.attribute,)
    return [Part(component(name), "dimension", component(name), f"CL_{component(name)}") for name in names]


def _measures(of: PublishedTable, table: pa.Table) -> list[Part]:
    types = [TEXT_TYPES[datatype(table.schema.field(name).type)] for name in of.values]
    names = ["OBS_VALUE"] if len(of.values) == 1 else [component(name) for name in of.values]
    return [Part(name, "measure", name, type=kind) for name, kind in zip(names, types, strict=True)]


def _beside(of: PublishedTable) -> dict[str, str]:
    """Facts beside the numbers, by their names in SDMX."""
    return {name: ENDS.get(name, component(name)) for name in of.columns if name in BESIDE}


def _called(part: Part) -> str:
    return NAMES.get(part.concept, part.concept.replace("_", " ").capitalize())


def _code_lists(
    lists: Mapping[str, CodeList], tables: Sequence[tuple[PublishedTable, pa.Table]], imprint: Imprint
) -> Iterator[str]:
    for codes in lists.values():
        pairs = zip(codes.identifiers, map(str, codes.values), strict=True)
        yield _code_list(f"CL_{component(codes.attribute)}", f"Codes of {codes.attribute}", pairs, imprint)
    flags = [(identifiers([flag])[0], f"{flag}: {meaning}") for flag, meaning in FLAGS.items()]
    units = dict(unit(of) for of, _ in tables)
    yield _code_list("CL_OBS_STATUS", "Observation status", STATUS.items(), imprint)
    yield _code_list("CL_CONF_STATUS", "Confidentiality status", CONFIDENTIALITY.items(), imprint)
    yield _code_list("CL_UNIT_MEASURE", "Units of measure", units.items(), imprint)
    yield _code_list("CL_QUALITY", "Quality flags", flags, imprint)


def _code_list(name: str, title: str, codes: Iterable[tuple[str, str]], imprint: Imprint) -> str:
    rows = "\n".join(f"<str:Code id={quoteattr(code)}>{_name(words)}</str:Code>" for code, words in codes)
    return (
        f'<str:Codelist id={quoteattr(name)} {_of(imprint)} isPartial="false">{_name(title)}\n{rows}\n</str:Codelist>'
    )


def _flow(of: PublishedTable, release: ReleaseFolder, imprint: Imprint) -> str:
    refers = f"urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure={imprint.agency}:{_structure(of)}({VERSION})"
    told = " ".join([release.promise, *release.rules(of.form)])
    title = f"{imprint.title or of.release}: {', '.join(of.numbers)} by {', '.join(of.attributes) or 'nothing'}"
    return (
        f"<str:Dataflow id={quoteattr(flow(of))} {_of(imprint)}>{_name(title)}{_text('Description', told)}"
        f"<str:Structure>{escape(refers)}</str:Structure></str:Dataflow>"
    )


def _structure(of: PublishedTable) -> str:
    return f"DSD_{component(of.name)}"


def _data_structure(of: PublishedTable, parts: Sequence[Part], imprint: Imprint) -> str:
    def concept(part: Part) -> str:
        urn = f"urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept={imprint.agency}:{CONCEPTS}({VERSION}).{part.concept}"
        return f"<str:ConceptIdentity>{escape(urn)}</str:ConceptIdentity>"

    def representation(part: Part) -> str:
        urn = f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist={imprint.agency}:{part.codes}({VERSION})"
        inside = (
            f"<str:Enumeration>{escape(urn)}</str:Enumeration>"
            if part.codes
            else f'<str:TextFormat textType="{part.type}"/>'
        )
        return f"<str:LocalRepresentation>{inside}</str:LocalRepresentation>"

    chosen = {
        role: [part for part in parts if part.role == role] for role in ("dimension", "time", "measure", "attribute")
    }
    dimensions = [
        f'<str:Dimension id={quoteattr(part.name)} position="{i}">{concept(part)}{representation(part)}</str:Dimension>'
        for i, part in enumerate(chosen["dimension"], start=1)
    ]
    dimensions += [
        f'<str:TimeDimension id="TIME_PERIOD">{concept(part)}{representation(part)}</str:TimeDimension>'
        for part in chosen["time"]
    ]
    attributes = [
        f'<str:Attribute id={quoteattr(part.name)} usage="optional">{concept(part)}{representation(part)}'
        "<str:AttributeRelationship><str:Observation/></str:AttributeRelationship></str:Attribute>"
        for part in chosen["attribute"]
    ]
    measures = [
        f'<str:Measure id={quoteattr(part.name)} usage="optional">{concept(part)}{representation(part)}</str:Measure>'
        for part in chosen["measure"]
    ]
    return "\n".join(
        (
            f"<str:DataStructure id={quoteattr(_structure(of))} {_of(imprint)}>{_name(f'Structure of {of.name}')}",
            '<str:DataStructureComponents><str:DimensionList id="DimensionDescriptor">',
            *dimensions,
            '</str:DimensionList><str:AttributeList id="AttributeDescriptor">',
            *attributes,
            '</str:AttributeList><str:MeasureList id="MeasureDescriptor">',
            *measures,
            "</str:MeasureList></str:DataStructureComponents></str:DataStructure>",
        )
    )


def _open() -> str:
    base = "http://www.sdmx.org/resources/sdmxml/schemas/v3_0"
    spaces = " ".join(
        f'xmlns:{short}="{base}/{name}"'
        for short, name in (("mes", "message"), ("str", "structure"), ("com", "common"))
    )
    return f"<mes:Structure {spaces}>"


def _of(imprint: Imprint) -> str:
    return f'version="{VERSION}" agencyID={quoteattr(imprint.agency)} isExternalReference="false"'


def _name(text: str) -> str:
    return _text("Name", text)


def _text(tag: str, text: str) -> str:
    """Words without the characters that XML cannot hold."""
    plain = "".join(
        c
        for c in text
        if c in "\t\n" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF and ord(c) not in (0xFFFE, 0xFFFF))
    )
    return f'<com:{tag} xml:lang="en">{escape(plain) or "-"}</com:{tag}>'
