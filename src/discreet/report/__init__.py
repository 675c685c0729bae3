"""Reports: what a release, a fit or an audit says to people, put together from `pages`.

Nothing here computes a statistic or draws noise.

agency      a release beside the agency's own table
alarms      changes between two releases that are beyond their noise
belief      what can be believed about an establishment's size, before and after a release
budget      what the budget of a data set paid for
comparison  errors of a release beside those of noise infusion, on simulated data of the release's shape
counts      what the report says about the numbers of one table as they were drawn
diagnostics the page of a plain mixed fit, for those who hold the data
estimates   what it shows of a model or of posterior summaries
flags       what flags of answers mean, and what answers do not say
flows       what it shows of flows of a quarter
protection  whom a release protects, in plain words
quarterly   what it shows of changes between quarters
release     the report on a release
requirements  the Tables paper's requirements by scheme, as a page
shown       a published table as its readers see it
"""
