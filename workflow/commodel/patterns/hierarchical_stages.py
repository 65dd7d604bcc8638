"""Stages of collectives that follow the levels of a platform: through leaders (`list_hier_segments`),
in lanes of ranks with equal positions on their nodes (`list_lane_stages`), or by one algorithm over
ranks in the order of their nodes (`list_by_node_stages`).

The leader of a group is its first rank. Rank 0, the root, is therefore the leader of all its
groups. With several leaders a node, vectors are cut into as many parts, and each part has its own
leaders. In operations that exchange blocks, the ranks of a node are instead split among its
leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from commodel.errors import UserError
from commodel.patterns.compositions import Call, Copies, Pieces, Segments, Stage
from commodel.patterns.hierarchical_specs import Composition, Way, find_group_of_node
from commodel.patterns.phases import divide_evenly, split_evenly

Groups = list[np.ndarray]  # of ranks, the leader first


@dataclass(frozen=True, eq=False)
class Level:
    """The groups of a level, and the algorithms within them."""

    groups: Groups
    way: Way


def list_hier_segments(
    operation: str, composition: Composition, node: np.ndarray, bytes: int
) -> list[Segments]:
    """Return the stages of an operation through leaders, for each segment of its data."""
    if operation in ("bcast", "reduce", "allreduce"):
        return _list_vector_segments(operation, composition, node, bytes)
    return [Segments(_list_block_stages(operation, LeaderBlocks.of(composition, node, bytes)))]


def group_by_key(ranks: np.ndarray, key: np.ndarray) -> Groups:
    """Return the ranks that have each key, in the order of the first rank of each."""
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    position = np.argsort(np.argsort(first))[number]
    order = np.argsort(position, kind="stable")
    counts = np.bincount(position)
    return np.split(ranks[order], np.cumsum(counts)[:-1])


def is_hierarchical(node: np.ndarray) -> bool:
    """Return whether there are several nodes, and several ranks on one of them."""
    nodes = len(np.unique(node))
    return 1 < nodes < len(node)


def has_lanes(node: np.ndarray) -> bool:
    """Return whether there are several nodes, each with the same number of ranks, and several."""
    counts = np.unique(node, return_counts=True)[1]
    return len(counts) > 1 and counts[0] > 1 and bool((counts == counts[0]).all())


def is_out_of_order(node: np.ndarray) -> bool:
    """Return whether ranks of several nodes alternate."""
    ranks = np.concatenate(group_by_key(np.arange(len(node)), node))
    return is_hierarchical(node) and bool((np.diff(ranks) < 0).any())


def _list_levels(
    composition: Composition, node: np.ndarray, leaders: int = 1, leader: int = 0
) -> list[Level]:
    """Return the groups of all levels, innermost first. Groups above the first are of leaders.

    The leader of a node is its rank number `leader`. With several `leaders`, the ranks of a node
    are split into as many groups.
    """
    columns = [
        (find_group_of_node(level, int(node.max()) + 1), level.way) for level in composition.levels
    ]
    columns.sort(key=lambda column: -len(np.unique(column[0][node])))
    groups = _split_nodes(node, leaders)
    groups = [np.roll(group, -(leader % len(group))) for group in groups]
    levels = [Level(groups, composition.intra)]
    for group_of_node, way in columns:
        actors = np.array([group[0] for group in levels[-1].groups])
        levels.append(Level(group_by_key(actors, group_of_node[node[actors]]), way))
    actors = np.array([group[0] for group in levels[-1].groups])
    levels.append(Level([actors], composition.inter))
    return levels


def _split_nodes(node: np.ndarray, leaders: int) -> Groups:
    """Return the ranks of each node, split into as many groups as it has leaders."""
    groups = group_by_key(np.arange(len(node)), node)
    if leaders == 1:
        return groups
    split = [np.array_split(group, min(leaders, len(group))) for group in groups]
    return [part for parts in split for part in parts]


def group_lanes(node: np.ndarray, leaders: int) -> Groups:
    """Return the ranks of each node, or of each of several groups of its ranks. All have the same
    number of ranks."""
    groups = _split_nodes(node, leaders)
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        where = "on every node" if leaders == 1 else f"in {leaders} groups on every node"
        raise UserError(f"wanted the same number of ranks {where}; found {sizes[0]} to {sizes[-1]}")
    return groups


def _list_vector_segments(
    operation: str, composition: Composition, node: np.ndarray, bytes: int
) -> list[Segments]:
    """Return the segments of a vector. Each of several leaders has a part of it."""
    largest_node = int(np.unique(node, return_counts=True)[1].max())
    leaders = min(composition.leaders, largest_node)
    ends = split_evenly(bytes, leaders).tolist()
    levels = [_list_levels(composition, node, leader=number) for number in range(leaders)]
    segment = composition.segment or max(bytes, 1)
    complete = max(ends[1] - 1, 0) // segment  # of each part; another one follows

    def list_stages(first: int, last: int | None) -> list[Stage]:
        """Return the stages of these bytes of each leader's part; None: to its end."""
        of_leaders = []
        for leader in range(leaders):
            start = ends[leader] + first
            end = ends[leader + 1] if last is None else ends[leader] + last
            if end > start or bytes == 0:
                of_leaders.append(_list_vector_stages(operation, levels[leader], start, end))
        return _merge_stages(of_leaders)

    rest = Segments(list_stages(complete * segment, None))
    return [Segments(list_stages(0, segment), complete, segment), rest] if complete else [rest]


