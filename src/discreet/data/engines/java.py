"""The Java that Spark runs in: what a process does when it has ended. `failures` knows whether it has."""

from __future__ import annotations

import logging
from pathlib import Path


def silence_py4j() -> None:
    """Py4J logs a traceback when Java has ended, by the root logger too; our errors say what happened."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def forget() -> None:
    """A Java that has ended is not this process's any more: the next session starts a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for place, name in (
        *((SparkContext, name) for name in ("_active_spark_context", "_gateway", "_jvm")),
        *((SparkSession, name) for name in ("_instantiatedSession", "_activeSession")),
    ):
        setattr(place, name, None)
