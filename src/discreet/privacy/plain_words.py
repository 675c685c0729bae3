"""Whom a definition protects, for a reader without mathematics. Only `assurance` asks, where something is promised."""

from __future__ import annotations

from typing import assert_never

from discreet.privacy.losses import shown
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Groups, Rows, Unit, Workers, is_weak


def plain_words(unit: Unit, jobs: int | None) -> str:
    """Whom the definition protects where a worker has so many `jobs` at most; None where nothing bounds them."""
    match unit:
        case Groups():
            return (
                f"Take any one {' and '.join(unit.by)}, and imagine that all responses of its rows had been others, or "
                "missing. The release would have come out much the same. Which rows these are, and how many, is public."
            )
        case Rows() | AnyRow():
            return (
                "Take any one row, and imagine its response had been another, or missing. The release would have come "
                "out much the same."
            )
        case Establishments():
            return f"{_sizes(unit)}{_several(unit, jobs)}"
        case Workers():
            return (
                "Take any job, and imagine it had not been there. The published tables would have come out the same "
                "with nearly the same probability. The size of a large establishment is **not** hidden."
                f"{_several(unit, jobs)}"
            )
        case EstablishmentNodes():
            return (
                f"Take any whole establishment of at most {unit.theta:,} workers, and imagine it had not been there. "
                "The published tables would have come out the same with nearly the same probability. Larger ones are "
                f"left out.{_several(unit, jobs)}"
            )
        case _:
            assert_never(unit)


def steps_of_one_job(unit: Unit) -> int:
    """The number of protected changes that change the kind or the employer in one job."""
    match unit:
        case Rows() | Groups() | AnyRow():
            return 1
        case Establishments():
            return unit.exchange
        case Workers() | EstablishmentNodes():
            return 2
        case _:
            assert_never(unit)


def by_jobs(unit: Unit) -> bool:
    """Whether the unit is about jobs, of which a worker may have several."""
    match unit:
        case Rows() | Groups() | AnyRow():
            return False
        case Establishments() | Workers() | EstablishmentNodes():
            return True
        case _:
            assert_never(unit)


def _sizes(unit: Establishments) -> str:
    share = f"{shown(unit.alpha * 100)}\u00a0%"
    strong = not is_weak(unit.strength)
    whom = "its whole workforce" if strong else "its workforce, of any kind and of any kinds together,"
    return (
        f"Take any establishment, and imagine that {whom} had been larger by up to {share}, or by one worker; or "
        "take the larger one, and imagine the smaller. The published tables would have come out the same with "
        "nearly the same probability. So nobody can tell, beyond the odds below, which of the two it was"
        f"{_size_to_all(share) if strong else _size_to_some(share)} {_exchange(unit)}"
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
        f"{jobs * steps_of_one_job(unit)} times as far."
    ) * (jobs > 1)
