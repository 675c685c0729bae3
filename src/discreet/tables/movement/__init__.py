"""Jobs that move: flows of a quarter and changes between quarters.

flows         accessions, separations, jobs created and destroyed: a question about job histories
flow_cells    the four kinds of jobs, jobs created and the largest workforces of every cell, in one query
flow_noise    noise for all flows of a quarter under one epsilon
flow_release  published flows of a quarter, their rates and intervals
changes       levels of several quarters and what changed between them: a question about job histories
published     what flows and changes have in common when they are published
"""
