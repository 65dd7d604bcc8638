"""Predicted times of points: `predict` for one parameter set, `predict_shapes` for shapes under
many sets.

A `Model` predicts stacks of schedules. Points that differ only in size form one stack.

- An operation that is a sum, such as SUMMA with its iterations: all ranks begin each part at the
  same time, so
predictions add up (equation 11 of the τ–Lop paper). Equal parts are predicted once and multiplied
by their number.
- A stream of waves of one pattern: the prediction is the time between the ends of two waves. A
  model may have an
equation for it (`pipelined`). If ranks proceed independently (`independent`), waves follow one
another like steps, and the period is the time that each further wave adds. A model that adds up
steps for all ranks at once predicts no stream.
- `attribute_time` attributes a predicted time to the messages on its critical path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf, nan
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from commodel.errors import UserError, describe_error
from commodel.models import Array
from commodel.models.evaluation.replay import attribute_to_messages
from commodel.models.families import Family, find_family
from commodel.parameters import ParameterSet
from commodel.patterns.build import ScheduleSum, Shape, build_schedule, stack_points, stack_sizes
from commodel.patterns.repeated import CompactSchedule, sample_rounds
from commodel.patterns.schedule import NonblockingSteps, Schedule, Work, check_rows
from commodel.predictions.interval_basis import PARAMETERS_ONLY, IntervalBasis
from commodel.predictions.model import Model
from commodel.predictions.places import Places
from commodel.predictions.sockets import place_in_sockets
from commodel.predictions.stored_residuals import load_residuals
from commodel.predictions.validity import (
    VALID,
    Validity,
    ValidityKind,
    add_memory_check,
    assess_validity,
    compute_single_message_ratios,
    find_widening_factor,
    select_reported_check,
)
from commodel.progress import report_step, report_within
from commodel.records import ROOTED_OPERATIONS, Point, Statistic
from commodel.units import format_bytes, format_extent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class StackPrediction:
    """Predictions for a stack: seconds of shape (sizes, rows), with the estimate in row 0. For each
    size also the single-message ratio, the validity, the factor that widens the interval, and the
    time of the shortest message."""

    seconds: Array
    ratios: Array
    validity: list[Validity]
    widening: Array
    message_seconds: Array

    def summarize(self) -> PredictedTimes:
        """Return the estimates with their parameter intervals."""
        seconds, low, high = _find_interval(self.seconds)
        times = seconds, low / self.widening, high * self.widening
        return PredictedTimes(*times, self.ratios, self.validity, self.message_seconds)


def sum_parts(
    pattern: ScheduleSum, predict_part: Callable[[Schedule, float], StackPrediction], waves: float
) -> StackPrediction:
    """Return the sum of the predictions of the parts, row by row, so that the interval is that of
    the sum. A check that fails for a part fails for the sum."""
    if waves != 1:
        name = pattern.shape.point.operation
        raise UserError(
            f"found several waves of '{name}', whose ranks begin each iteration together; wanted one wave"
        )
    parts = [(count, predict_part(part, waves)) for count, part in pattern.iterate_parts()]
    rows = min(part.seconds.shape[1] for _, part in parts)  # a long schedule has fewer draws
    zero = np.zeros(())
    total = sum((count * part.seconds[:, :rows] for count, part in parts), zero)
    scaled = sum((count * part.seconds[:, 0] * part.ratios for count, part in parts), zero)
    estimate = total[:, 0]
    checks_of_sizes = zip(*(part.validity for _, part in parts), strict=True)
    return StackPrediction(
        seconds=total,
        ratios=np.divide(scaled, estimate, out=np.ones_like(scaled), where=estimate > 0),
        validity=[select_reported_check(*checks) for checks in checks_of_sizes],
        widening=np.max([part.widening for _, part in parts], axis=0),
        message_seconds=sum((count * part.message_seconds for count, part in parts), zero),
    )


# waves; the period is the mean between these two, which excludes the start of a stream
FEW_WAVES, MANY_WAVES = 8, 16
LONG_STREAM_WAVES = 2, 4  # the same for schedules above one of the following limits
LONG_STREAM_MESSAGES, LONG_STREAM_STEPS = 100_000, 500

# predicts a pattern in seconds: `Model.cost`, or an equation
CostFunction = Callable[[Model, Schedule], Array]
# evaluates a cost function with the values of one model
Evaluate = Callable[[CostFunction, Schedule], Array]


class WaveStream:
    """A stream of waves of one pattern, at one size or several. The schedules of each number of
    waves are made once, for all models."""

    def __init__(self, pattern: Schedule) -> None:
        self.pattern = pattern
        self._repeated: dict[int, Schedule] = {}

    def period(self, family: Family, evaluate: Evaluate, waves: float = inf) -> Array:
        """Return the mean time between the ends of two waves, in a stream of so many waves or an
        endless one. Only the first waves are replayed. Each further wave adds the mean period of
        the last replayed ones."""
        if family.pipelined is not None:
            return evaluate(Model.period, self.pattern)
        if not family.independent:
            raise UserError(
                f"model {family.name} adds up steps for all ranks at once: it has no prediction of waves"
            )
        short_stream, long_stream = self._lengths
        first_end = evaluate(Model.cost, self.pattern)
        if waves <= long_stream:
            return (self._cost(evaluate, int(waves)) - first_end) / (waves - 1)
        late_end = self._cost(evaluate, long_stream)
        rate = (late_end - self._cost(evaluate, short_stream)) / (long_stream - short_stream)
        return (
            rate
            if waves == inf
            else (late_end - first_end + (waves - long_stream) * rate) / (waves - 1)
        )

    def _cost(self, evaluate: Evaluate, waves: int) -> Array:
        if waves not in self._repeated:
            self._repeated[waves] = repeat_waves(self.pattern, waves)
        return evaluate(Model.cost, self._repeated[waves])

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        return (
            LONG_STREAM_WAVES
            if self.pattern.messages > LONG_STREAM_MESSAGES
            or self.pattern.last_step >= LONG_STREAM_STEPS
            else (FEW_WAVES, MANY_WAVES)
        )


def predicts_streams(family: Family) -> bool:
    """Return whether a model predicts the time between waves."""
    return family.pipelined is not None or family.independent


def repeat_waves(pattern: Schedule, waves: int) -> Schedule:
    """Return the schedule repeated `waves` times. A rank begins the next wave when its part of the
    last one is done."""
    if isinstance(pattern, CompactSchedule):
        stream = CompactSchedule(
            pattern.ranks,
            pattern.parts * waves,
            pattern.root,
            lambda: repeat_waves(pattern.whole, waves),
        )
        return stream.place(pattern.node)
    work = pattern.work
    steps = pattern.last_step + 1
    check_rows(waves * pattern.messages)

    def repeat_column(column: np.ndarray, step_stride: int = 0) -> np.ndarray:
        return (
            (column + step_stride * np.arange(waves)[:, None]).ravel()
            if step_stride
            else np.tile(column, waves)
        )

    return replace(
        pattern,
        step=repeat_column(pattern.step, steps),
        src=repeat_column(pattern.src),
        dst=repeat_column(pattern.dst),
        bytes=repeat_column(pattern.bytes),
        nonblocking=pattern.nonblocking
        and NonblockingSteps(
            *(repeat_column(column, steps) for column in pattern.nonblocking.columns)
        ),
        work=Work(repeat_column(work.step, steps), *map(repeat_column, work.columns[1:])),
        contents=None,
    )


# draws × messages of one schedule; a longer schedule gets fewer draws, at least MIN_DRAWS
MAX_CELLS = 20_000_000
MIN_DRAWS = 20  # draws
MAX_STACKED_MESSAGES = 1_000_000  # sizes × messages of one stack
# sizes × draws × messages predicted at a time, which limits the size of arrays
MAX_BLOCK_CELLS = 4_000_000
# the same for one step on average: more would not fit into a processor's cache
MAX_STEP_CELLS = 1 << 14
INFINITE_WAVES = inf  # waves of a stream without end


@dataclass(frozen=True, eq=False)
class PredictedTimes:
    """Predictions of one pattern at several sizes: seconds with 95 % parameter intervals. NaN is no
    prediction, and the validity has the reason."""

    seconds: Array
    low: Array
    high: Array
    single_message_ratio: Array  # measured over predicted time of its messages, each sent alone
    validity: list[Validity]
    # predicted time of the shortest message alone; 0 if it is no lower bound
    message_seconds: Array

    @classmethod
    def none(cls, sizes: int, validity: Validity = VALID) -> PredictedTimes:
        seconds, low, high, ratio = np.full((4, sizes), nan)
        return cls(
            seconds=seconds,
            low=low,
            high=high,
            single_message_ratio=ratio,
            validity=[validity] * sizes,
            message_seconds=np.zeros(sizes),
        )

    @classmethod
    def of_corrected(cls, seconds: Array, message_seconds: Array) -> PredictedTimes:
        """Return times that have been corrected, which have no parameter interval."""
        unknown = np.full(len(seconds), nan)
        return cls(
            seconds=seconds,
            low=unknown,
            high=unknown,
            single_message_ratio=unknown,
            validity=[],
            message_seconds=message_seconds,
        )

    def put(self, positions: Sequence[int], predictions: PredictedTimes) -> None:
        for name in ("seconds", "low", "high", "single_message_ratio", "message_seconds"):
            getattr(self, name)[positions] = getattr(predictions, name)
        for position, validity in zip(positions, predictions.validity, strict=True):
            self.validity[position] = validity


def make_predictor(
    parameters: ParameterSet,
    strict: bool = True,
    draws: int | None = None,
    cost: CostFunction | None = None,
) -> Callable[[Schedule | ScheduleSum, float], PredictedTimes]:
    """Return a function that predicts a stack of schedules with these parameters. For several waves
    it predicts the time between two. `draws` limits the draws for the interval. If a prediction is
    impossible, it raises an error, or returns NaN with the reason if not `strict`. `cost` replaces
    `Model.cost`."""
    if not parameters.values and not strict:
        reason = Validity(ValidityKind.NO_FIT, next(iter(parameters.missing.values()), "no values"))
        return lambda pattern, waves: PredictedTimes.none(pattern.sizes, reason)
    model = Model.of_set(parameters, draws)

    def predict_schedule(pattern: Schedule, waves: float) -> StackPrediction:
        pattern = place_in_sockets(pattern, parameters.settings)
        seconds = _evaluate(model, pattern, waves, cost or Model.cost)
        validity = assess_validity(model.estimate, parameters, pattern, waves)
        validity = add_memory_check(parameters, pattern, seconds[:, 0], validity)
        ratios = compute_single_message_ratios(parameters, pattern)
        widening = find_widening_factor(model.family, parameters, pattern)
        return StackPrediction(
            seconds=seconds,
            ratios=ratios,
            validity=validity,
            widening=widening,
            message_seconds=predict_shortest_message(model, pattern, waves),
        )

    def predict_stack(pattern: Schedule | ScheduleSum, waves: float) -> PredictedTimes:
        try:
            prediction = (
                sum_parts(pattern, predict_schedule, waves)
                if isinstance(pattern, ScheduleSum)
                else predict_schedule(pattern, waves)
            )
        except Exception as error:
            if strict:
                raise
            return PredictedTimes.none(
                pattern.sizes, Validity(ValidityKind.NO_PREDICTION, describe_error(error))
            )
        times = prediction.summarize()
        if parameters.draws and draws == 0:  # the set has draws, but the caller wants no interval
            times.low[:] = times.high[:] = nan
        is_invalid = ~np.isfinite(times.seconds) | (times.seconds < 0)
        for number in np.flatnonzero(is_invalid).tolist():
            why = "below 0" if times.seconds[number] < 0 else "no number"
            times.put([number], PredictedTimes.none(1, Validity(ValidityKind.NO_PREDICTION, why)))
        return times

    return predict_stack


def predict_shortest_message(model: Model, pattern: Schedule, waves: float = 1) -> Array:
    """Return, at each size of a stack, the predicted time of a shortest message that is sent alone,
    the nearest one if several distances have messages. A pattern cannot take less. Streams overlap,
    so the bound of a period is 0."""
    if waves != 1 or not pattern.messages:
        return np.zeros(pattern.sizes)
    bounds = [np.full(pattern.sizes, inf)]
    for _, part in sample_rounds(pattern):
        lengths = part.bytes.reshape(pattern.sizes, -1)
        for channel in np.flatnonzero(np.bincount(part.channel)):
            of_channel = np.flatnonzero(part.channel == channel)
            shortest = of_channel[lengths[0, of_channel].argmin()]
            message = Schedule.of(2, 0, 0, 1, lengths[0, shortest]).place(
                part.node[[part.src[shortest], part.dst[shortest]]]
            )
            message = message.resize(
                lengths[:, shortest].reshape(-1, 1, 1), np.zeros((pattern.sizes, 1, 0))
            )
            with suppress(UserError):  # a model that cannot predict it gives no bound
                bounds.append(
                    np.broadcast_to(np.ravel(model.estimate.cost(message)), pattern.sizes)
                )
    bound = np.nan_to_num(np.min(bounds, axis=0), posinf=0.0)
    return np.maximum(bound, 0.0)


def _evaluate(model: Model, pattern: Schedule, waves: float, cost: CostFunction) -> Array:
    """Return (sizes, rows) of the predicted time, or of the time between waves."""
    width = pattern.messages if model.family.by_message else pattern.width
    draws = min(model.rows - 1, max(MIN_DRAWS, MAX_CELLS // max(width, 1)))
    evaluate = partial(_evaluate_in_blocks, model, 1 + draws)
    return (
        evaluate(cost, pattern)
        if waves == 1
        else WaveStream(pattern).period(model.family, evaluate, waves)
    )


def _find_interval(costs: Array) -> tuple[Array, Array, Array]:
    """Return the estimate and its 95 % interval at each size."""
    seconds = costs[:, 0]
    if costs.shape[1] == 1:
        return seconds, seconds, seconds
    low, high = np.percentile(costs[:, 1:], [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def _evaluate_in_blocks(model: Model, count: int, cost: CostFunction, pattern: Schedule) -> Array:
    """Return seconds of shape (sizes, rows), evaluated in blocks to limit memory. Unless all rows
    fit into one block, a block has a power of two rows."""
    sizes = pattern.sizes
    messages = max(pattern.width, 1)
    max_cells = max(min(MAX_BLOCK_CELLS, MAX_STEP_CELLS * (pattern.last_step + 1)) // messages, 1)
    sizes_per_block = max(max_cells // count, 1)
    rows_per_block = count if max_cells >= count else 1 << (max_cells.bit_length() - 1)
    costs = np.empty((sizes, count))
    starts = range(0, count, rows_per_block)
    blocks = -(-sizes // sizes_per_block) * len(starts)
    for first in range(0, sizes, sizes_per_block):
        part = pattern
        if sizes_per_block < sizes:
            block_sizes = slice(first, first + sizes_per_block)
            part = pattern.resize(pattern.bytes[block_sizes], pattern.work.bytes[block_sizes])
        for number, start in enumerate(starts, 1 + first // sizes_per_block * len(starts)):
            stop = min(start + rows_per_block, count)
            if blocks > 1:
                report_step(f"part {number} of {blocks}")
            block = cost(model.select_rows(start, stop), part)
            ignores_size = block.ndim == 1  # the size does not matter
            costs[
                slice(None) if ignores_size else slice(first, first + sizes_per_block), start:stop
            ] = block
        if ignores_size:
            break
    return costs


def predict_shapes(
    shapes: Iterable[Shape],
    sets: Mapping[str, ParameterSet],
    draws: int | None = None,
    select: Callable[[Shape], Sequence[str]] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the columns of predictions of each shape with each parameter set, in the given orders.
    A single value stands for a constant column. The keys of `sets` are the texts of the column
    `parameters`. `draws` limits the draws for an interval. `select` returns the names of the sets
    that predict a shape; None: all."""
    predictors = {
        name: make_predictor(parameters, strict=False, draws=draws)
        for name, parameters in sets.items()
    }
    for shape in shapes:
        sizes = np.array(shape.sizes)
        point = shape.point
        names = {
            name: getattr(point, name) or None
            for name in ("operation", "algorithm", "topology", "layout")
        }
        names |= {
            "ranks": point.ranks,
            "bytes": sizes,
            "waves": point.waves,
            "platform": point.platform or None,
        }
        chosen = select(shape) if select else list(sets)
        predicted = {name: PredictedTimes.none(len(sizes)) for name in chosen}
        try:
            for positions, pattern in stack_sizes(shape, MAX_STACKED_MESSAGES):
                for name in chosen:
                    predicted[name].put(positions, predictors[name](pattern, point.waves))
        except UserError as error:
            no_prediction = Validity(ValidityKind.NO_PREDICTION, error.message)
            predicted = dict.fromkeys(chosen, PredictedTimes.none(len(sizes), no_prediction))
        for name, predictions in predicted.items():
            interval = find_prediction_interval(sets[name], predictions, point, sizes)
            bases = zip(interval.bases, predictions.seconds, strict=True)
            yield {
                **names,
                "model": sets[name].model,
                "parameters": name,
                "seconds": predictions.seconds,
                "low": interval.low,
                "high": interval.high,
                "single_message_ratio": predictions.single_message_ratio,
                "validity": [validity.text for validity in predictions.validity],
                "parameter_low": predictions.low,
                "parameter_high": predictions.high,
                "basis": [basis.text if seconds == seconds else "" for basis, seconds in bases],
            }


