"""Settings of Spark: those that a plan may state, those that decide results and are ours, and those that are secrets.

Every reader of a plan sees its settings, so none may be a secret, load code or change what is computed. Secrets are in
a file of properties that only its owner can read; they reach Spark by that file's name and stand in no command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.words.errors import EngineError
from discreet.words.faults import Fault

OURS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""Settings that decide results: overflowing sums fail, damaged or missing files fail, codes of folders stay text."""

STATED = (
    *("spark.executor.memory", "spark.executor.memoryOverhead", "spark.executor.cores", "spark.executor.instances"),
    *("spark.executor.heartbeatInterval", "spark.cores.max", "spark.task.cpus", "spark.task.maxFailures"),
    *("spark.driver.host", "spark.driver.bindAddress", "spark.driver.port", "spark.driver.cores"),
    *("spark.driver.maxResultSize", "spark.driver.blockManager.port", "spark.blockManager.port"),
    *("spark.port.maxRetries", "spark.default.parallelism", "spark.local.dir"),
    *("spark.sql.shuffle.partitions", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout"),
    *("spark.sql.files.maxPartitionBytes", "spark.sql.files.minPartitionNum", "spark.sql.warehouse.dir"),
    *("spark.authenticate", "spark.network.timeout", "spark.yarn.queue", "spark.kubernetes.namespace"),
    *("spark.kubernetes.container.image", "spark.submit.deployMode"),
)
FAMILIES = (
    *("spark.sql.adaptive.", "spark.sql.codegen.", "spark.dynamicAllocation.", "spark.scheduler.", "spark.speculation"),
    *("spark.memory.", "spark.shuffle.", "spark.rpc.", "spark.locality.", "spark.ssl.", "spark.network.crypto."),
    *("spark.hadoop.fs.", "spark.hadoop.dfs.", "spark.excludeOnFailure.", "spark.decommission."),
)
"""Settings that a plan may state: resources, addresses and ways of work. None of it changes a sum."""

SECRET = re.compile(
    r"secret|passw|passphrase|passwd|pwd|token|credentials?$|(access|account|private|encryption|api|shared|sas)[._-]?key"
    r"|[._-]key$|\.sas\b",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(r"://[^/\s]*:[^/\s]*@|(secret|passw\w*|token|key)\s*=", re.IGNORECASE)
ASIDE = (
    "Write it in a file of properties that only you can read, and name that file under properties, or set "
    "SPARK_CONF_DIR to a folder whose spark-defaults.conf has it."
)


def is_secret(name: str) -> bool:
    """Whether a setting's name shows that its value is a secret."""
    return SECRET.search(name) is not None


def setting_faults(settings: Mapping[str, object]) -> Iterator[Fault]:
    """Reasons why settings are not allowed in a plan; no value is ever repeated."""
    for name, value in settings.items():
        if is_secret(name) or SECRET_VALUE.search(str(value)):
            yield Fault(
                name,
                f"{name} looks like a secret, which every reader of the plan would see.",
                "A plan states resources, addresses and ways of work.",
                f"Leave it out, and change it where it is in force, because it was written down. {ASIDE}",
            )
        elif name in OURS:
            yield Fault(
                name,
                f"{name} would change what is computed.",
                f"It is always {OURS[name]!r}, so that every engine gives the same numbers.",
                "Leave it out.",
            )
        elif name == "spark.driver.memory":
            yield Fault(name, f"{name} is stated among the settings.", "It has a key of its own.", "Write memory.")
        elif name not in STATED and not name.startswith(FAMILIES):
            yield Fault(
                name,
                f"{name} is not a setting that a plan may state.",
                "A plan states resources, addresses and ways of work, and nothing that loads code or changes results.",
                "Leave it out, or set it in the cluster's own spark-defaults.conf.",
            )


def master_fault(master: str) -> Iterator[Fault]:
    """The faults of a master's address."""
    if SECRET_VALUE.search(master):
        yield Fault(
            "master",
            "the address holds a password, which every reader of the plan would see.",
            "A master is local[2], spark://host:7077, yarn or k8s://host:port.",
            "Leave it out, and change it, because it was written down.",
        )
    elif not re.fullmatch(r"local(\[[\d*]+(,\d+)?\])?|yarn|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|k8s://\S+", master):
        yield Fault(
            "master",
            f"{master!r} is no address of a master.",
            "A master is local[2], spark://host:7077, yarn or k8s://host:port.",
            "Write it so, or leave it out for this machine.",
        )


def properties_of(path: Path) -> dict[str, str]:
    """The settings of a file of properties: a name and a value on each line, as spark-defaults.conf has them."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise EngineError(
            f"The file of Spark's properties {str(path)!r} cannot be read ({type(error).__name__}).",
            "It has a name and a value on each line, as spark-defaults.conf.",
            "Correct its path, or leave it out.",
            about="engine.properties",
        ) from None
    lines = [line.strip() for line in text.splitlines()]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    found = {name: rest[0] if rest else "" for name, *rest in pairs}
    if os.name == "posix" and mode & 0o077 and any(map(is_secret, found)):
        raise EngineError(
            f"Others than its owner can read {str(path)!r}, which holds secrets.",
            "Such a file is its owner's alone.",
            f"Change that: chmod 600 {path}",
            about="engine.properties",
        )
    return found
