"""How far off a published count may be, without revealing the confidential scale of its noise.

quantiles  quantiles of noise and the ends of intervals, rounded outward
counts     intervals of published counts
nested     bounds that tables of one release give each other, which make intervals narrow
widths     the widths of intervals before anything is paid
"""
