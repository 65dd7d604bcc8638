"""Topologies: trees by name (`make_tree`). A spec is the name of a topology and its arguments, e.g.
`kary:2^4`."""

from collections.abc import Callable
from dataclasses import dataclass, field

from commodel.files.cache import cache_by_files
from commodel.files.safe_paths import parse_file_path
from commodel.patterns.arguments import SpecType
from commodel.patterns.trees.tree import Tree
from commodel.registry import lookup

# names in MRNet's generator
MRNET = {"b": ("kary", "balanced"), "k": ("knomial",), "g": ("generic",)}


@dataclass(frozen=True)
class Topology(SpecType):
    build: Callable[..., Tree] = field(kw_only=True)  # takes the values of the arguments


def canonicalize_topology(spec: str) -> str:
    """Return MRNet's b:F^D, b:AxB, k:K@N and g:… with the name in this project, and any other spec
    unchanged."""
    name, colon, arguments = spec.partition(":")
    names = MRNET.get(name.strip())
    return f"{names[-1] if 'x' in arguments else names[0]}:{arguments}" if names and colon else spec


def list_tree_files(spec: str) -> list[str]:
    """Return the file of a tree, if it has one."""
    path = parse_file_path(spec)
    return [path] if path else []


@cache_by_files(64, list_tree_files)
def make_tree(spec: str) -> Tree:
    """Return the tree of a spec; raise an error that describes an invalid spec."""
    name, _, arguments = canonicalize_topology(spec).partition(":")
    topology = lookup("patterns.trees.topologies", "TOPOLOGY", name.strip())
    return topology.build(*topology.read(arguments.strip()))
