"""The error rates that docs/sweeps.md claims, on fewer simulations."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

SIMULATIONS = 2_000
# Three standard errors of a share of 5 % in so many simulations.
MARGIN = 3 * (0.05 * 0.95 / SIMULATIONS) ** 0.5


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("queries", [10, 50, 300])
@pytest.mark.parametrize("number", range(4))
def test_the_sign_flip_test_holds_its_level(calibration: ModuleType, number: int, queries: int) -> None:
    shares = calibration.false_positives(calibration.NULL[number], queries, SIMULATIONS)
    assert shares["sign-flip test"] <= 0.05 + MARGIN


@pytest.mark.parametrize("number", range(4))
def test_the_percentile_interval_holds_its_level_for_many_queries(calibration: ModuleType, number: int) -> None:
    shares = calibration.false_positives(calibration.NULL[number], 300, SIMULATIONS)
    assert abs(shares["percentile interval"] - 0.05) <= MARGIN + 0.01
    assert abs(shares["t-test"] - 0.05) <= MARGIN + 0.01


def test_the_percentile_interval_is_too_short_for_few_queries(calibration: ModuleType) -> None:
    shares = calibration.false_positives(calibration.NULL[3], 20, SIMULATIONS)
    assert shares["percentile interval"] > 0.05 + MARGIN


@pytest.mark.parametrize("number", range(3))
def test_the_percentile_interval_covers_a_shifted_mean(calibration: ModuleType, number: int) -> None:
    assert abs(calibration.coverage(calibration.SHIFTED[number], 300, SIMULATIONS) - 0.95) <= MARGIN + 0.01


@pytest.mark.parametrize("number", range(4))
def test_families_of_many_queries_hold_their_level(calibration: ModuleType, number: int) -> None:
    shares = calibration.family_errors(calibration.NULL[number], 300, 1_000)
    margin = 3 * (0.05 * 0.95 / 1_000) ** 0.5
    assert shares["Holm"] <= 0.05 + margin
    assert shares["max-T"] <= 0.05 + margin
    assert shares["simultaneous coverage"] >= 0.95 - margin
    assert shares["percentile intervals"] > 0.2
