"""A source added at the desk: its file, what each column is, whom it protects; its data are checked before it counts.

Public facts (domains, units, budgets) are typed in, never learned from the data. A check says which declaration the
rows do not keep, without a value and without a number. A new source is appended to desk.toml, which remains the only
place that says what the desk may publish.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from discreet.desk import filters
from discreet.desk.accounts import Person
from discreet.desk.audit_log import record
from discreet.desk.desk import SETTINGS, DataSource, Desk, Settings
from discreet.desk.drafts import as_toml
from discreet.desk.sandbox import confined
from discreet.desk.store import DeskStore
from discreet.privacy.losses import loss
from discreet.words.cases import case_of, unknown
from discreet.words.errors import DataError, LedgerError

DATA = "data"
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet")
WAITING = "upload-"
"""The prefix of the name of a file that was sent and is not a source yet."""

KEPT_SECONDS = 24 * 3600
"""For how long such a file waits."""

MOST_FILES, MOST_COLUMNS, LONGEST = 200, 200, 400
ROLES = {
    "jobs": ("", "establishment", "worker", "workplace", "kind", "unused"),
    "rows": ("", "response", "public", "numbers"),
}
"""The possible roles of a column, by the kind of the source; empty: not used, if it does not look like a period."""


@dataclass(frozen=True, slots=True)
class SourceForm:
    """What was filled in; `columns` maps a column to its role, `domains` to its public values as they were typed."""

    file: str = ""
    kind: str = "jobs"
    name: str = ""
    title: str = ""
    dataset: str = ""
    epsilon: str = ""
    alpha: str = "0.1"
    multiple: str = "1"
    lower: str = "0"
    upper: str = "1"
    columns: dict[str, str] | None = None
    domains: dict[str, str] | None = None


def files(desk: Desk) -> list[str]:
    """Tables in the desk's folder of data, relative to the desk; links are left out, since they may lead elsewhere."""
    folder = desk.folder / DATA
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (Path(where) / name).is_symlink())
        for name in sorted(names):
            path = Path(where) / name
            if name.lower().endswith(ENDINGS) and not name.startswith(".") and not path.is_symlink():
                found.append(path.relative_to(desk.folder).as_posix())
    return found[:MOST_FILES]


def read(form: FormData) -> SourceForm:
    """The form as it was sent; what is wrong with it is found by `described`."""
    columns = [str(name)[:LONGEST] for name in form.getlist("column")][:MOST_COLUMNS]
    usual = {each.name: each.default for each in fields(SourceForm) if isinstance(each.default, str)}
    texts = {key: str(form.get(key, value)).strip()[:LONGEST] for key, value in usual.items()}
    if texts["kind"] not in ROLES:
        raise unknown(texts["kind"], ROLES)
    roles = {name: str(form.get(f"role-{i}", "")) for i, name in enumerate(columns)}
    domains = {name: str(form.get(f"domain-{i}", "")).strip()[:2_000] for i, name in enumerate(columns)}
    return SourceForm(**texts, columns=roles or None, domains=domains)


def keep(desk: Desk, sent: UploadFile) -> str:
    """Keep a file that was sent in the desk's folder of data, for the desk's owner alone; where it is."""
    given = (sent.filename or "").lower()
    ending = next((each for each in sorted(ENDINGS, key=len, reverse=True) if given.endswith(each)), None)
    if ending is None:
        raise DataError(
            "A file of another type was sent.",
            "A source is a CSV file, also as .csv.gz or .csv.zst, or Parquet.",
            "Send one of these.",
            about="file",
        )
    folder = desk.folder / DATA
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{WAITING}{secrets.token_hex(4)}{ending}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sent.file, file)
    return path.relative_to(desk.folder).as_posix()


def drop(desk: Desk, file: str) -> None:
    """Remove a file that was sent and has become no source; no other file."""
    if file.startswith(f"{DATA}/{WAITING}") and file in files(desk):
        (desk.folder / file).unlink(missing_ok=True)


def tidy(desk: Desk) -> None:
    """Remove files that were sent long ago and became no source."""
    named = {source.path for source in desk.settings.source}
    for file in files(desk):
        with suppress(FileNotFoundError):
            if file not in named and time.time() - (desk.folder / file).stat().st_mtime > KEPT_SECONDS:
                drop(desk, file)


def columns_of(desk: Desk, file: str) -> list[str]:
    """The names of a file's columns, read in a process with limits."""
    if file not in files(desk):
        raise DataError(
            f"{file[:80]!r} is not a table in the desk's folder {DATA!r}.",
            "A source is a file there.",
            "Choose one, or send it.",
            about="file",
        )
    found: list[str] = confined("columns", {"path": str(desk.folder / file)})
    return found


def described(desk: Desk, form: SourceForm) -> DataSource:
    """The source that a form describes, or what it lacks."""
    roles: dict[str, list[str]] = {}
    for column, role in (form.columns or {}).items():
        roles.setdefault(role if role in ROLES[form.kind] else "", []).append(column)
    content: dict[str, Any] = {
        "name": form.name,
        "title": form.title,
        "kind": form.kind,
        "path": form.file,
        "dataset": form.dataset or form.name,
        "epsilon": form.epsilon,
    }
    content |= _jobs(form, roles) if case_of(form.kind, {"jobs": True, "rows": False}) else _rows(form, roles)
    try:
        source = DataSource.model_validate(content)
    except ValidationError as error:
        wrong = {str(fault["loc"][-1]): str(fault["msg"]) for fault in error.errors()}
        told = "; ".join(f"{key}: {words.removeprefix('Value error, ').rstrip('.')}" for key, words in wrong.items())
        raise DataError(
            "The source is not complete.", remedy=f"Correct these fields: {told}.", about="source"
        ) from None
    if source.name in desk.sources:
        raise DataError(
            f"{source.name!r} is a source of this desk.",
            "A name stands for one source.",
            "Choose another.",
            about="name",
        )
    _fits_the_ledger(desk, source)
    return source


