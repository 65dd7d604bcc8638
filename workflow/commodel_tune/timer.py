"""Timing of an MPI library's own collectives, with or without rules (`LibraryTimer`). Results are
cached in a folder."""

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from commodel import __version__
from commodel.errors import UserError
from commodel.files.atomic import read_json, write_json, write_text
from commodel.files.safe_paths import SafePath
from commodel.files.safe_reading import MIB, read_text
from commodel.measure.batch import measure_batch
from commodel.models.probes import find_probe
from commodel.models.probes.verify import list_cases
from commodel.patterns.points import PlatformResources, make_point
from commodel.plan.duration import Durations
from commodel.plan.planning import record_platform
from commodel.platforms.platform import Platform
from commodel.records import (
    BARRIER,
    LIBRARY,
    Batch,
    Case,
    Choice,
    Measure,
    PlacedWorkload,
    Plan,
    Point,
    StartTimings,
)
from commodel.results.raw_samples import LATE, STOPPED_BY_FAILURES, read_marker, read_samples
from commodel.stats import MIN_NOISE, estimate_noise
from commodel.units import show_value

TIMES_FILE, RAW_FOLDER, RESULTS_FILE = "times.json", "raw", "results.json"
MAX_SECONDS = 1e9  # of a start
# one sample, with a time limit of 20 s
VERIFICATION_SETTINGS = Measure("barrier", 1.0, 1, 1, 1.0, 1, 0, 20.0)


