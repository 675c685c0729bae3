"""[engine]: what computes the aggregates of a plan.

It is opened once for a check or a run, with the state of the files it read.

The choice of engine changes no number, so it is not part of what is paid for, published or reviewed. A run that began
on a cluster can end without one. It is opened when data are first read, so pricing needs no cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from discreet.data import engines
from discreet.data.engines.spark import Spark
from discreet.data.engines.spark_settings import master_fault, setting_faults
from discreet.data.failures import gone
from discreet.data.scans import is_remote
from discreet.plan.source import Section
from discreet.plan.values import PathText, Text
from discreet.words.cases import case_of
from discreet.words.errors import DiscreetError, EngineError, PlanError
from discreet.words.faults import Fault

if TYPE_CHECKING:
    from discreet.data.engines import Engine
    from discreet.plan.file import PlanFile


class EngineSection(Section):
    """[engine]: what computes the aggregates. Without it DuckDB computes in this process, with nothing to set up."""

    kind: Literal["duckdb", "spark"] = Field("duckdb", description="DuckDB, or Spark for data on a cluster.")
    master: Text | None = Field(
        None, description="Of Spark: 'spark://host:7077', 'yarn', 'k8s://host:port', or 'local[2]' for this machine."
    )
    memory: Text = Field("2g", description="Of Spark: memory of the driver, which is on this machine.")
    wait: Annotated[StrictInt, Field(ge=1, le=3600)] = Field(
        180, description="Of Spark: seconds in which the cluster must have run a first, empty task."
    )
    properties: PathText | None = Field(
        None, description="Of Spark: a file with further settings, secrets among them, that only its owner can read."
    )
    settings: dict[str, StrictStr | StrictInt | StrictBool] = Field(
        default_factory=dict, description='Of Spark: what it may use: { "spark.executor.memory" = "4g" }. No secrets.'
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        stated = [name for name in EngineSection.model_fields if name in self.model_fields_set - {"kind"}]
        words = "It is for Spark. DuckDB has nothing to set up. Leave it out, or write kind = 'spark'."
        faults = [Fault((name,), words) for name in stated[:1] if not self.is_spark]
        faults += [replace(each, place=("settings", str(each.about))) for each in setting_faults(self.settings)]
        if self.master is not None:
            faults += [replace(each, place=("master",)) for each in master_fault(self.master)]
        if faults:
            raise PlanError(*faults)
        return self

    @property
    def is_spark(self) -> bool:
        return case_of(self.kind, {"duckdb": False, "spark": True})

    def opened(self, folder: Path) -> Engine:
        """The engine; paths are relative to `folder`."""
        return engines.open(
            "spark",
            master=self.master,
            memory=self.memory,
            wait=self.wait,
            properties=None if self.properties is None else folder / self.properties,
            settings={
                name: str(value).lower() if isinstance(value, bool) else str(value)
                for name, value in self.settings.items()
            },
        )


@dataclass(slots=True)
class Work:
    """The open resources of a plan: its engine, and the state of the files when they were first read."""

    engine: Engine | None = None
    failed: DiscreetError | None = None
    seen: dict[str, Any] = field(default_factory=dict)


STAYS = "What is published stays, and what was paid for is not paid again."
_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def at_work() -> Iterator[None]:
    """Inside, a plan's engine is opened once, when it is first needed; at the end it is closed.

    An engine that ends and a disk that fails are told in words, whatever the step in which that happens.
    """
    if _WORK.get() is not None:
        yield
        return
    work = Work()
    token = _WORK.set(work)
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:
        if isinstance(work.engine, Spark) and work.engine.lost(error):
            raise gone(f"The plan's engine ended while the plan was carried out. {STAYS}", java=True) from None
        if isinstance(error, OSError) or type(error).__name__ == "IOException":  # DuckDB's, which is not imported here
            raise _unreachable(error) from None
        raise
    finally:
        _WORK.reset(token)
        if work.engine is not None:
            work.engine.close()


def _unreachable(error: Exception) -> DiscreetError:
    path, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
    where = "a file" if path is None else repr(str(path))
    return DiscreetError(
        f"The plan stopped where {where} was to be read or written: {reason or type(error).__name__}.",
        STAYS,
        "Look after the disk, or the rights of this user, and run the plan again.",
        about="disk",
    )


def engine_of(file: PlanFile) -> Engine | None:
    """The plan's engine, if it is not the one of this process; only inside `at_work`."""
    if not file.plan.engine.is_spark:
        return None
    work = _WORK.get()
    assert work is not None, "an engine is opened for a check or a run"
    if work.failed is not None:
        raise work.failed
    if work.engine is None:
        try:
            work.engine = file.plan.engine.opened(file.document.folder)
        except DiscreetError as error:
            work.failed = error
            raise
    return work.engine


def unopened() -> DiscreetError | None:
    """Why the engine could not be opened, where that was tried."""
    work = _WORK.get()
    return None if work is None else work.failed


def watch(file: PlanFile, path: Path | str) -> None:
    """Remember how files on a cluster's storage are, before they are read; `steady` looks at those of this machine."""
    work = _WORK.get()
    if work is not None and is_remote(path) and str(path) not in work.seen:
        work.seen[str(path)] = _stamp(file, path)


def refuse_changed(file: PlanFile) -> None:
    """Refuse data whose files are others now than when they were first read: their checks would say nothing."""
    work = _WORK.get()
    for path, before in ({} if work is None else work.seen).items():
        if _stamp(file, path) != before:
            raise EngineError(
                f"{path!r} was written to while it was read.",
                "A release is about one moment. Nothing was spent.",
                "Run the plan again when it is whole.",
                about="source",
            )


def _stamp(file: PlanFile, path: Path | str) -> Any:
    engine: Any = engine_of(file)
    return engine.stamp(path)
