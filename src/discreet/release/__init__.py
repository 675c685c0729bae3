"""How anything leaves: the one door for noise.

`account` is a data set's budget and the only way to its noise.
"""
