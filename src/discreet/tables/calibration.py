"""The least noise that keeps a promise, and the inequality that says when none does.

`calibrate` turns (mechanism, unit, loss) into constants before any data are read. "paper" gives the constants of the
Tables paper, so that its figures can be reproduced; "tight" the smallest ones that the definition allows. Notation:
b = ln(1 + alpha); derivations are in docs/proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias, get_args, overload

from discreet.errors import Infeasible, PrivacyError
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Loss, Number, Pure, exact, half, loss, shown, upward
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers
from discreet.tables.expected import refuse_extremes, three_digits
from discreet.tables.mechanisms import Baseline, LogLaplace, SmoothNoise
from discreet.tables.worst import delta_floor, gamma_loss, laplace_delta, least

PrivateName: TypeAlias = Literal["polynomial", "joint-polynomial", "log-laplace", "smooth-gamma", "smooth-laplace"]
BaselineName: TypeAlias = Literal["edge-laplace", "node-truncation", "down-sensitivity"]
Name: TypeAlias = PrivateName | BaselineName
PRIVATE: tuple[PrivateName, ...] = get_args(PrivateName)
BASELINES: tuple[BaselineName, ...] = get_args(BaselineName)

# Scales are doubles: the product factor * max(alpha * largest, 1) is off by a few parts in 2^53. A relative margin
# of 2^-30 in the constants covers that (docs/proofs/polynomial.md) and costs one part in 10^9 of accuracy.
MARGIN = 2.0**-30
LEAST_GROWTH = MARGIN * 2**10  # ln(1 + alpha) of log-laplace noise: below, rounding loses more than the margin
MOST_EPSILON = 10**6
MOST_SEARCHED = 500  # beyond, e^epsilon and the noise that it asks for leave the range of doubles
LEAST_SEARCHED = 2.0**-16  # below, a rounded scale can lose more than the margin
LEAST_DELTA = Fraction(1, 10**80)  # times e^-500 it is still a double, so that `verify` can follow


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of one cell, with everything in floats: the arithmetic of calibration."""

    unit: Establishments
    loss: Loss
    calibration: Calibration
    cells: int

    @property
    def epsilon(self) -> float:
        return float(self.loss.amounts["epsilon"])

    @property
    def delta(self) -> float:
        return float(self.loss.amounts.get("delta", 0))

    @property
    def b(self) -> float:
        return self.unit.log_growth

    def refuse(self, name: str, inequality: str, remedy: str) -> Infeasible:
        asked = f"alpha={shown(self.unit.alpha)}, {self.loss}" + (f", {self.cells} cells" if self.cells > 1 else "")
        if self.unit.substitution and "polynomial" not in name:
            asked += " for one of the two steps of a substitution"
        return Infeasible(f"{name} ({self.calibration}) cannot give {asked}: it needs {inequality}. {remedy}")


@overload
def calibrate(
    name: PrivateName,
    *,
    unit: Establishments,
    epsilon: Number,
    delta: Number | None = None,
    calibration: Calibration = "tight",
    cells: int = 1,
    theta: int = 1000,
) -> SmoothNoise | LogLaplace: ...


@overload
def calibrate(
    name: Name,
    *,
    unit: Establishments,
    epsilon: Number,
    delta: Number | None = None,
    calibration: Calibration = "tight",
    cells: int = 1,
    theta: int = 1000,
) -> SmoothNoise | LogLaplace | Baseline: ...


