"""Operations (`find_operation`): the meaning of `bytes`, the parameters, and the data of each rank before and after.

A user writes the name of an operation and then its parameters in any order: halo:grid=4x2:periodic=yes.

The data of a rank are extents of addresses, which depend on rank, ranks and bytes. Addresses count the bytes of all
data of an operation. In a reduction, every rank has its own values at each address, and the result is their
combination. The kernels have common parameters, which define the rectangle of each rank.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt, prod
from typing import Any

from commodel.errors import UserError, suggest_name
from commodel.patterns import rectangles
from commodel.patterns.arguments import parse_whole_number, parse_whole_numbers
from commodel.patterns.phases import divide_evenly
from commodel.patterns.rectangles import MAX_SIDE, Rectangles, make_even_grid
from commodel.registry import discover, lookup
from commodel.substrates import MPI, list_added_parameters, list_aliases
from commodel.units import MAX_COUNT

Extents = list[tuple[int, int]]  # first address, length
GetExtents = Callable[..., Extents]  # of (rank, ranks, bytes) and the operation's parameters by name


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
class Parameter:
    """A named parameter; `read` returns its value from a user's text."""

    name: str
    form: str  # syntax of its value
    title: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]  # returns the canonical spelling of a value
    default: Any  # a value, or a function of the number of ranks
    ranks: Callable[[Any], int | None] | None = None  # returns the number of ranks that a value requires
    # The substrates that have it; empty: all. It is not passed to builders of schedules.
    substrates: tuple[str, ...] = ()
    # Returns whether an operation with this value has no schedule, and is only measured.
    without_schedule: Callable[[Any], bool] = lambda value: False
    file: bool = False  # each value except the default is the path of a file
    measured: bool = False  # it defines how to measure; not passed to builders of schedules


@dataclass(frozen=True)
class Operation:
    name: str
    bytes: str  # meaning of `bytes`; empty: no message size
    initial_data: GetExtents
    final_data: GetExtents
    reduces: bool = False
    mpi: str = ""  # MPI's own function for it
    parameters: tuple[Parameter, ...] = ()
    substrates: tuple[str, ...] = (MPI,)
    without_schedule: bool = False  # it is only measured
    program: str = ""  # the native program that measures it; empty: the player
    # The functions below take the number of ranks, and the parameters by name.
    tiles: Callable[..., Rectangles] | None = None  # returns the rectangle of each rank, for kernels
    # Returns the parameters and the number of repetitions of each summand; all ranks begin a summand at once.
    summands: Callable[..., list[tuple[dict[str, Any], int]]] | None = None


def list_operations() -> dict[str, Operation]:
    return {name: _find_by_name(name) for name in discover("patterns.operations", "OPERATION")}


@lru_cache
def _find_by_name(name: str) -> Operation:
    """Return an operation with the parameters that substrates add."""
    entry: Operation = lookup("patterns.operations", "OPERATION", name)
    added = list_added_parameters(entry.name)
    return replace(entry, parameters=(*entry.parameters, *added)) if added else entry


def find_base_name(text: str) -> str:
    """Return the operation's name without parameters; `broadcast` is `bcast`. `file:PATH` is returned unchanged."""
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
    entry, (_, *parts) = find_operation(text), text.split(":")
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    values: dict[str, Any] = {}
    for part in parts:
        name, equals, value = (word.strip() for word in part.partition("="))
        if not by_name:
            raise UserError(f"found '{text}', but {entry.name} takes no parameters")
        if not equals:
            raise UserError(f"found '{part}' in '{text}', wanted NAME=VALUE")
        if name not in by_name:
            raise UserError(f"{entry.name} has no parameter '{name}'; {suggest_name(name, by_name)}")
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
    """Return the canonical spelling: the name in this project, and the parameters in order, without default values."""
    return _format_operation(text, parse_parameters(text))


def _format_operation(text: str, values: dict[str, Any]) -> str:
    entries = [
        entry for entry in find_operation(text).parameters if values.get(entry.name, entry.default) != entry.default
    ]
    return ":".join([find_base_name(text), *(f"{entry.name}={entry.write(values[entry.name])}" for entry in entries)])


def fill_parameters(text: str, ranks: int, substrate: str = MPI) -> dict[str, Any]:
    """Return the operation's parameters by name, with defaults for this number of ranks.

    They are those that builders of schedules take, or those that only another substrate has.
    """
    all_entries = [entry for entry in find_operation(text).parameters if not entry.measured]
    if substrate == MPI:
        entries = [entry for entry in all_entries if not entry.substrates]
    else:
        entries = [entry for entry in all_entries if substrate in entry.substrates]
    defaults = {entry.name: entry.default(ranks) if callable(entry.default) else entry.default for entry in entries}
    return defaults | {name: value for name, value in parse_parameters(text).items() if name in defaults}


def find_required_ranks(text: str) -> int | None:
    """Return the number of ranks that the parameters require; None if they require none, or for a pattern from a
    file."""
    if text.startswith(FILE):
        return None
    values = parse_parameters(text)
    for entry in find_operation(text).parameters:
        ranks = entry.ranks(values[entry.name]) if entry.ranks and entry.name in values else None
        if ranks:
            return ranks
    return None


def list_operation_files(text: str) -> list[str]:
    """Return the files named in the parameters."""
    if text.startswith(FILE):
        return []
    values = parse_parameters(text)
    entries = [entry for entry in find_operation(text).parameters if entry.file and entry.name in values]
    return [values[entry.name] for entry in entries if values[entry.name] != entry.default]


