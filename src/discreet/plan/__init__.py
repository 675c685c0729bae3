"""Plans: everything a release needs, written down in one TOML file before any data are read.

document  the text, and on which line each key is
shape     what a plan may hold
faults    what is wrong, in our words, all of it together
requests  a plan's releases as queries that are ready to be priced and drawn
sizes     what is publicly known about the cells, for the expected error
check     what a plan would cost and how far off it would be; reads no confidential data
folders   the account whose releases are folders of files
outputs   the forms in which a release is published
run       carry a plan out, resumably
bundle    what a reviewer gets, and its verification
"""

from __future__ import annotations
