"""Private releases of linear mixed models.

`release_mixed` is the door and `PrivateFit` the answer; `separation_rate` derives a fourth rate from three. Names load
on first use.

arrow        the restricted likelihood of noisy sums of any random terms
assembled    from estimates to a `PrivateFit`: names, order, flags and notes
bounds       where responses lie, as somebody states it, read as exact numbers
check        how far off a private model is expected to be, from the public design and the noise alone
estimation   estimates from noisy sums: variances by restricted likelihood, the residual's by a noisy sum of squares
expected     standard errors that a release will have, known before it is paid for
generalised  private models of shares and counts, from the same noisy sums
identity     separations from the identity JCR - JDR = AR - SR: three private models give a fourth for nothing more
informative  random effects that go with the public sizes of their groups: an estimate that allows for it
lag_estimation  coefficients of lags from noisy sums, corrected for noise
lag_release  a model with lags as an offer: what it reads, draws and is expected to err by
lag_noise    noise for a model with lags of its own response, under one loss
lag_sums     sums in which a response stands in its own row and, as a lag, in later rows
look         a private look at how far groups differ, which decides whether sums by group are drawn
moments      `method="moments"`
noisy        the restricted likelihood of noisy sums
notes        what a reader of private estimates should know of them
offers       a private model that was asked for, as an offer: by noisy sums, or by blocks of the rows
owner        the owner's own look at the data, before a release and outside of it: what a release must not say
owners_note  what the owner is told, with the rows that it is about
panel        which earlier rows of its series every row has, from public columns
paper        `method="paper"`: sub-sample and aggregate with bias correction, as the documents publish it
partition    random disjoint blocks of the rows, and the estimates of every block
public       what everybody may know of a mixed model
reach        what one protected row, or group of rows, can change in each sum
release      `release_mixed`, the door to private mixed models: from a formula and confidential data to a public fit
request      what a private release of a mixed model is asked for, checked before any data are read
result       `PrivateFit`: what a private release of a mixed model lets everybody see. Nothing confidential is in it
shares       which share of the loss each sum of a model gets, from the public design alone
slopes       what a model without random slopes supposes of columns that vary within groups
strict       `method="strict"`: sub-sample and aggregate, proved for the whole release
sums         sums of a confidential response as exact integers
term_estimation  variances and correlations of any random terms from noisy sums
term_release  a model with random slopes or crossed factors as an offer
terms        random slopes and crossed factors: which sums they need
text         A private fit as a table, as text and as plain values
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.models.linear.private.identity import separation_rate
    from discreet.models.linear.private.release import release_mixed
    from discreet.models.linear.private.result import PrivateEffects, PrivateFit

_HOME = {
    "PrivateEffects": "result",
    "PrivateFit": "result",
    "release_mixed": "release",
    "separation_rate": "identity",
}
__all__ = ["PrivateEffects", "PrivateFit", "release_mixed", "separation_rate"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.models.linear.private.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
