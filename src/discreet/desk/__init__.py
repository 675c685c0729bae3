"""The release desk in a browser (extra `web`). It holds no algorithm: it writes plans and runs `discreet run` on them.

desk       the folder: what is configured, and where everything is
command    `discreet serve`
contradictions  settings that cannot be true together
example    a desk on simulated data
store      its database: accounts, sessions, plans, decisions, runs
audit_log  who did what, sealed line to line
accounts   passwords, roles, sessions
attempts   guesses at passwords, counted and checked
hosts      the names under which it is asked for
connections  how long a sender may take, and how many connections an address has
proxies    the proxies that speak TLS for it
forms      what may be sent where, and how it is read
security   what every request must pass and every response carries
sources    a source that is added at the desk, its data checked
filters    the lines of a form that keep some values
drafts     a plan as a form fills it in, and as TOML
turns      whose turn it is at heavy work
calculators  processes that compute what pages show, and can be ended
estimates  what a draft would cost and how far off it would be; reads no confidential data
runs       plans carried out by workers that outlive the server
book       the ledger as pages read it
budgets    budgets that two people raise
published  what the ledger and the published folders say
analyses   results of work that somebody asked for
planning   the life of a plan at the desk
rendering  pages from templates
uploads    files that somebody sends
tether     a process ends with the one that started it
worker     the process that carries a plan out
sandbox    work on uploads, in a process with limits
app        everything put together
pages      a router for each page
"""
