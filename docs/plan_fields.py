"""The keys of a plan, from its schema, with an example of each: a part of docs/reference/plan.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.plan.shape import json_schema

PAGE = Path(__file__).parent / "reference" / "plan.md"
START, END = "<!-- fields: written by make pages -->", "<!-- end of fields -->"
AMOUNT = "amount"

EXAMPLES = {
    "Plan": """
title = "Jobs by place and sector"
""",
    "Data": """
[data]
source = "jobs"                          # a folder or a file, relative to the plan, or postgresql://user@host/database::table
workplaces = "register.csv"              # only where the public list of establishments is a file apart
workers = "people.csv"                   # only where the workers' attributes are a file apart
schema = "columns.toml"                  # or the table [data.schema], below
public = ["county", "industry"]          # for models and posterior summaries
numbers = ["age"]                        # protected numbers of a CSV file, which has no types
allow_multiple = 3                       # a worker may have jobs at three establishments
period = "2026-Q1"                       # what the data are about; needed where the budget has amounts for periods
quarters = ["2024Q1", "2024Q2", "2024Q3"]  # only where the source has job histories
time = "quarter"

[data.labels.sector]                     # what published tables show in place of the codes
11 = "Farming"
23 = "Construction"
""",
    "Columns": """
[data.schema]
establishment = "firm"
worker = "person"
size = "jobs"                            # only where each row is a number of jobs, already counted
workplace_attributes = ["place", "sector"]
unused = ["remarks"]                     # or ["*"]: every other column; none says of which period a row is

[data.schema.worker_attributes]
sex = ["female", "male"]

[data.schema.magnitudes]
payroll = { cap = 250000 }               # no worker earns more in the period
""",
    "MagnitudeSection": """
[data.schema.magnitudes.payroll]
cap = 250000
beyond = "clip"                          # rows above the cap of their jobs are cut to it
""",
    "LevelsSection": """
[hierarchy]
place = ["county", "state"]              # both are columns

[hierarchy.industry]                     # or looked up: levels and lookup = "naics.csv"
levels = ["naics6", "naics4", "naics2"]
prefix = [6, 4, 2]
""",
    "EstablishmentsUnit": """
[unit]
kind = "establishments"
alpha = 0.1
strength = "strong"
substitution = true
""",
    "WorkersUnit": """
[unit]
kind = "workers"
""",
    "NodesUnit": """
[unit]
kind = "establishment-nodes"
theta = 1000
""",
    "RowsUnit": """
[unit]
kind = "rows"
lower = 0
upper = 2
response = "jcr"
""",
    "GroupsUnit": """
[unit]
kind = "groups"                          # all rows of one county change together
by = ["county"]
lower = 0
upper = 2
response = "jcr"
""",
    "BudgetSection": """
[budget]
epsilon = 4
delta = 1e-6                             # only for mechanisms that need one
per_quarter = 1                          # or per_year, or per_month: what releases about one quarter may cost
ledger = "ledger.db"
dataset = "jobs 2026"
""",
    "SourceSection": """
[source.jobs.data]                       # each table of the source below its name; no table is at the top then
source = "jobs.parquet"

[source.jobs.hierarchy]
place = ["county", "state"]

[source.jobs.unit]
kind = "establishments"
alpha = 0.1

[source.jobs.budget]
epsilon = 4
ledger = "ledger.db"
dataset = "jobs 2026"

[source.jobs.public]
sizes = "sectors.csv"
""",
    "Public": """
[public]
sizes = "sectors.csv"
previous = "../2025/release/jobs"
""",
    "Count": """
