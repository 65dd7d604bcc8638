"""Plans with kernels: estimates of their time, and files of speeds."""

from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.interchange import StatedProperties, csv, read_all_times
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


def test_a_table_of_times_names_no_partition_outside_of_the_project(tmp_path, monkeypatch):
    home = tmp_path / "project"
    home.mkdir()
    (tmp_path / "outside.csv").write_text("rank,x,y,width,height\n0,0,0,8,8\n")
    (home / "link.csv").symlink_to("../outside.csv")
    (home / "t.csv").write_text(
        "operation,algorithm,ranks,bytes,seconds\nsumma:partition=link.csv,paper,2,8,1us\n"
    )
    monkeypatch.chdir(home)
    with pytest.raises(UserError, match=r"t\.csv:2: .*leads out"):
        read_all_times(csv.FORMAT, [Path("t.csv")], StatedProperties())
