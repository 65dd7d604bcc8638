"""What PICO leaves of a run: a folder, or the `.tar.gz` of it, with a folder for each test and in that a file for each
number of elements and algorithm, whose name says both: the nanoseconds of the slowest rank, an iteration a line. What
the tests were stands in the metadata of the system, where one line is a test; who sat where in files of allocations.

As in PICO's own summaries the first fifth of the iterations warms up, but not where an average stands below them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import median

from commodel.errors import UserError
from commodel.files.archives import files_in
from commodel.files.settings import LONGEST_SETTING
from commodel.files.tables import on_line, read_rows
from commodel.files.text import LONGEST_LINE
from commodel.interchange.pico.placement import NAME, Placement, read_placement, uniform
from commodel.units import MAX_COUNT, shown

DATA = re.compile(r"([0-9]{1,12})_(.+)\.csv")
TYPES = {"int8": 1, "char": 1, "int16": 2, "int32": 4, "int": 4, "float": 4, "int64": 8, "double": 8}
ELEMENT = 4  # bytes, where a file does not name a type
WARM_UP = 5  # of so many iterations one
BLANK = ("", "null", "None")
RAILS = re.compile(r"(?:\w*RAILS|rails?)\s*[= ]\s*(\d+)", re.IGNORECASE)
ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class TestMetadata:
    """What a line of metadata says of a test."""

    collective: str
    placement: Placement
    gpu: bool
    setting: str


@dataclass(frozen=True)
class Sampled:
    """The median time of an algorithm at a number of elements."""

    called: str
    elements: int
    element: int  # bytes
    nanoseconds: float
    file: str


@dataclass
class Run:
    tests: dict[str, list[Sampled]] = field(default_factory=dict)
    allocs: dict[str, Placement] = field(default_factory=dict)
    empty: int = 0  # files without a time
    spoiled: list[str] = field(default_factory=list)  # files that hold something else too, and what


def is_run(path: Path) -> bool:
    return path.is_dir() or path.name.endswith(ARCHIVES) or _is_of_test(path)


def _is_of_test(path: Path) -> bool:
    return bool(DATA.fullmatch(path.name)) and path.absolute().parent.name.isdigit()


def read_runs(path: Path) -> dict[str, Run]:
    """By their names, which are times of day."""
    runs: dict[str, Run] = {}
    whole, only = path.absolute(), ""
    if _is_of_test(path) and not path.is_dir():
        whole, only = whole.parents[1], f"{whole.parent.name}/{whole.name}"
    elif path.is_dir() and whole.name.isdigit():
        whole, only = whole.parent, f"{whole.name}/"
    for name, content in files_in(whole, ".csv"):
        *folders, file = name.removeprefix("./").split("/")
        within = folders[-1] if folders and folders[-1].isdigit() else ""
        outer = folders[: -1 if within else None]
        run = runs.setdefault(outer[-1] if outer else _stem(whole), Run())
        try:
            if NAME.fullmatch(file) and not within:
                run.allocs[file] = read_placement(_lines(content), file)
            elif within and (match := DATA.fullmatch(file)) and f"{within}/{file}".startswith(only):
                _add(run, within, match, content, f"{within}/{file}")
        except UserError as error:
            raise UserError(error.message, file=path) from None
    return {name: run for name, run in runs.items() if run.tests or run.empty or run.spoiled}


def _stem(path: Path) -> str:
    return next((path.name.removesuffix(end) for end in ARCHIVES if path.name.endswith(end)), path.name)


def _add(run: Run, test: str, match: re.Match, content: bytes, source: str) -> None:
    called, _, kind = match[2].rpartition("_")
    if kind not in TYPES:
        called, kind = match[2], ""
    if match[2].endswith("_instrument"):  # times of parts of an algorithm
        return
    try:
        times = _nanoseconds(content, source)
    except UserError as error:
        run.spoiled.append(error.message)
        return
    if not times:
        run.empty += 1
        return
    sampled = Sampled(called, int(match[1]), TYPES.get(kind, ELEMENT), median(times), source.rpartition("/")[2])
    run.tests.setdefault(test, []).append(sampled)


def _nanoseconds(content: bytes, source: str) -> list[int]:
    rows = content.split(b"\n", 1)
    if not rows[0].strip():
        return []
    if rows[0].split(b",")[0].strip() != b"highest":
        raise UserError(f"{source} line 1: found {shown(rows[0][:40].decode('utf-8', 'replace'))}, wanted 'highest'")
    times, average = [], False
    for number, row in enumerate(rows[1].splitlines() if len(rows) > 1 else (), 2):
        cell = row.split(b",", 1)[0].strip()
        if not cell:
            continue
        if average or not cell.isdigit() or len(cell) > 18:
            average = not average and cell.startswith(b"Average")
            if not average:
                found = shown(cell[:40].decode("utf-8", "replace"))
                raise UserError(f"{source} line {number}: found {found}, wanted nanoseconds")
            continue
        times.append(int(cell))
    return times if average else times[len(times) // WARM_UP :]


def _lines(content: bytes) -> Iterator[str]:
    """Ranks write side by side into one file, and leave zero bytes where one has less to say than it had room."""
    for line in content.replace(b"\0", b"").splitlines():
        yield line[:LONGEST_LINE].decode("utf-8", "replace")


def read_metadata(path: Path, given: str) -> tuple[Path, dict[tuple[str, str], TestMetadata]]:
    """By run and number, from the file that is given, else from where PICO puts it."""
    file = Path(given) if given else next((place for place in _places(path) if place.is_file()), None)
    if file is None:
        wanted = "SYSTEM_metadata.csv beside the folder of the system; give --metadata"
        raise UserError(f"found no metadata of PICO, wanted {wanted}", file=path)
    tests = {}
    for line, row in read_rows(file, ("timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type")):
        with on_line(file, line):
            tests[row["timestamp"], row["test_id"]] = metadata_of(row, row["timestamp"])
    return file, tests


def _places(path: Path) -> Iterator[Path]:
    for folder in (path.absolute(), *list(path.absolute().parents)[:3]):
        yield folder.with_name(f"{folder.name}_metadata.csv")


def metadata_of(row: Mapping[str, str], job: str) -> TestMetadata:
    """Of a line of metadata, or of a summary, which has the same columns."""
    nodes = prod(_count(part, "nnodes") for part in row["nnodes"].split("x"))  # 8x8x8 on a torus
    per_node = _count(row["tasks_per_node"], "tasks_per_node")
    if nodes * per_node > MAX_COUNT:
        raise UserError(f"found {nodes * per_node} ranks, wanted at most {MAX_COUNT}", key="nnodes")
    gpu = row.get("gpu_awareness") == "yes"
    return TestMetadata(row["collective_type"].lower(), uniform(nodes, per_node), gpu, setting_of(row, job))


def _count(text: str, key: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text)):
        raise UserError(f"found {shown(text)}, wanted a whole number above 0", key=key)
    return int(text)


def setting_of(row: Mapping[str, str], job: str) -> str:
    """The job, its library, rails, GPU and notes, as pairs."""
    notes = "" if row.get("notes", "") in BLANK else row["notes"]
    rails = RAILS.search(notes)
    pairs = {
        "job": job,
        "lib": _joined(row, "mpi_lib", "mpi_lib_version") or row.get("mpi", ""),
        "rails": rails[1] if rails else "",
        "gpu": _joined(row, "gpu_lib", "gpu_lib_version"),
        "notes": RAILS.sub("", notes),
    }
    words = ((name, re.sub(r"[^A-Za-z0-9._:=+/-]+", "-", value).strip("-")) for name, value in pairs.items())
    return " ".join(f"{name}={value}" for name, value in words if value)[:LONGEST_SETTING].rstrip("=-")


def _joined(row: Mapping[str, str], *names: str) -> str:
    return "-".join(row[name] for name in names if row.get(name, "") not in BLANK)
