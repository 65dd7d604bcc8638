"""The records that stages exchange, such as `Point`, `Batch` and `Plan`: frozen, plain, in SI
seconds and bytes.

Constraints in the types are checked when a record is read from a file, not when the program creates
one.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Interval, Predicate

from commodel.errors import UserError, suggest_name
from commodel.units import MAX_WAVES, format_extent

ENOUGH_EQUAL_SAMPLES = 2  # of a simulated case without noise: more of them would be the same
# why sampling ended, from the best reason to the worst
STOP_REASONS = ("equal samples", "precision", "samples", "time")
BARRIER = "barrier"  # the operation that may align ranks before a sample
# the algorithm of the MPI default, and the model that predicts it from its own times alone
LIBRARY = "library"
DEFAULT_LABEL = "MPI default"  # its name in reports
RECOMMENDED = "recommended"  # the model of the recommended prediction, in tables


class Statistic(StrEnum):
    """Which ranks a measured time is of, as tables name it: the time of an operation over all its
    ranks, which begin together, or a statistic of the ranks' own times."""

    # until the result is complete: at the root of gather or reduce, else at the last rank
    COMPLETION = "completion"
    LAST_RANK = "last rank"
    FIRST_RANK = "first rank"
    RANK_MEAN = "rank mean"  # the mean of the ranks' own times, as OSU prints it
    UNKNOWN = "unknown"


# whose ranks finish at very different times
ROOTED_OPERATIONS = frozenset(("bcast", "gather", "reduce", "scatter"))
COMPLETE_AT_ROOT = frozenset(("gather", "reduce"))  # of these, those whose result is at the root


class Repetitions(StrEnum):
    """How the repetitions of a measurement became one time, as tables name it."""

    MEAN = "mean"
    MEDIAN = "median"
    LEAST = "least"
    LARGEST = "largest"
    SINGLE = "single"  # the time is that of one repetition
    UNKNOWN = "unknown"


LARGEST_NUMBER = 2**63  # of any number in a plan
PATH_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


def is_name(text: str) -> bool:
    """Return whether a text may be a part of a path: it then leads nowhere else."""
    return bool(PATH_PART.fullmatch(text))


Name = Annotated[str, Predicate(is_name)]
Count = Annotated[int, Interval(ge=0, lt=LARGEST_NUMBER)]
Seconds = Annotated[float, Interval(ge=0, lt=LARGEST_NUMBER)]
Finite = Annotated[float, Interval(gt=float("-inf"), lt=float("inf"))]
Samples = Annotated[int, Interval(ge=1, le=1_000_000)]
Sha256 = Annotated[str, Predicate(lambda text: bool(re.fullmatch("[0-9a-f]{64}", text)))]


