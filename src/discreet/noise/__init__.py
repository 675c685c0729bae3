"""Privacy noise: its laws, where its random bits come from, and draws with exactly the law's probabilities.

laws        the distributions, also rounded to integers; built on cubes (the mass of a vector of integers)
source      operating-system randomness, or a seed that makes a release not private
sampler     exact draws on integers or a grid; built on transforms (a law as a function of uniforms),
            balls (doubles with error bounds) and exact (Arb, when doubles cannot decide)
"""
