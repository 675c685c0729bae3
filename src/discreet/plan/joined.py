"""Plans of one source each as one plan of several sources: their texts, with each table under its source's name.

Comments stay. Releases that were paid for under a single plan are recognised under the joined one: no request changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet.pages.page import slug
from discreet.plan.file import PlanFile
from discreet.plan.reading import read_plan
from discreet.plan.shape import ALONE, OF_A_SOURCE
from discreet.words.errors import PlanError

HEAD = re.compile(r"^(?P<mark>\s*(?:#\s*)?)\[(?P<name>[A-Za-z0-9_-]+)(?P<rest>[^\]\n]*)\](?P<after>.*)$")
RELEASE = re.compile(r"^\s*\[\[\s*release\s*\]\].*$")
ALARMS = re.compile(r"^\s*\[\[\s*alarms\s*\]\].*$")


def join_plans(paths: Sequence[str | Path], out: str | Path) -> Path:
    """Write one plan with the sources and releases of several, to a file that is not there yet."""
    out, plans = Path(out), [read_plan(path) for path in paths]
    _refuse(plans, out)
    names: list[str] = []
    for plan in plans:
        name = slug(plan.plan.only.budget.dataset)[:60] or "source"
        number = sum(other == name or other.startswith(f"{name}-") for other in names)
        names.append(f"{name}-{number + 1}" if number else name)
    first, *others = [
        list(_renamed(plan.document.path.read_text(encoding="utf-8"), name, whole=i == 0))
        for i, (plan, name) in enumerate(zip(plans, names, strict=True))
    ]
    text = "\n".join([*first, *(line for lines in others for line in ("", *lines))]) + "\n"
    joined = read_plan(out, text.encode()).plan
    releases = [release.model_copy(update={"source": None}) for release in joined.release]
    same = [joined.source[name] for name in names] == [plan.plan.only for plan in plans]
    alarms = tuple(each for plan in plans for each in plan.plan.alarms)
    if not same or joined.alarms != alarms or releases != [each for plan in plans for each in plan.plan.release]:
        raise PlanError(
            "The texts of these plans cannot be put together.",
            "Tables have headings of their own, such as [data].",
            "Write the joined plan by hand.",
            about="plans",
        )
    out.write_text(text, encoding="utf-8")
    return out


def _refuse(plans: Sequence[PlanFile], out: Path) -> None:
    several = next((plan for plan in plans if ALONE not in plan.plan.source), None)
    apart = next((plan for plan in plans if plan.document.folder.resolve() != out.parent.resolve()), None)
    shown = {(plan.plan.output.forms, plan.plan.output.formats) for plan in plans}
    for wrong, asked, possible, remedy in (
        (len(plans) < 2, f"{len(plans)} plans were given.", "Two or more are joined.", "Name another."),
        (
            several is not None,
            f"{'' if several is None else several.document.path.name!r} has several sources already.",
            "Plans of one source each are joined.",
            "Add the others to it by hand.",
        ),
        (
            apart is not None,
            f"{'' if apart is None else str(apart.document.path)!r} lies in another folder than {str(out)!r}.",
            "Paths of a plan are relative to it.",
            "Put the plans and the joined one into one folder.",
        ),
        (
            len(shown) > 1,
            "The plans write other forms or formats.",
            "One plan has one output folder, and releases that were paid for keep their files.",
            "Write the same in [output] of all.",
        ),
        (os.path.lexists(out), f"{str(out)!r} is there.", "A new plan replaces nothing.", "Name another file."),
    ):
        if wrong:
            raise PlanError(asked, possible, remedy, about="plans")


def _renamed(text: str, name: str, *, whole: bool) -> Iterator[str]:
    """The lines of a plan with its tables under the source's name; what the whole plan has once is the first's."""
    table = ""
    for line in text.splitlines():
        head = HEAD.match(line)
        if RELEASE.match(line):
            table = "release"
            yield from (line, f'source = "{name}"')
            continue
        if ALARMS.match(line):
            table = "alarms"
        elif head is not None and not head["mark"].strip():
            table = head["name"]
        if head is not None and head["name"] in OF_A_SOURCE:
            yield f"{head['mark']}[source.{name}.{head['name']}{head['rest']}]{head['after']}"
        elif whole or table in (*OF_A_SOURCE, "release", "alarms"):
            yield line