def _jobs(form: SourceForm, roles: dict[str, list[str]]) -> dict[str, Any]:
    establishments, workers = roles.get("establishment", []), roles.get("worker", [])
    if len(establishments) != 1 or len(workers) != 1:
        raise DataError(
            f"{len(establishments)} columns name the establishment and {len(workers)} the worker.",
            "One names each.",
            "Choose them in the list of columns.",
            about="columns",
        )
    domains = {}
    for column in roles.get("kind", []):
        values = filters.read(f"x: {(form.domains or {}).get(column, '')}").get("x", [])
        if not values:
            raise DataError(
                f"{column!r} describes workers and has no public values.",
                "They are typed in, since the data are confidential.",
                "List them with commas: female, male.",
                about="columns",
            )
        domains[column] = list(values)
    schema: dict[str, Any] = {
        "establishment": establishments[0],
        "worker": workers[0],
        "workplace_attributes": roles.get("workplace", []),
        "worker_attributes": domains,
        "unused": [*roles.get("unused", []), *roles.get("", [])],
    }
    most = form.multiple or "1"
    if not (most.isascii() and most.isdigit() and 1 <= len(most) <= 4 and int(most) >= 1):
        raise DataError(
            f"{most[:20]!r} was given as the most jobs of one worker.",
            "It is a whole number.",
            "Use 1, or how many there may be.",
            about="most_jobs",
        )
    several = {"allow_multiple": int(most)} if int(most) > 1 else {}
    return {"schema": schema, "unit": {"kind": "establishments", "alpha": form.alpha}, **several}


def _rows(form: SourceForm, roles: dict[str, list[str]]) -> dict[str, Any]:
    response = roles.get("response", [])
    if len(response) != 1:
        raise DataError(
            f"{len(response)} columns are the response.",
            "One is protected.",
            "Choose it in the list of columns.",
            about="response",
        )
    unit = {"kind": "rows", "lower": form.lower, "upper": form.upper, "response": response[0]}
    return {"public": roles.get("public", []), "numbers": roles.get("numbers", []), "unit": unit}


def _fits_the_ledger(desk: Desk, source: DataSource) -> None:
    book = desk.book
    if book.trouble:
        raise LedgerError(book.trouble, about="dataset")
    known = book.budget(source.dataset)
    if known is None:
        return
    unit, total = source.unit.unit().key, loss(epsilon=source.epsilon, delta=source.delta)
    if (known.unit, known.total) != (unit, total):
        raise DataError(
            f"The ledger knows {source.dataset!r} under {known.unit} with {known.total}; {unit} with "
            f"{total} was asked for.",
            "The same data have one unit and one budget.",
            "Use those, or another name in the ledger where these are other data.",
            about="dataset",
        )


def faults(desk: Desk, source: DataSource, *, empty: Sequence[str] = ()) -> list[str]:
    """The declarations that the rows do not meet, in words for the person responsible for the data.

    Columns whose role was left `empty` may be no periods.
    """
    schema = desk.schema(source)
    arguments: dict[str, Any] = {"path": str(desk.folder / source.path)}
    if schema is not None:
        arguments |= {"schema": schema.to_dict(), "allow_multiple": source.allow_multiple}
        arguments["empty"] = list(empty)
    else:
        unit = source.unit.model_dump(mode="json")
        arguments |= {"public": list(source.public), "numbers": list(source.numbers)}
        arguments |= {"unit": {key: str(unit[key]) for key in ("lower", "upper")}}
        arguments["unit"]["response"] = next(iter(source.unit.unit().responses))  # type: ignore[union-attr]
    found: list[str] = confined("check_source", arguments)
    return found


def add(desk: Desk, store: DeskStore, source: DataSource, person: Person) -> Desk:
    """Append a source to desk.toml; the desk with it."""
    path = desk.folder / SETTINGS
    waiting, kept = source.path, source.path.replace(f"{DATA}/{WAITING}", f"{DATA}/source-", 1)
    source = source.model_copy(update={"path": kept})
    content = source.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    content["unit"] = source.unit.model_dump(mode="json", exclude_defaults=True) | {"kind": source.unit.kind}
    if "schema" in content:
        content["schema"] = {key: value for key, value in content["schema"].items() if value is not None}
    with store.writing() as connection:
        before = path.read_text(encoding="utf-8")
        after = f"{before.rstrip()}\n\n# Added at the desk by {person.name}.\n{as_toml({'source': [content]})}"
        try:
            settings = Settings.model_validate(tomllib.loads(after))
        except (tomllib.TOMLDecodeError, ValidationError):
            raise DataError(
                f"The source cannot be appended to {SETTINGS} as it is written.",
                "Sources there are [[source]] tables.",
                "Write it in by hand.",
                about="source",
            ) from None
        if source.name in {each.name for each in Desk.open(desk.folder).settings.source}:
            raise DataError(
                f"{source.name!r} is a source of this desk.",
                "A name stands for one source.",
                "Choose another.",
                about="name",
            )
        (desk.folder / waiting).rename(desk.folder / kept)  # a source's file is removed by nobody here
        _replace(path, after)
        record(connection, person.name, "source added", source.name, dataset=source.dataset)
    return Desk(desk.folder, desk.settings.model_copy(update={"source": settings.source}))


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(path.stat().st_mode & 0o777)
    beside.replace(path)
