"""`PublishedModel`: a private model as everybody can read it, from a fit or from the folder of its release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.formula.formula import Formula, lag_name, read_formula, without_lags
from discreet.models.linear.families.family import PrivateFamily, Response, Spread
from discreet.models.linear.families.gaussian import GAUSSIAN
from discreet.models.linear.families.registry import named
from discreet.models.linear.private import PrivateFit
from discreet.models.linear.private.generalised import private_family
from discreet.privacy.units import Groups, Rows, Unit
from discreet.release.folder import ReleaseFolder, open_releases
from discreet.words.errors import DataError
from discreet.words.faults import Key

if TYPE_CHECKING:
    import pyarrow as pa

DRAWN = (
    "effects of groups are drawn about their predictions with their standard errors, less what these have in common; "
    "of levels that the release does not have with the variance of their term; fixed effects and variances are the "
    "published ones"
)


@dataclass(frozen=True)
class PublishedModel:
    """A private model as everybody can read it.

    Attributes
    ----------
    fixed : coefficients by name; `variances`, of components by name.
    effects : of each component the levels with their predictions and standard errors.
    bounds : where responses lie; `promise`, the guarantee in a sentence.
    family : the law of responses; `dispersion`, of counts: their variance over their mean.
    """

    name: str
    model: Formula
    fixed: Mapping[str, float] = field(repr=False)
    variances: Mapping[str, float] = field(repr=False)
    effects: Mapping[str, Mapping[str, tuple[float, float]]] = field(repr=False)
    bounds: tuple[float, float]
    promise: str
    family: str = GAUSSIAN.name
    dispersion: float = 1.0

    @classmethod
    def of(
        cls, name: str, formula: str, table: pa.Table, unit: Unit, clip: Any, promise: str, family: str
    ) -> PublishedModel:
        """Read the table that a release publishes, with the formula and the unit beside it."""
        model, lags = without_lags(read_formula(formula, needs_random=False))
        odd = [lag_name(model.response.column, lags[0])] if lags else [name for name, _ in model.made]
        terms = [*model.fixed, *(term for random in model.random for term in random.terms)]
        odd += sorted({str(f) for term in terms for f in term if f.function not in ("", "C", "log")})
        if odd:
            raise DataError(
                f"Synthetic responses were asked of {formula!r}, which has {odd[0]}.",
                "Columns as they are, factors and logarithms can be placed by a formula alone; other functions learn "
                "from the data, and lags are responses.",
                "Release a model without it.",
                about="release",
            )
        assert isinstance(unit, Rows | Groups)
        fixed: dict[str, float] = {}
        dispersion = 1.0
        variances: dict[str, float] = {}
        effects: dict[str, dict[str, tuple[float, float]]] = {}
        for row in table.select(["effect", "group", "term", "estimate", "std_error"]).to_pylist():
            value, error = (np.nan if row[key] is None else float(row[key]) for key in ("estimate", "std_error"))
            if row["effect"] == "fixed":
                fixed[row["term"]] = value
            elif row["effect"] == "variance":
                variances[row["group"]] = value
            elif row["effect"] == "random":
                effects.setdefault(row["group"], {})[row["term"]] = (value, error)
            elif (row["effect"], row["term"]) == ("parameter", "dispersion"):
                dispersion = value
        known = [
            dispersion,
            *fixed.values(),
            *variances.values(),
            *(u for each in effects.values() for u, _ in each.values()),
        ]
        if (named(family).linear and "Residual" not in variances) or not np.isfinite(known).all():
            raise DataError(
                f"Release {name!r} has an estimate that is empty, or no residual variance.",
                "Responses are drawn with all of them.",
                "Use another release.",
                about="release",
            )
        ends = (unit.lower, unit.upper) if clip is None else clip
        ends = float(ends[0]), float(ends[1])
        return cls(name, model, fixed, variances, effects, ends, promise, family, dispersion)

    @property
    def drawn(self) -> str:
        """How responses are drawn, in words."""
        return self.private.drawn + DRAWN

    @property
    def law(self) -> Response:
        """What the family answers."""
        return named(self.family)

    @property
    def private(self) -> PrivateFamily:
        """How responses of the family are drawn."""
        return private_family(self.family)

    @property
    def spread(self) -> Spread:
        """What was released of how far responses vary."""
        return Spread(self.dispersion, self.variances.get("Residual", 0.0), self.bounds)


def published(release: PrivateFit | str | Path, name: str | None, ledger: str | Path | None) -> PublishedModel:
    if isinstance(release, PrivateFit):
        unit, promise = release.guarantee.unit, str(release.guarantee)
        told = release.name, release.formula, release.published(), unit, release.clip, promise, release.family
        return PublishedModel.of(*told)
    found = [each for each in open_releases(release, ledger=ledger) if each.kind == "model"]
    chosen = [each for each in found if name in (None, each.name)]
    if len(chosen) != 1:
        names = ", ".join(repr(each.name) for each in found) or "none"
        raise DataError(
            f"{str(release)!r} has {len(chosen)} models to draw responses of.",
            f"Models there: {names}.",
            ("Name one with ", Key("name"), "."),
            about="name" if found else "release",
        )
    return _from_folder(chosen[0])


def _from_folder(folder: ReleaseFolder) -> PublishedModel:
    forms = {table.form: table for form in (None, "research") for table in _tables(folder, form)}
    table = forms.get("research") or next(iter(forms.values()))
    asked = folder.about["parameters"]
    family = str(asked.get("family") or GAUSSIAN.name)
    told = folder.name, str(asked["formula"]), table.read(), folder.unit, asked.get("clip"), folder.promise, family
    return PublishedModel.of(*told)


def _tables(folder: ReleaseFolder, form: str | None) -> list[Any]:
    try:
        return list(folder.tables(form))
    except DataError:
        return []
