"""Predicted times of points: `predict` for one parameter set, `predict_shapes` for shapes under many sets.

A `Model` predicts stacks of schedules: points that differ in size alone are one stack, whatever the number of draws.

- An operation that is a sum, such as SUMMA with its iterations: each part is begun by all ranks at once, so that costs
  add up (equation 11 of the τ–Lop paper). Equal parts are predicted once, times their number.
- A stream of waves of one pattern: the time between the ends of two waves. A model may have an equation for it
  (`pipelined`). Where ranks proceed independently (`independent`), the waves follow one another as steps do, and the
  period is what further waves add. A model that adds up steps for all ranks at once predicts no stream.
- `waits` attributes a predicted time to the messages on its critical path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.replay import message_contributions
from commodel.models.families import Family
from commodel.parameters import ParameterSet
from commodel.patterns.build import Shape, Sum, schedule, stack_points, stacks
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import Ends, Schedule, Work, check_rows
from commodel.predictions.model import Model
from commodel.predictions.prediction_intervals import (
    PARAMETERS_ONLY,
    Interval,
    IntervalBasis,
    PointSeries,
    apply_residuals,
    find_residuals,
)
from commodel.predictions.validity import (
    VALID,
    Validity,
    ValidityKind,
    assess_validity,
    choose_foremost,
    single_message_ratios,
    widening,
)
from commodel.progress import report_step, report_within
from commodel.records import Point
from commodel.units import format_bytes, format_extent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Costs:
    """Predictions for a stack: seconds (sizes, rows), the estimate first; and for each size the single-message ratio,
    the validity, and the factor that widens the interval."""

    seconds: Array
    ratios: Array
    validity: list[Validity]
    wider: Array


def add_parts(pattern: Sum, ask: Callable[[Schedule, float], Costs], waves: float) -> Costs:
    """Return the sum of the predictions of the parts, row by row, so that the interval is that of the sum. A check that
    fails for a part fails for the sum."""
    if waves != 1:
        name = pattern.shape.point.operation
        raise UserError(f"found several waves of '{name}', whose iterations all ranks begin at once; wanted one")
    parts = [(count, ask(part, waves)) for count, part in pattern.counted()]
    rows = min(part.seconds.shape[1] for _, part in parts)  # a long schedule has fewer draws
    total = sum(count * part.seconds[:, :rows] for count, part in parts)
    took, estimate = sum(count * part.seconds[:, 0] * part.ratios for count, part in parts), total[:, 0]
    return Costs(
        total,
        np.divide(took, estimate, out=np.ones_like(took), where=estimate > 0),
        [choose_foremost(*several) for several in zip(*(part.validity for _, part in parts), strict=True)],
        np.max([part.wider for _, part in parts], axis=0),
    )


FEW_WAVES, MANY_WAVES = 8, 16  # waves: what the second half of a stream takes is not about its start
WAVES_OF_LONG = 2, 4  # of long schedules
LONG_STREAM_MESSAGES, LONG_STREAM_STEPS = 100_000, 500

Cost = Callable[[Model, Schedule], Array]  # of a pattern, or of an equation
Ask = Callable[[Cost, Schedule], Array]  # has a model answer


class Stream:
    """A stream of waves of one pattern, at one size or several. The schedules of each number of waves are made once,
    for all models."""

    def __init__(self, pattern: Schedule) -> None:
        self.pattern = pattern
        self._repeated: dict[int, Schedule] = {}

    def period(self, entry: Family, ask: Ask, waves: float = inf) -> Array:
        """Return the mean time between the ends of two waves: in a stream of so many, or in an endless one. Few waves
        are replayed; each further wave adds the mean of the last ones."""
        if entry.pipelined is not None:
            return ask(Model.period, self.pattern)
        if not entry.independent:
            raise UserError(f"family {entry.name} adds up steps for all ranks at once: it has no prediction of waves")
        short, long = self._lengths
        first = ask(Model.cost, self.pattern)
        if waves <= long:
            return (self._cost(ask, int(waves)) - first) / (waves - 1)
        late = self._cost(ask, long)
        rate = (late - self._cost(ask, short)) / (long - short)
        return rate if waves == inf else (late - first + (waves - long) * rate) / (waves - 1)

    def _cost(self, ask: Ask, waves: int) -> Array:
        if waves not in self._repeated:
            self._repeated[waves] = repeat_waves(self.pattern, waves)
        return ask(Model.cost, self._repeated[waves])

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        return (
            WAVES_OF_LONG
            if self.pattern.messages > LONG_STREAM_MESSAGES or self.pattern.last_step >= LONG_STREAM_STEPS
            else (FEW_WAVES, MANY_WAVES)
        )


def predicts_streams(entry: Family) -> bool:
    """Return whether a model predicts the time between waves."""
    return entry.pipelined is not None or entry.independent


def repeat_waves(pattern: Schedule, waves: int) -> Schedule:
    """Return a schedule repeated so many times: a rank begins the next wave when its part of the last one is done. A
    stack of sizes may have a count for each."""
    if isinstance(pattern, CompactSchedule):
        stream = CompactSchedule(
            pattern.ranks, pattern.parts * waves, pattern.root, lambda: repeat_waves(pattern.whole, waves)
        )
        return stream.placed(pattern.node)
    work = pattern.work
    steps = pattern.last_step + 1
    check_rows(waves * pattern.messages)

    def again(column: np.ndarray, apart: int = 0) -> np.ndarray:
        return (column + apart * np.arange(waves)[:, None]).ravel() if apart else np.tile(column, waves)

    return replace(
        pattern,
        step=again(pattern.step, steps),
        **{name: again(getattr(pattern, name)) for name in ("src", "dst", "bytes")},
        ends=pattern.ends and Ends(*(again(column, steps) for column in pattern.ends.columns)),
        work=Work(again(work.step, steps), *map(again, work.columns[1:])),
        holds=None,
    )


MAX_CELLS = 20_000_000  # draws × messages of one schedule; a very long one gets fewer draws, never none
FEWEST_DRAWS = 20  # draws
MOST_STACKED = 1_000_000  # sizes × messages of one stack
MAX_BLOCK_CELLS = 4_000_000  # sizes × draws × messages predicted at a time, or an array would be too large
MAX_STEP_CELLS = 1 << 14  # of them in a step, on average: more would leave a processor's cache
ENDLESS = inf  # waves of a stream without end


@dataclass(frozen=True, eq=False)
class PredictedTimes:
    """Predictions of one pattern at several sizes: seconds with 95 % intervals, NaN where the validity gives the
    reason."""

    seconds: Array
    low: Array
    high: Array
    single_message_ratio: Array  # measured over predicted time of its messages, each sent alone
    validity: list[Validity]

    @classmethod
    def none(cls, sizes: int, why: Validity = VALID) -> PredictedTimes:
        return cls(*np.full((4, sizes), nan), [why] * sizes)

    def put(self, places: Sequence[int], predictions: PredictedTimes) -> None:
        for name in ("seconds", "low", "high", "single_message_ratio"):
            getattr(self, name)[places] = getattr(predictions, name)
        for place, validity in zip(places, predictions.validity, strict=True):
            self.validity[place] = validity


def make_predictor(
    parameters: ParameterSet, strict: bool = True, draws: int | None = None, cost: Cost | None = None
) -> Callable[[Schedule | Sum, float], PredictedTimes]:
    """Return a function that predicts a stack of schedules with these parameters, which are read and completed once;
    for several waves, the time between two. `draws` limits the draws for the interval. If a prediction is impossible,
    it raises UserError, or if not strict returns NaN. `cost` is evaluated in place of `Model.cost`."""
    if not parameters.values and not strict:
        reason = Validity(ValidityKind.NOT_FITTED, next(iter(parameters.missing.values()), "no values"))
        return lambda pattern, waves: PredictedTimes.none(pattern.sizes, reason)
    model = Model.of_set(parameters, draws)

    def ask(pattern: Schedule, waves: float) -> Costs:
        seconds = _evaluate(model, pattern, waves, cost or Model.cost)
        validity = assess_validity(model.estimate, parameters, pattern, waves)
        ratios = single_message_ratios(parameters, pattern)
        return Costs(seconds, ratios, validity, widening(model.entry, parameters, pattern))

    def predict_stack(pattern: Schedule | Sum, waves: float) -> PredictedTimes:
        try:
            costs = add_parts(pattern, ask, waves) if isinstance(pattern, Sum) else ask(pattern, waves)
        except UserError as error:
            if strict:
                raise
            return PredictedTimes.none(pattern.sizes, Validity(ValidityKind.NO_PREDICTION, error.message))
        seconds, low, high = _find_interval(costs.seconds)
        times = np.stack([seconds, low / costs.wider, high * costs.wider])
        if parameters.draws and draws == 0:
            times[1:] = nan  # there is an interval, which is not wanted
        wrong = ~np.isfinite(seconds) | (seconds < 0)
        times[:, wrong] = nan
        for number in np.flatnonzero(wrong):
            why = "below 0" if seconds[number] < 0 else "no number"
            costs.validity[number] = Validity(ValidityKind.NO_PREDICTION, why)
        return PredictedTimes(*times, costs.ratios, costs.validity)

    return predict_stack


def _evaluate(model: Model, pattern: Schedule, waves: float, cost: Cost) -> Array:
    """Return (sizes, rows) of the predicted time, or of the time between waves."""
    width = pattern.messages if model.entry.by_message else pattern.width
    draws = min(model.rows - 1, max(FEWEST_DRAWS, MAX_CELLS // max(width, 1)))

    def ask(cost: Cost, schedule: Schedule) -> Array:
        return _evaluate_in_blocks(cost, model, 1 + draws, schedule)

    return ask(cost, pattern) if waves == 1 else Stream(pattern).period(model.entry, ask, waves)


def _find_interval(costs: Array) -> tuple[Array, Array, Array]:
    """Return the estimate and its 95 % interval at each size."""
    seconds = costs[:, 0]
    if costs.shape[1] == 1:
        return seconds, seconds, seconds
    low, high = np.percentile(costs[:, 1:], [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def _evaluate_in_blocks(cost: Cost, model: Model, count: int, pattern: Schedule) -> Array:
    """Return (sizes, rows), evaluated in blocks of both to limit memory. Blocks have a power of two rows, unless all
    fit."""
    sizes, messages = pattern.sizes, max(pattern.width, 1)
    room = max(min(MAX_BLOCK_CELLS, MAX_STEP_CELLS * (pattern.last_step + 1)) // messages, 1)
    at_once = max(room // count, 1)
    together = count if room >= count else 1 << (room.bit_length() - 1)
    costs, starts = np.empty((sizes, count)), range(0, count, together)
    blocks = -(-sizes // at_once) * len(starts)
    for first in range(0, sizes, at_once):
        part = pattern
        if at_once < sizes:
            of_these = slice(first, first + at_once)
            part = pattern.resized(pattern.bytes[of_these], pattern.work.bytes[of_these])
        for number, start in enumerate(starts, 1 + first // at_once * len(starts)):
            stop = min(start + together, count)
            if blocks > 1:
                report_step(f"part {number} of {blocks}")
            block = cost(model.some(start, stop), part)
            alike = block.ndim == 1  # the size does not matter
            costs[slice(None) if alike else slice(first, first + at_once), start:stop] = block
        if alike:
            break
    return costs


def predict_shapes(
    shapes: Iterable[Shape], sets: Mapping[str, ParameterSet], draws: int | None = None
) -> Iterator[dict[str, object]]:
    """Yield the predictions of a shape under a set, as columns: sizes in the order of the matrix, sets in theirs, shape
    after shape. A single value stands for a constant column. `sets` is keyed by the text of the column `parameters`;
    `draws` limits the draws for an interval."""
    predictors = {name: make_predictor(parameters, strict=False, draws=draws) for name, parameters in sets.items()}
    for shape in shapes:
        sizes, point = np.array(shape.sizes), shape.point
        names = {name: getattr(point, name) or None for name in ("operation", "algorithm", "topology", "layout")}
        names |= {"ranks": point.ranks, "bytes": sizes, "waves": point.waves}
        predicted = {name: PredictedTimes.none(len(sizes)) for name in sets}
        try:
            for places, pattern in stacks(shape, MOST_STACKED):
                for name, predict_stack in predictors.items():
                    predicted[name].put(places, predict_stack(pattern, point.waves))
        except UserError as error:
            why = Validity(ValidityKind.NO_PREDICTION, error.message)
            predicted = dict.fromkeys(sets, PredictedTimes.none(len(sizes), why))
        for name, predictions in predicted.items():
            interval = _find_prediction_interval(sets[name], predictions, point, sizes)
            bases = zip(interval.bases, predictions.seconds, strict=True)
            yield {
                **names,
                "family": sets[name].family,
                "parameters": name,
                "seconds": predictions.seconds,
                "low": interval.low,
                "high": interval.high,
                "single_message_ratio": predictions.single_message_ratio,
                "validity": [validity.text for validity in predictions.validity],
                "parameters_low": predictions.low,
                "parameters_high": predictions.high,
                "interval_basis": [basis.text if seconds == seconds else "" for basis, seconds in bases],
                "corrected": interval.corrected,
            }


def _find_prediction_interval(
    parameters: ParameterSet,
    predictions: PredictedTimes,
    point: Point,
    sizes: Iterable[float],
    waves: float | None = None,
) -> Interval:
    """Return the interval of a shape's predictions by the residuals that the set has."""
    workload = PointSeries.of(point, sizes, waves, parameters.settings.get("levels"))
    return apply_residuals(predictions, find_residuals(parameters.errors, workload))


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted time with its prediction interval, the basis of that, the parameter interval, and the prediction
    corrected by the median residual, which lies inside the prediction interval."""

    family: str
    point: Point
    seconds: float
    low: float
    high: float
    validity: Validity = VALID
    basis: IntervalBasis = PARAMETERS_ONLY
    parameters_low: float = nan
    parameters_high: float = nan
    single_message_ratio: float = 1.0  # as of `PredictedTimes`
    corrected: float = nan

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
    cost: Cost | None = None,
) -> list[Prediction]:
    """Return a prediction for each point, in the order of the points. `pipelined`: the time between two waves of an
    endless stream. The other arguments are those of `make_predictor`."""
    points = [point for point in points if point.predictable or strict]  # of a plan those that can be predicted
    predict_stack = make_predictor(parameters, strict, draws, cost)
    predictions: dict[int, Prediction] = {}
    for numbers, pattern in stack_points(points, MOST_STACKED):
        first = points[numbers[0]]
        waves = ENDLESS if pipelined else first.waves
        with report_within(_describe(first, len(numbers), len(predictions), len(points))):
            predicted_times = predict_stack(pattern, waves)
        interval = _find_prediction_interval(
            parameters, predicted_times, first, [points[number].bytes for number in numbers], waves
        )
        times = (predicted_times.seconds, interval.low, interval.high)
        for number, seconds, low, high, validity, basis, *rest in zip(
            numbers,
            *(column.tolist() for column in times),
            predicted_times.validity,
            interval.bases,
            *(
                column.tolist()
                for column in (
                    predicted_times.low,
                    predicted_times.high,
                    predicted_times.single_message_ratio,
                    interval.corrected,
                )
            ),
            strict=True,
        ):
            point = points[number]
            predictions[number] = Prediction(parameters.family, point, seconds, low, high, validity, basis, *rest)
    return [predictions[number] for number in sorted(predictions)]


def _describe(first: Point, sizes: int, done: int, count: int) -> str:
    """Return a progress text: which point is predicted, after how many of all."""
    size = format_bytes(first.bytes) if sizes == 1 else f"{sizes} sizes"
    text = f"{first.operation} {first.alternative} over {format_extent(first.leaves, first.ranks)}, {size}"
    return text if sizes == count else f"{text} ({done} of {count} predictions done)"


def tabulate(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Return predictions as the table that the comparison reads, with parameter intervals."""
    import pandas as pd

    rows = [
        (
            row.point.id,
            row.family,
            row.seconds,
            row.parameters_low,
            row.parameters_high,
            row.validity_text,
            row.single_message_ratio,
        )
        for row in predictions
    ]
    return pd.DataFrame(
        rows,
        columns=["point", "family", "predicted", "predicted_low", "predicted_high", "validity", "single_message_ratio"],
    )


@dataclass(frozen=True, eq=False)
class Waits:
    """The predicted time of a point in seconds, and the share of each message and of all local work in it."""

    point: Point
    family: str
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


def attribute_time(point: Point, parameters: ParameterSet) -> Waits | None:
    """Return which messages a predicted time depends on; None if the model does not replay messages."""
    pattern, model = schedule(point), Model.of_set(parameters)
    prediction = float(model.cost(pattern)[0])
    seconds, work = message_contributions(len(pattern.src), lambda: model.cost(pattern))
    if not seconds.any():
        return None
    return Waits(point, parameters.family, prediction, pattern.src, pattern.dst, seconds, work)
