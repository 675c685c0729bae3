"""Mixed models: what a formula says, fits without and with a prior, and private releases of both.

formula  formulas, their rows and their columns, and what every design is checked for
linear   linear and generalised mixed models by likelihood; `linear.private` releases them
bayes    posteriors, and releases of posterior summaries
mixed    the door to all fits: by REML or ML, with a prior, or of counts and shares
"""
