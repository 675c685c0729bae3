"""Large changes: which series will jump next month, and which forecasts can tell.

The way of the data: a gold standard marks the large changes (`standards`), forecasts become scores (`compare`),
ROC analysis on a range of false positive rates judges them (`roc`, `bootstrap`, `exchange`, `combine`), models are
fitted to that purpose (`pauc`, `quantile`, `power`, `regression`, through `rolling`), and a cost ratio picks the cases
to look at (`operating`, `exceptions`), in the periods that the panel's `calendar` knows.
"""
