"""Estimates of durations before anything runs: of a measurement (`Durations`), and of the analysis after it
(`of_analysis`).

They are rough. A measurement is predicted with a Hockney model of typical latency and bandwidth for the platform's
launcher. The analysis takes a fixed processor time for each workflow job, case and prediction.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from commodel.errors import UserError
from commodel.models.probes import PLAYER, probe
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import Shape, builder, remove_layout, sample_parts
from commodel.patterns.operations import operation, parts, ranks_of, tiles
from commodel.patterns.schedule import Schedule
from commodel.patterns.written import is_written
from commodel.platforms.launchers import LAUNCHERS
from commodel.predictions.model import Model
from commodel.records import Case, Measure, Plan, Point

START = 2.0  # seconds to start a batch: the driver and its programs
UNSURE = 3.0  # factor by which an estimate may be wrong
SLOWEST = 10.0  # times its guess that a sample may take, if the maximum number of samples is needed
SIMULATED_MESSAGE, SIMULATED_BYTE = 4e-5, 4e-10  # wall time of simulating one: the player copies the data that it sends
OF_KERNEL = 4.0  # times as much: all ranks synchronise before each iteration, and the first pass checks the data
MOST_RANKS = 256  # ranks; beyond, the cost of an algorithm is taken to grow in proportion
ENDS = (0, 1 << 20)  # bytes that shapes are predicted at
MOST_BUILT = 200_000_000
GUESS = {"local": (1e-6, 5e9), "simgrid": (5e-5, 1e8), "slurm": (5e-6, 1e9), "hosts": (5e-5, 1e8)}  # seconds, bytes/s
GUESS["overlay"] = 1e-4, 1e9
PROBE = 1e-4  # seconds of a sample of a probe, beside its bytes
REPEATED = "n", "flows", "trips"  # settings of probes that are a number of messages
RATE = 2e9  # additions and multiplications a second of a process that computes
STENCIL = 8  # of them for a cell of the wave
NETWORK = 0.2  # seconds in each pass for the network of a case on an overlay: to come up, to be checked, to end

# Seconds of one core, measured with 18 models, 179 points and 316 probe cases. Most is the start of Python in each job.
JOB = 2.5
COLLECTED = 3e-3  # a case
FITTED = 1e-3  # a probe case, for each model
PREDICTED = 1.5e-3  # a point, for each model: predicted, compared and reported


def of_analysis(plan: Plan) -> float:
    """Return the seconds from the last sample to the report: collect, fit, predict, compare and report."""
    families, platforms = len(plan.families), len(plan.platforms)
    points, cases = len(plan.points), sum(len(batch.cases) for batch in plan.batches)
    jobs = 1 + families * platforms + families + 2
    return JOB * jobs + COLLECTED * (points + cases) + families * (FITTED * cases + PREDICTED * points)


class Durations:
    """Estimates for platforms of one launcher. Each shape is predicted at two sizes; other sizes are interpolated
    linearly."""

    def __init__(self, launched_by: str, measure: Measure, overlay: bool = False):
        self.simulated = LAUNCHERS[launched_by].simulated
        self.measure = measure
        self.network = NETWORK * measure.passes if overlay else 0.0
        self.guess = latency, bandwidth = GUESS["overlay" if overlay else launched_by]
        values = {"alpha.a": Estimate(latency, "s", latency, latency), "beta.a": Estimate(1 / bandwidth, "s/B", 0, 0)}
        self.model = Model.of_set(ParameterSet("hockney", "", "guess", values))
        self.lines: dict[Shape, tuple[tuple[float, float], ...]] = {}
        self.built = 0  # messages, of all schedules that estimates were made from

    def of_points(self, points: Iterable[Point], most: bool = False) -> float:
        """Return the seconds of points on a quiet machine; with `most`, the seconds that a time limit should allow."""
        return START + sum(self.network + self._of_samples(*self._once(point), most) for point in points)

    def of_cases(self, cases: Iterable[Case], most: bool = False) -> float:
        return START + sum(self.network + self._of_case(case, most) for case in cases)

    def _of_case(self, case: Case, most: bool) -> float:
        if not (samples := probe(case.probe).samples):
            return self._of_samples(*self._probe(case), most)
        seconds, _ = self._probe(case)
        if self.simulated:
            seconds = 2 * int(case.settings["trips"]) * (SIMULATED_MESSAGE + case.settings["bytes"] * SIMULATED_BYTE)
            samples = min(max(samples, self.measure.min_samples), self.measure.max_samples)
        return seconds * (samples + 1) * (UNSURE if most else 1.0)

    def _probe(self, case: Case) -> tuple[float, float]:
        """Return the seconds of a sample of a probe, and those of simulating it.

        A sample is a round trip; several messages count one after the other, as on one link.
        """
        if self.simulated and (played := _played(case)) is not None:
            return 0.0, _simulating(played)
        repeats = max(int(case.settings.get(name, 1)) for name in REPEATED)
        seconds = PROBE + 2 * repeats * int(case.settings.get("bytes", 0)) / self.guess[1]
        return seconds, 2 * case.ranks * SIMULATED_MESSAGE

    def of_sample(self, point: Point) -> float:
        """Return the seconds of one sample of a point."""
        return self._once(point)[0]

    def _of_samples(self, seconds: float, simulating: float, most: bool) -> float:
        """Return the seconds of all samples of a case.

        On a quiet machine, three times the minimum number of samples is assumed; on a noisy one, the maximum.
        """
        settings = self.measure
        if self.simulated:
            about = simulating * (settings.min_samples + max(settings.warmup, 1))
            return UNSURE * about if most else about
        samples = min(3 * settings.min_samples, settings.max_samples)
        around = seconds * settings.warmup + 1e-3
        about = min(seconds * samples, settings.seconds) + around
        noisy = min(SLOWEST * seconds * settings.max_samples, settings.seconds) + around
        return max(UNSURE * about, noisy) if most else about

    def _once(self, point: Point) -> tuple[float, float]:
        """Return the seconds of one sample of a point, and those of simulating it.

        Waves count one after the other. Ranks are rounded up to a power of two, so that few shapes are predicted.
        """
        if not point.predictable:
            return tuple(point.waves * number for number in self._unknown(point))
        fixed = point.topology or ranks_of(point.operation)
        ranks = point.ranks if fixed else min(1 << (point.ranks - 1).bit_length(), MOST_RANKS)
        shape = Shape.of(remove_layout(point, ranks), ENDS)
        if shape not in self.lines:
            self.lines[shape] = self._predict(shape)
        (low, little), (high, much) = self.lines[shape]
        part, scale = point.bytes / ENDS[1], max(point.ranks / ranks, 1) * point.waves
        seconds = scale * (low + (high - low) * part) + self._computing(point)
        simulating = scale * (little + (much - little) * part)
        return seconds, simulating * (OF_KERNEL if _is_kernel(point) else 1.0)

    def _computing(self, point: Point) -> float:
        """Return the seconds that the largest rectangle of a kernel is computed in a sample, all iterations together;
        else 0."""
        if self.simulated or not _is_kernel(point):
            return 0.0
        area = tiles(point.operation, point.ranks).area.max()
        iterations = sum(count for _, count in parts(point.operation, point.ranks))
        numbers = point.bytes / 8  # of a block; a product of two blocks multiplies and adds their sides' times
        of_unit = 2 * numbers**1.5 if operation(point.operation).program == "summa" else STENCIL
        return float(area) * iterations * of_unit / RATE

    def _unknown(self, point: Point) -> tuple[float, float]:
        """Return the seconds of a sample of the library default, and those of simulating it.

        It is taken to have log2 P steps, each with all bytes that a rank has in the end; an alltoall has messages
        between all pairs of ranks.
        """
        steps = (point.ranks - 1).bit_length()
        held = point.bytes * (point.ranks if point.operation in ("gather", "scatter", "allgather", "alltoall") else 1)
        latency, bandwidth = self.guess
        messages = point.ranks * (point.ranks if point.operation == "alltoall" else steps)
        return steps * (latency + held / bandwidth), messages * SIMULATED_MESSAGE + point.ranks * held * SIMULATED_BYTE

    def _predict(self, shape: Shape) -> tuple[tuple[float, float], ...]:
        """Return the seconds at each size of a shape, and those of simulating it."""
        predictions = np.zeros((len(shape.sizes), 2))
        for part, count in sample_parts(shape.point):
            build = builder(part)
            for size, prediction in zip(shape.sizes, predictions, strict=True):
                pattern = build(size)
                self.built += pattern.messages
                if self.built > MOST_BUILT:
                    limit = f"{MOST_BUILT:,} messages: too many to plan"
                    raise UserError(f"the patterns of this experiment have more than {limit}")
                if pattern.overlapped_seconds is not None:  # computation during messages takes time, too
                    pattern = replace(pattern, overlapped_seconds=None)
                prediction += count * self.model.cost(pattern)[0], count * _simulating(pattern)
        return tuple(map(tuple, predictions.tolist()))


def _played(case: Case) -> Schedule | None:
    entry = probe(case.probe)
    return entry.pattern(case.settings) if entry.pattern and entry.program == PLAYER else None


def _simulating(pattern: Schedule) -> float:
    """Return the seconds that this machine simulates a pattern. Messages of repeated rounds count with their mean
    size."""
    parts = [part for part in pattern.parts if part.messages]
    sent = sum(part.messages * float(getattr(part, "bytes", part.sizes).mean()) for part in parts)
    return pattern.messages * SIMULATED_MESSAGE + sent * SIMULATED_BYTE


def _is_kernel(point: Point) -> bool:
    return not is_written(point.operation) and operation(point.operation).tiles is not None