def _merge_stages(of_parts: Sequence[Sequence[Stage]]) -> list[Stage]:
    """Return the stages in which all parts run at once."""
    return [[call for stage in stages for call in stage] for stages in zip(*of_parts, strict=True)]


def _list_vector_stages(
    operation: str, levels: Sequence[Level], start: int, end: int
) -> list[Stage]:
    """Return the stages of the bytes from `start` to `end` of a vector."""
    pieces = partial(_cut_vector, start, end)
    *inner, top = levels
    leader = int(top.groups[0][0])
    stages: list[Stage] = []

    def call_all(level: Level, operation: str, algorithm: str) -> Stage:
        return [Call(operation, algorithm, group, end - start, pieces) for group in level.groups]

    def send(source: int, target: int) -> Stage:
        """Return the message of these bytes to or from the root, which is no leader of them."""
        members = np.array([source, target])
        return [Call("bcast", "linear", members, end - start, pieces)] if source != target else []

    if operation == "bcast":
        stages.append(send(0, leader))
        stages += [call_all(level, "bcast", level.way.down) for level in reversed(levels)]
    elif operation == "reduce":
        stages += [call_all(level, "reduce", level.way.up) for level in levels]
        stages.append(send(leader, 0))
    else:
        stages += [call_all(level, "reduce", level.way.up) for level in inner]
        if top.way.split:
            stages.append(call_all(top, "reduce", top.way.up))
            stages.append(call_all(top, "bcast", top.way.down))
        else:
            stages.append(call_all(top, "allreduce", top.way.up))
        stages += [call_all(level, "bcast", level.way.down) for level in reversed(inner)]
    return stages


def _cut_vector(start: int, end: int) -> Pieces:
    return Pieces(np.array([0]), np.array([end - start]), np.array([start]))


# addresses and lengths of the runs of each block
BlockRuns = list[tuple[np.ndarray, np.ndarray]]


def _call_on_blocks(
    operation: str,
    way: str,
    members: np.ndarray,
    sizes: np.ndarray,
    list_runs: Callable[[], BlockRuns],
) -> Call:
    """Return a call on blocks of these sizes, which have these runs."""
    block = int(sizes.max())
    uneven_sizes = None if (sizes == block).all() else sizes
    return Call(
        operation, way, members, block, lambda: Pieces.of_runs(block, list_runs()), uneven_sizes
    )


