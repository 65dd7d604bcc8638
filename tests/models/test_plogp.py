"""Parametrised LogP where the probe of an overhead finds more than an overhead."""

from dataclasses import replace

from commodel.families import family
from tests.models.synthetic import observed, truth

MACHINE = truth("plogp")


def test_a_receiver_that_waits_is_not_busy_for_longer_than_the_gap():
    """Messages of more than 1 KiB wait for a late receiver: then even a lone one seems to take all of its time."""

    def prtt(case):
        late = case["late"] and case["bytes"] > 1024
        return MACHINE.times["prtt"](case | {"late": 0, "n": 1} if late else case)

    machine = replace(MACHINE, times=MACHINE.times | {"prtt": prtt})
    fitted = family("plogp").fit(observed(machine, "plogp"))
    for size in (4096, 16384, 65536):
        assert fitted.values[f"o_r.{size}"][0] == fitted.values[f"g.{size}"][0]
    half = fitted.curves[0]
    assert max(abs(a / b - 1) for a, b in zip(half.fitted, half.measured, strict=True)) < 0.01
