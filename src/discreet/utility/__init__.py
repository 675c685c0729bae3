"""How useful is what was published? Errors against today's practice, strata of places, changes between releases and
the flags that they raise.

Rankings are in `discreet.tables.ranking`. Everything here compares with the truth or with another table, so it is for
those who hold both: a result is not a release.
"""
