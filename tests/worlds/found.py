"""Worlds that a fault was found in, as plain as they could be made; the fault is their name."""

from __future__ import annotations

from worlds.world import Amount, Attribute, Levels, Odd, Release, World

PLACES = (Attribute("place", ("a", "b", "c")),)
SEX = (Attribute("sex", ("f", "m")),)
QUIET = {"publishes": False, "desk": False, "memory": False, "command": False, "forged": False, "damaged": False}


def _world(*releases: Release, **given: object) -> World:
    asked = {"attributes": PLACES, "sizes": (5, 3, 9, 1, 2, 7), "budget": "100", **QUIET, **given}
    return World(releases=releases or (Release("jobs", tables=(("place",),)),), **asked)  # type: ignore[arg-type]


FOUND: dict[str, World] = {
    "unused columns of infinite or giant numbers ended data check and --owner in a page of SQL": _world(
        idle=(("x", "nan"),), frame="duckdb"
    ),
    "codes such as 0x10 in a CSV file were published as 16": _world(
        Release("jobs", tables=(("place", "sex"),)),
        attributes=(Attribute("place", ("0x10", "0x1F")),),
        kinds=(Attribute("sex", ("0b1", "0x2")),),
        frame="csv ,",
    ),
    "the code -0 in a CSV file was published as 0": _world(attributes=(Attribute("place", ("-0",)),), frame="csv ,"),
    "a total beside public bounds was paid for and could not be written": _world(
        Release("jobs", epsilon="8"), public="at_most"
    ),
    "the same of kinds of workers alone": _world(
        Release("jobs", tables=(("sex",),), epsilon="8"), kinds=SEX, public="at_most"
    ),
    "a bound of some places was taken for one of a cell that holds others": _world(
        Release("jobs", "counts", ((), ("place",)), "60", options=(("level", "0.999999999"),)),
        sizes=(400, 1, 1, 1, 1, 1),
        public="at_most partial",
    ),
    "an establishment column called n ended a run in a traceback": _world(establishment="n"),
    "an establishment column called min place ended a run in a traceback": _world(establishment="min place"),
    "names in quotes with a comma were refused in a file with tabs": _world(
        Release("jobs"), attributes=(), worker="a,b", establishment="a|b", frame="csv \t"
    ),
    "the desk's form could not ask for a total among several tables": _world(
        Release("jobs", "counts", ((), ("place",)), "8"), desk=True
    ),
    "a site of noise for every set of kinds ended in a traceback: its attacks drew by single kinds": _world(
        Release("jobs", tables=(("place", "time"),), epsilon="20"),
        kinds=(Attribute("time", ("a", "b", "c")),),
        sizes=(9, 1, 9, 5, 3, 9, 3, 2, 400),
        unit=(("kind", "establishments"), ("alpha", "317/536"), ("strength", "weak")),
        publishes=True,
    ),
    "a first row with a value spelled nearly like a name was shown as names of columns": _world(
        establishment="a]b", attributes=(Attribute("place", ("a b",)),), frame="csv ,", odd=(Odd("no names"),)
    ),
    "the desk's form of several tables took an attribute with a comma or a semicolon for two": _world(
        Release("jobs", "counts", (("&amp;",), ("a,b", "&amp;"), ()), "8"),
        attributes=(Attribute("a,b", ("x", "y")), Attribute("&amp;", ("x", "y"))),
        desk=True,
    ),
    "the desk's form took one attribute with a comma for two": _world(
        Release("jobs", tables=(("a,b",),)), attributes=(Attribute("a,b", ("x", "y")),), desk=True
    ),
    "owners were told of no problem where a run refuses a place that nobody has": _world(
        Release("jobs", tables=(("place",),), options=(("where", {"place": ["c"]}),)), sizes=(1,)
    ),
    "noisy sizes of amounts were called wrong by verify: the sampler cuts what nobody stated": _world(
        Release("pay", "sum", (("place",),), "3", (("scale_share", "0.1"), ("of", "pay"))),
        amounts=(Amount("pay", 2**40, whole=False),),
        unit=(("kind", "establishments"), ("alpha", "168/199"), ("strength", "weak")),
    ),
    "a filter of kinds of workers gave a report whose numbers stood at other places": _world(
        Release("jobs", tables=(("place", "sex"),), options=(("where", {"sex": ["f"]}),)),
        attributes=(Attribute("place", ("a", "b")),),
        kinds=SEX,
    ),
    "the same ended a run in a traceback after it was paid": _world(
        Release("jobs", tables=(("place", "sex"),), options=(("where", {"sex": ["f"]}),)),
        kinds=(Attribute("sex", ("f", "m", "x", "y", "z", "u", "v")),),
    ),
    "synthetic jobs of a release without any ended in a traceback": _world(
        Release("jobs", epsilon="60", options=(("where", {"sex": ["m"]}),)),
        kinds=(Attribute("sex", ("m", "f1", "f2", "f3", "f4", "f5", "f6")),),
        sizes=(1,),
        publishes=True,
    ),
    "synthetic jobs of a release of more than can be drawn ended in a traceback": _world(
        sizes=(2**31,), counted=True, publishes=True
    ),
    "the desk's page of curves ended in a fault for a source of job histories": _world(
        Release("moved", "changes", (("place",),), "20", (("quarters", ["b", "a"]),)),
        quarters=("b", "a", "d"),
        desk=True,
    ),
    # those of the issue "Unknown is not zero", so that they stay found
    "two hierarchies that were not declared in the order of the alphabet": _world(
        Release("jobs", tables=(("big", "all"),), epsilon="8"),
        attributes=(Attribute("sector", ("111", "112", "211")), Attribute("county", ("01", "02"))),
        hierarchies=(
            Levels("industry", "sector", (Attribute("big", ("1", "2")),), "prefix", (3, 1)),
            Levels("area", "county", (Attribute("all", ("x",)),), "lookup"),
        ),
        desk=True,
    ),
    "integer codes above integer codes": _world(
        Release("jobs", "counts", (("county",), ("state",)), "8", (("add_up", True),)),
        attributes=(Attribute("county", (1, 2, 10)),),
        hierarchies=(Levels("place", "county", (Attribute("state", (7, -1)),)),),
        publishes=True,
    ),
    "not a number in an amount": _world(
        Release("pay", "sum", (("place",),), "3", (("of", "pay"),)),
        amounts=(Amount("pay", whole=False),),
        odd=(Odd("nan", "pay"),),
    ),
    # as a new user with data of their own
    "a file without names showed its first row to whoever asked for a plan": _world(
        frame="csv ,", odd=(Odd("no names"),), command=True
    ),
    "two files joined with their lines of names: the second was a job at an establishment of its own": _world(
        frame="csv ,", odd=(Odd("names again"),)
    ),
    "a run that was resumed from another folder drew other rows for the price of the first ones": _world(
        frame="parquet", accidents=("other rows",)
    ),
}
