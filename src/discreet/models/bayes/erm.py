"""Regularised regression by objective perturbation: the mode of a posterior, privately.

The LMM paper (section V) starts from Chaudhuri, Monteleoni and Sarwate (2011), who add noise to the objective of a
classifier. It observes that regularised risk minimisation is maximum a posteriori estimation. Here the response is
continuous and bounded. The minimised function is

    sum_i loss(y_i - x_i'f) + penalty/2 ||f||^2 + b'f,

b Laplace noise, loss(r) = tau^2 (sqrt(1 + (r/tau)^2) - 1): squares for small residuals, straight beyond tau, so that
no row pulls harder than tau. f is then the mode under a normal prior with variance 1 / penalty, in units of the error
variance, and hyperbolic errors. Theorem and proof: docs/proofs/objective-perturbation.md. They need real-valued noise,
which no computer has. A little Laplace noise on the result allows for the noise's grid and the solver's tolerance, and
its price is part of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.conjugate import HUGE
from discreet.models.bayes.curvature import FitRows, MinimumLaw, Paid, errors, known_gram, shortened, tell
from discreet.models.bayes.doubts import Doubt
from discreet.models.bayes.predictor import NO_ERRORS, FitErrors, Predictor, expected_errors, said, supposed
from discreet.models.bayes.question import PosteriorQuestion
from discreet.models.bayes.regression import Known, KnownDesign
from discreet.models.bayes.spending import floats, loss_of, public_note
from discreet.noise.exact import SATURATION
from discreet.noise.laws import Laplace
from discreet.noise.sampler import MOST, add_noise, draw_integers
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss, Number, exact
from discreet.privacy.units import Rows, Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases
from discreet.words.errors import FitError, PrivacyError
from discreet.words.faults import Argument
from discreet.words.voices import Symbol

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

PROOF = "docs/proofs/objective-perturbation.md"
SMOOTHING = Fraction(1, 50)  # share of epsilon that pays for finite arithmetic
BLOCK = 64  # rows summed in doubles before the exact sum, so that the rounding of a gradient is known and small
FAR = 40  # noise whose absolute sum exceeds FAR + 4 p scales has probability below 1e-17; it is minimised in Arb
ERROR_SHARE = "1/10"
RAISED = "the penalty was raised from {:.4g} to {:.4g}, the least that epsilon allows"
NEWTON = 200  # steps; whatever they leave is done by steps that provably end


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The constants of a private fit, all of them public.

    Attributes
    ----------
    tau : how hard a row may pull.
    norm : bound of ||x||_1; rows are shortened to it when they are read.
    penalty : the regularisation, at least what the Jacobian's share of epsilon allows.
    scale : of the Laplace noise in the gradient.
    rounding : bound of the error of a computed gradient's coordinate; also the grid of the noise, about.
    smoothing : scale of the Laplace noise on the result.
    step : grid of the result, a power of two.
    noise : the sum of the gradient's noise up to which doubles have digits enough.
    reach : bound of the minimiser's length for such noise.
    curve : bound of the objective's second derivatives.
    """

    tau: float
    norm: float
    penalty: float
    scale: float
    rounding: float
    smoothing: float
    step: float
    noise: float
    reach: float
    curve: float

    @property
    def law(self) -> MinimumLaw:
        """What standard errors follow from."""
        return {"tau": self.tau, "penalty": self.penalty, "scale": self.scale, "smoothing": self.smoothing}

    def tolerance(self, p: int) -> float:
        """The solver's tolerance: the length of the computed gradient."""
        return 4 * self.rounding * math.sqrt(p)