@dataclass(frozen=True, eq=False)
class Blocks:
    """The data of operations whose ranks have blocks, or shares of a vector, of their own."""

    ranks: int
    bytes: int  # as the operation means them

    @cached_property
    def share_sizes(self) -> np.ndarray:
        return divide_evenly(self.bytes, self.ranks)

    @cached_property
    def share_starts(self) -> np.ndarray:
        return split_evenly(self.bytes, self.ranks)[:-1]

    def _make_runs(self, addresses: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
        return addresses, np.full(len(addresses), length)

    def call(
        self, operation: str, way: str, members: np.ndarray, parts: Sequence[np.ndarray]
    ) -> Call:
        """Return a call in which each member's block has the blocks of its part of the ranks."""
        sizes = self.bytes * np.array([len(part) for part in parts])
        return _call_on_blocks(
            operation,
            way,
            members,
            sizes,
            lambda: [self._make_runs(part * self.bytes, self.bytes) for part in parts],
        )

    def send(self, members: np.ndarray, part: np.ndarray) -> Call:
        """Return a message with the blocks of a part of the ranks, from the first member to the
        second."""
        size = self.bytes * len(part)
        runs = self._make_runs(part * self.bytes, self.bytes)
        return Call("bcast", "linear", members, size, lambda: Pieces.of_runs(size, [runs]))

    def call_on_shares(
        self, operation: str, way: str, members: np.ndarray, parts: Sequence[np.ndarray]
    ) -> Call:
        """Return a call in which each member's block has the shares of its part of the ranks."""
        sizes = np.array([int(self.share_sizes[part].sum()) for part in parts])
        return _call_on_blocks(
            operation,
            way,
            members,
            sizes,
            lambda: [(self.share_starts[part], self.share_sizes[part]) for part in parts],
        )

    def call_on_rows(
        self, operation: str, way: str, members: np.ndarray, parts: Sequence[np.ndarray]
    ) -> Call:
        """Return a call in which each member's block has all that its part of the ranks sends."""
        row = self.ranks * self.bytes
        sizes = row * np.array([len(part) for part in parts])
        return _call_on_blocks(
            operation,
            way,
            members,
            sizes,
            lambda: [self._make_runs(part * row, row) for part in parts],
        )

    def call_on_pairs(
        self,
        operation: str,
        way: str,
        members: np.ndarray,
        pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> Call:
        """Return a call whose blocks have what the ranks of the first part of a pair send to those
        of the second."""
        sizes = self.bytes * np.array([len(sources) * len(targets) for sources, targets in pairs])

        def list_runs() -> BlockRuns:
            return [
                self._make_runs(
                    (sources[:, None] * self.ranks + targets).ravel() * self.bytes, self.bytes
                )
                for sources, targets in pairs
            ]

        return _call_on_blocks(operation, way, members, sizes, list_runs)


@dataclass(frozen=True, eq=False)
class LeaderBlocks:
    """The levels of an operation on blocks. `ranks_of[level]` are the ranks whose blocks each rank
    of the level's groups has; the last has those of the outermost leaders."""

    blocks: Blocks
    levels: Sequence[Level]
    ranks_of: Sequence[dict[int, np.ndarray]]

    @classmethod
    def of(cls, composition: Composition, node: np.ndarray, bytes: int) -> LeaderBlocks:
        levels = _list_levels(composition, node, leaders=composition.leaders)
        ranks_of = [{rank: np.array([rank]) for rank in range(len(node))}]
        for level in levels:
            below = ranks_of[-1]
            ranks_of.append(
                {
                    int(group[0]): np.concatenate([below[int(rank)] for rank in group])
                    for group in level.groups
                }
            )
        return cls(Blocks(len(node), bytes), levels, ranks_of)

    @property
    def top(self) -> Level:
        return self.levels[-1]

    @property
    def actors(self) -> np.ndarray:
        """The outermost leaders."""
        return self.top.groups[0]

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """The ranks whose blocks each outermost leader has."""
        return self._find_parts(len(self.levels) - 1, self.actors)

    def _find_parts(self, level: int, group: np.ndarray) -> list[np.ndarray]:
        return [self.ranks_of[level][int(rank)] for rank in group]

    def copy(self, bytes: int, at_root: bool = False) -> Stage:
        """Return the reordering of data by the leaders that have blocks of several ranks, or by the
        root."""
        counts = np.array([len(part) for part in self.parts])
        return [Copies(self.actors[:1] if at_root else self.actors[counts > 1], bytes)]

    def reorder(self, bytes: int, at_root: bool = False) -> list[Stage]:
        """Return the reordering of blocks that are in the order of the nodes, if that is not the
        order of the ranks."""
        in_order = (np.diff(np.concatenate(self.parts)) > 0).all()
        return [] if in_order else [self.copy(bytes, at_root)]

    def go_up(self, make: MakeCall, operation: str, with_top: bool = False) -> list[Stage]:
        return [
            [
                make(operation, level.way.up, group, self._find_parts(number, group))
                for group in level.groups
            ]
            for number, level in enumerate(self.levels if with_top else self.levels[:-1])
        ]

    def go_down(self, make: MakeCall, operation: str, with_top: bool = False) -> list[Stage]:
        stages: list[Stage] = [
            [
                make(operation, level.way.down, group, self._find_parts(number, group))
                for group in level.groups
            ]
            for number, level in enumerate(self.levels if with_top else self.levels[:-1])
        ]
        return stages[::-1]


# of an operation, its algorithm, the members, and the ranks whose blocks each has
MakeCall = Callable[[str, str, np.ndarray, Sequence[np.ndarray]], Call]


def _list_block_stages(operation: str, data: LeaderBlocks) -> list[Stage]:
    """Return the stages of an operation on blocks through leaders."""
    blocks, actors, way, parts = data.blocks, data.actors, data.top.way.up, data.parts
    whole = blocks.ranks * blocks.bytes
    if operation == "gather":
        return [*data.go_up(blocks.call, "gather", with_top=True), *data.reorder(whole, True)]
    if operation == "scatter":
        return [*data.reorder(whole, True), *data.go_down(blocks.call, "scatter", with_top=True)]
    if operation == "barrier":
        return [
            *data.go_up(blocks.call, "gather"),
            [blocks.call("barrier", way, actors, parts)],
            *data.go_down(blocks.call, "bcast"),
        ]
    if operation == "allgather":
        broadcast = partial(_call_on_vector, whole)
        return [
            *data.go_up(blocks.call, "gather"),
            [blocks.call("allgather", way, actors, parts)],
            *data.reorder(whole),
            *data.go_down(broadcast, "bcast"),
        ]
    if operation == "reduce-scatter":
        reduction = partial(_call_on_vector, blocks.bytes)
        return [
            *data.go_up(reduction, "reduce"),
            *data.reorder(blocks.bytes),
            [blocks.call_on_shares("reduce-scatter", way, actors, parts)],
            *data.go_down(blocks.call_on_shares, "scatter"),
        ]
    assert operation == "alltoall"
    pairs = [(sources, targets) for sources in parts for targets in parts]
    of_leader = whole * max(len(part) for part in parts)

    def scatter(
        operation: str, way: str, group: np.ndarray, of_members: Sequence[np.ndarray]
    ) -> Call:
        everyone = np.arange(blocks.ranks)
        return blocks.call_on_pairs(
            operation, way, group, [(everyone, targets) for targets in of_members]
        )

    return [
        *data.go_up(blocks.call_on_rows, "gather"),
        data.copy(of_leader),
        [blocks.call_on_pairs("alltoall", way, actors, pairs)],
        data.copy(of_leader),
        *data.go_down(scatter, "scatter"),
    ]


def _call_on_vector(
    bytes: int, operation: str, way: str, members: np.ndarray, parts: Sequence[np.ndarray]
) -> Call:
    return Call(operation, way, members, bytes, partial(_cut_vector, 0, bytes))


def list_lane_stages(
    operation: str, composition: Composition, node: np.ndarray, bytes: int
) -> list[Stage]:
    """Return the stages of an operation in lanes: of the ranks with equal positions on their nodes.

    With `leaders`, the ranks of a node are split into as many groups, which take the place of
    nodes.
    """
    groups = group_lanes(node, composition.leaders)
    lanes = list(np.array(groups).T)
    blocks = Blocks(len(node), bytes)
    across, within = composition.inter.up, composition.intra
    everyone = np.arange(len(node))
    if operation == "alltoall":
        to_groups = [
            [(lane[number : number + 1], group) for number in range(len(lane)) for group in groups]
            for lane in lanes
        ]
        to_ranks = [
            [(lane, group[number : number + 1]) for lane in lanes for number in range(len(lanes))]
            for group in groups
        ]
        whole = blocks.ranks * bytes
        consecutive = all((np.diff(group) == 1).all() for group in groups)
        return [
            *([] if consecutive else [[Copies(everyone, whole)]]),
            [
                blocks.call_on_pairs("alltoall", across, lane, pairs)
                for lane, pairs in zip(lanes, to_groups, strict=True)
            ],
            [Copies(everyone, whole)],
            [
                blocks.call_on_pairs("alltoall", within.up, group, pairs)
                for group, pairs in zip(groups, to_ranks, strict=True)
            ],
        ]
    if operation == "allgather":
        singles = [[lane[number : number + 1] for number in range(len(lane))] for lane in lanes]
        return [
            [
                blocks.call("allgather", across, lane, of_ranks)
                for lane, of_ranks in zip(lanes, singles, strict=True)
            ],
            [blocks.call("allgather", within.up, group, lanes) for group in groups],
            [Copies(everyone, blocks.ranks * bytes)],
        ]
    if operation == "reduce-scatter":
        singles = [[lane[number : number + 1] for number in range(len(lane))] for lane in lanes]
        return [
            [Copies(everyone, bytes)],
            [blocks.call_on_shares("reduce-scatter", within.up, group, lanes) for group in groups],
            [
                blocks.call_on_shares("reduce-scatter", across, lane, of_ranks)
                for lane, of_ranks in zip(lanes, singles, strict=True)
            ],
        ]
    return _list_vector_lane_stages(operation, composition, groups, lanes, bytes)


def _list_vector_lane_stages(
    operation: str, composition: Composition, groups: Groups, lanes: Groups, bytes: int
) -> list[Stage]:
    """Return the stages of a vector, of which each lane has a share."""
    within = composition.intra
    ends = split_evenly(bytes, len(lanes))
    shares = Blocks(len(lanes), bytes)
    of_lanes = [np.array([number]) for number in range(len(lanes))]

    def exchange(operation: str, way: str, groups: Groups) -> Stage:
        return [shares.call_on_shares(operation, way, group, of_lanes) for group in groups]

    across: Stage = [
        Call(
            operation,
            composition.inter.up,
            lane,
            int(ends[number + 1] - ends[number]),
            partial(_cut_vector, int(ends[number]), int(ends[number + 1])),
        )
        for number, lane in enumerate(lanes)
    ]
    if operation == "bcast":
        return [
            exchange("scatter", within.up, groups[:1]),
            across,
            exchange("allgather", within.down, groups),
        ]
    first = exchange("reduce-scatter", within.up, groups)
    if operation == "reduce":
        return [first, across, exchange("gather", within.down, groups[:1])]
    return [first, across, exchange("allgather", within.down, groups)]


def list_locality_bruck_stages(algorithm: str, node: np.ndarray, bytes: int) -> list[Stage]:
    """Return the stages of the locality-aware Bruck allgather (Bienz, Gautam and Kharel, EuroMPI
    2022): an allgather within nodes, then rounds of one message between nodes for each rank and
    another allgather within nodes.

    With q ranks a node, a node has the data of q^r nodes after r rounds. In the next one, its rank
    j receives those of the q^r nodes at distance j q^r. `algorithm` is that within nodes.
    """
    groups = group_lanes(node, 1)
    nodes = len(groups)
    each = len(groups[0])
    blocks = Blocks(len(node), bytes)
    if each == 1:
        everyone = np.concatenate(groups)
        singles = [everyone[number : number + 1] for number in range(nodes)]
        return [[blocks.call("allgather", "bruck", everyone, singles)]]

    def list_ranks(first: int, count: int) -> np.ndarray:
        """Return the ranks of some consecutive nodes; the first node follows the last one."""
        return np.concatenate([groups[number % nodes] for number in range(first, first + count)])

    singles_of_node = [[group[number : number + 1] for number in range(each)] for group in groups]
    stages: list[Stage] = [
        [
            blocks.call("allgather", algorithm, group, singles)
            for group, singles in zip(groups, singles_of_node, strict=True)
        ]
    ]
    known = 1  # nodes whose data each node has
    while known < nodes:
        # the distance of the nodes from which each rank of a node receives, and their number
        distances = known * np.arange(each)
        counts = np.clip(nodes - distances, 0, known)
        messages: list[Call] = []
        gathers: list[Call] = []
        for number, group in enumerate(groups):
            parts = [
                list_ranks(number + int(distance), int(count)) if count else group[:0]
                for distance, count in zip(distances, counts, strict=True)
            ]
            for lane in np.flatnonzero(counts)[1:]:
                source = groups[(number + int(distances[lane])) % nodes][lane]
                members = np.array([source, group[lane]])
                messages.append(blocks.send(members, parts[lane]))
            gathers.append(blocks.call("allgather", algorithm, group, parts))
        stages += [messages, gathers]
        known *= each
    return [*stages, [Copies(np.arange(len(node)), blocks.ranks * bytes)]]


def list_by_node_stages(
    operation: str, algorithm: str, node: np.ndarray, bytes: int
) -> list[Stage]:
    """Return the one stage of an algorithm over ranks in the order of their nodes, and on a node in
    their own order. Blocks are sent from and received in their places, without copies."""
    ranks = len(node)
    members = np.concatenate(group_by_key(np.arange(ranks), node))
    blocks = Blocks(ranks, bytes)
    parts = [members[number : number + 1] for number in range(ranks)]
    if operation in ("allgather", "gather", "scatter"):
        return [[blocks.call(operation, algorithm, members, parts)]]
    if operation == "reduce-scatter":
        return [[blocks.call_on_shares(operation, algorithm, members, parts)]]
    if operation == "alltoall":
        call = Call(operation, algorithm, members, bytes, partial(_permute_pairs, members, bytes))
        return [[call]]
    return [[_call_on_vector(bytes, operation, algorithm, members, parts)]]


def _permute_pairs(members: np.ndarray, bytes: int) -> Pieces:
    """Return the pieces of an exchange between all pairs of these members."""
    ranks = len(members)
    address = (members[:, None] * ranks + members).ravel() * bytes
    return Pieces(np.arange(ranks * ranks) * bytes, np.full(ranks * ranks, bytes), address).join()
