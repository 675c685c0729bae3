"""Whom a release protects, in words for a reader without mathematics, and the most that somebody can learn."""

from __future__ import annotations

from discreet.privacy.identification import posterior
from discreet.privacy.losses import shown
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Groups, Rows, Unit, Workers
from discreet.report.numbers import PERCENT, percent
from discreet.report.page import Table

PRIORS = (0.01, 0.1, 0.5)
"""Degrees of certainty before a release, in the table of what somebody can learn."""


def plain_words(unit: Unit, jobs: int | None = 1) -> str:
    """Whom the definition protects where a worker has so many `jobs` at most, for a reader without mathematics."""
    if isinstance(unit, Groups):
        return (
            f"Take any one {' and '.join(unit.by)}, and imagine that all responses of its rows had been others, or "
            "missing. The release would have come out much the same. Which rows these are, and how many, is public."
        )
    if isinstance(unit, Rows | AnyRow):
        return (
            "Take any one row, and imagine its response had been another, or missing. The release would have come out "
            "much the same."
        )
    return f"{_protected(unit)}{_several(unit, jobs)}"


def _protected(unit: Establishments | Workers | EstablishmentNodes) -> str:
    if isinstance(unit, Establishments):
        share = f"{shown(unit.alpha * 100)}{PERCENT}"
        strong = unit.strength == "strong"
        whom = "its whole workforce" if strong else "its workforce, of any kind and of any kinds together,"
        return (
            f"Take any establishment, and imagine that {whom} had been larger by up to {share}, or by one worker; or "
            "take the larger one, and imagine the smaller. The published tables would have come out the same with "
            "nearly the same probability. So nobody can tell, beyond the odds below, which of the two it was"
            f"{_size_to_all(share) if strong else _size_to_some(share)} {_exchange(unit)}"
        )
    if isinstance(unit, Workers):
        return (
            "Take any job, and imagine it had not been there. The published tables would have come out the same with "
            "nearly the same probability. The size of a large establishment is **not** hidden."
        )
    return (
        f"Take any whole establishment of at most {unit.theta:,} workers, and imagine it had not been there. The "
        "published tables would have come out the same with nearly the same probability. Larger ones are left out."
    )


def _size_to_all(share: str) -> str:
    return f": neither how large an employer is, more closely than {share}, nor whether a given person works there."


def _size_to_some(share: str) -> str:
    return (
        f", nor whether a given person works there. How large an employer is, more closely than {share}, is hidden "
        "from somebody who knows no kinds of its workers. Somebody who knows all of them but those of a rare kind "
        "may learn it."
    )


def _exchange(unit: Establishments) -> str:
    if unit.substitution:
        return "The kind of a worker and their employer are hidden within the same odds."
    return "A change of a worker's kind or employer takes two such changes: the odds move twice as far."


def _several(unit: Unit, jobs: int | None) -> str:
    if jobs is None:
        return (
            " All this is about one job, and one worker with that job: about all jobs of a worker together nothing is "
            "promised."
        )
    return (
        f" A worker may have jobs at up to {jobs} establishments: about all of them together the odds move up to "
        f"{jobs * _steps(unit)} times as far."
    ) * (jobs > 1)


def _steps(unit: Unit) -> int:
    """The number of protected changes that change the kind or the employer in one job."""
    if isinstance(unit, Rows | Groups | AnyRow):
        return 1
    return unit.exchange if isinstance(unit, Establishments) else 2


def suspicions(unit: Unit, epsilon: float, jobs: int | None = 1) -> Table:
    """The most that all releases reveal about one protected change, and about one worker exchanged for another."""
    several = 1 if jobs is None or isinstance(unit, Rows | Groups | AnyRow) else jobs
    steps = sorted({1, several * _steps(unit)})
    reached = "can become sure, from all releases, to at most"
    whose = "the kind or employer in one job" if jobs is None else "a worker's kind or employer"
    whose = f"all up to {several} jobs of one worker together" if several > 1 else whose
    return Table(
        ("Somebody who was sure to", reached, f"or, of {whose}, to at most")[: 1 + len(steps)],
        [(percent(p), *(percent(posterior(p, n * epsilon), up=True) for n in steps)) for p in PRIORS],
        "The guarantee in plain words: suspicions about one protected change, before and after",
        "suspicions",
    )
