"""Operations, one a file: what `bytes` means in each, which parameters it takes beside them, who has which data at the
start and who must have which in the end.

An operation is written as its name, with its parameters behind it in any order: halo:grid=4x2:periodic=yes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from commodel.errors import UserError, suggest
from commodel.patterns.holdings import Extents, Holding
from commodel.patterns.rectangles import Rectangles
from commodel.registry import discover, lookup

FILE = "file:"  # a pattern that somebody has written down stands in the place of an operation: file:PATH
FEWEST_RANKS = 2  # of a pattern
MPI, OVERLAY = "mpi", "overlay"  # substrates: what carries messages
ALIASES = {
    "broadcast": "bcast",
    "reduce_scatter": "reduce-scatter",
    "overlay-reduce": "reduce",
    "overlay-broadcast": "bcast",
    "overlay-throughput": "reduce",
}


@dataclass(frozen=True)
class Parameter:
    """A named parameter: builders and holdings take it under its name, as `read` makes it of what a user writes."""

    name: str
    form: str  # how its value is written
    title: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]  # the one spelling of a value
    default: Any  # where it is left out; a function: of the number of ranks
    ranks: Callable[[Any], int | None] | None = None  # that a value asks for
    overlay: bool = False  # only there is it known, and no builder takes it: it says how to run and measure
    file: bool = False  # a value that is not the default is the path of a file
    measured: bool = False  # it says how to measure, and no builder takes it


@dataclass(frozen=True)
class Operation:
    name: str
    bytes: str  # empty: it has no message size
    has: Holding
    wants: Holding
    reduces: bool = False
    mpi: str = ""  # MPI's own function for it
    parameters: tuple[Parameter, ...] = ()
    substrates: tuple[str, ...] = (MPI,)
    # Whether no schedule says what it does with such parameters: it is measured only.
    unsaid: Callable[[dict[str, Any]], bool] = lambda named: False
    program: str = ""  # the native program that measures it; empty: the player
    tiles: Callable[..., Rectangles] | None = None  # for such a program: who has what, of ranks and parameters by name
    # What it is the sum of, each begun by all ranks at once: (parameters, how often), of ranks and parameters by name.
    parts: Callable[..., list[tuple[dict[str, Any], int]]] | None = None


def operations() -> dict[str, Operation]:
    return discover("patterns.operations", "OPERATION")


def base(text: str) -> str:
    """The operation's name, without its parameters; `broadcast` is understood. A pattern from a file has none."""
    if text.startswith(FILE):
        return text
    name = text.partition(":")[0].strip()
    return ALIASES.get(name, name)


def operation(text: str) -> Operation:
    return lookup("patterns.operations", "OPERATION", base(text))


@lru_cache(maxsize=4096)
def _given(text: str) -> dict[str, Any]:
    """The values of the parameters that a text gives, in the operation's order."""
    entry, (_, *parts) = operation(text), text.split(":")
    known, values = {parameter.name: parameter for parameter in entry.parameters}, {}
    for part in parts:
        name, equals, value = (word.strip() for word in part.partition("="))
        if not known:
            raise UserError(f"found '{text}', but {entry.name} takes no parameters")
        if not equals:
            raise UserError(f"found '{part}' in '{text}', wanted NAME=VALUE")
        if name not in known:
            raise UserError(f"{entry.name} has no parameter '{name}'; {suggest(name, known)}")
        if name in values:
            raise UserError(f"found {name} twice in '{text}', wanted it once")
        try:
            values[name] = known[name].read(value)
        except UserError as error:
            raise UserError(f"{entry.name}: {name}: {error.message}") from None
    return {name: values[name] for name in known if name in values}


def sized(text: str) -> bool:
    return bool(operation(text).bytes)


def own_spelling(text: str) -> str:
    """The operation as it is called here: its own name, and its parameters in their order and in one spelling. What is
    taken anyway is left out."""
    return _spelled(text, _given(text))


def _spelled(text: str, given: dict[str, Any]) -> str:
    said = [known for known in operation(text).parameters if given.get(known.name, known.default) != known.default]
    return ":".join([base(text), *(f"{known.name}={known.write(given[known.name])}" for known in said)])


def parameters(text: str, ranks: int, overlay: bool = False) -> dict[str, Any]:
    """The operation's parameters by name, those that the text leaves out as they are at so many ranks: what builders
    take, or what only an overlay network does."""
    given, known = _given(text), [known for known in operation(text).parameters if known.overlay == overlay]
    known = [entry for entry in known if not entry.measured]
    default = {entry.name: entry.default(ranks) if callable(entry.default) else entry.default for entry in known}
    return {name: given.get(name, value) for name, value in default.items()}


def given_of(text: str) -> dict[str, Any]:
    """The parameters that a text names, by name."""
    return dict(_given(text))


def ranks_of(text: str) -> int | None:
    """How many ranks the parameters ask for; None where they leave that open, and of a pattern from a file."""
    if text.startswith(FILE):
        return None
    given = _given(text)
    asking = [known for known in operation(text).parameters if known.ranks and known.name in given]
    return next((ranks for known in asking if (ranks := known.ranks(given[known.name]))), None)


def files_of(text: str) -> list[str]:
    """The files that the parameters name."""
    if text.startswith(FILE):
        return []
    given = _given(text)
    named = [known for known in operation(text).parameters if known.file and known.name in given]
    return [given[known.name] for known in named if given[known.name] != known.default]


@lru_cache(maxsize=64)
def parts(text: str, ranks: int) -> tuple[tuple[str, int], ...]:
    """The operations that this one is the sum of, each with how often; itself where it is no sum."""
    if text.startswith(FILE) or operation(text).parts is None:
        return ((text, 1),)
    counted = operation(text).parts(ranks, **parameters(text, ranks))
    return tuple((_spelled(text, _given(text) | given), count) for given, count in counted)


def tiles(text: str, ranks: int) -> Rectangles:
    """Who computes which part of a kernel's matrix."""
    return operation(text).tiles(ranks, **parameters(text, ranks))


def results(text: str, ranks: int, bytes: int) -> list[Extents]:
    """Where each rank must have the combination in the end; nothing where the operation does not combine."""
    entry, named = operation(text), parameters(text, ranks)
    return [entry.wants(rank, ranks, bytes, **named) for rank in range(ranks)] if entry.reduces else []
