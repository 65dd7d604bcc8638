"""What GOAL says of every rank: sends, receives and calculations, and which has to be over (`requires`) or to have
begun (`irequires`) before which. Text and binary files become this, and this becomes steps (see `steps`)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.patterns.longest import circle, waits_in_words
from commodel.patterns.schedule import check_rows
from commodel.units import MAX_BYTES, MAX_SECONDS

SEND, RECEIVE, CALCULATE = 1, 2, 3
ANY = 2**32 - 1  # of ranks and tags, which have 32 bits: all of them


@dataclass(frozen=True, eq=False)
class Needs:
    """A row: the task `after` may not begin before `before` is over, or, where `begun`, has begun. Both are of one
    rank."""

    before: np.ndarray
    after: np.ndarray
    begun: np.ndarray


@dataclass(frozen=True, eq=False)
class Tasks:
    """Columns with a row a task, those of a rank together and in the order of the file. `size` is of bytes, or of
    units of time. `line` is where a task stands; None: the file has no lines, and it is named by its number."""

    path: AnyPath
    ranks: int
    rank: np.ndarray
    kind: np.ndarray
    size: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    needs: Needs
    line: np.ndarray | None = None
    per_second: float = 1e9  # units of time
    unit_is_said: bool = False
    elsewhere: int = 0  # tasks that are not for the first processor or network interface of their rank

    @cached_property
    def moves(self) -> np.ndarray:
        """Whether a task is a message's end."""
        return self.kind != CALCULATE

    @cached_property
    def idle(self) -> np.ndarray:
        """Calculations that take no time only say what comes before what."""
        return ~self.moves & (self.size == 0)

    @cached_property
    def works(self) -> np.ndarray:
        return ~self.moves & ~self.idle

    def error(self, task: int, text: str) -> UserError:
        return UserError(text, file=self.path, line=None if self.line is None else int(self.line[task]))

    def named(self, task: int) -> str:
        if self.line is not None:
            return f"line {self.line[task]} of rank {self.rank[task]}"
        return f"task {task - np.searchsorted(self.rank, self.rank[task])} of rank {self.rank[task]}"

    def sentence(self, task: int) -> str:
        """What the task is, as a sentence begins."""
        rank, size, peer, tag = (column[task] for column in (self.rank, self.size, self.peer, self.tag))
        what = {SEND: f"sends {size} bytes to", RECEIVE: "receives from"}.get(int(self.kind[task]), "calculates")
        end = f" rank {peer} with tag {tag}" if self.moves[task] else ""
        return f"{'' if self.line is not None else f'{self.named(task)}: '}rank {rank} {what}{end}"

    def with_named_ends(self) -> "Tasks":
        """Return the tasks with rank and tag of each receive from any rank, or of any tag. Messages of one rank and tag
        alone must match it: between others the times decide."""
        open_ends = np.flatnonzero((self.kind == RECEIVE) & ((self.peer == ANY) | (self.tag == ANY)))
        if not len(open_ends):
            return self
        sends = self.kind == SEND
        sent = np.unique(np.stack([self.peer[sends], self.rank[sends], self.tag[sends]]), axis=1)
        received = np.stack([self.rank[open_ends], self.peer[open_ends], self.tag[open_ends]])
        kinds, first, kind_of = np.unique(received, axis=1, return_index=True, return_inverse=True)
        named = np.empty((2, len(first)), dtype=np.int64)
        for number, (rank, peer, tag) in enumerate(kinds.T.tolist()):
            source, sent_tag = sent[1:, slice(*np.searchsorted(sent[0], [rank, rank + 1]))]
            fits = ((source == peer) | (peer == ANY)) & ((sent_tag == tag) | (tag == ANY))
            if fits.sum() != 1:
                raise self._ambiguous(int(open_ends[first[number]]), source[fits], sent_tag[fits])
            named[:, number] = source[fits][0], sent_tag[fits][0]
        columns = self.peer.copy(), self.tag.copy()
        for column, names in zip(columns, named, strict=True):
            column[open_ends] = names[kind_of.reshape(-1)]
        return replace(self, peer=columns[0], tag=columns[1])

    def _ambiguous(self, task: int, source: np.ndarray, tag: np.ndarray) -> UserError:
        """The error of a receive that messages of these ranks and tags match, none or several."""
        whom = "any rank" if self.peer[task] == ANY else f"rank {self.peer[task]}"
        tags = "any tag" if self.tag[task] == ANY else f"tag {self.tag[task]}"
        matching = [
            f"rank {one} with tag {other}" for one, other in zip(source.tolist()[:2], tag.tolist(), strict=False)
        ]
        why = f"{' and '.join(matching)} match, and the times decide; wanted one" if matching else "no rank sends that"
        where = "" if self.line is not None else f"{self.named(task)}: "
        return self.error(task, f"{where}rank {self.rank[task]} receives from {whom} with {tags}: {why}")

    def refuse_what_cannot_be(self) -> None:
        count, longest = f"0 to {self.ranks - 1}", f"{MAX_SECONDS:g} s"
        checks = (
            (~np.isin(self.kind, (SEND, RECEIVE, CALCULATE)), "found kind {kind}, wanted 1, 2 or 3: send, recv, calc"),
            ((self.kind == SEND) & (self.peer == ANY), "sends to any rank, wanted one"),
            ((self.kind == SEND) & (self.tag == ANY), "sends with any tag, wanted one"),
            (self.moves & (self.peer >= self.ranks), f"found rank {{peer}}, wanted {count}"),
            (self.moves & (self.size > MAX_BYTES), f"found {{size}} bytes, wanted at most {MAX_BYTES}"),
            (~self.moves & (self.size > MAX_SECONDS * self.per_second), f"found {{size}}, wanted at most {longest}"),
        )
        for wrong, text in checks:
            if wrong.any():
                task = int(wrong.argmax())
                says = {name: getattr(self, name)[task] for name in ("kind", "peer", "size")}
                where = "" if self.line is not None else f"{self.named(task)}: "
                raise self.error(task, where + text.format(**says))
        check_rows(int((self.kind == SEND).sum()))


def circular(tasks: Tasks, before: np.ndarray, after: np.ndarray, left: np.ndarray, what: str) -> UserError:
    """Of tasks that are left because they wait for each other, along edges from `before` to `after`."""
    nodes = circle(before, after, left)
    return tasks.error(nodes[0], f"a {what}: {waits_in_words([tasks.named(node) for node in nodes])}")
