"""Counts of jobs by place, industry and worker: the cells, the noise of each, and the published table.

`cells` asks the engine for the statistics that mechanisms work on; `calibration` and `mechanisms` turn a count into a
published count.

advice          which tables to draw and what share of epsilon each gets, so that the total error is least
allotment       units of epsilon, handed out to tables where they take off most error
amounts         sums of a declared magnitude: what is refused, and what is promised
attributes      what is asked of a table, checked without data
attacks         what a published table reveals: the three attacks of Haney et al. (2017, section 5.2) as code
changes         levels of several quarters and what changed between them: a question about job histories
consistency     tables of one release made to agree, in non-negative integers: post-processing that costs nothing
derived         tables that are sums of one that was drawn
counsel         advice on a budget from what is public, or why there is none
ends            quantiles of noise and the ends of intervals, rounded outward
establishments  every establishment's own histogram of workers
expected        the reported expected error of published integers
flow_cells      the four kinds of jobs, jobs created and the largest workforces of every cell, in one query
flow_noise      noise for all flows of a quarter under one epsilon
flow_release    published flows of a quarter, their rates and intervals
flows           accessions, separations, jobs created and destroyed: a question about job histories
foresight       how far off a table is expected to be at every epsilon, on cells whose sizes are public
grouping        establishments grouped by cell: their number, sums, the largest and the second largest
infusion        input noise infusion
intervals       how far off a published count may be, without revealing the confidential scale of its noise
ladder          a table of integer noise for small cells, checked inequality by inequality
likelihood      what a table typically reveals about the size of an establishment
limits          the least mean error that any noise can have under a definition
mean            the mean of a magnitude per job, as a sum over a count
mechanisms      how a count becomes a published count: one file for each mechanism
movement        what flows and changes between quarters have in common when they are published
nested          bounds that tables of one release give each other, which make intervals narrow
pace            the least scale of noise that keeps pace with growth, in whole workers
order           the order of cells, the same from every engine
prepared        A query before it is drawn, what one draw gives, and what is reported before it is paid for
public_sizes    a public table of sizes
quality         how much of a published count is noise
query           A question about counts: checked without reading confidential data, then released through the account
ranking         rankings of workplace cells, and how far two of them agree
release         A published table of counts: everything in it may be shown to anybody
releases        the tables of one release together, in the shape of every result
reopened        a released table opened again, with ends at any level
shrinkage       published counts of worker kinds drawn towards the shape of their group
sizes           how large each cell's largest establishment is, published with noise of its own
two_sizes       the least error of noise that depends on the two largest establishments of a cell
widths          the widths of intervals before anything is paid
workload        several tables in one release: one ledger line, an explicit split, and totals that add up
"""
