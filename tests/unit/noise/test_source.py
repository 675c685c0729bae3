"""Sources of random words."""

from __future__ import annotations

import numpy as np

from discreet.noise.source import SeededSource, SystemSource


def test_system_words_are_private_and_never_repeat():
    source = SystemSource()
    words = np.concatenate([source.words(5000), source.words(5000), SystemSource().words(5000)])
    assert source.private
    assert words.dtype == np.uint64
    # Two of 15,000 random words coincide with probability 6e-12.
    assert np.unique(words).size == words.size
    assert source.words(0).size == 0


def test_system_source_holds_nothing_a_fork_could_share():
    assert vars(SystemSource()) == {}


def test_seeded_words_repeat_and_are_not_private():
    first, second = SeededSource(42), SeededSource(42)
    assert not first.private
    start, rest = first.words(3), first.words(4)
    np.testing.assert_array_equal(np.concatenate([start, rest]), second.words(7))
    assert not np.array_equal(SeededSource(43).words(7), SeededSource(42).words(7))
    assert start.dtype == np.uint64


def test_every_bit_of_a_word_is_used():
    for source in [SystemSource(), SeededSource(1)]:
        words = source.words(4000)
        share = [np.mean(words >> np.uint64(b) & np.uint64(1)) for b in range(64)]
        # Standard error 0.0079: nine of them.
        assert np.abs(np.array(share) - 0.5).max() < 0.071
