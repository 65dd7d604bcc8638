"""Reader of binary GOAL (`read_tasks`), as txt2bin of LogGOPSim writes it: all little-endian,
packed.

    u64        4223, as in LogGOPSim 2; 2342 after a simulation with --save-mem
    u32 u8 u8  ranks, the largest cpu, the largest nic
    u64 u64    of every rank: begin and end of its block, counted after the first 8 bytes
    blocks     u32 tasks, u32 of them without dependencies, u32 each of their numbers,
               the tasks, u32 each of the tasks that are named as followers

A task has the number of its dependencies, its kind, peer, size, tag, cpu and nic. Then follow the
number of tasks that depend on its end and the index of the first among the followers, and the same
for its start. Binary files have no comments and therefore no unit of calc.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_unpacked
from commodel.patterns.pattern_files.tasks import Dependencies, Tasks
from commodel.units import MAX_COUNT

MAX_FILE = 4096 * MIB
MAGIC, MAGIC_OVERWRITTEN = 4223, 2342
UINT32 = np.dtype("<u4")
HEADER = np.dtype([("magic", "<u8"), ("ranks", UINT32), ("cpu", "u1"), ("nic", "u1")])
TASK = np.dtype(
    [
        ("waits", UINT32),
        ("kind", "u1"),
        ("peer", UINT32),
        ("size", "<u8"),
        ("tag", UINT32),
        ("cpu", "u1"),
        ("nic", "u1"),
    ]
    + [(name, UINT32) for name in ("on_end", "on_end_first", "on_start", "on_start_first")]
)
# LogGOPSim 2 has the same magic number; its tasks have 65 more bytes: options, counters, handlers,
# arguments.
LOGGOPSIM_2_SIZE = TASK.itemsize + 65  # bytes
MAX_READ_SIZE = 1 << 62  # larger sizes are read as this one, which fits int64 and is refused later


def is_goal(beginning: bytes) -> bool:
    return int.from_bytes(beginning[:8], "little") in (MAGIC, MAGIC_OVERWRITTEN)


def read_tasks(path: AnyPath) -> Tasks:
    blocks = _read_blocks(path, read_unpacked(path, MAX_FILE, "GOAL"))
    dependencies = _read_dependencies(path, blocks)
    kind = blocks.read_field("kind")
    size = np.minimum(blocks.read_field("size"), MAX_READ_SIZE).astype(np.int64)
    peer, tag = (blocks.read_field(name).astype(np.int64) for name in ("peer", "tag"))
    other_units = int(((blocks.read_field("cpu") > 0) | (blocks.read_field("nic") > 0)).sum())
    return Tasks(
        path=path,
        ranks=len(blocks.begin),
        rank=blocks.rank,
        kind=kind,
        size=size,
        peer=peer,
        tag=tag,
        dependencies=dependencies,
        other_units=other_units,
    )


def _view_at_every_byte(content: bytearray, dtype: np.dtype) -> np.ndarray:
    """Return a view whose element i is the value that begins at byte i; the elements overlap."""
    return np.ndarray(max(len(content) - dtype.itemsize + 1, 0), dtype, content, 0, (1,))


def _list_positions(first: np.ndarray, counts: np.ndarray, distance: int) -> np.ndarray:
    """Return for every list its positions: `counts` of them, from `first` on, at this distance."""
    earlier = np.cumsum(counts) - counts
    return np.repeat(first - distance * earlier, counts) + distance * np.arange(counts.sum())


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The blocks of ranks, with a row for each rank: where its block begins and ends, and its
    numbers of tasks and of tasks without dependencies. All ranks are read together, since a file
    may have a million of them."""

    content: bytearray
    begin: np.ndarray
    end: np.ndarray
    tasks: np.ndarray
    independent: np.ndarray

    @classmethod
    def of(cls, content: bytearray, begin: np.ndarray, end: np.ndarray) -> "_Blocks":
        """Return the blocks with their numbers. A block that is too short for these gets some that
        do not fit it."""
        has_numbers = end - begin >= 8
        tasks = np.zeros(len(begin), dtype=np.int64)
        independent = np.ones(len(begin), dtype=np.int64)
        numbers = _view_at_every_byte(content, UINT32)
        tasks[has_numbers] = numbers[begin[has_numbers]]
        independent[has_numbers] = numbers[begin[has_numbers] + 4]
        return cls(content=content, begin=begin, end=end, tasks=tasks, independent=independent)

    def select(self, rows: np.ndarray | slice) -> "_Blocks":
        columns = self.begin, self.end, self.tasks, self.independent
        return _Blocks(self.content, *(column[rows] for column in columns))

    @property
    def first_task(self) -> np.ndarray:
        """The number of the first task of each rank."""
        return np.cumsum(self.tasks) - self.tasks

    @property
    def tasks_begin(self) -> np.ndarray:
        return self.begin + 8 + 4 * self.independent

    @property
    def followers_begin(self) -> np.ndarray:
        return self.tasks_begin + TASK.itemsize * self.tasks

    @property
    def followers(self) -> np.ndarray:
        """The number of followers in each block."""
        return (self.end - self.followers_begin) // 4

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each task."""
        return np.repeat(np.arange(len(self.begin)), self.tasks)

    @cached_property
    def task_begins(self) -> np.ndarray:
        return _list_positions(self.tasks_begin, self.tasks, TASK.itemsize)

    def read_field(self, name: str) -> np.ndarray:
        return _view_at_every_byte(self.content, TASK)[name][self.task_begins]

    def count_named_followers(self) -> np.ndarray:
        """Return how many followers the tasks of each rank name."""
        counts = self.read_field("on_end").astype(np.int64) + self.read_field("on_start")
        named = np.concatenate([[0], np.cumsum(counts)])
        return named[self.first_task + self.tasks] - named[self.first_task]

    def match_task_size(self, task_size: int) -> np.ndarray:
        """Return whether tasks of this size fit each block, and have no dependencies where the
        block lists that."""
        remaining_bytes = self.end - self.tasks_begin - task_size * self.tasks
        matches = (remaining_bytes >= 0) & (remaining_bytes % 4 == 0)
        # The numbers of these blocks are bounded by the size of the file; those of the others may
        # be any.
        fitting = np.flatnonzero(matches)
        matches[fitting] = self.select(fitting)._matches_lists(task_size)
        return matches

    def _matches_lists(self, task_size: int) -> np.ndarray:
        """Return whether each block lists its tasks without dependencies, in their order and no
        others."""
        numbers = _view_at_every_byte(self.content, UINT32)
        waits = numbers[_list_positions(self.tasks_begin, self.tasks, task_size)]
        independent = np.flatnonzero(waits == 0)
        rank = self.rank[independent]
        matches = np.bincount(rank, minlength=len(self.begin)) == self.independent
        blocks = self.select(matches)
        in_blocks = matches[rank]
        rank, independent = rank[in_blocks], independent[in_blocks]
        listed_tasks = numbers[_list_positions(blocks.begin + 8, blocks.independent, 4)]
        matches[rank[listed_tasks != independent - self.first_task[rank]]] = False
        return matches


def _read_blocks(path: AnyPath, content: bytearray) -> _Blocks:
    """Return the blocks of all ranks, which follow each other without gaps."""
    if len(content) < HEADER.itemsize:
        raise UserError(
            f"found {len(content)} bytes, wanted at least {HEADER.itemsize}; is the file cut?",
            file=path,
        )
    head = np.frombuffer(content, HEADER, 1)[0]
    if head["magic"] == MAGIC_OVERWRITTEN:
        raise UserError(
            "found a file overwritten by LogGOPSim --save-mem, wanted the output of txt2bin",
            file=path,
        )
    ranks = int(head["ranks"])
    table = HEADER.itemsize + 16 * int(head["ranks"])
    if not 1 <= ranks <= MAX_COUNT:
        raise UserError(f"found {ranks} ranks, wanted 1 to {MAX_COUNT}", file=path)
    if len(content) < table:
        raise UserError(
            f"found {len(content)} bytes, wanted a table of {ranks} ranks; is the file cut?",
            file=path,
        )
    limits = np.frombuffer(content, "<u8", 2 * ranks, HEADER.itemsize).reshape(-1, 2)
    firsts = np.append(np.uint64(table - 8), limits[:-1, 1])
    wrong = (limits[:, 0] != firsts) | (limits[:, 1] < firsts)
    if wrong.any():
        raise UserError(
            f"the block of rank {wrong.argmax()} does not begin at the end of the previous one",
            file=path,
        )
    if int(limits[-1, 1]) != len(content) - 8:
        sizes = f"found {len(content)} bytes, wanted {int(limits[-1, 1]) + 8}"
        raise UserError(
            f"{sizes}; is the file cut?" if int(limits[-1, 1]) > len(content) - 8 else sizes,
            file=path,
        )
    begin, end = limits.T.astype(np.int64) + 8
    blocks = _Blocks.of(content, begin, end)
    _refuse_other_sizes(path, blocks)
    return blocks


def _refuse_other_sizes(path: AnyPath, blocks: _Blocks) -> None:
    """Refuse a block whose tasks have another size, such as that of LogGOPSim 2. Its tasks match
    both sizes if few of their values are above 0."""
    wrong = np.flatnonzero(~blocks.match_task_size(TASK.itemsize))
    before = blocks.select(slice(wrong[0])) if len(wrong) else blocks
    doubtful = np.flatnonzero(before.count_named_followers() != before.followers)
    doubtful = np.append(doubtful, wrong[:1])
    if blocks.select(doubtful).match_task_size(LOGGOPSIM_2_SIZE).any():
        raise UserError(
            "found a binary of LogGOPSim 2, wanted one of LogGOPSim, or the text", file=path
        )
    if len(wrong):
        rank = wrong[0]
        size = blocks.end[wrong[0]] - blocks.begin[wrong[0]]
        raise UserError(
            f"the block of rank {rank} has {size} bytes, which do not match its counts", file=path
        )


def _read_dependencies(path: AnyPath, blocks: _Blocks) -> Dependencies:
    """Return the dependencies. Followers are the tasks that depend on a task, as numbers within its
    rank."""
    rank, followers = blocks.rank, blocks.followers
    wrong = blocks.count_named_followers() != followers
    naming = []
    counts = []
    firsts = []
    for kind in ("on_end", "on_start"):
        count = blocks.read_field(kind)
        task = np.flatnonzero(count)
        naming.append(task)
        counts.append(count[task].astype(np.int64))
        firsts.append(blocks.read_field(f"{kind}_first")[task].astype(np.int64))
    task, count, first = (np.concatenate(columns) for columns in (naming, counts, firsts))
    wrong[rank[task[first + count > followers[rank[task]]]]] = True
    if wrong.any():
        raise UserError(f"rank {wrong.argmax()} names other followers than it has", file=path)
    on_start = np.repeat([False, True], [column.sum() for column in counts])
    before = np.repeat(task, count)
    positions = _list_positions(blocks.followers_begin[rank[task]] + 4 * first, count, 4)
    after = _view_at_every_byte(blocks.content, UINT32)[positions].astype(np.int64)
    rank_before = rank[before]
    wrong = after >= blocks.tasks[rank_before]
    if wrong.any():
        row = int(wrong.argmax())
        owner = rank_before[row]
        raise UserError(
            f"rank {owner} names task {after[row]}, wanted one of {blocks.tasks[owner]}", file=path
        )
    after += blocks.first_task[rank_before]
    wrong = np.bincount(after, minlength=len(rank)) != blocks.read_field("waits")
    if wrong.any():
        row = int(wrong.argmax())
        number = row - blocks.first_task[rank[row]]
        raise UserError(
            f"task {number} of rank {rank[row]} has another number of dependencies than listed",
            file=path,
        )
    return Dependencies(before, after, on_start)
