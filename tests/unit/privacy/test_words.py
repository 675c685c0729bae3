"""Units, composition and guarantees say what the definitions say."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.composition import parallel, same_unit, sequential
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import EstablishmentNodes, Establishments, Rows, Workers
from discreet.words.errors import PrivacyError
from faults_of import about

STRONG, WEAK = Establishments(0.1), Establishments(0.1, "weak")


@given(st.integers(0, 10**6), st.fractions(Fraction(1, 100), 1, max_denominator=1000))
def test_largest_neighbour_is_the_definition(size: int, alpha: Fraction) -> None:
    top = Establishments(alpha).largest_neighbour(size)
    bound = max((1 + alpha) * size, size + 1)
    assert top <= bound < top + 1


@pytest.mark.parametrize("alpha", [0, -0.1, "x"])
def test_alpha_must_be_positive(alpha: object) -> None:
    with pytest.raises(PrivacyError, check=about("alpha")):
        Establishments(alpha)  # type: ignore[arg-type]


def test_other_units_refuse_nonsense() -> None:
    with pytest.raises(PrivacyError, check=about("strength")):
        Establishments(0.1, "medium")  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, check=about("theta")):
        EstablishmentNodes(0)
    with pytest.raises(PrivacyError, check=about("lower")):
        Rows(2, 2)


def test_keys_tell_units_apart() -> None:
    units = [STRONG, WEAK, Establishments(0.2), Workers(), EstablishmentNodes(10), Rows(0, 2)]
    assert len({unit.key for unit in units}) == len(units)
    assert Establishments("1/10").key == STRONG.key


def test_sequential_adds() -> None:
    assert sequential([Pure(1), Pure("1/2"), Approximate(0, "1e-6")]) == Approximate("3/2", "1e-6")


@pytest.mark.parametrize("unit", [STRONG, WEAK, Workers(), EstablishmentNodes(100)])
def test_distinct_establishments_cost_the_largest(unit: Establishments | Workers | EstablishmentNodes) -> None:
    assert parallel([Pure(1), Pure(2)], unit=unit, over="establishments") == Pure(2)


def test_distinct_workers_of_the_same_establishments() -> None:
    losses = [Pure(1), Pure(2)]
    assert parallel(losses, unit=Workers(), over="workers") == Pure(2)
    assert parallel(losses, unit=WEAK, over="workers") == Pure(3)
    assert parallel(losses, unit=STRONG, over="workers") == Pure(3)
    assert parallel(losses, unit=STRONG, over="workers", calibration="paper") == Pure(2)
    assert parallel(losses, unit=WEAK, over="workers", calibration="paper") == Pure(3)


def test_counter_example_to_the_papers_parallel_composition() -> None:
    """Randomised response on 'at least 1,000 men' and on 'at least 1,000 women', each exactly 1-private.

    1,998 workers growing to 2,000 is one strong step at alpha = 0.1, and it crosses both thresholds: the joint loss
    is 2, not max(1, 1), so the paper's claim for distinct workers is refuted by enumeration of all four outputs.
    """
    truth = {False: 1 / (1 + math.e), True: math.e / (1 + math.e)}

    def chance(men: int, women: int, output: tuple[bool, bool]) -> float:
        bits = (men >= 1000, women >= 1000)
        return math.prod(truth[bit == said] for bit, said in zip(bits, output, strict=True))

    before, after = (999, 999), (1000, 1000)
    assert sum(after) <= STRONG.largest_neighbour(sum(before))
    outputs = list(itertools.product([False, True], repeat=2))
    worst = max(abs(math.log(chance(*before, o) / chance(*after, o))) for o in outputs)
    assert worst == pytest.approx(2.0)


def test_alphas_do_not_mix() -> None:
    assert same_unit([STRONG, Establishments("0.1")]) == STRONG
    with pytest.raises(PrivacyError, check=about("unit")):
        same_unit([STRONG, Establishments(0.2)])


def test_a_guarantee_is_one_plain_sentence() -> None:
    text = str(Guarantee(STRONG, Pure(2), basis="proved", proof="docs/proofs/polynomial.md"))
    assert text.startswith("strong (alpha=0.1, epsilon=2)-employer-employee privacy: no event becomes more than 7.39")
    assert "10 % or one worker" in text and "proved (docs/proofs/polynomial.md)" in text
    assert "\n" not in text and text.endswith(".")


def test_a_claim_of_which_nothing_is_said_is_not_proved() -> None:
    assert Guarantee(STRONG, Pure(2)).basis == "as published" and "NOT PROVED" in str(Guarantee(STRONG, Pure(2)))


def test_a_seeded_release_says_it_is_not_private() -> None:
    assert str(Guarantee(STRONG, Pure(2), private=False)).startswith("NOT PRIVATE")


def test_notes_are_kept_and_stored() -> None:
    guarantee = Guarantee(Workers(), Approximate(1, "1e-6"), basis="as published").noted("rounded", "non-negative")
    stored = guarantee.to_dict()
    assert stored["notes"] == ["rounded", "non-negative"]
    assert str(guarantee.noted("shrunk")).endswith(". rounded. non-negative. shrunk.")
    assert stored["basis"] == "as published" and stored["loss"] == {"epsilon": "1", "delta": "1/1000000"}


def test_an_empirical_figure_has_no_words_of_differential_privacy() -> None:
    said = str(Guarantee(Rows(0, 1), Pure("0.01"), basis="empirical", notes=("It was measured",)))
    assert said.startswith("NO PROMISE: ") and said.endswith("It was measured.")
    assert "times as likely" not in said and "not differential privacy" in said and "0.01" in said
    seeded = str(Guarantee(Rows(0, 1), Pure("0.01"), basis="empirical", private=False))
    assert seeded.startswith("NOT PRIVATE") and "NO PROMISE" in seeded and "would have been" not in seeded
