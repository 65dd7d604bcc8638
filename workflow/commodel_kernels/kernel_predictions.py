"""Predicted communication of kernels, as a whole and iteration by iteration (`predict_kernel`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from commodel.api.charts import draw_times
from commodel.api.predictions import Source, list_sources
from commodel.api.recommendations import EvidenceSource
from commodel.api.result import Result, describe_sources, write_or_return
from commodel.errors import UserError, locate_mistakes
from commodel.files.atomic import write_text
from commodel.files.text_tables import format_answer, format_table
from commodel.models.parameter_sets import BY_HAND_KEY, describe_changes
from commodel.parameters import ParameterSet
from commodel.patterns.build import list_parts
from commodel.patterns.layouts import list_process_kinds
from commodel.patterns.operations import (
    canonicalize_operation,
    fill_parameters,
    find_operation,
    parse_parameters,
)
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.predictions.validity import Validity
from commodel.records import Point
from commodel.units import format_bytes, format_seconds, parse_bytes, parse_count
from commodel_kernels.rectangles import format_rectangles
from commodel_kernels.speeds import read_speeds
from commodel_kernels.tilings import make_tiles
from commodel_kernels.times import SUMMED_FAMILIES, predict_by_sums, predict_computation

if TYPE_CHECKING:
    import altair

# how a model predicts: from messages, or by the τ–Lop paper's sum
MESSAGES_RULE, SUMS_RULE = "messages", "sums"
TIME_COLUMNS = ("time", "low", "high")
DEFAULT_SIZES = {"summa": "8KiB", "wave2d": "8"}
MAX_SHOWN_ITERATIONS = 5  # slowest kinds of iterations that are shown


@dataclass(frozen=True, eq=False, repr=False)
class KernelPredictions(Result):
    """Predictions of a kernel's communication. `rows` has one for each model and rule; `iterations`
    has, for each run of iterations with equal messages, the first one, their count, and the
    predictions of each row."""

    point: Point
    simulated: bool
    rows: Sequence[Mapping[str, Any]]
    iterations: Sequence[Mapping[str, Any]]
    provenance: Sequence[Mapping[str, str]]
    # Seconds of an iteration in which the slowest process computes while its messages are in
    # flight. NaN: unknown; None: computation and messages do not overlap.
    overlapped_computation: float | None = None

    @classmethod
    def of(cls, point: Point, sets: Sequence[ParameterSet]) -> KernelPredictions:
        parts = list_parts(point)
        arguments = fill_parameters(point.operation, point.ranks)
        overlapped = arguments.get("overlapped", False)
        overlapped_computation = (
            float(make_tiles(point.operation, point.ranks).seconds.max()) if overlapped else None
        )
        is_changed = any(map(describe_changes, sets))
        rows, seconds_by_column = [], {}
        for fitted in sets:
            rules = [MESSAGES_RULE]
            if fitted.model in SUMMED_FAMILIES and fitted.values and not overlapped:
                rules.append(SUMS_RULE)
            for rule in rules:
                cost = predict_by_sums if rule == SUMS_RULE else None
                (total,) = predict(fitted, [point], strict=False, cost=cost)
                by_hand = {BY_HAND_KEY: describe_changes(fitted)} if is_changed else {}
                times = {
                    name: _replace_nan(getattr(total, name)) for name in ("seconds", "low", "high")
                }
                rows.append(
                    {
                        "model": total.model,
                        "rule": rule,
                        **by_hand,
                        **times,
                        "validity": total.validity_text,
                    }
                )
                if len(parts) > 1:
                    predictions = predict(
                        fitted, [part for part, _ in parts], strict=False, draws=0, cost=cost
                    )
                    seconds_by_column[_make_column_name(total.model, rule)] = [
                        _replace_nan(prediction.seconds) for prediction in predictions
                    ]
        iterations = [
            {"iteration": fill_parameters(part.operation, part.ranks)["iteration"], "count": count}
            | {name: column[number] for name, column in seconds_by_column.items()}
            for number, (part, count) in enumerate(parts)
            if seconds_by_column
        ]
        provenance = describe_sources(sets)
        return cls(
            point,
            any(fitted.simulated for fitted in sets),
            rows,
            iterations,
            provenance,
            overlapped_computation,
        )

    @property
    def properties(self) -> dict[str, Any]:
        """The kernel, its processes, and the number of iterations."""
        names = ("platform", "operation", "algorithm", "layout", "ranks", "nodes", "bytes")
        properties = {name: getattr(self.point, name) for name in names} | {
            "simulated": self.simulated
        }
        if self.overlapped_computation is not None:
            properties["computation"] = _replace_nan(self.overlapped_computation)
        count = sum(row["count"] for row in self.iterations) or 1
        return properties | {"iterations": count, "different": len(self.iterations) or 1}

    @property
    def slowest_iterations(self) -> list[dict[str, Any]]:
        """The slowest kinds of iteration by the median prediction of the models that depend on the
        message size: first and last, count, median, least and most seconds, and share of the
        whole."""
        weighted = {
            _make_column_name(row["model"], row["rule"])
            for row in self.rows
            if Validity.parse(row["validity"]).has_weight
        }
        timed = []
        for row in self.iterations:
            times = [
                seconds for name, seconds in row.items() if name in weighted and seconds is not None
            ]
            if times:
                timed.append((row["iteration"], row["count"], median(times), times))
        timed.sort(key=lambda entry: -entry[2])
        total = sum(count * seconds for _, count, seconds, _ in timed)
        return [
            {
                "iterations": str(first) if count == 1 else f"{first}-{first + count - 1}",
                "count": count,
                "median": seconds,
                "least": min(times),
                "most": max(times),
                "share": count * seconds / total if total else 0.0,
            }
            for first, count, seconds, times in timed[:MAX_SHOWN_ITERATIONS]
        ]

    @property
    def sentence(self) -> str:
        """The lowest and the highest predicted time."""
        predicted = [row for row in self.rows if row["seconds"] is not None]
        if not predicted:
            return "No model has a prediction."
        extremes = [select(predicted, key=lambda row: row["seconds"]) for select in (min, max)]
        times = dict.fromkeys(
            f"{format_seconds(row['seconds'])} ({row['model']})" for row in extremes
        )
        return f"Communication takes {' to '.join(times)}."

    @property
    def notes(self) -> Sequence[str]:
        """The kernel and its processes, and what is predicted."""
        properties = self.properties
        text = f"{properties['operation']}, {format_bytes(properties['bytes'])} a block or cell, "
        text += f"{properties['ranks']} processes"
        text += " on 1 node" if properties["nodes"] == 1 else f" on {properties['nodes']} nodes"
        if properties["platform"]:
            text += (
                f" of {properties['platform']}{' (simulated)' if properties['simulated'] else ''}"
            )
        if properties["iterations"] > 1:
            text += (
                f": {properties['iterations']} iterations, {properties['different']} of them "
                "different"
            )
        lines = [f"{text}; communication alone, predicted."]
        if self.overlapped_computation is not None:
            lines.append(
                "Overlapped: the prediction is the communication time beyond the computation of "
                f"{format_seconds(self.overlapped_computation)} an iteration."
                if self.overlapped_computation == self.overlapped_computation
                else "Overlapped, but computation times are unknown: give --speeds, or speeds in --partition."
            )
        if any(row["rule"] == SUMS_RULE for row in self.rows):
            lines.append(
                "sums: by the τ–Lop paper's rule for this model, the sum of messages without contention."
            )
        return lines

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, a row for each model, the slowest iterations, and the notes."""
        parts = [format_table([_make_shown_row(row) for row in self.rows], TIME_COLUMNS)]
        if self.slowest_iterations:
            shown = [
                {name: value for name, value in row.items() if name != "share"}
                | {"share [%]": round(100 * row["share"])}
                for row in self.slowest_iterations
            ]
            heading = "Slowest iterations, time over the models that depend on the size:\n"
            parts.append(heading + format_table(shown, ("median", "least", "most")))
        return format_answer(self.sentence, "\n\n".join(parts), self.notes, verbose)

    def to_json(self, file: str | Path | None = None) -> str | None:
        """Write the kernel, the rows and the iterations as JSON, or return them as text."""
        data = self.properties | {"models": self.rows, "by_iteration": self.iterations}
        return write_or_return(json.dumps(data, indent=1), file)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook with the predictions of the kernel and of its iterations."""
        from commodel_kernels.workbooks import write_kernel  # slow to load

        write_kernel(self.rows, self.iterations, list(self.notes), self.simulated, Path(file))

    def plot(self) -> altair.Chart:
        """Return a chart of the predicted times, with their intervals."""
        return draw_times(self.frame.rename(columns={"model": "name"}), "Predicted communication")


def _make_column_name(model: str, rule: str) -> str:
    return f"{model} {rule}" if rule == SUMS_RULE else model


def _replace_nan(value: float) -> float | None:
    return value if value == value else None


def _make_shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    exact = row["low"] == row["seconds"] == row["high"]
    cells = {"time" if name == "seconds" else name: value for name, value in row.items()}
    return cells | ({"low": None, "high": None} if exact else {})


@dataclass(frozen=True)
class KernelPattern:
    """A kernel with its matrix and its processes. Text has units; None: a default."""

    kernel: str
    blocks: int | str | None = None  # side of the square, in blocks or cells
    bytes: int | str | None = None  # of a block or a cell
    partition: str | None = None  # a file of rectangles
    grid: str | None = None
    iteration: int | str | None = None
    overlapped: bool = False
    ranks: int | str | None = None
    layout: str | None = None
    speeds: str | Path | None = None  # a file of speeds of processes

    def check(self) -> None:
        """Refuse arguments that have no meaning together."""
        if self.kernel != "summa" and (self.iteration is not None or self.overlapped):
            unusable = "overlapped" if self.iteration is None else "iteration"
            raise UserError(f"--{unusable} has a meaning only for summa; leave it out")
        if self.speeds and not self.overlapped:
            raise UserError("--speeds has a meaning only with --overlapped; leave it out")

    def make_point(self, resources: PlatformResources) -> Point:
        """Return the point of the kernel on a platform."""
        parameters = {
            "n": self.blocks,
            "grid": self.grid,
            "partition": self.partition,
            "iteration": self.iteration,
        }
        parameters |= {"overlapped": "yes" if self.overlapped else None}
        arguments = [f"{name}={value}" for name, value in parameters.items() if value is not None]
        combination: dict[str, Any] = {
            "operation": ":".join([self.kernel, *arguments]),
            "algorithm": "paper",
            "bytes": parse_bytes(self.bytes or DEFAULT_SIZES[self.kernel]),
        }
        combination |= {"layout": self.layout} if self.layout else {}
        combination |= {"ranks": parse_count(self.ranks)} if self.ranks else {}
        return make_point(resources, combination)


def predict_kernel(
    kernel: str,
    blocks: int | str | None = None,
    *,
    bytes: int | str | None = None,
    partition: str | None = None,
    grid: str | None = None,
    iteration: int | None = None,
    overlapped: bool = False,
    ranks: int | str | None = None,
    layout: str | None = None,
    speeds: str | Path | None = None,
    evidence: Source | Sequence[Source] = (),
    values: Mapping[str, str] | None = None,
    platform: str | None = None,
    experiment: str | None = None,
) -> KernelPredictions:
    """Predict the communication time of a kernel, `summa` or `wave2d`, under every model. Printed,
    the result is what `commodel predict kernel` prints.

    `evidence` is a run or parameter sets, as for `advise`; without it, that of the runs in
    `results`. `overlapped`: SUMMA sends while it multiplies, and the visible time is predicted;
    `speeds` is the file of the processes' speeds.

    >>> predict_kernel("summa", 8, ranks=4, evidence="loggp.yaml").frame  # doctest: +SKIP
    """
    pattern = KernelPattern(
        kernel, blocks, bytes, partition, grid, iteration, overlapped, ranks, layout, speeds
    )
    settings = [f"{name}={value}" for name, value in (values or {}).items()]
    return predict_pattern(
        pattern, EvidenceSource(list_sources(evidence), platform, experiment, settings)
    )


def predict_pattern(pattern: KernelPattern, source: EvidenceSource) -> KernelPredictions:
    """Return the predictions of a kernel from the evidence of a source."""
    pattern.check()
    evidence = source.read(pattern.kernel)
    point = pattern.make_point(evidence.resources)
    with _add_speeds(point, pattern.speeds, evidence.resources) as (point_with_speeds, declared):
        predicted = KernelPredictions.of(point_with_speeds, evidence.sets)
    return replace(predicted, point=point, simulated=predicted.simulated or declared)


@contextmanager
def _add_speeds(
    point: Point, speeds: str | Path | None, resources: PlatformResources
) -> Iterator[tuple[Point, bool]]:
    """Yield the point with a partition that has the speed of each process (without speeds, the
    point itself), and whether the speeds are declared instead of measured."""
    if speeds is None:
        yield point, False
        return
    kinds, loaded = (
        list_process_kinds(point.layout, point.ranks, dict(resources.types)),
        read_speeds(Path(speeds)),
    )
    with locate_mistakes(Path(speeds)):
        curves = loaded.curves("gemm", kinds)
    tiling = make_tiles(point.operation, point.ranks)
    with TemporaryDirectory(prefix="commodel-") as folder:
        path = Path(folder) / "partition.csv"
        write_text(
            path,
            format_rectangles(replace(tiling, speed=predict_computation(tiling, curves).speed)),
        )
        write = {
            parameter.name: parameter.write
            for parameter in find_operation(point.operation).parameters
        }
        other_arguments = [
            f"{name}={write[name](value)}"
            for name, value in parse_parameters(point.operation).items()
            if name not in ("n", "grid", "partition")
        ]
        spelled = canonicalize_operation(":".join(["summa", f"partition={path}", *other_arguments]))
        yield replace(point, operation=spelled), loaded.simulated
