"""GOAL, the language of schedules that LogGOPSim simulates: `format_goal` writes a Schedule whose
simulated time is that of LogGP.

`patterns/dependencies` finds the dependencies between operations. An empty message is written as
one byte, which takes the same time under LogGP; the simulator reads 0 bytes as 2^64. No line starts
with a blank, since the simulator's txt2bin would reject it. docs/methods/loggopsim.md lists the
differences between the simulator and LogGP. `patterns/pattern_files` reads GOAL.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.interchange import Format
from commodel.parameters import ParameterSet
from commodel.patterns.dependencies import (
    CALC,
    NO_WORK,
    RECEIVE,
    Dependency,
    RankOperation,
    group_work,
    make_dependencies,
)
from commodel.patterns.schedule import Schedule

UNITS = {"ns": 1e9, "ps": 1e12}
MAX_ARGUMENT = 2**31 - 1  # largest argument of the simulator


def format_goal(
    schedule: Schedule, gamma: float | None = None, unit: str = "ns", arguments: str = ""
) -> str:
    """Return a schedule in GOAL.

    `gamma` are the seconds per byte of reduce and copy work. If it is None, this work takes no
    time, and a comment states it.
    """
    calc = np.rint(schedule.work_seconds(0.0 if gamma is None else gamma) * UNITS[unit]).astype(
        np.int64
    )
    head = [f"// one unit of calc is 1 {unit}"] if len(calc) else []
    if has_untimed_work(schedule, gamma):
        head.append("// reduce and copy work takes no time: it was exported without gamma")
    lines = [*head, *([f"// {arguments}"] if arguments else []), f"num_ranks {schedule.ranks}", ""]
    groups, count = group_work(schedule)
    durations = np.bincount(groups, calc, count).astype(np.int64)
    for rank, items in enumerate(make_dependencies(schedule, busy=durations > 0)):
        lines += [f"rank {rank} {{", *_format_rank(schedule, durations, items), "}", ""]
    return "\n".join(lines).rstrip()


def has_untimed_work(schedule: Schedule, gamma: float | None) -> bool:
    return gamma is None and bool(schedule.work.bytes.any())


def convert_parameters(parameters: ParameterSet, unit: str = "ns") -> tuple[float | None, str]:
    """Return γ of a LogGP or LogGOPS set, and its other values as arguments of LogGOPSim."""
    if parameters.model not in ("loggp", "loggops"):
        raise UserError(f"found parameters of model '{parameters.model}', wanted loggp or loggops")
    values = parameters.numbers
    ends = ("o_s", "o_r") if parameters.model == "loggp" else ("o",)
    missing = [name for name in ("L", *ends, "g", "G") if name not in values]
    if missing:
        raise UserError(f"the set has no value of {missing[0]}")
    o = sum(values[name] for name in ends) / len(ends)
    return values.get("gamma"), _format_arguments(values | {"o": o}, unit)


def _format_arguments(values: Mapping[str, float], unit: str) -> str:
    numbers = {name: values.get(name, 0.0) for name in ("L", "o", "g", "G", "O")}
    texts = []
    for name, value in numbers.items():
        integer = round(value * UNITS[unit])
        if integer > MAX_ARGUMENT:
            raise UserError(f"found {name} of {value:g} s, wanted less than 2^31 {unit}")
        if abs(integer - value * UNITS[unit]) > 0.01 * value * UNITS[unit] and unit == "ns":
            raise UserError(
                f"found {name} of {value:g} s, which is no whole number of ns; give --unit ps"
            )
        texts.append(f"-{name} {integer}")
    largest = int(values.get("S", MAX_ARGUMENT))
    return f"LogGOPSim {' '.join(texts)} -S {min(largest, MAX_ARGUMENT)}, in {unit}"


def _format_rank(
    schedule: Schedule, durations: np.ndarray, items: Sequence[RankOperation | Dependency]
) -> Iterator[str]:
    """Yield the lines of one rank; its operations have the labels l1, l2, …."""
    number = 0
    for item in items:
        if isinstance(item, Dependency):
            yield f"l{item.after + 1} {'irequires' if item.on_start else 'requires'} l{item.before + 1}"
            continue
        number += 1
        if item.kind == CALC:
            yield f"l{number}: calc {0 if item.row == NO_WORK else durations[item.row]}"
        else:
            yield f"l{number}: {_format_message(schedule, item.row, item.kind == RECEIVE)}"


def _format_message(schedule: Schedule, row: int, receives: bool) -> str:
    """Return a send or a receive with its tag.

    If the schedule has `nonblocking`, sender and receiver may post messages in different orders, so
    each message has its own tag.
    """
    call = (
        f"recv {{}}b from {schedule.src[row]}" if receives else f"send {{}}b to {schedule.dst[row]}"
    )
    tag = schedule.step[row] if schedule.nonblocking is None else row
    return f"{call.format(max(int(schedule.bytes[row]), 1))} tag {tag}"


FORMAT = Format("goal", "LogGOPSim's GOAL")
