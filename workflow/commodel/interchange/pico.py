"""Measurements of PICO (`times`): archives or folders of runs, PICO's summaries of runs, and tables of several systems.

A run is a folder, or a `.tar.gz` of it, with a folder for each test. In that, a file for each number of elements and
algorithm has the nanoseconds of the slowest rank, one iteration a line. A fifth of the iterations is warm-up, as in
PICO's own summaries, unless an average follows them. The metadata of the system have one line for each test. Allocation
files have the host of every rank: `alloc_RANKS.csv`, with a GPU `alloc_RANKS_GPU.csv`, in older runs one `alloc.csv`,
which is of the first test.

Names of algorithms end in their origin: `over` is PICO's own over point-to-point messages, `ompi` is Open MPI's,
`mpich` MPICH's or that of a library made from it. `default` is the library default. An algorithm gets its name in
commodel if its messages are the same (`our_name`).

A number of elements is that of the array of one rank. For gather, allgather, scatter and alltoall this is the whole
array, which is divided by the number of ranks here. With fewer elements than ranks, blocks are empty and the row is
left out. Times are medians. A run, its library, rails, GPU and notes become the setting.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod
from pathlib import Path
from statistics import median
from typing import NamedTuple

from commodel.errors import UserError, mistakes_in
from commodel.files.quantities import MAX_SETTING_LENGTH
from commodel.files.safe_reading import MAX_LINE_BYTES, read_files_in, read_lines
from commodel.files.tables import add_line_to_errors, read_rows
from commodel.interchange import MAX_FILE, Format, Given, Place, Readings
from commodel.records import LIBRARY
from commodel.units import MAX_COUNT, shown

ORIGIN = re.compile(r"_(ompi|over|mpich|craympich)$")
WHOLE_MESSAGE = "2GiB"  # an algorithm that is asked for by name gets segments of size 0 in Open MPI: nothing is cut
NAMES = {  # where it is not the same with '-' for '_'
    "default": LIBRARY,
    "default-default": LIBRARY,
    "neighbor": "neighbor-exchange",
    "modified_bruck": "bruck",
    "brucks": "bruck",
    "k_bruck": "bruck",  # PICO's own, whose radix is 2
    "linear_nb": "linear",  # the same messages, posted without blocking
    "linear_synch": f"linear-sync:{WHOLE_MESSAGE}",
    "binary": f"binary:{WHOLE_MESSAGE}",
    "split_binary": f"split-binary:{WHOLE_MESSAGE}",
    "pipeline": f"chain:{WHOLE_MESSAGE}",
    "in_order": f"in-order:{WHOLE_MESSAGE}",
    "knomial": "knomial:4",  # Open MPI's default radix
}
FULL_NAMES = {  # names that differ in meaning between libraries; an algorithm unknown here keeps its name
    ("bcast", "binomial_ompi"): "binomial-near",
    ("bcast", "binomial_over"): "binomial_over",
    ("bcast", "chain_ompi"): "chain_ompi",  # several rows of ranks
    ("reduce", "chain_ompi"): "chain_ompi",
    ("allreduce", "nonoverlapping_ompi"): "nonoverlapping_ompi",  # a reduce and a bcast of Open MPI's choice
    ("alltoall", "linear_sync_ompi"): "linear",  # no bound on its requests: all are posted at once
    ("allgather", "k_bruck_ompi"): "k_bruck_ompi",  # its radix is whatever was set
}
# Of libraries made from MPICH: algorithms that send our messages only at such numbers of ranks.
POWERS_OF_TWO = {("allreduce", "rabenseifner"), ("reduce", "rabenseifner"), ("allgather", "recursive-doubling")}
OTHERS = {("alltoall", "pairwise")}
# Of Open MPI: names that are another algorithm with fewer elements than ranks.
ELEMENTS = {
    ("allreduce", "ring"),
    ("allreduce", "rabenseifner"),
    ("reduce", "rabenseifner"),
    ("bcast", "scatter-allgather"),
    ("bcast", "scatter-allgather-ring"),
}
EQUAL = 0.05  # of two times: so near are repeated measurements of one thing
SIZES, SPAN = 5, 1000  # as many, and so far apart, that no algorithm stays a library's choice over all
OWN_CHOICES = {"default", "non_blocking"}


def our_name(collective: str, called: str, ranks: int, elements: int) -> str:
    """Return the name of an algorithm in this project, or PICO's name if none here sends the same messages."""
    if full := FULL_NAMES.get((collective, called)):
        return full
    name, origin = ORIGIN.sub("", called), _origin(called)
    ours = NAMES.get(name, name.replace("_", "-"))
    power = ranks & (ranks - 1) == 0
    pair = collective, ours
    if origin in ("mpich", "craympich") and ((pair in POWERS_OF_TWO and not power) or (pair in OTHERS and power)):
        return called
    if origin == "ompi" and pair in ELEMENTS and elements < ranks:
        return called
    return ours


