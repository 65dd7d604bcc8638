"""Cases of the core's probes that an overlay network has equivalents of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Equivalent:
    """What measures a case of a probe on an overlay network."""

    topology: str
    operation: str = "reduce"
    mode: str = "round-trip"  # the root requests, and the whole round trip is measured


def _make_fan(case: Settings) -> Equivalent | None:
    """Return half of the round trip that the root requests, as in the TAN paper.

    A multicast has no equivalent, because it sends one packet by reference.
    """
    return Equivalent(f"flat:{case['n']}", mode="waves") if case["direction"] == "in" else None


EQUIVALENTS: dict[str, Callable[[Settings], Equivalent | None]] = {
    "pingpong": lambda case: Equivalent("flat:1", "pingpong"),  # one connection, without the tree
    "chain": lambda case: Equivalent(f"chain:{case['height']}"),
    "fan": _make_fan,
    "wave": lambda case: Equivalent(f"flat:{case['n']}"),
}


def find_equivalent(probe: str, case: Settings) -> Equivalent | None:
    """Return the equivalent of a probe's case; None if there is none."""
    return EQUIVALENTS[probe](case) if probe in EQUIVALENTS else None


def has_equivalent(probe: str, case: Settings) -> bool:
    return find_equivalent(probe, case) is not None
