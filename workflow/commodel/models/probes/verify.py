"""Probe `verify`: whether the MPI library's collectives return right results for unusual but legal
inputs.

Such inputs are in-place, empty, of derived datatypes, or for operations that do not commute. The
program compares every byte; a wrong one ends the case. Nothing is fitted to it. `commodel tune`
runs it under every rule before it writes the rule.
"""

from collections.abc import Collection, Iterator

from commodel.models.probes import Probe, ProbePlan, Settings, Site, place_spread

INPUTS_OF_MOVES = ("plain", "empty", "few", "types", "mixed")
INPUTS_OF_REDUCTIONS = ("plain", "empty", "few", "in-place", "types", "order")
INPUTS = {  # names in the program
    "allgather": (*INPUTS_OF_MOVES, "in-place", "ignored"),
    "allreduce": INPUTS_OF_REDUCTIONS,
    "alltoall": (*INPUTS_OF_MOVES, "in-place", "ignored"),
    "barrier": ("plain",),
    "bcast": (*INPUTS_OF_MOVES, "root"),
    "gather": (*INPUTS_OF_MOVES, "root", "in-place", "bare"),
    "reduce": (*INPUTS_OF_REDUCTIONS, "root"),
    "reduce-scatter": (*INPUTS_OF_REDUCTIONS, "uneven"),
    "scatter": (*INPUTS_OF_MOVES, "root", "in-place", "bare"),
}
INPUTS_OF_FIXED_LENGTH = ("empty", "few")  # inputs that determine the length of the message
MAX_RANKS = 9  # one more than a power of two
VERIFIED_BYTES = 4096  # bytes


def plan(site: Site, sizes: list[int]) -> ProbePlan:
    placement = place_spread(site, min(site.ranks, MAX_RANKS))
    return [
        (placement, settings)
        for name in INPUTS
        for settings in list_cases(name, placement.ranks, [VERIFIED_BYTES])
    ]


def list_cases(
    operation: str, ranks: int, sizes: Collection[int], also: Collection[int] = ()
) -> Iterator[Settings]:
    """Yield the inputs of an operation on several communicators.

    They have 1, 2, 3, all `ranks`, one more than a power of two, and the numbers in `also`.
    """
    odd_count = 2 ** ((ranks - 1).bit_length() - 1) + 1 if ranks > 1 else 1
    communicators = sorted(
        {count for count in (1, 2, 3, odd_count, ranks, *also) if count <= ranks}
    )
    for input_name in INPUTS[operation]:
        lengths = sorted(set(sizes)) if operation != "barrier" else [0]
        for size in lengths[-1:] if input_name in INPUTS_OF_FIXED_LENGTH else lengths:
            for count in communicators:
                yield {
                    "collective": operation,
                    "input": input_name,
                    "communicator": count,
                    "bytes": size,
                }


PROBE = Probe(
    "verify",
    "results of the library's collectives",
    ("collective", "input", "communicator", "bytes"),
    plan,
)
