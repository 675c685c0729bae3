"""What a user has, as what a statistic can compute with: files, frames, databases, and whose rows they are.

frames      the border: any frame or path as a lazy frame
schema      which column is what
jobs        the confidential table of jobs
histories   jobs of several quarters, and what a job was before and is after
row_checks  what is wrong with rows
unnamed     columns without a role
oddities    what is worth a look in any table
codes       categories as text
lineage     codes and their parents
hierarchy   which attribute follows from which
magnitude   amounts and their caps
columns     arrays as columns of Arrow and back
untyped     columns of Python objects
delimited   CSV files as people write them
scans       files as tables of DuckDB
stamps      whether files were written since they were read
failures    why an engine gave no answer
one_at_a_time  one thread at a time at the engine
engines     what computes aggregates: DuckDB, Spark, frames in memory
databases   tables of PostgreSQL, MariaDB, MySQL and SQLite, copied as at one moment
readers     agencies' and R's files
"""
