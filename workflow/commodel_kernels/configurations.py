"""Configurations of a kernel, ranked: processes with their cores, partition, and arrangement of
rectangles.

A balanced computation may have slow communication. `rank_configurations` therefore balances several
partitions for each layout, and ranks them by the sum of predicted communication and computation.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path

from commodel.advice.evidence import Evidence
from commodel.errors import UserError, suggest_name
from commodel.files.atomic import write_text
from commodel.models.families import find_family
from commodel.patterns.build import complete_layout, stack_points
from commodel.patterns.layouts import (
    PlatformDefaults,
    count_layout_ranks,
    find_node_type,
    list_process_kinds,
    place_ranks,
)
from commodel.patterns.operations import MIN_RANKS
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import make_predictor
from commodel.records import Point
from commodel_kernels import rectangles
from commodel_kernels.partitions.arrangement import (
    VOLUMES,
    exchange_ranks,
    find_best_columns,
    tile_square,
)
from commodel_kernels.partitions.shares import even_out_times, partition_geometric
from commodel_kernels.rectangles import Rectangles
from commodel_kernels.speeds import Speeds
from commodel_kernels.times import count_iterations, predict_computation

# weight of columns; 1: minimal sum of half perimeters; lower: more columns; higher: fewer
COLUMN_COSTS = (1.0, 0.5, 2.0)
OPERATIONS = {"gemm": "summa", "wave": "wave2d"}


@dataclass(frozen=True)
class Problem:
    kernel: str
    side: int
    bytes: int  # of a block (gemm) or a cell (wave)
    steps: int | None = None  # time steps of kernel wave
    form: str = "piecewise"

    def iterations(self, tiling: Rectangles) -> int:
        return self.steps or count_iterations(self.kernel, tiling)

    def repeats(self, tiling: Rectangles) -> int:
        """Return how often the predicted and measured part occurs: SUMMA all iterations, a wave
        one."""
        return self.iterations(tiling) if self.kernel == "wave" else 1


@dataclass(frozen=True)
class IterationTimes:
    """Measured seconds of all iterations. On a simulated platform nothing is computed, and that
    time is the declared one."""

    computation: float
    communication: float

    @property
    def total(self) -> float:
        return self.computation + self.communication


@dataclass(frozen=True, eq=False)
class Configuration:
    """A layout with one partition, and seconds of all iterations."""

    layout: str
    ranks: int
    nodes: int
    division: str  # arrangement of the rectangles: number of columns, or `by rank`
    file: Path
    tiling: Rectangles
    computation: float
    communication: Mapping[str, float] = field(default_factory=dict)  # by model
    validity: Mapping[str, str] = field(default_factory=dict)  # of these predictions, as text
    measured: IterationTimes | None = None

    def total(self, model: str) -> float:
        return self.computation + self.communication[model]

    def point(self, problem: Problem, resources: PlatformResources) -> Point:
        operation = f"{OPERATIONS[problem.kernel]}:partition={self.file}"
        requested = {
            "operation": operation,
            "algorithm": "paper",
            "layout": self.layout,
            "bytes": problem.bytes,
        }
        return make_point(resources, requested)


def rank_configurations(
    problem: Problem,
    layouts: Sequence[str],
    speeds: Speeds,
    evidence: Evidence,
    model: str,
    folder: Path,
    progress: Callable[[Configuration], None] = lambda best: None,
) -> list[Configuration]:
    """Return the best partition of each layout by the predictions of one model, the layout with the
    lowest total first. Other models predict these best ones; NaN if they cannot or ignore sizes.
    Partitions are stored in `folder`. `progress` is called with the best one of each layout."""
    sets = evidence.by_model()
    predictors = {
        name: make_predictor(sets[name], strict=name == model, draws=0) for name in (model, *sets)
    }

    def predict(name: str, configuration: Configuration) -> Configuration:
        """Return the configuration with a model's prediction of its communication."""
        ((_, pattern),) = stack_points([configuration.point(problem, evidence.resources)])
        predictions = predictors[name](pattern, 1)
        (validity,) = predictions.validity
        weighted = name == model or validity.has_weight
        seconds = (
            problem.repeats(configuration.tiling) * float(predictions.seconds[0])
            if weighted
            else nan
        )
        communication = {**configuration.communication, name: seconds}
        validities = {**configuration.validity, name: validity.text}
        return replace(configuration, communication=communication, validity=validities)

    best = []
    for number, layout in enumerate(layouts):
        partitions = _list_partitions(problem, layout, speeds, evidence, folder, number)
        candidates = [predict(model, partition) for partition in partitions]
        fastest = min(candidates, key=lambda configuration: configuration.total(model))
        for name in (name for name in sets if name != model):
            fastest = predict(name, fastest)
        best.append(fastest)
        progress(fastest)
    return sorted(best, key=lambda configuration: configuration.total(model))


