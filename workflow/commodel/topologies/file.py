"""A tree from a file, in MRNet's format or as a CSV table of parents: what stands in it says which."""

from pathlib import Path

from commodel.topologies import Topology
from commodel.treefiles import read_tree

TOPOLOGY = Topology(
    name="file",
    form="file:PATH",
    title="a tree from a file: MRNet's format, or a CSV of node,parent",
    build=lambda text: read_tree(Path(text)),
)
