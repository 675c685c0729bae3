"""The request for a private release of a mixed model, checked before any data are read.

Bounds on the response come first: they decide who is protected and how much noise that takes. They must be known
without the data. The documents state them for the rates of the Quarterly Workforce Indicators, so those have defaults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.models.linear.families.family import Response
from discreet.models.linear.families.registry import named
from discreet.models.linear.private.bounds import interval, plain, within_reach
from discreet.models.linear.private.sums import Scale
from discreet.privacy.losses import Concentrated, Number, Pure, loss, upward
from discreet.privacy.units import Groups, Rows
from discreet.release.account import Account
from discreet.words.errors import PrivacyError
from discreet.words.faults import BETWEEN, Argument, Spelled

Method: TypeAlias = Literal["moments", "paper", "strict"]
Interval: TypeAlias = tuple[Number, Number]

LEAST, MOST = Fraction(1, 10**12), Fraction(10**12)  # losses whose noise can be computed
MOST_LAGS, FARTHEST_LAG = 12, 10_000
WIDEST = 2**54  # scale of noise whose draws are whole numbers of 64 bits, but for one in e^500


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of the documents: its bounds, and the ranges Lambda that they assume for estimates (Tables II and 3.3)."""

    bounds: tuple[Fraction, Fraction]
    effect: Fraction
    trend: Fraction
    deviation: Fraction


_JOBS = Rate((Fraction(0), Fraction(2)), Fraction(2), Fraction(1, 100), Fraction(1, 2))
_HIRES = Rate((Fraction(0), Fraction(3)), Fraction(3), Fraction(1, 100), Fraction(3, 4))
RATES: dict[str, Rate] = {"jcr": _JOBS, "jdr": _JOBS, "ar": _HIRES, "sr": _HIRES}
"""JCR and JDR lie in [0, 2] by definition. AR and SR have no upper bound; 3 is the documents'."""
PUBLIC = "A private model hides one row's {0!r} and publishes the values of every other column of its formula."


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Who is protected, for how much, and on what range of the response.

    Attributes
    ----------
    unit : one row's response is replaced, or those of a group of rows; `scale`, where responses are
        confined to.
    public : the columns of the formula that everybody may know; `lagged`, those of them that hold earlier responses.
    family : the law of the response; `exposure`, the public column that counts are of.
    lags : how many periods earlier the responses are that the model has as terms; `series` and `time` tell which.
    """

    loss: Pure | Concentrated
    unit: Rows | Groups
    scale: Scale
    public: tuple[str, ...]
    lagged: tuple[str, ...]
    seed: int | None = None
    lags: tuple[int, ...] = ()
    series: tuple[str, ...] = ()
    time: str = ""
    family: str = "gaussian"
    exposure: str = ""

    @property
    def law(self) -> Response:
        """What the family answers."""
        return named(self.family)

    @property
    def width(self) -> Fraction:
        return self.scale.upper - self.scale.lower

    @property
    def together(self) -> tuple[str, ...]:
        """The columns that name rows which change together; none if single rows are protected."""
        return self.unit.by if isinstance(self.unit, Groups) else ()

    def notes(self) -> tuple[str, ...]:
        """What every release says of its input."""
        columns = f"columns {', '.join(self.public)}, and the number of rows" if self.public else "the number of rows"
        ends = f"[{float(self.scale.lower):g}, {float(self.scale.upper):g}]"
        said = [
            f"The design is public: {columns}",
            f"Responses were clipped to {ends}, and one that is missing, no number or not finite counted as the "
            "middle: estimates are of these numbers",
        ]
        if self.lagged:
            said.append(
                f"Columns {', '.join(self.lagged)} hold earlier responses and are taken as published: what they tell "
                "about those responses is not counted"
            )
        if self.lags:
            periods, series = " and ".join(f"{lag:,}" for lag in self.lags), ", ".join(self.series)
            said.append(
                f"Earlier responses ({periods} before, in series by {series}) are terms of the model and "
                "protected like all others: the replaced response may be any row's, and stand in later rows too"
            )
        return tuple(said)


def loss_of(epsilon: Number | None, rho: Number | None) -> Pure | Concentrated:
    """The whole loss, of which noise can be computed."""
    if epsilon is None and rho is None:
        raise PrivacyError(
            "No loss was named.",
            remedy=("Give ", Argument("epsilon", 1), ", or ", Argument("rho", 0.5), " for Gaussian noise."),
            about="epsilon",
        )
    spent = loss(epsilon=plain(epsilon), rho=plain(rho))
    of = "rho" if epsilon is None else "epsilon"
    if not spent:
        raise PrivacyError(
            f"A loss of {spent} allows no release.", "Noise would be infinite.", "Give more than 0.", about=of
        )
    assert isinstance(spent, Pure | Concentrated)
    if not LEAST <= next(iter(spent.amounts.values())) <= MOST:
        raise PrivacyError(
            f"A loss of {spent} is out of reach.",
            f"Noise is computed for {float(LEAST):g} to {float(MOST):g}.",
            "Useful amounts are between 0.01 and 10.",
            about=of,
        )
    return spent


def _list_of_columns(key: str, given: Sequence[str], example: str) -> None:
    if isinstance(given, str) or not all(isinstance(column, str) for column in given):
        raise PrivacyError(
            (Argument(key, given), " is not a list of columns."),
            remedy=f"Give one even for a single column: [{example!r}].",
            about=key,
        )


def earlier(lagged: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of the formula that hold earlier responses."""
    _list_of_columns("lagged", lagged, "before")
    unknown = [column for column in lagged if column not in columns]
    if unknown:
        raise PrivacyError(
            (Argument("lagged", list(lagged)), f" names {unknown[0]!r}, which is not in the formula."),
            f"It has: {', '.join(columns)}.",
            "Name fixed columns that hold earlier responses.",
            about="lagged",
        )
    return tuple(lagged)


