"""Pages and charts for people: one offline HTML file from text, tables and figures.

`page` holds the blocks and the page, `charts` the forms that studies share, `numbers` how a value is printed and
`svg` how a chart becomes a picture. Nothing here computes a statistic or draws noise.

agency      a release beside the agency's own table
alarms      changes between two releases that are beyond their noise
axis        where a number stands on an axis, and which are written beside it
bar         one bar made of the parts of a whole
belief      what can be believed about an establishment's size, before and after a release
budget      what the budget of a data set paid for
carried     what a page carries for programs, in its head
changes     reports on large changes: comparisons of forecasts, exception reports, backtests
comparison  errors of a release beside those of noise infusion, on simulated data of the release's shape
counts      what the report says about the numbers of one table as they were drawn
diagnostics the page of a plain mixed fit, for those who hold the data
estimates   what it shows of a model or of posterior summaries
flags       what flags of answers mean, and what answers do not say
flows       what it shows of flows of a quarter
look        colours, dashes and sizes that all pictures share
plot        curves and bars of releases' reports, drawn without a chart engine
protection  whom a release protects, in plain words
quarterly   what it shows of changes between quarters
ranked      estimates with intervals as a table that is its own chart
release     the report on a release
requirements  the Tables paper's requirements by scheme, as a page
shown       a published table as its readers see it
study       numbers for machines, a page for people, and one directory that holds both
"""
