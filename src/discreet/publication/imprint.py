"""The publisher, the licence, the period and a contact: facts that a release does not contain."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from discreet.words.errors import DataError
from discreet.words.faults import Argument

AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")
PERIOD = re.compile(
    r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?|-A1|-S[12]|-T[1-3]|-Q[1-4]|-M(0[1-9]|1[0-2])"
    r"|-W(0[1-9]|[1-4]\d|5[0-3])|-D(00[1-9]|0[1-9]\d|[12]\d\d|3[0-5]\d|36[0-6]))?"
)


@dataclass(frozen=True, slots=True)
class Imprint:
    """What an agency says about a release.

    Attributes
    ----------
    title : what readers call it; the release's name unless given.
    publisher : the agency's name.
    contact : an e-mail or web address for questions.
    licence : a web address, such as https://creativecommons.org/licenses/by/4.0/.
    period : what the numbers are about, as SDMX writes it: 2026, 2026-Q1, 2026-03.
    agency : the agency's SDMX identifier.
    """

    title: str = ""
    publisher: str = ""
    contact: str = ""
    licence: str = ""
    period: str = ""
    agency: str = "DISCREET"

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, str) or not value.isprintable() or len(value) > 500:
                raise _wrong(name, value, "It is one line of text.", "...")
        if not AGENCY.fullmatch(self.agency):
            raise _wrong("agency", self.agency, "It is an SDMX identifier: letters, digits, _ and -.", "ECB")
        if self.period and not PERIOD.fullmatch(self.period):
            raise _wrong("period", self.period, "It is a year, quarter, month or day as SDMX writes it.", "2026-Q1")
        if self.licence and urlsplit(self.licence).scheme not in ("http", "https"):
            possible = "It is the web address of a licence, which readers and programs know."
            raise _wrong("licence", self.licence, possible, "https://creativecommons.org/licenses/by/4.0/")
        if self.contact and not self.contact_address:
            raise _wrong("contact", self.contact, "It is an e-mail or a web address.", "statistics@agency.example")

    @property
    def contact_address(self) -> str:
        """The contact as a link."""
        if re.fullmatch(r"[^@\s]+@[^@\s]+", self.contact):
            return f"mailto:{self.contact}"
        return self.contact if urlsplit(self.contact).scheme in ("http", "https", "mailto") else ""

    def to_dict(self) -> dict[str, Any]:
        """What was said."""
        return {name: value for name, value in asdict(self).items() if value}


def _wrong(name: str, value: object, possible: str, example: str) -> DataError:
    return DataError(
        (Argument(name, value), " cannot be published."),
        possible,
        ("Use for example ", Argument(name, example), "."),
        about=name,
    )
