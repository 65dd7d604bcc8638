"""A tree from a file, in MRNet's format or as a CSV table of parents: what stands in it says which."""

from commodel.files.cache import reached
from commodel.patterns.trees.files import read_tree
from commodel.patterns.trees.topologies import Topology

TOPOLOGY = Topology(
    name="file",
    form="file:PATH",
    title="a tree from a file: MRNet's format, or a CSV of node,parent",
    build=lambda text: read_tree(reached(text)),
)
