"""Measurements of PICO (`read_file`): archives or folders of runs, PICO's summaries of runs, and
tables of several systems.

A run is a folder, or a `.tar.gz` of it, with a folder for each test. In that, a file for each
number of elements and algorithm has the nanoseconds of the slowest rank, one iteration a line. A
fifth of the iterations is warm-up, as in PICO's own summaries, unless an average follows them. The
metadata of the system have one line for each test. Allocation files have the host of every rank:
`alloc_RANKS.csv`, with a GPU `alloc_RANKS_GPU.csv`, in older runs one `alloc.csv`, which is of the
first test.

Names of algorithms end in their origin: `over` is PICO's own over point-to-point messages, `ompi`
is Open MPI's, `mpich` MPICH's or that of a library made from it. `default` is the library default.
An algorithm gets its name in commodel if its messages are the same (`translate_algorithm`).

A number of elements is that of the array of one rank. For gather, allgather, scatter and alltoall
this is the whole array, which is divided by the number of ranks here. With fewer elements than
ranks, blocks are empty and the row is left out. Times are medians. A run, its library, rails, GPU
and notes become the setting.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from statistics import median
from typing import NamedTuple

from commodel.errors import UserError, locate_mistakes
from commodel.files.quantities import MAX_SETTING_LENGTH
from commodel.files.safe_reading import MAX_LINE_BYTES, read_files_in, read_lines
from commodel.files.tables import add_line_to_errors, read_rows
from commodel.interchange import (
    COMMON_OPTIONS,
    MAX_FILE_BYTES,
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
)
from commodel.records import LIBRARY, Repetitions, Statistic
from commodel.units import MAX_COUNT, show_value

ORIGIN = re.compile(r"_(ompi|over|mpich|craympich)$")
UNCUT_SEGMENT = "2GiB"  # Open MPI does not segment messages if an algorithm is selected by name
TRANSLATED_NAMES = {  # of other algorithms, only '_' becomes '-'
    "default": LIBRARY,
    "default-default": LIBRARY,
    "neighbor": "neighbor-exchange",
    "modified_bruck": "bruck",
    "brucks": "bruck",
    "k_bruck": "bruck",  # of PICO, with radix 2
    "linear_nb": "linear",  # the same messages, posted without blocking
    "linear_synch": f"linear-sync:{UNCUT_SEGMENT}",
    "binary": f"binary:{UNCUT_SEGMENT}",
    "split_binary": f"split-binary:{UNCUT_SEGMENT}",
    "pipeline": f"chain:{UNCUT_SEGMENT}",
    "in_order": f"in-order:{UNCUT_SEGMENT}",
    "knomial": "knomial:4",  # Open MPI's default radix
}
# names whose meaning depends on the library; an algorithm unknown here keeps its name
NAMES_BY_COLLECTIVE = {
    ("bcast", "binomial_ompi"): "binomial-near",
    ("bcast", "binomial_over"): "binomial_over",
    ("bcast", "chain_ompi"): "chain_ompi",  # several rows of ranks
    ("reduce", "chain_ompi"): "chain_ompi",
    # a reduce and a bcast of Open MPI's choice
    ("allreduce", "nonoverlapping_ompi"): "nonoverlapping_ompi",
    # without a limit on requests, all are posted at once
    ("alltoall", "linear_sync_ompi"): "linear",
    ("allgather", "k_bruck_ompi"): "k_bruck_ompi",  # its radix is unknown
}
# Of libraries based on MPICH: algorithms that send our messages only at powers of two ranks, or
# only at other numbers.
EQUAL_AT_POWERS_OF_TWO = {
    ("allreduce", "rabenseifner"),
    ("reduce", "rabenseifner"),
    ("allgather", "recursive-doubling"),
}
EQUAL_AT_OTHER_COUNTS = {("alltoall", "pairwise")}
# Of Open MPI: algorithms that send other messages if there are fewer elements than ranks.
DIFFERENT_WITH_FEW_ELEMENTS = {
    ("allreduce", "ring"),
    ("allreduce", "rabenseifner"),
    ("reduce", "rabenseifner"),
    ("bcast", "scatter-allgather"),
    ("bcast", "scatter-allgather-ring"),
}
MAX_TIME_DIFFERENCE = 0.05  # relative; repeated measurements of one algorithm differ by less
# over such a range of sizes, a library default uses several algorithms
MIN_COMMON_SIZES, MIN_SIZE_RATIO = 5, 1000
DEFAULT_NAMES = {"default", "non_blocking"}  # PICO's names of the library default


def translate_algorithm(collective: str, tool_name: str, ranks: int, elements: int) -> str:
    """Return the name of an algorithm in this project, or PICO's name if none here sends the same
    messages."""
    full = NAMES_BY_COLLECTIVE.get((collective, tool_name))
    if full:
        return full
    name = ORIGIN.sub("", tool_name)
    origin = _find_origin(tool_name)
    ours = TRANSLATED_NAMES.get(name, name.replace("_", "-"))
    power = ranks & (ranks - 1) == 0
    pair = collective, ours
    if origin in ("mpich", "craympich") and (
        (pair in EQUAL_AT_POWERS_OF_TWO and not power) or (pair in EQUAL_AT_OTHER_COUNTS and power)
    ):
        return tool_name
    if origin == "ompi" and pair in DIFFERENT_WITH_FEW_ELEMENTS and elements < ranks:
        return tool_name
    return ours


def find_equal_to_default(
    collective: str, times: Mapping[str, Mapping[int, float]]
) -> dict[str, str]:
    """Return the algorithms whose times equal those of a library default, with that default's name.

    They are equal at all sizes but at most one. `times` are by name and size, of one collective in
    one allocation. A single algorithm may equal the default because the default is this algorithm.
    If two algorithms with different messages equal it, the library used its default in place of
    both. MPICH does so without a warning. Over sizes that differ by a factor of 1000, its default
    uses more than one algorithm, so for MPICH one equal algorithm is enough.
    """
    defaults = [name for name in times if ORIGIN.sub("", name) in DEFAULT_NAMES]
    equal = {}
    for name, choice in product(times, defaults):
        if (
            name not in defaults
            and _find_origin(name) == _find_origin(choice)
            and _have_equal_times(times[name], times[choice])
        ):
            equal[name] = choice
    messages = {translate_algorithm(collective, name, 0, 0) for name in equal}
    return {
        name: choice
        for name, choice in equal.items()
        if len(messages) > 1 or "mpich" in _find_origin(name)
    }


def _have_equal_times(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Return whether times are equal at all common sizes except at most one, and there are enough
    common sizes."""
    common = first.keys() & second.keys()
    if len(common) < MIN_COMMON_SIZES or max(common) < MIN_SIZE_RATIO * max(min(common), 1):
        return False
    return (
        sum(abs(first[size] - second[size]) > MAX_TIME_DIFFERENCE * second[size] for size in common)
        <= 1
    )


