"""Operations (`find_operation`): the meaning of `bytes`, the parameters, and the data of each rank
before and after.

A user writes the name of an operation and then its parameters in any order:
halo:grid=4x2:periodic=yes.

The data of a rank are extents of addresses, which depend on rank, ranks and bytes. Addresses count
the bytes of all data of an operation. In a reduction, every rank has its own values at each
address, and the result is their combination.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt, prod
from typing import Any

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.files.cache import cache_by_files
from commodel.patterns.arguments import parse_whole_numbers
from commodel.patterns.phases import divide_evenly
from commodel.records import Point
from commodel.registry import discover, lookup
from commodel.substrates import MPI, list_added_parameters, list_aliases
from commodel.units import MAX_COUNT

Extents = list[tuple[int, int]]  # first address, length
# of (rank, ranks, bytes) and the operation's parameters by name
GetExtents = Callable[..., Extents]


def no_data(rank: int, ranks: int, bytes: int) -> Extents:
    return []


def vector(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, bytes)]


def block(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * bytes, bytes)]


def blocks(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, ranks * bytes)]


def own_share(rank: int, ranks: int, bytes: int) -> Extents:
    sizes = divide_evenly(bytes, ranks)
    return [(int(sizes[:rank].sum()), int(sizes[rank]))]


def row(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * ranks * bytes, ranks * bytes)]


def column(rank: int, ranks: int, bytes: int) -> Extents:
    return [((source * ranks + rank) * bytes, bytes) for source in range(ranks)]


def at_root(get_extents: GetExtents) -> GetExtents:
    return lambda rank, ranks, size: get_extents(rank, ranks, size) if rank == 0 else []


FILE = "file:"  # a pattern from a file, in place of an operation: file:PATH
MIN_RANKS = 2  # of a pattern
ALIASES = {
    "broadcast": "bcast",
    "reduce_scatter": "reduce-scatter",
}


@dataclass(frozen=True)
class OperationParameter:
    """A named parameter; `read` returns its value from a user's text."""

    name: str
    form: str  # syntax of its value
    title: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]  # returns the canonical spelling of a value
    default: Any  # a value, or a function of the number of ranks
    # returns the number of ranks that a value requires
    ranks: Callable[[Any], int | None] | None = None
    # The substrates that have it; empty: all. It is not passed to builders of schedules.
    substrates: tuple[str, ...] = ()
    # Returns whether an operation with this value has no schedule, and is only measured.
    without_schedule: Callable[[Any], bool] = lambda value: False
    # Each value except the default is the path of a file; returns the whole numbers in it on which
    # messages depend.
    file: Callable[[str], Iterable[np.ndarray]] | None = None
    measured: bool = False  # it defines how to measure; not passed to builders of schedules


@dataclass(frozen=True)
class Operation:
    name: str
    bytes: str  # meaning of `bytes`; empty: no message size
    initial_data: GetExtents
    final_data: GetExtents
    reduces: bool = False
    mpi: str = ""  # MPI's own function for it
    parameters: tuple[OperationParameter, ...] = ()
    substrates: tuple[str, ...] = (MPI,)
    without_schedule: bool = False  # it is only measured
    program: str = ""  # the native program that measures it; empty: the player
    # The functions below take the number of ranks, and the parameters by name.
    # raises an error for parameters that contradict each other
    check: Callable[..., object] | None = None
    # Returns the parameters and the number of repetitions of each summand; all ranks begin a
    # summand at once.
    summands: Callable[..., list[tuple[dict[str, Any], int]]] | None = None
    # Of a kernel, which computes too: takes the bytes also, before the parameters, and returns the
    # floating-point operations in a sample of the rank that has most of them.
    flops: Callable[..., float] | None = None
    # Of a program of its own: takes a point, and whether ranks compute, and returns the columns of
    # its case file.
    case: Callable[[Point, bool], dict[str, Any]] | None = None