def calibrate(
    name: Name,
    *,
    unit: Establishments,
    epsilon: Number,
    delta: Number | None = None,
    calibration: Calibration = "tight",
    cells: int = 1,
    theta: int = 1000,
) -> SmoothNoise | LogLaplace | Baseline:
    """The mechanism `name` with constants that give `epsilon` (and `delta`) for one cell.

    Parameters
    ----------
    unit : the definition to satisfy.
    epsilon, delta : the loss of one cell; of the whole vector for "joint-polynomial". Only "smooth-laplace" uses delta.
    cells : how many counts of the same establishments a joint mechanism covers.
    theta : the largest establishment that "node-truncation" keeps.
    """
    if calibration not in ("tight", "paper"):
        raise PrivacyError(f"calibration={calibration!r} is unknown. It is 'tight' or 'paper'. Leave it out for tight.")
    amount = exact(epsilon, name="epsilon")
    if amount <= 0:
        raise PrivacyError(f"epsilon={epsilon} buys nothing. It must be above 0. Use for example epsilon=1.")
    if amount > MOST_EPSILON:
        raise PrivacyError(f"epsilon={epsilon} promises nothing. At most {MOST_EPSILON:,} is taken. Use for example 1.")
    refuse_extremes(unit, amount)
    if name not in PRIVATE + BASELINES:
        raise PrivacyError(
            f"mechanism {name!r} is unknown. There are: {', '.join(PRIVATE + BASELINES)}. Leave it out for the default."
        )
    if cells != 1 and name != "joint-polynomial":
        raise PrivacyError(
            f"{name} with cells={cells}: its noise is for one count. Only joint-polynomial covers several counts "
            "of the same establishments. Use that one, or leave cells out and pay for each count."
        )
    if cells < 1:
        raise PrivacyError(f"cells={cells} leaves nothing to count. It is a number of counts. Use 1 or more.")
    if name.startswith("smooth-") and amount > MOST_SEARCHED:
        raise PrivacyError(
            f"{name} with epsilon={shown(amount)} for a count hides nothing. Its constants are searched up to "
            f"{MOST_SEARCHED}. Lower epsilon, or use polynomial."
        )
    if name.startswith("smooth-") and amount < LEAST_SEARCHED:
        raise PrivacyError(
            f"{name} with epsilon={shown(amount)} for a count needs more digits than a number has. Its constants are "
            f"searched from {LEAST_SEARCHED:.2g} on. Raise epsilon, or count fewer kinds."
        )
    if name == "smooth-laplace":
        chance = exact(delta, name="delta") if delta is not None else exact(0)
        if not 0 < chance < 1:
            raise PrivacyError(
                f"smooth-laplace with delta={delta}: it promises (epsilon, delta) and needs 0 < delta < 1. "
                "Give delta=1e-6, say, or use polynomial, which needs none."
            )
        if chance < LEAST_DELTA or 1 - chance < MARGIN:
            raise PrivacyError(
                f"smooth-laplace with delta={shown(chance)} for a count: so close to 0 or 1 it cannot be computed. "
                f"Between {float(LEAST_DELTA):g} and 1 - 1e-9 it can. Give delta=1e-6, say, or use polynomial, which "
                "needs none."
            )
        asked = loss(epsilon=amount, delta=chance)
    elif delta is not None and exact(delta, name="delta"):
        raise PrivacyError(
            f"{name} with delta={delta}: it promises pure epsilon. Leave delta out, or use smooth-laplace."
        )
    else:
        asked = Pure(amount)
    if name in BASELINES:
        return _baseline(name, unit, amount, theta, calibration)
    ask = Request(unit=unit, loss=asked, calibration=calibration, cells=cells)
    if unit.substitution and "polynomial" not in name:
        return replace(_CALIBRATIONS[name](replace(ask, loss=half(asked))), loss=asked)
    return _CALIBRATIONS[name](ask)


def one_worker_floor(unit: Establishments) -> float:
    """m = 1 + e^(b/2): noise in proportion to max(alpha x, m) or alpha x + m feels one worker as half a step."""
    return 1 + math.exp(unit.log_growth / 2) if unit.substitution else 1.0


def _polynomial(ask: Request) -> SmoothNoise:
    return _radial(ask, "polynomial", dimension=1)


def _joint_polynomial(ask: Request) -> SmoothNoise:
    return _radial(ask, "joint-polynomial", dimension=ask.cells)


