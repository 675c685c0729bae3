"""A release made ready for an agency's site, from its folder alone.

* `imprint`: who publishes, under which licence, whom to ask: what a release does not know of itself
* `place`: an output folder that appears whole or not at all, and replaces only what was made here
* `publish`: the files and their list
* `codes`: code lists of attributes, and identifiers that standards allow
* `csvw`: metadata as W3C tabular metadata
* `sdmx`: SDMX-CSV, and its structure as SDMX-ML
* `site`: a web site of a release; `explorer`, the data of its tables; `pages`, what stands on them
"""
