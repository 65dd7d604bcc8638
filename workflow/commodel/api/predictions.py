"""Predicted times from Python: `predict` returns a row for each pattern and model, with interval
and validity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union, cast

from commodel.api.default_predictions import (
    DefaultRequest,
    complete_pattern,
    describe_default,
    predict_default,
    split_sets,
)
from commodel.api.predicted_times import Predictions
from commodel.errors import UserError, locate_mistakes
from commodel.files.quantities import expand_axis, parse_statistic
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.models.families import find_family, find_unit
from commodel.models.parameter_sets import (
    BY_HAND_KEY,
    describe_changes,
    list_sets,
    make_given_set,
    read_set,
    replace_by_hand,
)
from commodel.parameters import ParameterSet, describe_origins
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.build import (
    build_schedule,
    depends_on_placement,
    makes_use_of_placement,
)
from commodel.patterns.layouts import NEAR_LAYOUT
from commodel.patterns.operations import canonicalize_operation, find_required_ranks, has_size
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.points import PlatformResources, find_ranks, make_point
from commodel.patterns.schedule import Schedule
from commodel.predictions.predictions import Prediction
from commodel.predictions.predictions import predict as predict_points
from commodel.progress import report_within
from commodel.records import LIBRARY, Point, Statistic
from commodel.units import parse_bytes, parse_count, parse_waves

if TYPE_CHECKING:
    from commodel.advice.evidence import Evidence
    from commodel.api.campaigns import Run
    from commodel.api.fits import Fit
    from commodel.predictions.mpi_default import MpiDefault

PATTERN_FIELDS = ("operation", "algorithm", "topology", "layout", "ranks", "bytes")
MAX_PATTERNS = 2_000_000  # of one call

Amounts = int | str | Sequence[int | str]  # 16, "1KiB", "2:64:*2", or several of them
Source = Union[str, Path, ParameterSet, "Run", "Fit"]  # of parameter values
Value = float | str  # of a parameter: in SI units, or as text with a unit


def predict(
    operation: str,
    ranks: Amounts | None = None,
    bytes: Amounts | None = None,
    *,
    model: str | None = None,
    parameters: Source | Sequence[Source] = (),
    algorithm: str | Sequence[str] = (),
    topology: str | Sequence[str] = (),
    layout: str | None = None,
    platform: str | None = None,
    experiment: str | None = None,
    waves: Amounts | None = None,
    pipelined: bool = False,
    statistic: str = Statistic.COMPLETION,
    values: Mapping[str, Value] | None = None,
    **named_values: Value,
) -> Predictions:
    """Return the predicted time of each pattern under each model: a row for each algorithm, number
    of ranks and size. The result's `frame` is a DataFrame; printed, it is what `commodel predict`
    prints.

    Values come from `parameters` (files, fitted sets, or a `Run`), or are given by name, such as
    `L="2us"` or `L=2e-6`. If both are given, named values replace those of the parameters. With
    neither, they come from the runs in `results`, or from those of one `experiment`. Without
    `algorithm` or `topology`, every algorithm of the operation that needs no argument is predicted.
    `platform` is where ranks are placed. Times are in seconds; `low` and `high` are the 95 %
    prediction interval, NaN without one. `statistic` says which ranks' times are predicted, such as
    `"rank mean"` for what OSU prints; the default is the time until completion. A `Run` without a
    model also has the rows `recommended`, with the times that `advise` ranks; so have sets with
    residuals, such as fits to a table. The algorithm `library` is the MPI default, predicted from
    its own measured times: those of a set that `fit` fitted to them, or of a run.

    >>> predict("bcast", 64, "1KiB", model="loggp", L="2us", o_s="1us", o_r="1us", g="1us", G="1ns/B")  # doctest: +SKIP
    """
    settings = [
        f"{name}={_format_with_unit(model, name, value)}"
        for name, value in {**(values or {}), **named_values}.items()
    ]
    pattern = {
        "operation": operation,
        "algorithm": list_names(algorithm),
        "topology": list_names(topology),
        "ranks": join_amounts(ranks),
        "sizes": join_amounts(bytes),
        "layout": layout,
    }
    quantity = PredictedQuantity.of(join_amounts(waves), pipelined, statistic)
    return predict_patterns(
        pattern, list_sources(parameters), model, settings, platform, experiment, quantity
    )


@dataclass(frozen=True)
class PredictedQuantity:
    """Which time of a pattern is predicted: of one wave, by a statistic of its ranks, or between
    two waves of several, or of an endless stream."""

    waves: str | None
    pipelined: bool
    statistic: Statistic

    @classmethod
    def of(cls, waves: str | None, pipelined: bool, statistic: str) -> PredictedQuantity:
        stated = parse_statistic(statistic)
        if waves and pipelined:
            raise UserError(
                "found both waves and pipelined, wanted a number of waves or an endless stream"
            )
        if (waves or pipelined) and stated is not Statistic.COMPLETION:
            raise UserError(f"statistic '{stated}' is of one wave: leave waves and pipelined out")
        return cls(waves, pipelined, stated)


def predict_patterns(
    pattern: Mapping[str, Any],
    sources: Sequence[Source | AnyPath],
    model: str | None,
    settings: Sequence[str],
    platform: str | None,
    experiment: str | None,
    quantity: PredictedQuantity,
) -> Predictions:
    """Return the predictions of every combination of a pattern's names and amounts, which are those
    of `list_points`.

    Without sources, model and settings, the evidence is that of the runs in the folder of
    results."""
    request = DefaultRequest.of(pattern)
    is_one_wave = not (quantity.waves or quantity.pipelined)
    if request.is_named and not is_one_wave:
        raise UserError("the MPI default is predicted for one wave: leave waves and pipelined out")
    is_plain = is_one_wave and not (model or settings)
    has_campaign = is_plain and (
        _is_run(sources) if sources else any(Path("results").glob("*/fitted"))
    )
    resources = None
    if platform and not _is_run(sources):
        from commodel.plan.planning import load_resources  # reads what a campaign needs

        resources = load_resources(platform)
    # The names and amounts are checked before models are read. A missing size may be taken from the
    # models.
    size_from_models = pattern["sizes"] is None and not is_pattern_file(pattern["operation"])
    omitted: list[str] = []  # reasons for points that the platform cannot hold
    points = _list_wanted(
        pattern, "1" if size_from_models else pattern["sizes"], resources, quantity, omitted
    )
    if has_campaign:
        evidence, folders = _find_campaign(sources, platform, experiment, points[0].operation)
        known = _Knowledge.of_campaign(evidence, folders, request, points[0].operation)
    else:
        all_sets = choose_sets(sources, model, settings, platform)
        known = _Knowledge.of_sets(all_sets, resources, request, has_residuals=is_plain)
    request.check(known.default)
    if size_from_models or has_campaign:
        omitted.clear()
        sizes = find_only_size(known.sets) if size_from_models and known.sets else pattern["sizes"]
        points = _list_wanted(pattern, sizes, known.resources, quantity, omitted)
    notes: list[str] = []
    of_default: list[Prediction] = []
    if request.is_possible and is_one_wave:
        of_default, notes = _predict_default(pattern, known, quantity)
    if not known.sets:
        if not of_default:
            raise UserError(
                "the set of the MPI default predicts it alone, and one wave: leave other algorithms, "
                "topologies and waves out"
            )
        return Predictions.of(tabulate_predictions(of_default, []), notes, [], known.folders)
    points = [point for point in points if point.algorithm != LIBRARY]
    # Of a run in the folder of results only the best model is shown beside the recommended times.
    predictions = known.predict(points, quantity, shows_models=bool(sources))
    measured = known.find_measured(points)
    rows = tabulate_predictions(
        [*predictions, *of_default], known.sets, bool(quantity.waves), measured
    )
    notes += omitted
    notes += describe_origins(known.sets, known.resources.name if known.resources else "")
    if known.resources:
        notes += known.resources.describe_extension(max(point.ranks for point in points))
    names_alternatives = bool(pattern["algorithm"] or pattern["topology"])
    has_arguments = any(
        algorithm.argument for algorithm in find_algorithms(points[0].operation).values()
    )
    has_defaults = has_arguments and not names_alternatives
    return Predictions.of(rows, notes, known.sets, known.folders, has_defaults=has_defaults)


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """What predictions are made from."""

    sets: list[ParameterSet]
    default: MpiDefault | None
    evidence: Evidence | None  # measured points, or residuals that sets store
    resources: PlatformResources | None
    folders: str = ""  # a line that names the folders of results
    is_campaign: bool = False

    @classmethod
    def of_campaign(
        cls, evidence: Evidence, folders: str, request: DefaultRequest, operation: str
    ) -> _Knowledge:
        return cls(
            sets=[] if request.is_alone else list(evidence.by_model().values()),
            default=evidence.find_default(operation) if request.is_named else None,
            evidence=evidence,
            resources=evidence.resources,
            folders=folders,
            is_campaign=True,
        )

    @classmethod
    def of_sets(
        cls,
        all_sets: Sequence[ParameterSet],
        resources: PlatformResources | None,
        request: DefaultRequest,
        has_residuals: bool,
    ) -> _Knowledge:
        """Return what parameter sets tell. `has_residuals`: the residuals that they store count."""
        of_models, default = split_sets(all_sets)
        sets = [] if request.is_alone else of_models
        evidence = find_stored_evidence(sets, resources) if has_residuals else None
        return cls(sets=sets, default=default, evidence=evidence, resources=resources)

    def predict(
        self, points: Sequence[Point], quantity: PredictedQuantity, shows_models: bool
    ) -> list[Prediction]:
        """Return the recommended predictions where enough was measured, with those of all models or
        of the best one, else those of all sets."""
        predictions: list[Prediction] = []
        if self.evidence and self.is_campaign:
            from commodel.advice.recommended_times import recommend_times  # slow to load

            models = [parameters.model for parameters in self.sets] if shows_models else None
            predictions = recommend_times(self.evidence, points, models)
        elif self.evidence:
            predictions = predict_recommended(self.evidence, points)
        return predictions or predict_sets(self.sets, points, quantity.pipelined)

    def find_measured(self, points: Sequence[Point]) -> Mapping[Point, float]:
        """Return the measured times of points of a campaign."""
        return self.evidence.find_measured(points) if self.evidence and self.is_campaign else {}


def _predict_default(
    pattern: Mapping[str, Any], known: _Knowledge, quantity: PredictedQuantity
) -> tuple[list[Prediction], list[str]]:
    """Return the predictions of the MPI default, and notes on them; nothing if it is unknown."""
    if known.default is None:
        return [], []
    complete = complete_pattern(pattern, known.default, has_platform=known.resources is not None)
    points = _list_wanted(complete, complete["sizes"], known.resources, quantity, [])
    predictions = predict_default(known.default, points)
    layout = None if complete["layout"] == pattern["layout"] else complete["layout"]
    notes = describe_default(known.default, predictions, layout, quantity.statistic)
    return predictions, notes


def _is_run(sources: Sequence[Source | AnyPath]) -> bool:
    """Return whether the only source is a run."""
    return len(sources) == 1 and hasattr(sources[0], "choose_platform")


def _find_campaign(
    sources: Sequence[Source | AnyPath],
    platform: str | None,
    experiment: str | None,
    operation: str,
) -> tuple[Evidence, str]:
    """Return the evidence of a run, or of the runs in the folder of results, with a line that names
    the folders."""
    # imports this
    from commodel.api.recommendations import (
        describe_evidence_folders,
        find_evidence,
        gather_evidence,
    )

    if sources:
        return gather_evidence(cast(Source, sources[0]), platform), ""
    evidence, paths = find_evidence((), platform, experiment, operation)
    return evidence, describe_evidence_folders(evidence, paths) if paths else ""


def _list_wanted(
    pattern: Mapping[str, Any],
    sizes: str | None,
    resources: PlatformResources | None,
    quantity: PredictedQuantity,
    omitted: list[str],
) -> list[Point]:
    return list_points(
        **{**pattern, "sizes": sizes},
        resources=resources,
        waves=quantity.waves,
        omitted=omitted,
        statistic=quantity.statistic,
    )


def predict_recommended(evidence: Evidence, points: Sequence[Point]) -> list[Prediction]:
    """Return the recommended predictions by the residuals that sets store, and those of all models;
    nothing if too little was measured."""
    from commodel.advice.evidence import find_placement  # slow to load
    from commodel.advice.recommended_times import recommend_times

    sets = evidence.by_model()
    placements = {find_placement(point) for point in points}
    if not all(evidence.find_recommender(list(sets), placement) for placement in placements):
        return []
    try:
        return recommend_times(evidence, points, list(sets))
    except UserError:
        return []


def find_stored_evidence(
    sets: Sequence[ParameterSet], resources: PlatformResources | None
) -> Evidence | None:
    """Return parameter sets as evidence, if one stores its residuals; None otherwise, or with two
    sets of a model."""
    families = {parameters.model for parameters in sets}
    if len(families) < len(sets) or not any(parameters.residuals for parameters in sets):
        return None
    from commodel.advice.evidence import combine_sets  # slow to load

    return combine_sets(sets, resources)


class NoSourceError(UserError):
    """There is nothing to take parameter values from."""


def choose_sets(
    sources: Sequence[Source | AnyPath],
    model: str | None,
    settings: Sequence[str],
    platform: str | None = None,
) -> list[ParameterSet]:
    """Return the parameter sets of the sources with some values in place of theirs (`NAME=VALUE`),
    or one set of these values alone."""
    if not sources and not model:
        found = f"{settings[0]} with neither" if settings else "neither"
        raise NoSourceError(f"found {found} a model nor parameters, wanted one of the two")
    sets = [parameters for source in sources for parameters in read_sets(source, model, platform)]
    if sources:
        return replace_by_hand(sets, settings)
    assert model is not None
    return [make_given_set(model, settings)]


def read_sets(
    source: Source | AnyPath, model: str | None = None, platform: str | None = None
) -> list[ParameterSet]:
    """Return the parameter sets of a source that belong to a model, or all: those of a file, of a
    folder of files, of a run, or of a report's workbook (REPORT.xlsx#PLATFORM)."""
    if isinstance(source, ParameterSet):
        sets = [source]
    elif hasattr(source, "parameter_sets"):
        sets = source.parameter_sets(platform)
    else:
        file, _, sheet = str(source).partition(".xlsx#")
        if sheet or file.endswith(".xlsx"):
            from commodel.reports.received_workbooks import read_platform_sets

            sets = read_platform_sets(Path(file.removesuffix(".xlsx") + ".xlsx"), sheet)
        else:
            files = [source] if isinstance(source, SafePath) else list_sets(Path(source))
            sets = [read_set(file) for file in files]
    wanted = [parameters for parameters in sets if model in (None, parameters.model)]
    if not wanted:
        names = ", ".join(sorted({parameters.model for parameters in sets}))
        where = None if isinstance(source, ParameterSet) else str(source)
        raise UserError(f"found parameters of model '{names}', wanted {model}", file=where)
    return wanted