def _radial(ask: Request, name: str, *, dimension: int) -> SmoothNoise:
    """Noise (S / alpha) Z with p = d + eps/b and the smallest core that the two conditions of the proof allow."""
    if ask.calibration == "paper":
        raise PrivacyError(
            f"{name} is not in the Tables paper. It has the tight calibration only. Leave `calibration` out."
        )
    d, b, alpha = dimension, ask.b, float(ask.unit.alpha)
    budget = ask.epsilon * (1 - MARGIN)
    if budget <= d * b:
        growth = math.expm1(ask.epsilon / d)
        raise ask.refuse(
            name,
            f"epsilon > {f'{d} ' if d > 1 else ''}ln(1 + alpha) = {d * b:.4g}",
            f"Raise epsilon above {d * b:.4g}, or lower alpha below {growth:.4g}.",
        )
    p = d + budget / b
    if p + d > ask.epsilon / MARGIN / 2**10:
        raise ask.refuse(
            name, f"(2 d + epsilon / ln(1 + alpha)) / epsilon below {1 / MARGIN / 2**10:.3g}", "Raise alpha."
        )

    def psi(r: float, core: float) -> float:
        t = alpha * r
        return p * min(t, core) / (1 + core) + p * math.log1p(max(t - core, 0.0) / (1 + core))

    # The longest distances, and what each may cost: (2) and (3) of the proof, and the same for half of the loss.
    costs = {1.0: budget, math.exp(-b): budget - d * b}
    floor = one_worker_floor(ask.unit)
    if ask.unit.substitution:
        costs |= {1 / floor: budget / 2, math.exp(-b / 2) / floor: (budget - d * b) / 2}

    def excess(core: float) -> float:
        return max(psi(r, core) - cost for r, cost in costs.items())

    # Below the first a condition fails; at the second the core holds all distances and is long enough for each.
    low = min(alpha, math.sqrt(2 * d * b / p))
    high = max(alpha, *(p * alpha * r / cost for r, cost in costs.items()))
    # The sampler needs the last; a longer core keeps both conditions.
    core = max(least(excess, low, high), (d - 1) / (p - d) * (1 + MARGIN))
    law = Polynomial(p, core) if d == 1 else RadialPolynomial(p, d, core)
    proof = "docs/proofs/polynomial.md"
    return SmoothNoise(name, ask.unit, ask.loss, law, (1 + MARGIN) / alpha, "tight", proof, floor=floor)


def _log_laplace(ask: Request) -> LogLaplace:
    factor = 2 if ask.calibration == "paper" else 1
    if factor == 1 and ask.b < LEAST_GROWTH:
        raise ask.refuse("log-laplace", f"ln(1 + alpha) of at least {LEAST_GROWTH:.3g}", "Raise alpha.")
    exponent = factor * ask.b / ask.epsilon * (1 if ask.calibration == "paper" else 1 + MARGIN)
    if exponent >= 1:
        word = "2 ln(1 + alpha)" if factor == 2 else "ln(1 + alpha)"
        raise ask.refuse(
            "log-laplace",
            f"epsilon > {word} = {factor * ask.b:.4g} for its error to be finite",
            f"Raise epsilon above {factor * ask.b:.4g}, or lower alpha below {math.expm1(ask.epsilon / factor):.4g}.",
        )
    shrink = 1.0 if ask.calibration == "paper" else 1 - exponent**2
    return LogLaplace(ask.unit, ask.loss, exponent, shrink, ask.calibration, "docs/proofs/log-laplace.md")


def _smooth_gamma(ask: Request) -> SmoothNoise:
    law = GeneralisedCauchy(4.0)
    proof = "docs/proofs/smooth-gamma.md"
    if ask.calibration == "paper":
        if ask.b > ask.epsilon / 4:
            raise ask.refuse(
                "smooth-gamma",
                f"epsilon >= 4 ln(1 + alpha) = {4 * ask.b:.4g}",
                f"Raise epsilon to {4 * ask.b:.4g} or lower alpha to {math.expm1(ask.epsilon / 4):.4g}.",
            )
        return SmoothNoise("smooth-gamma", ask.unit, ask.loss, law, 16 / ask.epsilon, "paper", proof)
    budget = ask.epsilon * (1 - MARGIN)
    if budget <= 3 * ask.b:
        raise ask.refuse(
            "smooth-gamma",
            f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g}",
            f"Raise epsilon above {3 * ask.b:.4g} or lower alpha below {math.expm1(ask.epsilon / 3):.4g}.",
        )
    # Less noise lets the count itself lose epsilon; more than the sum of the two worst cases is never needed.
    low, high = math.expm1(budget) ** -0.25, 3**0.75 / (budget - 3 * ask.b)
    k = least(lambda k: gamma_loss(1 / k, ask.b) - budget, low, high)
    return SmoothNoise("smooth-gamma", ask.unit, ask.loss, law, k, "tight", proof)


