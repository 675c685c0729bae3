"""Public files as their publishers write them: typed Arrow tables, codes as text with their leading zeros.

`lodes.read_lodes_wac`, `qwi.read_qwi`, `qcew.read_qcew` and `m3.read_m3`. None of these data are confidential.

published  one way to read a published CSV file: the layout says what each column is, the header says which are there
"""
