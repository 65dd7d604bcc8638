"""The longest way to every node of a graph, which puts in order what has to come before what. Where there is none,
nodes wait for each other, and `circle` names some that do."""

import numpy as np


def longest_ways(
    before: np.ndarray, after: np.ndarray, apart: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least numbers, none below its start, with number[after] ≥ number[before] + apart along every edge; and which
    nodes have none, since they wait for themselves. A pass of numpy for all nodes before which nothing unknown is
    left."""
    order = np.argsort(before, kind="stable")
    reached, apart = after[order], apart[order]
    first = np.searchsorted(before[order], np.arange(len(start) + 1))
    waiting = np.bincount(reached, minlength=len(start))
    number = start.astype(np.int64)
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        counts = first[ready + 1] - first[ready]
        rows = np.repeat(first[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        nexts = reached[rows]
        np.maximum.at(number, nexts, np.repeat(number[ready], counts) + apart[rows])
        np.subtract.at(waiting, nexts, 1)
        ready = sort_unique(nexts[waiting[nexts] == 0])
    return number, waiting > 0


def sort_unique(numbers: np.ndarray) -> np.ndarray:
    """Return what `np.unique` does, for short arrays in half its time."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]


def circle(before: np.ndarray, after: np.ndarray, left: np.ndarray) -> list[int]:
    """Nodes among those left, each of which waits for the one behind it, the last for the first."""
    inside = left[before] & left[after]
    waits_for = np.full(len(left), -1)
    waits_for[after[inside]] = before[inside]
    node, seen = int(np.flatnonzero(left)[0]), {}
    while node not in seen:
        seen[node] = len(seen)
        node = int(waits_for[node])
    return list(seen)[seen[node] :]


def waits_in_words(names: list[str], shown: int = 4) -> str:
    """The names of a circle as `A waits for B, which waits for A`."""
    some = names if len(names) <= shown else [*names[: shown - 1], f"… ({len(names) - shown} more)", names[-1]]
    return f"{some[0]} waits for {', which waits for '.join([*some[1:], names[0]])}"
