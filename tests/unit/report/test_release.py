"""The release report: ranks that intervals allow, the arithmetic of suspicions, words for every unit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.jobs import WEAKLY
from discreet.pages.page import Heading, Note, Prose, Table
from discreet.pages.ranked import Ranked
from discreet.privacy.assurance import Assurance, Claim, whom
from discreet.privacy.distance import distance
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.identification import posterior
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import EstablishmentNodes, Establishments, Rows, Workers
from discreet.report.comparison import Group, SimulatedErrors
from discreet.report.counts import _rank_ranges
from discreet.report.flags import LIMITS
from discreet.report.protection import suspicions
from discreet.report.release import (
    DataSet,
    Facts,
    Release,
    Results,
    TableOfCounts,
    page,
    percent,
)
from discreet.report.shown import ShownTable
from discreet.tables.expected import ByLargest
from discreet.tables.release import CountRelease

UNIT = Establishments("0.1")
PROVED = Guarantee(UNIT, Pure(1), basis="proved", proof="docs/proofs/polynomial.md")


def claim(of: Guarantee = PROVED, **changes: Any) -> Claim:
    return Claim.of(replace(of, **changes), release="jobs", dataset="data")


def said(unit: Any, epsilon: float = 1, jobs: int | None = 1) -> Assurance:
    return Assurance.of_definition(unit, Pure(epsilon), jobs=jobs)


def table(counts: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> CountRelease:
    kinds = counts.shape[1]
    keys = pa.table({"place": [f"P{i}" for i in range(len(counts))]})
    levels = tuple((i,) for i in range(kinds)) if kinds > 1 else ((),)
    by = ("kind",) if kinds > 1 else ()
    return CountRelease(keys, by, levels, counts, lower, upper, 0.95, Guarantee(UNIT, Pure(1)))


def facts(part: CountRelease, *, total: object = None, comparison: SimulatedErrors | None = None) -> Facts:
    loss = Pure(1)
    results = Results(counts=[TableOfCounts(part, "polynomial (tight)", loss, ByLargest({1: 0.5}), comparison)])
    release = Release("jobs", "", loss, claim(loss=loss), 2, "today", results, {"basic.csv": "ab"})
    whole = total or Pure(4)
    return Facts("", [DataSet("data", UNIT, whole, whole - loss, [release])], "cd", "0")


def with_(known: Facts, **changes: object) -> Facts:
    """The facts with other ones of their data set."""
    return replace(known, datasets=[replace(known.datasets[0], **changes)])


def test_rank_ranges_by_brute_force() -> None:
    """The best and worst rank over all truths inside the intervals, found by placing each cell at its own ends."""
    rng = np.random.default_rng(5)
    lower = rng.integers(0, 50, 30).astype(float)
    upper = lower + rng.integers(0, 30, 30)
    best, worst = _rank_ranges(lower, upper)
    for i in range(30):
        others = [j for j in range(30) if j != i]
        assert best[i] == 1 + sum(lower[j] > upper[i] for j in others)
        assert worst[i] == 1 + sum(upper[j] >= lower[i] for j in others)


def test_suspicions_follow_the_odds() -> None:
    """Bayes: odds of 1 to 9, multiplied by e^ln(9), are even."""
    assert posterior(0.1, np.log(9)) == pytest.approx(0.5)
    assert posterior(0.5, 1e6) == 1.0


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (UNIT, "10\u00a0%"),
        (Establishments("0.1", "weak"), "of any kind and of any kinds together"),
        (Workers(), "Take any job"),
        (EstablishmentNodes(1000), "at most 1,000 workers"),
        (Rows(0, 1), "any one row"),
    ],
)
def test_plain_words(unit: object, words: str) -> None:
    assert words in whom(unit, 1)


def test_the_weak_promise_is_about_kinds_together_and_not_about_size_to_everybody() -> None:
    """One more of each of two kinds of five is two steps; so are many more of a rare kind, for who knows the rest."""
    weak = Establishments("0.1", "weak")
    assert distance(weak, (5, 5), (6, 6)) == 2 and distance(weak, (100, 1), (100, 3)) == 2
    for words in (whom(weak, 1), str(weak), WEAKLY):
        assert "kinds together" in words
    assert "neither how large" in whom(UNIT, 1)
    assert "neither how large" not in whom(weak, 1) and "rare kind may learn it" in whom(weak, 1)


@pytest.mark.parametrize("unit", [UNIT, Establishments("0.1", substitution=True), Workers(), EstablishmentNodes(1000)])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_all_jobs_of_a_worker_move_the_odds_further(unit: Any, most: int) -> None:
    """At epsilon 1 somebody undecided reaches 1 / (1 + e^-n) about a worker whose jobs are n steps."""
    steps = most * (1 if getattr(unit, "substitution", False) else 2)
    shown = suspicions(said(unit, 1, most))
    told = float(str(shown.rows[-1][-1]).split("\u00a0")[0])
    assert told >= 100 / (1 + np.exp(-steps)) >= told - 0.1
    assert (f"up to {most} jobs" in shown.columns[-1]) is (most > 1)
    words = whom(unit, most)
    assert (f"up to {most} establishments" in words and f"{steps} times as far" in words) is (most > 1)


@pytest.mark.parametrize("unit", [UNIT, Establishments("0.1", substitution=True), Workers(), EstablishmentNodes(1000)])
def test_without_a_bound_only_one_job_is_spoken_of(unit: Any) -> None:
    assert "about all jobs of a worker together nothing is promised" in whom(unit, None)
    assert "a worker's" not in " ".join(suspicions(said(unit, 1, None)).columns)
    assert "kind or employer in one job" in suspicions(said(UNIT, 1, None)).columns[-1]


def test_noise_on_sizes_is_spoken_of_where_sizes_were_paid_for() -> None:
    one = np.array([[5], [900]])
    known = facts(table(one, one - 3.0, one + 3.0))
    assert "largest establishment of every cell, exactly" not in page(known).html()
    (release,) = known.releases
    sized = replace(release.results, counts=[replace(release.results.counts[0], sized=True)])
    html = page(with_(known, releases=[replace(release, results=sized)])).html()
    assert "added to every count and the size of the largest establishment of every cell, exactly" in html


def test_ranks_are_shown_for_single_counts_only() -> None:
    one = np.array([[5], [900]])
    shown = page(facts(table(one, one - 3.0, one + 3.0))).tables["jobs-ranking"]
    assert shown.columns == ("Rank", "Place", "Possible ranks")
    assert shown.rows[0] == (1, "P1", "1\u00a0to\u00a01")
    two = np.array([[5, 6], [9, 9]])
    assert "jobs-ranking" not in page(facts(table(two, two - 3.0, two + 3.0))).tables


@pytest.mark.parametrize(
    ("share", "up", "words"),
    [
        (0.069441, True, "6.95"),
        (0.95, False, "95"),
        (0.99995, False, "99.995"),
        (0.9999966, True, "99.9997"),
        (1 - 2**-50, True, "100"),
        (1 - 2**-50, False, "99.999999999"),
        (1.5, False, "150"),
    ],
)
def test_a_percentage_never_reads_as_certainty(share: float, up: bool, words: str) -> None:
    """And its sign stays on the line of the number."""
    assert percent(share, up=up) == f"{words}\u00a0%"


def test_no_percent_sign_starts_a_line() -> None:
    one = np.array([[5], [900]])
    groups = (Group("1 to 9", 10, 4.0, 0.5, 0.25),)
    found = SimulatedErrors(20, 25, Group("all", 20, 22.0, 0.75, 2.125), groups, "", (), 0.99, 0.98)
    known = facts(table(one, one - 3.0, one + 3.0), comparison=found)
    promised = with_(known, releases=[replace(known.releases[0], claim=claim())])
    html = page(promised).html()
    assert "at most 10\u00a0% or one worker" in html
    assert not re.search(r"\d %[^;{]", html[html.index("<body") :])


def test_every_count_is_in_the_table_of_intervals() -> None:
    """Noise makes small counts negative; they are published too."""
    counts = np.array([[-1], [-3], [0], [5], [12], [400], [5_000], [10**6]])
    rows = page(facts(table(counts, counts - 3.0, counts + 3.0))).tables["jobs-intervals"].rows
    assert rows[0] == ("below 0", 2, 6.0)
    assert sum(row[1] for row in rows) == counts.size


def test_intervals_after_truncation_are_not_of_all_jobs() -> None:
    counts = np.array([[5], [900]])
    nodes = replace(table(counts, counts - 3.0, counts + 3.0), guarantee=Guarantee(EstablishmentNodes(200), Pure(1)))
    shown = page(with_(facts(nodes), unit=EstablishmentNodes(200)))
    words = "hold the true count without establishments of more than 200 workers with"
    assert words in shown.tables["jobs-intervals"].caption
    assert "An interval holds the true count without establishments of more than 200" in shown.html()
    usual = page(facts(table(counts, counts - 3.0, counts + 3.0)))
    assert "hold the true count with" in usual.tables["jobs-intervals"].caption


def test_what_has_to_be_known_about_errors_is_said() -> None:
    one = np.array([[5], [900]])
    known = facts(table(one, one - 3.0, one + 3.0))
    part = replace(known.releases[0].results.counts[0], notes=["Errors are before rounding."])
    noted = with_(known, releases=[replace(known.releases[0], results=Results(counts=[part]))])
    assert "Errors are before rounding." in page(noted).html()


def told(expected: ByLargest) -> tuple[str, list[tuple[object, ...]]]:
    """The words before the table of expected errors, and its rows."""
    one = np.array([[5], [900]])
    known = facts(table(one, one - 3.0, one + 3.0))
    part = replace(known.releases[0].results.counts[0], expected=expected)
    shown = page(with_(known, releases=[replace(known.releases[0], results=Results(counts=[part]))]))
    words = next(block.text for block in shown.blocks if isinstance(block, Prose) and "Mechanism" in block.text)
    return words, list(shown.tables["jobs-expected-error"].rows)


def test_errors_that_are_the_same_everywhere_have_one_row() -> None:
    words, rows = told(ByLargest(dict.fromkeys((1, 10, 100), 1.919), follows="nothing"))
    assert rows == [("any", 1.92)]
    assert "the same for every count" in words
    assert "confidential" not in words


def test_upper_bounds_are_marked_and_rounded_up() -> None:
    words, rows = told(ByLargest({1: 0.5, 10: 0.5, 10_000: 5047.2}, frozenset({10_000}), "left out"))
    assert rows == [("1 to 10", 0.5), ("10,000", "at most 5,050")]
    assert "jobs of establishments that are left out add to this error" in words
    assert "depends on the largest establishment" in told(ByLargest({1: 0.5}))[0]
    assert "grows with the count" in told(ByLargest({1: 0.5}, follows="count"))[0]


def test_a_report_without_counts_says_nothing_of_counts() -> None:
    """What is said instead comes from the kind of release."""
    answers = [
        Release(kind, "", Pure(1), claim(), 2, "today", Results(answers=[Prose("x")], limits=[limit]), {})
        for kind, limit in LIMITS.items()
    ]
    blocks = page(Facts("", [DataSet("data", Rows(0, 1), Pure(4), Pure(0), answers)], "cd", "0")).blocks
    start = next(i for i, block in enumerate(blocks) if block == Heading("What this does not promise"))
    said = blocks[start + 1].text
    assert "count " not in said.replace("counts what its ledger", "") and "add up unless" not in said
    assert said.count("the answer of all rows at once") == 1  # once for probabilities and quantiles
    assert "Standard errors of a model include the noise" in said and "holds its coefficient" in said
    one = np.array([[5], [900]])
    usual = page(facts(table(one, one - 3.0, one + 3.0))).html()
    assert "An interval holds the true count" in usual and "need not add up" in usual
    nothing = np.full(one.shape, np.nan)
    bare = page(facts(table(one, nothing, nothing))).html()
    assert "An interval holds" not in bare and "each with an interval" not in bare and "need not add up" in bare


def test_what_must_be_read_first_stands_first() -> None:
    results = Results(answers=[Prose("x")], flagged=["**m, variance of g: not found.** Nothing was seen."])
    known = Facts("", [DataSet("data", Rows(0, 1), Pure(4), Pure(0), [])], "cd", "0")
    release = Release("m", "", Pure(1), claim(), 2, "today", results, {})
    assert page(with_(known, releases=[release])).blocks[0] == Note("warning", f"- {results.flagged[0]}")
    silent = replace(release, results=replace(results, flagged=()))
    assert page(with_(known, releases=[silent])).blocks[0].kind == "in short"


def test_the_summary_says_what_it_cost() -> None:
    one = np.array([[5], [900]])
    html = page(facts(table(one, one - 3.0, one + 3.0))).html()
    assert "2 counts in 1 table, each with an interval" in html
    assert "All releases cost epsilon=" in html


def test_many_releases_share_the_last_part_of_the_bar() -> None:
    one = np.array([[5], [900]])
    first = facts(table(one, one - 3.0, one + 3.0)).releases[0]
    many = [replace(first, name=f"r{i}", loss=Pure(1)) for i in range(9)]
    drawn = page(Facts("", [DataSet("data", UNIT, Pure(10), Pure(1), many)], "cd", "0")).figures["budget-used"].data
    assert sum(row[1] for row in drawn.rows) == 10
    assert len(drawn.rows) == 6


def test_tables_without_intervals_say_so() -> None:
    one = np.array([[5], [900]])
    nothing = np.full(one.shape, np.nan)
    html = page(facts(table(one, nothing, nothing))).html()
    assert "Nothing public bounds" in html


def test_an_approximate_budget_has_no_table_ofsuspicions() -> None:
    one = np.array([[5], [900]])
    shown = page(facts(table(one, one - 3.0, one + 3.0), total=Approximate(4, "1e-6")))
    assert "suspicions" not in shown.tables
    assert "budget" in shown.tables


def test_other_releases_of_the_same_data_are_counted() -> None:
    one = np.array([[5], [900]])
    known = facts(table(one, one - 3.0, one + 3.0))
    spent = Facts("", [DataSet("data", UNIT, Pure(4), Pure("0.5"), known.releases)], "cd", "0")
    rows = page(spent).tables["budget"].rows
    assert ("other releases of the same data", "epsilon=2.5", None, None) in rows
    assert rows[-1][:2] == ("left", "epsilon=0.5")


def test_a_seeded_release_is_warned_about() -> None:
    one = np.array([[5], [900]])
    known = facts(table(one, one - 3.0, one + 3.0))
    seeded = replace(known.releases[0], claim=claim(private=False))
    html = page(Facts("", [DataSet("data", UNIT, Pure(4), Pure(3), [seeded])], "cd", "0")).html()
    assert "the noise was seeded" in html and "sure" not in html


def test_comparisons_are_drawn_together() -> None:
    groups = (Group("1 to 9", 10, 4.0, 0.5, 0.25), Group("10 to 99", 10, 40.0, 1.0, 4.0))
    found = SimulatedErrors(20, 25, Group("all", 20, 22.0, 0.75, 2.125), groups, "sector", groups, 0.99, 0.98)
    one = np.array([[5], [900]])
    shown = page(facts(table(one, one - 3.0, one + 3.0), comparison=found))
    assert "a ratio of 0.35" in shown.html()
    drawn = shown.figures["error-by-size"].data
    assert isinstance(drawn, Table)
    assert [row[1] for row in drawn.rows] == [2.0, 0.25]
    assert "error-by-stratum" in shown.figures


@pytest.mark.parametrize(
    ("upper", "words"), [([9.0, np.inf], "with intervals of"), ([np.inf] * 2, "without intervals")]
)
def test_a_caption_promises_no_intervals_where_there_are_none(upper: list[float], words: str) -> None:
    counts = np.array([[7], [3]])
    part = table(counts, np.zeros((2, 1)), np.array(upper)[:, None])
    (ranked,) = (block for block in ShownTable.as_drawn(part).cells("A") if isinstance(block, Ranked))
    assert words in " ".join(ranked.caption.split())
