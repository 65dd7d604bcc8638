"""What the numbers of an experiment rest on: the digest of every file of its results, the attempts at its batches, and
the texts that it was planned from. A report prints them, and `commodel report --verify` computes them again."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commodel.attempts import STATE, read_story
from commodel.records import Batch, Plan

TABLES = ("observations", "summary", "distributions", "unmeasured", "comparison")


@dataclass(frozen=True)
class Traces:
    """`files` has digests by name; an attempt is one start of the driver on a batch; `texts` are the inputs."""

    files: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[Mapping[str, object], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)


NO_TRACES = Traces()


def digests(plan: Plan, folder: Path) -> dict[str, str]:
    """SHA-256 of each file of the results, by its name below `folder`. Raw files have one digest a batch: that of the
    list of their digests and names, as sha256sum prints it."""
    names = ["plan.json", *(path.relative_to(folder).as_posix() for path in sorted(folder.glob("inputs/*/*")))]
    names += [f"{name}.csv" for name in TABLES]
    names += [f"fitted/{platform}/{family}.yaml" for platform in plan.platforms for family in plan.families]
    names += [f"predictions/{family}.csv" for family in plan.families]
    found = {name: _sha256(folder / name) for name in names if (folder / name).is_file()}
    for batch in plan.batches:
        raw = sorted(path for path in (folder / "raw" / batch.name).glob("*.*") if _measured(path))
        if raw:
            listed = "".join(f"{_sha256(path)}  {path.name}\n" for path in raw)
            found[f"raw/{batch.name}"] = hashlib.sha256(listed.encode()).hexdigest()
    return found


def _measured(path: Path) -> bool:
    """The attempts' file changes with every one of them: it is no part of what was measured."""
    return path.suffix in (".csv", ".json") and path.name != STATE and not path.name.startswith(".")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def attempts(batch: Batch, raw: Path) -> Iterator[dict[str, object]]:
    """What the driver noted at each of its starts on a batch; nothing where an older commodel measured it."""
    told = read_story(raw / batch.name).attempts
    for number, attempt in enumerate(told, 1):
        unknown = number == len(told) and attempt.ended is None  # it may be at work
        outcome = "no end noted" if unknown else attempt.how
        about = {"batch": batch.name, "platform": batch.platform, "attempt": number, "nodes": list(attempt.nodes)}
        about |= {key: getattr(attempt, key) for key in ("host", "job", "commit", "started", "ended")}
        yield about | {"outcome": outcome}


def texts(folder: Path) -> dict[str, str]:
    """The experiment first, then its platforms."""
    paths = sorted(folder.glob("inputs/*/*"))
    return {
        path.relative_to(folder / "inputs").as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
    }
