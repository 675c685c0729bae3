"""The same kills with Spark in local mode; half of them hit the JVM, and Python must end by itself."""

from __future__ import annotations

from tests.engines import programme

from bench.comparison import Comparison
from bench.kills import killed

KILLS = 30
BRIEF = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"}
"""A JVM that lives for seconds starts in half the time if it does not compile what it runs once."""


def compare(*, quick: bool) -> Comparison:
    """What the kills did."""
    engine = programme.SPARK.format(master="local[2]", more="")
    return killed(3 if quick else KILLS, engine=engine, java=0.5, environment=BRIEF)
