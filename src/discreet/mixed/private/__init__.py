"""Private releases of linear mixed models.

`release_mixed` is the door and `PrivateFit` the answer. Names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.mixed.private.release import release_mixed
    from discreet.mixed.private.result import PrivateEffects, PrivateFit

_HOME = {"release_mixed": "release", "PrivateFit": "result", "PrivateEffects": "result"}
__all__ = ["PrivateEffects", "PrivateFit", "release_mixed"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.mixed.private.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
