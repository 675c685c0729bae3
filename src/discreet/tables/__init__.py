"""Counts of jobs by place, industry and worker: the cells, the noise of each, and the published table.

`cells` asks the engine for the statistics that mechanisms work on; `calibration` and `mechanisms` turn a count into a
published count.

amounts         sums of a declared magnitude: what is refused, and what is promised
attributes      what is asked of a table, checked without data
baseline        noise infusion, and the attacks on it
budget          a budget divided among tables
consistency     tables of one release made to agree, in non-negative integers: post-processing that costs nothing
derived         tables that are sums of one that was drawn
expected        the reported expected error of published integers
grouping        establishments grouped by cell: their number, sums, the largest and the second largest
intervals       how far off a published count may be
likelihood      what a table typically reveals about the size of an establishment
mean            the mean of a magnitude per job, as a sum over a count
mechanisms      how a count becomes a published count: one file for each mechanism
movement        flows of a quarter and changes between quarters
optimal         the least noise that a definition allows, and laws solved from it
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
workload        several tables in one release: one ledger line, an explicit split, and totals that add up
"""
