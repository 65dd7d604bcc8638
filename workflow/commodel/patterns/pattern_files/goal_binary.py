"""Reader of binary GOAL (`read_tasks`), as txt2bin of LogGOPSim writes it: all little-endian, packed.

    u64        4223, as in LogGOPSim 2; 2342 after a simulation with --save-mem
    u32 u8 u8  ranks, the largest cpu, the largest nic
    u64 u64    of every rank: begin and end of its block, counted after the first 8 bytes
    blocks     u32 tasks, u32 of them without dependencies, u32 each of their numbers,
               the tasks, u32 each of the tasks that are named as followers

A task has the number of its dependencies, its kind, peer, size, tag, cpu and nic. Then follow the number of tasks that
depend on its end and the index of the first among the followers, and the same for its start. Binary files have no
comments and therefore no unit of calc.
"""

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
# LogGOPSim 2 has the same magic number; its tasks have 65 more bytes: options, counters, handlers, arguments.
LOGGOPSIM_2_SIZE = TASK.itemsize + 65  # bytes
MAX_READ_SIZE = 1 << 62  # larger sizes are read as this one, which fits int64 and is refused later


def is_goal(beginning: bytes) -> bool:
    return int.from_bytes(beginning[:8], "little") in (MAGIC, MAGIC_OVERWRITTEN)


def read_tasks(path: AnyPath) -> Tasks:
    content = read_unpacked(path, MAX_FILE, "GOAL")
    row_blocks, follower_blocks = _read_blocks(path, content)
    counts, follower_counts = (np.array([len(block) for block in blocks]) for blocks in (row_blocks, follower_blocks))
    rank = np.repeat(np.arange(len(row_blocks)), counts)
    rows, followers = np.concatenate(row_blocks), np.concatenate(follower_blocks).astype(np.int64)
    size = np.minimum(rows["size"], MAX_READ_SIZE).astype(np.int64)
    kind, peer, tag = (rows[name].astype(np.int64) for name in ("kind", "peer", "tag"))
    dependencies = _read_dependencies(path, rows, followers, rank, counts, follower_counts)
    other_units = int(((rows["cpu"] > 0) | (rows["nic"] > 0)).sum())
    return Tasks(path, len(counts), rank, kind, size, peer, tag, dependencies, other_units=other_units)


def _read_blocks(path: AnyPath, content: bytearray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the tasks and the followers of every rank, whose blocks follow each other without gaps."""
    if len(content) < HEADER.itemsize:
        raise UserError(f"found {len(content)} bytes, wanted at least {HEADER.itemsize}; is the file cut?", file=path)
    head = np.frombuffer(content, HEADER, 1)[0]
    if head["magic"] == MAGIC_OVERWRITTEN:
        raise UserError("found a file overwritten by LogGOPSim --save-mem, wanted the output of txt2bin", file=path)
    ranks, table = int(head["ranks"]), HEADER.itemsize + 16 * int(head["ranks"])
    if not 1 <= ranks <= MAX_COUNT:
        raise UserError(f"found {ranks} ranks, wanted 1 to {MAX_COUNT}", file=path)
    if len(content) < table:
        raise UserError(f"found {len(content)} bytes, wanted a table of {ranks} ranks; is the file cut?", file=path)
    limits = np.frombuffer(content, "<u8", 2 * ranks, HEADER.itemsize).reshape(-1, 2)
    firsts = np.append(np.uint64(table - 8), limits[:-1, 1])
    if (wrong := (limits[:, 0] != firsts) | (limits[:, 1] < firsts)).any():
        raise UserError(f"the block of rank {wrong.argmax()} does not begin at the end of the previous one", file=path)
    if int(limits[-1, 1]) != len(content) - 8:
        sizes = f"found {len(content)} bytes, wanted {int(limits[-1, 1]) + 8}"
        raise UserError(f"{sizes}; is the file cut?" if int(limits[-1, 1]) > len(content) - 8 else sizes, file=path)
    blocks = [
        _read_block(path, content, rank, int(first) + 8, int(last) + 8) for rank, (first, last) in enumerate(limits)
    ]
    return [rows for rows, _ in blocks], [followers for _, followers in blocks]


def _read_block(path: AnyPath, content: bytearray, rank: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    count, independent_count = np.frombuffer(content, UINT32, 2, first).tolist() if last - first >= 8 else (0, 1)
    tasks_begin = first + 8 + 4 * independent_count

    def matches_task_size(task_size: int) -> bool:
        """Return whether tasks of this size fit the block, and have no dependencies where the block lists that."""
        tasks_end = tasks_begin + task_size * count
        if tasks_end > last or (last - tasks_end) % 4:
            return False
        named = np.frombuffer(content, UINT32, independent_count, first + 8)
        waits = np.ndarray(count, UINT32, content, tasks_begin, (task_size,))
        return np.array_equal(named, np.flatnonzero(waits == 0))

    other_program = UserError("found a binary of LogGOPSim 2, wanted one of LogGOPSim, or the text", file=path)
    if not matches_task_size(TASK.itemsize):
        if matches_task_size(LOGGOPSIM_2_SIZE):
            raise other_program
        raise UserError(f"the block of rank {rank} has {last - first} bytes, which do not match its counts", file=path)
    tasks_end = tasks_begin + TASK.itemsize * count
    rows = np.frombuffer(content, TASK, count, tasks_begin)
    followers = np.frombuffer(content, UINT32, (last - tasks_end) // 4, tasks_end)
    # Tasks of LogGOPSim 2 with few values above 0 match both sizes.
    if len(followers) != rows["on_end"].sum() + rows["on_start"].sum() and matches_task_size(LOGGOPSIM_2_SIZE):
        raise other_program
    return rows, followers


def _read_dependencies(
    path: AnyPath,
    rows: np.ndarray,
    followers: np.ndarray,
    rank: np.ndarray,
    counts: np.ndarray,
    follower_counts: np.ndarray,
) -> Dependencies:
    """Return the dependencies. Followers are the tasks that depend on a task, as numbers within its rank."""
    first_task, first_follower = np.cumsum(counts) - counts, np.cumsum(follower_counts) - follower_counts
    parts = [rows[name].astype(np.int64) for name in ("on_end", "on_end_first", "on_start", "on_start_first")]
    named_count = np.bincount(rank, parts[0] + parts[2], minlength=len(counts))
    wrong = named_count[rank] != follower_counts[rank]
    for count, first in (parts[:2], parts[2:]):
        wrong |= (count > 0) & (first + count > follower_counts[rank])
    if wrong.any():
        raise UserError(f"rank {rank[wrong.argmax()]} names other followers than it has", file=path)
    befores, afters = [], []
    for count, first in (parts[:2], parts[2:]):
        start = np.repeat(first_follower[rank] + first - np.cumsum(count) + count, count)
        befores.append(np.repeat(np.arange(len(rank)), count))
        afters.append(followers[start + np.arange(len(start))])
    on_start = np.repeat([False, True], [len(tasks) for tasks in befores])
    before, after = np.concatenate(befores), np.concatenate(afters)
    rank_before = rank[before]
    if (wrong := after >= counts[rank_before]).any():
        row = int(wrong.argmax())
        raise UserError(
            f"rank {rank_before[row]} names task {after[row]}, wanted one of {counts[rank_before[row]]}", file=path
        )
    after += first_task[rank_before]
    if (wrong := np.bincount(after, minlength=len(rank)) != rows["waits"]).any():
        task = int(wrong.argmax())
        number = task - first_task[rank[task]]
        raise UserError(f"task {number} of rank {rank[task]} has another number of dependencies than listed", file=path)
    return Dependencies(before, after, on_start)