def _smooth_laplace(ask: Request) -> SmoothNoise:
    law = Laplace()
    proof = "docs/proofs/smooth-laplace.md"
    if ask.calibration == "paper":
        needed = 2 * math.log(1 / ask.delta) * ask.b
        if ask.epsilon < needed:
            raise ask.refuse(
                "smooth-laplace",
                f"epsilon >= 2 ln(1/delta) ln(1 + alpha) = {needed:.4g}",
                f"Raise epsilon to {needed:.4g}, raise delta to {math.exp(-ask.epsilon / (2 * ask.b)):.3g}, "
                f"or lower alpha to {math.expm1(ask.epsilon / (2 * math.log(1 / ask.delta))):.4g}.",
            )
    # Scales are rounded: they may change by a little more than 1 + alpha, and the count by a little more than one.
    growth = ask.b + MARGIN / 2**10
    alpha = math.expm1(growth)
    aim = math.log(ask.delta) - 1e-6 - MARGIN / 2**15 * (ask.epsilon + growth) / alpha
    if ask.calibration == "paper":
        reached = laplace_delta(ask.epsilon / 2 * (1 + MARGIN / 2**10), growth, ask.epsilon)
        if reached > aim:
            needed = three_digits(math.exp(reached) * (1 + 1e-5), up=True)
            raise ask.refuse(
                "smooth-laplace",
                f"delta >= {needed:g}, which its constants reach although their condition holds",
                "Raise delta to that, lower alpha, or leave `calibration` out for constants that are enough.",
            )
        return SmoothNoise("smooth-laplace", ask.unit, ask.loss, law, 2 / ask.epsilon, "paper", proof)
    lowest = delta_floor(alpha, ask.epsilon)
    if aim <= lowest:
        least_delta = three_digits(math.exp(lowest), up=True)
        raise ask.refuse(
            "smooth-laplace",
            f"delta > {least_delta:g}, which a change of scale by 1 + alpha alone uses up",
            f"Raise delta above {least_delta:g}, raise epsilon, lower alpha, or use polynomial, which needs no delta.",
        )
    low = 1 / (ask.epsilon - 2 * math.log1p(-ask.delta))
    high = 1 / min(ask.epsilon, alpha * (aim - lowest))
    k = least(lambda k: laplace_delta(1 / k, growth, ask.epsilon) - aim, low, high)
    return SmoothNoise("smooth-laplace", ask.unit, ask.loss, law, k * (1 + MARGIN), "tight", proof)


def _baseline(name: Name, unit: Establishments, epsilon: Fraction, theta: int, calibration: Calibration) -> Baseline:
    law = DiscreteLaplace() if calibration == "tight" else Laplace()
    if name == "edge-laplace":
        return Baseline(name, Workers(), Pure(epsilon), law, upward(1 / epsilon), "proved", calibration)
    if name == "node-truncation":
        nodes = EstablishmentNodes(theta)
        return Baseline(name, nodes, Pure(epsilon), law, upward(theta / epsilon), "proved", calibration)
    return Baseline(name, unit, Pure(epsilon), Laplace(), upward(1 / epsilon), "as published", "paper")


_CALIBRATIONS: Mapping[str, Callable[[Request], SmoothNoise | LogLaplace]] = {
    "polynomial": _polynomial,
    "joint-polynomial": _joint_polynomial,
    "log-laplace": _log_laplace,
    "smooth-gamma": _smooth_gamma,
    "smooth-laplace": _smooth_laplace,
}


def least_epsilon(*, alpha: Number, delta: Number) -> float:
    """Table 2 of the paper: the smallest epsilon of paper-calibrated Smooth Laplace, 2 ln(1/delta) ln(1 + alpha).

    The first half of the printed table follows from delta = 0.005, not from the 0.05 in its heading.
    """
    return 2 * math.log(1 / float(exact(delta))) * math.log1p(float(exact(alpha)))
