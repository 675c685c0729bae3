"""The way out of the package: offers, and the one door for noise.

`offer` is a release before it is paid for; `account`, a data set's budget and the only way to its noise; `known_data`,
the owner's note of the data that have a budget, by which copies are recognised; `payer`, who pays where a function
takes the keywords for it; `question`, a release that was asked for without data, and the function that users call for
it; `canonical`, the bytes of a released value, whose hash the ledger keeps; `code`, the hash of the code that computes;
`files`, a release's files and what they say of themselves; `tables`, one table in a file; `trial`, tables of others
read in little memory; `folder`, a release as it lies in its folder, opened and compared with its own list; `alarms`,
what a plan keeps beside its releases about changes between them.
"""
