"""Attacks by somebody who knows all rows, or all establishments, but one, and is undecided between two possibilities.

They are simulated with the noise that a release states of itself, and need no data: noise of sums does not depend on
them. The attacker of a model or of a posterior summary sees noisy sums themselves, which are never published, and
decides by their likelihood ratio; of a model, all but the sum of squares; of `strict`, the noisy sums over blocks. The
attacker of a posterior draw knows the two normal laws that it can be of. The attacker of a perturbed objective knows
all other rows, and so the noise that each possibility needs. The attacker of flows takes everybody else off the
published employment and decides by what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.bayes.clipped import clipped_mean
from discreet.models.bayes.erm import calibrate, release
from discreet.models.bayes.interval import STAGES
from discreet.models.bayes.summation import LaplaceSums, noisy_sums
from discreet.models.linear.private.moments import law_of
from discreet.noise.flow_body import COORDINATES, FLOWS
from discreet.noise.sampler import add_noise
from discreet.noise.source import SeededSource, Source
from discreet.privacy.losses import Concentrated, Loss, Pure, from_dict
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.movement.changes import QuarterNoise
from discreet.tables.movement.flow_noise import FlowNoise

TRIALS = 20_000
FEW_TRIALS = 400
"""Trials where each asks for a whole search."""

OTHERS = 200
"""Known rows of a perturbed objective: enough to hold the minimum in the middle, where a response pulls hardest."""

FAR = 1e6
"""A part's answer that lies beyond all others, in their deviations."""


def of_sums(stated: Mapping[str, Any], *, seed: int) -> tuple[int, int] | None:
    """How often the sums of a model tell the least response of a row from the largest: trials, and right ones.

    Every part of the sums moves by all that its noise is scaled for. The noisy sum of squares is not used: it hardly
    differs between two ends. None where the release does not state its parts.
    """
    parts = [(from_dict(dict(part["loss"])), float(part["scale"])) for part in stated.get("parts", ())]
    if not parts:
        return None
    source, evidence = SeededSource(seed), np.zeros(2 * TRIALS)
    largest = np.repeat([False, True], TRIALS)
    for loss, scale in parts:
        if not isinstance(loss, Pure | Concentrated):
            return None
        moved = int(scale * (float(loss.epsilon) if isinstance(loss, Pure) else float(2 * loss.rho) ** 0.5))
        exact = np.where(largest, moved, 0).astype(np.int64)
        sums = add_noise(exact, law_of(loss), scale=np.full(len(exact), scale), source=source).astype(np.float64)
        evidence += _evidence(sums, float(moved), scale, pure=isinstance(loss, Pure))
    return 2 * TRIALS, _right(evidence, largest)


def of_blocks(stated: Mapping[str, Any], *, seed: int) -> tuple[int, int]:
    """The same for `strict`: the row's block has the one end of every ball, or the other one, and changes its size.

    Every deviation of the block moves by the whole box, the chosen radius by two counts.
    """
    rng, evidence, largest = np.random.default_rng(seed), np.zeros(2 * TRIALS), np.repeat([False, True], TRIALS)
    parts = [{"loss": stated["mean"]}, *stated["fixed"], *stated["groups"]]
    moved = [(part["loss"], 1) for part in parts] + [(part["loss"], len(parts) - 1) for part in stated["deviations"]]
    moved += [(part["choice"], 2) for part in parts if "choice" in part]
    for loss, coordinates in moved:
        for _ in range(coordinates):
            evidence += _told(from_dict(dict(loss)), coordinates, largest, rng)
    return 2 * TRIALS, _right(evidence, largest)


def _told(loss: Loss, coordinates: int, largest: Mask, rng: np.random.Generator) -> Vector:
    """The evidence in one of the coordinates that a vector moves by, all alike, in scales of its noise."""
    if isinstance(loss, Pure):
        moved, noise = float(loss.epsilon) / coordinates, rng.laplace(size=len(largest))
    elif isinstance(loss, Concentrated):
        moved, noise = float(2 * loss.rho / coordinates) ** 0.5, rng.standard_normal(len(largest))
    else:
        raise TypeError(loss)
    return _evidence(noise + moved * largest, moved, 1.0, pure=isinstance(loss, Pure))


def of_draw(loss: Concentrated, *, seed: int) -> tuple[int, int]:
    """The same for a posterior draw: two normals of one covariance, as far apart as the dearest row has them."""
    largest = np.repeat([False, True], TRIALS)
    return 2 * TRIALS, _right(_told(loss, 1, largest, np.random.default_rng(seed)), largest)


