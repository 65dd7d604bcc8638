"""A schedule as text: a table of messages, GOAL for LogGOPSim, a Graphviz drawing."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from commodel.playfile import messages
from commodel.schedule import KINDS, Schedule


def table(schedule: Schedule) -> str:
    return messages(schedule).to_csv(index=False, lineterminator="\n").rstrip("\n")


def goal(schedule: Schedule) -> str:
    """Every step of a rank requires its step before; the sends of one step are chained in order (`irequires`: the next
    may start when this one has)."""
    lines = [f"num_ranks {schedule.ranks}", ""]
    for rank in range(schedule.ranks):
        lines += [f"rank {rank} {{", *_of_rank(schedule, rank), "}", ""]
    return "\n".join(lines).rstrip()


def _of_rank(schedule: Schedule, rank: int) -> list[str]:
    lines, before, number = [], [], 0
    work = schedule.work
    mine = (schedule.src == rank) | (schedule.dst == rank)
    for step in np.union1d(schedule.step[mine], work.step[work.rank == rank]):
        rows = np.flatnonzero(mine & (schedule.step == step))
        sends = [
            f"send {schedule.bytes[row]}b to {schedule.dst[row]} tag {step}"
            for row in rows
            if schedule.src[row] == rank
        ]
        receives = [
            f"recv {schedule.bytes[row]}b from {schedule.src[row]} tag {step}"
            for row in rows
            if schedule.dst[row] == rank
        ]
        labels = []
        for text in sends + receives:
            number += 1
            labels.append(f"l{number}")
            lines.append(f"  l{number}: {text}")
            lines += [f"  l{number} requires {earlier}" for earlier in before]
        lines += [f"  {after} irequires {first}" for first, after in pairwise(labels[: len(sends)])]
        before = labels or before
        for row in np.flatnonzero((work.rank == rank) & (work.step == step) & (work.kind == KINDS.index("compute"))):
            number += 1
            lines.append(f"  l{number}: calc {round(work.seconds[row] * 1e9)}")
            lines += [f"  l{number} requires {earlier}" for earlier in before]
            before = [f"l{number}"]
    return lines


def dot(schedule: Schedule) -> str:
    edges = zip(schedule.step, schedule.src, schedule.dst, schedule.bytes, strict=True)
    lines = [f'  {src} -> {dst} [label="{step}: {size} B"];' for step, src, dst, size in edges]
    return "\n".join(["digraph schedule {", "  rankdir=LR;", *lines, "}"])


STYLES: dict[str, Callable[[Schedule], str]] = {"csv": table, "goal": goal, "dot": dot}
