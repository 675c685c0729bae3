"""What a comparison is, and the tables that all of them end in.

Only ratios and growth are quoted: the machine is whatever it is, and both sides ran on it in the same minutes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.peers import Missing, last_line

START, END = "<!-- bench: written by make bench -->", "<!-- end of bench -->"
TIE = 0.02  # ratios this close to one are a tie


@dataclass(frozen=True)
class Agreement:
    """Whether two answers are the same within what their kind allows, and the words that go into the table."""

    ok: bool
    words: str

    @property
    def said(self) -> str:
        return self.words if self.ok else f"DISAGREES: {self.words}"


@dataclass(frozen=True)
class Row:
    """One job on both sides.

    Attributes
    ----------
    job : what both did, with its size.
    peer : who else.
    time : the peer's seconds over ours; above one, ours is faster. None where the peer could not run.
    memory : the peer's peak memory over ours, likewise.
    agreement : how the answers compare, measured in this run.
    agrees : whether they are the same within what their kind allows; a row that disagrees is behind.
    same_work : whether the peer is another program doing the same work; only such rows are counted.
    why : for a row where ours is behind or the peer is missing: the reason, and what would remove the gap.
    version : of the peer, where it is known.
    """

    job: str
    peer: str
    time: float | None
    memory: float | None
    agreement: str
    why: str = ""
    version: str = ""
    agrees: bool = True
    same_work: bool = True

    @property
    def behind(self) -> bool:
        return not self.agrees or any(ratio is not None and ratio < 1 - TIE for ratio in (self.time, self.memory))


@dataclass(frozen=True)
class Accuracy:
    """Errors at one promise of privacy: what the peer can do to keep it, and its error over ours.

    `agreement` is the peer's mean error as drawn and as computed.
    """

    promise: str
    peer: str
    error: float | None
    protects: str
    agreement: str = ""
    agrees: bool = True


@dataclass(frozen=True)
class Comparison:
    """What one module of the bench measured, the seconds by the clock that this took, and a hash of the code.

    `broken` says which promises other than equal answers did not hold; `failed` why nothing was measured.
    """

    rows: tuple[Row, ...] = ()
    accuracy: tuple[Accuracy, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    code: str = ""
    broken: tuple[str, ...] = ()
    failed: str = ""

    @property
    def disagreeing(self) -> tuple[Row | Accuracy, ...]:
        """Rows whose answers are not the same."""
        rows: tuple[Row | Accuracy, ...] = (*self.rows, *self.accuracy)
        return tuple(row for row in rows if not row.agrees)

    @property
    def failures(self) -> list[str]:
        """Why the module has failed although it measured something."""
        differ = [f"answers differ in {len(self.disagreeing)} rows"] if self.disagreeing else []
        return [*differ, *self.broken, *([self.failed] if self.failed else [])]

    @classmethod
    def that_failed(cls, name: str, error: Exception) -> Comparison:
        """A comparison that ended with an error: a row says so, so that its place in the table is no hole."""
        why = f"{type(error).__name__}: {last_line(str(error))}"
        row = Row(f"the comparison `{name}`", "all its peers", None, None, "failed", why, same_work=False)
        return cls((row,), failed=why)

    @property
    def ratios(self) -> dict[tuple[str, str], float]:
        """What was measured: of which row, and whether it is the time, the memory or the error."""
        found = {(f"{row.job} against {row.peer}", "time"): row.time for row in self.rows}
        found |= {(f"{row.job} against {row.peer}", "memory"): row.memory for row in self.rows}
        found |= {(f"{row.promise} against {row.peer}", "error"): row.error for row in self.accuracy}
        return {key: ratio for key, ratio in found.items() if ratio is not None}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Comparison:
        """What `to_dict` gave."""
        return cls(
            tuple(Row(**row) for row in content.get("rows", ())),
            tuple(Accuracy(**row) for row in content.get("accuracy", ())),
            content.get("facts", {}),
            content.get("seconds", 0.0),
            content.get("code", ""),
            tuple(content.get("broken", ())),
            content.get("failed", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [asdict(row) for row in self.rows],
            "accuracy": [asdict(row) for row in self.accuracy],
            "facts": dict(self.facts),
            "seconds": self.seconds,
            "code": self.code,
            "broken": list(self.broken),
            **({"failed": self.failed} if self.failed else {}),
        }


def beside(
    job: str,
    peer: str,
    ours: Mapping[str, Any],
    measure: Callable[[], Mapping[str, Any]] | Mapping[str, Any],
    *,
    agree: Callable[[Mapping[str, Any]], Agreement],
    why: str = "",
    same_work: bool = True,
) -> Row:
    """Measure a peer, if it was not yet; both sides' `seconds` and `mib` make the ratios.

    `why` is kept only where ours is behind.
    """
    try:
        theirs = measure() if callable(measure) else measure
    except Missing as reason:
        return Row(job, peer, None, None, "not measured", str(reason), same_work=same_work)
    time, memory = theirs["seconds"] / ours["seconds"], theirs["mib"] / ours["mib"]
    agreement = agree(theirs)
    row = Row(job, peer, time, memory, agreement.said, why, theirs.get("version", ""), agreement.ok, same_work)
    return row if row.behind else replace(row, why="")


def markdown(rows: Iterable[Row]) -> str:
    """The table of the page; a star marks what is not the same work."""
    lines = [
        "| job | peer | its time over ours | its memory over ours | answers |",
        "|---|---|---:|---:|---|",
    ]
    for row in rows:
        said = ". ".join(part for part in (row.agreement, row.why) if part)
        name = f"{row.peer} {row.version}".strip() + ("" if row.same_work else " *")
        cells = (cell(row.job), cell(name), shown(row.time), shown(row.memory), cell(said))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def accuracies(rows: Iterable[Accuracy]) -> str:
    """The second table of the page."""
    lines = [
        "| promise | how a peer can keep it | its error over ours | what it protects | its mean error, drawn |",
        "|---|---|---:|---|---|",
    ]
    lines += [
        f"| {cell(row.promise)} | {cell(row.peer)} | {shown(row.error)} | {row.protects} | {cell(row.agreement)} |"
        for row in rows
    ]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Text within a table: a formula's bars would end the cell."""
    return text.replace("|", "\\|")


