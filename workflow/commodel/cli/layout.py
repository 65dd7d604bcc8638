"""commodel layout: look at where ranks sit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commodel.cli._output import show
from commodel.errors import UserError

if TYPE_CHECKING:
    import numpy as np


@click.command()
@click.argument("spec")
@click.option("--ranks", type=click.IntRange(1, 1 << 20), required=True, help="Number of ranks.")
@click.option("--platform", help="Platform whose nodes they sit on: a name or a file.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["line", "json", "csv"]),
    default="line",
    show_default=True,
    help="line: the ranks of each node, node by node; json and csv: rank by rank.",
)
def layout(spec: str, ranks: int, platform: str | None, style: str) -> None:
    """Show the node of every rank under SPEC, such as cyclic:2; `commodel layouts` lists the forms.

    Nodes are parted by |; a rank that is not on a core is shown with its kind.
    """
    from commodel.patterns.layouts import kinds_of, place
    from commodel.patterns.points import Setting, full_layout
    from commodel.plan.config import find, load_platform

    setting = Setting.unlimited()
    if platform:
        file = find("platform", platform)
        setting = Setting.of(file.stem, load_platform(file))
    placed = full_layout(setting, spec, ranks)
    if misfit := placed.misfit(setting):
        raise UserError(f"{ranks} ranks as {misfit}")
    nodes, kind = place(placed.layout, ranks), kinds_of(placed.layout, ranks)
    if style == "line":
        click.echo(line(nodes, kind))
    else:
        rows = [{"rank": rank, "node": int(node)} for rank, node in enumerate(nodes)]
        show([row | ({} if kind is None else {"kind": str(kind[row["rank"]])}) for row in rows], style)


def line(nodes: np.ndarray, kind: np.ndarray | None) -> str:
    """0 1 | 2 3:accelerator"""
    held: dict[int, list[str]] = {}
    for rank, node in enumerate(nodes):
        plain = kind is None or kind[rank] == "core"
        held.setdefault(int(node), []).append(f"{rank}" if plain else f"{rank}:{kind[rank]}")
    last = max(held)
    if last > len(nodes) + 1000:  # a file may name any node
        return " | ".join(f"node {node}: {' '.join(held[node])}" for node in sorted(held))
    return " | ".join(" ".join(held.get(node, ["-"])) for node in range(last + 1))
