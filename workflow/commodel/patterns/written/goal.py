"""Reads GOAL as text (`tasks`), the language of schedules of schedgen and LogGOPSim.

All that txt2bin accepts is read, and blanks, comments and ranks in any order.

    num_ranks 2
    rank 0 {
    l1: calc 500
    l2: send 8b to 1 tag 3
    l2 requires l1
    }
    rank 1 {
    l1: recv 8b from 0 tag 3
    }

A message has the bytes of its send, as in the simulator. One unit of calc is 1 ns, unless a comment says `one unit of
calc is 1 ps`, as in files of `commodel export goal`. `cpu` and `nic` are read, but a rank has one of each.
"""

import io
import re
from array import array
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, decode_line, read_blocks
from commodel.patterns.schedule import Schedule
from commodel.patterns.written.tasks import ANY, CALCULATE, RECEIVE, SEND, Needs, Tasks, schedule
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
MOST_FORMS = 64  # of lines in a block that is read at once
MOST_DIGITS = 10  # of a number there
MOST_RANKS_AT_ONCE, MOST_PREFIXES = 1 << 20, 64
LABELS = 1 << 40  # codes of labels in a rank: numbers of MOST_DIGITS digits times prefixes
INSIDE = "LABEL: send Xb to R, LABEL: recv Xb from R, LABEL: calc T, LABEL requires LABEL or }"
BEGINNING = re.compile(rb"\s*(?:num_ranks\b|rank[ \t]*[0-9]|//|/\*)")


def is_goal(beginning: bytes) -> bool:
    return bool(BEGINNING.match(beginning.removeprefix(b"\xef\xbb\xbf")))


def read(path: AnyPath) -> Schedule:
    return schedule(tasks(path))


def tasks(path: AnyPath) -> Tasks:
    reader = _Reader(path)
    for first, block in read_blocks(path, MAX_FILE, "GOAL", end=b"}\n", most=MOST_LINES):
        head = 0 if reader.ranks else block.find(b"\nrank ") + 1
        reader.take_lines(block[:head], first)
        first += block.count(b"\n", 0, head)
        if not reader.take_block(block[head:], first):
            reader.take_lines(block[head:], first)
    return reader.tasks()


def _without_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    if in_comment:
        _, end, line = line.partition("*/")
        if not end:
            return "", True
    line = COMMENT.sub(" ", line)
    return OPEN_COMMENT.sub("", line), "/*" in line