@dataclass(frozen=True, eq=False)
class Interval:
    """An interval at each size, in seconds, and its basis."""

    low: Array
    high: Array
    bases: list[IntervalBasis]


def find_prediction_interval(
    parameters: ParameterSet,
    predictions: PredictedTimes,
    point: Point,
    sizes: Iterable[float],
    waves: float | None = None,
) -> Interval:
    """Return the prediction interval of a point at several sizes, from the residuals of the
    parameter set."""
    if parameters.residuals is None:
        low, high = contain_prediction(predictions.low, predictions.high, predictions.seconds)
        return Interval(low, high, [PARAMETERS_ONLY] * len(low))
    model = load_residuals(parameters.residuals)
    places = Places.of_sizes(point, sizes, waves, parameters.settings.get("levels"))
    return apply_corrections(predictions, *model.predict_singly(places), model.find_bases(places))


def apply_corrections(
    predictions: PredictedTimes, logs: Array, half_width: Array, bases: list[IntervalBasis]
) -> Interval:
    """Return the interval of predictions, from corrections of their logarithms, 0 if they are
    corrected, and half widths. All prediction intervals come from this function.

    It always contains the prediction, and never begins below the time of the shortest message.
    Beyond the measured range it is never narrower than the parameter interval; within, residuals
    include that uncertainty. A model that ignores message size has no residuals."""
    if predictions.validity:
        pairs = zip(bases, predictions.validity, strict=True)
        bases = [basis if validity.has_weight else PARAMETERS_ONLY for basis, validity in pairs]
    has_residuals = np.array([basis.of_residuals for basis in bases], dtype=bool)
    is_extrapolated = np.array([basis.is_extrapolated for basis in bases], dtype=bool)
    low, high = (
        predictions.seconds * np.exp(end) for end in (logs - half_width, logs + half_width)
    )
    low = np.where(is_extrapolated, np.fmin(low, predictions.low), low)
    high = np.where(is_extrapolated, np.fmax(high, predictions.high), high)
    low, high = np.where(has_residuals, [low, high], [predictions.low, predictions.high])
    low, high = contain_prediction(low, high, predictions.seconds)
    # The draws of a parameter interval contain the uncertainty of a message's latency.
    bound = np.where(has_residuals, np.fmin(predictions.message_seconds, predictions.seconds), 0.0)
    return Interval(np.maximum(low, bound), high, bases)


