"""Whether the MPI library's collectives return the right results for inputs that are legal but unusual: in-place,
empty, derived datatypes, operations that do not commute. The program compares every byte; a wrong one ends the case.
Nothing is fitted to it. `commodel tune` runs it under every rule before it offers the rule."""

from collections.abc import Collection, Iterator

from commodel.models.probes import Plan, Probe, Settings, Site, place_spread

MOVED = ("plain", "empty", "few", "types", "mixed")
REDUCED = ("plain", "empty", "few", "in-place", "types", "order")
INPUTS = {  # as the program has them
    "allgather": (*MOVED, "in-place", "ignored"),
    "allreduce": REDUCED,
    "alltoall": (*MOVED, "in-place", "ignored"),
    "barrier": ("plain",),
    "bcast": (*MOVED, "root"),
    "gather": (*MOVED, "root", "in-place", "bare"),
    "reduce": (*REDUCED, "root"),
    "reduce-scatter": (*REDUCED, "uneven"),
    "scatter": (*MOVED, "root", "in-place", "bare"),
}
FIXED = ("empty", "few")  # inputs that say how long the message is
MOST_RANKS = 9  # ranks: one more than a power of two
SIZE = 4096  # bytes


def plan(site: Site, sizes: list[int]) -> Plan:
    place = place_spread(site, min(site.ranks, MOST_RANKS))
    return [(place, settings) for name in INPUTS for settings in list_cases(name, place.ranks, [SIZE])]


def list_cases(operation: str, ranks: int, sizes: Collection[int], also: Collection[int] = ()) -> Iterator[Settings]:
    """Yield the inputs of an operation, each on all `ranks`, on communicators of 1, 2 and 3 of them, of one more than a
    power of two, and of those that `also` names."""
    odd = 2 ** ((ranks - 1).bit_length() - 1) + 1 if ranks > 1 else 1
    communicators = sorted({count for count in (1, 2, 3, odd, ranks, *also) if count <= ranks})
    for given in INPUTS[operation]:
        for size in [0] if operation == "barrier" else sorted(sizes)[-1:] if given in FIXED else sorted(set(sizes)):
            for count in communicators:
                yield {"collective": operation, "input": given, "communicator": count, "bytes": size}


PROBE = Probe("verify", "results of the library's collectives", ("collective", "input", "communicator", "bytes"), plan)