def following_default(collective: str, times: Mapping[str, Mapping[int, float]]) -> dict[str, str]:
    """Return which of a library's algorithms take the time of its default at every size, and the name of that default.

    `times` are by name and size, of one collective in one allocation. A single algorithm may equal the default because
    the default is this algorithm. If two algorithms with different messages equal it, the library used its default in
    place of both. MPICH does so without a message. Over sizes that differ by a factor of 1000, its default uses more
    than one algorithm, so for MPICH one equal algorithm is enough.
    """
    own = [name for name in times if ORIGIN.sub("", name) in OWN_CHOICES]
    equal = {
        name: choice
        for name, sizes in times.items()
        for choice in own
        if name not in own and _origin(name) == _origin(choice) and _equal(sizes, times[choice])
    }
    messages = {our_name(collective, name, 0, 0) for name in equal}
    return {name: choice for name, choice in equal.items() if len(messages) > 1 or "mpich" in _origin(name)}


def _equal(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Return whether times are equal at all common sizes but one, and there are enough common sizes."""
    common = first.keys() & second.keys()
    if len(common) < SIZES or max(common) < SPAN * max(min(common), 1):
        return False
    return sum(abs(first[size] - second[size]) > EQUAL * second[size] for size in common) <= 1


def _origin(called: str) -> str:
    match = ORIGIN.search(called)
    return match[1] if match else ""


NAME = re.compile(r"alloc(?:_([0-9]{1,8}))?(_GPU)?\.csv")
MOST_RUNS = 200  # of ranks on one node: a longer layout is unreadable


@dataclass(frozen=True)
class Placement:
    """The placement of ranks; `layout` is empty if it cannot be written in a line."""

    ranks: int
    nodes: int
    layout: str
    file: str = ""  # the allocation file; empty: from the metadata

    @property
    def size(self) -> tuple[int, int]:
        return self.ranks, self.nodes

    def __str__(self) -> str:
        return f"{self.ranks} ranks on {self.nodes} nodes"


def uniform(nodes: int, per_node: int) -> Placement:
    return Placement(nodes * per_node, nodes, f"block:{per_node}")


def read_placement(lines: Iterable[str], file: str) -> Placement:
    """Return the placement in an allocation file, with columns MPI_Rank, allocation and perhaps others, in any order of
    ranks."""
    hosts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")]
        if number == 1 or not any(cells):
            if number == 1 and cells[:2] != ["MPI_Rank", "allocation"]:
                raise UserError(f"{file}: found {shown(line)}, wanted MPI_Rank,allocation")
            continue
        if len(cells) < 2 or not (cells[0].isascii() and cells[0].isdigit()) or not cells[1]:
            raise UserError(f"{file} line {number}: found {shown(line)}, wanted a rank and its host")
        if (rank := int(cells[0][:9])) >= MAX_COUNT or rank in hosts:
            raise UserError(f"{file} line {number}: found rank {rank}, wanted each from 0 on once")
        hosts[rank] = cells[1]
    if not hosts or max(hosts) != len(hosts) - 1:
        raise UserError(f"{file}: found {len(hosts)} ranks, wanted all from 0 on")
    numbers: dict[str, int] = {}
    nodes = [numbers.setdefault(hosts[rank], len(numbers)) for rank in range(len(hosts))]
    return Placement(len(nodes), len(numbers), _layout(nodes), file)


def _layout(nodes: list[int]) -> str:
    count, runs = max(nodes) + 1, [(node, len(list(ranks))) for node, ranks in groupby(nodes)]
    per_node = len(nodes) // count
    if runs == [(node, per_node) for node in range(count)]:
        return f"block:{per_node}"
    if nodes == [rank % count for rank in range(per_node * count)]:
        return f"cyclic:{per_node}"
    if len(runs) > MOST_RUNS:
        return ""
    return "nodes:" + ",".join(f"{node}x{length}" if length > 1 else f"{node}" for node, length in runs)


def placement_of(said: Placement, gpu: bool, tests: Sequence[Placement], allocs: Mapping[str, Placement]) -> Placement:
    """Return the placement of a test, by its metadata (`said`) and the allocation files of its run.

    `tests` are the placements of all tests of the run by their metadata. An allocation file has the real placement,
    metadata the wanted one. If they differ, the allocation file is right, provided that it is certainly of this test.
    """
    sized = {name: placement for name, placement in allocs.items() if NAME.fullmatch(name)[1]}
    if not sized:
        return next(iter(allocs.values())) if allocs and said == tests[0] else said
    right = {name: placement for name, placement in sized.items() if placement.ranks == said.ranks}
    if not right and len(sized) == len(set(tests)) == 1:
        right = sized
    of_kind = [placement for name, placement in right.items() if bool(NAME.fullmatch(name)[2]) == gpu]
    return next(iter([*of_kind, *right.values()]), said)


DATA = re.compile(r"([0-9]{1,12})_(.+)\.csv")
TYPES = {"int8": 1, "char": 1, "int16": 2, "int32": 4, "int": 4, "float": 4, "int64": 8, "double": 8}
ELEMENT = 4  # bytes, where a file does not name a type
WARM_UP = 5  # of so many iterations one
BLANK = ("", "null", "None")
RAILS = re.compile(r"(?:\w*RAILS|rails?)\s*[= ]\s*(\d+)", re.IGNORECASE)
ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class TestMetadata:
    """The metadata of a test."""

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
    spoiled: list[str] = field(default_factory=list)  # files with other content too, and that content


def is_run(path: Path) -> bool:
    return path.is_dir() or path.name.endswith(ARCHIVES) or _is_of_test(path)


def _is_of_test(path: Path) -> bool:
    return bool(DATA.fullmatch(path.name)) and path.absolute().parent.name.isdigit()


def read_runs(path: Path) -> dict[str, Run]:
    """Return the runs in a folder, an archive or a file, by their names, which are times of day."""
    runs: dict[str, Run] = {}
    whole, only = path.absolute(), ""
    if _is_of_test(path) and not path.is_dir():
        whole, only = whole.parents[1], f"{whole.parent.name}/{whole.name}"
    elif path.is_dir() and whole.name.isdigit():
        whole, only = whole.parent, f"{whole.name}/"
    for name, content in read_files_in(whole, ".csv"):
        *folders, file = name.removeprefix("./").split("/")
        within = folders[-1] if folders and folders[-1].isdigit() else ""
        outer = folders[: -1 if within else None]
        run = runs.setdefault(outer[-1] if outer else _stem(whole), Run())
        with mistakes_in(path):
            if NAME.fullmatch(file) and not within:
                run.allocs[file] = read_placement(_lines(content), file)
            elif within and (match := DATA.fullmatch(file)) and f"{within}/{file}".startswith(only):
                _add(run, within, match, content, f"{within}/{file}")
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
    """Yield the lines of an allocation file without zero bytes.

    Ranks write into one file side by side, and leave zero bytes if one writes less than its room.
    """
    for line in content.replace(b"\0", b"").splitlines():
        yield line[:MAX_LINE_BYTES].decode("utf-8", "replace")


def read_metadata(path: Path, given: str) -> tuple[Path, dict[tuple[str, str], TestMetadata]]:
    """Return the file of metadata, and its tests by run and number; unless `given`, the file is where PICO puts it."""
    file = Path(given) if given else next((place for place in _places(path) if place.is_file()), None)
    if file is None:
        wanted = "SYSTEM_metadata.csv beside the folder of the system; give --metadata"
        raise UserError(f"found no metadata of PICO, wanted {wanted}", file=path)
    tests = {}
    for line, row in read_rows(file, ("timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type")):
        with add_line_to_errors(file, line):
            tests[row["timestamp"], row["test_id"]] = metadata_of(row, row["timestamp"])
    return file, tests


def _places(path: Path) -> Iterator[Path]:
    for folder in (path.absolute(), *list(path.absolute().parents)[:3]):
        yield folder.with_name(f"{folder.name}_metadata.csv")


def metadata_of(row: Mapping[str, str], job: str) -> TestMetadata:
    """Return the metadata of a test from a row of the metadata file, or of a summary, which has the same columns."""
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
    """Return the setting of a test: job, library, rails, GPU and notes, as pairs."""
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
    return " ".join(f"{name}={value}" for name, value in words if value)[:MAX_SETTING_LENGTH].rstrip("=-")


def _joined(row: Mapping[str, str], *names: str) -> str:
    return "-".join(row[name] for name in names if row.get(name, "") not in BLANK)


TABLE = ("collective", "algorithm", "nodes", "ranks_per_node", "bytes", "median_s")
SUMMARY = ("collective_type", "algo_name", "nnodes", "tasks_per_node", "array_dim", "buffer_size", "median")
SECOND = 1e9  # nanoseconds
WHOLE = ("gather", "allgather", "scatter", "alltoall")


class Test(NamedTuple):
    """A test of a run. Only times of the same test may be compared."""

    run: str
    number: str
    collective: str
    ranks: int

    def __str__(self) -> str:
        return " ".join(part for part in (self.run, self.number and f"test {self.number},", self.collective) if part)


@dataclass(frozen=True)
class Row:
    """A median with PICO's name of the algorithm; `bytes` is the size of the whole array."""

    place: Place
    test: Test
    elements: int
    bytes: int
    seconds: float
    called: str


def times(path: Path, given: Given) -> Readings:
    readings = Readings()
    if is_run(path):
        rows = list(_of_runs(path, given, readings))
    else:
        rows = list(_of_summary(path, given) if _is_summary(path) else _of_table(path, given))
    tests: dict[Test, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        tests[row.test][row.called][row.elements] = row.seconds
    followers = {test: following_default(test.collective, measured) for test, measured in tests.items()}
    for row in rows:
        _take(row, row.called in followers[row.test], readings)
    for test, others in followers.items():
        same = ", ".join(f"{name} takes the time of {other}" for name, other in sorted(others.items()))
        readings.remarks += [f"{test}: at every size {same}: counted as the library's own choice"] if others else []
    return readings


def _of_table(path: Path, given: Given) -> Iterator[Row]:
    for number, row in read_rows(path, TABLE):
        place = Place(path, number, given, called=row["algorithm"])
        per_node, nodes, size = (place.whole(row[name]) for name in ("ranks_per_node", "nodes", "bytes"))
        place = replace(
            place, layout=f"block:{per_node}" if per_node else "", setting=setting_of(row, row.get("run", ""))
        )
        run = " ".join(row[name] for name in ("system", "run") if row.get(name))
        test = Test(run, row.get("test", ""), row["collective"], nodes * per_node)
        elements = place.whole(row.get("elements") or row["bytes"])
        yield Row(place, test, elements, size, place.number(row["median_s"]), place.called)


def _is_summary(path: Path) -> bool:
    first = next(read_lines(path, MAX_FILE, "a table of times", strict=False), (1, ""))
    return set(SUMMARY) <= {name.strip() for name in first[1].split(",")}


def _of_summary(path: Path, given: Given) -> Iterator[Row]:
    """Yield the rows of PICO's summary of runs: times in nanoseconds, with the columns of the metadata."""
    for number, row in read_rows(path, SUMMARY):
        place = Place(path, number, given, called=row["algo_name"])
        with add_line_to_errors(path, number):
            about = metadata_of(row, row.get("timestamp", ""))
        place = replace(place, layout=about.placement.layout, setting=about.setting)
        elements, size = place.whole(row["array_dim"]), place.whole(row["buffer_size"])
        test = Test(row.get("timestamp", ""), row.get("test_id", ""), about.collective, about.placement.ranks)
        yield Row(place, test, elements, size, place.number(row["median"]) / SECOND, place.called)


def _of_runs(path: Path, given: Given, readings: Readings) -> Iterator[Row]:
    runs = read_runs(path)
    file, metadata = read_metadata(path, given.metadata) if runs else (path, {})
    for name, run in runs.items():
        for count, what in ((run.empty, "empty file"), (len(run.spoiled), "file with lines that are no times")):
            readings.left_out.update({what: count} if count else {})
        if run.spoiled:
            more = f", and {len(run.spoiled) - 1} more like it" if len(run.spoiled) > 1 else ""
            readings.remarks.append(f"{name}: {run.spoiled[0]}: the file is left out{more}")
        of_tests = {number: about for (job, number), about in metadata.items() if job == name}
        moved: dict[str, list[str]] = defaultdict(list)
        for number, samples in sorted(run.tests.items()):
            about = of_tests.get(number)
            if about is None:
                readings.left_out[f"test {number} of {name}, of which {file.name} says nothing"] += len(samples)
                continue
            placement = placement_of(
                about.placement, about.gpu, [other.placement for other in of_tests.values()], run.allocs
            )
            if not placement.layout:
                readings.left_out[f"test {number} of {name}, whose ranks sit in no order"] += len(samples)
                continue
            if placement.size != about.placement.size:
                moved[f"{file.name} says {about.placement}, {placement.file} {placement}: that is taken"] += [number]
            test = Test(name, number, about.collective, placement.ranks)
            for sample in sorted(samples, key=lambda sample: (sample.called, sample.elements)):
                place = Place(path, 0, given, placement.layout, f"{number}/{sample.file}", about.setting)
                size, seconds = sample.elements * sample.element, sample.nanoseconds / SECOND
                yield Row(place, test, sample.elements, size, seconds, sample.called)
        for difference, numbers in moved.items():
            tests = f"tests {', '.join(numbers)}" if len(numbers) > 1 else f"test {numbers[0]}"
            readings.remarks.append(f"{name} {tests}: {difference}")


def _take(row: Row, follows: bool, readings: Readings) -> None:
    (_, _, collective, ranks), size = row.test, row.bytes
    if collective in WHOLE and ranks:
        elements = row.elements or 1
        size = elements // ranks * (size // elements)
        if not size:  # fewer elements than ranks
            readings.left_out[f"{collective} of 0 bytes"] += 1
            return
    name = LIBRARY if follows else our_name(collective, row.called, ranks, row.elements)
    readings.take(row.place, collective, name, ranks, size, row.seconds, "median")


FORMAT = Format("pico", "PICO", times, asks=("metadata",))