[[release]]
name = "jobs-2026"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Jobs by place, sector and sex"
kind = "count"
by = ["place", "sector", "sex"]
where = { ownership = ["private"] }
epsilon = 1
delta = 1e-9                             # smooth-laplace only
mechanism = "joint-polynomial"
calibration = "tight"
level = 0.9                              # of intervals
scale_share = 0.1
shrink = ["sector"]                      # towards the shape of each sector
non_negative = true
round_to = 5
suppress = { below = 10 }                # a rule for readers of the basic form; privacy does not rest on it
compare = { file = "qcew-2025.csv" }     # a public table of the agency, beside which it is shown
stratum = "sector"
establishments = true                    # their number is public
""",
    "Counts": """
[[release]]
name = "margins"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Jobs by sector, and by sector and sex"
kind = "counts"
tables = [["sector", "sex"], ["sector"]]
split = ["2/3", "1/3"]
add_up = true
measure = "finest"                       # the others are sums of it; leave out to draw all
where = { ownership = ["private"] }
epsilon = 3
delta = 1e-9                             # smooth-laplace only
calibration = "tight"
level = 0.95
scale_share = 0
non_negative = true
round_to = 1
suppress = { quality = ["mostly noise"] }
compare = { file = "agency.csv" }
stratum = "sector"
establishments = true
""",
    "Sum": """
[[release]]
name = "payroll-2026"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Payroll by place and sector"
kind = "sum"
of = "payroll"
by = ["place", "sector"]
establishments = true
where = { ownership = ["private"] }
epsilon = 1
delta = 1e-9                             # as in a count
mechanism = "polynomial"
calibration = "tight"
level = 0.9
scale_share = 0.1
shrink = ["sector"]
non_negative = true
round_to = 1000
suppress = { below = 5000 }
compare = { file = "agency.csv" }
stratum = "sector"
""",
    "Sums": """
[[release]]
name = "payroll-margins"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Payroll by sector, and by sector and place"
kind = "sums"
of = "payroll"
tables = [["place", "sector"], ["sector"]]
establishments = true
split = ["2/3", "1/3"]
add_up = true
measure = "finest"
where = { ownership = ["private"] }
epsilon = 3
delta = 1e-9
calibration = "tight"
level = 0.95
scale_share = 0
non_negative = true
round_to = 1
suppress = { below = 5000 }
compare = { file = "agency.csv" }
stratum = "sector"
""",
    "Flows": """
[[release]]
name = "flows-2024q2"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Job flows by county and industry"
kind = "flows"
quarter = "2024Q2"
by = ["county", "industry"]
epsilon = 1
level = 0.95
scale_share = 0.2
round_to = 1
suppress = { quality = ["mostly noise"] }
compare = { file = "agency.csv" }
""",
    "Compare": """
[compare]                                # in a release: [release.compare] after its other keys, or compare = { ... }
file = "qcew-2025.csv"
title = "QCEW 2025"
columns = { county = "area_fips", count = "month3_emplvl" }
where = { own_code = ["5"], agglvl_code = ["70"] }
flag = "disclosure_code"
suppressed = ["N"]                       # by the flag, or in place of the number
factors = [0.05, 0.15]                   # only where noise was infused, and this much is known of it
""",
    "AlarmsSection": """
[[alarms]]                               # of published numbers: it costs nothing
name = "winter-to-spring"
title = "Jobs that changed by more than noise"
early = "jobs-2026q1"                    # in this plan, or in the folder
folder = "../2026q1/out"                 # only where another plan released it
late = "jobs-2026q2"
by = ["place", "sector"]                 # only where a release has several tables
value = "count"
rate = 0.1                               # or fdr = 0.1: the share of false ones among all alarms
least = 0
direction = "either"
""",
    "Suppress": """
suppress = { below = 10, quality = ["mostly noise"] }
""",
    "Changes": """
[[release]]
name = "year-on-year"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Jobs by county, and what changed in a year"
kind = "changes"
quarters = ["2024Q1", "2025Q1"]
by = ["county"]
epsilon = 2
level = 0.95
scale_share = 0.1
round_to = 1
suppress = { below = 10 }
compare = { file = "agency.csv" }
""",
    "PosteriorSection": """
