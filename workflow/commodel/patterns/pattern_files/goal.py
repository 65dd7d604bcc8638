"""Reader of GOAL as text (`read_tasks`), the schedule language of schedgen and LogGOPSim.

It accepts everything that txt2bin accepts, and also blanks, comments, and ranks in any order.

    num_ranks 2
    rank 0 {
    l1: calc 500
    l2: send 8b to 1 tag 3
    l2 requires l1
    }
    rank 1 {
    l1: recv 8b from 0 tag 3
    }

A message has the bytes of its send, as in the simulator. One unit of calc is 1 ns, unless a comment
says `one unit of calc is 1 ps`, as in files of `commodel export goal`. `cpu` and `nic` are read,
but a rank has one of each.
"""

import io
import re
from array import array
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, decode_line, read_blocks
from commodel.patterns.pattern_files.tasks import ANY, CALCULATE, RECEIVE, SEND, Dependencies, Tasks
from commodel.patterns.schedule import MAX_INTEGER
from commodel.units import MAX_COUNT, show_value

MAX_FILE = 1024 * MIB
MAX_LINES = 64 << 20  # of a file
# task texts whose parsed values are cached, since most lines repeat an earlier one
MAX_CACHED_TASKS = 4096
UNIT_COMMENT = re.compile(r"//\s*one unit of calc is 1 (ns|ps)")
UNITS_PER_SECOND = {"ns": 1e9, "ps": 1e12}  # units of calc in a second
LABEL = r"[A-Za-z][A-Za-z0-9_]*"
NUMBER = "[0-9]{1,19}"
TASK_LINE = re.compile(
    rf"(?:({LABEL})\s*:\s*)?(?:(send)\s*({NUMBER})\s*b\s*to\s*(-?{NUMBER})|(recv)\s*({NUMBER})\s*b\s*from\s*(-?{NUMBER})"
    rf"|(calc)\s*({NUMBER}))(?:\s*tag\s*(-?{NUMBER}))?(?:\s*cpu\s*({NUMBER}))?(?:\s*nic\s*({NUMBER}))?"
)
DEPENDENCY_LINE = re.compile(rf"({LABEL})\s+(i?)requires\s+({LABEL})")
RANKS_LINE = re.compile(rf"num_ranks\s*({NUMBER})")
RANK_OPENING = re.compile(rf"rank\s*({NUMBER})\s*\{{")
COMMENT = re.compile(r"/\*.*?\*/|//.*")
OPEN_COMMENT = re.compile(r"/\*.*")
# Blocks of complete ranks are parsed with NumPy if their lines have few forms, and differ only in
# their numbers.
MAX_FORMS = 64  # forms of lines in a block; a form is a line with 0 in place of each number
MAX_DIGITS = 10  # digits of a number in such a block
# ranks of such a block; different prefixes of labels such as l17
MAX_BLOCK_RANKS = 1 << 20
MAX_PREFIXES = 64
# upper bound of label codes, which are number × MAX_PREFIXES + index of the prefix
LABEL_CODES = 1 << 40
LINES_IN_RANK = (
    "LABEL: send Xb to R, LABEL: recv Xb from R, LABEL: calc T, LABEL requires LABEL or }"
)
GOAL_BEGINNING = re.compile(rb"\s*(?:num_ranks\b|rank[ \t]*[0-9]|//|/\*)")


def is_goal(beginning: bytes) -> bool:
    return bool(GOAL_BEGINNING.match(beginning.removeprefix(b"\xef\xbb\xbf")))


def read_tasks(path: AnyPath) -> Tasks:
    reader = _Reader(path)
    for first, block in read_blocks(path, MAX_FILE, "GOAL", end=b"}\n", max_lines=MAX_LINES):
        head = 0 if reader.ranks else block.find(b"\nrank ") + 1
        reader.read_block_by_line(block[:head], first)
        first += block.count(b"\n", 0, head)
        if not reader.read_block(block[head:], first):
            reader.read_block_by_line(block[head:], first)
    return reader.tasks()


def _strip_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    if in_comment:
        _, end, line = line.partition("*/")
        if not end:
            return "", True
    line = COMMENT.sub(" ", line)
    return OPEN_COMMENT.sub("", line), "/*" in line


