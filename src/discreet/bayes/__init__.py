"""Bayesian regression: posteriors in closed form, and private summaries of them.

conjugate    normal regression under three priors, for many parts of a data set at once
partition    disjoint random parts, how many of them, and who is protected
regression   a formula and a frame become a design
selection    private choices: the sparse vector, the noisy maximum, a centre and a width
probability  P(beta <= b), by the normality method or by -2 log p
quantile     posterior quantiles, and interval the private credible interval
erm          regularised regression by objective perturbation
"""
