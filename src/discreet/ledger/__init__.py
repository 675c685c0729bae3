"""What was spent: an append-only, hash-chained record of privacy losses, with one budget per data set and unit.

`entries` is one sealed line, `budget` what is left and whether a loss fits, `periods` what each quarter of a series may
spend, `openings` whether a data set has a budget by another name, `people` the names that lines have, `claims` what
charges state of their releases, `chain` the proof that nothing was changed, `anchors` lines that are known outside of
the ledger, so that a lost one is noticed, `desk_anchors` those in a desk's database, `loss` how a loss is declared,
`store` the database (SQLite or PostgreSQL), `book` the ledger itself, `digest` equal for equal declarations, `draws`
the numbers by which one charge pays for one draw, `publication` the order of steps that lets a release survive a crash,
`lock` how processes wait for each other. A ledger holds names, losses and public parameters; never data.
"""

from __future__ import annotations

from discreet.ledger.book import Ledger
from discreet.ledger.budget import Budget
from discreet.ledger.chain import ChainVerdict
from discreet.ledger.entries import Entry, Head
from discreet.ledger.periods import Dates, Period, Policy
from discreet.ledger.publication import release_once

__all__ = ["Budget", "ChainVerdict", "Dates", "Entry", "Head", "Ledger", "Period", "Policy", "release_once"]