[[release]]
name = "slope"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Is the slope below 2?"
kind = "posterior"
formula = "y ~ x"
summary = "probability"
coefficient = ["x"]
at = [1.99, 2, 2.01]
scale = 1
partitions = 200
epsilon = 1
""",
    "ModelSection": """
[[release]]
name = "counties"
source = "jobs"                          # only where the plan has several
replaces = "jobs-before"                 # only where it is a revision of an earlier release
title = "Job creation by county"
kind = "model"
formula = "jcr ~ 0 + industry + lag(jcr, 1) + (1 | county)"
series = ["county", "industry"]          # only where the formula has lag(...): what names a series
time = "quarter"
clip = [0, 0.5]
lagged = ["jcr_last_year"]
family = "poisson"                       # or "binomial", without lags; left out, gaussian
exposure = "employment"                  # of counts: what they are proportional to
epsilon = 1
""",
    "Output": """
[output]
folder = "release"
formats = ["csv", "parquet"]
forms = ["basic", "research"]
bundle = true
""",
    "EngineSection": """
[engine]                                 # without it, DuckDB: docs/how-to/clusters.md
kind = "spark"
master = "spark://cluster:7077"
memory = "2g"
wait = 180
properties = "../spark.properties"
settings = { "spark.executor.memory" = "4g" }
""",
}


def fields() -> str:
    """Every table of a plan: what it is, its keys, an example."""
    schema = json_schema()
    tables = {"Plan": schema, **schema["$defs"]}
    return "\n\n".join(part for name in EXAMPLES for part in section(name, tables[name]))


def section(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    head, _, words = str(table["description"]).partition(": ")
    yield f"## `{head}`\n\n{words[:1].upper()}{words[1:]}" if words else "## The top of the file\n\nBefore all tables."
    lines = ["| key | value | if left out | meaning |", "|---|---|---|---|"]
    required = table.get("required", ())
    for key, field in table["properties"].items():
        if "$ref" in field or key in ("unit", "release"):
            continue  # a table of its own
        out = "must be there" if key in required else f"`{toml(field['default'])}`" if "default" in field else "none"
        lines.append(f"| `{key}` | {kind(field)} | {out} | {meaning(field)} |".replace("`null`", "none"))
    yield "\n".join(lines)
    yield f"```toml\n{EXAMPLES[name].strip()}\n```"


def meaning(field: Mapping[str, Any]) -> str:
    """What the schema says of a key; a constant says what it selects."""
    return str(field.get("description", "Which kind of table this is." if "const" in field else "")).replace("|", "\\|")


def kind(field: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "const" in field:
        return f"`{toml(field['const'])}`"
    if "enum" in field:
        return "one of " + ", ".join(f"`{toml(value)}`" for value in field["enum"])
    if "$ref" in field:
        return f"the table `{field['$ref'].rpartition('/')[2]}`".replace("`Columns`", "`[data.schema]`")
    choices = [part for part in (*field.get("anyOf", ()), *field.get("oneOf", ())) if part.get("type") != "null"]
    if [part.get("type") for part in choices] == ["number", "string"]:
        return AMOUNT
    if choices:
        return " or ".join(dict.fromkeys(map(kind, choices)))
    if isinstance(field.get("type"), list):
        return " or ".join(WORDS[one] for one in field["type"])
    if field.get("type") == "array":
        inner = field.get("items") or {}
        return "list of " + " and ".join(map(kind, field["prefixItems"])) if "prefixItems" in field else several(inner)
    if field.get("type") == "integer" and "minimum" in field:
        most = f" to {field['maximum']:,}" if "maximum" in field else " or more"
        return f"whole number, {field['minimum']}{most}"
    return WORDS[field["type"]]


def several(inner: Mapping[str, Any]) -> str:
    return f"list, each {kind(inner)}" if inner else "list"


WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "object": "table",
}


def toml(value: Any) -> str:
    """A value as a plan writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return "null" if value is None else str(value)


def write() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(START)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{fields()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