@releases
def objective_perturbation(
    formula: str,
    *,
    bounds: tuple[float, float],
    norm: float | None = None,
    penalty: float,
    epsilon: Number,
    error_share: Number = ERROR_SHARE,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[Released[Predictor]]:
    """Release the coefficients of a regularised regression, all of them under one epsilon.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    bounds : where responses lie, known without the data; one outside counts as the nearer end, and a row without one
        has no effect. An intercept is drawn to their middle.
    norm : a public bound of the sum of the absolute entries of a row of the design; longer rows are shortened. By
        default the number of terms, if all are categories; that of the rows themselves, if responses alone are
        protected and all columns are public. Other columns of numbers have no bound that is public.
    penalty : error variance over prior variance; raised if it is too small for epsilon.
    epsilon : the loss of all coefficients together, and of what their standard errors need.
    error_share : the share of epsilon that pays for standard errors and intervals; 0 for none.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    numbers : protected columns of numbers. A table without types, such as a CSV file, needs them declared.
    account, ledger, budget, dataset, name, seed : who pays and under which name, as for `posterior_probability`.

    Returns
    -------
    The coefficients, with standard errors of noise and sampling, and 95 % intervals.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 3000)
    >>> data = {"x": x, "y": 2 * x + np.random.default_rng(0).normal(size=3000)}
    >>> found = objective_perturbation("y ~ x", data, bounds=(-5, 5), norm=2, penalty=1, epsilon=4, seed=1)
    >>> found.value.coefficient
    ('(Intercept)', 'x')
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    loss = loss_of(epsilon)
    share = exact(error_share, name="error_share")
    if not 0 <= share < 1:
        raise PrivacyError(
            (Argument("error_share", error_share), " is not a share of epsilon."),
            "It is from 0 to below 1; the rest pays for the coefficients.",
            ("Use for example ", Argument("error_share", 0.1), ", or leave it out."),
            about="error_share",
        )
    lower, upper = _pair(bounds)
    for what, amount in {"norm": 1 if norm is None else norm, "penalty": penalty}.items():
        if not (_number(amount) and amount > 0):
            hint = "A penalty of 0 is an improper prior. " if what == "penalty" else ""
            raise FitError(
                (Argument(what, amount), " is not possible."),
                f"{hint}It is a positive number below {HUGE:g}.",
                ("Use for example ", Argument(what, 1), "."),
                about=what,
            )

    def offered(known: Known, unit: Unit) -> Offer[AnyFrame, FitRows, Predictor]:
        design = known.public_design(unit)
        longest = known.longest if norm is None else norm
        if longest is None and design is not None:  # whatever a row's response is, its entries are these or zeros
            longest = longest_row(design)
        if longest is None:
            why = (
                "The account protects responses alone, and the column is not declared public."
                if isinstance(unit, Rows)
                else "A row is protected with all its columns, so its numbers have no public bound, declared or not."
            )
            raise FitError(
                f"norm is left out, and {formula!r} has a column of numbers. {why}",
                "It bounds the sum of a row's absolute entries, the intercept's 1 included. Where responses alone are "
                "protected and all columns are public, they bound it themselves.",
                "Give for example norm=2 for an intercept and a column between -1 and 1.",
                about="norm",
            )
        intercept = np.array([name == "(Intercept)" for name in known.names]) * (lower + upper) / 2
        middle = float(intercept.sum())
        n, p = known.rows, len(known.names)
        paid = Paid.of(share * loss.epsilon, public=design is not None) if share else None
        constants = calibrate(
            *(n, p),
            tau=upper - lower,
            largest=max(abs(lower - middle), abs(upper - middle)),
            norm=longest,
            penalty=penalty,
            epsilon=(1 - share) * loss.epsilon,
        )

        def read(frame: AnyFrame) -> FitRows:
            rows = known.read(frame)
            return FitRows(shortened(rows.X, longest), np.clip(rows.y, lower, upper) - middle, rows.usable)

        def draw(rows: FitRows, source: Source) -> Predictor:
            f = release(rows.X, rows.y, constants, source=source)
            doubts = [Doubt("", RAISED.format(penalty, constants.penalty))] * (constants.penalty > penalty)
            reach = error = np.full(p, np.nan)
            if paid is None:
                doubts.append(NO_ERRORS)
            else:
                told = tell(rows, f, paid, known=design, norm=longest, tau=constants.tau, source=source)
                found = errors(f, told, rows=n, **constants.law)
                reach, error = found.reach, found.std_error
                doubts += said(reach, float(np.linalg.eigvalsh(told.gram)[0]), constants.penalty)
            value = f + intercept
            return Predictor(
                known.names,
                value=floats(value),
                std_error=floats(error),
                low=floats(value - reach),
                high=floats(value + reach),
                penalty=constants.penalty,
                asked=float(penalty),
                scale=constants.scale,
                smoothing=constants.smoothing,
                flag=(", ".join(doubt.word for doubt in doubts if doubt.word),) * p,
                notes=tuple(doubt.note for doubt in doubts),
            )

        def expected() -> FitErrors:
            public = design is not None
            gram = known_gram(design, longest) if design else supposed(*known.terms, rows=n, norm=longest)
            return expected_errors(known.names, gram, paid, rows=n, norm=longest, public=public, **constants.law)

        return Offer(
            guarantee=Guarantee(unit, loss, "tight", "proved", PROOF, (public_note(known.public),)),
            details={
                "summary": "objective perturbation",
                "formula": formula,
                **taken(unit, known.public, known.named),
                "bounds": [float(lower), float(upper)],
                "norm": float(longest),
                "penalty": constants.penalty,
                "coefficients": p,
                "calibration": "tight",
                "error_share": str(share),
            },
            expected=expected,
            read=read,
            draw=draw,
        )

    return PosteriorQuestion(formula, (), public, numbers, payer, offered)


def longest_row(design: KnownDesign) -> float:
    """The largest sum of a row's absolute entries."""
    return float(np.abs(design.X).sum(axis=1).max()) or 1.0


def _pair(bounds: tuple[float, float]) -> tuple[float, float]:
    if isinstance(bounds, tuple | list) and len(bounds) == 2 and all(map(_number, bounds)) and bounds[0] < bounds[1]:
        return bounds[0], bounds[1]
    raise PrivacyError(
        (Argument("bounds", bounds), " is not a range of responses."),
        "Bounds are two public numbers, the smaller one first.",
        ("Give the range that the response has by its definition, for example ", Argument("bounds", (0, 1)), "."),
        about="bounds",
    )


def _number(x: object) -> bool:
    return isinstance(x, int | float | np.integer | np.floating) and not isinstance(x, bool) and bool(-HUGE < x < HUGE)


def calibrate(
    n: int, p: int, *, tau: float, largest: float, norm: float, penalty: float, epsilon: Fraction
) -> Perturbation:
    """Divide epsilon: ln(1 + norm^2 / penalty) for the Jacobian, at most a half, 2 % for arithmetic, the rest for b.

    `largest` bounds the size of the response.
    """
    asked = penalty
    penalty = max(penalty, norm**2 / math.expm1(min(float(epsilon) / 2, 700.0)))
    smooth = float(epsilon * SMOOTHING)
    left = (float(epsilon) - smooth - math.log1p(norm**2 / penalty)) * (1 - 2.0**-40)
    scale = 2 * tau * norm / left
    noise = (FAR + 4 * p) * scale
    f = 2 * noise / penalty + largest * math.sqrt(n / penalty)
    rounding = 2.0**-53 * (n * norm * ((p + 2) * (norm * f + largest) + (BLOCK + 8) * tau) + 3 * (penalty * f + noise))
    error = 5.5 * rounding * math.sqrt(p) / penalty
    step = 2.0 ** math.floor(math.log2(error / (8 * math.sqrt(p)))) if 0 < error < math.inf else math.nan
    smoothing = 2 * (math.sqrt(p) * error + p * step) / smooth * (1 + 2.0**-40)
    if not (
        math.isfinite(smoothing)
        and step > 0
        and rounding * 2**10 < scale
        and smoothing < 2.0**50 * step
        and norm * f < 1e150 * tau
    ):
        raise FitError(
            (
                Argument("penalty", Symbol(f"{asked:g}")),
                " with ",
                Argument("norm", Symbol(f"{norm:g}")),
                " and ",
                Argument("epsilon", Symbol(f"{float(epsilon):g}")),
                " needs more digits than a number has: rounding would drown the noise.",
            ),
            "A larger penalty is possible.",
            f"Raise it, for example to {max(1.0, 1e-06 * n * norm**2):.2g}.",
            about="penalty",
        )
    return Perturbation(tau, norm, penalty, scale, rounding, smoothing, step, noise, f, n * norm**2 + penalty)


def release(X: Matrix, y: Vector, constants: Perturbation, *, source: Source) -> Vector:
    """The minimiser of the perturbed objective, smoothed."""
    p, step = X.shape[1], constants.step
    whole = _steps(minimise(X, y, noise(p, constants, source=source), constants), step)
    return np.asarray(add_noise(whole, Laplace(), scale=np.full(p, constants.smoothing / step), source=source) * step)


def noise(p: int, constants: Perturbation, *, source: Source) -> Vector:
    """Laplace noise for the gradient as exact fractions, on a grid; beyond the sampler's cut the law begins anew."""
    grid = Fraction(2) ** math.floor(math.log2(constants.rounding))
    scale = np.full(p, constants.scale / float(grid))
    drawn = draw_integers(Laplace(), scale=scale, source=source)
    sign, half_steps = np.sign(drawn).tolist(), [0] * p
    while True:
        cut = np.abs(drawn) == SATURATION
        added = np.where(cut, 2 * SATURATION - 1, 2 * np.abs(np.where(cut, 0, drawn))).tolist()
        half_steps = [size + more for size, more in zip(half_steps, added, strict=True)]
        if not cut.any():
            return np.array([s * size * grid / 2 for s, size in zip(sign, half_steps, strict=True)], dtype=object)
        drawn = np.where(cut, draw_integers(Laplace(), scale=scale, source=source), 0)


def minimise(X: Matrix, y: Vector, b: Vector, constants: Perturbation) -> Vector:
    """The f of least sum loss(y - Xf) + penalty/2 ||f||^2 + b'f: Newton's method, or plain descent where that fails.

    Rows of X are no longer than the norm. If the noise is too large for doubles, the result is fractions.
    """
    drawn = float(np.abs(b).sum())
    if drawn > constants.noise:
        return _minimise_in_arb(X, y, b, constants, digits=math.ceil(math.log2(drawn / constants.noise)))
    gradient = partial(_gradient, X, y, b.astype(np.float64), constants)
    with np.errstate(all="ignore"):  # a warning would tell about the data
        f = _newton(X, y, gradient, constants)
        return f if f is not None else _descend(gradient, np.zeros(len(b)), constants)


def _gradient(X: Matrix, y: Vector, b: Vector, constants: Perturbation, f: Vector) -> Vector:
    r = (X @ f - y) / constants.tau
    return np.asarray(_sum_rows((constants.tau * r / np.sqrt(1 + r**2))[:, None] * X) + constants.penalty * f + b)


def _newton(X: Matrix, y: Vector, gradient: Callable[[Vector], Vector], constants: Perturbation) -> Vector | None:
    """The minimiser, or None where Newton's steps do not lead there; each must shorten the gradient."""
    f = np.zeros(X.shape[1])
    g = gradient(f)
    for _ in range(NEWTON):
        size = float(np.linalg.norm(g))
        if size <= constants.tolerance(len(f)):
            return f if np.linalg.norm(f) <= constants.reach else None
        weight = (1 + ((X @ f - y) / constants.tau) ** 2) ** -1.5
        try:
            step = np.linalg.solve((X * weight[:, None]).T @ X + constants.penalty * np.eye(len(f)), g)
        except np.linalg.LinAlgError:
            return None
        for share in 0.5 ** np.arange(30):
            moved = gradient(f - share * step)
            if np.linalg.norm(moved) <= (1 - share / 4) * size:
                break
        else:
            return None
        f, g = f - share * step, moved
    return None


def _descend(gradient: Callable[[Vector], Vector], f: Vector, constants: Perturbation) -> Vector:
    """The minimiser by steps against the gradient: slow, and every one lowers the objective by a fixed amount."""
    while float(((g := gradient(f)) ** 2).sum()) > constants.tolerance(len(f)) ** 2:
        f = f - g / constants.curve
    return f


def _minimise_in_arb(X: Matrix, y: Vector, b: Vector, constants: Perturbation, *, digits: int) -> Vector:
    """The same with so many more binary digits than a double has: the error of a gradient grows with the noise."""
    from flint import arb, ctx

    def lift(x: Any) -> Any:
        return arb(Fraction(x).numerator) / arb(Fraction(x).denominator)

    def middles(x: Any) -> Any:
        return np.array([number.mid() for number in x])

    with ctx.workprec(64 + digits):
        X, y, b, f = (np.vectorize(lift, otypes=[object])(x) for x in (X, y, b, np.zeros(len(b))))
        f = middles(_descend(lambda f: middles(_gradient(X, y, b, constants, middles(f))), f, constants))
    exact = [x.man_exp() for x in f]
    return np.array([int(man) * Fraction(2) ** int(exponent) for man, exponent in exact], dtype=object)


def _steps(f: Vector, step: float) -> Integers:
    """The nearest whole numbers of steps; far ones are cut, which brings no two further apart."""
    if f.dtype == object:
        return np.array([max(-MOST // 2, min(MOST // 2, round(x / Fraction(step)))) for x in f], dtype=np.int64)
    return np.clip(np.rint(f / step), -MOST / 2, MOST / 2).astype(np.int64)


def _sum_rows(values: Matrix) -> Vector:
    """Column sums: blocks in doubles, then exactly."""
    if values.dtype == object:
        return np.asarray(values.sum(axis=0))
    blocks = np.add.reduceat(values, np.arange(0, len(values), BLOCK), axis=0)
    return np.array([math.fsum(column) for column in blocks.T])
