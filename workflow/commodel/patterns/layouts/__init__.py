"""Layouts: the node of each rank (`place_ranks`). A spec is a name and arguments, e.g. `block:2`
for 2 ranks per node.

A full spec needs no platform. A user's spec may omit the ranks per node, the nodes of each type,
and their names; `complete_spec` adds them from the platform. A rank may use several cores, or drive
an accelerator, as a process of a hybrid application. In most layouts each rank has one core.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import Kind, SpecType
from commodel.records import Case
from commodel.registry import lookup

CORE = "core"
ACCELERATOR = "accelerator"  # kinds of processor of a rank
# of predictions only: made for each pattern, so that ranks that exchange many bytes are near
NEAR_LAYOUT = "near"
NODE = "node"  # the node type of a platform without types
GPU = "gpu"  # in the kind of a process that drives one


@dataclass(frozen=True)
class PlatformDefaults:
    """The platform's values for omitted parts of a spec, and the cores of its nodes."""

    per_node: int = 1  # ranks per node
    types: tuple[tuple[str, int], ...] = ()  # nodes of each type, in the order of the nodes
    hosts: tuple[str, ...] = ()  # names of the nodes, if known before a job runs
    max_cores: int = 0  # of a node; 0: unknown
    fewer_cores: tuple[tuple[str, int], ...] = ()  # cores of node types that have fewer
    gpus: tuple[tuple[str, int], ...] = ()  # of a node of each type; empty: unknown
    # group of each node, innermost level first
    levels: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def cores(self, node: int) -> int:
        """Return the cores of a node; 0 if unknown."""
        node_type = find_node_type(node, dict(self.types)) if self.fewer_cores else NODE
        return dict(self.fewer_cores).get(node_type, self.max_cores)

    def count_gpus(self, node: int) -> int | None:
        """Return the GPUs of a node; None if unknown."""
        if not self.gpus:
            return None
        return dict(self.gpus).get(find_node_type(node, dict(self.types)), 0)


@dataclass(frozen=True)
class Layout(SpecType):
    """A layout. Its functions take the arguments of a full spec, some after the number of ranks."""

    _: KW_ONLY
    place: Callable[..., np.ndarray]  # the node of every rank
    # returns full arguments
    complete: Callable[[str, PlatformDefaults], str] = lambda arguments, defaults: arguments
    per_node: Callable[..., int] | None = None  # ranks per node, if no argument has them
    kinds: Callable[..., np.ndarray] | None = None  # kind of processor of every rank
    cores: Callable[..., np.ndarray] | None = None  # cores κ of every rank; None: one
    # number of every rank's GPU on its node, -1: none; None: the layout does not define it
    gpus: Callable[..., np.ndarray] | None = None
    ranks: Callable[..., int] | None = None  # number of ranks, if the arguments determine it

    def ranks_per_node(self, arguments: str) -> int | None:
        """Return the ranks per node of a full spec; None if each node has its own number."""
        if self.per_node:
            return self.per_node(*self.read(arguments))
        values = zip(self.arguments, self.read(arguments), strict=True)
        return next((value for argument, value in values if argument.kind is Kind.PER_NODE), None)


def find_layout(spec: str) -> tuple[Layout, str]:
    """Return the layout of a spec, and its arguments."""
    name, _, arguments = spec.partition(":")
    return lookup("patterns.layouts", "LAYOUT", name.strip()), arguments.strip()


def place_ranks(spec: str, ranks: int) -> np.ndarray:
    """Return the node of every rank of a full spec; `block` and `cyclic` without a Q place one rank
    per node."""
    layout, arguments = find_layout(spec)
    return layout.place(ranks, *layout.read(layout.complete(arguments, PlatformDefaults())))


def list_devices(spec: str, ranks: int) -> np.ndarray | None:
    """Return the device of every rank of a full spec, CORE or ACCELERATOR, or None if the layout
    does not define it."""
    layout, arguments = find_layout(spec)
    return layout.kinds(ranks, *layout.read(arguments)) if layout.kinds else None