def columns_in_time(response: str, lags: Sequence[int], series: Sequence[str], time: str | None) -> tuple[str, ...]:
    """The public columns that give the order in time, checked against the lags of a formula."""
    _list_of_columns("series", series, "county")
    if not isinstance(time, str | None):
        raise PrivacyError(
            (Argument("time", time), " is not the name of a column."),
            remedy=("Give ", Argument("time", "quarter"), "."),
            about="time",
        )
    if lags and not (series and time):
        asked = f"lag({response}, {lags[0]})"
        raise PrivacyError(
            f"{asked} needs an earlier row, but it is not known which rows are earlier.",
            "Series are named by columns, and periods counted by one; both are public.",
            ("Give ", Argument("series", ["county", "industry"]), " and ", Argument("time", "quarter"), "."),
            about="time" if series else "series",
        )
    if (series or time) and not lags:
        given = "series" if series else "time"
        raise PrivacyError(
            (Argument(given, list(series) if series else time), " was given, and the formula has no lag."),
            "It says which rows are earlier.",
            f"Add a term such as lag({response}, 1), or leave it out.",
            about=given,
        )
    if len(lags) > MOST_LAGS or max(lags, default=0) > FARTHEST_LAG:
        raise PrivacyError(
            f"The formula has {len(lags)} lags, the longest of {max(lags):,} periods.",
            f"There may be {MOST_LAGS}, of {FARTHEST_LAG:,} periods at most: each makes the noise of all others wider.",
            "Use fewer or shorter ones.",
            about="formula",
        )
    if response in (*series, time):
        raise PrivacyError(
            f"The response {response!r} was named as a series or as the time.",
            "Such columns are public, and one row's response is protected.",
            "Name other columns.",
            about="series" if response in series else "time",
        )
    return (*series, time) if time else ()


def scale_of(clip: Interval | None, natural: tuple[Fraction, Fraction]) -> Scale:
    """The range to which responses are confined: the bounds, or a tighter range inside them."""
    if clip is None:
        return Scale(*natural)
    if isinstance(clip, bool):
        raise PrivacyError(
            (Argument("clip", clip), " is not a range."),
            "Responses are always pulled into the bounds, and a clip makes that tighter.",
            ("Leave it out, or give a range inside the bounds as ", Argument("clip", BETWEEN), "."),
            about="clip",
        )
    confined = interval(clip, "clip")
    if not natural[0] <= confined[0] < confined[1] <= natural[1]:
        raise PrivacyError(
            (Argument("clip", clip), f" reaches beyond the bounds [{float(natural[0]):g}, {float(natural[1]):g}]."),
            "Responses lie within the bounds, and a clip makes that tighter.",
            "Give a range inside, or wider bounds.",
            about="clip",
        )
    return Scale(*confined)


