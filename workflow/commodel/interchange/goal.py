"""GOAL, the language of schedules that LogGOPSim plays: `goal` writes a Schedule so that it costs what LogGP says.

Every step of a rank requires its step before, its local work the step's messages; its sends are chained by `irequires`
(the next may start when this one has), since the simulator does not keep the order of equals. An empty message is
written as one byte, which costs the same under LogGP; the simulator takes 0 bytes for 2^64. No line starts with a
blank: txt2bin takes none. What the simulator does otherwise than LogGP stands in `commodel export goal --help`.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from commodel.errors import UserError
from commodel.interchange import Format
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule

UNITS = {"ns": 1e9, "ps": 1e12}
LARGEST = 2**31 - 1  # of the simulator's arguments


def goal(schedule: Schedule, gamma: float | None = None, unit: str = "ns", arguments: str = "") -> str:
    """`gamma`: seconds per byte of reduce and copy work; None: not known, they take no time and a comment says so."""
    calc = np.rint(schedule.work_seconds(0.0 if gamma is None else gamma) * UNITS[unit]).astype(np.int64)
    head = [f"// one unit of calc is 1 {unit}"] if len(calc) else []
    if untimed(schedule, gamma):
        head.append("// reduce and copy work takes no time: it was exported without gamma")
    lines = [*head, *([f"// {arguments}"] if arguments else []), f"num_ranks {schedule.ranks}", ""]
    rows_of, work_of = _by_rank(schedule)
    for rank in range(schedule.ranks):
        body = _of_rank(schedule, rank, rows_of[rank], work_of[rank], calc)
        lines += [f"rank {rank} {{", *body, "}", ""]
    return "\n".join(lines).rstrip()


def untimed(schedule: Schedule, gamma: float | None) -> bool:
    return gamma is None and bool(schedule.work.bytes.any())


def from_set(parameters: ParameterSet, unit: str = "ns") -> tuple[float | None, str]:
    """gamma of a set of LogGP or LogGOPS, and how LogGOPSim is told the other values."""
    if parameters.family not in ("loggp", "loggops"):
        raise UserError(f"found parameters of family '{parameters.family}', wanted loggp or loggops")
    values = {name: estimate.value for name, estimate in parameters.values.items()}
    ends = ("o_s", "o_r") if parameters.family == "loggp" else ("o",)
    if lacking := [name for name in ("L", *ends, "g", "G") if name not in values]:
        raise UserError(f"the set has no value of {lacking[0]}")
    o = sum(values[name] for name in ends) / len(ends)
    return values.get("gamma"), _arguments(values | {"o": o}, unit)


def _arguments(values: Mapping[str, float], unit: str) -> str:
    numbers = {name: values.get(name, 0.0) for name in ("L", "o", "g", "G", "O")}
    texts = []
    for name, value in numbers.items():
        whole = round(value * UNITS[unit])
        if whole > LARGEST:
            raise UserError(f"found {name} of {value:g} s, wanted at most 2^31 {unit}")
        if abs(whole - value * UNITS[unit]) > 0.01 * value * UNITS[unit] and unit == "ns":
            raise UserError(f"found {name} of {value:g}, which whole ns do not hold; give --unit ps")
        texts.append(f"-{name} {whole}")
    largest = int(values.get("S", LARGEST))
    return f"LogGOPSim {' '.join(texts)} -S {min(largest, LARGEST)}, in {unit}"


def _by_rank(schedule: Schedule) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows of messages that a rank sends or receives, and of its work, in order."""
    ends = np.concatenate([schedule.src, schedule.dst])
    rows = np.tile(np.arange(len(schedule.src)), 2)
    work = schedule.work.rank
    return _split(ends, rows, schedule.ranks), _split(work, np.arange(len(work)), schedule.ranks)


def _split(ranks: np.ndarray, rows: np.ndarray, count: int) -> list[np.ndarray]:
    order = np.lexsort((rows, ranks))
    return np.split(rows[order], np.searchsorted(ranks[order], np.arange(1, count)))


def _of_rank(schedule: Schedule, rank: int, rows: np.ndarray, work: np.ndarray, calc: np.ndarray) -> Iterator[str]:
    before: list[str] = []
    number = 0
    for step in np.union1d(schedule.step[rows], schedule.work.step[work]):
        if len(before) > 1:  # a calc of 0 gathers what this step requires
            number += 1
            yield from _calc(number, 0, before)
            before = [f"l{number}"]
        now = rows[schedule.step[rows] == step]
        texts = [_send(schedule, row) for row in now if schedule.src[row] == rank]
        sends = len(texts)
        texts += [_receive(schedule, row) for row in now if schedule.dst[row] == rank]
        labels = [f"l{number + place}" for place in range(1, len(texts) + 1)]
        number += len(texts)
        for label, text in zip(labels, texts, strict=True):
            yield f"{label}: {text}"
            yield from (f"{label} requires {earlier}" for earlier in before)
        yield from (f"{after} irequires {first}" for first, after in pairwise(labels[:sends]))
        before = labels or before
        busy = int(calc[work[schedule.work.step[work] == step]].sum())
        if busy:
            number += 1
            yield from _calc(number, busy, before)
            before = [f"l{number}"]


def _calc(number: int, time: int, before: list[str]) -> Iterator[str]:
    yield f"l{number}: calc {time}"
    yield from (f"l{number} requires {earlier}" for earlier in before)


def _send(schedule: Schedule, row: int) -> str:
    return f"send {max(int(schedule.bytes[row]), 1)}b to {schedule.dst[row]} tag {schedule.step[row]}"


def _receive(schedule: Schedule, row: int) -> str:
    return f"recv {max(int(schedule.bytes[row]), 1)}b from {schedule.src[row]} tag {schedule.step[row]}"


FORMAT = Format("goal", "LogGOPSim's GOAL")