class _Reader:
    """The state of reading a file: the columns of all tasks read so far."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.line = 0
        self.unit = ""
        self.in_comment = False
        self.ranks = 0
        self.rank = -1  # -1: outside of every rank
        self.ranks_read: set[int] = set()
        self.labels: dict[str, int] = {}  # of the rank
        # dependencies of the rank on labels that follow later
        self.pending: list[tuple[str, str, str, int]] = []
        self.rows = array("q")  # rank, kind, size, peer, tag, line
        self.dependencies = array("q")  # before, after, on_start (0 or 1)
        self.other_units = self.count = 0
        # kind, size, peer and tag of tasks, by the text after the label
        self.cached: dict[str, tuple[int, ...]] = {}

    def error(self, text: str, line: int | None = None) -> UserError:
        return UserError(text, file=self.path, line=line or self.line)

    def read_block(self, block: bytes, first_line: int) -> bool:
        """Read a block of complete ranks with NumPy. If a line is unusual or wrong, read nothing
        and return False."""
        if self.rank >= 0 or not self.ranks or self.in_comment:
            return False
        ranks = _read_rank_block(block)
        if ranks is None:
            return False
        opened_ranks = set(ranks.opened.tolist())
        if (
            len(opened_ranks) < len(ranks.opened)
            or max(opened_ranks) >= self.ranks
            or opened_ranks & self.ranks_read
        ):
            return False
        self.ranks_read |= opened_ranks
        ranks.rows[:, 5] += first_line
        ranks.dependencies[:, :2] += self.count
        self.rows.frombytes(ranks.rows.tobytes())
        self.dependencies.frombytes(ranks.dependencies.tobytes())
        self.count += len(ranks.rows)
        self.other_units += ranks.other_units
        self.line = first_line + ranks.lines - 1
        return True

    def read_block_by_line(self, block: bytes, first_line: int) -> None:
        for number, raw in enumerate(io.BytesIO(block), first_line):
            self.line = number
            line = decode_line(raw, self.path, number)
            if "/" in line or self.in_comment:
                unit_comment = UNIT_COMMENT.search(line)
                if unit_comment:
                    self.unit = unit_comment[1]
                line, self.in_comment = _strip_comments(line, self.in_comment)
            text = line.strip()
            if text:
                self.read_line(text)

    def read_line(self, text: str) -> None:
        if self.rank < 0:
            self._read_line_outside(text)
            return
        if self._read_cached(text):
            return
        task = TASK_LINE.fullmatch(text)
        if task:
            self._read_task(task)
            return
        dependency = DEPENDENCY_LINE.fullmatch(text)
        if dependency:
            after, prefix, before = dependency.groups()
            self._add_dependency(after, prefix, before, self.line)
        elif text == "}":
            self._close_rank()
        elif RANK_OPENING.fullmatch(text):
            raise self.error(f"found {show_value(text)} inside rank {self.rank}, wanted }} first")
        else:
            raise self.error(f"found {show_value(text)}, wanted {LINES_IN_RANK}")

    def _read_cached(self, text: str) -> bool:
        """Read a line without regular expressions, which is faster: a dependency between defined
        labels, or a cached task. Return False for any other line."""
        label, colon, statement = text.partition(":")
        if not colon:
            words = text.split(" ")
            if len(words) != 3 or words[1] not in ("requires", "irequires"):
                return False
            after = self.labels.get(words[0])
            before = self.labels.get(words[2])
            if after is None or before is None:
                return False
            self.dependencies.extend((before, after, words[1] == "irequires"))
            return True
        cached = self.cached.get(statement)
        if (
            cached is None
            or label in self.labels
            or not (label.isascii() and label.isidentifier() and label[0] != "_")
        ):
            return False
        self.rows.extend((self.rank, *cached, self.line))
        self.labels[label] = self.count
        self.count += 1
        return True

    def tasks(self) -> Tasks:
        if self.rank >= 0:
            raise self.error(
                f"found the end of the file inside rank {self.rank}, wanted }}; is it cut?"
            )
        if not self.ranks:
            raise self.error("found no num_ranks, wanted num_ranks N")
        if len(self.ranks_read) < self.ranks:
            missing = next(rank for rank in range(self.ranks) if rank not in self.ranks_read)
            raise self.error(
                f"found no rank {missing}, wanted all of {self.ranks}; is the file cut?"
            )
        rows = np.frombuffer(self.rows, dtype=np.int64).reshape(-1, 6)
        dependencies = np.frombuffer(self.dependencies, dtype=np.int64).reshape(-1, 3)
        before, after, on_start = dependencies.T
        if (np.diff(rows[:, 0]) < 0).any():
            order = np.argsort(rows[:, 0], kind="stable")
            new_number = np.empty(len(order), dtype=np.int64)
            new_number[order] = np.arange(len(order))
            rows = rows[order]
            before = new_number[before]
            after = new_number[after]
        rank, kind, size, peer, tag, line = np.ascontiguousarray(rows.T)
        columns = rank, kind, size, peer, tag, Dependencies(before, after, on_start.astype(bool))
        unit = UNITS_PER_SECOND[self.unit or "ns"], bool(self.unit)
        return Tasks(self.path, self.ranks, *columns, line, *unit, self.other_units)

    def _read_line_outside(self, text: str) -> None:
        opening = RANK_OPENING.fullmatch(text)
        ranks_line = RANKS_LINE.fullmatch(text)
        if opening:
            rank = int(opening[1])
            if not rank < self.ranks:
                wanted = f"0 to {self.ranks - 1}" if self.ranks else "num_ranks N before it"
                raise self.error(f"found rank {rank}, wanted {wanted}")
            if rank in self.ranks_read:
                raise self.error(f"found rank {rank} twice, wanted it once")
            self.rank = rank
            self.ranks_read.add(rank)
        elif ranks_line and not self.ranks:
            self.ranks = int(ranks_line[1])
            if not 1 <= self.ranks <= MAX_COUNT:
                raise self.error(f"found {self.ranks} ranks, wanted 1 to {MAX_COUNT}")
        else:
            raise self.error(
                f"found {show_value(text)}, wanted {'rank R {' if self.ranks else 'num_ranks N'}"
            )

    def _read_task(self, match: re.Match) -> None:
        label, send, to_send, to, receive, to_receive, source, _, time, tag, cpu, nic = (
            match.groups()
        )
        kind = SEND if send else RECEIVE if receive else CALCULATE
        if kind == CALCULATE and tag:
            raise self.error("found a calc with a tag, wanted none")
        size = int(to_send or to_receive or time)
        peer = _read_number_or_any(to or source or "0")
        if max(size, peer) > MAX_INTEGER:
            raise self.error(f"found {max(size, peer)}, wanted at most {MAX_INTEGER}")
        task = kind, size, peer, self._read_tag(tag or "0")
        self.rows.extend((self.rank, *task, self.line))
        on_other_unit = int(cpu or 0) > 0 or int(nic or 0) > 0
        self.other_units += on_other_unit
        if label and not on_other_unit:
            if len(self.cached) >= MAX_CACHED_TASKS:
                self.cached.clear()
            self.cached[match.string.partition(":")[2]] = task
        if label:
            if label in self.labels:
                raise self.error(f"found label {label} twice in rank {self.rank}, wanted it once")
            self.labels[label] = self.count
        self.count += 1

    def _read_tag(self, text: str) -> int:
        tag = _read_number_or_any(text)
        if tag > ANY:
            raise self.error(f"found tag {text}, wanted 0 to {ANY - 1}")
        return tag

    def _add_dependency(
        self, after: str, prefix: str, before: str, line: int, last: bool = False
    ) -> None:
        if after in self.labels and before in self.labels:
            self.dependencies.extend((self.labels[before], self.labels[after], prefix == "i"))
        elif last:
            unknown = after if after not in self.labels else before
            raise self.error(
                f"found label {show_value(unknown)}, which rank {self.rank} does not have", line
            )
        else:
            self.pending.append((after, prefix, before, line))

    def _close_rank(self) -> None:
        for need in self.pending:
            self._add_dependency(*need, last=True)
        self.labels = {}
        self.pending = []
        self.rank = -1


@dataclass(frozen=True, eq=False)
class _RankBlock:
    """The columns of a block of complete ranks. Lines and tasks are numbered from the first of the
    block."""

    opened: np.ndarray  # numbers of the ranks
    rows: np.ndarray  # (tasks, 6) rank, kind, size, peer, tag, line
    dependencies: np.ndarray  # (dependencies, 3) before, after, on_start
    other_units: int
    lines: int


def _read_rank_block(block: bytes) -> _RankBlock | None:
    """Return the columns of a block, reading all lines of one form together.

    Return None if a line has an unusual form, or anything in the block is wrong.
    """
    lines = _split_lines(block)
    if lines is None:
        return None
    forms = lines.group_by_form()
    if forms is None:
        return None
    count = len(lines.length)
    opens = np.zeros(count, dtype=bool)
    closes = np.zeros(count, dtype=bool)
    tasks: list[np.ndarray] = []
    dependencies: list[np.ndarray] = []
    prefixes: dict[str, int] = {}
    other_units = 0
    for text, line_numbers in forms:
        count_of_form = len(line_numbers)
        task = TASK_LINE.fullmatch(text)
        dependency = DEPENDENCY_LINE.fullmatch(text)
        if RANK_OPENING.fullmatch(text):
            opens[line_numbers] = True
        elif text == "}":
            closes[line_numbers] = True
        elif task:
            # any rank or tag; a calc with a tag, which is wrong
            if "-" in text or (task[8] and task[10]):
                return None
            kind = SEND if task[2] else RECEIVE if task[5] else CALCULATE
            size, peer = {SEND: (3, 4), RECEIVE: (6, 7), CALCULATE: (9, 0)}[kind]
            columns = [
                lines.numbers(line_numbers, task, group) for group in (size, peer, 10, 11, 12)
            ]
            label = (
                lines.labels(line_numbers, task, 1, prefixes)
                if task[1]
                else np.full(count_of_form, -1)
            )
            if label is None or (columns[2] > ANY).any():
                return None
            other_units += int(((columns[3] > 0) | (columns[4] > 0)).sum())
            kinds = np.full(count_of_form, kind)
            tasks.append(np.stack([line_numbers, kinds, *columns[:3], label], axis=1))
        elif dependency:
            before = lines.labels(line_numbers, dependency, 3, prefixes)
            after = lines.labels(line_numbers, dependency, 1, prefixes)
            if before is None or after is None:
                return None
            on_start = np.full(count_of_form, dependency[2] == "i")
            dependencies.append(np.stack([line_numbers, before, after, on_start], axis=1))
        elif text:
            return None
    return _join_lines(lines, opens, closes, tasks, dependencies, other_units)


def _join_lines(
    lines: "_Lines",
    opens: np.ndarray,
    closes: np.ndarray,
    tasks: list[np.ndarray],
    dependencies: list[np.ndarray],
    other_units: int,
) -> _RankBlock | None:
    """Put the lines of all forms into the order of the text, and resolve the labels of tasks."""
    start, stop = np.flatnonzero(opens), np.flatnonzero(closes)
    if not tasks or not 0 < len(start) == len(stop) < MAX_BLOCK_RANKS:
        return None
    if (stop < start).any() or (start[1:] < stop[:-1]).any():
        return None
    opened = lines.value[lines.first_number[start]]
    task = np.concatenate(tasks)
    need = np.concatenate(dependencies or [np.zeros((0, 4), dtype=np.int64)])
    task = task[np.argsort(task[:, 0])]
    need = need[np.argsort(need[:, 0])]
    block, block_of_need = (np.searchsorted(start, rows[:, 0]) - 1 for rows in (task, need))
    for block_of_row, line in ((block, task[:, 0]), (block_of_need, need[:, 0])):
        if (block_of_row < 0).any() or (line > stop[block_of_row]).any():
            return None
    labelled = np.flatnonzero(task[:, 5] >= 0)
    codes = block[labelled] * LABEL_CODES + task[labelled, 5]
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    if (codes[1:] == codes[:-1]).any():
        return None
    required = block_of_need[:, None] * LABEL_CODES + need[:, 1:3]
    slot = np.searchsorted(codes, required)
    if len(required) and (slot.max() == len(codes) or (codes[slot] != required).any()):
        return None
    rows = np.column_stack([opened[block], task[:, 1:5], task[:, 0]])
    resolved = np.column_stack([labelled[order[slot]], need[:, 3]])
    return _RankBlock(
        opened=opened,
        rows=rows,
        dependencies=resolved,
        other_units=other_units,
        lines=len(lines.length),
    )


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a text with 0 in place of each number (forms), and the numbers."""

    text: np.ndarray  # bytes
    begin: np.ndarray  # index in `text` of each line's first byte
    length: np.ndarray
    value: np.ndarray  # of each number
    has_leading_zero: np.ndarray  # whether a number has a leading zero, as 007; false for 0 itself
    first_number: np.ndarray  # index in `value` of each line's first number

    def group_by_form(self) -> list[tuple[str, np.ndarray]] | None:
        """Return each form without the blanks around it, and its line numbers; None if there are
        too many forms."""
        forms: list[tuple[str, np.ndarray]] = []
        for length in np.unique(self.length):
            remaining = np.flatnonzero(self.length == length)
            rows = self.text[self.begin[remaining][:, None] + np.arange(length)]
            while len(remaining):
                if len(forms) == MAX_FORMS:
                    return None
                same = (rows == rows[0]).all(axis=1)
                forms.append((rows[0].tobytes().decode("ascii").strip(), remaining[same]))
                remaining = remaining[~same]
                rows = rows[~same]
        return forms

    def numbers(self, lines: np.ndarray, match: re.Match, group: int) -> np.ndarray:
        """Return each line's number in a group of the form's match; 0 if the form does not have the
        group."""
        if not group or match[group] is None:
            return np.zeros(len(lines), dtype=np.int64)
        return self.value[self._find_numbers(lines, match, group)]

    def _find_numbers(self, lines: np.ndarray, match: re.Match, group: int) -> np.ndarray:
        """Return the index in `value` of each line's first number in a group of the form's
        match."""
        return self.first_number[lines] + match.string.count("0", 0, match.start(group))

    def labels(
        self, lines: np.ndarray, match: re.Match, group: int, prefixes: dict[str, int]
    ) -> np.ndarray | None:
        """Return an integer code of each line's label, which has to be a prefix and a number; else
        None."""
        prefix = prefixes.setdefault(match[group][:-1], len(prefixes))
        if match[group].find("0") != len(match[group]) - 1 or prefix >= MAX_PREFIXES:
            return None
        numbers = self._find_numbers(lines, match, group)
        if self.has_leading_zero[numbers].any():
            return None
        return self.value[numbers] * MAX_PREFIXES + prefix


