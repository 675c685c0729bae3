"""Charts that results offer: valid Vega-Lite, drawn by ourselves, and shown by a notebook."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet.changes.compare import Comparison
from discreet.changes.page import _roc_with_point
from discreet.chart import MEDIA_TYPE, Chart
from discreet.models.bayes.blmm.charts import density_chart, trace_chart
from discreet.models.linear.charts import effects_chart, residuals_chart
from discreet.pages.svg import data, svg

CURVE = SimpleNamespace(fpr=np.array([0, 0.5, 1]), tpr=np.array([0, 0.7, 1]), at=np.array)
TERM = SimpleNamespace(values=np.array([[0.3, 1.0], [-0.2, 2.0]]), names=("(Intercept)", "t"), levels=("a", "b"))
FIT: Any = SimpleNamespace(
    effects={"g": 0},
    random=[TERM],
    effect_variances=[(np.array([np.eye(2), np.eye(2)]), None)],
    fitted=np.arange(5.0),
    residuals=lambda kind: np.arange(5.0),
    formula="y ~ t + (t | g)",
)
LAW: Any = SimpleNamespace(quantile=lambda p: (-3.0, 3.0), pdf=lambda x: np.exp(-(x**2) / 2))
COMPARED: Any = SimpleNamespace(methods=("one", "other"), fpr=(0.0, 0.2), curve=lambda name: CURVE)
RULE: Any = SimpleNamespace(curve=CURVE, point=SimpleNamespace(fpr=0.2, tpr=0.3))
CHARTS = {
    "effects": effects_chart(FIT, None),
    "residuals": residuals_chart(FIT, 5),
    "trace": trace_chart(np.arange(10.0).reshape(2, 5), "x"),
    "density": density_chart(LAW, "x"),
    "roc": Comparison.plot_roc(COMPARED),
    "rule": Chart(_roc_with_point(RULE)),
}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_a_chart_is_valid_is_drawn_and_is_shown(chart: Chart) -> None:
    import altair
    import jsonschema

    altair.Chart.from_dict(chart.to_dict()).to_dict()
    with pytest.raises(jsonschema.ValidationError):
        altair.Chart.from_dict({**chart.to_dict(), "widht": 3})
    picture = ElementTree.fromstring(svg(chart, alt="what it shows"))
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 1
    assert chart._repr_mimebundle_()[MEDIA_TYPE] == chart.to_dict()
    assert repr(chart) == f"<chart of {len(data(chart))} rows; a notebook draws it>"