def find_fastest(configurations: Iterable[Configuration]) -> Configuration:
    """Return the configuration that computes fastest."""
    return min(configurations, key=lambda configuration: configuration.computation)


def list_process_tables(layout: str) -> list[str]:
    """Return the layout, or those of all tables of processes in a folder given in its place,
    shortest names first."""
    if not Path(layout).is_dir():
        return [layout]
    tables = sorted(Path(layout).glob("*.csv"), key=lambda path: (len(path.name), path.name))
    if not tables:
        raise UserError("found no tables of processes (.csv) in this folder", file=layout)
    return [f"processes:{path}" for path in tables]


def write_core_layouts(
    resources: PlatformResources, cores: Sequence[int], kinds: Collection[str], folder: Path
) -> list[str]:
    """Write tables of processes with this number of cores each, as many processes as fit, on the
    first 1, 2, 4, … and on all nodes. A kind without speeds gets no table."""
    types = dict(resources.types)
    defaults = PlatformDefaults(
        types=resources.types, max_cores=resources.cores, fewer_cores=resources.fewer_cores
    )
    counts = sorted(
        {1 << power for power in range(resources.nodes.bit_length())} | {resources.nodes}
    )
    layouts: list[str] = []
    for core_count in dict.fromkeys(cores):
        kinds_without_speeds: set[str] = set()
        previous_count = len(layouts)
        for nodes in counts:
            node_of_rank = [
                node for node in range(nodes) for _ in range(defaults.cores(node) // core_count)
            ]
            kinds_without_speeds |= {
                f"{find_node_type(node, types)}/{core_count}" for node in set(node_of_rank)
            } - set(kinds)
            if len(node_of_rank) < MIN_RANKS or kinds_without_speeds:
                continue
            path = folder / f"{core_count}-cores-on-{nodes}.csv"
            rows = [f"{rank},{node},{core_count},cpu\n" for rank, node in enumerate(node_of_rank)]
            write_text(path, "".join(["rank,node,cores,device\n", *rows]))
            layouts.append(f"processes:{path}")
        if len(layouts) == previous_count:
            reason = (
                f"no speeds of '{min(kinds_without_speeds)}'"
                if kinds_without_speeds
                else f"no node has {core_count} cores"
            )
            raise UserError(f"no layout of processes with {core_count} cores: {reason}")
    return layouts


def _list_partitions(
    problem: Problem, layout: str, speeds: Speeds, evidence: Evidence, folder: Path, number: int
) -> Iterator[Configuration]:
    """Yield balanced partitions of a layout that differ in columns or arrangement, before
    prediction."""
    resources = evidence.resources
    ranks = count_layout_ranks(layout)
    if ranks is None:
        raise UserError(f"'{layout}' does not determine the number of ranks; wanted processes:PATH")
    placed = complete_layout(resources, layout, ranks).check(ranks)
    node, kinds = (
        place_ranks(placed.layout, ranks),
        list_process_kinds(placed.layout, ranks, dict(resources.types)),
    )
    curves = speeds.curves(problem.kernel, kinds, problem.form)
    shares = partition_geometric(curves, problem.side**2)
    arrangements: dict[str, Rectangles] = {}
    for column_cost in COLUMN_COSTS:
        columns = find_best_columns(shares, problem.side, column_cost)
        tiling = even_out_times(
            Rectangles(*tile_square(columns, shares, problem.side), problem.side), curves
        )
        if not arrangements:
            arrangements["by rank"] = tiling
        name = f"{len(columns)} columns"
        if name not in arrangements:
            arrangements[name] = exchange_ranks(tiling, node, kinds, VOLUMES[problem.kernel])
    for arrangement, tiling in arrangements.items():
        file = folder / f"{number}-{arrangement.replace(' ', '-')}.csv"
        write_text(file, rectangles.format_rectangles(tiling))
        computed = problem.iterations(tiling) * predict_computation(tiling, curves).slowest
        yield Configuration(layout, ranks, len(set(node)), arrangement, file, tiling, computed)


def choose_ranking_family(evidence: Evidence, model: str | None) -> str:
    """Return the model whose predictions rank configurations; one that ignores sizes only on
    request."""
    families = list(evidence.by_model())
    if model is not None and model not in families:
        raise UserError(f"no values of model '{model}'; {suggest_name(model, families)}")
    suitable = (
        ["taulop"]
        if "taulop" in families
        else [name for name in families if find_family(name).uses_bytes]
    )
    if not (model or suitable):
        raise UserError(
            f"found values of {', '.join(families)}, wanted a model of message sizes, or --model"
        )
    return model or suitable[0]
