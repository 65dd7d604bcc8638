"""Shared links: the links that messages cross, and fair shares of their capacity (`SharedLinks`).

In a network with levels, a shared link is the port of a node, the uplinks or downlinks of a group,
those between two groups, or those of all groups of a level. Parallel cables count as one link,
unless the destination selects one of them. In a torus, a shared link joins a node to its neighbour.
The capacities are parameters such as `c_out.leaf`. The nodes of a message's ranks determine its
links.

A link takes a time per byte, and concurrent messages get equal shares. A message over several links
is as slow as the slowest of them. If a link is still busy with messages of earlier steps, later
messages wait, by the clock, whichever step they belong to (`BusyPeriods`). A replay round by round
uses `SharedLinks.find_shared_links`, and one in the order of time uses
`SharedLinks.find_passed_links`.

    >>> BusyPeriods(1).share_links(np.array([0, 0]), np.array([0.0, 1.0]), np.array([3.0, 3.0]))  # 3 s each, one link
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
# setting: seconds above the latency of the class, of nodes (0, 1), (0, 2), …, (1, 2), …
PAIR_LATENCY = "pair_latency"
SHARINGS = EQUAL_SHARING, SHARING_BY_LATENCY = "equal", "latency"  # values of the setting `sharing`
ENTRIES = ENTRY_ON_PATH, ENTRY_AFTER_LATENCY = "path", "latency"  # values of the setting `entry`
MIN_LATENCY = 1e-9  # seconds
TORUS = "torus"  # setting: nodes of each dimension of a torus, whose links messages share
# setting: by level, the time per byte of each group's link relative to c_out
LINK_FACTORS = "link_factors"


@dataclass(frozen=True, eq=False)
class MessageGroups:
    """The group of each message's source or target."""

    by_node: np.ndarray  # group of each node
    end: int  # SOURCE or TARGET

    @property
    def count(self) -> int:
        return int(self.by_node.max(initial=0)) + 1

    def of_messages(self, nodes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return self.by_node[nodes[self.end]]


@dataclass(frozen=True, eq=False)
class NumberedLinks:
    """The number of the shared link that each message uses, for one grouping of links."""

    link: np.ndarray  # of each message
    represented: np.ndarray  # number of messages on this link that each given message represents
    count: int
    # the links of the opposite direction, if they are others
    opposite: Callable[[np.ndarray], np.ndarray] | None


@dataclass(frozen=True, eq=False)
class LinkGrouping:
    """What identifies a link: the group at one end, that group and the parallel link that the
    destination selects, or the groups at both ends."""

    first: MessageGroups
    second: MessageGroups | None = None
    half_duplex: bool = False  # both directions are one link
    into: bool = False  # links into a group, which are numbered after the links out of groups

    def number_links(
        self, nodes: tuple[np.ndarray, np.ndarray], rotation: Rotation | None = None
    ) -> NumberedLinks:
        """Return the links of messages between these nodes; with `rotation`, each symmetry orbit is
        one link.

        With full-duplex ports, the links into groups are numbered after those out.
        """
        rotations = 1 if rotation is None else rotation.rotations
        group, orbits = self.first.of_messages(nodes), find_orbits(self.first.by_node, rotation)
        # two of one level
        joins_groups = self.second is not None and self.second.by_node is self.first.by_node
        link, total, represented = (
            orbits.number[group],
            self.first.count,
            rotations // orbits.length[group],
        )
        if self.second is not None:
            # A link is identified by the orbits of both groups and by how many rotations the second
            # group is ahead of the first, modulo the greatest common divisor of the orbits'
            # lengths.
            second, count = self.second.of_messages(nodes), self.second.count
            second_orbits = find_orbits(self.second.by_node, rotation)
            period = np.gcd(orbits.length[group], second_orbits.length[second])
            offset = (second_orbits.rotations[second] - orbits.rotations[group]) % period
            link = (link * count + second_orbits.number[second]) * rotations + offset
            represented = (
                rotations * period // (orbits.length[group] * second_orbits.length[second])
            )
            total *= count * rotations

        def find_opposite(link: np.ndarray) -> np.ndarray:
            if not joins_groups:
                return (link + total) % (2 * total)
            assert self.second is not None
            pair, offset = np.divmod(link, rotations)
            first, second = np.divmod(pair, self.second.count)
            period = np.gcd(orbits.lengths[first], orbits.lengths[second])
            return (second * self.second.count + first) * rotations + -offset % period

        if self.half_duplex and joins_groups:
            opposite = find_opposite(link)
            represented = np.where(opposite == link, 2 * represented, represented)
            link = np.minimum(link, opposite)
        if self.half_duplex:
            return NumberedLinks(link, represented, total, None)
        if joins_groups:
            return NumberedLinks(link, represented, total, find_opposite)
        return NumberedLinks(
            link + total if self.into else link, represented, 2 * total, find_opposite
        )


class BusyPeriods:
    """The current busy period of each link, and the number of its messages."""

    def __init__(self, count: int) -> None:
        self.since, self.until, self.messages = (np.zeros(count) for _ in range(3))

    def share_links(self, number: np.ndarray, start: Array, duration: Array) -> Array:
        """Return the times at which messages leave their links.

        `number` is the link of each message, `start` the time at which it begins, and `duration`
        the seconds that it would occupy the link without other messages.
        """
        if self.since.ndim < start.ndim:
            full = (*start.shape[:-1], len(self.since))
            self.since, self.until = np.zeros(full), np.zeros(full)
        users = np.bincount(number, minlength=self.since.shape[-1])
        links = np.flatnonzero(users)
        counts, link_index = users[links], (np.cumsum(users > 0) - 1)[number]
        order = find_sort_order(link_index)
        # A row for each link; column 0 is the rest of earlier messages.
        row, column = (
            link_index[order],
            1 + np.arange(len(link_index)) - np.repeat(np.cumsum(counts) - counts, counts),
        )
        table = (*start.shape[:-1], len(links), 1 + counts.max())
        begins, durations = np.full(table, np.inf), np.zeros(table)
        begins[..., row, column], durations[..., row, column] = (
            start[..., order],
            duration[..., order],
        )
        since, until, earlier = self.since[..., links], self.until[..., links], self.messages[links]
        first_begin = begins.min(axis=-1)
        overlaps = (first_begin < until) & (first_begin + durations.sum(axis=-1) > since)
        remainder_begin = np.maximum(first_begin, since)
        begins[..., 0] = np.where(overlaps, remainder_begin, np.inf)
        durations[..., 0] = np.where(overlaps, until - remainder_begin, 0.0)
        ends, end = _share_fairly(begins, durations, earlier)
        later = overlaps | (first_begin >= until)
        self.since[..., links] = np.where(
            overlaps, np.minimum(first_begin, since), np.where(later, first_begin, since)
        )
        self.until[..., links] = np.where(later, end, until)
        self.messages[links] = counts
        leave = np.empty_like(start)
        leave[..., order] = ends[..., row, column]
        return leave


def _share_fairly(begins: Array, durations: Array, earlier: np.ndarray) -> tuple[Array, Array]:
    """Return the times at which the messages of each row leave the link that they share, and at
    which the link is free.

    A message with begin ∞ does not exist. All messages on the link get equal shares. Of messages
    that begin together, each one leaves when every other message has been served as much as it, or
    completely. Column 0 of a row is the remainder of `earlier` messages. No message lasts longer
    than the link is busy.
    """
    if begins.shape[-1] == 2 and not durations[..., 0].any():
        ends = begins + durations
        return ends, ends[..., 1]
    order = np.argsort(begins, axis=-1, kind="stable")
    start, duration = (np.take_along_axis(column, order, axis=-1) for column in (begins, durations))
    work = np.cumsum(duration, axis=-1)
    # First come, first served: the link is busy as long.
    end = work + np.maximum.accumulate(start - work + duration, axis=-1)
    idle = np.concatenate(
        [start[..., 1:] > end[..., :-1], np.ones((*start.shape[:-1], 1), dtype=bool)], axis=-1
    )
    busy = np.empty_like(duration)
    until = np.minimum.accumulate(np.where(idle, end, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    np.put_along_axis(busy, order, until, axis=-1)
    new_durations = durations.copy()
    new_durations[..., 0] = 0.0
    by_size, shares = (
        np.argsort(new_durations, axis=-1, kind="stable"),
        np.empty_like(new_durations),
    )
    sizes, larger_count = (
        np.take_along_axis(new_durations, by_size, axis=-1),
        np.arange(new_durations.shape[-1])[::-1],
    )
    np.put_along_axis(shares, by_size, np.cumsum(sizes, axis=-1) + larger_count * sizes, axis=-1)
    waiting = np.minimum(durations[..., :1], earlier[:, None] * new_durations)
    return np.minimum(busy, begins + shares + waiting), np.where(
        np.isfinite(end), end, -np.inf
    ).max(axis=-1)


# Busy periods of the links of a kind, seconds of every message on them, and its links (−1: none).
LinkUse = tuple[BusyPeriods, Array, np.ndarray]
# time of a link relative to that of a single message, up to which the difference is rounding
MIN_SLOWDOWN = 1.001
# links of one kind, above which their state is not kept between parts of a schedule
MAX_LINKS = 1 << 20


def read_pair_latency(values: Values) -> np.ndarray | None:
    """Return the extra latency of every pair of nodes (nodes, nodes), or None if pairs of a class
    are equal."""
    latencies = values.settings.get(PAIR_LATENCY)
    if latencies is None:
        return None
    nodes = int((1 + np.sqrt(1 + 8 * len(latencies))) / 2)
    matrix = np.zeros((nodes, nodes))
    matrix[np.triu_indices(nodes, 1)] = latencies
    return matrix + matrix.T


def find_latency(
    schedule: Schedule, values: Values, classes: Classes, bytes: np.ndarray | None = None
) -> Array:
    """Return the latency of every message, by its distance class, and by its pair of nodes if these
    differ; at its own size or at another one. The time of a message's header is part of its time on
    links (`count_link_bytes`)."""
    bytes = schedule.bytes if bytes is None else bytes
    latency = classes.column("L", bytes, values)
    if "H" in values:
        header_seconds = np.where(
            classes.distance > 0, values["H"] * classes.column("G", bytes, values), 0.0
        )
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


def count_link_bytes(bytes: np.ndarray, values: Values, between: np.ndarray | bool) -> Array:
    """Return the bytes that messages occupy on links: their own, and `between` nodes a header."""
    return bytes + np.where(between, values["H"], 0.0) if "H" in values else bytes


def find_weights(schedule: Schedule, values: Values, classes: Classes) -> Sequence[Array | None]:
    """Return for each draw the weight of every message on a shared link: in inverse proportion to
    the latency of an empty message between its nodes, as with TCP's congestion control; None: all
    are equal."""
    if values.settings.get("sharing") != SHARING_BY_LATENCY:
        return [None] * values.draw_shape[0]
    latency = np.maximum(
        find_latency(schedule, values, classes, np.zeros(len(schedule.src))), MIN_LATENCY
    )
    weights = latency.min(axis=-1, initial=np.inf, keepdims=True) / latency
    return list(np.broadcast_to(weights, (*values.draw_shape, latency.shape[-1])))


def find_offsets(passed: "PassedLinks", latency: Array, values: Values) -> Array | None:
    """Return the time from the begin of a message until it reaches each of its links: its latency
    times the part of the path before the link, or all of it if bytes follow a handshake. (draws,
    uses); None: no message has latency before a link."""
    before = 1.0 if values.settings.get("entry") == ENTRY_AFTER_LATENCY else passed.path_before
    return latency[..., passed.message] * before if np.any(before) else None


class SharedLinks:
    """All links of a network. Their busy periods continue from one part of a schedule to the
    next."""

    def __init__(self, levels: Hierarchy, values: Values) -> None:
        self.levels, self.values = levels, values
        self.half_duplex = values.settings.get("half_duplex", ())
        self.parallel_links = values.settings.get("links", {})
        factors = values.settings.get(LINK_FACTORS, {})
        self.torus = Torus(tuple(values.settings[TORUS])) if TORUS in values.settings else None
        self.factors = {level: np.asarray(column, dtype=float) for level, column in factors.items()}
        self.busy: dict[str, BusyPeriods] = {}

    def find_shared_links(
        self, schedule: Schedule, unshared: Array, rendezvous: np.ndarray
    ) -> "Sharing":
        """Return the links that the messages of a schedule share.

        `unshared` is the time of each message without sharing, `rendezvous` whether it waits for
        its receiver.
        """
        uses, rows = [], len(schedule.src)
        for kind in self._list_link_sets(schedule, Classes.of(schedule, self.levels)):
            name, count, links = kind.name, kind.count, np.full((len(kind.link), rows), -1)
            links[:, kind.rows] = kind.link
            if count > MAX_LINKS:  # too many to keep: only those of this part
                numbers, count = (
                    np.unique(links, return_inverse=True)[1].reshape(links.shape),
                    links.size,
                )
                links = np.where(links < 0, -1, numbers)
                self.busy.pop(name, None)
            duration = kind.find_slowest_seconds(schedule.bytes, self.values)
            all_durations = np.zeros((*duration.shape[:-1], rows))
            all_durations[..., kind.rows] = duration
            uses.append((self.busy.setdefault(name, BusyPeriods(count)), all_durations, links))
        return Sharing(unshared, rendezvous, uses)

    def is_contended(self, schedule: Schedule, unshared: Array) -> bool:
        """Return whether two messages share a link, or a link is slower than a single message."""
        passed: dict[str, list[np.ndarray]] = {}
        for kind in self._list_link_sets(schedule, Classes.of(schedule, self.levels)):
            passed.setdefault(kind.name, []).append(kind.link.ravel())
            duration = kind.find_slowest_seconds(schedule.bytes, self.values)
            if (duration > unshared[..., kind.rows] * MIN_SLOWDOWN).any():
                return True
        return any(
            len(np.unique(links)) < len(links) for links in map(np.concatenate, passed.values())
        )

    def find_passed_links(
        self,
        schedule: Schedule,
        classes: Classes,
        rotation: Rotation | None = None,
        part: bool = False,
    ) -> "PassedLinks":
        """Return the links that messages pass.

        With `rotation`, each symmetry orbit of links is one link. `part`: links have the same
        numbers in all parts of the schedule.
        """
        kinds = list(self._list_link_sets(schedule, classes, rotation))
        firsts, total = _number_links(kinds)
        rows = np.concatenate(
            [np.zeros(0, dtype=int), *(kind.rows for kind in kinds for _ in kind.link)]
        )
        numbers = [firsts[kind.name] + link for kind in kinds for link in kind.link]
        if not numbers:
            return PassedLinks(kinds, rows, rows, rows, rows, np.zeros(0))
        passed, numbers = (np.arange(total), numbers) if part else number_distinct(numbers, total)
        opposite = np.full(len(passed), -1)
        for kind in kinds if "back" in self.values else ():
            if kind.opposite:
                first = firsts[kind.name]
                of_kind = slice(*np.searchsorted(passed, [first, first + kind.count]))
                wanted = first + kind.opposite(passed[of_kind] - first)
                index = np.minimum(np.searchsorted(passed, wanted), len(passed) - 1)
                opposite[of_kind] = np.where(passed[index] == wanted, index, -1)
        order = find_sort_order(rows)
        before = [
            np.broadcast_to(part, link.shape)
            for kind in kinds
            for link, part in zip(kind.link, kind.path_before, strict=True)
        ]
        return PassedLinks(
            kinds,
            rows[order],
            np.concatenate(numbers)[order],
            order,
            opposite,
            np.concatenate(before)[order],
        )

    @property
    def has_pair_latency(self) -> bool:
        return PAIR_LATENCY in self.values.settings

    @property
    def columns(self) -> list[np.ndarray]:
        """The factors of each node's groups, by level, in which nodes of equal placement may
        differ."""
        groups = {NODE: np.arange(len(self.factors.get(NODE, ()))), **self.levels.groups}
        return [factor[groups[level]] for level, factor in self.factors.items()]

    def count(self, schedule: Schedule) -> int:
        """Return how many link numbers a schedule needs."""
        return _number_links(self._list_link_sets(schedule, Classes.of(schedule, self.levels)))[1]

    def _list_link_sets(
        self, schedule: Schedule, classes: Classes, rotation: Rotation | None = None
    ) -> Iterator["LinkSet"]:
        """Yield each kind of link that has a capacity, with the messages that pass it."""
        src, dst, distance = (
            schedule.node[schedule.src],
            schedule.node[schedule.dst],
            classes.distance,
        )
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            half_duplex, parallel = (
                level in self.half_duplex,
                int(self.parallel_links.get(level, 1)),
            )
            source, target = MessageGroups(group, SOURCE), MessageGroups(group, TARGET)
            selected = MessageGroups(np.arange(nodes) % parallel, TARGET) if parallel > 1 else None
            out, into = (
                LinkGrouping(source, selected, half_duplex),
                LinkGrouping(target, selected, half_duplex, into=True),
            )
            leaving, crossing = range(number + 1, len(groups) + 1), range(number + 1, number + 2)
            # Two nodes have one path between them at any distance; two groups are joined at one
            # distance only.
            between_pairs = leaving if level == NODE else crossing
            for kind, classes_of_way, groupings, parallel_each in (
                ("out", leaving, (out, into), parallel),
                ("pair", between_pairs, (LinkGrouping(source, target, half_duplex),), 1),
                (
                    "all",
                    crossing,
                    (LinkGrouping(MessageGroups(around[number], SOURCE), half_duplex=True),),
                    1,
                ),
                ("inside", range(number, number + 1), (LinkGrouping(source, half_duplex=True),), 1),
            ):
                name = make_key(f"c_{kind}", level)
                if name in self.values.functions:
                    rows = np.flatnonzero(
                        (distance >= classes_of_way.start) & (distance < classes_of_way.stop)
                    )
                    ends = src[rows], dst[rows]
                    passed = [grouping.number_links(ends, rotation) for grouping in groupings]
                    link, scales = (
                        np.stack([numbered.link for numbered in passed]),
                        [numbered.represented for numbered in passed],
                    )
                    before = [float(grouping.first.end == TARGET) for grouping in groupings]
                    factors: list[Array] = []
                    if kind == "out" and (of_groups := self.factors.get(level)) is not None:
                        factors = [
                            of_groups[grouping.first.of_messages(ends)] for grouping in groupings
                        ]
                        scales = [
                            factor * count for factor, count in zip(factors, scales, strict=True)
                        ]
                    count, opposite = passed[0].count, passed[0].opposite
                    yield LinkSet(
                        name, rows, link, count, parallel_each, scales, opposite, factors, before
                    )
        if self.torus and (name := make_key("c_hop", NODE)) in self.values.functions:
            between = np.flatnonzero((distance > 0) & (np.maximum(src, dst) < self.torus.nodes))
            hops, passed_hops = (
                self.torus.count_hops(src[between], dst[between]),
                np.zeros(len(between)),
            )
            for rows, link in self.torus.list_links(src[between], dst[between]):
                represented, before = [np.ones(len(rows))], [passed_hops[rows] / hops[rows]]
                count, opposite = self.torus.links, self.torus.find_opposite
                if NODE in self.half_duplex:
                    link, opposite = np.minimum(link, opposite(link)), None
                yield LinkSet(
                    name, between[rows], link[None], count, 1, represented, opposite, [], before
                )
                passed_hops[rows] += 1


def _number_links(kinds: Iterable["LinkSet"]) -> tuple[dict[str, int], int]:
    """Return the first number of the links of each capacity, and the number of all links."""
    firsts, total = {}, 0
    for kind in kinds:
        if kind.name not in firsts:
            firsts[kind.name] = total
            total += kind.count
    return firsts, total


@dataclass(frozen=True, eq=False)
class LinkSet:
    """The links of one kind."""

    name: str  # parameter that is the capacity of the links
    rows: np.ndarray  # messages that pass them
    link: np.ndarray  # (links per message, messages) that each of these messages passes
    count: int  # upper bound of the link numbers
    parallel: int  # parallel links, of which the destination selects one
    # factors of the seconds on each of `link`: messages represented × factor of the link
    scales: Sequence[np.ndarray]
    opposite: Callable[[np.ndarray], np.ndarray] | None  # the links of the opposite direction
    # how many times as slow as c each of `link` is; none: all are equal
    factors: Sequence[np.ndarray]
    path_before: Sequence[ArrayLike]  # part of a message's latency before each of `link`

    def find_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the seconds that each of these messages occupies a link without factors and other
        messages."""
        size = bytes[..., self.rows]
        occupied = count_link_bytes(size, values, parse_key(self.name).parameter != "c_inside")
        return self.parallel * (values.at_or_last(self.name, size) * occupied)

    def find_slowest_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the same on the slowest of a message's links."""
        seconds = self.find_seconds(bytes, values)
        return seconds * np.max(self.factors, axis=0) if self.factors else seconds


@dataclass(frozen=True, eq=False)
class PassedLinks:
    """The links that messages pass at any size: `message[i]` passes `link[i]`, in the order of
    messages."""

    kinds: Sequence[LinkSet]
    message: np.ndarray
    link: np.ndarray
    order: np.ndarray | slice
    # of each link the one of the opposite direction that it slows down, −1: none
    opposite: np.ndarray
    path_before: np.ndarray  # of `link[i]`: the part of the latency of `message[i]` before it

    def find_link_seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """Return the seconds that each message occupies each of its links without other messages:
        (draws, uses)."""
        leading_shape = values.draw_shape
        columns = [np.zeros((*leading_shape, 0))]
        for kind in self.kinds:
            duration = kind.find_seconds(bytes, values)
            scaled = (scale * duration for scale in kind.scales)
            columns += [
                np.broadcast_to(column, (*leading_shape, len(kind.rows))) for column in scaled
            ]
        return np.concatenate(columns, axis=-1)[..., self.order]


@dataclass(frozen=True, eq=False)
class Sharing:
    """The links that the messages of a schedule share, as `replay` needs them."""

    unshared: Array
    rendezvous: np.ndarray
    uses: Sequence[LinkUse]

    def find_beginning(self, step: Step) -> np.ndarray:
        """Return the messages that begin in a step: eager ones when they are posted, rendezvous
        ones when the receive is posted as well."""
        sent = np.arange(step.posted_sends.start, step.posted_sends.stop)
        matched = (
            np.arange(step.matched.start, step.matched.stop)
            if isinstance(step.matched, slice)
            else step.matched
        )
        return np.concatenate([sent[~self.rendezvous[sent]], matched[self.rendezvous[matched]]])

    def find_ends(self, rows: np.ndarray, start: Array) -> Array:
        """Return when the messages `rows` leave their links, from the times at which they begin."""
        end = start + self.unshared[..., rows]
        for busy, seconds, columns in self.uses:
            row, index = np.nonzero((links := columns[:, rows]) >= 0)
            if not len(index):
                continue
            duration = np.broadcast_to(seconds[..., rows], start.shape)[..., index]
            ends = busy.share_links(links[row, index], start[..., index], duration)
            for number in range(len(links)):
                in_row = row == number
                end[..., index[in_row]] = np.maximum(end[..., index[in_row]], ends[..., in_row])
        return end