def _find_origin(tool_name: str) -> str:
    match = ORIGIN.search(tool_name)
    return match[1] if match else ""


ALLOCATION_FILE = re.compile(r"alloc(?:_([0-9]{1,8}))?(_GPU)?\.csv")
MAX_LAYOUT_RUNS = 200  # runs of consecutive ranks on one node in the text of a layout


@dataclass(frozen=True)
class PicoPlacement:
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


def make_block_placement(nodes: int, per_node: int) -> PicoPlacement:
    return PicoPlacement(nodes * per_node, nodes, f"block:{per_node}")


def read_placement(lines: Iterable[str], file: str) -> PicoPlacement:
    """Return the placement in an allocation file, with columns MPI_Rank, allocation and perhaps
    others, in any order of ranks."""
    hosts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")]
        if number == 1 or not any(cells):
            if number == 1 and cells[:2] != ["MPI_Rank", "allocation"]:
                raise UserError(f"{file}: found {show_value(line)}, wanted MPI_Rank,allocation")
            continue
        if len(cells) < 2 or not (cells[0].isascii() and cells[0].isdigit()) or not cells[1]:
            raise UserError(
                f"{file} line {number}: found {show_value(line)}, wanted a rank and its host"
            )
        rank = int(cells[0][:9])
        if rank >= MAX_COUNT or rank in hosts:
            raise UserError(f"{file} line {number}: found rank {rank}, wanted each from 0 on once")
        hosts[rank] = cells[1]
    if not hosts or max(hosts) != len(hosts) - 1:
        raise UserError(f"{file}: found {len(hosts)} ranks, wanted all from 0 on")
    numbers: dict[str, int] = {}
    nodes = [numbers.setdefault(hosts[rank], len(numbers)) for rank in range(len(hosts))]
    return PicoPlacement(
        ranks=len(nodes), nodes=len(numbers), layout=_describe_layout(nodes), file=file
    )


