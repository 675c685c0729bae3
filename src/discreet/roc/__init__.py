"""Areas under ROC curves: how well scores tell large changes, or any other cases, from the rest. Only arrays.

curve      curves, areas and partial areas, their variance, and a smooth curve for display
bootstrap  the paired bootstrap of partial areas, tests between scores, bands of confidence
"""
