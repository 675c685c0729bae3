"""The `discreet` command: a thin screen over the package, with no algorithm of its own.

Exit codes: 0 done, 1 the work failed or a claim was refuted, 2 the request was wrong and nothing was done.
Each file beside this one is one command or one group of commands.

announced        commands of other distributions, and of wings, by entry points
app              the command tree and the one place where errors become words and exit codes
audit            `discreet audit`: is the claim true? Verify a mechanism's loss exactly, or attack it as a black box
between          `discreet changes between`: counts of two private releases that changed by more than their noise
blackbox         `discreet audit blackbox`: attack a function of yours and bound its epsilon from below
columns          options that say which column of a table of jobs is what: the same for every command that reads one
data             `discreet data check`: what is wrong with a table, for its owner alone
demo             `discreet demo`: the main job, from nothing, in under a minute
faults           what is wrong with a request, for the machine that asked for JSON
fit              `discreet fit`: a linear mixed model from the command line, as it is or under differential privacy
identification   `discreet audit identification`: what a release lets an attacker find out, at most and in attacks
ledger           `discreet ledger`: what was spent, what may still be spent, and whether the book was changed
new_plan         `discreet plan new`: a first plan for one's own table, from what its owner declares
plan             `discreet check`, `run` and `verify`: price a plan, carry it out, check what a reviewer was given
posterior_audit  `discreet audit posterior`: what does one row show in the posterior of a mixed model?
publication      `discreet publish` and `site`: a release in the formats of agencies' sites, and as a site
requirements     `discreet audit requirements`: what an informed attacker can learn at most, by scheme
simulate         `discreet simulate`: data of the papers' shape and size, to Parquet, in a stream
synthesize       `discreet synthesize`: synthetic jobs that agree with a release
"""

from __future__ import annotations

import sys

from discreet.words.errors import MissingExtra
from discreet.words.extras import needs

USAGE = 2


def main() -> None:
    """Run the command line, or say which extra it is part of."""
    try:
        with needs("cli", "The command line"):
            from discreet.cli.app import main as run
    except MissingExtra as error:
        print(f"discreet: {error}", file=sys.stderr)
        sys.exit(USAGE)
    run()


__all__ = ["main"]
