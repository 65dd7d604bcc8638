"""YAML files as plain data, with the line of every key (`read_yaml`, `parse_yaml`).

Values are str, int, float, bool, None, list and dict, built directly from the parser's events, so
no tag can construct anything else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from commodel.errors import UserError, make_printable
from commodel.files.safe_paths import SafePath
from commodel.files.safe_reading import decode_text, read_bytes

MAX_FILE_BYTES = 1 << 20
MAX_NODES = 200_000
MAX_DEPTH = 50
ZIP = b"PK\x03\x04"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Content = yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent

# YAML 1.1 reads `no` as false, 6:30 as 390, 010 as 8 and a date as a date. Here all of these are
# texts.
_INT = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The data of a file, and the line of each entry."""

    file: Path | SafePath
    data: object
    lines: dict[KeyPath, int] = field(repr=False)  # empty if lines are unknown

    def line(self, path: KeyPath) -> int | None:
        """Return the line of the entry at `path`, or of its nearest ancestor in the file."""
        path = tuple(path)
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1) if self.lines else None

    def has(self, path: KeyPath) -> bool:
        value: Any = self.data
        for part in path:
            inside = (
                part in value
                if isinstance(value, dict)
                else isinstance(value, list) and part in range(len(value))
            )
            if not inside:
                return False
            value = value[part]
        return True

    def error(self, path: KeyPath, message: str) -> UserError:
        return UserError(message, file=self.file, line=self.line(path), key=key_name(path))


@dataclass(frozen=True)
class _Node:
    value: object
    size: int  # nodes in it, with aliases counted as often as they are used
    height: int