def _split_lines(block: bytes) -> _Lines | None:
    """Return the lines of a text; None if it has unusual characters, a comment, or large
    numbers."""
    if not block.endswith(b"\n") or b"/" in block or b"\0" in block or not block.isascii():
        return None
    text = np.frombuffer(block, dtype=np.uint8)
    digit = np.zeros(len(text) + 2, dtype=bool)
    np.less(text - np.uint8(ord("0")), 10, out=digit[1:-1])
    edges = np.flatnonzero(digit[1:] != digit[:-1])
    begin = edges[::2]
    digits = edges[1::2] - edges[::2]
    if digits.max(initial=0) > MAX_DIGITS:
        return None
    value = (text[begin] - np.uint8(ord("0"))).astype(np.int64)
    has_leading_zero = (digits > 1) & (value == 0)
    for position in range(1, int(digits.max(initial=0))):
        long_enough = np.flatnonzero(digits > position)
        value[long_enough] = 10 * value[long_enough] + (
            text[begin[long_enough] + position] - ord("0")
        )
    keep = ~digit[1:-1]
    keep[begin] = True
    form_text = text[keep]
    form_text[(form_text > ord("0")) & (form_text <= ord("9"))] = ord("0")
    ends = np.flatnonzero(form_text == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    number = np.searchsorted(np.flatnonzero(form_text == ord("0")), starts)
    return _Lines(
        text=form_text,
        begin=starts,
        length=ends - starts,
        value=value,
        has_leading_zero=has_leading_zero,
        first_number=number,
    )


def _read_number_or_any(text: str) -> int:
    """Return a rank or a tag from its text; a negative number means any."""
    return ANY if text.startswith("-") else int(text)
