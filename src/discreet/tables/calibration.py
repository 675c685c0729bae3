"""The least noise that keeps a promise, and the inequality that says when none does.

`calibrate` turns (mechanism, unit, loss) into constants before any data are read. "paper" gives the constants of the
Tables paper, so that its figures can be reproduced; "tight" the smallest ones that the definition allows. Notation:
b = ln(1 + alpha); derivations are in docs/proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args, overload

import numpy as np

from discreet.arrays import Vector
from discreet.errors import Infeasible, PrivacyError
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Loss, Number, Pure, exact, loss, shown, upward
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers
from discreet.privacy.verify import Law, LineLaw, exact_delta, supremum
from discreet.tables.mechanisms import Baseline, LogLaplace, SmoothNoise

PrivateName: TypeAlias = Literal["polynomial", "joint-polynomial", "log-laplace", "smooth-gamma", "smooth-laplace"]
BaselineName: TypeAlias = Literal["edge-laplace", "node-truncation", "down-sensitivity"]
Name: TypeAlias = PrivateName | BaselineName
PRIVATE: tuple[PrivateName, ...] = get_args(PrivateName)
BASELINES: tuple[BaselineName, ...] = get_args(BaselineName)

# Scales are doubles: the product factor * max(alpha * largest, 1) is off by a few parts in 2^53. A relative margin
# of 2^-30 in the constants covers that (docs/proofs/polynomial.md) and costs one part in 10^9 of accuracy.
MARGIN = 2.0**-30
MOST_EPSILON = 10**6
MOST_SEARCHED = 500  # beyond, e^epsilon and the noise that it asks for leave the range of doubles


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
    if name.startswith("smooth-") and calibration == "tight" and amount > MOST_SEARCHED:
        raise PrivacyError(
            f"{name} with epsilon={shown(amount)} for a count hides nothing. Its tight constants are searched up to "
            f"{MOST_SEARCHED}. Lower epsilon, or use polynomial."
        )
    if name == "smooth-laplace":
        chance = exact(delta, name="delta") if delta is not None else exact(0)
        if not 0 < chance < 1:
            raise PrivacyError(
                f"smooth-laplace with delta={delta}: it promises (epsilon, delta) and needs 0 < delta < 1. "
                "Give delta=1e-6, say, or use polynomial, which needs none."
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
    return _CALIBRATIONS[name](Request(unit=unit, loss=asked, calibration=calibration, cells=cells))


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

    def excess(core: float) -> float:
        return max(psi(1.0, core) - budget, psi(math.exp(-b), core) - (budget - d * b))

    core = max(least(excess, alpha), (d - 1) / (p - d) * (1 + MARGIN))
    law = Polynomial(p, core) if d == 1 else RadialPolynomial(p, d, core)
    return SmoothNoise(name, ask.unit, ask.loss, law, (1 + MARGIN) / alpha, "tight", "docs/proofs/polynomial.md")


def _log_laplace(ask: Request) -> LogLaplace:
    factor = 2 if ask.calibration == "paper" else 1
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
    if ask.epsilon <= 3 * ask.b:
        raise ask.refuse(
            "smooth-gamma",
            f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g}",
            f"Raise epsilon above {3 * ask.b:.4g} or lower alpha below {math.expm1(ask.epsilon / 3):.4g}.",
        )
    # The published-style constant 3^(3/4) / (eps - 3 b) adds the two worst cases; they never meet, so it is a bound.
    bound = 3**0.75 / (ask.epsilon - 3 * ask.b)
    k = least(lambda k: worst_loss(law, k, ask.b) - ask.epsilon, bound)
    return SmoothNoise("smooth-gamma", ask.unit, ask.loss, law, k * (1 + MARGIN), "tight", proof)


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
        return SmoothNoise("smooth-laplace", ask.unit, ask.loss, law, 2 / ask.epsilon, "paper", proof)
    floor = _dilation_delta(ask.b, ask.epsilon)
    if ask.delta <= floor:
        raise ask.refuse(
            "smooth-laplace",
            f"delta > {floor:.3g}, which a change of scale by 1 + alpha alone uses up",
            f"Raise delta above {floor:.3g}, raise epsilon, lower alpha, or use polynomial, which needs no delta.",
        )
    aim = math.log(ask.delta) - 1e-7
    k = least(lambda k: math.log(worst_delta(law, k, ask.b, ask.epsilon) + 1e-300) - aim, 2 / ask.epsilon)
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


def worst_moves(factor: float, b: float) -> tuple[Vector, Vector]:
    """The (shift, ratio) pairs that decide: the largest shift min(1, w) / factor for every ratio w in [e^-b, e^b]."""
    ratio = np.exp(np.linspace(-b, b, 129))
    return np.minimum(1.0, ratio) / factor, ratio


def worst_loss(law: Law, factor: float, b: float) -> float:
    """The supremum of the loss over outputs and neighbours of noise `factor * max(alpha x, 1) * Z`."""
    shift, ratio = worst_moves(factor, b)
    return float(supremum(law, shift=shift, ratio=ratio)[0].max())


def worst_delta(law: LineLaw, factor: float, b: float, epsilon: float) -> float:
    """The exact delta over neighbours of noise `factor * max(alpha x, 1) * Z`."""
    shift, ratio = worst_moves(factor, b)
    return float(exact_delta(law, shift=shift, ratio=ratio, epsilon=epsilon).max())


def _dilation_delta(b: float, epsilon: float) -> float:
    """delta(eps) between Laplace laws whose scales differ by e^b: what no amount of noise can go below."""
    ratio = math.exp(b)
    edge = (epsilon + b) / (1 - 1 / ratio)
    return math.exp(-edge / ratio) - math.exp(epsilon - edge)


def least(excess: Callable[[float], float], guess: float) -> float:
    """The smallest positive number from which on `excess`, which falls, is not above zero: from above, to 1e-10.

    Regula falsi that halves the value at an end which stays (Illinois), every third step a bisection. SciPy's root
    finders would do; their module takes longer to load than a release takes to draw.
    """
    low = high = guess
    while (beyond := excess(high)) > 0:
        high *= 1.5
    while (before := excess(low)) <= 0:
        low /= 1.5
    moved = step = 0
    while high > low * (1 + 1e-10):
        step += 1
        share = before / (before - beyond) if step % 3 else 0.5
        # A root next to one end must not keep the other away.
        x = min(max(low + (high - low) * share, low * (1 + 4e-11)), high / (1 + 4e-11))
        found = excess(x)
        if found > 0:
            low, before, beyond = x, found, beyond / (2 if moved > 0 else 1)
        else:
            high, beyond, before = x, found, before / (2 if moved < 0 else 1)
        moved = 1 if found > 0 else -1
    return high


def least_epsilon(*, alpha: Number, delta: Number) -> float:
    """Table 2 of the paper: the smallest epsilon of paper-calibrated Smooth Laplace, 2 ln(1/delta) ln(1 + alpha).

    The first half of the printed table follows from delta = 0.005, not from the 0.05 in its heading.
    """
    return 2 * math.log(1 / float(exact(delta))) * math.log1p(float(exact(alpha)))
