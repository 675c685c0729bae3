"""Privacy noise: its laws, where its random bits come from, and draws with exactly the law's probabilities.

laws        the distributions, also rounded to integers; built on mass (that of a vector of integers)
source      operating-system randomness, or a seed that makes a release not private; choices by whole-number weights
sampler     exact draws on integers or a grid; built on transforms (a law as a function of uniforms),
            balls (doubles with error bounds) and exact (Arb, when doubles cannot decide)

anchors     laws that were solved when this version was made, from which others are found
balls       vectorised ball arithmetic in doubles
exact       draws decided in Arb, with as many random bits as the decision takes
flow_body   the ball of the noise of flows, and how far each flow is from its centre on it
kept        tables of whole numbers that are computed once and kept
law         what a law of noise is: probabilities of integers, tails and moments
least       the law of least mean error in proportion to a scale: a linear programme, and its finite proof
mass        the mass that a density gives to the cube which rounding sends to one integer vector
rings       the law of rings of constant density, in a norm of several coordinates
row_search  how rows are found: between those of the package, or by a linear programme
rows        laws of steps by the ratio of the two largest sizes, and their finite proof
staircase   the law of a plateau and rings of constant density, with growing steps
steps       that law: steps of one width, and rings beyond
transforms  each law as an elementary function of a few uniform variables, written once for every arithmetic
unions      draws in the norm that knows a bound for every set of kinds
"""