def compute_digest(content: object, length: int = 12) -> str:
    """Return a digest of anything that JSON can hold; equal content has an equal digest on every
    machine."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()[:length]


class PlacedWorkload(NamedTuple):
    """A workload of the MPI library, on a layout."""

    operation: str
    ranks: int
    layout: str
    bytes: int

    @property
    def without_size(self) -> tuple[str, int, str]:
        return self[:3]


@dataclass(frozen=True, order=True)
class Choice:
    """A row of a decision table."""

    operation: str
    ranks: int
    bytes: int  # as the operation means them here
    algorithm: str
    # platform of the advice, if the table names it
    platform: str = field(default="", compare=False)


@dataclass(frozen=True)
class StartTimings:
    """The results of one start. A call that timed out counts with its time limit."""

    seconds: Mapping[PlacedWorkload, float]  # medians
    took: float  # seconds of the whole start
    # standard deviations of log medians
    noise: Mapping[PlacedWorkload, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """A point to measure and to predict. Either `algorithm` or `topology` is set, the other is
    empty."""

    platform: str
    operation: str
    algorithm: str
    topology: str
    layout: str
    ranks: Count
    bytes: Count
    # of the topology, or of the one that the library default replaces; 0 for an algorithm
    leaves: Count = 0
    nodes: Count = 1  # number of nodes that the layout uses
    # distance classes of its ranks (`Hierarchy.levels_crossed`); empty without levels
    reach: str = ""
    per_node: Count = 1  # most ranks on a node
    # digest of its messages: points with equal names but other messages differ (see `identity`)
    pattern: str = ""
    # with several, its time is that between two waves
    waves: Annotated[int, Interval(ge=1, le=MAX_WAVES)] = 1
    measured_only: bool = False  # True if it has no schedule to predict
    # which ranks its time is of; commodel itself measures completions
    statistic: Statistic = Statistic.COMPLETION

    @property
    def id(self) -> str:
        how = f"{self.operation}|{self.algorithm}|{self.topology}|{self.pattern}"
        text = f"{self.platform}|{how}|{self.layout}|{self.ranks}|{self.leaves}|{self.bytes}{self._repeats}"
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def alternative(self) -> str:
        return self.algorithm or self.topology

    @property
    def kind(self) -> str:
        """The kind of the alternative, since an algorithm and a topology may have the same name,
        such as `binomial:4`."""
        return (
            "library" if self.algorithm == LIBRARY else "topology" if self.topology else "algorithm"
        )

    @property
    def predictable(self) -> bool:
        """Whether there is a schedule to predict; there is none for the library default."""
        return self.algorithm != LIBRARY and not self.measured_only

    @property
    def node_usage(self) -> str:
        """The nodes of a workload: for algorithms their number, in any layout; for trees the ranks
        on each node.

        The number of inner nodes of a tree is part of the alternative.
        """
        if self.leaves:
            return f"{self.per_node} a node"
        return f"{self.nodes} node{'' if self.nodes == 1 else 's'}"

    @property
    def workload(self) -> str:
        """The workload of the point.

        The points of one workload are its alternatives: algorithm and layout, over the same ranks
        on the same number of nodes; or tree and layout, over the same leaves with the same ranks on
        each node.
        """
        workload = f"{self.operation} {format_extent(self.leaves, self.ranks)} {self.bytes} B"
        return f"{self.platform} {workload} {self.node_usage}{self._repeats}"

    @property
    def _repeats(self) -> str:
        """The number of waves as part of ids; empty for one wave."""
        return f" {self.waves} waves" if self.waves > 1 else ""


@dataclass(frozen=True, slots=True)
class Case:
    """One setting of a probe: the row that its program reads from a case file, and the placement of
    its ranks."""

    platform: str
    probe: str
    ranks: Count
    settings: Mapping[str, str | Count | Seconds]
    layout: str
    # numbers of the platform's nodes on which it runs; empty: the first ones
    where: tuple[Count, ...] = ()
    pair: str = ""  # types of its two nodes, if the platform has several types

    @property
    def id(self) -> str:
        return compute_digest(
            [self.platform, self.probe, self.ranks, dict(self.settings), self.layout, self.where]
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """The points and probe cases that run in one allocation."""

    name: Name
    platform: Name
    nodes: Count
    points: tuple[Point, ...] = ()
    cases: tuple[Case, ...] = ()
    seconds: Seconds = 0.0  # estimated duration
    most: Seconds = 0.0  # estimated duration on a slow and noisy machine
    budget: Seconds = 8 * 3600.0  # time limit

    @property
    def ids(self) -> list[str]:
        return [*(case.id for case in self.cases), *(point.id for point in self.points)]

    @property
    def ranks(self) -> int:
        return max([*(case.ranks for case in self.cases), *(point.ranks for point in self.points)])

    @property
    def tasks(self) -> int:
        """The tasks of the Slurm job: at least one on each node, although a probe may leave nodes
        empty, and at least two."""
        return max(self.ranks, self.nodes, 2)

    @property
    def minutes(self) -> int:
        """The time limit of the Slurm job in minutes. Programs have to start, and the driver stops
        measuring shortly before it."""
        return max(1, min(10 + int(self.most / 60), int(self.budget / 60)))


Synchronisation = Literal["barrier", "window"]  # how ranks are aligned before each sample


@dataclass(frozen=True, slots=True)
class Measure:
    """The precision and the limits of measurements, from an experiment's `measure`."""

    sync: Synchronisation
    # half-width of the median's 95 % interval over the median
    precision: Annotated[float, Interval(gt=0, le=1)]
    min_samples: Samples
    max_samples: Samples
    seconds: Annotated[float, Interval(gt=0, le=1e9)]  # that the samples of a case may take
    passes: Annotated[int, Interval(ge=1, le=100)]
    warmup: Annotated[int, Interval(ge=0, le=1_000_000)]
    # seconds beyond those, after which the case is given up
    timeout: Annotated[float, Interval(gt=0, le=1e9)]


class PlatformKind(Enum):
    """The origin of a platform's times."""

    SIMULATED = "simulated"
    # real processes and a real TCP, over an emulated network
    NAMESPACES = "hosts emulated on one machine"
    REAL = "real"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPlatform:
    """The properties of a platform that stages after planning need; all others are in its file."""

    title: str = ""
    launcher: str
    substrate: str = "mpi"
    simulated: bool
    namespaces: bool = False  # its hosts are network namespaces of one machine
    digest: str
    nodes: Count = 0
    cores: Count = 0
    # of nodes, and how many there are of each
    types: Mapping[str, Count] = field(default_factory=dict)
    # the group that each node is in
    levels: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)
    hosts: tuple[Name, ...] = ()  # in the order of the nodes, of a job's platform that was surveyed
    # image, digest, model and native, if it has one
    container: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> PlatformKind:
        if self.simulated:
            return PlatformKind.SIMULATED
        return PlatformKind.NAMESPACES if self.namespaces else PlatformKind.REAL


ArchivedKind = Literal["matrix", "pattern", "tree", "layout", "partition", "published", "speeds"]


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file that a plan depends on, besides its experiment and platforms, and its copy in the
    results."""

    kind: ArchivedKind
    digest: Sha256
    bytes: Count
    copy: Name | Literal[""]  # empty: it is too large to be kept
    source: str = ""  # citation in a published set


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment: all that later stages need to know of it."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    experiment: Name
    title: str
    digest: str
    seed: Count
    models: tuple[Name, ...]
    probes: Mapping[Name, tuple[Name, ...]]  # each with the models that need it
    measure: Measure
    platforms: Mapping[Name, PlannedPlatform]
    batches: tuple[Batch, ...]
    version: str
    paper: str = ""  # whose figures the report rebuilds
    files: Mapping[str, ArchivedFile] = field(default_factory=dict)  # by the path that names them
    # Layouts that place the ranks of some points as another layout does, which is measured in their
    # place
    merged_layouts: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> list[Point]:
        return [point for batch in self.batches for point in batch.points]

    def passes(self, platform: str) -> int:
        """Return the number of passes over the cases of a platform; one if it is simulated, as its
        times do not change."""
        return 1 if self.platforms[platform].simulated else self.measure.passes

    def batch(self, name: str) -> Batch:
        batches = {batch.name: batch for batch in self.batches}
        if name not in batches:
            raise UserError(f"no batch '{name}' in the plan; {suggest_name(name, batches)}")
        return batches[name]

    def as_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))
