"""A simulated MPI library with times by formula. It follows rules or ignores them, as a test
requests."""

from dataclasses import dataclass, field

from commodel.advice.sequential_sampling import Arm, Arms
from commodel.files.safe_paths import SafePath
from commodel.records import LIBRARY, Measure, PlacedWorkload
from commodel.stats import MIN_NOISE
from commodel_tune.dialects import OPEN_MPI_DIALECT
from commodel_tune.timer import LibraryTimer

SIZES = (64, 2048, 65536)
ALGORITHMS = {
    "bcast": ("linear", "binomial-near", "scatter-allgather"),
    "alltoall": ("linear", "bruck", "pairwise"),
}
CASES = [PlacedWorkload(name, 8, "block", size) for name in ALGORITHMS for size in SIZES]
DEFAULTS = {"bcast": "linear", "alltoall": "pairwise"}  # the library defaults


def cost(operation, algorithm, size):
    """Return the seconds of an algorithm: later ones of an operation have more latency and more
    bandwidth."""
    number = ALGORITHMS[operation].index(algorithm)
    return (1 + 2 * number) * 1e-4 + size * 1e-8 / (1 + number) ** 2


@dataclass(frozen=True)
class Machine(LibraryTimer):
    """Records requests. `ignored_operations`: operations whose rules have no effect. `late`:
    workloads without a valid sample. `ignores_default_rules`: rules that name the library default
    have no effect, so a rule for a smaller size applies. `device`: the speedup of an operation
    without a rule. `speedup_with_rules`: the speedup of all starts with rules, by chance.
    `unsteady`: the speedup of every other start."""

    ignored_operations: tuple = ()
    late: tuple = ()
    ignores_default_rules: bool = False
    device: dict = field(default_factory=dict)
    speedup_with_rules: float = 1.0
    unsteady: float = 1.0
    requested: list = field(default_factory=list)

    def _measure(self, raw, cases, settings):
        self.requested.append((raw.parent.name, bool(settings)))
        text = (self.folder / "starts" / raw.parent.name / self.dialect.file).open().read()
        rules = self.chosen_by[text] if settings else {}
        in_time = [case for case in cases if case not in self.late]
        return {
            case: (
                cost(case.operation, self._find_algorithm(case, rules), case.bytes)
                / self._find_speedup(case, rules),
                MIN_NOISE,
            )
            for case in in_time
        }

    def _find_speedup(self, case, rules):
        has_rule = case.operation in {row.operation for row in rules}
        unsteady = self.unsteady if len(self.requested) % 2 else 1
        return (
            unsteady
            * (self.speedup_with_rules if rules else 1)
            * (1 if has_rule else self.device.get(case.operation, 1))
        )

    def _find_algorithm(self, case, rules):
        applicable = [
            row for row in rules if row.operation == case.operation and row.bytes <= case.bytes
        ]
        effective = [
            row
            for row in applicable
            if not (self.ignores_default_rules and row.algorithm == LIBRARY)
        ]
        nearest = max(effective, key=lambda row: row.bytes, default=None)
        is_default = (
            nearest is None
            or nearest.algorithm == LIBRARY
            or case.operation in self.ignored_operations
        )
        return DEFAULTS[case.operation] if is_default else nearest.algorithm

    def _start(self, name, cases, choices):
        self.chosen_by[self.dialect.text(choices) if choices else ""] = choices
        return super()._start(name, cases, choices)

    chosen_by = {}  # noqa: RUF012 - the rules of each text


def machine(folder, ignored_operations=()):
    measure = Measure("barrier", 0.1, 5, 10, 0.1, 1, 1, 60.0)
    return Machine(
        "m", None, None, OPEN_MPI_DIALECT, measure, SafePath.at(folder), ignored_operations
    )


def arms(defaults=(LIBRARY,)):
    """Return all alternatives, with predictions that are wrong by a factor for each algorithm."""
    keys = [(operation, name) for operation, names in ALGORITHMS.items() for name in names]
    errors = dict(zip(keys, [1, 1.6, 0.7, 1.2, 1, 2], strict=True))
    algorithms = [
        Arm(case, name, errors[case.operation, name] * cost(case.operation, name, case.bytes))
        for case in CASES
        for name in ALGORITHMS[case.operation]
    ]
    default_arms = [
        Arm(case, name, min(arm.prediction for arm in algorithms if arm.workload == case))
        for case in CASES
        for name in defaults
    ]
    return Arms.of(algorithms + default_arms)
