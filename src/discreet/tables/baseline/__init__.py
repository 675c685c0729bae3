"""What agencies do today, and what it reveals: noise infusion and the attacks on it.

establishments  every establishment's own histogram of workers
infusion        input noise infusion
attacks         what a published table reveals: the three attacks of Haney et al. (2017, section 5.2) as code
"""