def find_only_size(sets: Iterable[ParameterSet]) -> str | None:
    """Return the size for models without message size: the one at which their values were measured,
    else 1 B."""
    if any(find_family(parameters.model).uses_bytes for parameters in sets):
        return None
    sizes = {int(parameters.bytes_range[0]) for parameters in sets if parameters.bytes_range}
    return str(sizes.pop()) if len(sizes) == 1 else "1"


def list_points(
    operation: str | None,
    algorithm: Sequence[str] = (),
    topology: Sequence[str] = (),
    ranks: str | None = None,
    sizes: str | None = None,
    layout: str | None = None,
    resources: PlatformResources | None = None,
    waves: str | None = None,
    omitted: list[str] | None = None,
    statistic: Statistic = Statistic.COMPLETION,
) -> list[Point]:
    """Return every combination of the given names and amounts as one point, of a statistic. If the
    platform has too few nodes for the ranks, more are assumed. With `omitted`, ranks that the
    platform cannot hold are left out and the reasons added to it, unless it holds none."""
    if not operation:
        raise UserError("operation is missing")
    resources = resources or PlatformResources.unlimited()
    repeats: list[dict[str, Any]] = (
        [{"waves": count} for count in expand_axis(waves, parse_waves)]
        if waves is not None
        else [{}]
    )
    if is_pattern_file(operation):
        pattern_options = {"algorithm": algorithm, "topology": topology, "bytes": sizes}
        wrong = [key for key, value in pattern_options.items() if value]
        if wrong:
            raise UserError(f"{wrong[0]}: the file of '{operation}' has all messages; leave it out")
        file_points = _list_file_points(operation, ranks, layout, resources, repeats)
        return [replace(point, statistic=statistic) for point in file_points]
    name = canonicalize_operation(operation)
    if algorithm and topology:
        raise UserError("give algorithm or topology, not both")
    if topology and ranks:
        raise UserError("a topology determines the number of ranks; leave ranks out")
    if not topology and not ranks and not find_required_ranks(name):
        raise UserError(f"ranks is missing; {name} needs a number of ranks, or a topology")
    if has_size(name) and sizes is None:
        raise UserError(f"bytes is missing; {name} needs a message size")
    # `near` is made for messages that do not depend on the placement
    every = {
        spec: algorithm
        for spec, algorithm in find_algorithms(name).items()
        if not (algorithm.needs_argument or (algorithm.placement and layout == NEAR_LAYOUT))
    }
    alternatives: list[dict[str, Any]] = [{"topology": spec} for spec in topology] or [
        {"algorithm": spec} for spec in algorithm or every
    ]
    with locate_mistakes(key="ranks"):
        counts = [{"ranks": count} for count in expand_axis(ranks, parse_count)] if ranks else [{}]
    with locate_mistakes(key="bytes"):
        lengths = expand_axis(sizes, parse_bytes) if has_size(name) else [0]
    combinations = len(alternatives) * len(counts) * len(lengths) * len(repeats)
    if combinations > MAX_PATTERNS:
        raise UserError(f"found {combinations} patterns, wanted at most {MAX_PATTERNS}")
    common: dict[str, Any] = {"operation": name} | ({"layout": layout} if layout else {})
    make = _make_near_point if layout == NEAR_LAYOUT else make_point
    wanted = [
        common | alternative | count | {"bytes": length} | repeat
        for alternative in alternatives
        for count in counts
        for length in lengths
        for repeat in repeats
    ]
    extended = resources.extended(max(map(find_ranks, wanted), default=0))
    points: list[Point] = []
    mistakes: list[UserError] = []
    for combination in wanted:
        try:
            point = make(extended, combination)
        except UserError as error:
            entry = None if algorithm else every.get(combination.get("algorithm", ""))
            if entry and entry.placement and error.key == "layout":
                continue
            if omitted is None or error.key not in ("ranks", "layout"):
                raise
            mistakes.append(error)
            continue
        # Unless asked for, algorithms that follow the placement are listed where that matters.
        if algorithm or makes_use_of_placement(point) or not depends_on_placement(point):
            points.append(point)
    if not points:
        raise mistakes[0]
    if omitted is not None:
        omitted += dict.fromkeys(f"left out: {error.message}" for error in mistakes)
    return list(dict.fromkeys(replace(point, statistic=statistic) for point in points))


