"""Model formulas in lme4's syntax, and the rows that they ask for. Both `lmm` and `bayes` stand on it.

`formula` reads the text, `design` lays out columns and groups, `basis` makes curves of a column and `functions` other
numbers, `rows` reads and codes them from any frame; `arithmetic` makes columns of columns, `dots` says what a dot
stands for, `marks` which values of a CSV file are missing, `contrasts` how levels are coded, `source` opens the data,
`memory` refuses columns that would not fit, `roles` those without a meaning.
"""
