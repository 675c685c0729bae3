"""A release that was paid for with other settings: which keys of the plan somebody changed since."""

from __future__ import annotations

from discreet.ledger import Entry
from discreet.ledger.budget import amounts
from discreet.ledger.entries import asked_then
from discreet.plan.kinds.kind import PlannedRelease
from discreet.words.faults import Fault, Place


def changed(request: PlannedRelease, charge: Entry, published: Entry | None) -> Fault:
    """A release that was asked for otherwise before, at the first key that somebody changed."""
    source = request.source
    place: Place = ("release", source.file.index(request.release.name))
    keys = _changed_keys(request, charge) or ["unit"]
    if keys[0] in type(request.release).model_fields and keys[0] not in ELSEWHERE:
        place = (*place, keys[0])
    done = "" if published is None else f" and published in entry {published.seq}"
    cost = "" if charge.loss is None else f" with {amounts(charge.loss)}"
    return Fault(
        ("output", keys[0])
        if keys[0] in OUTPUT
        else source.place(*ELSEWHERE[keys[0]])
        if keys[0] in ELSEWHERE
        else place,
        f"{request.release.name!r} was paid{cost} in entry {charge.seq} of the ledger{done}, with other settings "
        f"({', '.join(keys)}). A name stands for one request, and a release does not change. Write it as it "
        "was, or choose another name.",
    )


OUTPUT = ("forms", "formats")
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "schema": ("data", "schema"),
    "labels": ("data", "labels"),
    "allow_multiple": ("data", "allow_multiple"),
    "quarters": ("data", "quarters"),
    "time": ("data", "time"),
    "unit": ("unit",),
}
"""Settings of a release that stand in other tables of the plan."""


def _changed_keys(request: PlannedRelease, charge: Entry) -> list[str]:
    """The keys of a plan in which a request differs from the one that was paid, without what follows from others."""
    old = charge.payload.get("details") or {}
    new = asked_then(old, request.details)
    paid, price = charge.loss.amounts if charge.loss else {}, request.guarantee.loss.amounts
    keys = [key for key in ("epsilon", "delta") if paid.get(key) != price.get(key)]
    beside = {"tables", "basis", "schema", "derived", *keys}
    keys += [key for key in sorted({*old, *new} - beside) if old.get(key) != new.get(key)]
    before, now = old.get("tables", []), new.get("tables", [])
    if [table["by"] for table in before] != [table["by"] for table in now]:
        return [*keys, "by" if "by" in type(request.release).model_fields else "tables"]
    keys += ["tables"] * (old.get("derived") != new.get("derived"))
    differ = {
        key for one, other in zip(before, now, strict=True) for key in one | other if one.get(key) != other.get(key)
    }
    differ |= {"domains"} if old.get("schema") != new.get("schema") else set()
    keys += [key for key in ("where", "calibration", "scale_share") if key in differ]
    follows = {"domains": ("schema", "where"), "loss": ("split", "epsilon", "delta"), "labels": ("labels",)}
    keys += [key for cause, (key, *causes) in follows.items() if cause in differ and not {*causes} & {*keys}]
    return keys + ["mechanism"] * ("mechanism" in differ and not keys)
