"""The audit's arithmetic, its honesty, its power on simple mechanisms, and its command."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from scipy import stats
from typer.testing import CliRunner

from discreet.audit.blackbox import blackbox, epsilon_bound
from discreet.cli.blackbox import blackbox_command, load, parse
from discreet.words.errors import DataError, PlanError, PrivacyError
from faults_of import about


def laplace(scale: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    return lambda data, n: data + rng.laplace(scale=scale, size=n)


@pytest.mark.parametrize(("high", "low"), [(900, 300), (1000, 0), (5, 0), (1000, 1000)])
def test_the_bound_is_made_of_clopper_pearson_intervals(high: int, low: int) -> None:
    p = stats.binomtest(high, 1000).proportion_ci(0.98, "exact").low
    q = stats.binomtest(low, 1000).proportion_ci(0.98, "exact").high
    for delta in (0.0, 0.01):
        expected = max(0.0, np.log((p - delta) / q)) if p > delta else 0.0
        found = epsilon_bound(np.array([high]), np.array([low]), 1000, delta=delta, risk=0.01)[0]
        assert found == pytest.approx(expected, rel=1e-9)


def test_an_event_that_never_happens_bounds_nothing() -> None:
    assert epsilon_bound(np.array([0]), np.array([0]), 1000, delta=0.0, risk=0.01)[0] == 0.0


def test_the_bound_keeps_its_confidence() -> None:
    """Randomised response has epsilon exactly ln 3 on its best event: a 90 % bound may exceed it one time in ten."""
    rng = np.random.default_rng(1)

    def response(data: int, n: int) -> np.ndarray:
        return np.where(rng.random(n) < 0.75, data, 1 - data)

    bounds = np.array([blackbox(response, 0, 1, trials=2000, confidence=0.9, many=True).epsilon for _ in range(300)])
    assert (bounds > np.log(3)).mean() < 0.1
    assert np.median(bounds) > 0.85 * np.log(3)  # and is not idle


def test_laplace_noise_is_judged_by_its_scale() -> None:
    right = blackbox(laplace(1.0), 0, 1, claimed=1, many=True, confidence=0.999999)
    assert not right.refuted and 0.85 < right.epsilon <= 1
    half = blackbox(laplace(0.5), 0, 1, claimed=1, many=True, confidence=0.999999)
    assert half.refuted and 1.7 < half.epsilon <= 2
    assert half.to_dict()["refuted"] is True
    assert "REFUTED" in str(half) and "no proof" in str(right)


def test_equal_data_sets_show_nothing() -> None:
    assert blackbox(laplace(1.0), 3, 3, many=True).epsilon == 0.0


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_both_directions_are_tried(names: str) -> None:
    rng = np.random.default_rng(0)
    data = {"a": 1.0, "b": 0.5}
    verdict = blackbox(lambda p, n: rng.random(n) < p, data[names[0]], data[names[1]], many=True, trials=4000)
    assert verdict.likelier == names[1]  # False never happens at p = 1
    assert verdict.epsilon > 4


def test_a_change_of_scale_alone_is_found() -> None:
    rng = np.random.default_rng(2)
    verdict = blackbox(lambda s, n: s * rng.standard_cauchy((n, 3)), 1.0, 3.0, many=True, claimed=0.5, trials=20_000)
    assert verdict.refuted


def test_a_small_shift_of_many_coordinates_is_found_together() -> None:
    rng = np.random.default_rng(3)

    def vector(shift: float, n: int) -> np.ndarray:
        return shift + 4 * rng.laplace(size=(n, 8))  # epsilon 2 together, 1/4 in each coordinate

    verdict = blackbox(vector, 0.0, 1.0, many=True, claimed=0.5, confidence=0.9999)
    assert verdict.refuted and verdict.epsilon <= 2
    assert "learnt" in verdict.event


def test_labels_and_mixed_outputs_are_told_apart() -> None:
    rng = np.random.default_rng(4)

    def answer(p: float) -> object:
        u = rng.random()
        return "yes" if u < p else None if u < p + 0.1 else (1, 2)

    verdict = blackbox(answer, 0.8, 0.2, trials=2000)
    assert "'yes'" in verdict.event or "2 numbers" in verdict.event
    assert 0.5 < verdict.epsilon <= np.log(7)


def test_a_point_that_only_one_data_set_reaches_is_found() -> None:
    """Noise that is not rounded to a grid: every output differs, and the fraction tells the data set."""
    rng = np.random.default_rng(5)
    verdict = blackbox(lambda d, n: d + rng.integers(-5, 6, n), 0.25, 0.5, many=True, claimed=1, trials=5000)
    assert verdict.refuted and verdict.epsilon > 3


def test_a_delta_is_granted() -> None:
    rng = np.random.default_rng(6)

    def leaky(data: int, n: int) -> np.ndarray:
        """With probability 0.02 the data themselves, else nothing."""
        return np.where(rng.random(n) < 0.02, data, 7)

    assert blackbox(leaky, 0, 1, many=True, claimed=1).refuted
    assert not blackbox(leaky, 0, 1, many=True, claimed=1, delta=0.03).refuted


def test_progress_is_told_and_wrong_requests_are_refused() -> None:
    shares: list[float] = []
    blackbox(lambda d: d, 0, 1, trials=2000, progress=lambda _, share: shares.append(share))
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    for wrong in (
        {"confidence": 1.0},
        {"delta": -0.1},
        {"trials": 5},
        {"claimed": "much"},
        {"claimed": -1},
    ):
        with pytest.raises(PrivacyError):
            blackbox(laplace(1.0), 0, 1, many=True, **wrong)
    with pytest.raises(DataError, check=about("trials")):
        blackbox(laplace(1.0), 0, 1, many=True, trials=200.5)  # type: ignore[arg-type]
    with pytest.raises(DataError, check=about("mechanism")):
        blackbox(lambda d, n: [1, 2, 3], 0, 1, many=True)


def test_a_length_that_tells_the_data_set_is_found() -> None:
    """The numbers themselves are the same noise on both; every list is different, so no label would do."""
    rng = np.random.default_rng(7)
    verdict = blackbox(lambda d: rng.laplace(size=d).tolist(), 2, 3, claimed=1, trials=2000)
    assert verdict.refuted and "2 numbers" in verdict.event + "2 numbers" * (verdict.likelier == "b")


def test_an_error_that_only_one_data_set_causes_is_a_leak_and_its_message_is_not_shown() -> None:
    rng = np.random.default_rng(8)

    def fragile(data: int) -> float:
        if data == 4711 and rng.random() < 0.2:
            raise ValueError(f"bad row {data}")
        return rng.laplace()

    verdict = blackbox(fragile, 4711, 0, claimed=1, trials=4000)
    assert verdict.refuted and verdict.event == "output in {raised ValueError}"
    assert 250 < verdict.raised < 1000 and "runs raised an error" in str(verdict)
    assert "4711" not in str(verdict) and verdict.to_dict()["raised"] == verdict.raised


def test_missing_numbers_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(9)

    def patchy(data: float) -> float:
        return float("nan") if rng.random() < 0.3 else data + rng.laplace()

    assert blackbox(patchy, 0.0, 4.0, claimed=2, trials=8000).refuted
    assert blackbox(lambda d: {"a": d + rng.laplace(), "b": "x"}, 0, 4, claimed=2, trials=8000).refuted


ODD = {
    "nothing": None,
    "not a number": float("nan"),
    "a huge integer": 10**400,
    "empty": [],
    "cube": np.ones((2, 2, 2)),
}


@pytest.mark.parametrize("output", ODD.values(), ids=ODD)
def test_odd_outputs_that_are_always_the_same_show_nothing(output) -> None:
    assert blackbox(lambda d: output, 0, 1, claimed=1, trials=400).epsilon == 0


@pytest.mark.parametrize("many", [False, True])
def test_what_never_runs_is_said_without_the_errors_own_words(many: bool) -> None:
    def broken(data: object, n: int = 1) -> object:
        raise KeyError(f"secret {data}")

    with pytest.raises(DataError, check=about("mechanism")) as error:
        blackbox(broken, "salary", "wage", many=many)
    assert "salary" not in str(error.value) and error.value.__cause__ is None
    for wrong in (5, None):
        with pytest.raises(DataError, check=about("mechanism")):
            blackbox(lambda d, n, wrong=wrong: wrong, 0, 1, many=True)


@pytest.fixture
def run(tmp_path, monkeypatch):
    module = (
        "import numpy as np\nrng = np.random.default_rng(0)\nnumber = 3\n"
        "def count(data):\n    return len(data) + rng.laplace()\n"
        "def weak(data, n):\n    return len(data) + rng.laplace(scale=0.4, size=n)\n"
    )
    (tmp_path / "audited_module.py").write_text(module)
    (tmp_path / "rows.json").write_text("[1, 2, 3]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = typer.Typer()
    app.command("blackbox")(blackbox_command)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_the_command_ends_with_1_when_the_claim_is_refuted(run) -> None:
    ask = ("--a", "@rows.json", "--b", "[1, 2]", "--epsilon", "1", "--trials", "4000")
    fine = run("audited_module:count", *ask)
    assert fine.exit_code == 0 and "not refuted" in fine.stdout
    weak = run("audited_module:weak", *ask, "--many", "--json")
    assert weak.exit_code == 1
    result = json.loads(weak.stdout)
    assert result["refuted"] and result["epsilon_at_least"] > 1 and result["function"] == "audited_module:weak"


def test_the_command_says_what_cannot_be_run(run) -> None:
    for name in ("audited_module", "no_such_module_here:f", "audited_module:missing", "audited_module:number"):
        with pytest.raises(PlanError):
            load(name)
    for data in ("{", "@absent.json"):
        with pytest.raises(DataError):
            parse(data, "--a")
    assert isinstance(run("audited_module:count", "--a", "{", "--b", "1").exception, DataError)


LARGE = {
    "one": lambda d, n: [2**60 + d] * n,
    "array": lambda d, n: np.full(n, 2**60 + d),
    "beyond 64 bits": lambda d, n: [2**70 + d] * n,
    "among doubles": lambda d, n: [[2**60 + d, 0.5]] * n,
    "at the border": lambda d, n: [2**53 + d] * n,
}


@pytest.mark.parametrize("mechanism", LARGE.values(), ids=LARGE)
def test_no_digit_of_an_integer_is_lost(mechanism) -> None:
    assert blackbox(mechanism, 0, 1, claimed=0.5, trials=2000, many=True).refuted
    assert blackbox(mechanism, 0, 0, claimed=0.5, trials=2000, many=True).epsilon == 0


def test_large_integers_with_noise_are_still_numbers() -> None:
    rng = np.random.default_rng(0)
    noisy = lambda d, n: [2**60 + 4_000 * d + round(x) for x in rng.laplace(scale=1_000, size=n)]  # noqa: E731
    assert blackbox(noisy, 0, 1, claimed=2, trials=10_000, many=True).refuted
    assert not blackbox(noisy, 0, 1, claimed=4, trials=10_000, many=True).refuted


def test_commands_end_with_2_on_wrong_options(tmp_path) -> None:
    import subprocess
    import sys
    from pathlib import Path

    command = Path(sys.executable).parent / "discreet"
    (tmp_path / "t.csv").write_text("y,g\n1,a\n2,a\n3,b\n1,b\n")
    (tmp_path / "coin.py").write_text("def flip(data):\n    return data\n")
    for options in (
        ["posterior", "y ~ 1 + (1 | g)", "t.csv", "--nu", "0"],
        ["blackbox", "coin:flip", "--a", "0", "--b", "1", "--epsilon", "-1"],
    ):
        done = subprocess.run([command, "audit", *options], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 2, done.stderr
