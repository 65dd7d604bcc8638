"""Alternatives of a workload: trees (`list_trees`), algorithms with their arguments
(`list_algorithms`), layouts (`list_layouts`), and their predictions by every model
(`assess_alternatives`).

The layout `near` is made for each pattern, so that ranks that exchange many bytes are near each
other. An `AlternativePredictions` holds the predictions of all models, of one wave and of the time between waves.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeGuard

import numpy as np

from commodel.errors import UserError, describe_error
from commodel.parameters import ParameterSet
from commodel.patterns.algorithms import (
    Algorithm,
    canonicalize_algorithm,
    find_algorithm,
    find_algorithms,
)
from commodel.patterns.arguments import Kind
from commodel.patterns.build import build_schedule
from commodel.patterns.hierarchical_specs import Levels
from commodel.patterns.layouts import NEAR_LAYOUT, place_ranks
from commodel.patterns.layouts.regular import make_nodes_spec
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.rank_mapping import make_traffic_graph, map_ranks
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.patterns.trees.topologies import make_tree
from commodel.predictions.barrier_bounds import list_radices
from commodel.predictions.interval_basis import IntervalBasis
from commodel.predictions.model import Model
from commodel.predictions.predictions import (
    INFINITE_WAVES,
    MIN_DRAWS,
    StackPrediction,
    WaveStream,
    find_prediction_interval,
    predict_shortest_message,
    predicts_streams,
)
from commodel.predictions.sockets import place_in_sockets
from commodel.predictions.validity import (
    Validity,
    ValidityKind,
    add_memory_check,
    assess_validity,
    compute_single_message_ratios,
    find_widening_factor,
)
from commodel.progress import report_within
from commodel.records import Point
from commodel.stats import NORMAL_QUANTILE
from commodel.units import format_bytes

MAX_TREES_OF_KIND = 400  # trees of a kind; if there are more, this number of them, evenly spread
RADICES = range(2, 9)
PREFERRED_NAMES = ("linear", "binomial")  # preferred names of algorithms with the same messages
MAX_SEGMENTS = 256  # segments; with more, the constant time of a message dominates
SEGMENT_BYTES = tuple(1 << power for power in range(8, 21, 2))  # 256 B to 1 MiB
WINDOW_SIZES = tuple(1 << power for power in range(12))


def list_trees(leaves: int, latencies: Sequence[float] = ()) -> list[str]:
    """Return the trees with this number of leaves, each once: flat, all balanced ones, even
    two-level splits, k-nomial, and the postal-optimal tree of each latency (of a message, over the
    gap to the next one)."""
    specs = [
        f"flat:{leaves}",
        *_select_spread(list(list_balanced_trees(leaves))),
        *_select_spread(list(list_two_level_trees(leaves))),
    ]
    for radix in RADICES:
        specs += find_growing_trees(f"knomial:{radix}@", leaves)
    for latency in latencies:
        specs += find_growing_trees(f"postal:{max(latency, 1.0):.6g}@", leaves)
    distinct: dict[bytes, str] = {}
    for spec in specs:
        distinct.setdefault(make_tree(spec).parent.tobytes(), spec)
    return list(distinct.values())


def _select_spread(specs: list[str]) -> list[str]:
    if not specs:
        return []
    indices = np.unique(
        np.linspace(0, len(specs) - 1, min(MAX_TREES_OF_KIND, len(specs))).astype(int)
    )
    return [specs[index] for index in indices]


def list_balanced_trees(leaves: int) -> Iterator[str]:
    """Return all products of two and more fan-outs, in every order."""
    for factors in _list_factorizations(leaves):
        if len(factors) > 1:
            yield "balanced:" + "x".join(map(str, factors))


def _list_factorizations(number: int) -> Iterator[tuple[int, ...]]:
    yield (number,)
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            for cofactors in _list_factorizations(number // first):
                yield (first, *cofactors)


def list_two_level_trees(leaves: int) -> Iterator[str]:
    """Return trees with every number of inner nodes that does not divide the leaves; fan-outs
    differ by one."""
    for inner in range(2, leaves // 2 + 1):
        smaller, larger = divmod(leaves, inner)
        if larger:
            yield f"groups:{smaller + 1}x{larger},{smaller}x{inner - larger}"


def find_growing_trees(kind: str, leaves: int) -> list[str]:
    """Return the smallest and the largest tree of a kind with this number of leaves, if each
    further node adds a leaf or none; an empty list if no tree of this size exists."""

    def first_with(leaf_count: int) -> int:
        low = leaf_count + 1
        high = 2 * leaf_count
        while make_tree(f"{kind}{high}").leaves < leaf_count:
            low = high + 1
            high = 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if make_tree(f"{kind}{middle}").leaves >= leaf_count
                else (middle + 1, high)
            )
        return low

    try:
        sizes = sorted({first_with(leaves), first_with(leaves + 1) - 1})
    except UserError:
        return []
    return [f"{kind}{nodes}" for nodes in sizes]


def list_algorithms(
    operation: str, ranks: int, bytes: int, windows: Sequence[int] = ()
) -> list[str]:
    """Return every algorithm for an operation whose messages do not depend on the placement, with
    all arguments that can make a difference, the usual ones first. `windows` are the windows of a
    windowed gather."""
    algorithms = {
        name: algorithm
        for name, algorithm in find_algorithms(operation).items()
        if not algorithm.placement
    }
    ordered = [algorithms[name] for name in PREFERRED_NAMES if name in algorithms]
    ordered += [entry for name, entry in algorithms.items() if name not in PREFERRED_NAMES]
    specs = []
    for algorithm in ordered:
        specs += _list_specs(algorithm, ranks, bytes, windows)
    return specs


def _list_specs(algorithm: Algorithm, ranks: int, bytes: int, windows: Sequence[int]) -> list[str]:
    if algorithm.argument is None:
        return [algorithm.short_name]
    if algorithm.argument.is_size:
        longest = bytes // ranks if algorithm.operation == "allreduce" else bytes
        values: list[Any] = [
            format_bytes(size).replace(" ", "")
            for size in SEGMENT_BYTES
            if size < longest <= MAX_SEGMENTS * size
        ]
    elif algorithm.argument.kind is Kind.WINDOW:
        values = sorted({*windows, *(count for count in WINDOW_SIZES if count < ranks)})
    else:
        values = sorted(
            {count for count in RADICES if count < ranks}
            | set(list_radices(ranks) if algorithm.operation == "barrier" else ())
        )
    without_argument = [] if algorithm.needs_argument else [algorithm.short_name]
    return without_argument + [f"{algorithm.short_name}:{value}" for value in values]


# Of algorithms that follow the placement, those to try: for each operation, the algorithms between
# nodes with those within them. In the second table, for long messages only.
LONG_BYTES = 4096
HIER_PAIRS = {
    "allgather": (("ring", "binomial"), ("bruck", "binomial"), ("recursive-doubling", "linear")),
    "allreduce": (
        ("recursive-doubling", "binomial"),
        ("recursive-doubling", "linear"),
        ("rabenseifner", "binomial"),
    ),
    "alltoall": (("pairwise", "linear"), ("bruck", "linear"), ("linear", "linear")),
    "barrier": (("dissemination", "linear"), ("dissemination", "binomial")),
    "bcast": (("binomial", "binomial"), ("binomial", "linear"), ("linear", "linear")),
    "gather": (("binomial", "binomial"), ("linear", "linear"), ("binomial", "linear")),
    "reduce": (("binomial", "binomial"), ("binomial", "linear"), ("linear", "linear")),
    "reduce-scatter": (("recursive-halving", "binomial"), ("ring", "binomial")),
    "scatter": (("binomial", "binomial"), ("linear", "linear"), ("binomial", "linear")),
}
HIER_PAIRS_OF_LONG = {
    "allreduce": (
        ("ring", "binomial"),
        ("ring", "chain"),
        ("rabenseifner", "rabenseifner+scatter-allgather"),
    ),
    "bcast": (
        ("chain", "chain"),
        ("scatter-allgather", "scatter-allgather"),
        ("scatter-allgather-ring", "binomial"),
    ),
    "reduce": (("rabenseifner", "rabenseifner"), ("chain", "chain"), ("rabenseifner", "binomial")),
}
LANE_PAIRS = {
    "allgather": (("ring", "ring"), ("bruck", "bruck"), ("recursive-doubling", "ring")),
    "allreduce": (
        ("recursive-doubling", "recursive-halving+recursive-doubling"),
        ("rabenseifner", "recursive-halving+recursive-doubling"),
        ("ring", "ring"),
    ),
    "alltoall": (("pairwise", "pairwise"), ("linear", "linear"), ("bruck", "bruck")),
    "bcast": (
        ("binomial", "binomial+ring"),
        ("scatter-allgather", "binomial+recursive-doubling"),
        ("chain", "binomial+ring"),
    ),
    "reduce": (
        ("binomial", "recursive-halving+binomial"),
        ("rabenseifner", "recursive-halving+binomial"),
    ),
    "reduce-scatter": (("ring", "recursive-halving"), ("recursive-halving", "ring")),
}
BY_NODE_ALGORITHMS = {
    "allgather": ("ring", "neighbor-exchange"),
    "allreduce": ("ring", "rabenseifner", "recursive-doubling"),
    "alltoall": ("pairwise",),
    "bcast": ("chain", "binomial"),
    "gather": ("binomial",),
    "reduce": ("chain", "binomial"),
    "reduce-scatter": ("ring", "recursive-halving"),
    "scatter": ("binomial",),
}
LEADERS_OF_NODE = (2, 4, 8, 16)  # numbers to try, below that of the ranks of a node
# operations whose leaders share the ranks of a node, or the vector
LEADER_OPERATIONS = ("allgather", "allreduce", "alltoall")
PIPELINED_OPERATIONS = ("allreduce", "bcast", "reduce")
MAX_LEADERS_TRIED = 3  # of these numbers
MIN_PIPELINED_SEGMENTS, MAX_PIPELINED_SEGMENTS = 4, 64


def list_placed_algorithms(
    operation: str, bytes: int, node: np.ndarray, levels: Levels = ()
) -> list[str]:
    """Return the useful algorithms that follow the placement: through leaders, in lanes, and in the
    order of the nodes. `node` is that of every rank. There are none on one node, or with one rank a
    node."""
    by_name = find_algorithms(operation)
    is_useful = {
        name: entry.placement.is_useful(node) for name, entry in by_name.items() if entry.placement
    }
    largest = int(np.bincount(node).max())
    specs: list[str] = []
    if is_useful.get("hier"):
        specs += _list_hier_specs(operation, bytes, largest, [name for name, _ in levels])
    if is_useful.get("lanes"):
        specs += [f"lanes:inter={inter}:intra={intra}" for inter, intra in LANE_PAIRS[operation]]
        if operation == "alltoall":
            specs += [
                f"lanes:leaders={count}" for count in LEADERS_OF_NODE if largest % count == 0
            ][:MAX_LEADERS_TRIED]
    if is_useful.get("locality-bruck"):
        specs.append("locality-bruck")
    if is_useful.get("by-node"):
        specs += [f"by-node:{name}" for name in BY_NODE_ALGORITHMS[operation]]
    return list(dict.fromkeys(canonicalize_algorithm(operation, spec, levels) for spec in specs))


def _list_hier_specs(operation: str, bytes: int, per_node: int, levels: Sequence[str]) -> list[str]:
    pairs = HIER_PAIRS[operation]
    if bytes >= LONG_BYTES:
        pairs += HIER_PAIRS_OF_LONG.get(operation, ())
    specs = [f"hier:inter={inter}:intra={intra}" for inter, intra in pairs]
    if operation in LEADER_OPERATIONS and bytes:
        counts = [count for count in LEADERS_OF_NODE if count < per_node][-MAX_LEADERS_TRIED:]
        specs += [f"hier:leaders={count}" for count in counts]
        if operation == "alltoall":
            specs += [
                f"hier:inter=lanes:leaders={count}" for count in counts if per_node % count == 0
            ]
    if operation in PIPELINED_OPERATIONS:
        inter = "inter=binomial+binomial:" if operation == "allreduce" else ""
        specs += [
            f"hier:{inter}segment={size}"
            for size in SEGMENT_BYTES
            if MIN_PIPELINED_SEGMENTS * size <= bytes <= MAX_PIPELINED_SEGMENTS * size
        ]
    if levels:
        _, within = HIER_PAIRS[operation][0]
        specs.append(":".join(["hier", *(f"{level}={within}" for level in reversed(levels))]))
    return specs


MAX_RANKS_OF_NEAR = 256  # ranks up to which `near` is tried without a request
# of the level crossings of layout `block`, up to which `near` is considered
MAX_CROSSING_SHARE = 0.99


def list_layouts(resources: PlatformResources, ranks: int) -> list[str]:
    """Return the layouts to consider by default; with levels also those that place ranks far apart
    or near."""
    levels = [f"scatter:{resources.levels[0][0]}"] if resources.levels else []
    return [
        "block",
        "cyclic",
        *levels,
        *([NEAR_LAYOUT] if resources.levels and 0 < ranks <= MAX_RANKS_OF_NEAR else []),
    ]


def make_combination_point(
    resources: PlatformResources, combination: Mapping[str, Any], requested: bool
) -> Point | None:
    """Return the point of a combination, whose layout may be `near`; None if that avoids few level
    crossings and was not requested."""
    if combination["layout"] != NEAR_LAYOUT:
        return make_point(resources, combination)
    block = make_point(resources, {**combination, "layout": "block"})
    weights = make_traffic_graph(build_schedule(block))
    slots = place_ranks(block.layout, block.ranks)
    columns = [np.asarray(column) for _, column in resources.levels]
    node = map_ranks(weights, slots, columns)
    gain = count_crossings(weights, node, columns) <= MAX_CROSSING_SHARE * count_crossings(
        weights, slots, columns
    )
    return (
        make_point(resources, {**combination, "layout": make_nodes_spec(node)})
        if gain or requested
        else None
    )


def count_crossings(weights: Any, node: np.ndarray, columns: Sequence[np.ndarray]) -> float:
    """Return the bytes between ranks times the levels that they cross."""
    pairs = weights.tocoo()
    nodes_of_pair = node[pairs.row], node[pairs.col]
    crossed = (nodes_of_pair[0] != nodes_of_pair[1]).astype(float)
    for column in columns:
        crossed += column[nodes_of_pair[0]] != column[nodes_of_pair[1]]
    return float((pairs.data * crossed).sum())


MAX_CELLS = 2_000_000  # draws × messages of one prediction
# messages of all alternatives, up to which streams of all are predicted; otherwise those of as many
# of each model's fastest ones
MAX_STREAM_MESSAGES = 300_000
MAX_LIMITED_STREAMS = 6
MAX_STREAM_WIDTH = 40_000  # costs of a stream in that case
MAX_NAMED_ALTERNATIVES = 4  # alternatives that a sentence names


@dataclass(frozen=True, eq=False)
class Assessment:
    """The prediction of one model for one alternative."""

    seconds: np.ndarray  # the estimate, then a value for each draw of the parameters
    period: float  # between waves; NaN where the model predicts no stream
    widening: float  # beyond the probed range, as a standard deviation of a logarithm
    low: float  # of its prediction interval
    high: float
    basis: IntervalBasis
    parameter_low: float
    parameter_high: float
    message_seconds: float  # as in `PredictedTimes`
    validity: Validity
    stream_validity: Validity
    delivered_share: float | None  # of the packets; None if the model has no buffers

    @classmethod
    def of(
        cls,
        model: Model,
        parameters: ParameterSet,
        point: Point,
        pattern: Schedule,
        stream: WaveStream | None,
    ) -> "Assessment":
        placed = place_in_sockets(pattern, parameters.settings)
        if stream and placed is not pattern:
            stream = WaveStream(placed)
        pattern = placed
        one_size = stack_schedules([pattern])
        (validity,) = assess_validity(model.estimate, parameters, one_size)
        if not validity.has_weight:
            raise UserError(validity.text)
        seconds = np.broadcast_to(model.cost(pattern), model.rows)
        (validity,) = add_memory_check(parameters, one_size, seconds[:1], [validity])
        if not (np.isfinite(seconds).all() and seconds[0] > 0):
            raise UserError("it predicts a time of 0, or no number")
        delivered_share = model.family.delivered and model.family.delivered(
            one_size, model.estimate.values
        )
        prediction = StackPrediction(
            seconds=seconds[None],
            ratios=compute_single_message_ratios(parameters, one_size),
            validity=[validity],
            widening=find_widening_factor(model.family, parameters, one_size),
            message_seconds=predict_shortest_message(model, one_size),
        )
        times = prediction.summarize()
        interval = find_prediction_interval(parameters, times, point, [point.bytes])
        assessment = cls(
            seconds=np.maximum(seconds, seconds[0] * 1e-6),
            period=np.nan,
            widening=float(np.log(prediction.widening[0]) / NORMAL_QUANTILE),
            low=float(interval.low[0]),
            high=float(interval.high[0]),
            basis=interval.bases[0],
            parameter_low=float(times.low[0]),
            parameter_high=float(times.high[0]),
            message_seconds=float(prediction.message_seconds[0]),
            validity=validity,
            stream_validity=validity,
            delivered_share=None if delivered_share is None else float(delivered_share[0]),
        )
        return assessment.add_stream(model, parameters, stream) if stream else assessment

    def add_stream(
        self, model: Model, parameters: ParameterSet, stream: WaveStream
    ) -> "Assessment":
        """Return the prediction with the time between waves, if the model predicts it."""
        if not predicts_streams(model.family):
            return self
        period = stream.period(model.family, lambda cost, waves: cost(model.estimate, waves))
        (stream_validity,) = assess_validity(
            model.estimate, parameters, stack_schedules([stream.pattern]), INFINITE_WAVES
        )
        return replace(self, period=float(np.ravel(period)[0]), stream_validity=stream_validity)


def _are_assessments(entries: Sequence[Assessment | None]) -> TypeGuard[Sequence[Assessment]]:
    return None not in entries


@dataclass(frozen=True, eq=False)
class AlternativePredictions:
    """Predictions of each model for each alternative, None where it has none, and the first reason
    of each model for that. `models` are those that predict all alternatives, `missing` has the
    reasons of the others."""

    assessments: Mapping[str, Sequence[Assessment | None]]
    reasons: Mapping[str, str]
    skipped: tuple[int, ...] = ()  # alternatives that no model has to predict

    @cached_property
    def models(self) -> dict[str, Sequence[Assessment]]:
        return {
            name: entries for name, entries in self.assessments.items() if _are_assessments(entries)
        }

    @property
    def missing(self) -> dict[str, str]:
        return {name: why for name, why in self.reasons.items() if name not in self.models}

    def only(self, numbers: Sequence[int]) -> "AlternativePredictions":
        """Return the predictions for some of the alternatives."""
        selected = {}
        for name, assessments in self.assessments.items():
            selected[name] = [assessments[number] for number in numbers]
        return AlternativePredictions(selected, self.reasons)

    def values(self, field: str) -> dict[str, np.ndarray]:
        """Return a field of the assessments by model, with alternatives on the last axis."""
        values = {}
        for name, assessments in self.models.items():
            columns = [getattr(assessment, field) for assessment in assessments]
            values[name] = np.stack(columns, axis=-1)
        return values

    @property
    def validity_texts(self) -> list[str]:
        """Return the models that are not valid for an alternative, and why; empty if all are."""
        return [
            "; ".join(self._name_models(number))
            for number in range(len(next(iter(self.models.values()))))
        ]

    def _name_models(self, number: int) -> list[str]:
        validities = {
            name: assessments[number].validity for name, assessments in self.models.items()
        }
        texts = {
            name: validity.text
            for name, validity in validities.items()
            if validity.kind is not ValidityKind.VALID
        }
        return [f"{', '.join(names)}: {text}" for text, names in _group_by_text(texts).items()]

    def unprobed(self, numbers: Collection[int]) -> dict[str, str]:
        """Return the models that were not probed for some of these alternatives, each with the text
        of that validity."""
        texts: dict[str, str] = {}
        for name, assessments in self.models.items():
            for number in numbers:
                validity = assessments[number].validity
                if validity.kind is ValidityKind.NOT_PROBED:
                    texts.setdefault(name, validity.text)
        return texts

    def losses(self, choices: Sequence[str]) -> list[str]:
        """Return a sentence on the alternatives that lose packets, and on the models that do not
        predict losses; none without losses."""
        delivered_shares: dict[str, list[float]] = {}
        for name, assessments in self.models.items():
            shares = [assessment.delivered_share for assessment in assessments]
            known = [share for share in shares if share is not None]
            if len(known) == len(shares):
                delivered_shares[name] = known
        lossy = {}
        for known in delivered_shares.values():
            for choice, share in sorted(zip(choices, known, strict=True), key=itemgetter(1)):
                if share < 1:
                    lossy[choice] = share
        if not lossy:
            return []
        named_losses = ", ".join(
            f"{choice} {100 * (1 - share):.0f} %"
            for choice, share in list(lossy.items())[:MAX_NAMED_ALTERNATIVES]
        )
        more_text = (
            f" and {len(lossy) - MAX_NAMED_ALTERNATIVES} more"
            if len(lossy) > MAX_NAMED_ALTERNATIVES
            else ""
        )
        without_losses = [name for name in self.models if name not in delivered_shares]
        without_losses_note = (
            f"; {', '.join(without_losses)} {'does' if len(without_losses) == 1 else 'do'} not model losses"
            if without_losses
            else ""
        )
        cause = (
            f"by {', '.join(delivered_shares)} a buffer overflows and packets have to be sent again"
        )
        return [f"{cause}: {named_losses}{more_text}{without_losses_note}"]

    @cached_property
    def limited_streams(self) -> dict[str, str]:
        """Models that are less valid for a stream of some alternative than for one wave, and
        why."""
        texts: dict[str, str] = {}
        for name, assessments in self.models.items():
            for assessment in assessments:
                if assessment.stream_validity != assessment.validity:
                    texts.setdefault(name, assessment.stream_validity.text)
        return texts

    @cached_property
    def streaming(self) -> list[str]:
        """Models that predict the time between waves; of these the valid ones, if any. With many
        alternatives of many messages, only some have such times."""
        periods = {name: times[self.has_stream] for name, times in self.values("period").items()}
        predicting = [
            name
            for name, times in periods.items()
            if len(times) and np.isfinite(times).all() and (times > 0).all()
        ]
        return [name for name in predicting if name not in self.limited_streams] or predicting

    @cached_property
    def has_stream(self) -> np.ndarray:
        """Whether some model predicts the time between waves, for each alternative."""
        return np.any([np.isfinite(times) for times in self.values("period").values()], axis=0)

    def describe_streams(self) -> list[str]:
        end = (
            "no other model predicts them"
            if self.limited_streams.keys() & set(self.streaming)
            else "other models predict these times"
        )
        texts = _group_by_text(self.limited_streams if self.streaming else {})
        notes = [f"between waves {', '.join(names)}: {why}; {end}" for why, names in texts.items()]
        if self.streaming and not self.has_stream.all():
            notes.append(
                f"many messages: times between waves are predicted for {self.has_stream.sum()} of the "
                f"fastest of {len(self.has_stream)} alternatives; --only names others"
            )
        return notes

    def period(self, weights: Mapping[str, float | np.ndarray]) -> np.ndarray:
        """Return the weighted geometric mean of the times between waves, NaN without a model of
        these. If none of the models has a weight at some alternative, all have the same weight
        there."""
        periods = self.values("period")
        if not self.streaming:
            return np.full(len(next(iter(periods.values()))), np.nan)
        logs = np.log([periods[name] for name in self.streaming])
        shares = np.array(
            [np.broadcast_to(weights[name], logs.shape[1:]) for name in self.streaming]
        )
        shares = np.where(shares.sum(axis=0) > 0, shares, 1.0)
        return np.exp((shares * logs).sum(axis=0) / shares.sum(axis=0))


def _group_by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that have each text."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return names


def assess_alternatives(
    sets: Mapping[str, ParameterSet],
    points: Sequence[Point],
    patterns: Sequence[Schedule],
    streams: bool = True,
    kept: Collection[Point] = (),
) -> AlternativePredictions:
    """Predict all alternatives by every model, and streams of them if wanted. A model has no
    prediction for what it cannot predict, or whose message size it ignores. Long schedules get
    fewer draws.

    If alternatives have many messages, only the fastest have streams, and segments are skipped
    unless `kept`: those shorter than ones that are slower than longer ones by all models.
    """
    draws = max(MIN_DRAWS, MAX_CELLS // max(*(pattern.messages for pattern in patterns), 1))
    is_limited = sum(pattern.messages for pattern in patterns) > MAX_STREAM_MESSAGES
    models = {}
    reasons = {}
    assessments: dict[str, list[Assessment | None]] = {}
    for name, parameters in sets.items():
        try:
            models[name] = Model.of_set(parameters, draws)
        except UserError as error:
            reasons[name] = error.message
    segments = _list_segments(points) if is_limited else {}
    for name in models:
        assessments[name] = [None] * len(points)
    skipped: list[int] = []
    for count, number in enumerate(_order_by_segment(len(points), segments), 1):
        if _is_needless(number, segments, assessments) and points[number] not in kept:
            skipped.append(number)
            continue
        pattern = patterns[number]
        # one for all models: its steps are cached
        stream = WaveStream(pattern) if streams and not is_limited else None
        for name, model in models.items():
            try:
                with report_within(f"alternative {count} of {len(patterns)} by {name}"):
                    assessments[name][number] = Assessment.of(
                        model, sets[name], points[number], pattern, stream
                    )
            except Exception as error:
                reasons.setdefault(name, describe_error(error))
    if streams and is_limited:
        _add_fastest_streams(assessments, models, sets, patterns)
    return AlternativePredictions(assessments, reasons, tuple(skipped))


# the point with the next larger segments of the same algorithm, on the same layout; None: none
Segments = Mapping[int, int | None]


def _list_segments(points: Sequence[Point]) -> Segments:
    """Return the points with segments, each with that of the next larger ones."""
    sizes: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for number, point in enumerate(points):
        if not point.algorithm:
            continue
        algorithm, text = find_algorithm(point.operation, point.algorithm)
        if algorithm.argument and algorithm.argument.kind is Kind.SEGMENT and text:
            (size,) = algorithm.parse_argument(text)
            sizes.setdefault((algorithm.name, point.layout), []).append((size, number))
    larger: dict[int, int | None] = {}
    for of_algorithm in sizes.values():
        numbers = [number for _, number in sorted(of_algorithm, reverse=True)]
        larger |= dict(zip(numbers, [None, *numbers], strict=False))
    return larger


def _order_by_segment(count: int, segments: Segments) -> list[int]:
    """Return the numbers of all points, those with larger segments before others of their
    algorithm."""
    return [*(number for number in range(count) if number not in segments), *segments]


def _is_needless(
    number: int, segments: Segments, assessments: Mapping[str, Sequence[Assessment | None]]
) -> bool:
    """Return whether by all models an algorithm was slower with the next larger segments than with
    those after these, or was not tried with them for this reason."""
    before = segments.get(number)
    if before is None:
        return False
    two_before = segments[before]
    if two_before is None:
        return False
    for of_model in assessments.values():
        larger, largest = of_model[before], of_model[two_before]
        if largest is None:
            continue
        if larger is not None and larger.seconds[0] <= largest.seconds[0]:
            return False
    return True


def _add_fastest_streams(
    assessments: Mapping[str, list[Assessment | None]],
    models: Mapping[str, Model],
    sets: Mapping[str, ParameterSet],
    patterns: Sequence[Schedule],
) -> None:
    """Add streams of the alternatives that are among the fastest of some model."""
    chosen: set[int] = set()
    for name in models:
        seconds = [
            np.inf if entry is None else float(entry.seconds[0]) for entry in assessments[name]
        ]
        chosen.update(np.argsort(seconds, kind="stable")[:MAX_LIMITED_STREAMS].tolist())
    chosen = {number for number in chosen if patterns[number].width <= MAX_STREAM_WIDTH}
    for count, number in enumerate(sorted(chosen), 1):
        for name, model in models.items():
            assessment = assessments[name][number]
            if assessment is None:
                continue
            pattern = place_in_sockets(patterns[number], sets[name].settings)
            with report_within(f"stream {count} of {len(chosen)} by {name}"), suppress(UserError):
                assessments[name][number] = assessment.add_stream(
                    model, sets[name], WaveStream(pattern)
                )
