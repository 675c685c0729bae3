"""Public files as their publishers write them: typed Arrow tables, codes as text with their leading zeros.

`lodes.read_lodes_wac`, `qwi.read_qwi`, `qcew.read_qcew` and `m3.read_m3`. None of these data are confidential.
"""