def of_objective(stated: Mapping[str, Any], loss: Pure, *, seed: int) -> tuple[int, int]:
    """The same for a perturbed objective: a row as long as the norm, among known ones in the middle.

    Each end of its response needs a noise of its own for the released minimum, and has that noise's probability times
    the change of volume there.
    """
    low, high = map(float, stated["bounds"])
    norm, source = float(stated["norm"]), SeededSource(seed)
    tau, ends = high - low, np.array([low - high, high - low]) / 2
    constants = calibrate(
        *(OTHERS + 1, 1), tau=tau, largest=tau / 2, norm=norm, penalty=float(stated["penalty"]),
        epsilon=(1 - Fraction(stated["error_share"])) * loss.epsilon,
    )  # fmt: skip
    X, y = np.full((OTHERS + 1, 1), norm), np.zeros(OTHERS + 1)
    largest, evidence = np.repeat([False, True], FEW_TRIALS), np.empty(2 * FEW_TRIALS)
    for trial, end in enumerate(largest.tolist()):
        y[0] = ends[int(end)]
        f = float(release(X, y, constants, source=source)[0])
        told = []
        for each in ends:
            r = (norm * f - np.array([each, 0.0])) / tau
            pull = np.array([1, OTHERS]) @ (r / np.sqrt(1 + r**2)) * tau * norm + constants.penalty * f
            volume = np.array([1, OTHERS]) @ (1 + r**2) ** -1.5 * norm**2 + constants.penalty
            told.append(np.log(volume) - abs(pull) / constants.scale)
        evidence[trial] = told[1] - told[0]
    return len(largest), _right(evidence, largest)


def of_probabilities(stated: Mapping[str, Any], loss: Pure, *, seed: int) -> tuple[int, int] | None:
    """The same for posterior probabilities: the row's part says 0 or 1 to every question, all other parts one half."""
    if stated.get("method") != "normality":
        return None
    questions, parts = len(stated["at"]), int(stated["partitions"])
    values = np.full((parts, 1), 0.5)
    each, evidence, largest = loss.epsilon / questions, np.zeros(2 * FEW_TRIALS), np.repeat([False, True], FEW_TRIALS)
    source = SeededSource(seed)
    for _ in range(questions):
        found: list[LaplaceSums] = []
        for end in largest.astype(float).tolist():
            values[0] = end
            found.append(noisy_sums(values, span=1.0, epsilons=[each], source=source))
        sums = np.array([float(one.value[0]) for one in found]) - 0.5 * (parts - 1)
        evidence += _evidence(sums, 1.0, float(found[0].scale[0]), pure=True)
    return 2 * FEW_TRIALS, _right(evidence, largest)


def of_quantiles(stated: Mapping[str, Any], loss: Pure, *, seed: int) -> tuple[int, int]:
    """The same for posterior quantiles, and locations of intervals: the row's part is far below or above all others.

    An interval's width is the same for both ends, and tells nothing.
    """
    interval, stages = "level" in stated, None
    if interval:
        stages = {stage: share / (1 - STAGES["spread"]) for stage, share in STAGES.items() if stage != "spread"}
    plan = clipped_mean(stated.get("centre", "private"), stated["calibration"], float(stated["unit"]), stages)
    questions, parts = len(stated["level" if interval else "probability"]), int(stated["partitions"])
    each = loss.epsilon / questions * (1 - STAGES["spread"] if interval else 1)
    sold = plan.sold(parts, each, count=questions)
    rng, source = np.random.default_rng(seed), SeededSource(seed)
    values = float(stated["unit"]) * rng.standard_normal(parts)
    largest = np.repeat([False, True], FEW_TRIALS)
    found = np.empty((len(largest), questions))
    for trial, end in enumerate(largest.tolist()):
        values[0] = FAR if end else -FAR
        for question in range(questions):
            found[trial, question] = sold.release(values, epsilon=Fraction(each), source=source).mean
    middle = np.median(found, axis=0)
    return len(largest), _right((found - middle).sum(axis=1), largest)


def _evidence(sums: Vector, moved: float, scale: float, *, pure: bool) -> Vector:
    """The log likelihood ratio of a sum that moved against one that did not."""
    if pure:
        return np.asarray((np.abs(sums) - np.abs(sums - moved)) / scale)
    return np.asarray((sums**2 - (sums - moved) ** 2) / (2 * scale**2))


def _right(evidence: Vector, truth: Vector) -> int:
    """How often the sign is right; no evidence is right every other time."""
    told = np.where(truth, evidence > 0, evidence < 0) + 0.5 * (evidence == 0)
    return int(told.sum())


Draw = Callable[[Integers, Integers, int], Integers]


def flows(mechanism: Mechanism, quarters: int, rng: np.random.Generator) -> Draw:
    """Published employment of establishments that are alone in their cells, whose workers all stayed."""
    noise = FlowNoise(mechanism, quarters)

    def draw(sums: Integers, largest: Integers, trial: int) -> Integers:
        vectors = np.zeros((len(sums), len(COORDINATES)), dtype=np.int64)
        vectors[:, COORDINATES.index("stayed")] = sums
        hidden = largest if quarters == 1 else np.stack([largest // quarters] * quarters, axis=1)
        return np.asarray(noise.draw(vectors, hidden, _source(rng)) @ np.array(FLOWS["employment"]))

    return draw


def changes(mechanism: Mechanism, quarters: int, rng: np.random.Generator) -> Draw:
    """Published jobs of such establishments, as many in every quarter: the mean of the quarters."""
    noise = cast("QuarterNoise", mechanism)

    def draw(sums: Integers, largest: Integers, trial: int) -> Integers:
        levels, hidden = (np.repeat(each[:, None], quarters, axis=1) for each in (sums, largest))
        published: Matrix = noise.draw_apart(levels, hidden, _source(rng)).astype(np.float64)
        return np.asarray(np.rint(published.mean(axis=1)), dtype=np.int64)

    return draw


def _source(rng: np.random.Generator) -> Source:
    return SeededSource(int(rng.integers(2**62)))
