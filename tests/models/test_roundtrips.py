"""Round trips at the edges: of empty messages, and shorter than the overheads of their two ends."""

from dataclasses import replace

import pytest

from commodel.fits.probe_fits import as_parameters
from commodel.models.families import family
from tests.models.synthetic import observed, truth


@pytest.mark.parametrize("name", ["logp", "loggp", "loggops", "hloggp", "loggph"])
def test_no_latency_is_said_not_to_be_known(name):
    machine = truth("loggp")

    def prtt(case):
        return 25e-6 if case["late"] else machine.times["prtt"](case)

    times = {**machine.times, "prtt": prtt, "pairprtt": prtt}
    parameters = as_parameters(family(name), family(name).fit(observed(replace(machine, times=times), name)))
    latencies = [value for key, value in parameters.values.items() if key.partition(".")[0] == "L"]
    assert latencies
    assert all(value.value == 0 and not value.known and "overheads" in value.note for value in latencies)


@pytest.mark.parametrize("name", ["loggp", "loggops", "loggph"])
def test_an_empty_message_has_no_bytes_to_pay_for(name):
    """(m-1)·G is 0 there as in the price, not -G."""
    machine = replace(truth("loggp"), sizes=(0, 1024, 65536))
    times = {**machine.times, "pairprtt": machine.times["prtt"]}
    values = as_parameters(family(name), family(name).fit(observed(replace(machine, times=times), name))).values
    (latency,) = (value.value for key, value in values.items() if key.partition(".")[0] == "L")
    assert latency == pytest.approx(10e-6, rel=1e-9)
