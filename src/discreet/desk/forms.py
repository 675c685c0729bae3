"""What may be sent to which address, and how it is read: no request makes others wait.

Which bodies an address takes is decided by its head, before a byte is read. Text is UTF-8: other charsets can take
minutes to decode. Only uploads are multipart, and only they are large.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.types import Message, Receive

LOGIN_BYTES = 4_096
FORM_BYTES = 1_000_000
JSON_BYTES = 250_000
FIELDS = 2_000
FILES = 4
SMALL = 16_384
"""Bytes that are read at once; larger bodies are read outside the loop that serves everybody."""

UPLOADS = ("/changes", "/models", "/data/new")
URLENCODED, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
PARAMETER = r"\s{0,4};\s{0,4}[\w-]{1,40}=(\"[^\"\\]*\"|[^\s\";]*)"
TYPE = re.compile(rf"(?P<type>[\w.+-]{{1,60}}/[\w.+-]{{1,60}})(?P<more>({PARAMETER})*)", re.ASCII)
CHARSET = re.compile(r";\s*charset=\"?([^\s\";]*)", re.IGNORECASE)
LONGEST = 300
"""Characters of a Content-Type."""


class TooLarge(HTTPException):
    """A body is larger than the desk takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"More than {limit:,} bytes were sent. The desk takes no more. Send a smaller file.")


def limit_of(path: str, kind: str, largest: int) -> int:
    """How many bytes an address takes; `largest` of an upload."""
    if path == "/login":
        return LOGIN_BYTES
    if path.startswith("/api/"):
        return JSON_BYTES
    return largest if path in UPLOADS and kind.startswith(MULTIPART) else FORM_BYTES


def refusal(path: str, kinds: Sequence[str], length: str, limit: int) -> tuple[int, str] | None:
    """Why an address does not take a body of these Content-Types and this length, or None where it does."""
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > limit):
        return 413, TooLarge(limit).detail
    if not kinds:
        return None  # what is sent is then not looked at
    takes = (JSON,) if path.startswith("/api/") else (URLENCODED, MULTIPART) if path in UPLOADS else (URLENCODED,)
    found = TYPE.fullmatch(kinds[0].strip()) if len(kinds) == 1 and len(kinds[0]) <= LONGEST else None
    if found is None or found["type"].lower() not in takes:
        return (
            415,
            f"A body of another type was sent. This address takes {' or '.join(takes)}. Use the desk's own forms.",
        )
    if any(each.lower() not in ("utf-8", "utf8") for each in CHARSET.findall(found["more"])):
        return 415, "A body in another charset was sent. The desk reads UTF-8. Send it as that."
    return None


def limited(receive: Receive, limit: int) -> Receive:
    """What arrives, up to `limit` bytes."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise TooLarge(limit)
        return message

    return bounded


async def read(request: Request) -> FormData:
    """The form that was sent; the guard has looked at its head."""
    if request.headers.get("content-type", "").lower().startswith(MULTIPART):
        return await request.form(max_files=FILES, max_fields=FIELDS)
    body = await request.body()
    return _fields(body) if len(body) <= SMALL else await run_in_threadpool(_fields, body)


def _fields(body: bytes) -> FormData:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except ValueError:
        raise HTTPException(
            400, f"The form cannot be read. It is UTF-8 and has at most {FIELDS:,} fields. Use the desk's own forms."
        ) from None
    return FormData(list[tuple[str, str | UploadFile]](pairs))
