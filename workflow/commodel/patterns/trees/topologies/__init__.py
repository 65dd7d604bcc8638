"""Trees by name: `spec` is `name:arguments`, e.g. `kary:2^4`. One file each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from commodel.patterns.trees.tree import Tree
from commodel.registry import lookup


@dataclass(frozen=True)
class Topology:
    name: str
    form: str  # how its spec is written
    title: str
    build: Callable[[str], Tree]  # from what stands after the colon


MRNET = {"b": ("kary", "balanced"), "k": ("knomial",), "g": ("generic",)}  # how MRNet's generator calls them


def own_spelling(spec: str) -> str:
    """MRNet's b:F^D, b:AxB, k:K@N and g:… as they are called here; any other spec as it is."""
    name, colon, arguments = spec.partition(":")
    names = MRNET.get(name.strip())
    return f"{names[-1] if 'x' in arguments else names[0]}:{arguments}" if names and colon else spec


@lru_cache(maxsize=64)
def tree(spec: str) -> Tree:
    """The tree that a spec names, or a UserError that says what is wrong with it."""
    name, _, arguments = own_spelling(spec).partition(":")
    return lookup("patterns.trees.topologies", "TOPOLOGY", name.strip()).build(arguments.strip())