def unit_of(
    response: str, bounds: Interval | None, account: Account | None, protect: Sequence[str]
) -> tuple[Rows | Groups, tuple[Fraction, Fraction]]:
    """Who is protected, and the bounds of the response."""
    listed = not isinstance(protect, str) and all(isinstance(column, str) and column for column in protect)
    if not listed or len({*protect, response}) <= len(protect):
        raise PrivacyError(
            (Argument("protect", protect), " is not a list of public columns."),
            "It names the rows that are protected together, each column once, and never the response.",
            "Give one even for a single column: ['establishment'].",
            about="protect",
        )
    if account is not None:
        unit = account.unit
        if protect and not (isinstance(unit, Groups) and {*unit.by} == {*protect}):
            raise PrivacyError(
                (Argument("protect", list(protect)), f" differs from the account, which protects {unit.key}."),
                "An account has one unit.",
                "Leave it out, or open an account with unit=Groups(by, lower, upper, response).",
                about="protect",
            )
        if not isinstance(unit, Rows | Groups):
            raise PrivacyError(
                f"The account protects {unit.key}.",
                (
                    "A mixed model's release protects one row's response: open the account with "
                    "unit=Rows(lower, upper, ",
                    Argument("response", response),
                    ").",
                ),
                about="account",
            )
        if response not in unit.responses:
            hidden = " and ".join(map(repr, unit.responses)) or "no column by name"
            raise PrivacyError(
                f"The response is {response!r}, and the unit {unit.key} protects {hidden}.",
                "A release protects what its unit names.",
                (
                    Spelled(
                        f"Open the account with unit=Rows(lower, upper, response={response!r})",
                        plan=f"Write response = {response!r} under [unit]",
                        form=f"Write {response} under 'Protected column'",
                    ),
                    ", or a list of all responses.",
                ),
                about="formula",
            )
        if bounds is not None and interval(bounds, "bounds") != (unit.lower, unit.upper):
            raise PrivacyError(
                (
                    Argument("bounds", bounds),
                    f" differ from the account's [{float(unit.lower):g}, {float(unit.upper):g}].",
                ),
                "An account has one unit.",
                ("Leave bounds out, and give a tighter range as ", Argument("clip", BETWEEN), "."),
                about="bounds",
            )
        return unit, within_reach(unit.lower, unit.upper, asked="the account's bounds")
    if bounds is not None:
        natural = interval(bounds, "bounds")
    elif response.lower() in RATES:
        natural = RATES[response.lower()].bounds
    else:
        raise PrivacyError(
            f"The bounds of {response!r} are not known.",
            "They set the noise and must be stated without looking at the data.",
            ("Give ", Argument("bounds", BETWEEN), "; values outside count as the nearer end."),
            about="bounds",
        )
    if protect:
        return Groups(protect, *natural, response=response), natural
    return Rows(*natural, response=response), natural


def noise_scale(sensitivity: Fraction | int, spent: Pure | Concentrated) -> float:
    """The scale of the noise, rounded up: Laplace sensitivity / epsilon, Gaussian sensitivity / sqrt(2 rho)."""
    limit = spent.epsilon * WIDEST if isinstance(spent, Pure) else 2 * spent.rho * WIDEST**2
    if (sensitivity if isinstance(spent, Pure) else Fraction(sensitivity) ** 2) > limit:
        raise PrivacyError(
            f"A share of {spent} for one part of the release needs wider noise than whole numbers of 64 bits hold.",
            "Nothing would be left of the estimates.",
            "Spend more, or use fewer columns.",
            about="epsilon" if isinstance(spent, Pure) else "rho",
        )
    if isinstance(spent, Pure):
        return upward(Fraction(sensitivity) / spent.epsilon)
    squared = Fraction(sensitivity) ** 2 / (2 * spent.rho)
    scale = math.sqrt(float(squared))
    while Fraction(scale) ** 2 < squared:
        scale = math.nextafter(scale, math.inf)
    return scale