def _list_file_points(
    operation: str,
    ranks: str | None,
    layout: str | None,
    resources: PlatformResources,
    repeats: Sequence[dict[str, Any]],
) -> list[Point]:
    """Return the points of a pattern file. Ranks may be given if they agree with it."""
    pattern: dict[str, Any] = {"operation": operation, "layout": layout}
    with locate_mistakes(key="ranks"):
        counts = expand_axis(ranks, parse_count) if ranks else [None]
    points = (
        make_point(resources, pattern | {"ranks": count} | repeat)
        for count in counts
        for repeat in repeats
    )
    return list(dict.fromkeys(points))


def _make_near_point(resources: PlatformResources, combination: Mapping[str, Any]) -> Point:
    from commodel.advice.alternatives import make_combination_point  # slow to load

    point = make_combination_point(resources, combination, requested=True)
    assert point is not None  # None only if not requested
    return point


def build_one_schedule(**pattern: Any) -> Schedule:
    """Return the messages of the one pattern that these names and amounts mean, as for
    `list_points`."""
    points = list_points(**pattern)
    if len(points) != 1:
        raise UserError(
            f"these options mean {len(points)} patterns; name one algorithm or topology, one size"
        )
    return build_schedule(points[0])


def predict_sets(
    sets: Sequence[ParameterSet], points: Sequence[Point], pipelined: bool = False
) -> list[Prediction]:
    """Return the predictions of all sets, point by point."""
    columns = []
    for parameters in sets:
        with report_within(f"by {parameters.model}"):
            columns.append(predict_points(parameters, points, pipelined))
    return [prediction for row in zip(*columns, strict=True) for prediction in row]


