"""The reviewer: whether a bundle is what it says, from nothing but its own files. No confidential data are read.

tables     the bundle's tables, read in a process of limited memory
lines      the ledger's lines of a bundle, with seals and sums checked
constants  mechanisms made again from the constants that the bundle states
rebuild    the plan behind a bundle, priced again
books      Excel files, made again and compared
recompute  the tables, checked against each other
verdict    all checks, and what they found
"""

from discreet.words.extras import needs

with needs("plan", "The review of a bundle"):
    import pydantic as _  # noqa: F401
