"""The improved model on the page of the mixed-model study: its refits, and what private ones keep of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.pages.page import Block, Prose, Table
from discreet_papers.beside import beside


def blocks(results: Mapping[str, Any], table: Callable[..., Table]) -> list[Block]:
    """Tables III and 3.4, and noisy sums with lags of either kind; `table` writes headings in words."""
    found = results["leave_county_out"]
    documents = {
        "residual variance": "0.01045409",
        "0.1 % quantile without one county": "0.01043703",
        "99.9 % quantile": "0.01046005",
        "county variance": "0.00016302",
        "county, 0.1 % quantile": "0.00015722",
        "county, 99.9 % quantile": "0.00016330",
        "range of industry effects": "0.0002",
        "range of public administration": "0.003",
        "range of lag coefficients": "0.001",
        "rows of a county, least": "4",
        "rows of a county, median": "674",
        "rows of a county, most": "1481",
        "one of 32 influential rows: an effect": "0.007828",
        "one of 32 influential rows: an industry": "0.00008281",
    }
    single = results["influential_rows"]
    ours = {
        "residual variance": found["residual"]["estimate"],
        "0.1 % quantile without one county": found["residual"]["low"],
        "99.9 % quantile": found["residual"]["high"],
        "county variance": found["county"]["estimate"],
        "county, 0.1 % quantile": found["county"]["low"],
        "county, 99.9 % quantile": found["county"]["high"],
        "range of industry effects": found["range_of_industries"],
        "range of public administration": found["range_of_public_administration"],
        "range of lag coefficients": found["range_of_lags"],
        "rows of a county, least": found["rows_removed"]["least"],
        "rows of a county, median": found["rows_removed"]["median"],
        "rows of a county, most": found["rows_removed"]["most"],
        "one of 32 influential rows: an effect": single["largest_change_of_an_effect"],
        "one of 32 influential rows: an industry": single["largest_change_of_an_industry"],
    }
    return [
        beside(
            documents,
            ours,
            caption=f"20 industries, four lagged rates and counties; {found['counties']:,} refits, each without one "
            "county (Tables III and 3.4), and the largest changes without one influential row.",
            compare="ratio",
            source="Documents",
            name="table-3",
        ),
        Prose(
            "A lag is another row's response. As a public column it holds only where earlier quarters are published "
            "already. Inside the guarantee, `lag(jcr, 1)` protects every quarter's rate wherever it stands; products "
            "of rates then carry noise, and sums of counties carry more of it. A smaller correlation at the same "
            "epsilon is what that costs."
        ),
        table(
            [
                {
                    "epsilon": row["epsilon"],
                    "responses": "as they are" if row["split"] == "default" else row["split"],
                    "correlation": row["correlation"],
                    "relative_to_mle": row["relative_to_mle"],
                    "lag_off": row.get("lag_off"),
                    "guarantee": row["guarantee"],
                }
                for row in results["improved"]
            ],
            "Noisy sums of the improved model, lags public or inside the guarantee.",
            "improved",
        ),
    ]
