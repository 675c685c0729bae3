"""Large changes: which series will jump next month, and which forecasts can tell.

The way of the data: a gold standard marks the large changes (`standards`), forecasts become scores (`compare`),
ROC analysis on a range of false positive rates judges them (`roc`, `bootstrap`, `exchange`, `combine`), models are
fitted to that purpose (`pauc`, `quantile`, `power`, `regression`, through `rolling`), and a cost ratio picks the cases
to look at (`operating`, `exceptions`), in the periods that the panel's `calendar` knows.

estimators   the models as estimators with `fit` and `predict`, in scikit-learn's manner and without needing it
families     the models of rolling forecasts, each over a grid of its metaparameter
forecasters  forecasts for those who have only a panel
kendall      Kendall's tau-b with the normal test for tied data and a continuity correction
pairwise     ranking by pairs
panel        the border: tidy frames of a panel and of forecasts become aligned arrays, or a reason why not
"""