def contain_prediction(low: Array, high: Array, seconds: Array) -> tuple[Array, Array]:
    """Return the ends of intervals, moved as far outward as the prediction lies outside."""
    return np.minimum(low, seconds), np.maximum(high, seconds)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted time in seconds, with its prediction interval and the basis of it, and its
    parameter interval."""

    model: str
    point: Point
    seconds: float
    low: float
    high: float
    validity: Validity = VALID
    basis: IntervalBasis = PARAMETERS_ONLY
    parameter_low: float = nan
    parameter_high: float = nan
    single_message_ratio: float = 1.0  # as of `PredictedTimes`
    message_seconds: float = 0.0  # as of `PredictedTimes`

    @property
    def validity_text(self) -> str:
        """The text of the validity in tables."""
        return self.validity.text

    @property
    def interval(self) -> str:
        """The basis of the interval, as text for tables; empty without a prediction."""
        return self.basis.text if self.seconds == self.seconds else ""


def predict(
    parameters: ParameterSet,
    points: Iterable[Point],
    pipelined: bool = False,
    strict: bool = True,
    draws: int | None = None,
    cost: CostFunction | None = None,
) -> list[Prediction]:
    """Return a prediction for each point, in the order of the points. If not `strict`, points
    without a schedule are left out. `pipelined`: the time between two waves of an endless stream.
    The other arguments are those of `make_predictor`."""
    # a plan also has points that are only measured
    points = [point for point in points if point.predictable or strict]
    predict_stack = make_predictor(parameters, strict, draws, cost)
    predictions: dict[int, Prediction] = {}
    for numbers, pattern in stack_points(points, MAX_STACKED_MESSAGES):
        first = points[numbers[0]]
        waves = INFINITE_WAVES if pipelined else first.waves
        with report_within(_describe_progress(first, len(numbers), len(predictions), len(points))):
            reason = explain_missing_statistic(find_family(parameters.model), first)
            if reason and strict:
                raise UserError(reason)
            predicted_times = (
                PredictedTimes.none(len(numbers), Validity(ValidityKind.NO_PREDICTION, reason))
                if reason
                else predict_stack(pattern, waves)
            )
        interval = find_prediction_interval(
            parameters, predicted_times, first, [points[number].bytes for number in numbers], waves
        )
        times = (predicted_times.seconds, interval.low, interval.high)
        other_columns = (
            predicted_times.low,
            predicted_times.high,
            predicted_times.single_message_ratio,
            predicted_times.message_seconds,
        )
        fields = (
            *(column.tolist() for column in times),
            predicted_times.validity,
            interval.bases,
            *(column.tolist() for column in other_columns),
        )
        for number, *fields_of_point in zip(numbers, *fields, strict=True):
            predictions[number] = Prediction(parameters.model, points[number], *fields_of_point)
    return [predictions[number] for number in sorted(predictions)]


def explain_missing_statistic(family: Family, point: Point) -> str:
    """Return why a model cannot predict the statistic of a point; empty if it can. A regression
    predicts what it was fitted to."""
    if point.statistic is Statistic.COMPLETION or point.operation not in ROOTED_OPERATIONS:
        return ""
    is_regression = family.table_fit is not None and family.table_fit.fit is not None
    if is_regression or not family.same_for_all_ranks:
        return ""
    return (
        f"{family.title} has one time for all ranks of a {point.operation}, so it has no "
        f"'{point.statistic}'"
    )


def predict_all(parameters: ParameterSet, points: Sequence[Point]) -> list[Prediction]:
    """Return the predictions of a campaign. If a set without a needed value or an error of the
    program prevents them all, all have that reason, so that the other models are reported. A
    mistake in the points concerns all models."""
    try:
        make_predictor(parameters, strict=False)
    except Exception as error:
        return _explain_no_predictions(parameters, points, error)
    try:
        return predict(parameters, points, strict=False)
    except UserError:  # such as a changed file of a pattern
        raise
    except Exception as error:
        return _explain_no_predictions(parameters, points, error)


def _explain_no_predictions(
    parameters: ParameterSet, points: Sequence[Point], error: Exception
) -> list[Prediction]:
    validity = Validity(ValidityKind.NO_PREDICTION, describe_error(error))
    return [
        Prediction(
            model=parameters.model,
            point=point,
            seconds=nan,
            low=nan,
            high=nan,
            validity=validity,
            single_message_ratio=nan,
        )
        for point in points
        if point.predictable
    ]


def _describe_progress(point: Point, sizes: int, finished: int, total: int) -> str:
    """Return a progress text: the predicted point, and how many predictions are done."""
    size = format_bytes(point.bytes) if sizes == 1 else f"{sizes} sizes"
    text = (
        f"{point.operation} {point.alternative} over {format_extent(point.leaves, point.ranks)}, "
        f"{size}"
    )
    return text if sizes == total else f"{text} ({finished} of {total} predictions done)"


def tabulate(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Return the table of predictions with parameter intervals, as the comparison reads it."""
    import pandas as pd

    fields = {  # by column
        "point": "point.id",
        "model": "model",
        "seconds": "seconds",
        "parameter_low": "parameter_low",
        "parameter_high": "parameter_high",
        "validity": "validity_text",
        "single_message_ratio": "single_message_ratio",
    }
    return pd.DataFrame(map(attrgetter(*fields.values()), predictions), columns=list(fields))


@dataclass(frozen=True, eq=False)
class TimeAttribution:
    """The predicted time of a point in seconds, and how many of them each message and all local
    work contribute."""

    point: Point
    model: str
    prediction: float
    src: np.ndarray
    dst: np.ndarray
    seconds: np.ndarray
    work: float

    @property
    def messages(self) -> list[tuple[int, int, float]]:
        """Return the messages on the critical path: from, to, seconds."""
        columns = (column.tolist() for column in (self.src, self.dst, self.seconds))
        return [(src, dst, seconds) for src, dst, seconds in zip(*columns, strict=True) if seconds]


def attribute_time(point: Point, parameters: ParameterSet) -> TimeAttribution | None:
    """Return which messages a predicted time depends on; None if the model does not replay
    messages."""
    pattern = place_in_sockets(build_schedule(point), parameters.settings)
    model = Model.of_set(parameters)
    prediction = float(model.cost(pattern)[0])
    seconds, work = attribute_to_messages(len(pattern.src), lambda: model.cost(pattern))
    if not seconds.any():
        return None
    return TimeAttribution(
        point=point,
        model=parameters.model,
        prediction=prediction,
        src=pattern.src,
        dst=pattern.dst,
        seconds=seconds,
        work=work,
    )
