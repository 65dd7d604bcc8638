"""commodel layout: look at where ranks sit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commodel.cli._output import show

if TYPE_CHECKING:
    import numpy as np


@click.command()
@click.argument("spec")
@click.option("--ranks", type=click.IntRange(1, 1 << 20), help="Number of ranks; left out: as many as a file has.")
@click.option("--platform", help="Platform whose nodes they sit on: a name or a file.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["line", "file", "json", "csv"]),
    default="line",
    show_default=True,
    help="line: the ranks of each node, node by node; json and csv: rank by rank; file: what file:PATH reads.",
)
def layout(spec: str, ranks: int | None, platform: str | None, style: str) -> None:
    """Show the node of every rank under SPEC, such as cyclic:2; `commodel layouts` lists the forms.

    Nodes are parted by |; a rank that keeps several cores is shown with their number, one on no core with its kind.
    """
    from commodel.cli.partition import filled_in
    from commodel.patterns.layouts import cores_of, keeps_cores, kinds_of, place
    from commodel.patterns.points import Setting
    from commodel.plan.planning import setting_on

    setting = setting_on(platform) if platform else Setting.unlimited()
    placed, ranks = filled_in(setting, spec, ranks)
    nodes, kind, cores = (look(placed.layout, ranks) for look in (place, kinds_of, cores_of))
    if style == "line":
        click.echo(line(nodes, kind, cores))
    elif style == "file":
        click.echo("\n".join(map(str, nodes.tolist())))
    else:
        with_cores = keeps_cores(placed.layout)
        rows = [{"rank": rank, "node": int(node)} for rank, node in enumerate(nodes)]
        for rank, row in enumerate(rows):
            row |= {} if kind is None else {"kind": str(kind[rank])}
            row |= {"cores": int(cores[rank])} if with_cores else {}
        show(rows, style)


def line(nodes: np.ndarray, kind: np.ndarray | None, cores: np.ndarray) -> str:
    """0 1:6 | 2 3:accelerator"""
    held: dict[int, list[str]] = {}
    for rank, node in enumerate(nodes):
        on_core = kind is None or kind[rank] == "core"
        what = "" if on_core and cores[rank] == 1 else f":{cores[rank] if on_core else kind[rank]}"
        held.setdefault(int(node), []).append(f"{rank}{what}")
    last = max(held)
    if last > len(nodes) + 1000:  # a file may name any node
        return " | ".join(f"node {node}: {' '.join(held[node])}" for node in sorted(held))
    return " | ".join(" ".join(held.get(node, ["-"])) for node in range(last + 1))
