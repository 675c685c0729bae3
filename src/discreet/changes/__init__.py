"""Large changes: which series will jump next month, and which forecasts predict it.

The data take these steps. A tidy table (`tidy`) becomes a `panel` in the periods of its `calendar`. Forecasts, given or
made here (`forecasters`), become `cases`. A gold standard marks the large changes (`standards`) and scores the cases
that can be judged (`judged`, `scored`). ROC analysis on a range of false positive rates compares methods (`compare`:
`discreet.roc`, `exchange`, `combine`); past cases teach which coming ones to look at (`lists`, `alarms`:
`operating`, `calibration`), for a report (`exceptions`) or over past lists (`backtest`). Models are fitted to that
purpose (`pauc`, `quantile`, `power`, `regression`, through `rolling`).

accounting   half months and quarters of thirteen weeks
command      `discreet changes`: which forecasts foresee large changes, and which series to look at next
cutoffs      the same comparison at several cutoffs
estimators   the models as estimators with `fit` and `predict`, in scikit-learn's manner and without needing it
families     the models of rolling forecasts, each over a grid of its metaparameter
indicators   columns beside the values, lagged or known ahead, in models of large changes
intermittent Croston's method and TSB for intermittent series
kendall      Kendall's tau-b with the normal test for tied data and a continuity correction
levels       sums of series by region and city, with alarms that do not repeat each other
listed       what a report lists
newton       the least of a smooth convex loss
listwise     ranking by lists
notebook     the list of a report as notebooks show it
numerals     numbers as people write them, with marks for thousands
page         reports as pages: comparisons of forecasts, exception reports, backtests
panel_options  options of `discreet changes`
pairwise     ranking by pairs
seasons      is a series seasonal, and what is left without them
smooth_pauc  the partial area, smoothed, with gradients
smoothing    exponential smoothing of many series at once, from every origin in one pass
tracking     Trigg's and Brown's tracking signals, baselines of forecasts
"""
