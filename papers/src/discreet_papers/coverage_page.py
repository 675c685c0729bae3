"""The study of intervals for people: a page, and the tables of `docs/explanation/coverage.md`. No number is made here.

`python -m discreet_papers.coverage_page out/coverage/results.json docs/explanation/coverage.md` writes the tables
between the marks of that page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.pages.page import Heading, Note, Page, Prose, Table
from discreet_papers.coverage_rule import MOSTLY, Row

MARK = "<!-- {}: from results.json -->"
HIDDEN = ("short", "off", "wide", "error", "level", "part")


def page_of(title: str, results: Mapping[str, Any]) -> Page:
    """The study's page."""
    faults = results["faults"]
    verdict = "\n".join(f"- {line}" for line in faults) or (
        "No interval holds more rarely than 93.5 % and no estimate is off, beyond what so many trials explain, without "
        "being told. Every interval that holds in more than 96.5 % says that it holds at least so often."
    )
    return Page(
        title,
        [
            Note("result", verdict),
            Note("warning", "The data are simulated and the noise has a seed: a study is not a release."),
            Prose(
                f"{len(results['rows'])} cells: an interval, a kind of data and an epsilon. Coverage of 95 % "
                "intervals; half-widths over what errors exceed in 5 % of trials; bias in standard errors of its mean, "
                "beyond what is said to be allowed for; what is said before paying, and in how many releases."
            ),
            Heading("Each interval"),
            Table.of(results["short"], "The least coverage over kinds of data and epsilons", "summary"),
            Heading("Every cell"),
            Table.of(
                [{key: each[key] for key in each if key not in HIDDEN} for each in results["rows"]],
                "Every interval on every kind of data",
                "cells",
            ),
        ],
    )


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """The tables of the page in the docs, by name."""
    rows: Sequence[Row] = results["rows"]
    short = [each for each in rows if each["short"]]
    off = [each for each in rows if each["off"]]
    quiet = [each for each in rows if not each["before"] and each["told"] < MOSTLY and each["held"] is not None]
    wide = sum(each["wide"] for each in rows)
    counts = (
        f"{len(rows):,} cells: an interval, a kind of data and an ε. {len(quiet):,} have an interval of which nothing "
        f"is said: {sum(each['short'] for each in quiet)} are short. {wide:,} are wide, and say so. "
        f"{len(results['faults'])} are faults."
    )
    return {
        "counts": counts,
        "summary": _table(
            (
                *("interval", "cells", "least, nothing said", "cells", "least, said", "cells"),
                *("wide", "half-width over the error", "why at least", "faults"),
            ),
            (
                (
                    *(each["interval"], each["cells"], _percent(each["least where nothing is said"]), each["of"]),
                    *(_percent(each["least where it is said"]), each["said"], each["wide"] or "–"),
                    *(_number(each["half-width over the error"]), each["at least"] or "–", each["faults"] or "–"),
                )
                for each in results["short"]
            ),
        ),
        "short": _table(
            ("interval", "data", "ε", "holds, %", "said before paying", "flagged in, %"),
            (
                (
                    *(each["interval"], each["data"], _epsilon(each)),
                    f"{100 * each['held']:.1f} ± {100 * each['error']:.1f}",
                    *(each["before"] or "–", f"{100 * each['told']:.0f}"),
                )
                for each in sorted(short, key=lambda each: float(each["held"]))
            ),
        ),
        "off": _table(
            ("estimate", "data", "ε", "off by, standard errors", "said before paying", "flagged in, %"),
            (
                (
                    *(each["interval"], each["data"], _epsilon(each), f"{each['bias']:.1f}".replace("-", "−")),
                    *(each["before"] or "–", f"{100 * each['told']:.0f}"),
                )
                for each in sorted(off, key=lambda each: -abs(float(each["bias"])))
            ),
        ),
        "faults": "\n".join(f"- {line}" for line in results["faults"]) or "None.",
        **{f"cells of {part}": _cells(rows, part) for part in dict.fromkeys(each["part"] for each in rows)},
    }


def _cells(rows: Sequence[Row], part: str) -> str:
    """Every cell of one part."""
    return _table(
        ("interval", "data", "ε", "holds, %", "half-width over the error", "off by, standard errors", "said", "fault"),
        (
            (
                *(each["interval"], each["data"], _epsilon(each)),
                "–" if each["held"] is None else f"{100 * each['held']:.1f} ± {100 * each['error']:.1f}",
                _number(each["times"]),
                "–" if each["bias"] is None else f"{each['bias']:.1f}".replace("-", "−"),
                *(each["before"] or "–", "yes" if each["fault"] else "–"),
            )
            for each in rows
            if each["part"] == part
        ),
    )


def filled(page: str, results: Mapping[str, Any]) -> str:
    """The page with these results between its marks."""
    for name, text in tables(results).items():
        start, end = MARK.format(name), MARK.format(f"end of {name}")
        if start in page and end in page:
            page = f"{page.partition(start)[0]}{start}\n{text}\n\n{end}{page.partition(end)[2]}"
    return page


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in each] for each in rows)]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _epsilon(each: Row) -> str:
    return "–" if each["epsilon"] is None else f"{each['epsilon']:g}"


if __name__ == "__main__":
    import sys

    found, target = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    target.write_text(filled(target.read_text(), found))
