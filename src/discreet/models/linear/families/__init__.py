"""Families of responses: each is one frozen value in one file, and every answer of a fit asks it.

Every file that is not named here is a family: its values of `family.Response` are found by `registry`. Adding one is
adding its file.

family     what every family answers: its law with derivatives, its variance, its draws, its own parameters
links      the scales of linear predictors: identity, log and logit
counts     what families of counts share
continuous what families of amounts and of shares without trials share: places of bad responses, quantiles
zero_inflated what is added to a family of counts for extra zeros, and the two families that have them
gaussian   numbers with a residual variance, whose models are linear
registry   the families by name
"""
