"""Odd worlds: data, plans and accidents drawn by chance, and the promises that hold in each of them.

A shape of data that somebody thinks of is taught to one place here, and every door goes through it.

names       what a column may be called
codes       what stands for a category
world       a whole world as a value: drawn from a seed, printed as a script that repeats it
data        its rows, and what is true about them
frames      its rows as files, and as frames of every kind
plan        its plan, its schema and the options of the commands
way         the whole way through the product, and what became of it
planned     plans of models and posterior summaries, the whole way
invariants  what holds in every world
forged      releases with one thing changed
accidents   kills, full disks, locks, moved ledgers, clocks
shrink      a plainer world with the same fault
found       worlds that a fault was found in
run         thousands of worlds: `make fuzz`
"""