def shown(ratio: float | None) -> str:
    """A ratio as people read it."""
    if ratio is None:
        return "-"
    if abs(ratio - 1) <= TIE:
        return "a tie"
    if 0.95 < ratio < 1.05:
        return f"{ratio:.2f} x"
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.2g} x"


class NoPlace(ValueError):
    """A page without the marks between which the table stands."""


def put_into(readme: Path, table: str) -> None:
    """Replace what stands between the marks."""
    text = readme.read_text(encoding="utf-8")
    before, mark, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise NoPlace(f"{readme.name} has no place for the table: put {START} and {END} where it goes")
    replace_file(readme, f"{before}{START}\n{table}\n{END}{after}")


def replace_file(path: Path, text: str) -> None:
    """The whole new text or the whole old one, whatever happens meanwhile."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def fallen(now: Comparison, recorded: Comparison) -> list[str]:
    """Ratios that fell below half of what was recorded."""
    found = now.ratios
    return [
        f"{row}: {kind} {found[row, kind]:.3g}, recorded {before:.3g}"
        for (row, kind), before in recorded.ratios.items()
        if (row, kind) in found and found[row, kind] < before / 2
    ]


def unwatched(now: Comparison, recorded: Iterable[Comparison]) -> list[str]:
    """Recorded rows, of whatever size, that this run has no ratio for."""

    def sizeless(row: str) -> str:
        return re.sub(r"\d[\d,.]*", "", row)

    found = {sizeless(row) for row, _ in now.ratios}
    rows = {sizeless(row): row for before in recorded for row, _ in before.ratios}
    return [row for key, row in rows.items() if key not in found]