def tabulate_predictions(
    predictions: Sequence[Prediction],
    sets: Sequence[ParameterSet],
    waves: bool = False,
    measured: Mapping[Point, float] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return a row for each prediction of `predict_sets`. Columns have the values given by hand,
    and the measured times of points."""
    has_measured = any(row.point in measured for row in predictions)
    notes = {parameters.model: describe_changes(parameters) for parameters in sets}
    changed = any(notes.values())
    names = PATTERN_FIELDS + (("waves",) if waves else ())
    names += (
        ("statistic",)
        if any(row.point.statistic is not Statistic.COMPLETION for row in predictions)
        else ()
    )
    return [
        {"model": row.model}
        | {name: getattr(row.point, name) for name in names}
        | {name: getattr(row.point, name) or None for name in ("algorithm", "topology")}
        | ({"measured": measured.get(row.point)} if has_measured else {})
        | {"seconds": row.seconds}
        | _make_interval_columns("low", "high", row.low, row.high)
        | _make_interval_columns(
            "parameter_low", "parameter_high", row.parameter_low, row.parameter_high
        )
        | {"basis": row.interval, "validity": row.validity_text}
        | ({BY_HAND_KEY: notes.get(row.model, "")} if changed else {})
        for row in predictions
    ]


def _make_interval_columns(
    low_name: str, high_name: str, low: float, high: float
) -> dict[str, float]:
    """Return the columns of an interval; NaN in both without one, as of values from data sheets."""
    return {low_name: low, high_name: high} if low < high else {low_name: nan, high_name: nan}


def _format_with_unit(model: str | None, name: str, value: Value) -> str:
    """Return a value as text with the unit that the model's parameter has; text stays as it is."""
    if isinstance(value, str):
        return value
    if model is None:
        raise UserError(
            f"found {name}={value!r} without model=, wanted a model or text with a unit"
        )
    family, text = find_family(model), repr(float(value))
    return (
        f"{text} {find_unit(family, family.full_name(name), {})}".strip()
        if name in family.by_name
        else text
    )


def list_sources(sources: Source | Sequence[Source]) -> list[Source]:
    return list(sources) if isinstance(sources, list | tuple) else [cast(Source, sources)]


def list_names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def join_amounts(amounts: Amounts | None) -> str | None:
    if amounts is None:
        return None
    return (
        ",".join(map(str, amounts)) if isinstance(amounts, list | tuple | range) else str(amounts)
    )
