"""Timing of a library's own collectives, with rules or without (`Place`). Results are cached in a folder."""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Protocol

from commodel import __version__
from commodel.errors import UserError
from commodel.files.atomic import read_json, write_json, write_text
from commodel.files.safe_paths import SafePath
from commodel.files.safe_reading import MIB, read_text
from commodel.measure.batch import measure
from commodel.models.probes import probe
from commodel.models.probes.verify import list_cases
from commodel.patterns.points import Setting, make_point
from commodel.plan.duration import Durations
from commodel.plan.planning import record_platform
from commodel.platforms.platform import Platform
from commodel.records import BARRIER, LIBRARY, Batch, Case, Choice, Measure, PlacedWorkload, Plan, Point, StartTimings
from commodel.results.raw_samples import GIVEN_UP, LATE, read_marker, read_samples
from commodel.stats import MIN_NOISE, estimate_noise

TIMES, RAW, RESULTS = "times.json", "raw", "results.json"
VERIFIED = Measure("barrier", 1.0, 1, 1, 1.0, 1, 0, 20.0)  # samples of a verified result, and its time limit


class Dialect(Protocol):
    """The syntax in which an MPI library reads rules for its algorithms."""

    @property
    def file(self) -> str: ...

    def text(self, choices: Iterable[Choice]) -> str: ...

    def user_text(self, choices: Iterable[Choice]) -> str: ...

    def environment(self, path: Path, operations: Iterable[str]) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Place:
    """Where and how the library is timed."""

    name: str
    platform: Platform
    setting: Setting
    dialect: Dialect
    measure: Measure
    folder: SafePath

    def point(self, workload: PlacedWorkload) -> Point:
        """Return the point of the library default for a workload."""
        return make_point(self.setting, workload._asdict() | {"algorithm": LIBRARY})

    def with_seconds(self, seconds: float) -> "Place":
        """Return the place with another duration of a case's samples."""
        return replace(self, measure=replace(self.measure, seconds=seconds))

    def environment(self, path: SafePath, operations: Iterable[str]) -> dict[str, str]:
        """Return the environment variables of the rules. The user's own would override them and are refused."""
        settings = dict(self.dialect.environment(path.parent.resolve() / path.name, operations))
        if taken := [name for name in settings if name in os.environ]:
            raise UserError(f"{min(taken)} is set in the environment; wanted: not set, since rules are tried here")
        return settings

    def time(
        self,
        name: str,
        workloads: Collection[PlacedWorkload],
        choices: Iterable[Choice] = (),
        apart: Collection[str] = (),
    ) -> StartTimings:
        """Return the times of some workloads, with rules if there are choices. A barrier aligns the ranks before each
        sample. A rule for barriers would therefore change all other times, so barriers then have a start of their own.
        The operations `apart` have one, too, so that none inherits the connections of another."""
        choices = list(choices)
        of_barriers = [choice for choice in choices if choice.operation == BARRIER]
        of_others = [choice for choice in choices if choice.operation != BARRIER]
        barriers = [workload for workload in workloads if of_barriers and workload.operation == BARRIER]
        others = [workload for workload in workloads if workload not in barriers]
        groups: dict[str, list[PlacedWorkload]] = {}
        for workload in others:
            groups.setdefault(f"{name}-{workload.operation}" if workload.operation in apart else name, []).append(
                workload
            )
        parts = [self._start(start, group, of_others) for start, group in groups.items()]
        parts += [self._start(f"{name}-barrier", barriers, of_barriers)] if barriers else []
        seconds = {workload: time for part in parts for workload, time in part.seconds.items()}
        errors = {workload: error for part in parts for workload, error in part.noise.items()}
        return StartTimings(seconds, sum(part.took for part in parts), errors)

    def find_failures(
        self, name: str, operation: str, sizes: Collection[int], choices: Iterable[Choice], layout: str
    ) -> dict[tuple[str, int, int], str]:
        """Return why an operation failed under these rules, by input, ranks of the communicator and bytes.

        Without choices, the library's default is checked. A case that was given up after others is then no failure,
        since it was not tried.
        """
        choices = list(choices)
        ranks = sorted({choice.ranks for choice in choices})
        point = self.point(PlacedWorkload(operation, ranks[-1], layout, max(sizes)))
        found = [dict(settings) for settings in list_cases(operation, point.ranks, sizes, ranks)]
        ruled = [choice for choice in choices if choice.algorithm != LIBRARY]
        folder = self._ruled_folder(name, self.dialect.user_text(ruled) if ruled else "")
        record = folder / RESULTS
        if not record.exists():
            settings = self.environment(folder / self.dialect.file, {operation}) if ruled else {}
            columns = probe("verify").columns
            cases = [Case(self.name, "verify", point.ranks, about, point.layout) for about in found]
            raw = self._run(folder / RAW, Batch("tune", self.name, point.nodes, (), tuple(cases)), VERIFIED, settings)
            failed = [(about, read_marker(raw, case.id)) for about, case in zip(found, cases, strict=True)]
            rows = [
                [*(about[column] for column in columns[1:]), why[1]]
                for about, why in failed
                if why and (ruled or GIVEN_UP not in why[1])
            ]
            write_json(record, {"failures": rows})
        try:
            return {(str(row[0]), int(row[1]), int(row[2])): str(row[3]) for row in read_json(record)["failures"]}
        except (KeyError, TypeError, ValueError, IndexError):
            raise UserError("found something else, wanted the failures of a start", file=record) from None

    def _start(self, name: str, workloads: Collection[PlacedWorkload], choices: list[Choice]) -> StartTimings:
        folder = self._ruled_folder(name, self.dialect.text(choices) if choices else "")
        record = folder / TIMES
        if not record.exists():
            operations = {choice.operation for choice in choices}
            settings = self.environment(folder / self.dialect.file, operations) if choices else {}
            begun = time.monotonic()
            times = self._measure(folder / RAW, workloads, settings)
            write_json(
                record,
                {"took": time.monotonic() - begun, "workloads": [[*workload, *row] for workload, row in times.items()]},
            )
        return _read(record)

    def _ruled_folder(self, name: str, text: str) -> SafePath:
        """Return the folder of a start, with its rules in it and nothing of a session that chose otherwise."""
        folder = self.folder / "starts" / name
        file = folder / self.dialect.file
        if not (file.exists() and read_text(file, MIB, "rules") == text):
            folder.remove_tree()
            folder.mkdir()
            write_text(file, text)
        return folder

    def _measure(
        self, raw: SafePath, workloads: Collection[PlacedWorkload], settings: Mapping[str, str]
    ) -> dict[PlacedWorkload, tuple[float, float]]:
        """Return the median of each workload and the noise of its logarithm; a workload without a valid sample is left
        out."""
        points = {workload: self.point(workload) for workload in workloads}
        most = Durations(self.platform.launcher, self.measure).estimate_points(list(points.values()), upper_bound=True)
        nodes = max(point.nodes for point in points.values())
        batch = Batch("tune", self.name, nodes, tuple(points.values()), most=most)
        self._run(raw, batch, self.measure, settings)
        times = {workload: self._median(raw, point.id) for workload, point in points.items()}
        return {workload: time for workload, time in times.items() if time}

    def _run(self, raw: SafePath, batch: Batch, how: Measure, settings: Mapping[str, str]) -> SafePath:
        raw.mkdir()
        platforms = {self.name: record_platform(self.name, self.platform)}
        plan = Plan("tune", "", "", 1, (), {}, how, platforms, (batch,), __version__)
        measure(plan, batch, raw, lambda message: None, environment=settings)
        return raw

    def _median(self, raw: SafePath, case: str) -> tuple[float, float] | None:
        if why := read_marker(raw, case):
            return None if why[0] == LATE else (self.measure.timeout, MIN_NOISE)
        seconds = [row["seconds"] for row in read_samples(raw / f"{case}.csv", case) if row["valid"]]
        return median(seconds), estimate_noise(seconds)


def _read(record: SafePath) -> StartTimings:
    noted = read_json(record)
    try:
        listed = noted.get("workloads", noted.get("jobs"))  # the name in older versions
        rows = {PlacedWorkload(str(row[0]), int(row[1]), str(row[2]), int(row[3])): row[4:] for row in listed}
        seconds, errors = ({workload: float(times[at]) for workload, times in rows.items()} for at in (0, 1))
        return StartTimings(seconds, float(noted["took"]), errors)
    except (KeyError, TypeError, ValueError, IndexError):
        raise UserError("found something else, wanted the times of a start", file=record) from None
