"""Counts of jobs by place, industry and worker: the cells, the noise that each needs, and what is published.

`cells` asks the engine for the statistics that mechanisms work on; `calibration` and `mechanisms` turn a count into a
published count.
"""
