"""Plans: everything a release needs, written down in one TOML file before any data are read.

document      the text, and on which line each key is
starter       a first plan for somebody's own table, from what its owner declares
joined        plans of one source each as one plan of several
declared      roles of columns written into a plan that is there
source        one confidential source: what its tables may hold
shape         what a plan may hold
values        what a single value of a plan may be
file          a plan with its text, and each of its sources
engine        what computes its aggregates, opened for a check or a run
reading       a plan from its file, or everything that is wrong with it
blame         the key of a plan that a fault is about, which a function found that plans call
confidential  the data it is about
kinds         the kinds of releases: counts, flows, models, posterior summaries, and alarms between them
sizes         what is publicly known about the cells, for the expected error
rules         what the basic form leaves out by a rule of the agency
requests      all releases of a plan, ready to be priced, read and drawn
changed       a release that was paid for with other settings
advice        how to divide the epsilon of releases of several tables
budgets       what the ledger says about the plan's data sets, and what its releases would spend
folder        whether releases can go where the plan puts them
check         what a plan would cost and how far off it would be; reads no confidential data
repeats       what it asks for a second time
outputs       the files of a release and what they say about themselves
sheets        Excel files of a release, for people
run           carry a plan out, resumably
room          the room that tables need in the memory of Spark
spent         what an interrupted run had spent
same_data     whether the data stay what they are, while they are read and until a run is resumed
doors         plans from Python, by the name of their file
agency        a public table of the agency: read before anything is paid, and matched with cells of a release
agency_comparison  its numbers, kept in the release's folder and compared with those of the release
readers       the tables of a release, read from its folder: as drawn, and as its readers see them
comparison    errors beside noise infusion, on simulated data of a release's shape
curves        error over epsilon and alpha beside noise infusion, on simulated cells
facts         what the report says
bundle        what a reviewer gets
copies        sources that hold the same rows under two budgets, for the owner alone
owner    what the owner of a plan's data should know before it is run: read from the data, and no part of any release
"""

from __future__ import annotations

from discreet.words.extras import needs

with needs("plan", "A plan"):
    import pydantic as _  # noqa: F401
