"""Shared lines: the links that messages cross, and fair shares of their capacity (`Lines`).

A line is a link of a network with levels, or several parallel links: the port of a node, the links out of a group or
into it, those between two groups, or one line for all groups of a level. In a torus it is the link from a node to its
neighbour. Their capacities are parameters such as `c_out.leaf`. The nodes of a message's ranks determine its lines.

A line takes a time per byte, and concurrent messages get equal shares. A message over several lines is as slow as the
slowest of them. If a line is still busy with messages of earlier steps, later messages wait, by the clock, whichever
step they belong to (`BusyPeriods`). `Lines.find_shared_lines` serves a replay round by round, `Lines.find_passed_lines`
one in the order of time.

    >>> BusyPeriods(1).share_lines(np.array([0, 0]), np.array([0.0, 1.0]), np.array([3.0, 3.0]))  # 3 s each, one line
    array([6., 6.])
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import Rotation, find_orbits
from commodel.models.evaluation.time_order import find_sort_order, number_distinct
from commodel.models.evaluation.values import Classes, Values
from commodel.models.keys import make_key, parse_key
from commodel.models.probes.node_pairs import SMALL_BYTES
from commodel.patterns.schedule import Schedule, Step
from commodel.torus import Torus

SOURCE, TARGET = 0, 1
PAIR_LATENCY = "pair_latency"  # setting: seconds above the latency of the class, of nodes (0, 1), (0, 2), …, (1, 2), …
SHARINGS = EQUAL_SHARING, SHARING_BY_LATENCY = "equal", "latency"  # values of the setting `sharing`
ENTRIES = ENTRY_ON_PATH, ENTRY_AFTER_LATENCY = "path", "latency"  # values of the setting `entry`
MIN_LATENCY = 1e-9  # seconds
TORUS = "torus"  # setting: nodes of each dimension of a torus, whose links are lines
LINK_FACTORS = "link_factors"  # setting: by level, the time per byte of each group's link relative to c_out


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each message's source or target."""

    by_node: np.ndarray  # group of each node
    end: int  # SOURCE or TARGET

    @property
    def count(self) -> int:
        return int(self.by_node.max(initial=0)) + 1

    def of_messages(self, nodes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return self.by_node[nodes[self.end]]


@dataclass(frozen=True, eq=False)
class NumberedLines:
    """Numbers of the lines that messages use, for one grouping of links."""

    line: np.ndarray  # of each message
    represented: np.ndarray  # number of messages that each given message represents
    count: int
    opposite: Callable[[np.ndarray], np.ndarray] | None  # the lines of the opposite direction, if they are others


@dataclass(frozen=True, eq=False)
class LineGrouping:
    """What identifies a link: the group at one end, that group and the parallel link that the destination selects, or
    the groups at both ends."""

    first: Groups
    second: Groups | None = None
    half_duplex: bool = False  # both directions are one line
    into: bool = False  # links into a group, whose lines are numbered after the lines out of groups

    def number_lines(self, nodes: tuple[np.ndarray, np.ndarray], rotation: Rotation | None = None) -> NumberedLines:
        """Return the lines of messages between these nodes; with `rotation`, each symmetry orbit is one line.

        With full-duplex ports, the lines into groups are numbered after those out.
        """
        rotations = 1 if rotation is None else rotation.rotations
        group, orbits = self.first.of_messages(nodes), find_orbits(self.first.by_node, rotation)
        joins_groups = self.second is not None and self.second.by_node is self.first.by_node  # two of one level
        line, total, represented = orbits.number[group], self.first.count, rotations // orbits.length[group]
        if self.second is not None:
            # A line is identified by the orbits of both groups and by how many rotations the second group is ahead of
            # the first, modulo the greatest common divisor of the orbits' lengths.
            second, count = self.second.of_messages(nodes), self.second.count
            second_orbits = find_orbits(self.second.by_node, rotation)
            period = np.gcd(orbits.length[group], second_orbits.length[second])
            offset = (second_orbits.rotations[second] - orbits.rotations[group]) % period
            line = (line * count + second_orbits.number[second]) * rotations + offset
            represented = rotations * period // (orbits.length[group] * second_orbits.length[second])
            total *= count * rotations

        def find_opposite(line: np.ndarray) -> np.ndarray:
            if not joins_groups:
                return (line + total) % (2 * total)
            pair, offset = np.divmod(line, rotations)
            first, second = np.divmod(pair, self.second.count)
            period = np.gcd(orbits.lengths[first], orbits.lengths[second])
            return (second * self.second.count + first) * rotations + -offset % period

        if self.half_duplex and joins_groups:
            opposite = find_opposite(line)
            represented = np.where(opposite == line, 2 * represented, represented)
            line = np.minimum(line, opposite)
        if self.half_duplex:
            return NumberedLines(line, represented, total, None)
        if joins_groups:
            return NumberedLines(line, represented, total, find_opposite)
        return NumberedLines(line + total if self.into else line, represented, 2 * total, find_opposite)


class BusyPeriods:
    """The current busy period of each line, and the number of its messages."""

    def __init__(self, count: int) -> None:
        self.since, self.until, self.messages = (np.zeros(count) for _ in range(3))

    def share_lines(self, number: np.ndarray, start: Array, duration: Array) -> Array:
        """Return the times at which messages leave their lines.

        `number` is the line of each message, `start` the time at which it begins, and `duration` the seconds that it
        would occupy the line without other messages.
        """
        if self.since.ndim < start.ndim:
            full = (*start.shape[:-1], len(self.since))
            self.since, self.until = np.zeros(full), np.zeros(full)
        users = np.bincount(number, minlength=self.since.shape[-1])
        lines = np.flatnonzero(users)
        counts, line_index = users[lines], (np.cumsum(users > 0) - 1)[number]
        order = find_sort_order(line_index)
        # A row for each line; column 0 is the rest of earlier messages.
        row, column = line_index[order], 1 + np.arange(len(line_index)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = (*start.shape[:-1], len(lines), 1 + counts.max())
        begins, durations = np.full(table, np.inf), np.zeros(table)
        begins[..., row, column], durations[..., row, column] = start[..., order], duration[..., order]
        since, until, earlier = self.since[..., lines], self.until[..., lines], self.messages[lines]
        first_begin = begins.min(axis=-1)
        overlaps = (first_begin < until) & (first_begin + durations.sum(axis=-1) > since)
        remainder_begin = np.maximum(first_begin, since)
        begins[..., 0] = np.where(overlaps, remainder_begin, np.inf)
        durations[..., 0] = np.where(overlaps, until - remainder_begin, 0.0)
        ends, end = _share_fairly(begins, durations, earlier)
        later = overlaps | (first_begin >= until)
        self.since[..., lines] = np.where(overlaps, np.minimum(first_begin, since), np.where(later, first_begin, since))
        self.until[..., lines] = np.where(later, end, until)
        self.messages[lines] = counts
        leave = np.empty_like(start)
        leave[..., order] = ends[..., row, column]
        return leave


def _share_fairly(begins: Array, durations: Array, earlier: np.ndarray) -> tuple[Array, Array]:
    """Return the times at which the messages of each row leave the line that they share, and at which the line is free.

    A message with begin ∞ does not exist. All messages on the line get equal shares. Of messages that begin together,
    each one leaves when every other message has been served as much as it, or completely. Column 0 of a row is the
    remainder of `earlier` messages. No message lasts longer than the line is busy.
    """
    if begins.shape[-1] == 2 and not durations[..., 0].any():
        ends = begins + durations
        return ends, ends[..., 1]
    order = np.argsort(begins, axis=-1, kind="stable")
    start, duration = (np.take_along_axis(column, order, axis=-1) for column in (begins, durations))
    work = np.cumsum(duration, axis=-1)
    # First come, first served: the line is busy as long.
    end = work + np.maximum.accumulate(start - work + duration, axis=-1)
    idle = np.concatenate([start[..., 1:] > end[..., :-1], np.ones((*start.shape[:-1], 1), dtype=bool)], axis=-1)
    busy = np.empty_like(duration)
    until = np.minimum.accumulate(np.where(idle, end, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    np.put_along_axis(busy, order, until, axis=-1)
    new_durations = durations.copy()
    new_durations[..., 0] = 0.0
    by_size, shares = np.argsort(new_durations, axis=-1, kind="stable"), np.empty_like(new_durations)
    sizes, larger_count = np.take_along_axis(new_durations, by_size, axis=-1), np.arange(new_durations.shape[-1])[::-1]
    np.put_along_axis(shares, by_size, np.cumsum(sizes, axis=-1) + larger_count * sizes, axis=-1)
    waiting = np.minimum(durations[..., :1], earlier[:, None] * new_durations)
    return np.minimum(busy, begins + shares + waiting), np.where(np.isfinite(end), end, -np.inf).max(axis=-1)


# Lines of a kind, seconds of every message on them, its lines (−1: none).
LineUse = tuple[BusyPeriods, Array, np.ndarray]
MIN_SLOWDOWN = 1.001  # time of a line relative to that of a single message, up to which the difference is rounding
MAX_LINES = 1 << 20  # lines of one kind, above which their state is not kept between parts of a schedule


def read_pair_latency(values: Values) -> np.ndarray | None:
    """Return the extra latency of every pair of nodes (nodes, nodes), or None if pairs of a class are equal."""
    if (latencies := values.settings.get(PAIR_LATENCY)) is None:
        return None
    nodes = int((1 + np.sqrt(1 + 8 * len(latencies))) / 2)
    matrix = np.zeros((nodes, nodes))
    matrix[np.triu_indices(nodes, 1)] = latencies
    return matrix + matrix.T


def find_latency(schedule: Schedule, values: Values, classes: Classes, bytes: np.ndarray | None = None) -> Array:
    """Return the latency of every message, by its distance class, and by its pair of nodes if these differ; at its own
    size or at another one. The time of a message's header is part of its time on lines (`count_line_bytes`)."""
    bytes = schedule.bytes if bytes is None else bytes
    latency = classes.column("L", bytes, values)
    if "H" in values:
        header_seconds = np.where(classes.distance > 0, values["H"] * classes.column("G", bytes, values), 0.0)
        latency = np.maximum(latency - header_seconds, 0.0)
    matrix = read_pair_latency(values)
    if matrix is None:
        return latency
    ends = schedule.node[schedule.src], schedule.node[schedule.dst]
    in_matrix = np.maximum(*ends) < len(matrix)
    extra = matrix[tuple(np.where(in_matrix, end, 0) for end in ends)]
    # Where a protocol adds trips to long messages, it does so at every distance.
    small = classes.column("L", np.full_like(bytes, SMALL_BYTES), values)
    growth = np.where(small > MIN_LATENCY, latency / np.maximum(small, MIN_LATENCY), 1.0)
    return np.maximum(latency + np.where(in_matrix, extra * growth, 0.0), 0.0)


def count_line_bytes(bytes: np.ndarray, values: Values, between: np.ndarray | bool = True) -> Array:
    """Return the bytes that messages occupy on lines: their own, and `between` nodes a header."""
    return bytes + np.where(between, values["H"], 0.0) if "H" in values else bytes


def find_weights(schedule: Schedule, values: Values, classes: Classes) -> Sequence[Array | None]:
    """Return for each draw the weight of every message on a shared line: in inverse proportion to the latency of an
    empty message between its nodes, as with TCP's congestion control; None: all are equal."""
    if values.settings.get("sharing") != SHARING_BY_LATENCY:
        return [None] * values.draw_shape[0]
    latency = np.maximum(find_latency(schedule, values, classes, np.zeros(len(schedule.src))), MIN_LATENCY)
    return np.broadcast_to(
        latency.min(axis=-1, initial=np.inf, keepdims=True) / latency, (*values.draw_shape, latency.shape[-1])
    )


def find_offsets(passed: "PassedLines", latency: Array, values: Values) -> Array | None:
    """Return the time from the begin of a message until it reaches each of its lines: its latency times the part of the
    path before the line, or all of it if bytes follow a handshake. (draws, uses); None: no message has latency before
    a line."""
    before = 1.0 if values.settings.get("entry") == ENTRY_AFTER_LATENCY else passed.path_before
    return latency[..., passed.message] * before if np.any(before) else None


class Lines:
    """All lines of a network. Their busy periods continue from one part of a schedule to the next."""

    def __init__(self, levels: Hierarchy, values: Values) -> None:
        self.levels, self.values = levels, values
        self.half_duplex = values.settings.get("half_duplex", ())
        self.links = values.settings.get("links", {})
        factors = values.settings.get(LINK_FACTORS, {})
        self.torus = Torus(tuple(values.settings[TORUS])) if TORUS in values.settings else None
        self.factors = {level: np.asarray(column, dtype=float) for level, column in factors.items()}
        self.busy: dict[str, BusyPeriods] = {}

    def find_shared_lines(self, schedule: Schedule, unshared: Array, rendezvous: np.ndarray) -> "Sharing":
        """Return the lines that the messages of a schedule share.

        `unshared` is the time of each message without sharing, `rendezvous` whether it waits for its receiver.
        """
        uses, rows = [], len(schedule.src)
        for kind in self._lines(schedule, Classes.of(schedule, self.levels)):
            name, count, lines = kind.name, kind.count, np.full((len(kind.line), rows), -1)
            lines[:, kind.rows] = kind.line
            if count > MAX_LINES:  # too many to keep: only those of this part
                numbers, count = np.unique(lines, return_inverse=True)[1].reshape(lines.shape), lines.size
                lines = np.where(lines < 0, -1, numbers)
                self.busy.pop(name, None)
            duration = kind.find_slowest_seconds(schedule.bytes, self.values)
            all_durations = np.zeros((*duration.shape[:-1], rows))
            all_durations[..., kind.rows] = duration
            uses.append((self.busy.setdefault(name, BusyPeriods(count)), all_durations, lines))
        return Sharing(unshared, rendezvous, uses)

    def is_contended(self, schedule: Schedule, unshared: Array) -> bool:
        """Return whether two messages share a line, or a line is slower than a single message."""
        passed: dict[str, list[np.ndarray]] = {}
        for kind in self._lines(schedule, Classes.of(schedule, self.levels)):
            passed.setdefault(kind.space, []).append(kind.line.ravel())
            duration = kind.find_slowest_seconds(schedule.bytes, self.values)
            if (duration > unshared[..., kind.rows] * MIN_SLOWDOWN).any():
                return True
        return any(len(np.unique(lines)) < len(lines) for lines in map(np.concatenate, passed.values()))

    def find_passed_lines(
        self, schedule: Schedule, classes: Classes, rotation: Rotation | None = None, part: bool = False
    ) -> "PassedLines":
        """Return the lines that messages pass.

        With `rotation`, each symmetry orbit of lines is one line. `part`: lines have the same numbers in all parts of
        the schedule.
        """
        kinds = list(self._lines(schedule, classes, rotation))
        firsts, total = _number_spaces(kinds)
        rows = np.concatenate([np.zeros(0, dtype=int), *(kind.rows for kind in kinds for _ in kind.line)])
        numbers = [firsts[kind.space] + line for kind in kinds for line in kind.line]
        if not numbers:
            return PassedLines(kinds, rows, rows, rows, rows, np.zeros(0))
        passed, numbers = (np.arange(total), numbers) if part else number_distinct(numbers, total)
        opposite = np.full(len(passed), -1)
        for kind in kinds if "back" in self.values else ():
            if kind.opposite:
                first = firsts[kind.space]
                of_kind = slice(*np.searchsorted(passed, [first, first + kind.count]))
                wanted = first + kind.opposite(passed[of_kind] - first)
                index = np.minimum(np.searchsorted(passed, wanted), len(passed) - 1)
                opposite[of_kind] = np.where(passed[index] == wanted, index, -1)
        order = find_sort_order(rows)
        before = [
            np.broadcast_to(part, line.shape)
            for kind in kinds
            for line, part in zip(kind.line, kind.path_before, strict=True)
        ]
        return PassedLines(
            kinds, rows[order], np.concatenate(numbers)[order], order, opposite, np.concatenate(before)[order]
        )

    @property
    def has_pair_latency(self) -> bool:
        return PAIR_LATENCY in self.values.settings

    @property
    def columns(self) -> list[np.ndarray]:
        """The factors of each node's groups, by level, in which nodes of equal placement may differ."""
        groups = {NODE: np.arange(len(self.factors.get(NODE, ()))), **self.levels.groups}
        return [factor[groups[level]] for level, factor in self.factors.items()]

    def count(self, schedule: Schedule) -> int:
        """Return how many line numbers a schedule needs."""
        return _number_spaces(self._lines(schedule, Classes.of(schedule, self.levels)))[1]

    def _lines(self, schedule: Schedule, classes: Classes, rotation: Rotation | None = None) -> Iterator["LineSet"]:
        """Yield each kind of line that has a capacity, with the messages that pass it."""
        src, dst, distance = schedule.node[schedule.src], schedule.node[schedule.dst], classes.distance
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            half_duplex, links = level in self.half_duplex, int(self.links.get(level, 1))
            split = not half_duplex and make_key("c_in", level) in self.values.functions
            source, target = Groups(group, SOURCE), Groups(group, TARGET)
            link = Groups(np.arange(nodes) % links, TARGET) if links > 1 else None
            out, into = LineGrouping(source, link, half_duplex), LineGrouping(target, link, half_duplex, into=True)
            leaving, crossing = range(number + 1, len(groups) + 1), range(number + 1, number + 2)
            # Two nodes have one path between them at any distance; two groups are joined at one distance only.
            between_pairs = leaving if level == NODE else crossing
            for kind, classes_of_way, groupings, links_each in (
                ("out", leaving, (out,) if split else (out, into), links),
                ("in", leaving, (into,) if split else (), links),
                ("pair", between_pairs, (LineGrouping(source, target, half_duplex),), 1),
                ("all", crossing, (LineGrouping(Groups(around[number], SOURCE), half_duplex=True),), 1),
                ("inside", range(number, number + 1), (LineGrouping(source, half_duplex=True),), 1),
            ):
                if groupings and (name := make_key(f"c_{kind}", level)) in self.values.functions:
                    space = make_key("c_out", level) if kind == "in" else name
                    rows = np.flatnonzero((distance >= classes_of_way.start) & (distance < classes_of_way.stop))
                    ends = src[rows], dst[rows]
                    passed = [grouping.number_lines(ends, rotation) for grouping in groupings]
                    line, scales = (
                        np.stack([numbered.line for numbered in passed]),
                        [numbered.represented for numbered in passed],
                    )
                    into = [float(grouping.first.end == TARGET) for grouping in groupings]
                    factors = []
                    if kind in ("out", "in") and (of_groups := self.factors.get(level)) is not None:
                        factors = [of_groups[grouping.first.of_messages(ends)] for grouping in groupings]
                        scales = [factor * count for factor, count in zip(factors, scales, strict=True)]
                    count, opposite = passed[0].count, passed[0].opposite
                    yield LineSet(name, rows, line, count, links_each, scales, space, opposite, factors, into)
        if self.torus and (name := make_key("c_hop", NODE)) in self.values.functions:
            between = np.flatnonzero((distance > 0) & (np.maximum(src, dst) < self.torus.nodes))
            hops, passed_hops = self.torus.count_hops(src[between], dst[between]), np.zeros(len(between))
            for rows, link in self.torus.list_links(src[between], dst[between]):
                represented, before = [np.ones(len(rows))], [passed_hops[rows] / hops[rows]]
                opposite, links = self.torus.find_opposite, self.torus.links
                yield LineSet(name, between[rows], link[None], links, 1, represented, name, opposite, [], before)
                passed_hops[rows] += 1


def _number_spaces(kinds: Iterable["LineSet"]) -> tuple[dict[str, int], int]:
    """Return the first number of each numbering space, and the number of all lines."""
    firsts, total = {}, 0
    for kind in kinds:
        if kind.space not in firsts:
            firsts[kind.space] = total
            total += kind.count
    return firsts, total


@dataclass(frozen=True, eq=False)
class LineSet:
    """The lines of one kind."""

    name: str  # parameter that is the capacity of the lines
    rows: np.ndarray  # messages that pass them
    line: np.ndarray  # (lines per message, messages) that each of these messages passes
    count: int  # upper bound of the line numbers
    links: int  # parallel links, of which the destination selects one
    scales: Sequence[np.ndarray]  # factors of the seconds on each of `line`: messages represented × factor of the line
    space: str  # numbering space, which two kinds may share
    opposite: Callable[[np.ndarray], np.ndarray] | None  # the lines of the opposite direction
    factors: Sequence[np.ndarray]  # how many times as slow as c each of `line` is; none: all are equal
    path_before: Sequence[ArrayLike]  # part of a message's latency before each of `line`

    def find_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the seconds that each of these messages occupies a line without factors and other messages."""
        size = bytes[..., self.rows]
        occupied = count_line_bytes(size, values, parse_key(self.name).parameter != "c_inside")
        return self.links * (values.at_or_last(self.name, size) * occupied)

    def find_slowest_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the same on the slowest of a message's lines."""
        seconds = self.find_seconds(bytes, values)
        return seconds * np.max(self.factors, axis=0) if self.factors else seconds


@dataclass(frozen=True, eq=False)
class PassedLines:
    """The lines that messages pass at any size: `message[i]` passes `line[i]`, in the order of messages."""

    kinds: Sequence[LineSet]
    message: np.ndarray
    line: np.ndarray
    order: np.ndarray | slice
    opposite: np.ndarray  # of each line the one of the opposite direction that it slows down, −1: none
    path_before: np.ndarray  # of `line[i]`: the part of the latency of `message[i]` before it

    def find_line_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the seconds that each message occupies each of its lines without other messages: (draws, uses)."""
        leading_shape = values.draw_shape
        columns = [np.zeros((*leading_shape, 0))]
        for kind in self.kinds:
            duration = kind.find_seconds(bytes, values)
            scaled = (scale * duration for scale in kind.scales)
            columns += [np.broadcast_to(column, (*leading_shape, len(kind.rows))) for column in scaled]
        return np.concatenate(columns, axis=-1)[..., self.order]


@dataclass(frozen=True, eq=False)
class Sharing:
    """The lines that the messages of a schedule share, as `replay` needs them."""

    unshared: Array
    rendezvous: np.ndarray
    uses: Sequence[LineUse]

    def find_beginning(self, step: Step) -> np.ndarray:
        """Return the messages that begin in a step: eager ones when they are posted, rendezvous ones when the receive
        is posted as well."""
        sent = np.arange(step.posted_sends.start, step.posted_sends.stop)
        matched = np.arange(step.matched.start, step.matched.stop) if isinstance(step.matched, slice) else step.matched
        return np.concatenate([sent[~self.rendezvous[sent]], matched[self.rendezvous[matched]]])

    def find_ends(self, rows: np.ndarray, start: Array) -> Array:
        """Return when the messages `rows` leave their lines, from the times at which they begin."""
        end = start + self.unshared[..., rows]
        for busy, seconds, columns in self.uses:
            row, index = np.nonzero((lines := columns[:, rows]) >= 0)
            if not len(index):
                continue
            duration = np.broadcast_to(seconds[..., rows], start.shape)[..., index]
            ends = busy.share_lines(lines[row, index], start[..., index], duration)
            for number in range(len(lines)):
                in_row = row == number
                end[..., index[in_row]] = np.maximum(end[..., index[in_row]], ends[..., in_row])
        return end