class _Reader:
    """The state of the reader."""

    def __init__(self, path: AnyPath) -> None:
        self.path, self.line, self.unit, self.in_comment = path, 0, "", False
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

    def take_block(self, block: bytes, first: int) -> bool:
        """Take whole ranks at once. If anything in the block is unusual or wrong, take nothing and return False."""
        if self.rank >= 0 or not self.ranks or self.in_comment:
            return False
        ranks = _read_ranks(block)
        if ranks is None:
            return False
        seen = set(ranks.opened.tolist())
        if len(seen) < len(ranks.opened) or max(seen) >= self.ranks or seen & self.seen:
            return False
        self.seen |= seen
        ranks.rows[:, 5] += first
        ranks.needs[:, :2] += self.count
        self.rows.frombytes(ranks.rows.tobytes())
        self.needs.frombytes(ranks.needs.tobytes())
        self.count += len(ranks.rows)
        self.elsewhere += ranks.elsewhere
        self.line = first + ranks.lines - 1
        return True

    def take_lines(self, block: bytes, first: int) -> None:
        for number, raw in enumerate(io.BytesIO(block), first):
            self.line, line = number, decode_line(raw, self.path, number)
            if "/" in line or self.in_comment:
                self.look_for_unit(line)
                line, self.in_comment = _without_comments(line, self.in_comment)
            if text := line.strip():
                self.take(text)

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
        rows = np.frombuffer(self.rows, dtype=np.int64).reshape(-1, 6)
        needs = np.frombuffer(self.needs, dtype=np.int64).reshape(-1, 3)
        before, after, begun = needs.T
        if (np.diff(rows[:, 0]) < 0).any():
            order = np.argsort(rows[:, 0], kind="stable")
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            rows, before, after = rows[order], place[before], place[after]
        rank, kind, size, peer, tag, line = np.ascontiguousarray(rows.T)
        columns = rank, kind, size, peer, tag, Needs(before, after, begun.astype(bool))
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


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Whole ranks of a block of text. Lines count from its first, tasks from its first task."""

    opened: np.ndarray  # numbers of the ranks
    rows: np.ndarray  # (tasks, 6) rank, kind, size, peer, tag, line
    needs: np.ndarray  # (needs, 3) before, after, begun
    elsewhere: int
    lines: int


def _read_ranks(block: bytes) -> _Ranks | None:
    """Return a block whose lines differ in their numbers only, as those of programs, reading lines of one form
    together.

    None if a line has an unusual form, or anything in the block is wrong.
    """
    if (lines := _split_lines(block)) is None or (forms := lines.group_by_form()) is None:
        return None
    count = len(lines.length)
    opens, closes = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    tasks, needs, prefixes, elsewhere = [], [], {}, 0
    for text, own in forms:
        if OPENING.fullmatch(text):
            opens[own] = True
        elif text == "}":
            closes[own] = True
        elif match := TASK.fullmatch(text):
            if "-" in text or (match[8] and match[10]):  # any rank or tag; a calc with a tag, which is wrong
                return None
            kind = SEND if match[2] else RECEIVE if match[5] else CALCULATE
            size, peer = {SEND: (3, 4), RECEIVE: (6, 7), CALCULATE: (9, 0)}[kind]
            columns = [lines.numbers(own, match, group) for group in (size, peer, 10, 11, 12)]
            label = lines.labels(own, match, 1, prefixes) if match[1] else np.full(len(own), -1)
            if label is None or (columns[2] > ANY).any():
                return None
            elsewhere += int(((columns[3] > 0) | (columns[4] > 0)).sum())
            tasks.append(np.stack([own, np.full(len(own), kind), *columns[:3], label], axis=1))
        elif match := NEED.fullmatch(text):
            ends = [lines.labels(own, match, group, prefixes) for group in (3, 1)]
            if ends[0] is None or ends[1] is None:
                return None
            needs.append(np.stack([own, *ends, np.full(len(own), match[2] == "i")], axis=1))
        elif text:
            return None
    return _join_ranks(lines, opens, closes, tasks, needs, elsewhere)


def _join_ranks(
    lines: "_Lines", opens: np.ndarray, closes: np.ndarray, tasks: list, needs: list, elsewhere: int
) -> _Ranks | None:
    """Put the lines of all forms into the order of the text, and resolve the labels of tasks."""
    start, stop = np.flatnonzero(opens), np.flatnonzero(closes)
    if not tasks or not 0 < len(start) == len(stop) < MOST_RANKS_AT_ONCE:
        return None
    if (stop < start).any() or (start[1:] < stop[:-1]).any():
        return None
    opened = lines.value[lines.number[start]]
    task, need = np.concatenate(tasks), np.concatenate(needs or [np.zeros((0, 4), dtype=np.int64)])
    task, need = task[np.argsort(task[:, 0])], need[np.argsort(need[:, 0])]
    block, block_of_need = (np.searchsorted(start, rows[:, 0]) - 1 for rows in (task, need))
    for own, line in ((block, task[:, 0]), (block_of_need, need[:, 0])):
        if (own < 0).any() or (line > stop[own]).any():
            return None
    labelled = np.flatnonzero(task[:, 5] >= 0)
    codes = block[labelled] * LABELS + task[labelled, 5]
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    if (codes[1:] == codes[:-1]).any():
        return None
    wanted = block_of_need[:, None] * LABELS + need[:, 1:3]
    place = np.searchsorted(codes, wanted)
    if len(wanted) and (place.max() == len(codes) or (codes[place] != wanted).any()):
        return None
    rows = np.column_stack([opened[block], task[:, 1:5], task[:, 0]])
    needs = np.column_stack([labelled[order[place]], need[:, 3]])
    return _Ranks(opened, rows, needs, elsewhere, len(lines.length))


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a text in which every number is replaced by 0, and the numbers."""

    text: np.ndarray  # bytes
    begin: np.ndarray  # of each line
    length: np.ndarray
    value: np.ndarray  # of each number
    leading_zero: np.ndarray  # whether a number begins with one that is not all of it
    number: np.ndarray  # of each line's first number

    def group_by_form(self) -> list[tuple[str, np.ndarray]] | None:
        """Return each form without the blanks around it, and which lines have it."""
        forms = []
        for length in np.unique(self.length):
            left = np.flatnonzero(self.length == length)
            rows = self.text[self.begin[left][:, None] + np.arange(length)]
            while len(left):
                if len(forms) == MOST_FORMS:
                    return None
                same = (rows == rows[0]).all(axis=1)
                forms.append((rows[0].tobytes().decode("ascii").strip(), left[same]))
                left, rows = left[~same], rows[~same]
        return forms

    def numbers(self, own: np.ndarray, match: re.Match, group: int) -> np.ndarray:
        """Return the numbers of a group of the form; 0 where the form has none."""
        if not group or match[group] is None:
            return np.zeros(len(own), dtype=np.int64)
        return self.value[self.number[own] + match.string.count("0", 0, match.start(group))]

    def labels(self, own: np.ndarray, match: re.Match, group: int, prefixes: dict[str, int]) -> np.ndarray | None:
        """Return a code of each label, which has to be a prefix and a number."""
        prefix = prefixes.setdefault(match[group][:-1], len(prefixes))
        if match[group].find("0") != len(match[group]) - 1 or prefix >= MOST_PREFIXES:
            return None
        which = self.number[own] + match.string.count("0", 0, match.start(group))
        if self.leading_zero[which].any():
            return None
        return self.value[which] * MOST_PREFIXES + prefix


def _split_lines(block: bytes) -> _Lines | None:
    """Return the lines of a text; None if it has unusual characters, a comment, or large numbers."""
    if not block.endswith(b"\n") or b"/" in block or b"\0" in block or not block.isascii():
        return None
    text = np.frombuffer(block, dtype=np.uint8)
    digit = np.zeros(len(text) + 2, dtype=bool)
    np.less(text - np.uint8(ord("0")), 10, out=digit[1:-1])
    edges = np.flatnonzero(digit[1:] != digit[:-1])
    begin, digits = edges[::2], edges[1::2] - edges[::2]
    if digits.max(initial=0) > MOST_DIGITS:
        return None
    value = (text[begin] - np.uint8(ord("0"))).astype(np.int64)
    leading_zero = (digits > 1) & (value == 0)
    for place in range(1, int(digits.max(initial=0))):
        has = np.flatnonzero(digits > place)
        value[has] = 10 * value[has] + (text[begin[has] + place] - ord("0"))
    keep = ~digit[1:-1]
    keep[begin] = True
    short = text[keep]
    short[(short > ord("0")) & (short <= ord("9"))] = ord("0")
    ends = np.flatnonzero(short == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    number = np.searchsorted(np.flatnonzero(short == ord("0")), starts)
    return _Lines(short, starts, ends - starts, value, leading_zero, number)


def _name(text: str) -> int:
    """Return a rank or a tag as text; negative means any."""
    return ANY if text.startswith("-") else int(text)
