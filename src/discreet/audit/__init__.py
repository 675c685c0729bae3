"""Is a privacy claim true? `blackbox` attacks any function by its outputs alone; what it finds is no proof.

attacked     the attacks of the Tables paper on tables of the same establishments
identification  what a release lets an attacker find out: bounds of the guarantee beside attacks
informed     attacks by somebody who knows all rows but one, on flows, models and posterior summaries
influential  the empirical epsilon as published
outputs      what a mechanism gave back, as rows of numbers: a vector, a label, a failure, or any mixture of these
posterior    how much does one row show in a posterior?
stand_in     establishments of a published table's shape, which stand in for confidential ones
scores       numbers that tell the outputs of two data sets apart, learnt from samples of both
"""
