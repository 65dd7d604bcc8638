"""Validation of tuning rules on the real MPI library: rules with wrong results are dropped, then
the others are timed. A short screening precedes the validation: only rules that are faster in it
are timed again.

`measure_gains` times the MPI library's own collectives with rules and without any, in alternation,
at sizes between those that were measured before. The gain of a rule is the geometric mean of the
time ratios of consecutive starts, with its interval. Workloads whose library default no rule
changes are controls: a gain there is an effect of the machine. `select_for_validation` and
`confirm_rules` select the rules that stay."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt
from statistics import mean, variance

import numpy as np
from scipy.optimize import brentq
from scipy.special import polygamma
from scipy.stats import t

from commodel.records import LIBRARY, Choice, PlacedWorkload
from commodel_tune.search import CollectiveTimer, list_rule_choices

CONFIDENCE = 0.95  # probability that an interval contains the true gain
MIN_ALLOWED_GAIN = 0.95  # smallest gain that a rule may have in a workload
MIN_GAIN_TO_VALIDATE = 1.05  # smallest gain of a rule that is timed
MIN_POOLED_WORKLOADS = 5  # workloads; with fewer, the scatter of their variances is not estimated
MIN_VARIANCE = 1e-8  # lower limit of a variance: differences below 0.01 % do not count
MIN_DOF, MAX_DOF = 0.1, 50.0  # degrees of freedom of the prior variance


@dataclass(frozen=True)
class Gain:
    """The time without rules over the time with them (`ratio`), with its interval; 1 is no
    change."""

    ratio: float
    low: float
    high: float
    with_rules: float  # seconds, the median over starts
    without: float
    pairs: tuple[float, ...] = ()  # the logarithm in each pair of starts

    @property
    def is_faster(self) -> bool:
        return self.low > 1

    @property
    def is_slower(self) -> bool:
        """Whether the gain is below MIN_ALLOWED_GAIN, and the whole interval below 1."""
        return self.ratio < MIN_ALLOWED_GAIN and self.high < 1

    def widen(self, log_margin: float) -> "Gain":
        return replace(self, low=self.low * exp(-log_margin), high=self.high * exp(log_margin))


@dataclass(frozen=True)
class Control:
    """The result of the control workloads, which rules do not change: their gains are effects of
    the machine."""

    workloads: int  # number of control workloads
    excluding_one: int  # those whose intervals exclude 1
    # widening on both sides, as a logarithm, after which 95 % of the intervals contain 1
    log_margin: float


def compute_control(gains: Iterable[Gain]) -> Control:
    """Return the control: how many intervals of control workloads exclude 1, and by how much all
    intervals have to widen.

    Pairs of starts show the variation from one start to the next, but neither an effect of their
    order nor a change of the machine between all of them. Intervals are therefore widened until
    those of the control workloads contain 1, except for as many as exclude it by chance.
    """
    margins = sorted((max(log(gain.low), -log(gain.high), 0.0) for gain in gains), reverse=True)
    by_chance = round((1 - CONFIDENCE) * len(margins))
    return Control(
        len(margins), sum(margin > 0 for margin in margins), margins[by_chance] if margins else 0.0
    )


def compute_gain(with_rules: Sequence[float], without: Sequence[float]) -> Gain:
    """Return the gain from the medians of consecutive starts: geometric mean and Student's
    interval. An effect that both starts of a pair share, such as a busy network, cancels."""
    logs = tuple(
        log(seconds_without / seconds)
        for seconds, seconds_without in zip(with_rules, without, strict=True)
    )
    gain, low, high = _compute_interval(logs)
    median_with_rules, median_without = (
        sorted(seconds)[len(seconds) // 2] for seconds in (with_rules, without)
    )
    return Gain(gain, low, high, median_with_rules, median_without, logs)


@dataclass(frozen=True)
class PriorVariance:
    """The prior of the variance between a workload's pairs of starts, estimated from all
    workloads."""

    variance: float = 1.0
    dof: float = 0.0  # degrees of freedom of this variance; 0 if it is unknown


NO_PRIOR_VARIANCE = PriorVariance()


def pool_variances(gains: Sequence[Gain]) -> list[Gain]:
    """Return the gains with intervals from the pairs of all workloads: three pairs determine a
    variance badly, twenty workloads of three pairs determine it well. Variances are assumed to be
    scaled inverse χ². The variance of a workload is shrunk towards the prior one, the more the less
    variances differ (empirical Bayes, as in limma)."""
    prior_variance = _estimate_prior_variance(
        [variance(gain.pairs) for gain in gains], [len(gain.pairs) - 1 for gain in gains]
    )
    intervals = [_compute_interval(gain.pairs, prior_variance) for gain in gains]
    return [
        replace(gain, low=low, high=high)
        for gain, (_, low, high) in zip(gains, intervals, strict=True)
    ]


def _estimate_prior_variance(variances: Sequence[float], dofs: Sequence[int]) -> PriorVariance:
    """Return the prior variance, from the mean and the variance of the logarithms of variances."""
    if len(variances) < MIN_POOLED_WORKLOADS:
        return NO_PRIOR_VARIANCE
    half = np.array(dofs) / 2
    logs = np.log(np.maximum(variances, MIN_VARIANCE)) - polygamma(0, half) + np.log(half)
    # variance that chance does not explain
    excess_variance = float(np.var(logs, ddof=1) - polygamma(1, half).mean())
    if excess_variance >= polygamma(1, MIN_DOF / 2):
        return NO_PRIOR_VARIANCE
    dof = 2 * brentq(
        lambda half_dof: polygamma(1, half_dof) - max(excess_variance, polygamma(1, MAX_DOF / 2)),
        MIN_DOF / 2,
        MAX_DOF / 2,
    )
    return PriorVariance(float(np.exp(logs.mean() + polygamma(0, dof / 2) - np.log(dof / 2))), dof)


def _compute_interval(
    logs: Sequence[float], prior_variance: PriorVariance = NO_PRIOR_VARIANCE
) -> tuple[float, float, float]:
    """Return the geometric mean and its confidence interval."""
    middle, dof = mean(logs), len(logs) - 1 + prior_variance.dof
    half = float("inf")
    if len(logs) > 1:
        spread = (
            (len(logs) - 1) * variance(logs) + prior_variance.dof * prior_variance.variance
        ) / dof
        half = t.ppf((1 + CONFIDENCE) / 2, dof) * sqrt(spread / len(logs))
    low, high = (exp(min(max(end, -700), 700)) for end in (middle - half, middle + half))
    return exp(middle), low, high


def join_gains(first: Gain, second: Gain) -> Gain:
    """Return the gain of a workload with the pairs of both gains; its times are those of the
    second."""
    return replace(second, pairs=(*first.pairs, *second.pairs))


def average_gains(gains: Iterable[Gain], log_margin: float = 0.0) -> tuple[float, float, float]:
    """Return the geometric mean of the gains of several workloads, and its interval. All workloads
    are timed in the same starts, and a slow start slows all of them. The interval therefore rests
    on the mean of each pair of starts, not on the number of workloads."""
    by_pair = zip(*(gain.pairs for gain in gains), strict=False)  # a workload may lack a pair
    middle, low, high = _compute_interval([mean(logs) for logs in by_pair])
    return middle, low * exp(-log_margin), high * exp(log_margin)


def choose_unmeasured_sizes(sizes: Sequence[int]) -> dict[int, int]:
    """Return for each measured size one that was not measured and has the same rule: the geometric
    mean of the size and the next one, for the largest size 1.5 times itself. They are rounded to
    whole doubles if possible. A size of 0 stays 0."""
    ends = [*sizes[1:], int(2.25 * sizes[-1])]
    return {
        size: _round_to_whole_doubles(sqrt(size * end), size, end) if size else 0
        for size, end in zip(sizes, ends, strict=True)
    }


def _round_to_whole_doubles(middle: float, size: int, end: int) -> int:
    """Return the middle rounded to 512, 64, 8 or 1 bytes, with the largest unit that changes it by
    at most 20 %."""
    for unit in (512, 64, 8, 1):
        value = unit * round(middle / unit)
        if size < value < end and abs(value - middle) <= 0.2 * middle:
            return value
    return size


def order_starts(pairs: int) -> list[bool]:
    """Return whether each start has rules: with, without, without, with, …, so that neither always
    comes first."""
    return [(pair + start) % 2 == 0 for pair in range(pairs) for start in range(2)]


# of samples of a workload in one start; short, since starts differ more than samples
SAMPLE_SECONDS = 0.3
MIN_PAIRS = 3  # pairs of starts from which a gain is estimated
SCREENING_PAIRS = 2  # pairs of starts of the screening
MAX_CONTROLS = 12  # workloads of operations without rules, at most, that are timed in the screening


@dataclass(frozen=True)
class WorkloadGain:
    """A workload with its rule, the size at which the rule was timed, and its gain."""

    workload: PlacedWorkload
    size: int
    algorithm: str
    gain: Gain
    is_slower: bool = False  # by the pairs of starts, before the control widens intervals


@dataclass(frozen=True)
class Stage:
    """The result of a screening or a validation. Its intervals are as wide as the control workloads
    require."""

    rows: Sequence[WorkloadGain] = ()
    seconds: float = 0.0  # duration of the stage
    control: Control = field(default_factory=lambda: compute_control([]))
    # whether a rule changes the library default at other sizes of its operation
    changes_defaults: bool = False

    @property
    def operations_with_rules(self) -> set[str]:
        return {row.workload.operation for row in self.rows if row.algorithm != LIBRARY}

    def mean_gain(self, operation: str | None = None) -> tuple[float, float, float]:
        """Return the mean gain of all workloads, or of those of an operation, and its interval."""
        rows = [row for row in self.rows if operation in (None, row.workload.operation)]
        return average_gains((row.gain for row in rows), self.control.log_margin)


def measure_gains(
    timer: CollectiveTimer,
    stage: str,
    choices: Mapping[PlacedWorkload, str],
    pairs: int,
    progress: Callable[[str], None],
    changes_defaults: bool = False,
) -> Stage:
    """Measure the MPI library's own collectives with these rules and without any, in alternation,
    at sizes between those that were measured. Each operation with rules is timed in separate
    starts. Operations without rules share starts, because rules do not change them. A workload
    without enough pairs of valid samples has no row."""
    if not list_rule_choices(choices.items()):
        return Stage()
    timer = timer.with_seconds(SAMPLE_SECONDS)
    separate = {row.operation for row in list_rule_choices(choices.items())}
    timed_workloads = {
        workload: workload._replace(bytes=size)
        for workload, size in _choose_timed_sizes(choices).items()
    }
    times: dict[bool, list[Mapping[PlacedWorkload, float]]] = {True: [], False: []}
    seconds = 0.0
    for number, has_rules in enumerate(order_starts(pairs)):
        progress(
            f"{stage}: start {number + 1} of {2 * pairs}, {'with' if has_rules else 'without'} rules"
        )
        rules = list_rule_choices(choices.items()) if has_rules else ()
        timed = timer.time(f"{stage}-{number}", list(timed_workloads.values()), rules, separate)
        times[has_rules].append(timed.seconds)
        seconds += timed.took
    rows = []
    for workload, timed_workload in timed_workloads.items():
        complete_pairs = [
            (with_rules[timed_workload], without[timed_workload])
            for with_rules, without in zip(times[True], times[False], strict=True)
            if timed_workload in with_rules and timed_workload in without
        ]
        if len(complete_pairs) >= min(MIN_PAIRS, pairs):
            gain = compute_gain(*zip(*complete_pairs, strict=True))
            rows.append(WorkloadGain(workload, timed_workload.bytes, choices[workload], gain))
    pooled = pool_variances([row.gain for row in rows])
    rows = [
        replace(row, gain=gained, is_slower=gained.is_slower)
        for row, gained in zip(rows, pooled, strict=True)
    ]
    return _apply_control(Stage(rows, seconds, changes_defaults=changes_defaults))


def _apply_control(stage: Stage) -> Stage:
    """Return the stage with its control, and with intervals widened by it. Control workloads have
    no rule, and no rule of another workload changes their library default."""
    control_rows = [
        row
        for row in stage.rows
        if row.algorithm == LIBRARY
        and not (stage.changes_defaults and row.workload.operation in stage.operations_with_rules)
    ]
    controls = compute_control(row.gain for row in control_rows)
    rows = [replace(row, gain=row.gain.widen(controls.log_margin)) for row in stage.rows]
    return replace(stage, rows=rows, control=controls)


def _choose_timed_sizes(workloads: Collection[PlacedWorkload]) -> dict[PlacedWorkload, int]:
    """Return the size at which the rule of each workload is timed."""
    measured_sizes: dict[tuple[str, int, str], list[int]] = {}
    for workload in sorted(workloads):
        measured_sizes.setdefault(workload.without_size, []).append(workload.bytes)
    return {
        PlacedWorkload(operation, ranks, layout, size): timed_size
        for (operation, ranks, layout), sizes in measured_sizes.items()
        for size, timed_size in choose_unmeasured_sizes(sizes).items()
    }


def drop_wrong_rules(
    timer: CollectiveTimer, choices: Mapping[PlacedWorkload, str], progress: Callable[[str], None]
) -> tuple[dict[PlacedWorkload, str], dict[tuple[str, str], str]]:
    """Return the choices without the rules that give wrong results, and the reason by operation and
    algorithm. Each algorithm is forced on communicators of many sizes; then all rules of an
    operation run together. A workload that fails without rules, too, is not counted."""
    wrong: dict[tuple[str, str], str] = {}
    for operation in sorted(
        {workload.operation for workload, algorithm in choices.items() if algorithm != LIBRARY}
    ):
        of_operation = {
            workload: name for workload, name in choices.items() if workload.operation == operation
        }
        layout = max(of_operation)[2]
        sizes = {size for _, _, _, size in of_operation}
        sizes = {min(sizes), max(sizes)}
        ranks = sorted({workload.ranks for workload in of_operation})

        def find_failures(
            name: str,
            rules: Sequence[Choice],
            operation: str = operation,
            sizes: Collection[int] = sizes,
            layout: str = layout,
        ) -> Mapping[tuple[str, int, int], str]:
            progress(f"results: {operation}, {name}")
            return timer.find_failures(
                f"results-{operation}-{name.replace(':', '-')}", operation, sizes, rules, layout
            )

        failing_by_default = set(
            find_failures("default", [Choice(operation, count, 0, LIBRARY) for count in ranks])
        )
        for algorithm in sorted(set(of_operation.values()) - {LIBRARY}):
            forced = [
                Choice(operation, count, 0, algorithm)
                for count in sorted({2, 3, *ranks})
                if count <= ranks[-1]
            ]
            for case, reason in find_failures(algorithm, forced).items():
                if case not in failing_by_default:
                    wrong.setdefault((operation, algorithm), _describe_failure(case, reason))
        choices = _drop_rules(choices, wrong)
        rules = list_rule_choices(
            (workload, name)
            for workload, name in choices.items()
            if workload.operation == operation
        )
        for case, reason in find_failures("all rules", rules).items() if rules else ():
            if case not in failing_by_default:
                algorithms = {
                    name for workload, name in choices.items() if workload.operation == operation
                } - {LIBRARY}
                wrong |= {
                    (operation, name): f"with its other rules, {_describe_failure(case, reason)}"
                    for name in algorithms
                }
        choices = _drop_rules(choices, wrong)
    return dict(choices), wrong


def _drop_rules(
    choices: Mapping[PlacedWorkload, str], wrong: Collection[tuple[str, str]]
) -> dict[PlacedWorkload, str]:
    return {
        workload: LIBRARY if (workload.operation, name) in wrong else name
        for workload, name in choices.items()
    }


def _describe_failure(case: tuple[str, int, int], reason: str) -> str:
    input_name, ranks, size = case
    return f"input {input_name}, {ranks} ranks, {size} B: {reason}"


def select_for_screening(
    choices: Mapping[PlacedWorkload, str], changes_defaults: bool = False
) -> dict[PlacedWorkload, str]:
    """Return the choices for operations that have rules. If a rule changes the library default of
    its whole operation, some workloads of other operations are added as controls."""
    with_rules = {
        workload.operation for workload, algorithm in choices.items() if algorithm != LIBRARY
    }
    without_rules = (
        sorted(workload for workload in choices if workload.operation not in with_rules)
        if changes_defaults
        else []
    )
    controls = without_rules[:: -(-len(without_rules) // MAX_CONTROLS)] if without_rules else []
    return {
        workload: algorithm
        for workload, algorithm in choices.items()
        if workload.operation in with_rules or workload in controls
    }


def select_for_validation(
    screening: Stage, size_independent_operations: Collection[str] = ()
) -> dict[PlacedWorkload, str]:
    """Return the choices to validate: rules whose gain in the screening exceeds
    MIN_GAIN_TO_VALIDATE by more than the control's margin, the library default elsewhere. The rules
    of `size_independent_operations` name one algorithm for all sizes."""
    faster = {
        row.workload
        for row in screening.rows
        if log(row.gain.ratio) > screening.control.log_margin + log(MIN_GAIN_TO_VALIDATE)
    }
    return _keep_rules(screening, faster, size_independent_operations)


def confirm_rules(
    validation: Stage, screening: Stage, size_independent_operations: Collection[str] = ()
) -> dict[PlacedWorkload, str]:
    """Return the rules that the validation confirms, the library default elsewhere. A rule stays if
    it was faster again by more than the control's margin, and if its interval over the pairs of
    both stages is above 1. If rules slow down a workload without a rule in both stages, the
    operation loses all rules. In only one stage, this happens by chance among many workloads."""
    screening_gains = {row.workload: row.gain for row in screening.rows}
    rows_of_both = [row for row in validation.rows if row.workload in screening_gains]
    gains = pool_variances(
        [join_gains(screening_gains[row.workload], row.gain) for row in rows_of_both]
    )
    confirmed = {
        row.workload
        for row, gain in zip(rows_of_both, gains, strict=True)
        if gain.widen(validation.control.log_margin).is_faster
    }
    slowed_in_screening = {row.workload for row in find_slowed_workloads(screening.rows)}
    slowed_operations = {
        row.workload.operation
        for row in find_slowed_workloads(validation.rows)
        if row.workload in slowed_in_screening
    }
    faster = {
        row.workload
        for row in validation.rows
        if log(row.gain.ratio) > validation.control.log_margin
    } & confirmed
    return _keep_rules(validation, faster, size_independent_operations, slowed_operations)


def _keep_rules(
    stage: Stage,
    faster: Collection[PlacedWorkload],
    size_independent_operations: Collection[str],
    slowed_operations: Collection[str] = (),
) -> dict[PlacedWorkload, str]:
    """Return the rules that stay, the library default elsewhere. If rules change the library
    default of a whole operation, the operation's mean gain has to be above 1, too. The algorithm of
    one of the `size_independent_operations` stays if it is faster at most sizes and slows none."""
    excluded_operations = {
        name
        for name in stage.operations_with_rules
        if stage.changes_defaults and stage.mean_gain(name)[0] <= 1
    } | set(slowed_operations)
    kept_rows = [
        row
        for row in stage.rows
        if row.workload in faster and row.workload.operation not in excluded_operations
    ]
    rows_for_all_sizes = [
        row
        for row in stage.rows
        if row.workload.operation in size_independent_operations and row.algorithm != LIBRARY
    ]
    for without_size in {row.workload.without_size for row in rows_for_all_sizes}:
        rows = [row for row in rows_for_all_sizes if row.workload.without_size == without_size]
        faster_rows = [row for row in rows if row in kept_rows]
        kept_rows = [row for row in kept_rows if row.workload.without_size != without_size]
        if 2 * len(faster_rows) > len(rows) and not any(row.is_slower for row in rows):
            kept_rows += rows
    return {row.workload: LIBRARY for row in stage.rows} | {
        row.workload: row.algorithm for row in kept_rows
    }


def find_slowed_workloads(rows: Iterable[WorkloadGain]) -> list[WorkloadGain]:
    """Return the rows of workloads without a rule that rules for others slow down."""
    return [row for row in rows if row.algorithm == LIBRARY and row.is_slower]
