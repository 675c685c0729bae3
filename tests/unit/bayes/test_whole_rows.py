"""Under `AnyRow` a column of one data set is public or protected, in one request and over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow
from discreet.release.account import Account
from discreet.words.errors import PrivacyError
from faults_of import about

RNG = np.random.default_rng(1)
DATA = {name: RNG.integers(0, 2, 120) for name in ("y", "z", "x", "k")} | {"g": ["a", "b"] * 60}
SUMMARIES: dict[str, Callable[..., Any]] = {
    "probability": lambda f, c, **k: posterior_probability(f, DATA, c, at=0, epsilon=2, partitions=4, **k),
    "quantile": lambda f, c, **k: posterior_quantile(f, DATA, c, probability=0.5, epsilon=60, partitions=6, **k),
    "interval": lambda f, c, **k: posterior_interval(f, DATA, c, epsilon=60, partitions=6, **k),
    "perturbation": lambda f, c, **k: objective_perturbation(
        f, DATA, bounds=(0, 1), norm=3, penalty=10, epsilon=2, **k
    ),
}


def opened() -> Account:
    return Account.open(None, dataset="rows", unit=AnyRow(), budget=Pure(1000))


@pytest.mark.parametrize("door", SUMMARIES)
def test_the_response_is_not_public_in_its_own_request(door: str) -> None:
    for account in (None, opened()):
        for formula, coefficient in (("y ~ C(y)", "C(y)1"), ("y ~ g", "gb"), ("log(y) ~ g", "gb")):
            with pytest.raises(PrivacyError, check=about("public")):
                SUMMARIES[door](formula, coefficient, public=["g", "y"], account=account)
        assert account is None or account.remaining == Pure(1000)


@pytest.mark.parametrize("door", SUMMARIES)
@pytest.mark.parametrize("hidden", ["y", "x"])
def test_no_column_is_protected_and_public_in_turn(door: str, hidden: str) -> None:
    """Nor a number of the design, which whole rows protect too; one that was declared public may become levels."""
    first = ("y ~ x + k + g", "gb", {"public": ["g", "k"]})
    later = (f"z ~ C({hidden})", f"C({hidden})1", {"public": [hidden]})
    account = opened()
    note = SUMMARIES[door](first[0], first[1], **first[2], account=account).guarantee
    assert "the levels of k, g, which are not protected" in str(note)
    before = account.remaining
    for other in SUMMARIES:
        with pytest.raises(PrivacyError, check=about("public")):
            SUMMARIES[other](later[0], later[1], **later[2], account=account)
        with pytest.raises(PrivacyError, check=about("public")):  # before it tells whether there is a 7
            SUMMARIES[other](later[0], f"C({hidden})7", **later[2], account=account)
    assert account.remaining == before
    SUMMARIES[door]("z ~ C(k)", "C(k)1", public=["k"], account=account)
    account = opened()
    SUMMARIES[door](later[0], later[1], **later[2], account=account)
    with pytest.raises(PrivacyError, check=about("public")):
        SUMMARIES[door](first[0], first[1], **first[2], account=account)
    details = [entry.payload["details"] for entry in account.ledger.entries() if entry.kind == "charge"]
    assert [(each["response"], each["public"]) for each in details] == [(["z"], [hidden])]
