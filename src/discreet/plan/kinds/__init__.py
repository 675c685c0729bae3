"""The kinds of releases that a plan can ask for, each one value that answers for itself.

kind        what every kind answers
registry    the kind of every section of a plan
counts      counts of jobs and sums of magnitudes, in one table or several
flows       flows of a quarter and changes between quarters, from job histories
of_jobs     what tables of jobs have in common
of_rows     what models and posterior summaries have in common: they are about rows
models      estimates of mixed models
posteriors  posterior summaries
recomputed  what follows from published numbers, computed again for a reviewer
columns     columns of two tables, compared whatever their types
numbers     the published numbers that alarms compare, with their ends
alarms      which published numbers changed between two releases by more than their noise can explain
"""
