"""How faults of a plan are worded: values as TOML writes them, advice in keys of the plan.

Functions that a plan calls have messages for whoever calls them from Python. Here, at the plan's border and nowhere
else, such advice becomes advice to whoever writes the plan.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal

from discreet.privacy.losses import brief

_LITERAL = r"(?:'[^']*'|\"[^\"]*\"|-?[0-9]+|True|False)"
_TUPLE = re.compile(rf"\({_LITERAL}(?:,|(?:, {_LITERAL})+)\)")

ADVICE = {
    r"\b([Tt])his session( promises|'s unit)": r"\1his plan\2",
    r"open a session with unit=Workers\(\) or EstablishmentNodes\(theta\)": (
        "use [unit] kind = 'workers', or kind = 'establishment-nodes' with theta"
    ),
    r"Open a session with unit=Establishments\(alpha=0\.1\)": "Use [unit] kind = 'establishments' with alpha = 0.1",
    r"open a session with unit=Establishments\(alpha=0\.1\)": "use [unit] kind = 'establishments' with alpha = 0.1",
    r"where\['([^']*)'\]": r"where.\1",
    r"use Establishments\(alpha, 'weak'\)": "use strength = 'weak' under [unit]",
    r"Rows\(lower=(.+), upper=(.+)\) has no width": r"lower = \1 with upper = \2 has no width",
    r"Or pass allow_multiple=True,": "Or write allow_multiple = true under [data],",
    r"for instance with `data\.dropna\(\)`": "at the source",
    r"^public(: |=)": "",
    r"Declare it with public=(\[.*?\]) if": r"Write public = \1 under [data] if",
    r"[Oo]pen the account with unit=Rows\(lower, upper, response=('.*?')\), or a list of all responses": (
        r"Write response = \1 under [unit], or a list of all responses"
    ),
    r"inside the bounds as clip=\(lower, upper\)": "inside the bounds as clip = [lower, upper]",
    r", use more rows or parts, or centre='zero', whose noise is larger when the quantile is far from zero": (
        ", or use more rows or parts"
    ),
    r"^unit=(\S+) is not a size": r"scale = \1 is not a size",
    r"Give delta=1e-6": "Write delta = 1e-6",
    r"with delta=None": "without delta",
    r", '1/3' or Fraction\(1, 3\)": " or '1/3'",
    r"Use for example (\w+)=(\S+?)\.$": r"Use for example \1 = \2.",
    r"`(mechanism|calibration|where)`": r"\1",
}
"""Words of messages for Python, and what a plan says instead."""


def written(value: object) -> str:
    """A value as TOML writes it, or its beginning where it is long."""
    if isinstance(value, Mapping):
        text = f"{{ {', '.join(f'{key} = {written(item)}' for key, item in value.items())} }}"
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(map(written, value))}]"
    elif isinstance(value, date | time):
        text = value.isoformat()
    elif isinstance(value, bool | Decimal):
        text = str(value).lower().replace("infinity", "inf")
    else:
        return brief(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def in_a_plan(message: str) -> str:
    """A message for Python as one for plans; what already is one stays as it is."""
    for python, plan in ADVICE.items():
        message = re.sub(python, plan, message)
    return _TUPLE.sub(lambda found: _listed(found[0]), message)


def _listed(text: str) -> str:
    return f"[{', '.join(map(written, ast.literal_eval(text)))}]"