class RuleSyntax(Protocol):
    """The syntax in which an MPI library reads rules for its algorithms."""

    @property
    def file(self) -> str: ...

    @property
    def library(self) -> str: ...

    def text(self, choices: Iterable[Choice]) -> str: ...

    def user_text(self, choices: Iterable[Choice]) -> str: ...

    def further_files(self, choices: Iterable[Choice]) -> Mapping[str, str]: ...

    def environment(self, path: Path, choices: Sequence[Choice]) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class LibraryTimer:
    """A timer of the library's collectives: the platform, how to measure, the syntax of rules, and
    the folder of results."""

    name: str
    platform: Platform
    resources: PlatformResources
    dialect: RuleSyntax
    measure: Measure
    folder: SafePath

    def point(self, workload: PlacedWorkload) -> Point:
        """Return the point of the library default for a workload."""
        return make_point(self.resources, workload._asdict() | {"algorithm": LIBRARY})

    def with_seconds(self, seconds: float) -> "LibraryTimer":
        """Return the timer with another duration of a case's samples."""
        return replace(self, measure=replace(self.measure, seconds=seconds))

    def environment(self, path: SafePath, choices: Sequence[Choice]) -> dict[str, str]:
        """Return the environment variables of the rules. The user's own would override them and are
        refused."""
        settings = dict(self.dialect.environment(path.parent.resolve() / path.name, choices))
        already_set = [name for name in settings if name in os.environ]
        if already_set:
            raise UserError(
                f"{min(already_set)} is set in the environment; wanted: not set, since it would override the rules"
            )
        return settings

    def time(
        self,
        name: str,
        workloads: Collection[PlacedWorkload],
        choices: Iterable[Choice] = (),
        separate: Collection[str] = (),
    ) -> StartTimings:
        """Return the times of some workloads, with rules if `choices` are given.

        A barrier aligns the ranks before each sample. A rule for barriers would therefore change
        all other times, so barriers then have a start of their own. Each operation of `separate`
        has one, too, so that it does not use connections that another has opened."""
        choices = list(choices)
        barrier_choices = [choice for choice in choices if choice.operation == BARRIER]
        other_choices = [choice for choice in choices if choice.operation != BARRIER]
        barriers = [
            workload for workload in workloads if barrier_choices and workload.operation == BARRIER
        ]
        collectives = [workload for workload in workloads if workload not in barriers]
        starts: dict[str, list[PlacedWorkload]] = {}
        for workload in collectives:
            start_name = f"{name}-{workload.operation}" if workload.operation in separate else name
            starts.setdefault(start_name, []).append(workload)
        parts = [
            self._start(start_name, group, other_choices) for start_name, group in starts.items()
        ]
        parts += [self._start(f"{name}-barrier", barriers, barrier_choices)] if barriers else []
        seconds = {workload: time for part in parts for workload, time in part.seconds.items()}
        errors = {workload: error for part in parts for workload, error in part.noise.items()}
        return StartTimings(seconds, sum(part.took for part in parts), errors)

    def find_failures(
        self,
        name: str,
        operation: str,
        sizes: Collection[int],
        choices: Iterable[Choice],
        layout: str,
    ) -> dict[tuple[str, int, int], str]:
        """Return why an operation failed under these rules, by input, ranks of the communicator and
        bytes.

        If all choices are the library default, that is checked. A case that was given up after
        failures of others was not tried, so it then does not count as a failure."""
        choices = list(choices)
        ranks = sorted({choice.ranks for choice in choices})
        point = self.point(PlacedWorkload(operation, ranks[-1], layout, max(sizes)))
        case_settings = [
            dict(variables) for variables in list_cases(operation, point.ranks, sizes, ranks)
        ]
        rules = [choice for choice in choices if choice.algorithm != LIBRARY]
        text = self.dialect.user_text(rules) if rules else ""
        folder = self._prepare_folder(name, text, rules)
        results = folder / RESULTS_FILE
        if not results.exists():
            variables = self.environment(folder / self.dialect.file, rules) if rules else {}
            columns = find_probe("verify").columns
            cases = [
                Case(self.name, "verify", point.ranks, settings, point.layout)
                for settings in case_settings
            ]
            batch = Batch("tune", self.name, point.nodes, (), tuple(cases))
            raw = self._run(folder / RAW_FOLDER, batch, VERIFICATION_SETTINGS, variables)
            rows = []
            for settings, case in zip(case_settings, cases, strict=True):
                marker = read_marker(raw, case.id)
                if marker and (rules or STOPPED_BY_FAILURES not in marker[1]):
                    rows.append([*(settings[column] for column in columns[1:]), marker[1]])
            write_json(results, {"failures": rows})
        try:
            return {
                (str(row[0]), int(row[1]), int(row[2])): str(row[3])
                for row in read_json(results)["failures"]
            }
        except (KeyError, TypeError, ValueError, IndexError):
            raise UserError(
                "found something else, wanted the failures of a start", file=results
            ) from None

    def _start(
        self, name: str, workloads: Collection[PlacedWorkload], choices: list[Choice]
    ) -> StartTimings:
        text = self.dialect.text(choices) if choices else ""
        folder = self._prepare_folder(name, text, choices)
        record = folder / TIMES_FILE
        if not record.exists():
            settings = self.environment(folder / self.dialect.file, choices) if choices else {}
            start = time.monotonic()
            times = self._measure(folder / RAW_FOLDER, workloads, settings)
            rows = [[*workload, *row] for workload, row in times.items()]
            write_json(record, {"took": time.monotonic() - start, "workloads": rows})
        return _read_times(record)

    def _prepare_folder(self, name: str, text: str, choices: Iterable[Choice]) -> SafePath:
        """Return the folder of a start with its rules file. Results of other rules are removed."""
        folder = self.folder / "starts" / name
        texts = {self.dialect.file: text, **self.dialect.further_files(choices)}
        if not all(_has_text(folder / part, wanted) for part, wanted in texts.items()):
            folder.remove_tree()
            folder.mkdir()
            for part, wanted in texts.items():
                write_text(folder / part, wanted)
        return folder

    def _measure(
        self, raw: SafePath, workloads: Collection[PlacedWorkload], settings: Mapping[str, str]
    ) -> dict[PlacedWorkload, tuple[float, float]]:
        """Return the median of each workload in seconds, and the noise of its logarithm.

        A workload that was given up has the time limit; one whose samples are all invalid is
        omitted."""
        points = {workload: self.point(workload) for workload in workloads}
        upper_bound = Durations(self.platform.launcher, self.measure).estimate_members(
            points.values(), upper_bound=True
        )
        nodes = max(point.nodes for point in points.values())
        batch = Batch("tune", self.name, nodes, tuple(points.values()), most=upper_bound)
        self._run(raw, batch, self.measure, settings)
        times = {workload: self._median(raw, point.id) for workload, point in points.items()}
        return {workload: time for workload, time in times.items() if time}

    def _run(
        self, raw: SafePath, batch: Batch, settings: Measure, environment: Mapping[str, str]
    ) -> SafePath:
        raw.mkdir()
        platforms = {self.name: record_platform(self.name, self.platform)}
        plan = Plan("tune", "", "", 1, (), {}, settings, platforms, (batch,), __version__)
        measure_batch(plan, batch, raw, lambda message: None, environment=environment)
        return raw

    def _median(self, raw: SafePath, case: str) -> tuple[float, float] | None:
        marker = read_marker(raw, case)
        if marker:
            return None if marker[0] == LATE else (self.measure.timeout, MIN_NOISE)
        seconds = [
            row["seconds"] for row in read_samples(raw / f"{case}.csv", case) if row["valid"]
        ]
        return median(seconds), estimate_noise(seconds)


def _has_text(file: SafePath, text: str) -> bool:
    return file.exists() and read_text(file, MIB, "rules") == text


def _read_times(record: SafePath) -> StartTimings:
    entries = read_json(record)
    took: Any = entries.get("took")
    rows: Any = entries.get("workloads")
    if not _is_positive(took):
        raise UserError(f"found {show_value(took)}, wanted seconds", file=record, key="took")
    if not isinstance(rows, list):
        raise UserError(f"found {show_value(rows)}, wanted a list", file=record, key="workloads")
    seconds = {}
    noise = {}
    for number, row in enumerate(rows):
        if not _is_timed(row):
            raise UserError(
                f"found {show_value(row)}, wanted operation, ranks, layout, bytes, seconds and noise",
                file=record,
                key=f"workloads[{number}]",
            )
        workload = PlacedWorkload(*row[:4])
        seconds[workload], noise[workload] = float(row[4]), float(row[5])
    return StartTimings(seconds, float(took), noise)


def _is_timed(row: Any) -> bool:
    """Return whether a row has a workload, a time and its noise."""
    if not isinstance(row, list) or len(row) != 6:
        return False
    kinds = [str, int, str, int]
    is_workload = [type(value) for value in row[:4]] == kinds
    return is_workload and all(map(_is_positive, row[4:]))


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= MAX_SECONDS
