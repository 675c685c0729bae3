"""From a count to a published count: a mechanism is one file, and answers every question about it.

`tables.calibration` asks for constants; `privacy.verify` checks that they keep the promise.

mechanism         what every mechanism answers, and what is asked of one
defaults          the mechanism of a table that names none: the one that errs least
registry          the mechanisms by name, and the door for those of other packages
outside           what is asked of those, and when they may say "proved"
smooth            noise in proportion to the smooth sensitivity: what the next four and staircase share
polynomial        a closed form for one count
joint_polynomial  a closed form for all counts of the same establishments, under one epsilon
joint_rings       the same with less noise, under the strong definition
weak_joint        the same under the weak definition, with noise for every kind of workers
weak_unions       that with noise for every set of kinds, which is less
ladder            for one count: a checked table for small cells, close to the least noise of any law
two_sizes         that with less noise where one establishment dominates, by name
smooth_gamma      the Tables paper's, of pure epsilon
smooth_laplace    the Tables paper's, of epsilon and delta
log_laplace       the Tables paper's, which multiplies
staircase         less noise than polynomial from an epsilon of about 2 on, by name
baselines         three that do not hide an establishment
nearest           what a refusal names: the nearest epsilon, alpha and number of kinds that are possible
growth            the least scale of noise that keeps pace with growth, in whole workers
search            the least constant that is enough
"""
