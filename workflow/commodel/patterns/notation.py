"""A schedule as text for people: its table, a Graphviz drawing."""

from collections.abc import Callable

from commodel.patterns import playfile
from commodel.patterns.schedule import Schedule


def csv(schedule: Schedule) -> str:
    return playfile.table(schedule).to_csv(index=False, lineterminator="\n").rstrip("\n")


def dot(schedule: Schedule) -> str:
    edges = zip(schedule.step, schedule.src, schedule.dst, schedule.bytes, strict=True)
    lines = [f'  {src} -> {dst} [label="{step}: {size} B"];' for step, src, dst, size in edges]
    return "\n".join(["digraph schedule {", "  rankdir=LR;", *lines, "}"])


STYLES: dict[str, Callable[[Schedule], str]] = {"csv": csv, "dot": dot}
