"""Kernels on eight hosts: their results verify, their messages are predicted, and balanced
partitions are faster with a slow host."""

import os

import pandas as pd
import pytest

from tests.labs import kernels
from tests.labs.network_lab import network
from tests.labs.shares import controller

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def fast_lab(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with network(tmp_path_factory.mktemp("kernels"), kernels.QUEUE, LAB_RATE=kernels.RATE) as lab:
        yield lab


def test_taulop_predicts_kernel_messages_over_tcp_better_than_hockney(fast_lab):
    kernels.mean_errors(fast_lab, kernels.SMALL_MESSAGES)
    compared = pd.read_csv(
        fast_lab.project / "results/messages/comparison.csv", keep_default_na=False
    )
    points = compared[compared["mu"] != ""].astype({"mu": float})
    assert set(points["operation"]) == {"summa:n=16:grid=2x4", "wave2d:n=512:grid=2x4"}
    means = points.groupby("model")["mu"].mean()
    print(means)
    # which knows nothing of messages that go out together
    assert means["taulop"] < min(2.5, means["hockney"])


def test_a_balanced_partition_beats_the_even_one_where_a_host_is_slow(fast_lab):
    """One host has a quarter of the other hosts' processor time, and slows down all hosts with an
    even partition."""
    if controller() is None:
        pytest.skip("no cgroup of this machine lets us limit processors")
    even, balanced = kernels.partitions(fast_lab, kernels.SMALL, samples=6).to_dict("records")
    print(even, balanced)
    assert balanced["computation"] < 0.8 * even["computation"]
    assert balanced["total"] < even["total"]
    assert not [
        group for group in controller().folder.iterdir() if group.name.startswith("commodel-lab-")
    ]
