"""The ways to do a job that advice looks at: every tree of some kinds with so many leaves, every algorithm with its
arguments."""

from collections.abc import Iterator, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.patterns.algorithms import Algorithm, choices
from commodel.patterns.trees.topologies import tree
from commodel.price.rounds import radices
from commodel.units import format_bytes

MOST_TREES = 400  # of a kind; of more, as many as that, evenly spread
RADICES = range(2, 9)
FAMILIAR = ("linear", "binomial")  # of names for the same messages, those to go by
MOST_SEGMENTS = 256  # more, and what a message costs by itself is all that counts
SEGMENTS = tuple(1 << power for power in range(8, 21, 2))  # 256 B to 1 MiB
COUNTS = tuple(1 << power for power in range(12))


def trees(leaves: int, latencies: Sequence[float] = ()) -> list[str]:
    """Trees with so many leaves, each once: flat, all balanced ones, two levels split as evenly as can be, k-nomial,
    and for each latency (of a message, in units of the time until the next can start) the postal-optimal one."""
    specs = [f"flat:{leaves}", *_spread(list(balanced(leaves))), *_spread(list(two_levels(leaves)))]
    for radix in RADICES:
        specs += grown(f"knomial:{radix}@", leaves)
    for latency in latencies:
        specs += grown(f"postal:{max(latency, 1.0):.6g}@", leaves)
    distinct: dict[bytes, str] = {}
    for spec in specs:
        distinct.setdefault(tree(spec).parent.tobytes(), spec)
    return list(distinct.values())


def _spread(specs: list[str]) -> list[str]:
    picks = np.unique(np.linspace(0, len(specs) - 1, min(MOST_TREES, len(specs))).astype(int)) if specs else []
    return [specs[pick] for pick in picks]


def balanced(leaves: int) -> Iterator[str]:
    """All products of two and more fan-outs, in every order."""
    for factors in _factors(leaves):
        if len(factors) > 1:
            yield "balanced:" + "x".join(map(str, factors))


def _factors(number: int) -> Iterator[tuple[int, ...]]:
    yield (number,)
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            for rest in _factors(number // first):
                yield (first, *rest)


def two_levels(leaves: int) -> Iterator[str]:
    """Every number of inner nodes, each with as many leaves as the others or one less."""
    for inner in range(2, leaves // 2 + 1):
        fewer, more = divmod(leaves, inner)
        if more:
            yield f"groups:{fewer + 1}x{more},{fewer}x{inner - more}"


def grown(kind: str, leaves: int) -> list[str]:
    """The smallest and the largest tree of a kind with so many leaves: each further node adds a leaf or none. None
    where no tree of this size can be built."""

    def first_with(wanted: int) -> int:
        low, high = wanted + 1, 2 * wanted
        while tree(f"{kind}{high}").leaves < wanted:
            low, high = high + 1, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if tree(f"{kind}{middle}").leaves >= wanted else (middle + 1, high)
        return low

    try:
        ends = sorted({first_with(leaves), first_with(leaves + 1) - 1})
    except UserError:
        return []
    return [f"{kind}{nodes}" for nodes in ends]


def algorithms(operation: str, ranks: int, bytes: int, windows: Sequence[int] = ()) -> list[str]:
    """Every algorithm for an operation, with all arguments that could make a difference, the familiar ones first;
    `windows` are those that a windowed gather could have."""
    known = choices(operation)
    ordered = [known[name] for name in FAMILIAR if name in known]
    ordered += [entry for name, entry in known.items() if name not in FAMILIAR]
    return [spec for entry in ordered for spec in _spellings(entry, ranks, bytes, windows)]


def _spellings(entry: Algorithm, ranks: int, bytes: int, windows: Sequence[int]) -> list[str]:
    if "SEGMENT" in entry.argument or "FIRST" in entry.argument:
        longest = bytes // ranks if entry.operation == "allreduce" else bytes
        values = [format_bytes(size).replace(" ", "") for size in SEGMENTS if size < longest <= MOST_SEGMENTS * size]
    elif entry.argument == "W":
        values = sorted({*windows, *(count for count in COUNTS if count < ranks)})
    elif entry.argument:
        values = sorted(
            {count for count in RADICES if count < ranks} | set(radices(ranks) if entry.operation == "barrier" else ())
        )
    else:
        values = []
    plain = [] if entry.needs_argument else [entry.choice]
    return plain + [f"{entry.choice}:{value}" for value in values]