@dataclass(frozen=True)
class CaseFile:
    """A value in a case file: a file of this suffix, whose text is made when the program starts."""

    suffix: str
    make_text: Callable[[], str]


def list_operations() -> dict[str, Operation]:
    return {name: _find_by_name(name) for name in discover("patterns.operations", "OPERATION")}


@lru_cache
def _find_by_name(name: str) -> Operation:
    """Return an operation with the parameters that substrates add."""
    entry: Operation = lookup("patterns.operations", "OPERATION", name)
    added = list_added_parameters(entry.name)
    return replace(entry, parameters=(*entry.parameters, *added)) if added else entry


def find_base_name(text: str) -> str:
    """Return the operation's name without parameters; `broadcast` is `bcast`. `file:PATH` is
    returned unchanged."""
    if text.startswith(FILE):
        return text
    name = text.partition(":")[0].strip()
    if name in ALIASES:
        return ALIASES[name]
    aliases = list_aliases()
    return aliases[name][1].operation if name in aliases else name


def find_operation(text: str) -> Operation:
    return _find_by_name(find_base_name(text))


@lru_cache(maxsize=4096)
def parse_parameters(text: str) -> dict[str, Any]:
    """Return the values of the parameters in a text, in the operation's order."""
    entry = find_operation(text)
    _, *parts = text.split(":")
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    values: dict[str, Any] = {}
    for part in parts:
        name, equals, value = (word.strip() for word in part.partition("="))
        if not by_name:
            raise UserError(f"found '{text}', but {entry.name} takes no parameters")
        if not equals:
            raise UserError(f"found '{part}' in '{text}', wanted NAME=VALUE")
        if name not in by_name:
            raise UserError(
                f"{entry.name} has no parameter '{name}'; {suggest_name(name, by_name)}"
            )
        if name in values:
            raise UserError(f"found {name} twice in '{text}', wanted it once")
        try:
            values[name] = by_name[name].read(value)
        except UserError as error:
            raise UserError(f"{entry.name}: {name}: {error.message}") from None
    return {name: values[name] for name in by_name if name in values}


def has_size(text: str) -> bool:
    return bool(find_operation(text).bytes)


def canonicalize_operation(text: str) -> str:
    """Return the canonical spelling: the name in this project, and the parameters in order, without
    default values."""
    return _format_operation(text, parse_parameters(text))


def _format_operation(text: str, values: dict[str, Any]) -> str:
    parameters = [
        parameter
        for parameter in find_operation(text).parameters
        if values.get(parameter.name, parameter.default) != parameter.default
    ]
    return ":".join(
        [
            find_base_name(text),
            *(
                f"{parameter.name}={parameter.write(values[parameter.name])}"
                for parameter in parameters
            ),
        ]
    )


def fill_parameters(text: str, ranks: int, substrate: str = MPI) -> dict[str, Any]:
    """Return the operation's parameters by name, with defaults for this number of ranks.

    They are those that builders of schedules take, or those that only another substrate has.
    """
    all_parameters = [
        parameter for parameter in find_operation(text).parameters if not parameter.measured
    ]
    if substrate == MPI:
        parameters = [parameter for parameter in all_parameters if not parameter.substrates]
    else:
        parameters = [
            parameter for parameter in all_parameters if substrate in parameter.substrates
        ]
    defaults = {
        parameter.name: parameter.default(ranks)
        if callable(parameter.default)
        else parameter.default
        for parameter in parameters
    }
    return defaults | {
        name: value for name, value in parse_parameters(text).items() if name in defaults
    }


def find_required_ranks(text: str) -> int | None:
    """Return the number of ranks that the parameters require; None if they require none, or for a
    pattern from a file."""
    if text.startswith(FILE):
        return None
    values = parse_parameters(text)
    for parameter in find_operation(text).parameters:
        ranks = (
            parameter.ranks(values[parameter.name])
            if parameter.ranks and parameter.name in values
            else None
        )
        if ranks:
            return ranks
    return None


