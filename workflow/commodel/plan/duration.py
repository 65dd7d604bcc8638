"""Estimates of durations before anything runs: of a measurement (`Durations`), and of the analysis
after it (`estimate_analysis`).

They are rough. A measurement is predicted with a Hockney model of typical latency and bandwidth for
the platform's launcher. The analysis takes a fixed processor time for each workflow job, case and
prediction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from commodel.errors import UserError
from commodel.models.probes import PLAYER, find_probe
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import (
    Shape,
    depends_on_placement,
    make_builder,
    remove_layout,
    sample_parts,
)
from commodel.patterns.operations import (
    fill_parameters,
    find_operation,
    find_required_ranks,
    is_kernel,
)
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.repeated import Rounds
from commodel.patterns.schedule import Schedule
from commodel.platforms.launchers import LAUNCHERS
from commodel.predictions.model import Model
from commodel.records import ENOUGH_EQUAL_SAMPLES, Case, Measure, Plan, Point
from commodel.substrates import MPI, find_substrate

BATCH_START_SECONDS = 2.0  # start of the driver
START_SECONDS = 0.3  # start of a program, in each pass
UNCERTAINTY_FACTOR = 3.0  # ratio of the upper bound to an estimate
# Ratio of the sample time on a noisy machine to its estimate. The maximum number of samples is
# assumed there.
NOISY_SLOWDOWN = 10.0
# Wall seconds of simulations, fitted to 800 cases on up to 128 ranks, from 8 B to 1 MiB
SIMULATED_START_SECONDS = 0.07  # of a program
SIMULATED_CASE_SECONDS = 3e-3  # to write the schedule of a case, and to join its samples
SIMULATED_PAIR_SECONDS = 5e-4  # the same for a pair of ranks, which needs no schedule
SECONDS_PER_SIMULATED_RANK = 2e-4  # of a case, not of each sample
SECONDS_PER_SIMULATED_MESSAGE = 1e-5  # each sample has one additional message of each rank
SECONDS_PER_SIMULATED_FLOW = 5e-8  # of a message, for each message in flight with it
LARGE_SAMPLE_SECONDS = 1.0  # of a simulation, above which a case is measured last, with one sample
# Bytes: shorter messages of an algorithm have arrived before many others are sent. MPI defaults
# send all at once.
MIN_FLOW_BYTES = 512
# once in a case: the player makes the data and compares what arrives
SECONDS_PER_CHECKED_BYTE = 1.7e-9
SECONDS_PER_SIMULATED_BYTE = 1e-10  # the player copies the data that it sends
# Ratio of the wall time of simulating a kernel to that of its messages: all ranks synchronise
# before each iteration, and the first pass checks the data.
SIMULATED_KERNEL_FACTOR = 16.0
# longest time limit of a simulated case, relative to `measure: {timeout: …}`
SIMULATED_LIMIT_FACTOR = 10
# ranks; above, the time of an algorithm is assumed to be proportional to their number
MAX_SHAPE_RANKS = 256
SHAPE_SIZES = (0, 1 << 20)  # sizes at which shapes are predicted; other sizes are interpolated
MAX_MESSAGES_BUILT = 200_000_000
# Latency in seconds and bandwidth in bytes per second, by launcher
TYPICAL_NETWORKS = {
    "local": (1e-6, 5e9),
    "simgrid": (5e-5, 1e8),
    "slurm": (5e-6, 1e9),
    "hosts": (5e-5, 1e8),
}
PROBE_SECONDS = 1e-4  # time of one sample of a probe, without the time per byte
MESSAGE_COUNT_SETTINGS = "n", "flows", "trips"  # settings of probes that give a number of messages
OPERATIONS_PER_SECOND = 2e9  # additions and multiplications of one process

# Processor seconds of the analysis, measured with 18 models, 179 points and 316 probe cases. Most
# of a workflow job is the start of Python.
SECONDS_PER_WORKFLOW_JOB = 2.5
SECONDS_TO_COLLECT = 3e-3  # for each case or point
SECONDS_TO_FIT = 1e-3  # for each probe case and model
SECONDS_TO_PREDICT = 1.5e-3  # for each point and model: predict, compare and report


def estimate_analysis(plan: Plan) -> float:
    """Return the seconds from the last sample to the report: collect, fit, predict, compare and
    report."""
    families, platforms = len(plan.models), len(plan.platforms)
    points = len(plan.points)
    cases = sum(len(batch.cases) for batch in plan.batches)
    jobs = 1 + platforms + 1 + 2
    per_family = SECONDS_TO_FIT * cases + SECONDS_TO_PREDICT * points
    return (
        SECONDS_PER_WORKFLOW_JOB * jobs
        + SECONDS_TO_COLLECT * (points + cases)
        + families * per_family
    )


class Durations:
    """Estimates for platforms of one launcher.

    A shape is all points that differ in size only (`patterns.build.Shape`). Each shape is predicted
    at two sizes; other sizes are interpolated linearly.
    """

    def __init__(self, launched_by: str, measure: Measure, substrate: str = MPI):
        self.simulated = LAUNCHERS[launched_by].simulated
        self.measure = measure
        self.seconds_per_case = 0.0  # to start and end the processes of another substrate
        latency, bandwidth = TYPICAL_NETWORKS[launched_by]
        if substrate != MPI:
            typical = find_substrate(substrate)
            self.seconds_per_case = typical.seconds_per_case * measure.passes
            latency, bandwidth = typical.latency, typical.bandwidth
        self.typical_network = latency, bandwidth
        values = {
            "alpha.a": Estimate(value=latency, unit="s", low=latency, high=latency),
            "beta.a": Estimate(value=1 / bandwidth, unit="s/B", low=0, high=0),
        }
        self.model = Model.of_set(
            ParameterSet(model="hockney", platform="", source="guess", values=values)
        )
        # for each size of SHAPE_SIZES, a row (see `_estimate_sample`)
        self.shape_costs: dict[Shape, np.ndarray] = {}
        self.messages_built = 0  # of all schedules so far

    @classmethod
    def of_platform(cls, plan: Plan, name: str) -> "Durations":
        """Return the estimates for a platform of a plan."""
        platform = plan.platforms[name]
        return cls(platform.launcher, plan.measure, platform.substrate)

    def estimate_members(self, members: Iterable[Point | Case], upper_bound: bool = False) -> float:
        """Return the seconds of points and cases of probes on a quiet machine, without starts of
        programs; with `upper_bound`, the seconds for a time limit."""
        samples = (
            self._estimate_case(member, upper_bound)
            if isinstance(member, Case)
            else self._estimate_samples(
                self._estimate_sample(member),
                member.ranks,
                upper_bound,
                self.is_large_simulation(member),
            )
            for member in members
        )
        return BATCH_START_SECONDS + sum(self.seconds_per_case + seconds for seconds in samples)

    def estimate_point(self, point: Point) -> float:
        """Return the seconds to measure one point, without starts of programs."""
        return self.estimate_members([point]) - BATCH_START_SECONDS

    def estimate_batch(self, members: Sequence[Point | Case], upper_bound: bool = False) -> float:
        """Return the same with the starts of programs. One start serves all members with the same
        program, ranks and nodes."""
        starts = {
            (find_probe(member.probe).program_name, member.ranks, member.layout, member.where)
            if isinstance(member, Case)
            else (member.predictable, member.ranks, member.layout)
            for member in members
        }
        seconds = SIMULATED_START_SECONDS if self.simulated else START_SECONDS * self.measure.passes
        seconds *= UNCERTAINTY_FACTOR if upper_bound else 1.0
        return self.estimate_members(members, upper_bound) + len(starts) * seconds

    def _estimate_case(self, case: Case, upper_bound: bool) -> float:
        """Return the seconds of all samples of a case; some probes have a fixed number of
        samples."""
        samples = find_probe(case.probe).samples
        if not samples:
            return self._estimate_samples(
                self._estimate_probe_sample(case), case.ranks, upper_bound
            )
        seconds = self._estimate_probe_sample(case)[0]
        if self.simulated:
            # round trips, or a message of each rank
            messages = 2 * int(case.settings.get("trips", case.settings.get("procs", 1)))
            seconds = messages * (
                SECONDS_PER_SIMULATED_MESSAGE
                + SECONDS_PER_SIMULATED_BYTE * int(case.settings["bytes"])
            )
            samples = min(max(samples, self.measure.min_samples), self.measure.max_samples)
        fixed = SIMULATED_PAIR_SECONDS if self.simulated else 0.0
        return (fixed + seconds * (samples + 1)) * (UNCERTAINTY_FACTOR if upper_bound else 1.0)

    def estimate_parts(self, member: Point | Case) -> np.ndarray:
        """Return the estimate of one point or case in two parts: the seconds that a simulator
        spends on messages in flight together, as the second, and all others. Both have different
        errors (`fit_part_factors`)."""
        total = self.estimate_members([member]) - BATCH_START_SECONDS
        seconds_of_flows = 0.0
        if not self.simulated:
            return np.array([total, 0.0])
        if isinstance(member, Point):
            single_sample = self.is_large_simulation(member)
            seconds_of_flows = self._simulate_samples(
                self._estimate_sample(member), member.ranks, single_sample
            )[1]
        elif not find_probe(member.probe).samples:
            seconds_of_flows = self._simulate_samples(
                self._estimate_probe_sample(member), member.ranks
            )[1]
        return np.array([total - seconds_of_flows, seconds_of_flows])

    def _simulate_samples(
        self, cost: np.ndarray, ranks: int, single_sample: bool = False
    ) -> tuple[float, float]:
        """Return the wall seconds to simulate all samples of a case, without and for messages in
        flight together."""
        _, messages, flows, bytes = cost.tolist()
        samples = 2 if single_sample else 2 + ENOUGH_EQUAL_SAMPLES
        sample = (
            SECONDS_PER_SIMULATED_MESSAGE * (messages + ranks) + SECONDS_PER_SIMULATED_BYTE * bytes
        )
        fixed = (
            SIMULATED_CASE_SECONDS
            + SECONDS_PER_SIMULATED_RANK * ranks
            + SECONDS_PER_CHECKED_BYTE * bytes
        )
        return sample * samples + fixed, SECONDS_PER_SIMULATED_FLOW * flows * samples

    def _estimate_probe_sample(self, case: Case) -> np.ndarray:
        """Return what one sample of a probe takes, as `_estimate_sample` does.

        A sample is a round trip. Several messages are assumed to be sent one after the other, as on
        one link.
        """
        schedule = _build_probe_schedule(case) if self.simulated else None
        if schedule is not None:
            return np.array([0.0, *_count_messages(schedule)])
        repeats = max(int(case.settings.get(name, 1)) for name in MESSAGE_COUNT_SETTINGS)
        seconds = (
            PROBE_SECONDS
            + 2 * repeats * int(case.settings.get("bytes", 0)) / self.typical_network[1]
        )
        return np.array([seconds, 2 * case.ranks, 0, 0])

    def is_large_simulation(self, point: Point) -> bool:
        """Return whether SimGrid needs long for one sample of an MPI default, by its number of
        ranks and its operation: it has all messages in flight at once, and the work for each grows
        with their number."""
        if not self.simulated or point.predictable:
            return False
        flows = self._estimate_library_default(point)[2]
        return SECONDS_PER_SIMULATED_FLOW * flows > LARGE_SAMPLE_SECONDS

    def _estimate_samples(
        self, cost: np.ndarray, ranks: int, upper_bound: bool, single_sample: bool = False
    ) -> float:
        """Return the seconds of all samples of a case, given what one takes (see
        `_estimate_sample`).

        On a quiet machine, three times the minimum number of samples is assumed; on a noisy one,
        the maximum.
        """
        if self.simulated:
            estimate = sum(self._simulate_samples(cost, ranks, single_sample))
            return UNCERTAINTY_FACTOR * estimate if upper_bound else estimate
        settings = self.measure
        seconds = float(cost[0])
        samples = min(3 * settings.min_samples, settings.max_samples)
        fixed = seconds * settings.warmup + 1e-3
        estimate = min(seconds * samples, settings.seconds) + fixed
        noisy = min(NOISY_SLOWDOWN * seconds * settings.max_samples, settings.seconds) + fixed
        return max(UNCERTAINTY_FACTOR * estimate, noisy) if upper_bound else estimate

    def _estimate_sample(self, point: Point) -> np.ndarray:
        """Return what one sample of a point takes: its seconds on a machine, and the counts that
        determine the time of a simulation: messages, the sum over messages of those in flight with
        it, and bytes.

        Waves are assumed to run one after the other. Ranks are rounded up to a power of two, so
        that few shapes are predicted.
        """
        if not point.predictable:
            cost = point.waves * self._estimate_library_default(point)
        else:
            has_fixed_ranks = (
                point.topology
                or find_required_ranks(point.operation)
                or depends_on_placement(point)
            )
            ranks = (
                point.ranks
                if has_fixed_ranks
                else min(1 << (point.ranks - 1).bit_length(), MAX_SHAPE_RANKS)
            )
            shape = Shape.of(remove_layout(point, ranks), SHAPE_SIZES)
            if shape not in self.shape_costs:
                self.shape_costs[shape] = self._predict_shape(shape)
            cost_of_empty, cost_of_full = self.shape_costs[shape]
            cost = cost_of_empty + (cost_of_full - cost_of_empty) * (point.bytes / SHAPE_SIZES[1])
            cost *= max(point.ranks / ranks, 1) * point.waves
            cost[0] += self._estimate_computation(point)
            cost[1:] *= SIMULATED_KERNEL_FACTOR if is_kernel(point.operation) else 1.0
        cost[2] *= point.bytes >= MIN_FLOW_BYTES or not point.predictable
        return cost

    def _estimate_computation(self, point: Point) -> float:
        """Return the seconds that the rank with most work computes in one sample of a kernel; 0 if
        the point is no kernel or is simulated."""
        flops = None if is_pattern_file(point.operation) else find_operation(point.operation).flops
        if self.simulated or flops is None:
            return 0.0
        parameters = fill_parameters(point.operation, point.ranks)
        return flops(point.ranks, point.bytes, **parameters) / OPERATIONS_PER_SECOND

    def _estimate_library_default(self, point: Point) -> np.ndarray:
        """Return what one sample of the library default takes, as `_estimate_sample` does.

        It is assumed to have log2 P steps, each with all bytes that a rank has at the end. In a
        simulation, all ranks of an allgather or alltoall are assumed to send to all others at once,
        as SimGrid's default does.
        """
        steps = (point.ranks - 1).bit_length()
        has_blocks = point.operation in ("gather", "scatter", "allgather", "alltoall")
        bytes_at_end = point.bytes * (point.ranks if has_blocks else 1)
        latency, bandwidth = self.typical_network
        sends_to_all = point.operation in ("allgather", "alltoall")
        messages = point.ranks * (point.ranks if sends_to_all else steps)
        in_flight = messages if sends_to_all else point.ranks
        seconds = steps * (latency + bytes_at_end / bandwidth)
        return np.array(
            [seconds, messages, float(messages) * in_flight, float(point.ranks) * bytes_at_end]
        )

    def _predict_shape(self, shape: Shape) -> np.ndarray:
        """Return what a sample takes at each size of a shape, as `_estimate_sample` does."""
        costs = np.zeros((len(shape.sizes), 4))
        for part, count in sample_parts(shape.point):
            build = make_builder(part)
            for size, cost in zip(shape.sizes, costs, strict=True):
                pattern = build(size)
                self.messages_built += pattern.messages
                if self.messages_built > MAX_MESSAGES_BUILT:
                    limit = f"{MAX_MESSAGES_BUILT:,} messages: too many to plan"
                    raise UserError(f"the patterns of this experiment have more than {limit}")
                if pattern.overlapped_seconds is not None:  # the estimate includes the computation
                    pattern = replace(pattern, overlapped_seconds=None)
                cost += np.multiply(count, [self.model.cost(pattern)[0], *_count_messages(pattern)])
        return costs


def fit_part_factors(parts: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the two factors by which the parts of estimates, a row for each case, best explain the
    measured seconds.

    Relative errors are minimized. One more observation of each factor is the common factor of all
    cases, so that cases which have one part only do not leave the other factor undetermined.
    """
    from scipy.optimize import nnls  # takes longer to load than most verbs to run

    common = seconds.sum() / parts.sum()
    factors, _ = nnls(
        np.vstack([parts / seconds[:, None], np.eye(2) / common]), np.ones(len(seconds) + 2)
    )
    return factors


def _build_probe_schedule(case: Case) -> Schedule | None:
    """Return the schedule of a probe that the player executes, else None."""
    entry = find_probe(case.probe)
    return entry.pattern(case.settings) if entry.pattern and entry.program == PLAYER else None


def _count_messages(pattern: Schedule) -> tuple[int, float, float]:
    """Return the messages of a pattern, the sum over messages of those that begin in the same step,
    and the bytes. Messages of repeated rounds count with their mean size."""
    flows = sent = 0.0
    for part in pattern.parts:
        if part.messages:
            rounds = isinstance(part, Rounds)
            sent += part.messages * float((part.sizes if rounds else part.bytes).mean())
            flows += part.messages * part.ranks if rounds else (np.bincount(part.step) ** 2.0).sum()
    return pattern.messages, float(flows), sent
