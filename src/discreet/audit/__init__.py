"""Is a privacy claim true? `blackbox` attacks any function by its outputs alone; what it finds is no proof.

influential  the empirical epsilon as published
outputs      what a mechanism gave back, as rows of numbers: a vector, a label, a failure, or any mixture of these
posterior    how much does one row show in a posterior?
scores       numbers that tell the outputs of two data sets apart, learnt from samples of both
"""
