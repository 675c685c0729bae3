"""Private releases of linear mixed models.

`release_mixed` is the door and `PrivateFit` the answer; `separation_rate` derives a fourth rate from three. Names load
on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.mixed.private.identity import separation_rate
    from discreet.mixed.private.release import release_mixed
    from discreet.mixed.private.result import PrivateEffects, PrivateFit

_HOME = {
    "PrivateEffects": "result",
    "PrivateFit": "result",
    "release_mixed": "release",
    "separation_rate": "identity",
}
__all__ = ["PrivateEffects", "PrivateFit", "release_mixed", "separation_rate"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.mixed.private.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
