"""An MPI library whose every time is known: it heeds its rules, or does not."""

from dataclasses import dataclass, field

from commodel.advice.sequential_sampling import Arm, Arms
from commodel.api.library_rules import OPEN_MPI_DIALECT
from commodel.files.safe_paths import SafePath
from commodel.measure.library_collectives import LibraryTimer
from commodel.records import LIBRARY, Measure, PlacedWorkload
from commodel.stats import MIN_NOISE

SIZES = (64, 2048, 65536)
WAYS = {"bcast": ("linear", "binomial-near", "scatter-allgather"), "alltoall": ("linear", "bruck", "pairwise")}
CASES = [PlacedWorkload(name, 8, "block", size) for name in WAYS for size in SIZES]
OWN = {"bcast": "linear", "alltoall": "pairwise"}  # what the library does by itself


def cost(operation, algorithm, size):
    """Of one algorithm the time grows from less, of another it grows less."""
    place = WAYS[operation].index(algorithm)
    return (1 + 2 * place) * 1e-4 + size * 1e-8 / (1 + place) ** 2


@dataclass(frozen=True)
class Machine(LibraryTimer):
    """Notes what it was asked; `deaf`: operations whose rules change nothing; `beyond`: where a rule ends and the
    library is to choose by itself again, it goes on with the rule; `device`: how many times as fast an operation is
    where there is no rule for it; `turn`: how many times as fast all is in starts with rules, by chance;
    `unsteady`: how many times as fast all is in every other start."""

    deaf: tuple = ()
    late: tuple = ()
    beyond: bool = False
    device: dict = field(default_factory=dict)
    turn: float = 1.0
    unsteady: float = 1.0
    requested: list = field(default_factory=list)

    def _measure(self, raw, cases, settings):
        self.requested.append((raw.parent.name, bool(settings)))
        text = (self.folder / "starts" / raw.parent.name / self.dialect.file).open().read()
        rules = self.chosen_by[text] if settings else {}
        in_time = [case for case in cases if case not in self.late]
        return {
            case: (cost(case.operation, self._way(case, rules), case.bytes) / self._faster(case, rules), MIN_NOISE)
            for case in in_time
        }

    def _faster(self, case, rules):
        ruled = case.operation in {row.operation for row in rules}
        unsteady = self.unsteady if len(self.requested) % 2 else 1
        return unsteady * (self.turn if rules else 1) * (1 if ruled else self.device.get(case.operation, 1))

    def _way(self, case, rules):
        below = [row for row in rules if row.operation == case.operation and row.bytes <= case.bytes]
        ruled = [row for row in below if not (self.beyond and row.algorithm == LIBRARY)]
        nearest = max(ruled, key=lambda row: row.bytes, default=None)
        own = nearest is None or nearest.algorithm == LIBRARY or case.operation in self.deaf
        return OWN[case.operation] if own else nearest.algorithm

    def _start(self, name, cases, choices):
        self.chosen_by[self.dialect.text(choices) if choices else ""] = choices
        return super()._start(name, cases, choices)

    chosen_by = {}  # noqa: RUF012 - what each text of rules means


def machine(folder, deaf=()):
    measure = Measure("barrier", 0.1, 5, 10, 0.1, 1, 1, 60.0)
    return Machine("m", None, None, OPEN_MPI_DIALECT, measure, SafePath.at(folder), deaf)


def arms(own=(LIBRARY,)):
    """Predictions that are off by a factor of each algorithm."""
    off = dict(zip([(name, way) for name, ways in WAYS.items() for way in ways], [1, 1.6, 0.7, 1.2, 1, 2], strict=True))
    ways = [
        Arm(case, way, off[case.operation, way] * cost(case.operation, way, case.bytes))
        for case in CASES
        for way in WAYS[case.operation]
    ]
    left = [
        Arm(case, name, min(arm.prediction for arm in ways if arm.workload == case)) for case in CASES for name in own
    ]
    return Arms.of(ways + left)
