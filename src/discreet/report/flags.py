"""The meaning of flags, and what answers of each kind do not show: words for reports."""

from __future__ import annotations

from discreet.models.linear.private.notes import HOLD, UNSTEADY
from discreet.words.caveats import APART

BAND = (
    "The ends of posterior probabilities and quantiles contain the answer of all rows at once with a probability "
    f"of 95 %, if the model is right. {APART.capitalize()}: if those of one group are alike, ends do not hold the "
    "truth. Answers are combined from parts of the rows. If a line is fitted to a curve, "
    "or a few values are far from all others, they may be off by many posterior deviations and should not be trusted."
)
LIMITS = {
    "model": "Standard errors of a model include the noise. They assume that the model is right, as without noise. "
    f"{HOLD}",
    "lags": f"{UNSTEADY[0].upper()}{UNSTEADY[1:]}.",
    "probability": BAND,
    "quantile": BAND,
    "interval": "A posterior interval holds its coefficient with the stated probability, the noise included, if model "
    f"and prior are right and {APART}; several of them together do so less often. If the parts of the rows scatter "
    "differently from the model, a note says so, and the interval should not be trusted.",
}
"""What answers of each kind do not say."""

FLAGS = {
    "no estimate": "Noise left sums that no coefficients explain, or only endless ones. Estimates are left empty.",
    "clipped": "The estimates lie on the limit to which blocks were pulled, and may be far too small.",
    "not found": "The variance is the least that is looked for, not an estimate: nothing was seen above the noise. "
    "Estimates computed with it are too certain; so are fixed effects if effects depend on the sizes of groups.",
    "hardly seen": "The variance cannot be distinguished from zero under this noise and may be far too large; the "
    "residual variance is smaller by that amount, and standard errors of its effects are larger than necessary. If "
    "effects depend on the sizes of groups, intervals of fixed effects may miss the result of a fit without noise.",
    "not measured": "Sums by group were not drawn: noise would have hidden these effects, or a first look found too "
    "little of them. They are 0, and the residual variance includes theirs. Standard errors of fixed effects allow for "
    "them.",
    "small blocks": "An average over blocks of few rows, off by what fits of so few rows are off.",
    "noise": "The variance is more than the bounds of the response allow.",
    "lags hardly seen": "Noise hides what earlier responses vary by, or lasting differences between groups, which look "
    "like lags. Coefficients of lags may be far off, and their intervals hold less often than they say.",
    "one slope": "The model has one slope for all groups. Where slopes differ between groups by more than a note "
    "says, known before it was paid for, the interval should not be trusted: noisy sums cannot show it.",
    "small parts": "Few rows of a part carry the coefficient: with skewed errors the answer is off, and its ends hold "
    "too rarely. Known before it was paid for.",
    "not checked": "Parts are too small, or too few for this epsilon, to see whether the model is right. Known before.",
    "model in doubt": "Small pieces of the rows say otherwise than larger ones, as with a line fitted to a curve: do "
    "not trust the answer.",
    "wide scatter": "Parts scatter much more widely than the model says: the interval is wider, and its middle may "
    "be off.",
    "end of search": "The answer may lie beyond what was searched. Give a larger `scale`.",
    "no centre": "No private centre was found: the ends hold and are needlessly wide. Ask again.",
    "informative sizes": "Effects depend on the public sizes of their groups in a way that the model does not "
    "include. "
    "The estimate was moved to what groups would say that count as without noise. Add `log_size(group)`, or "
    "`size_class(group)`. If noise hides whether they do, the estimate may be off by more than its interval.",
}
"""The meaning of the words in the column `flag`, to be read before the estimates."""
