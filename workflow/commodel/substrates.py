"""Substrates: what transports messages on a platform (`find_substrate`). The core has MPI.
Extensions bring others, such as networks of processes over TCP, whose programs no MPI library
starts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from commodel.errors import UserError, suggest_name
from commodel.extensions import find_absent_package
from commodel.registry import discover_in_extensions
from commodel.units import show_value

MPI = "mpi"


@dataclass(frozen=True)
class Alias:
    """A name of an operation that only one substrate has, with another default of its number of
    waves."""

    operation: str
    waves: int = 1


@dataclass(frozen=True)
class Substrate:
    """A substrate other than MPI: what the core asks about it. Its programs are a toolchain of its
    name."""

    name: str  # in platform files
    title: str  # in messages, such as: an overlay network
    launchers: tuple[str, ...]  # that can start its programs
    # Module with the functions of `commodel.measure.program_starts.SubstrateStarts`.
    starts: str
    # Raises a UserError for a combination that it does not support: a value for each key of the
    # matrix, of which the operation is as the user wrote it.
    check: Callable[[Mapping[str, Any]], None]
    # Returns whether it has an equivalent of a probe's case, from the name of the probe and the
    # settings of the case.
    runs_case: Callable[[str, Mapping[str, Any]], bool]
    # Typical values, for estimates of durations.
    latency: float  # seconds
    bandwidth: float  # bytes per second
    seconds_per_case: float  # to start and end its processes, in each pass
    # names of operations that only it has
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    # By operation, the parameters that it adds: each an `OperationParameter` of
    # `commodel.patterns.operations`.
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def find_substrate(name: str) -> Substrate:
    """Return the substrate of an extension."""
    brought = discover_in_extensions("SUBSTRATE")
    if name in brought:
        return brought[name]
    package = find_absent_package(name)
    if package:
        raise UserError(f"substrate '{name}' is in {package}, which is not installed")
    raise UserError(f"found {show_value(name)}; {suggest_name(name, [MPI, *brought])}")


@lru_cache
def list_substrates() -> list[Substrate]:
    """Return the substrates of all extensions."""
    return list(discover_in_extensions("SUBSTRATE").values())


@lru_cache
def list_aliases() -> dict[str, tuple[str, Alias]]:
    """Return the aliases of operations that substrates bring: by alias, the first substrate that
    has it."""
    return {
        name: (entry.name, alias)
        for entry in reversed(list_substrates())
        for name, alias in entry.aliases.items()
    }


@lru_cache
def list_added_parameters(operation: str) -> tuple[Any, ...]:
    """Return the parameters that substrates add to an operation; equal ones of several substrates
    once."""
    added = [
        parameter
        for entry in list_substrates()
        for parameter in entry.parameters.get(operation, ())
    ]
    return tuple({parameter.name: parameter for parameter in added}.values())
