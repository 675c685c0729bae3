"""The zip file that a bundle is. It knows nothing of plans.

packing    how it is written, and whether every byte of it is accounted for
unpacking  reading one that somebody else made, within bounds
findings   what came of checking a claim
"""
