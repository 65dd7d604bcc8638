"""MRNet's topology files with the names of real hosts: node i of a tree is on the host in line i of
a list (`name_hosts`).

A host that is listed again gets a further process, `host:1`, `host:2`, … `patterns/trees/files.py`
reads such files.
"""

import re
from pathlib import Path

from commodel.errors import UserError
from commodel.interchange import Format, read_text_lines
from commodel.patterns.trees.tree import Tree, place_on_hosts
from commodel.units import show_value

HOST = re.compile(r"[A-Za-z0-9_.-]+")


def name_hosts(tree: Tree, hosts: Path) -> Tree:
    names = []
    for number, line in read_text_lines(hosts):
        host = line.split("#", 1)[0].strip()
        if not host:
            continue
        if not HOST.fullmatch(host):
            raise UserError(
                f"found {show_value(host)}, wanted a host's name", file=hosts, line=number
            )
        names.append(host)
    if len(names) < tree.nodes:
        raise UserError(
            f"found {len(names)} hosts, wanted one for each of {tree.nodes} nodes", file=hosts
        )
    return place_on_hosts(tree, names)


FORMAT = Format("mrnet", "MRNet")
