"""What overlay-bench and mrnet-bench read: a row of the case file for a point or a probe case, and trees with the names
of hosts. They instantiate each tree once for all its cases."""

from collections.abc import Iterable

from commodel.files.atomic import write_text
from commodel.files.paths import AnyPath
from commodel.models.probes import probe
from commodel.patterns.operations import base, parameters
from commodel.patterns.trees.text import mrnet
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.tree import on_hosts
from commodel.records import Case, Point, digest

HERE = "localhost"  # what nodes are called where all processes are on this machine
OWN_NAMES = {f"overlay-{name}": name for name in ("startup", "skew", "classes")}


def row(member: Point | Case) -> dict[str, object]:
    """Of the case file, but with the topology as its spec."""
    if isinstance(member, Case):
        asked = probe(member.probe).on_overlay(member.settings)
        settings = {"operation": asked.operation, "topology": asked.topology, "bytes": member.settings["bytes"]}
        named, waves = {"mode": asked.mode}, 1
    else:
        name = base(member.operation)
        settings = {"operation": OWN_NAMES.get(name, name), "topology": member.topology, "bytes": member.bytes}
        named, waves = parameters(member.operation, member.ranks, overlay=True), member.waves
    taken = {"filter": "sum", "compute": 0.0, "mode": "waves", "period": 0.0} | named
    return {"id": member.id, **settings, **taken, "waves": waves}


def with_topologies(rows: list[dict], work: AnyPath, hosts: Iterable[str]) -> list[dict]:
    """The rows with a file in place of each topology; node i of every tree is on host i."""
    hosts, files = list(hosts), {}
    for spec in dict.fromkeys(row["topology"] for row in rows):
        text = mrnet(on_hosts(tree(spec), hosts))
        files[spec] = f"{digest(text)}.top"
        write_text(work / files[spec], text)
    return [row | {"topology": files[row["topology"]]} for row in rows]
