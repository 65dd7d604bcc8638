"""What PICO measured: folders and archives of runs (`runs.py`), its summaries of them, and tables of several systems.

A number of elements is that of the array of one rank: of gather, allgather, scatter and alltoall the whole one, which
is divided by the number of ranks here. Where there are fewer elements than ranks, blocks are empty, and the row is left
out. Medians are taken; a run, its library, rails, GPU and notes become the setting.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from commodel.files.tables import on_line, read_rows
from commodel.files.text import read_lines
from commodel.interchange import MAX_FILE, Format, Given, Place, Readings
from commodel.interchange.pico.names import following_default, our_name
from commodel.interchange.pico.placement import placement_of
from commodel.interchange.pico.runs import is_run, metadata_of, read_metadata, read_runs, setting_of
from commodel.records import LIBRARY

TABLE = ("collective", "algorithm", "nodes", "ranks_per_node", "bytes", "median_s")
SUMMARY = ("collective_type", "algo_name", "nnodes", "tasks_per_node", "array_dim", "buffer_size", "median")
SECOND = 1e9  # nanoseconds
WHOLE = ("gather", "allgather", "scatter", "alltoall")


class Test(NamedTuple):
    """Within which times may be compared."""

    run: str
    number: str
    collective: str
    ranks: int

    def __str__(self) -> str:
        return " ".join(part for part in (self.run, self.number and f"test {self.number},", self.collective) if part)


@dataclass(frozen=True)
class Row:
    """A median as it is told; `bytes` is the whole array."""

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
    """One that PICO makes of a run: times in nanoseconds, beside all that metadata say."""
    for number, row in read_rows(path, SUMMARY):
        place = Place(path, number, given, called=row["algo_name"])
        with on_line(path, number):
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
