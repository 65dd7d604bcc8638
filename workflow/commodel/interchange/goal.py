"""GOAL, the language of schedules that LogGOPSim plays: `goal` writes a Schedule so that it costs what LogGP says.

What a step of a rank posts requires what the rank has waited for and done before; its local work requires what the step
waits for. Sends are chained by `irequires` (the next may start when this one has), since the simulator does not keep
the order of equals, and so is all that comes after a send that nothing waits for yet. A calc of 0 gathers what several
are to require, and keeps two waits in order. An empty message is written as one byte, which costs the same under LogGP;
the simulator takes 0 bytes for 2^64. No line starts with a blank: txt2bin takes none. What the simulator does otherwise
than LogGP stands in `commodel export goal --help`; `patterns/written` reads GOAL.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise

import numpy as np

from commodel.errors import UserError
from commodel.interchange import Format
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule

UNITS = {"ns": 1e9, "ps": 1e12}
LARGEST_ARGUMENT = 2**31 - 1  # of the simulator's arguments
SENDS, OPENS, LEAVES, TAKES, WORKS = range(5)  # what a step does with a message's two ends, and local work
Event = tuple[int, int, int]  # step, which of these, row


def goal(schedule: Schedule, gamma: float | None = None, unit: str = "ns", arguments: str = "") -> str:
    """`gamma`: seconds per byte of reduce and copy work; None: not known, they take no time and a comment says so."""
    calc = np.rint(schedule.work_seconds(0.0 if gamma is None else gamma) * UNITS[unit]).astype(np.int64)
    head = [f"// one unit of calc is 1 {unit}"] if len(calc) else []
    if untimed(schedule, gamma):
        head.append("// reduce and copy work takes no time: it was exported without gamma")
    lines = [*head, *([f"// {arguments}"] if arguments else []), f"num_ranks {schedule.ranks}", ""]
    for rank, events in enumerate(_by_rank(schedule)):
        lines += [f"rank {rank} {{", *_Rank.text(schedule, events, calc), "}", ""]
    return "\n".join(lines).rstrip()


def untimed(schedule: Schedule, gamma: float | None) -> bool:
    return gamma is None and bool(schedule.work.bytes.any())


def from_set(parameters: ParameterSet, unit: str = "ns") -> tuple[float | None, str]:
    """gamma of a set of LogGP or LogGOPS, and how LogGOPSim is told the other values."""
    if parameters.family not in ("loggp", "loggops"):
        raise UserError(f"found parameters of family '{parameters.family}', wanted loggp or loggops")
    values = parameters.numbers
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
        if whole > LARGEST_ARGUMENT:
            raise UserError(f"found {name} of {value:g} s, wanted at most 2^31 {unit}")
        if abs(whole - value * UNITS[unit]) > 0.01 * value * UNITS[unit] and unit == "ns":
            raise UserError(f"found {name} of {value:g}, which whole ns do not hold; give --unit ps")
        texts.append(f"-{name} {whole}")
    largest = int(values.get("S", LARGEST_ARGUMENT))
    return f"LogGOPSim {' '.join(texts)} -S {min(largest, LARGEST_ARGUMENT)}, in {unit}"


def _by_rank(schedule: Schedule) -> Iterator[list[Event]]:
    """What every rank does, in the order of its steps and of what a step does."""
    work, rows = schedule.work, np.arange(len(schedule.src))
    ranks = np.concatenate([schedule.src, schedule.dst, schedule.src, schedule.dst, work.rank])
    steps = schedule.step, schedule.dst_step, schedule.src_wait, schedule.dst_wait, work.step
    does = np.repeat(range(len(steps)), [len(step) for step in steps])
    numbers = np.concatenate([rows, rows, rows, rows, np.arange(len(work.step))])
    order = np.lexsort((numbers, does, np.concatenate(steps), ranks))
    events = np.stack([np.concatenate(steps), does, numbers])[:, order]
    limits = np.searchsorted(ranks[order], np.arange(schedule.ranks + 1)).tolist()
    for first, last in pairwise(limits):
        yield list(zip(*events[:, first:last].tolist(), strict=True))


class _Rank:
    """The text of one rank. `before` is what has to be over before whatever comes next, `started` the last send that
    the rank does not wait for yet, `waited` whether a wait was the last it did."""

    def __init__(self, schedule: Schedule, calc: np.ndarray) -> None:
        self.schedule, self.calc = schedule, calc
        self.lines: list[str] = []
        self.number = 0
        self.before: list[str] = []
        self.started, self.waited = "", False
        self.under_way: dict[tuple[int, bool], str] = {}  # messages, by row and whether this is their receiver

    @classmethod
    def text(cls, schedule: Schedule, events: list[Event], calc: np.ndarray) -> list[str]:
        own = cls(schedule, calc)
        for _, step in groupby(events, lambda event: event[0]):
            own._step([event[1:] for event in step])
        return own.lines

    def _step(self, events: list[tuple[int, int]]) -> None:
        posts = [(row, does == OPENS) for does, row in events if does in (SENDS, OPENS)]
        dues = [(row, does == TAKES) for does, row in events if does in (LEAVES, TAKES)]
        if len(self.before) > 1 if posts else dues and self.waited:
            self.before, self.started = [self._calc(0)], ""
        if posts:
            self._post(posts)
        if dues:
            over = [self.under_way.pop(due) for due in dues]
            self.before = over + ([] if set(posts) & set(dues) else self.before)
            self.started = "" if self.started in over else self.started
            self.waited = True
        if busy := int(self.calc[[row for does, row in events if does == WORKS]].sum()):
            self.before, self.started, self.waited = [self._calc(busy)], "", False

    def _post(self, posts: list[tuple[int, bool]]) -> None:
        """Sends are chained, and receives come after the sends of earlier steps."""
        chain, earlier = [self.started] if self.started else [], self.started
        for row, receives in posts:
            label = self._line(_message(self.schedule, row, receives))
            if receives and earlier:
                self.lines.append(f"{label} irequires {earlier}")
            elif not receives:
                chain.append(label)
            self.under_way[row, receives] = label
        self.lines += [f"{after} irequires {first}" for first, after in pairwise(chain)]
        self.started, self.waited = chain[-1] if chain else "", False

    def _calc(self, time: int) -> str:
        label = self._line(f"calc {time}")
        if self.started:
            self.lines.append(f"{label} irequires {self.started}")
        return label

    def _line(self, text: str) -> str:
        self.number += 1
        label = f"l{self.number}"
        self.lines.append(f"{label}: {text}")
        self.lines += [f"{label} requires {earlier}" for earlier in self.before]
        return label


def _message(schedule: Schedule, row: int, receives: bool) -> str:
    """Where ends have steps of their own they may be posted in another order than their others: each gets its tag."""
    what = f"recv {{}}b from {schedule.src[row]}" if receives else f"send {{}}b to {schedule.dst[row]}"
    tag = schedule.step[row] if schedule.ends is None else row
    return f"{what.format(max(int(schedule.bytes[row]), 1))} tag {tag}"


FORMAT = Format("goal", "LogGOPSim's GOAL")
