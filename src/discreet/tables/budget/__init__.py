"""A budget divided among tables, from public numbers alone.

division   which tables to draw and what share of epsilon each gets, so that the total error is least
allotment  units of epsilon, handed out to tables where they take off most error
errors     how far off a table is expected to be at every epsilon, on cells whose sizes are public
advice     advice on a budget from what is public, or why there is none
"""
