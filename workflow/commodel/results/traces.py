"""What the numbers of an experiment rest on: the digest of every file of its results, the attempts at its batches, and
the texts that it was planned from. A report prints them, and `commodel report --verify` computes them again."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import COPIES, Results
from commodel.files.tables import MAX_TABLE
from commodel.files.text import MIB, bounded, read_text
from commodel.records import Batch, KeptFile, Plan
from commodel.results.attempts import read_story

LARGEST_FILE = 64 * MIB  # of a file that something was planned from
LARGEST_SHOWN = 16 << 10  # bytes of a file that is shown word for word
BINARY = re.compile(r"[\0\ufffd]")


@dataclass(frozen=True)
class Traces:
    """`files` has digests by name; an attempt is one start of the driver on a batch; `texts` are the inputs."""

    files: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[Mapping[str, object], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    rests_on: Mapping[str, KeptFile] = field(default_factory=dict)  # by the path that names it


NO_TRACES = Traces()


def digests(plan: Plan, folder: AnyPath) -> dict[str, str]:
    """SHA-256 of each file of the results, by its name below `folder`. Raw files have one digest a batch: that of the
    list of their digests and names, as sha256sum prints it."""
    results = Results.of(folder)
    stages = results.stages(plan.platforms, plan.families)
    known = {path.below(results.folder): _sha256(path) for path in stages if path.exists()}
    for batch in plan.batches:
        if raw := results.measured(batch.name):
            listed = "".join(f"{_sha256(path)}  {path.name}\n" for path in raw)
            known[f"raw/{batch.name}"] = hashlib.sha256(listed.encode()).hexdigest()
    return known


def _sha256(path: SafePath) -> str:
    with bounded(path, MAX_TABLE, "a smaller file") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def attempts(batch: Batch, raw: AnyPath) -> Iterator[dict[str, object]]:
    """What the driver noted at each of its starts on a batch; nothing where an older commodel measured it."""
    story = read_story(raw / batch.name).attempts
    for number, attempt in enumerate(story, 1):
        unknown = number == len(story) and attempt.ended is None  # it may be at work
        outcome = "no end noted" if unknown else attempt.how
        about = {"batch": batch.name, "platform": batch.platform, "attempt": number, "nodes": list(attempt.nodes)}
        about |= {key: getattr(attempt, key) for key in ("host", "job", "commit", "started", "ended")}
        yield about | {"outcome": outcome}


def texts(folder: AnyPath, files: Mapping[str, KeptFile] | None = None) -> dict[str, str]:
    """The experiment first, then its platforms, then what is short of the patterns, partitions and sets that a plan
    rests on. Trees and rank files name machines: they are not shown."""
    results = Results.of(folder)
    shown = {
        f"{path.parent.name}/{path.name}": read_text(path, LARGEST_FILE, "an experiment or a platform", strict=False)
        for path in results.inputs()
        if path.parent.name != COPIES
    }
    short = {
        name: results.copy(file.copy)
        for name, file in (files or {}).items()
        if file.kind in ("pattern", "partition", "published") and file.copy and file.bytes <= LARGEST_SHOWN
    }
    shown |= {
        name: read_text(copy, LARGEST_SHOWN, "a copy", strict=False) for name, copy in short.items() if copy.exists()
    }
    return {name: text for name, text in shown.items() if name not in short or not BINARY.search(text)}
