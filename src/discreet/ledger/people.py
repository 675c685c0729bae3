"""Who writes a line of a ledger, with which version, and the second person who agreed."""

from __future__ import annotations

import getpass
from functools import cache
from importlib.metadata import version

from discreet.words.errors import PrivacyError


def second_person(first: str, second: str | None, dataset: str) -> str:
    """The name of the second person, who is another one."""
    other = (second or "").strip()
    if not other or other.casefold() == first.strip().casefold():
        raise PrivacyError(
            f"The budget of {dataset!r} cannot be raised by {first!r} alone.",
            "Two people raise a budget, and both are named in the ledger.",
            "Have a colleague confirm it, and give their name too.",
            about="confirmed_by",
        )
    return other


@cache
def program() -> str:
    """The version that writes."""
    return version("discreet")


def user() -> str:
    """This user's name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container whose user has no name
        return "unknown"
