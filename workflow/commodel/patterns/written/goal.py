"""Reads GOAL, the language of schedules that schedgen writes and LogGOPSim plays, as text: all that txt2bin takes, and
blanks, comments and the order of ranks as people like them.

    num_ranks 2
    rank 0 {
    l1: calc 500
    l2: send 8b to 1 tag 3
    l2 requires l1
    }
    rank 1 {
    l1: recv 8b from 0 tag 3
    }

A message has the bytes that its send says, as in the simulator. One unit of calc is 1 ns, unless a comment says
`one unit of calc is 1 ps`, as the one that `commodel export goal` writes does. `cpu` and `nic` are read, and a rank has
one of each all the same.
"""

import re
from array import array

import numpy as np

from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.files.text import MIB, read_lines
from commodel.patterns.schedule import Schedule
from commodel.patterns.written.steps import schedule
from commodel.patterns.written.tasks import ANY, CALCULATE, RECEIVE, SEND, Needs, Tasks
from commodel.units import MAX_COUNT, shown

MAX_FILE = 1024 * MIB
MOST_LINES = 64 << 20
MOST_KNOWN = 4096  # tasks whose text is remembered
KINDS = {"send": SEND, "recv": RECEIVE, "calc": CALCULATE}
UNIT = re.compile(r"//\s*one unit of calc is 1 (ns|ps)")
UNITS = {"ns": 1e9, "ps": 1e12}  # in a second
LABEL = r"[A-Za-z][A-Za-z0-9_]*"
NUMBER = "[0-9]{1,19}"
TASK = re.compile(
    rf"(?:({LABEL})\s*:\s*)?(?:(send)\s*({NUMBER})\s*b\s*to\s*(-?{NUMBER})|(recv)\s*({NUMBER})\s*b\s*from\s*(-?{NUMBER})"
    rf"|(calc)\s*({NUMBER}))(?:\s*tag\s*(-?{NUMBER}))?(?:\s*cpu\s*({NUMBER}))?(?:\s*nic\s*({NUMBER}))?"
)
NEED = re.compile(rf"({LABEL})\s+(i?)requires\s+({LABEL})")
RANKS, OPENING = re.compile(rf"num_ranks\s*({NUMBER})"), re.compile(rf"rank\s*({NUMBER})\s*\{{")
COMMENT, OPEN_COMMENT = re.compile(r"/\*.*?\*/|//.*"), re.compile(r"/\*.*")
INSIDE = "LABEL: send Xb to R, LABEL: recv Xb from R, LABEL: calc T, LABEL requires LABEL or }"
BEGINNING = re.compile(rb"\s*(?:num_ranks\b|rank[ \t]*[0-9]|//|/\*)")


def is_goal(beginning: bytes) -> bool:
    return bool(BEGINNING.match(beginning.removeprefix(b"\xef\xbb\xbf")))


def read(path: AnyPath) -> Schedule:
    return schedule(tasks(path))


def tasks(path: AnyPath) -> Tasks:
    reader = _Reader(path)
    in_comment = False
    for number, line in read_lines(path, MAX_FILE, "GOAL", most=MOST_LINES):
        reader.line = number
        if "/" in line or in_comment:
            reader.look_for_unit(line)
            line, in_comment = _without_comments(line, in_comment)
        if text := line.strip():
            reader.take(text)
    return reader.tasks()


def _without_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    if in_comment:
        _, end, line = line.partition("*/")
        if not end:
            return "", True
    line = COMMENT.sub(" ", line)
    return OPEN_COMMENT.sub("", line), "/*" in line


