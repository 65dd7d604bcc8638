"""Estimates of durations before anything runs: of a measurement (`Durations`), and of the analysis after it
(`estimate_analysis`).

They are rough. A measurement is predicted with a Hockney model of typical latency and bandwidth for the platform's
launcher. The analysis takes a fixed processor time for each workflow job, case and prediction.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from commodel.errors import UserError
from commodel.models.probes import PLAYER, probe
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import Shape, make_builder, remove_layout, sample_parts
from commodel.patterns.operations import find_operation, list_summands, make_tiles, required_ranks
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.schedule import Schedule
from commodel.platforms.launchers import LAUNCHERS
from commodel.predictions.model import Model
from commodel.records import Case, Measure, Plan, Point

BATCH_START_SECONDS = 2.0  # start of the driver and its programs
UNCERTAINTY_FACTOR = 3.0  # ratio of the upper bound to an estimate
# Ratio of the sample time on a noisy machine to its estimate. The maximum number of samples is assumed there.
NOISY_SLOWDOWN = 10.0
SECONDS_PER_SIMULATED_MESSAGE = 4e-5  # wall time; the player is the program that executes schedules
SECONDS_PER_SIMULATED_BYTE = 4e-10  # wall time: the player copies the data that it sends
# Ratio of the wall time of simulating a kernel to that of its messages: all ranks synchronise before each iteration,
# and the first pass checks the data.
SIMULATED_KERNEL_FACTOR = 4.0
MAX_SHAPE_RANKS = 256  # ranks; above, the time of an algorithm is assumed to be proportional to their number
SHAPE_BYTES = (0, 1 << 20)  # sizes at which shapes are predicted; other sizes are interpolated
MAX_MESSAGES_BUILT = 200_000_000
# Latency in seconds and bandwidth in bytes per second, by launcher
TYPICAL_NETWORKS = {"local": (1e-6, 5e9), "simgrid": (5e-5, 1e8), "slurm": (5e-6, 1e9), "hosts": (5e-5, 1e8)}
TYPICAL_NETWORKS["overlay"] = 1e-4, 1e9
PROBE_SECONDS = 1e-4  # time of one sample of a probe, without the time per byte
MESSAGE_COUNT_SETTINGS = "n", "flows", "trips"  # settings of probes that give a number of messages
OPERATIONS_PER_SECOND = 2e9  # additions and multiplications of one process
OPERATIONS_PER_CELL = 8  # of the wave equation in one step
OVERLAY_SECONDS = 0.2  # to start, check and stop the overlay network of a case, in each pass

# Processor seconds of the analysis, measured with 18 models, 179 points and 316 probe cases. Most of a workflow job is
# the start of Python.
SECONDS_PER_WORKFLOW_JOB = 2.5
SECONDS_TO_COLLECT = 3e-3  # for each case or point
SECONDS_TO_FIT = 1e-3  # for each probe case and model
SECONDS_TO_PREDICT = 1.5e-3  # for each point and model: predict, compare and report


def estimate_analysis(plan: Plan) -> float:
    """Return the seconds from the last sample to the report: collect, fit, predict, compare and report."""
    families, platforms = len(plan.families), len(plan.platforms)
    points, cases = len(plan.points), sum(len(batch.cases) for batch in plan.batches)
    jobs = 1 + families * platforms + families + 2
    per_family = SECONDS_TO_FIT * cases + SECONDS_TO_PREDICT * points
    return SECONDS_PER_WORKFLOW_JOB * jobs + SECONDS_TO_COLLECT * (points + cases) + families * per_family


class Durations:
    """Estimates for platforms of one launcher.

    A shape is all points that differ in size only (`patterns.build.Shape`). Each shape is predicted at two sizes; other
    sizes are interpolated linearly.
    """

    def __init__(self, launched_by: str, measure: Measure, overlay: bool = False):
        self.simulated = LAUNCHERS[launched_by].simulated
        self.measure = measure
        self.overlay_seconds = OVERLAY_SECONDS * measure.passes if overlay else 0.0
        self.typical_network = latency, bandwidth = TYPICAL_NETWORKS["overlay" if overlay else launched_by]
        values = {"alpha.a": Estimate(latency, "s", latency, latency), "beta.a": Estimate(1 / bandwidth, "s/B", 0, 0)}
        self.model = Model.of_set(ParameterSet("hockney", "", "guess", values))
        # For each size of SHAPE_BYTES: seconds of a sample, and of simulating it
        self.shape_seconds: dict[Shape, tuple[tuple[float, float], ...]] = {}
        self.messages_built = 0  # of all schedules so far

    def estimate_points(self, points: Iterable[Point], upper_bound: bool = False) -> float:
        """Return the seconds of points on a quiet machine; with `upper_bound`, the seconds for a time limit."""
        samples = (self._estimate_samples(*self._estimate_sample(point), upper_bound) for point in points)
        return BATCH_START_SECONDS + sum(self.overlay_seconds + seconds for seconds in samples)

    def estimate_cases(self, cases: Iterable[Case], upper_bound: bool = False) -> float:
        """Return the same for the cases of probes."""
        samples = (self._estimate_case(case, upper_bound) for case in cases)
        return BATCH_START_SECONDS + sum(self.overlay_seconds + seconds for seconds in samples)

    def _estimate_case(self, case: Case, upper_bound: bool) -> float:
        """Return the seconds of all samples of a case; some probes have a fixed number of samples."""
        if not (samples := probe(case.probe).samples):
            return self._estimate_samples(*self._estimate_probe_sample(case), upper_bound)
        seconds, _ = self._estimate_probe_sample(case)
        if self.simulated:
            seconds = 2 * int(case.settings["trips"]) * _simulation_seconds(1, case.settings["bytes"])
            samples = min(max(samples, self.measure.min_samples), self.measure.max_samples)
        return seconds * (samples + 1) * (UNCERTAINTY_FACTOR if upper_bound else 1.0)

    def _estimate_probe_sample(self, case: Case) -> tuple[float, float]:
        """Return the seconds of one sample of a probe, and those of simulating it.

        A sample is a round trip. Several messages are assumed to be sent one after the other, as on one link.
        """
        if self.simulated and (schedule := _build_probe_schedule(case)) is not None:
            return 0.0, _estimate_simulation(schedule)
        repeats = max(int(case.settings.get(name, 1)) for name in MESSAGE_COUNT_SETTINGS)
        seconds = PROBE_SECONDS + 2 * repeats * int(case.settings.get("bytes", 0)) / self.typical_network[1]
        return seconds, 2 * case.ranks * SECONDS_PER_SIMULATED_MESSAGE

    def estimate_sample(self, point: Point) -> float:
        """Return the seconds of one sample of a point."""
        return self._estimate_sample(point)[0]

    def _estimate_samples(self, seconds: float, simulation: float, upper_bound: bool) -> float:
        """Return the seconds of all samples of a case.

        On a quiet machine, three times the minimum number of samples is assumed; on a noisy one, the maximum.
        """
        settings = self.measure
        if self.simulated:
            estimate = simulation * (settings.min_samples + max(settings.warmup, 1))
            return UNCERTAINTY_FACTOR * estimate if upper_bound else estimate
        samples = min(3 * settings.min_samples, settings.max_samples)
        fixed = seconds * settings.warmup + 1e-3
        estimate = min(seconds * samples, settings.seconds) + fixed
        noisy = min(NOISY_SLOWDOWN * seconds * settings.max_samples, settings.seconds) + fixed
        return max(UNCERTAINTY_FACTOR * estimate, noisy) if upper_bound else estimate

    def _estimate_sample(self, point: Point) -> tuple[float, float]:
        """Return the seconds of one sample of a point, and those of simulating it.

        Waves are assumed to run one after the other. Ranks are rounded up to a power of two, so that few shapes are
        predicted.
        """
        if not point.predictable:
            return tuple(point.waves * number for number in self._estimate_library_default(point))
        has_fixed_ranks = point.topology or required_ranks(point.operation)
        ranks = point.ranks if has_fixed_ranks else min(1 << (point.ranks - 1).bit_length(), MAX_SHAPE_RANKS)
        shape = Shape.of(remove_layout(point, ranks), SHAPE_BYTES)
        if shape not in self.shape_seconds:
            self.shape_seconds[shape] = self._predict_shape(shape)
        (empty, simulated_empty), (full, simulated_full) = self.shape_seconds[shape]
        size_ratio, scale = point.bytes / SHAPE_BYTES[1], max(point.ranks / ranks, 1) * point.waves
        seconds = scale * (empty + (full - empty) * size_ratio) + self._estimate_computation(point)
        simulation = scale * (simulated_empty + (simulated_full - simulated_empty) * size_ratio)
        return seconds, simulation * (SIMULATED_KERNEL_FACTOR if _is_kernel(point) else 1.0)

    def _estimate_computation(self, point: Point) -> float:
        """Return the seconds of computing the largest rectangle of a kernel in one sample, over all iterations; 0 if
        the point is no kernel or is simulated."""
        if self.simulated or not _is_kernel(point):
            return 0.0
        area = make_tiles(point.operation, point.ranks).area.max()
        iterations = sum(count for _, count in list_summands(point.operation, point.ranks))
        numbers = point.bytes / 8  # of a block of b × b numbers; the product of two blocks takes 2 b³ operations
        operations_each = (
            2 * numbers**1.5 if find_operation(point.operation).program == "summa" else OPERATIONS_PER_CELL
        )
        return float(area) * iterations * operations_each / OPERATIONS_PER_SECOND

    def _estimate_library_default(self, point: Point) -> tuple[float, float]:
        """Return the seconds of a sample of the library default, and those of simulating it.

        It is assumed to have log2 P steps, each with all bytes that a rank has at the end. An alltoall is assumed to
        send messages between all pairs of ranks.
        """
        steps = (point.ranks - 1).bit_length()
        has_blocks = point.operation in ("gather", "scatter", "allgather", "alltoall")
        bytes_at_end = point.bytes * (point.ranks if has_blocks else 1)
        latency, bandwidth = self.typical_network
        messages = point.ranks * (point.ranks if point.operation == "alltoall" else steps)
        seconds = steps * (latency + bytes_at_end / bandwidth)
        return seconds, _simulation_seconds(messages, point.ranks * bytes_at_end)

    def _predict_shape(self, shape: Shape) -> tuple[tuple[float, float], ...]:
        """Return the seconds at each size of a shape, and those of simulating it."""
        predictions = np.zeros((len(shape.sizes), 2))
        for part, count in sample_parts(shape.point):
            build = make_builder(part)
            for size, prediction in zip(shape.sizes, predictions, strict=True):
                pattern = build(size)
                self.messages_built += pattern.messages
                if self.messages_built > MAX_MESSAGES_BUILT:
                    limit = f"{MAX_MESSAGES_BUILT:,} messages: too many to plan"
                    raise UserError(f"the patterns of this experiment have more than {limit}")
                if pattern.overlapped_seconds is not None:  # the estimate includes the computation
                    pattern = replace(pattern, overlapped_seconds=None)
                prediction += count * self.model.cost(pattern)[0], count * _estimate_simulation(pattern)
        return tuple(map(tuple, predictions.tolist()))


def _build_probe_schedule(case: Case) -> Schedule | None:
    """Return the schedule of a probe that the player executes, else None."""
    entry = probe(case.probe)
    return entry.pattern(case.settings) if entry.pattern and entry.program == PLAYER else None


def _estimate_simulation(pattern: Schedule) -> float:
    """Return the wall time in seconds of simulating a pattern on this machine. Messages of repeated rounds count with
    their mean size."""
    parts = [part for part in pattern.parts if part.messages]
    sent = sum(part.messages * float(getattr(part, "bytes", part.sizes).mean()) for part in parts)
    return _simulation_seconds(pattern.messages, sent)


def _simulation_seconds(messages: int, bytes: float) -> float:
    return messages * SECONDS_PER_SIMULATED_MESSAGE + bytes * SECONDS_PER_SIMULATED_BYTE


def _is_kernel(point: Point) -> bool:
    return not is_pattern_file(point.operation) and find_operation(point.operation).tiles is not None