@lru_cache(maxsize=64)
def list_summands(text: str, ranks: int) -> tuple[tuple[str, int], ...]:
    """Return the summands of an operation and how often each occurs; the operation itself if it is no sum."""
    summands = None if text.startswith(FILE) else find_operation(text).summands
    if summands is None:
        return ((text, 1),)
    counted = summands(ranks, **fill_parameters(text, ranks))
    return tuple((_format_operation(text, parse_parameters(text) | values), count) for values, count in counted)


def make_tiles(text: str, ranks: int) -> Rectangles:
    """Return the rectangle of a kernel's matrix that each rank computes."""
    tiles = find_operation(text).tiles
    assert tiles is not None, f"{text} is no kernel"
    return tiles(ranks, **fill_parameters(text, ranks))


def list_result_extents(text: str, ranks: int, bytes: int) -> list[Extents]:
    """Return the extents of the result on each rank; empty if the operation is no reduction."""
    entry, values = find_operation(text), fill_parameters(text, ranks)
    return [entry.final_data(rank, ranks, bytes, **values) for rank in range(ranks)] if entry.reduces else []


MAX_DIMENSIONS = 6


def make_choice_parameter(name: str, names: tuple[str, ...], title: str, **properties: Any) -> Parameter:
    """Return a parameter whose value is one of some names; the first is the default."""
    return Parameter(
        name, "|".join(names), f"{title}; default {names[0]}", make_choice_reader(names), str, names[0], **properties
    )


def make_choice_reader(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise UserError(f"found '{text}', wanted {', '.join(names[:-1])} or {names[-1]}")
        return text

    return read


def make_switch_parameter(name: str, title: str, default: bool, **properties: Any) -> Parameter:
    """Return a parameter that is yes or no."""
    read_choice = make_choice_reader(("yes", "no"))

    def write(on: bool) -> str:
        return "yes" if on else "no"

    def read(text: str) -> bool:
        return read_choice(text) == "yes"

    return Parameter(name, "yes|no", f"{title}; default {write(default)}", read, write, default, **properties)


def find_squarest_grid(ranks: int) -> tuple[int, int]:
    """Return the dimensions of the two-dimensional grid nearest to a square, the larger first."""
    short = next(side for side in range(isqrt(ranks), 0, -1) if ranks % side == 0)
    return ranks // short, short


def read_grid(text: str) -> tuple[int, ...]:
    grid = tuple(parse_whole_numbers(text, "x", "numbers of ranks, such as 4x2"))
    if len(grid) > MAX_DIMENSIONS or not 2 <= prod(grid) <= MAX_COUNT:
        raise UserError(f"found '{text}', wanted at most {MAX_DIMENSIONS} numbers and 2 to {MAX_COUNT} ranks in all")
    return grid


def write_grid(grid: tuple[int, ...]) -> str:
    return "x".join(map(str, grid))


OPEN, SQUAREST, EVEN = "any", "squarest", "even"  # texts of default values
Grid = tuple[int, ...]


def read_side(text: str) -> int:
    """Return N; 0 if it is not set."""
    side = 0 if text == OPEN else parse_whole_number(text)
    if side > MAX_SIDE:
        raise UserError(f"found '{text}', wanted at most {MAX_SIDE}")
    return side


def read_grid_2d(text: str) -> Grid:
    if text == SQUAREST:
        return ()
    grid = read_grid(text)
    if len(grid) != 2:
        raise UserError(f"found '{text}', wanted rows x columns of ranks, such as 4x2")
    return grid


def count_partition_ranks(path: str) -> int | None:
    return None if path == EVEN else rectangles.read_rectangles(path).ranks


def read_partition(text: str) -> str:
    if not text:
        raise UserError("found nothing, wanted the file of a partition")
    return text


def make_partition_parameters(unit: str, default_side: int) -> tuple[Parameter, ...]:
    """Return the parameters of a partition: N, a grid or a file."""
    return (
        Parameter(
            "n",
            "128",
            f"{unit} along a side of the square; default: those of the partition, else {default_side}",
            read_side,
            lambda side: str(side) if side else OPEN,
            0,
        ),
        Parameter(
            "grid",
            "4x2",
            "rows x columns of ranks, numbered row by row, with rectangles of nearly equal size; default: the grid "
            "nearest to a square",
            read_grid_2d,
            lambda grid: write_grid(grid) if grid else SQUAREST,
            (),
            lambda grid: prod(grid) if grid else None,
        ),
        Parameter(
            "partition",
            "PATH",
            "a CSV of rank,x,y,width,height instead of a grid",
            read_partition,
            str,
            EVEN,
            count_partition_ranks,
            file=True,
        ),
    )


def make_tiling(ranks: int, default_side: int, n: int, grid: Grid, partition: str) -> Rectangles:
    """Return the rectangles of the parameters; `default_side` is the default of N."""
    if partition == EVEN:
        return _make_cached_even_grid(n or default_side, grid or find_squarest_grid(ranks))
    if grid:
        raise UserError("found grid and partition, wanted one of them")
    tiling = rectangles.read_rectangles(partition)
    if n not in (0, tiling.side):
        raise UserError(f"found {tiling.side}×{tiling.side}, wanted n={n}", file=partition)
    if tiling.ranks != ranks:
        raise UserError(f"found {tiling.ranks} ranks, wanted {ranks}", file=partition)
    return tiling


_make_cached_even_grid = lru_cache(maxsize=16)(make_even_grid)