class _Reader:
    """What has been read so far."""

    def __init__(self, path: AnyPath) -> None:
        self.path, self.line, self.unit = path, 0, ""
        self.ranks, self.rank = 0, -1  # -1: outside of every rank
        self.seen: set[int] = set()
        self.labels: dict[str, int] = {}  # of the rank
        self.later: list[tuple[str, str, str, int]] = []  # its needs whose labels are not all known yet
        self.rows = array("q")  # rank, kind, size, peer, tag, line
        self.needs = array("q")  # before, after, begun
        self.elsewhere = self.count = 0
        self.known: dict[str, tuple[int, ...]] = {}  # kind, size, peer and tag, by the text behind a label

    def error(self, text: str, line: int | None = None) -> UserError:
        return UserError(text, file=self.path, line=line or self.line)

    def look_for_unit(self, line: str) -> None:
        if match := UNIT.search(line):
            self.unit = match[1]

    def take(self, text: str) -> None:
        if self.rank < 0:
            self._outside(text)
        elif self._take_known(text):
            return
        elif match := TASK.fullmatch(text):
            self._task(match)
        elif match := NEED.fullmatch(text):
            self._need(match[1], match[2], match[3], self.line)
        elif text == "}":
            self._close()
        elif OPENING.fullmatch(text):
            raise self.error(f"found {shown(text)} inside rank {self.rank}, wanted }} first")
        else:
            raise self.error(f"found {shown(text)}, wanted {INSIDE}")

    def _take_known(self, text: str) -> bool:
        """Take a need between known labels, or a task like an earlier one: most lines are, and need no expression."""
        label, colon, rest = text.partition(":")
        if not colon:
            words = text.split(" ")
            if len(words) != 3 or words[1] not in ("requires", "irequires"):
                return False
            after, before = self.labels.get(words[0]), self.labels.get(words[2])
            if after is None or before is None:
                return False
            self.needs.extend((before, after, words[1] == "irequires"))
            return True
        known = self.known.get(rest)
        if known is None or label in self.labels or not (label.isascii() and label.isidentifier() and label[0] != "_"):
            return False
        self.rows.extend((self.rank, *known, self.line))
        self.labels[label] = self.count
        self.count += 1
        return True

    def tasks(self) -> Tasks:
        if self.rank >= 0:
            raise self.error(f"found the end of the file inside rank {self.rank}, wanted }}; is it cut?")
        if not self.ranks:
            raise self.error("found no num_ranks, wanted num_ranks N")
        if len(self.seen) < self.ranks:
            missing = next(rank for rank in range(self.ranks) if rank not in self.seen)
            raise self.error(f"found no rank {missing}, wanted all of {self.ranks}; is the file cut?")
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 6)
        needs = np.array(self.needs, dtype=np.int64).reshape(-1, 3)
        order = np.argsort(rows[:, 0], kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        rank, kind, size, peer, tag, line = rows[order].T
        columns = rank, kind, size, peer, tag, Needs(place[needs[:, 0]], place[needs[:, 1]], needs[:, 2].astype(bool))
        said = UNITS[self.unit or "ns"], bool(self.unit)
        return Tasks(self.path, self.ranks, *columns, line, *said, self.elsewhere)

    def _outside(self, text: str) -> None:
        if match := OPENING.fullmatch(text):
            rank = int(match[1])
            if not rank < self.ranks:
                wanted = f"0 to {self.ranks - 1}" if self.ranks else "num_ranks N before it"
                raise self.error(f"found rank {rank}, wanted {wanted}")
            if rank in self.seen:
                raise self.error(f"found rank {rank} twice, wanted it once")
            self.rank = rank
            self.seen.add(rank)
        elif not self.ranks and (match := RANKS.fullmatch(text)):
            self.ranks = int(match[1])
            if not 1 <= self.ranks <= MAX_COUNT:
                raise self.error(f"found {self.ranks} ranks, wanted 1 to {MAX_COUNT}")
        else:
            raise self.error(f"found {shown(text)}, wanted {'rank R {' if self.ranks else 'num_ranks N'}")

    def _task(self, match: re.Match) -> None:
        label, send, to_send, to, receive, to_receive, source, _, time, tag, cpu, nic = match.groups()
        kind = SEND if send else RECEIVE if receive else CALCULATE
        if kind == CALCULATE and tag:
            raise self.error("found a calc with a tag, wanted none")
        task = kind, int(to_send or to_receive or time), _name(to or source or "0"), self._tag(tag or "0")
        self.rows.extend((self.rank, *task, self.line))
        elsewhere = int(cpu or 0) > 0 or int(nic or 0) > 0
        self.elsewhere += elsewhere
        if label and not elsewhere:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[match.string.partition(":")[2]] = task
        if label:
            if label in self.labels:
                raise self.error(f"found label {label} twice in rank {self.rank}, wanted it once")
            self.labels[label] = self.count
        self.count += 1

    def _tag(self, text: str) -> int:
        tag = _name(text)
        if tag > ANY:
            raise self.error(f"found tag {text}, wanted 0 to {ANY - 1}")
        return tag

    def _need(self, after: str, begun: str, before: str, line: int, last: bool = False) -> None:
        if after in self.labels and before in self.labels:
            self.needs.extend((self.labels[before], self.labels[after], begun == "i"))
        elif last:
            unknown = after if after not in self.labels else before
            raise self.error(f"found label {shown(unknown)}, which rank {self.rank} does not have", line)
        else:
            self.later.append((after, begun, before, line))

    def _close(self) -> None:
        for need in self.later:
            self._need(*need, last=True)
        self.labels, self.later, self.rank = {}, [], -1


def _name(text: str) -> int:
    """Of a rank or a tag; all that is negative means any."""
    return ANY if text.startswith("-") else int(text)
