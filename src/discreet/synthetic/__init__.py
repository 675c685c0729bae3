"""Synthetic data: establishments and jobs drawn to agree with what was released, at no cost in privacy.

Everything is computed from the folder of a release, so two data sets with the same release give the same law of files.

* `margins`: whole numbers in the cells of a table whose sums lie in given intervals
* `contradictions`: which intervals give way where no numbers meet all of them
* `cells`: the cells that all released tables have together, and where each lies in each table
* `sizes`: workforces of establishments, from a declared shape
* `economy`: jobs and amounts of each cell that agree with all tables, and numbers of establishments
* `microdata`: the file of jobs, written in a stream
* `published`: a private model as everybody can read it
* `responses`: rates and counts of a released model, for every row of a public design
"""

from discreet.synthetic.microdata import Synthetic, synthesize
from discreet.synthetic.responses import synthetic_responses

__all__ = ["Synthetic", "synthesize", "synthetic_responses"]
