"""A router for each page of the desk.

api        the desk for programs: what the pages show, as JSON, described at /api/openapi.json
changes    large changes: between two releases, or an exception report on a panel that somebody sends
data       data: what is public about each source, and new sources. No value of the data is shown here
entrance   coming in and going out: the link that is printed once, or a name with its password
exceptions an exception report or a backtest that was made here, and its files
ledger     ledger and audit log: what was spent, who did what, and that nobody has touched either book
models     models
overview   the first page: what is left of each budget, what waits for whom, what was published last
people     people: who has an account, its end, and its return. The command line adds them, and asks for their passwords
plans      plans: the list, the form, and the estimate that moves with it. Everything works without the script
releases   releases
review     review: the plan as text, its cost, its guarantee in words; and the decision
runs       runs: start, watch, resume. The page shows what the worker wrote; it can be reloaded, left and come back to
utility    risk and utility
"""