def list_cores(spec: str, ranks: int) -> np.ndarray:
    """Return κ of every rank of a full spec: the cores that it is bound to; 0: it has none of its
    own."""
    layout, arguments = find_layout(spec)
    return (
        layout.cores(ranks, *layout.read(arguments)) if layout.cores else np.ones(ranks, dtype=int)
    )


def assigns_cores(spec: str) -> bool:
    """Return whether a layout assigns cores to each rank, so that ranks have to be bound to
    them."""
    return find_layout(spec)[0].cores is not None


def list_gpus(spec: str, ranks: int) -> tuple[int, ...]:
    """Return the number of each rank's GPU on its node, -1 without one. It is empty if the layout
    does not define it."""
    layout, arguments = find_layout(spec)
    if layout.gpus is None:
        return ()
    return tuple(layout.gpus(ranks, *layout.read(arguments)).tolist())


def drives_gpus(spec: str, ranks: int) -> bool:
    """Return whether a rank of a full spec drives a GPU of a certain number."""
    return any(gpu >= 0 for gpu in list_gpus(spec, ranks))


def count_layout_ranks(spec: str) -> int | None:
    """Return the number of ranks of a layout, or None if it does not define it."""
    layout, arguments = find_layout(spec)
    return layout.ranks(*layout.read(arguments)) if layout.ranks else None


def find_node_type(node: int, types: Mapping[str, int]) -> str:
    """Return the type of a node; `types` holds the number of nodes of each type, in the order of
    the nodes."""
    for name, count in types.items():
        if node < count:
            return name
        node -= count
    if types:
        raise UserError(f"found a node beyond the {sum(types.values())} of the platform's types")
    return NODE


def list_process_kinds(spec: str, ranks: int, types: Mapping[str, int]) -> list[str]:
    """Return the kind of every process of a full spec, which determines its speed.

    It is `fat/6` on six cores of a node of type fat, `fat/gpu` with a GPU, `fat/gpu/2` with a GPU
    that two processes share, `node/6` without node types.
    """
    devices, cores, gpus = (
        list_devices(spec, ranks),
        list_cores(spec, ranks),
        list_gpus(spec, ranks),
    )
    nodes = place_ranks(spec, ranks).tolist()
    sharing = Counter(zip(nodes, gpus, strict=True)) if gpus else Counter()
    kinds = []
    for rank, node in enumerate(nodes):
        resource = str(cores[rank])
        if devices is not None and devices[rank] == ACCELERATOR:
            processes = sharing[node, gpus[rank]] if gpus else 1
            resource = GPU if processes == 1 else f"{GPU}/{processes}"
        kinds.append(f"{find_node_type(node, types)}/{resource}")
    return kinds


def is_gpu_kind(kind: str) -> bool:
    """Return whether processes of a kind drive a GPU."""
    return GPU in kind.split("/")[1:]


def complete_spec(spec: str, defaults: PlatformDefaults, requested: int | None = None) -> str:
    """Return the full spec. `requested` is a separate `ranks_per_node`, which must agree with the
    spec."""
    layout, arguments = find_layout(spec)
    arguments = layout.complete(arguments, defaults)
    full_spec = f"{layout.name}:{arguments}"
    if not requested:
        return full_spec
    per_node = layout.ranks_per_node(arguments)
    if per_node != requested:
        reason = (
            "they do not agree"
            if per_node
            else "wanted one of them: the layout defines the ranks of a node"
        )
        raise UserError(f"found '{spec}' and ranks_per_node {requested}; {reason}")
    return full_spec


def format_nodes(nodes: Iterable[int]) -> str:
    """Return node numbers as text for tables and file names: `0+3`."""
    return "+".join(map(str, nodes))


def parse_nodes(text: str) -> np.ndarray:
    return np.array(text.split("+"), dtype=int)


def count_case_nodes(case: Case) -> int:
    """Return the number of nodes that a case needs, counted from the allocation's first."""
    return (
        max(case.where) + 1 if case.where else int(place_ranks(case.layout, case.ranks).max()) + 1
    )
