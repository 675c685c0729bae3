"""discreet: statistics from confidential data, with proved privacy and the cost in accuracy shown first.

The map, from what you have to what you publish:

* data: `read_jobs`, `Schema`, `simulate` (realistic data to try everything on)
* whom to protect: `Establishments`, `Workers`, `EstablishmentNodes`, `Rows`, `AnyRow`
* what it may cost: `Pure`, `Approximate`, `Concentrated`; what was spent: `Ledger`
* tables of counts: `Session`, then `session.count(...)`, `.check(...)`, `.release(...)`
* is the claim true?: `verify` on a mechanism from `calibrate`
* errors: `DiscreetError` and its children in `discreet.errors`

Names are loaded on first use, so `import discreet` is quick and needs none of the optional parts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Account": "discreet.account",
    "AnyRow": "discreet.privacy.units",
    "Approximate": "discreet.privacy.losses",
    "Concentrated": "discreet.privacy.losses",
    "DiscreetError": "discreet.errors",
    "EstablishmentNodes": "discreet.privacy.units",
    "Establishments": "discreet.privacy.units",
    "Guarantee": "discreet.privacy.guarantee",
    "Ledger": "discreet.privacy.ledger",
    "Pure": "discreet.privacy.losses",
    "Rows": "discreet.privacy.units",
    "Schema": "discreet.schema",
    "Session": "discreet.session",
    "Workers": "discreet.privacy.units",
    "calibrate": "discreet.tables.calibration",
    "read_jobs": "discreet.jobs",
    "verify": "discreet.privacy.verify",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no name {name!r}; it has: {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
