"""How useful is what was published? Errors against today's practice, strata of places, changes between releases and
the flags that they raise.

Rankings are in `discreet.tables.ranking`. Everything here compares with the truth or with another table, so it is for
those who hold both: a result is not a release. Only `agency`, `between`, `discoveries`, `model_changes`, `paired`
and `stated` read nothing but published ones.

agency   a release beside the agency's own table: cells that it suppresses, differences by size, ranks
between  alarms from two private releases: which counts changed by more than their noise can explain
changes  which places changed most between two releases, and does a private pair of releases still say so?
discoveries  how surely each cell must have changed so that few of all alarms are false
errors   errors of published counts beside the errors of noise infusion, the measure of Haney et al
flags    do two private releases raise the flags that the truth would raise? Large changes as a measure of utility
model_changes  the same of two private models: which effects changed by more than noise and sampling can explain
model_curves  how well private fitted values follow a response, over epsilon, on data that are not confidential
paired   between which ends a change lies, from two published numbers whose noise is independent
stated   the numbers of published tables, and the level of their intervals
strata   the four kinds of place by population: results for large places say nothing about small ones
"""