def _describe_layout(nodes: list[int]) -> str:
    import numpy as np

    from commodel.patterns.layouts.regular import make_nodes_spec

    count = max(nodes) + 1
    per_node = len(nodes) // count
    if nodes == [rank // per_node for rank in range(per_node * count)]:
        return f"block:{per_node}"
    if nodes == [rank % count for rank in range(per_node * count)]:
        return f"cyclic:{per_node}"
    spec = make_nodes_spec(np.array(nodes))
    return spec if spec.count(",") < MAX_LAYOUT_RUNS else ""


def choose_placement(
    declared: PicoPlacement,
    gpu: bool,
    tests: Sequence[PicoPlacement],
    allocs: Mapping[str, PicoPlacement],
) -> PicoPlacement:
    """Return the placement of a test, by its metadata (`declared`) and the allocation files of its
    run.

    `tests` are the placements of all tests of the run by their metadata. An allocation file has the
    real placement, metadata the wanted one. If they differ, the allocation file is right, provided
    that it is certainly of this test.
    """
    matches = {}
    for name in allocs:
        match = ALLOCATION_FILE.fullmatch(name)
        if match:
            matches[name] = match
    sized = {name: placement for name, placement in allocs.items() if matches[name][1]}
    if not sized:
        return next(iter(allocs.values())) if allocs and declared == tests[0] else declared
    right = {
        name: placement for name, placement in sized.items() if placement.ranks == declared.ranks
    }
    if not right and len(sized) == len(set(tests)) == 1:
        right = sized
    of_kind = [placement for name, placement in right.items() if bool(matches[name][2]) == gpu]
    return next(iter([*of_kind, *right.values()]), declared)


DATA_FILE = re.compile(r"([0-9]{1,12})_(.+)\.csv")
TYPE_BYTES = {
    "int8": 1,
    "char": 1,
    "int16": 2,
    "int32": 4,
    "int": 4,
    "float": 4,
    "int64": 8,
    "double": 8,
}
DEFAULT_ELEMENT_BYTES = 4  # if a file does not name a type
WARM_UP_DIVISOR = 5  # the first fifth of the iterations is warm-up
BLANK_VALUES = ("", "null", "None")
RAILS_PATTERN = re.compile(r"(?:\w*RAILS|rails?)\s*[= ]\s*(\d+)", re.IGNORECASE)
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class TestMetadata:
    """The metadata of a test."""

    collective: str
    placement: PicoPlacement
    gpu: bool
    setting: str


@dataclass(frozen=True)
class MedianTime:
    """The median time of an algorithm at a number of elements."""

    tool_name: str
    elements: int
    element: int  # bytes
    nanoseconds: float
    file: str


@dataclass
class PicoRun:
    tests: dict[str, list[MedianTime]] = field(default_factory=dict)
    allocs: dict[str, PicoPlacement] = field(default_factory=dict)
    empty: int = 0  # files without a time
    # the error of each file with other content than times
    unreadable_files: list[str] = field(default_factory=list)


def is_run(path: Path) -> bool:
    return path.is_dir() or path.name.endswith(ARCHIVE_SUFFIXES) or _is_test_file(path)


def is_run_folder(path: Path) -> bool:
    """Return whether a folder is a run, not one of several runs: it has an allocation file, or a
    numbered folder of tests."""
    try:
        entries = list(os.scandir(path))
        numbered = [child for child in entries if child.name.isdigit()]
        inner = [name for entry in numbered[:1] for name in os.listdir(entry)]
    except OSError:
        return False
    has_allocation = any(ALLOCATION_FILE.fullmatch(child.name) for child in entries)
    return has_allocation or any(DATA_FILE.fullmatch(name) for name in inner)


def _is_test_file(path: Path) -> bool:
    return bool(DATA_FILE.fullmatch(path.name)) and path.absolute().parent.name.isdigit()


def read_runs(path: Path) -> dict[str, PicoRun]:
    """Return the runs in a folder, an archive or a file, by their names, which are times of day."""
    runs: dict[str, PicoRun] = {}
    run_path = path.absolute()
    only = ""
    if _is_test_file(path) and not path.is_dir():
        only = f"{run_path.parent.name}/{run_path.name}"
        run_path = run_path.parents[1]
    elif path.is_dir() and run_path.name.isdigit():
        only = f"{run_path.name}/"
        run_path = run_path.parent
    for name, content in read_files_in(run_path, ".csv"):
        *folders, file = name.removeprefix("./").split("/")
        within = folders[-1] if folders and folders[-1].isdigit() else ""
        outer = folders[: -1 if within else None]
        run = runs.setdefault(outer[-1] if outer else _name_run(run_path), PicoRun())
        test_file = f"{within}/{file}"
        match = DATA_FILE.fullmatch(file)
        with locate_mistakes(path):
            if ALLOCATION_FILE.fullmatch(file) and not within:
                run.allocs[file] = read_placement(_split_lines(content), file)
            elif within and match and test_file.startswith(only):
                _add_file(run, within, match, content, test_file)
    return {
        name: run for name, run in runs.items() if run.tests or run.empty or run.unreadable_files
    }


def _name_run(path: Path) -> str:
    return next(
        (path.name.removesuffix(end) for end in ARCHIVE_SUFFIXES if path.name.endswith(end)),
        path.name,
    )


def _add_file(run: PicoRun, test: str, match: re.Match, content: bytes, source: str) -> None:
    tool_name, _, kind = match[2].rpartition("_")
    if kind not in TYPE_BYTES:
        tool_name = match[2]
        kind = ""
    if match[2].endswith("_instrument"):  # times of parts of an algorithm
        return
    try:
        times = _parse_nanoseconds(content, source)
    except UserError as error:
        run.unreadable_files.append(error.message)
        return
    if not times:
        run.empty += 1
        return
    sampled = MedianTime(
        tool_name=tool_name,
        elements=int(match[1]),
        element=TYPE_BYTES.get(kind, DEFAULT_ELEMENT_BYTES),
        nanoseconds=median(times),
        file=source.rpartition("/")[2],
    )
    run.tests.setdefault(test, []).append(sampled)


def _parse_nanoseconds(content: bytes, source: str) -> list[int]:
    rows = content.split(b"\n", 1)
    if not rows[0].strip():
        return []
    if rows[0].split(b",")[0].strip() != b"highest":
        raise UserError(
            f"{source} line 1: found {show_value(rows[0][:40].decode('utf-8', 'replace'))}, wanted 'highest'"
        )
    times = []
    average = False
    for number, row in enumerate(rows[1].splitlines() if len(rows) > 1 else (), 2):
        cell = row.split(b",", 1)[0].strip()
        if not cell:
            continue
        if average or not cell.isdigit() or len(cell) > 18:
            average = not average and cell.startswith(b"Average")
            if not average:
                found = show_value(cell[:40].decode("utf-8", "replace"))
                raise UserError(f"{source} line {number}: found {found}, wanted nanoseconds")
            continue
        times.append(int(cell))
    return times if average else times[len(times) // WARM_UP_DIVISOR :]


def _split_lines(content: bytes) -> Iterator[str]:
    """Yield the lines of an allocation file without zero bytes.

    Each rank writes into its own part of the file, and leaves zero bytes if its text is shorter
    than this part.
    """
    for line in content.replace(b"\0", b"").splitlines():
        yield line[:MAX_LINE_BYTES].decode("utf-8", "replace")


def read_metadata(path: Path, option: str) -> tuple[Path, dict[tuple[str, str], TestMetadata]]:
    """Return the file of metadata, and its tests by run and number; without `option`, PICO's usual
    places are tried."""
    file = (
        Path(option)
        if option
        else next(
            (source_row for source_row in _list_metadata_places(path) if source_row.is_file()), None
        )
    )
    if file is None:
        wanted = "SYSTEM_metadata.csv beside the folder of the system; give --metadata"
        raise UserError(f"found no metadata of PICO, wanted {wanted}", file=path)
    tests = {}
    for line, row in read_rows(
        file, ("timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type")
    ):
        with add_line_to_errors(file, line):
            tests[row["timestamp"], row["test_id"]] = parse_metadata(row, row["timestamp"])
    return file, tests


def _list_metadata_places(path: Path) -> Iterator[Path]:
    for folder in (path.absolute(), *list(path.absolute().parents)[:3]):
        yield folder.with_name(f"{folder.name}_metadata.csv")


def parse_metadata(row: Mapping[str, str], job: str) -> TestMetadata:
    """Return the metadata of a test from a row of the metadata file, or of a summary, which has the
    same columns."""
    # 8x8x8 on a torus
    nodes = prod(_parse_count(part, "nnodes") for part in row["nnodes"].split("x"))
    per_node = _parse_count(row["tasks_per_node"], "tasks_per_node")
    if nodes * per_node > MAX_COUNT:
        raise UserError(f"found {nodes * per_node} ranks, wanted at most {MAX_COUNT}", key="nnodes")
    gpu = row.get("gpu_awareness") == "yes"
    return TestMetadata(
        collective=row["collective_type"].lower(),
        placement=make_block_placement(nodes, per_node),
        gpu=gpu,
        setting=describe_setting(row, job),
    )


def _parse_count(text: str, key: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text)):
        raise UserError(f"found {show_value(text)}, wanted a whole number above 0", key=key)
    return int(text)


def describe_setting(row: Mapping[str, str], job: str) -> str:
    """Return the setting of a test: job, library, rails, GPU and notes, as pairs."""
    notes = "" if row.get("notes", "") in BLANK_VALUES else row["notes"]
    rails = RAILS_PATTERN.search(notes)
    pairs = {
        "job": job,
        "lib": _join_cells(row, "mpi_lib", "mpi_lib_version") or row.get("mpi", ""),
        "rails": rails[1] if rails else "",
        "gpu": _join_cells(row, "gpu_lib", "gpu_lib_version"),
        "notes": RAILS_PATTERN.sub("", notes),
    }
    words = (
        (name, re.sub(r"[^A-Za-z0-9._:=+/-]+", "-", value).strip("-"))
        for name, value in pairs.items()
    )
    return " ".join(f"{name}={value}" for name, value in words if value)[
        :MAX_SETTING_LENGTH
    ].rstrip("=-")


def _join_cells(row: Mapping[str, str], *names: str) -> str:
    return "-".join(row[name] for name in names if row.get(name, "") not in BLANK_VALUES)


TABLE_COLUMNS = ("collective", "algorithm", "nodes", "ranks_per_node", "bytes", "median_s")
SUMMARY_COLUMNS = (
    "collective_type",
    "algo_name",
    "nnodes",
    "tasks_per_node",
    "array_dim",
    "buffer_size",
    "median",
)
NANOSECONDS_PER_SECOND = 1e9  # nanoseconds
WHOLE_ARRAY_COLLECTIVES = ("gather", "allgather", "scatter", "alltoall")


class PicoTest(NamedTuple):
    """A test of a run. Only times of the same test may be compared."""

    run: str
    number: str
    collective: str
    ranks: int

    def __str__(self) -> str:
        return " ".join(
            part
            for part in (self.run, self.number and f"test {self.number},", self.collective)
            if part
        )


@dataclass(frozen=True)
class PicoTime:
    """A median with PICO's name of the algorithm; `bytes` is the size of the whole array."""

    source_row: SourceRow
    test: PicoTest
    elements: int
    bytes: int
    seconds: float
    tool_name: str


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    if is_run(path):
        rows = list(_read_run_rows(path, stated, imported))
    else:
        rows = list(
            _read_summary_rows(path, stated)
            if _is_summary(path)
            else _read_table_rows(path, stated)
        )
    tests: dict[PicoTest, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        tests[row.test][row.tool_name][row.elements] = row.seconds
    followers = {
        test: find_equal_to_default(test.collective, measured) for test, measured in tests.items()
    }
    for row in rows:
        _add_row(row, row.tool_name in followers[row.test], imported)
    for test, same_times in followers.items():
        same = ", ".join(
            f"{name} takes the time of {other}" for name, other in sorted(same_times.items())
        )
        if same_times:
            imported.remarks.append(
                f"{test}: at all sizes, or all but one, {same}: counted as the library default"
            )
    return imported


def _read_table_rows(path: Path, stated: StatedProperties) -> Iterator[PicoTime]:
    for number, row in read_rows(path, TABLE_COLUMNS):
        source_row = SourceRow(path, number, stated, tool_name=row["algorithm"])
        per_node, nodes, size = (
            source_row.parse_whole(row[name]) for name in ("ranks_per_node", "nodes", "bytes")
        )
        source_row = replace(
            source_row,
            layout=f"block:{per_node}" if per_node else "",
            setting=describe_setting(row, row.get("run", "")),
        )
        run = " ".join(row[name] for name in ("system", "run") if row.get(name))
        test = PicoTest(run, row.get("test", ""), row["collective"], nodes * per_node)
        elements = source_row.parse_whole(row.get("elements") or row["bytes"])
        yield PicoTime(
            source_row,
            test,
            elements,
            size,
            source_row.parse_number(row["median_s"]),
            source_row.tool_name,
        )


def _is_summary(path: Path) -> bool:
    first = next(read_lines(path, MAX_FILE_BYTES, "a table of times", strict=False), (1, ""))
    return set(SUMMARY_COLUMNS) <= {name.strip() for name in first[1].split(",")}


def _read_summary_rows(path: Path, stated: StatedProperties) -> Iterator[PicoTime]:
    """Yield the rows of PICO's summary of runs: times in nanoseconds, with the columns of the
    metadata."""
    for number, row in read_rows(path, SUMMARY_COLUMNS):
        source_row = SourceRow(path, number, stated, tool_name=row["algo_name"])
        with add_line_to_errors(path, number):
            metadata = parse_metadata(row, row.get("timestamp", ""))
        source_row = replace(source_row, layout=metadata.placement.layout, setting=metadata.setting)
        elements = source_row.parse_whole(row["array_dim"])
        size = source_row.parse_whole(row["buffer_size"])
        test = PicoTest(
            row.get("timestamp", ""),
            row.get("test_id", ""),
            metadata.collective,
            metadata.placement.ranks,
        )
        yield PicoTime(
            source_row,
            test,
            elements,
            size,
            source_row.parse_number(row["median"]) / NANOSECONDS_PER_SECOND,
            source_row.tool_name,
        )


def _read_run_rows(
    path: Path, stated: StatedProperties, imported: ImportedTimes
) -> Iterator[PicoTime]:
    runs = read_runs(path)
    file, metadata = read_metadata(path, stated.metadata) if runs else (path, {})
    for name, run in runs.items():
        for count, cause in (
            (run.empty, "empty file"),
            (len(run.unreadable_files), "file with lines that are no times"),
        ):
            imported.left_out.update({cause: count} if count else {})
        if run.unreadable_files:
            more_text = (
                f", and {len(run.unreadable_files) - 1} more like it"
                if len(run.unreadable_files) > 1
                else ""
            )
            imported.remarks.append(
                f"{name}: {run.unreadable_files[0]}: the file is ignored{more_text}"
            )
        of_tests = {
            number: test_metadata
            for (job, number), test_metadata in metadata.items()
            if job == name
        }
        moved: dict[str, list[str]] = defaultdict(list)
        for number, samples in sorted(run.tests.items()):
            test_metadata = of_tests.get(number)
            if test_metadata is None:
                imported.left_out[f"test {number} of {name}, which is not in {file.name}"] += len(
                    samples
                )
                continue
            placement = choose_placement(
                test_metadata.placement,
                test_metadata.gpu,
                [other.placement for other in of_tests.values()],
                run.allocs,
            )
            if not placement.layout:
                imported.left_out[f"test {number} of {name}, whose placement is irregular"] += len(
                    samples
                )
                continue
            if placement.size != test_metadata.placement.size:
                difference = (
                    f"{file.name} has {test_metadata.placement}, {placement.file} {placement}, "
                    "which is used"
                )
                moved[difference] += [number]
            test = PicoTest(name, number, test_metadata.collective, placement.ranks)
            for sample in sorted(samples, key=lambda sample: (sample.tool_name, sample.elements)):
                source_row = SourceRow(
                    file=path,
                    line=0,
                    stated=stated,
                    layout=placement.layout,
                    tool_name=f"{number}/{sample.file}",
                    setting=test_metadata.setting,
                )
                size = sample.elements * sample.element
                seconds = sample.nanoseconds / NANOSECONDS_PER_SECOND
                yield PicoTime(source_row, test, sample.elements, size, seconds, sample.tool_name)
        for difference, numbers in moved.items():
            tests = f"tests {', '.join(numbers)}" if len(numbers) > 1 else f"test {numbers[0]}"
            imported.remarks.append(f"{name} {tests}: {difference}")


def _add_row(row: PicoTime, follows: bool, imported: ImportedTimes) -> None:
    _, _, collective, ranks = row.test
    size = row.bytes
    if collective in WHOLE_ARRAY_COLLECTIVES and ranks:
        elements = row.elements or 1
        size = elements // ranks * (size // elements)
        if not size:  # fewer elements than ranks
            imported.left_out[f"{collective} of 0 bytes"] += 1
            return
    name = (
        LIBRARY if follows else translate_algorithm(collective, row.tool_name, ranks, row.elements)
    )
    time = PrintedTime(row.seconds, Statistic.LAST_RANK, Repetitions.MEDIAN)
    imported.add_collective(row.source_row, collective, name, ranks, size, time)


FORMAT = Format(
    "pico",
    "PICO",
    read_file,
    mark=r"\A(?=.*\bcollective)(?=.*\b(ranks_per_node|algo_name)\b)",
    reads_archives=True,
    recognizes_folder=is_run_folder,
    options=(*COMMON_OPTIONS, "metadata"),
    examples=(
        "results/lumi/2025_04_07___16_22_51.tar.gz -o lumi.csv",
        "pico.csv -o pico-summary.csv",
    ),
)