def key_name(path: KeyPath) -> str:
    """Return a path as text, such as matrix[0].axes.bytes."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(
        "."
    )


def read_yaml(file: str | Path | SafePath, max_bytes: int = MAX_FILE_BYTES) -> Document:
    content = read_bytes(file, max_bytes, "a smaller YAML file")
    if content.startswith(ZIP):
        raise UserError(
            "found a workbook (.xlsx) or another zip file, wanted a YAML file", file=file
        )
    return parse_yaml(decode_text(content, file), file)


def parse_yaml(text: str, file: str | Path | SafePath) -> Document:
    """Return the document of a YAML text; `file` is its name in messages."""
    file = Path(file) if isinstance(file, str) else file
    reader = _Reader(file, yaml.parse(text, Loader=Loader))
    try:
        return Document(file, reader.document(), reader.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark and _is_indented_by_tab(text, mark.line):
            message = "found a tab, which YAML does not take for indentation; wanted blanks"
            raise UserError(message, file=file, line=mark.line + 1) from None
        raise UserError(
            f"not YAML: {error.problem or error.context}",
            file=file,
            line=mark.line + 1 if mark else None,
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
        raise UserError(f"not YAML: {error.reason}", file=file, line=line) from None


def _is_indented_by_tab(text: str, number: int) -> bool:
    line = next(islice(text.splitlines(), number, None), "")
    return "\t" in line[: len(line) - len(line.lstrip())]


def _find_line(event: yaml.Event) -> int:
    """Return the number of the line on which an event starts; the parser knows it for every event
    of a text."""
    return event.start_mark.line + 1 if event.start_mark else 1


class _Reader:
    """A single pass over the events of a document, with its lines, anchors and the count of its
    nodes."""

    def __init__(self, file: Path | SafePath, events: Iterator[yaml.Event]) -> None:
        self.file = file
        self.events = events
        self.lines: dict[KeyPath, int] = {}
        self.anchors: dict[str, _Node] = {}
        self.count = 0

    def document(self) -> object:
        next(self.events)  # the start of the stream
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            raise UserError("empty file", file=self.file)
        if getattr(start, "tags", None):
            raise self.refuse(start, "found a %TAG directive, wanted plain YAML")
        node = self.node(next(self.events), ())
        next(self.events)  # the end of the document
        second = next(self.events)
        if not isinstance(second, yaml.StreamEndEvent):
            raise self.refuse(second, "found a second document, wanted one")
        if node.value is None:
            raise UserError("empty file", file=self.file)
        return node.value

    def refuse(self, event: yaml.Event, message: str) -> UserError:
        return UserError(message, file=self.file, line=_find_line(event))

    def node(self, event: yaml.Event, path: KeyPath) -> _Node:
        self.lines.setdefault(path, _find_line(event))
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:  # also an anchor that contains itself
                raise self.refuse(event, f"found the alias '*{event.anchor}' without its anchor")
            node = self.anchors[event.anchor]
        elif isinstance(event, Content):
            if event.tag not in (None, "!") or (
                event.tag == "!" and not isinstance(event, yaml.ScalarEvent)
            ):
                raise self.refuse(
                    event,
                    f"found the tag '{make_printable(event.tag, 60)}', wanted plain YAML without tags",
                )
            if isinstance(event, yaml.MappingStartEvent):
                node = self.mapping(event, path)
            elif isinstance(event, yaml.SequenceStartEvent):
                node = self.sequence(event, path)
            else:
                node = _Node(self.scalar(event), 1, 0)
            if event.anchor:
                self.anchors[event.anchor] = node
        else:
            raise self.refuse(event, "found no value")
        # The nodes of a collection are already counted; an alias adds all nodes of its anchor.
        self.count += node.size if isinstance(event, yaml.AliasEvent) else 1
        if self.count > MAX_NODES:
            raise self.refuse(event, f"found more than {MAX_NODES} values, aliases expanded")
        if len(path) + node.height > MAX_DEPTH:
            raise self.refuse(event, f"nested deeper than {MAX_DEPTH} levels")
        return node

    def mapping(self, event: yaml.Event, path: KeyPath) -> _Node:
        self.descend(event, path)
        value: dict[str, Any] = {}
        size = height = 0
        for key_event in self.events:
            if isinstance(key_event, yaml.MappingEndEvent):
                break
            key = self.key(key_event)
            if key in value:
                first = self.lines[(*path, key)]
                raise self.refuse(
                    key_event,
                    f"found the key '{make_printable(key, 60)}' twice, first on line {first}",
                )
            self.lines[(*path, key)] = _find_line(key_event)
            child = self.node(next(self.events), (*path, key))
            value[key] = child.value
            size = size + child.size
            height = max(height, child.height)
        return _Node(value, size + 1, height + 1)

    def sequence(self, event: yaml.Event, path: KeyPath) -> _Node:
        self.descend(event, path)
        value: list[object] = []
        size = height = 0
        for item in self.events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            child = self.node(item, (*path, len(value)))
            value.append(child.value)
            size = size + child.size
            height = max(height, child.height)
        return _Node(value, size + 1, height + 1)

    def descend(self, event: yaml.Event, path: KeyPath) -> None:
        if len(path) >= MAX_DEPTH:
            raise self.refuse(event, f"nested deeper than {MAX_DEPTH} levels")

    def key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!") or event.anchor:
            raise self.refuse(event, "found a key that is not plain text")
        key = self.scalar(event)
        if not isinstance(key, str):
            raise self.refuse(
                event,
                f"found the key '{make_printable(event.value, 60)}', wanted text; put it in quotes",
            )
        return key

    def scalar(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if event.style or event.tag == "!":  # quoted, or a block of text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
            if len(text) > 40 or abs(float(text)) > 1e300:
                raise self.refuse(
                    event, f"found the number '{make_printable(text, 60)}', wanted a shorter one"
                )
            return int(text) if _INT.fullmatch(text) else float(text)
        return text


def format_yaml(document: Mapping[str, Any]) -> str:
    """Return data as YAML text: keys in the given order, short lists on one line."""
    return yaml.dump(
        document,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=120,
    )
