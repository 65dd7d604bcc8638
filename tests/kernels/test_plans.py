"""Plans with kernels: estimates of their time, and files of speeds."""

import pytest

from commodel.errors import UserError
from commodel.patterns.points import PlatformResources, make_point
from commodel.plan.duration import (
    Durations,
)
from commodel.plan.planning import record_files
from tests.planning import MEASURE


def test_kernel_estimates_include_computation_except_in_simulation():
    """A product of 64 times 64 blocks of 32 x 32 numbers on two ranks, at 2e9 operations a
    second."""
    requested = {"operation": "summa:n=64", "algorithm": "paper", "ranks": 2, "bytes": 8192}
    whole = make_point(PlatformResources.unlimited(), requested)
    part = make_point(
        PlatformResources.unlimited(), {**requested, "operation": "summa:n=64:iteration=3"}
    )
    real, simulated = (Durations(name, MEASURE) for name in ("local", "simgrid"))
    assert real._estimate_sample(whole)[0] == pytest.approx(2048**3 / 2e9, rel=0.05)
    assert real._estimate_sample(part)[0] == pytest.approx(2048**3 / 2e9 / 64, rel=0.05)
    assert simulated._estimate_sample(whole)[0] < 1


def test_speed_files_are_recorded_and_checked_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = "simulated: true\nkernels:\n  gemm:\n    kinds:\n      node/1: [[4, 5]]\n"
    (tmp_path / "good.yaml").write_text(good)
    (tmp_path / "zero.yaml").write_text(good.replace("[4, 5]", "[4, 0]"))
    (file,) = record_files([], speeds=["good.yaml"]).values()
    assert (file.kind, file.bytes) == ("speeds", len(good))
    with pytest.raises(UserError, match=r"zero\.yaml:5: .*found a speed of 0, wanted more than 0"):
        record_files([], speeds=["zero.yaml"])
    with pytest.raises(UserError, match=r"none\.yaml: cannot be read"):
        record_files([], speeds=["none.yaml"])
