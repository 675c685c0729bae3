"""Bayesian regression: posteriors in closed form, and private summaries of them.

conjugate    normal regression under three priors, for many parts of a data set at once
partition    disjoint random parts, how many of them, and who is protected
within       what the parts say, each about itself
halves       the bias of small parts, corrected by their halves
skewness     the skewness of a part's estimate, and what undoes it
agreement    a private look at whether parts agree with pieces of themselves: is the model in doubt?
doubts       what is said against an answer, and what of it is known before anything is paid
question     what is asked of a posterior: checked without data, then offered and released
expected     how far off a summary is expected to be, from public numbers
regression   a formula and a frame become a design
selection    private choices: the sparse vector, the noisy maximum, a centre and a width
summation    private sums of bounded numbers, one for each part of a data set, exact on a public grid
probability  P(beta <= b), by the normality method or by -2 log p
quantile     posterior quantiles
combination  one probability from those of parts
clipped      a private mean of numbers without bounds
interval     a private credible interval in one call
reach        how far an answer may be off: noise, and what parts of the rows say otherwise than all rows at once
spending     what is asked of a summary by parts, and what each question may spend
erm          regularised regression by objective perturbation
curvature    how much rows tell about its coefficients: two noisy sums, and standard errors from them
predictor    its result, and what is expected of it
posterior_draw  one draw from the posterior of a mixed model as the release, with declared variances
audited_draw  one draw from the whole posterior at the epsilon of an audit, which is empirical
draw_question  what is asked of both
drawn        the result of both
draw_law     its law: Gaussian noise in sums of the response, with a public covariance
blmm         Bayesian linear mixed models: exact posteriors of one random intercept, samplers of it and of several terms
"""
