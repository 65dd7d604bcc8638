"""The size of a drop-tail queue from the arrival times of a flood (native/probes/arrivals.c), on
synthetic arrivals."""

import ctypes
import subprocess

import numpy as np
import pytest

from commodel.platforms.tools import ROOT

GAP = 121e-6  # s: a full Ethernet frame at 100 Mbit/s


class Arrival(ctypes.Structure):
    _fields_ = [("at", ctypes.c_double), ("sender", ctypes.c_int), ("index", ctypes.c_int)]


@pytest.fixture(scope="module")
def estimate_queue_packets(tmp_path_factory):
    library = tmp_path_factory.mktemp("arrivals") / "arrivals.so"
    source = ROOT / "workflow/native/probes/arrivals.c"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-o", library, source], check=True)
    function = ctypes.CDLL(str(library)).estimate_queue_packets
    function.restype = ctypes.c_double

    def call(arrivals, senders, packets):
        return function(
            (Arrival * max(len(arrivals), 1))(*arrivals), len(arrivals), senders, packets
        )

    return call


def flood(starts, each, places, gap_in=GAP, jitter=5e-6, noise=2e-6, seed=1):
    """Return the arrivals of packets behind a queue of `places` packets. Senders begin at `starts`
    and send at a constant rate with jitter."""
    rng = np.random.default_rng(seed)
    packets = sorted(
        (start + GAP * index + jitter * rng.random(), sender, index)
        for sender, start in enumerate(starts)
        for index in range(each)
    )
    free, arrivals = 0.0, []
    for entered, sender, index in packets:
        if free - entered > places * gap_in:
            continue
        left = max(entered, free)
        free = left + gap_in
        arrivals.append((left + noise * rng.random(), sender, index))
    return arrivals


@pytest.mark.parametrize("places", [10, 21, 86])
@pytest.mark.parametrize("senders", [2, 7, 15])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 5e-3])
def test_the_places_of_the_queue_are_found_whenever_senders_start(
    estimate_queue_packets, places, senders, spread
):
    """An estimate from counts alone would include the packets that left the queue before all
    senders started: up to 41 in 5 ms."""
    rng = np.random.default_rng([places, senders])
    for each in (256, 1024):
        starts = spread * rng.random(senders) + GAP * rng.random(senders) / senders
        arrivals = flood(starts, each, places)
        assert estimate_queue_packets(arrivals, senders, each) == pytest.approx(places, abs=0.75)


def test_the_queue_size_is_estimated_for_a_large_queue_and_for_a_slow_receiver(
    estimate_queue_packets,
):
    starts = np.linspace(0, 4e-3, 8)
    assert estimate_queue_packets(flood(starts, 4096, 1935), 8, 4096) == pytest.approx(1935, abs=2)
    assert estimate_queue_packets(
        flood(starts, 1024, 100, gap_in=3 * GAP), 8, 1024
    ) == pytest.approx(100, abs=1)


@pytest.mark.parametrize(("senders", "each", "places"), [(7, 64, 1000), (1, 1000, 5), (7, 0, 5)])
def test_without_enough_losses_nothing_is_found(estimate_queue_packets, senders, each, places):
    assert (
        estimate_queue_packets(flood(np.arange(senders) * 1e-5, each, places), senders, each) == -1
    )
