"""Micro-benchmarks: which cases each is run with on a platform of a given size. The programs are in native/probes/."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from commodel.records import Case
from commodel.registry import lookup

PACKET = 1024  # bytes of a packet in the TAN paper's experiments

Settings = Mapping[str, object]


@dataclass(frozen=True)
class Probe:
    """`settings(ranks, sizes)` gives the case settings; `ranks` is how many the platform offers it."""

    name: str
    title: str
    columns: tuple[str, ...]
    settings: Callable[[int, list[int]], Iterable[Settings]]
    max_ranks: int = 2

    def cases(self, platform: str, ranks: int, sizes: list[int]) -> tuple[Case, ...]:
        ranks = min(ranks, self.max_ranks)
        return tuple(Case(platform, self.name, ranks, dict(settings)) for settings in self.settings(ranks, sizes))


def up_to(limit: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, 24, 32, … and the limit itself: dense where curves bend, sparse beyond."""
    ladder = sorted({base << power for base in (2, 3) for power in range(limit.bit_length())} | {1, limit})
    return [value for value in ladder if value <= limit]


def probe(name: str) -> Probe:
    return lookup("probes", "PROBE", name)
