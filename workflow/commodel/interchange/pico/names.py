"""PICO's names of algorithms in ours, where the messages are the same, and which of a library's times are its choice.

Names end in where they come from: `over` is PICO's own over point-to-point messages, `ompi` Open MPI's, `mpich` MPICH's
or that of a library made from it. `default` is the library's own choice.
"""

import re
from collections.abc import Mapping

from commodel.records import LIBRARY

ORIGIN = re.compile(r"_(ompi|over|mpich|craympich)$")
WHOLE_MESSAGE = "2GiB"  # an algorithm that is asked for by name gets segments of size 0 in Open MPI: nothing is cut
NAMES = {  # where it is not the same with '-' for '_'
    "default": LIBRARY,
    "default-default": LIBRARY,
    "neighbor": "neighbor-exchange",
    "modified_bruck": "bruck",
    "brucks": "bruck",
    "k_bruck": "bruck",  # PICO's own, whose radix is 2
    "linear_nb": "linear",  # the same messages, posted without blocking
    "linear_synch": f"linear-sync:{WHOLE_MESSAGE}",
    "binary": f"binary:{WHOLE_MESSAGE}",
    "split_binary": f"split-binary:{WHOLE_MESSAGE}",
    "pipeline": f"chain:{WHOLE_MESSAGE}",
    "in_order": f"in-order:{WHOLE_MESSAGE}",
    "knomial": "knomial:4",  # Open MPI's radix unless told otherwise
}
FULL_NAMES = {  # where libraries mean different things by a name; what is none of ours is left out by its own
    ("bcast", "binomial_ompi"): "binomial-near",
    ("bcast", "binomial_over"): "binomial_over",
    ("bcast", "chain_ompi"): "chain_ompi",  # several rows of ranks
    ("reduce", "chain_ompi"): "chain_ompi",
    ("allreduce", "nonoverlapping_ompi"): "nonoverlapping_ompi",  # a reduce and a bcast of Open MPI's choice
    ("alltoall", "linear_sync_ompi"): "linear",  # no bound on its requests: all are posted at once
    ("allgather", "k_bruck_ompi"): "k_bruck_ompi",  # its radix is whatever was set
}
# Of libraries made from MPICH: what sends our messages only among so many ranks; of these we know no more.
POWERS_OF_TWO = {("allreduce", "rabenseifner"), ("reduce", "rabenseifner"), ("allgather", "recursive-doubling")}
OTHERS = {("alltoall", "pairwise")}
# Of Open MPI: what is another algorithm where there are fewer elements than ranks.
ELEMENTS = {
    ("allreduce", "ring"),
    ("allreduce", "rabenseifner"),
    ("reduce", "rabenseifner"),
    ("bcast", "scatter-allgather"),
    ("bcast", "scatter-allgather-ring"),
}
EQUAL = 0.05  # of two times: so near are repeated measurements of one thing
SIZES, SPAN = 5, 1000  # as many, and so far apart, that no algorithm stays a library's choice over all
OWN_CHOICES = {"default", "non_blocking"}


def our_name(collective: str, called: str, ranks: int, elements: int) -> str:
    """Our name of an algorithm, or its own where we have none."""
    if full := FULL_NAMES.get((collective, called)):
        return full
    name, origin = ORIGIN.sub("", called), _origin(called)
    ours = NAMES.get(name, name.replace("_", "-"))
    power = ranks & (ranks - 1) == 0
    pair = collective, ours
    if origin in ("mpich", "craympich") and ((pair in POWERS_OF_TWO and not power) or (pair in OTHERS and power)):
        return called
    if origin == "ompi" and pair in ELEMENTS and elements < ranks:
        return called
    return ours


def following_default(collective: str, times: Mapping[str, Mapping[int, float]]) -> dict[str, str]:
    """Of times by name and size, of one collective in one job: which of a library's algorithms take the time of its own
    choice at every size, and whose that is.

    One alone may be what the library chooses. Of two with different messages neither is what it is called: the library
    has followed its own choice. MPICH says nothing when it does, and over a thousandfold of sizes chooses more than one
    algorithm, so there one is enough.
    """
    own = [name for name in times if ORIGIN.sub("", name) in OWN_CHOICES]
    equal = {
        name: choice
        for name, sizes in times.items()
        for choice in own
        if name not in own and _origin(name) == _origin(choice) and _equal(sizes, times[choice])
    }
    messages = {our_name(collective, name, 0, 0) for name in equal}
    return {name: choice for name, choice in equal.items() if len(messages) > 1 or "mpich" in _origin(name)}


def _equal(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """At every common size but one, if there are enough of them."""
    common = first.keys() & second.keys()
    if len(common) < SIZES or max(common) < SPAN * max(min(common), 1):
        return False
    return sum(abs(first[size] - second[size]) > EQUAL * second[size] for size in common) <= 1


def _origin(called: str) -> str:
    match = ORIGIN.search(called)
    return match[1] if match else ""
