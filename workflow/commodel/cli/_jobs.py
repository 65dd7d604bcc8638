"""The jobs that options of advise name: every operation at every number of leaves or ranks and every size."""

from collections.abc import Callable

from commodel.advice import Job
from commodel.errors import UserError
from commodel.files.axes import expand
from commodel.patterns.operations import own_spelling, ranks_of, sized
from commodel.units import parse_bytes, parse_count

MOST_JOBS = 100_000  # jobs of one operation


def jobs_of(operations, leaves, ranks, sizes) -> list[Job]:
    if not operations:
        raise UserError("--operation is missing")
    return [job for operation in operations for job in _of_operation(operation, leaves, ranks, sizes)]


def _of_operation(operation, leaves, ranks, sizes) -> list[Job]:
    name = own_spelling(operation)
    if not (leaves or ranks):
        ranks = ranks_of(name)
    if bool(leaves) == bool(ranks):
        raise UserError("give --leaves of a tree or --ranks of a collective, one of the two")
    if sized(name) and sizes is None:
        raise UserError(f"--bytes is missing; {name} needs a message size")
    lengths = _of_option("--bytes", sizes, parse_bytes) if sized(name) else [0]
    counted, least = ("--leaves", 1) if leaves else ("--ranks", 2)
    counts = _of_option(counted, leaves or ranks, lambda text: parse_count(text, least))
    if (asked := len(counts) * len(lengths)) > MOST_JOBS:
        raise UserError(f"these options mean {asked} jobs, wanted at most {MOST_JOBS}")
    over = "leaves" if leaves else "ranks"
    return [Job(name, size, **{over: count}) for count in counts for size in lengths]


def _of_option(name: str, text: str, parse: Callable[[str], int]) -> list[int]:
    try:
        return expand(text, parse)
    except UserError as error:
        raise UserError(error.found, key=name) from None