def list_operation_files(text: str) -> list[str]:
    """Return the files named in the parameters."""
    return [path for path, _ in _list_file_parameters(text)]


def read_operation_numbers(text: str) -> list[list[np.ndarray]]:
    """Return the whole numbers in each file named in the parameters on which messages depend."""
    return [list(read(path)) for path, read in _list_file_parameters(text)]


def _list_file_parameters(text: str) -> list[tuple[str, Callable[[str], Iterable[np.ndarray]]]]:
    """Return the files named in the parameters, and how each is read."""
    if text.startswith(FILE):
        return []
    values = parse_parameters(text)
    parameters = [
        parameter
        for parameter in find_operation(text).parameters
        if parameter.file and parameter.name in values
    ]
    return [
        (values[parameter.name], parameter.file)
        for parameter in parameters
        if parameter.file and values[parameter.name] != parameter.default
    ]


@cache_by_files(64, lambda text, ranks: list_operation_files(text))
def list_summands(text: str, ranks: int) -> tuple[tuple[str, int], ...]:
    """Return the summands of an operation and how often each occurs; the operation itself if it is
    no sum."""
    summands = None if text.startswith(FILE) else find_operation(text).summands
    if summands is None:
        return ((text, 1),)
    counted = summands(ranks, **fill_parameters(text, ranks))
    return tuple(
        (_format_operation(text, parse_parameters(text) | values), count)
        for values, count in counted
    )


def is_kernel(text: str) -> bool:
    """Return whether ranks compute, too."""
    return not text.startswith(FILE) and find_operation(text).flops is not None


def list_result_extents(text: str, ranks: int, bytes: int) -> list[Extents]:
    """Return the extents of the result on each rank; empty if the operation is no reduction."""
    entry = find_operation(text)
    values = fill_parameters(text, ranks)
    return (
        [entry.final_data(rank, ranks, bytes, **values) for rank in range(ranks)]
        if entry.reduces
        else []
    )


Grid = tuple[int, ...]
MAX_DIMENSIONS = 6


def make_choice_parameter(
    name: str, names: tuple[str, ...], title: str, **properties: Any
) -> OperationParameter:
    """Return a parameter whose value is one of some names; the first is the default."""
    return OperationParameter(
        name=name,
        form="|".join(names),
        title=f"{title}; default {names[0]}",
        read=make_choice_reader(names),
        write=str,
        default=names[0],
        **properties,
    )


def make_choice_reader(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise UserError(f"found '{text}', wanted {', '.join(names[:-1])} or {names[-1]}")
        return text

    return read


def make_switch_parameter(
    name: str, title: str, default: bool, **properties: Any
) -> OperationParameter:
    """Return a parameter that is yes or no."""
    read_choice = make_choice_reader(("yes", "no"))

    def write(on: bool) -> str:
        return "yes" if on else "no"

    def read(text: str) -> bool:
        return read_choice(text) == "yes"

    return OperationParameter(
        name=name,
        form="yes|no",
        title=f"{title}; default {write(default)}",
        read=read,
        write=write,
        default=default,
        **properties,
    )


def find_squarest_grid(ranks: int) -> tuple[int, int]:
    """Return the dimensions of the two-dimensional grid nearest to a square, the larger first."""
    short = next(side for side in range(isqrt(ranks), 0, -1) if ranks % side == 0)
    return ranks // short, short


def read_grid(text: str) -> tuple[int, ...]:
    grid = tuple(parse_whole_numbers(text, "x", "numbers of ranks, such as 4x2"))
    if len(grid) > MAX_DIMENSIONS or not 2 <= prod(grid) <= MAX_COUNT:
        raise UserError(
            f"found '{text}', wanted at most {MAX_DIMENSIONS} numbers and 2 to {MAX_COUNT} ranks in all"
        )
    return grid


def write_grid(grid: tuple[int, ...]) -> str:
    return "x".join(map(str, grid))
