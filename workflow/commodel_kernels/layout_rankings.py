"""Layouts of processes for a kernel, ranked by predicted communication plus computation
(`advise_layouts`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from commodel.api.charts import draw_times
from commodel.api.predictions import Source, list_sources
from commodel.api.recommendations import find_evidence
from commodel.api.result import Result
from commodel.errors import UserError
from commodel.files.quantities import expand_axis
from commodel.files.safe_paths import SafePath
from commodel.files.text_tables import format_answer, format_table
from commodel.measure.batch import Progress, measure_now
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_named_platform
from commodel.predictions.validity import ValidityKind
from commodel.records import Measure, Point
from commodel.results.raw_samples import read_marker, read_samples
from commodel.units import format_seconds, parse_bytes, parse_count
from commodel_kernels.configurations import (
    Configuration,
    IterationTimes,
    Problem,
    choose_ranking_family,
    find_fastest,
    list_process_tables,
    rank_configurations,
    write_core_layouts,
)
from commodel_kernels.speeds import read_speeds

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, eq=False, repr=False)
class LayoutRanking(Result):
    """Layouts of processes for a kernel, the fastest first: a row for each, with its best
    partition. Times are those of all iterations."""

    configurations: Sequence[Configuration]
    model: str  # whose predictions rank them
    simulated: bool  # the speeds are declared, not measured
    provenance: Sequence[Mapping[str, str]]

    @property
    def measured(self) -> list[Configuration]:
        """The configurations that were measured."""
        return [configuration for configuration in self.configurations if configuration.measured]

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each configuration."""
        rows = [
            _make_configuration_row(configuration, self.model) | {"simulated": self.simulated}
            for configuration in self.configurations
        ]
        if self.measured:
            measured_columns = map(_make_measured_columns, self.configurations)
            rows = [row | columns for row, columns in zip(rows, measured_columns, strict=True)]
        return rows

    @property
    def sentence(self) -> str:
        """The fastest configuration, communication included."""
        return self._sentences[0]

    @property
    def notes(self) -> Sequence[str]:
        """Flags of predictions, the configuration that computes fastest, and what measurements
        found."""
        return self._sentences[1:]

    @cached_property
    def _sentences(self) -> list[str]:
        lines = _describe_fastest(self.configurations, self.model)
        lines += ["The speeds are declared, not measured (simulated)."] if self.simulated else []
        if self.measured:
            lines += _describe_regrets(self.measured)
            if self.simulated:
                lines.append(
                    "Only messages were simulated; computation times follow from the declared speeds."
                )
        return lines

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, a row for each layout, measured times, and the notes."""
        hidden = ("simulated", "validity", *_make_measured_columns(self.configurations[0]))
        shown = [{name: row[name] for name in row if name not in hidden} for row in self.rows]
        times = [
            name
            for name in shown[0]
            if name == "total" or name.startswith(("computation", "communication"))
        ]
        parts = [format_table(shown, times)]
        if self.measured:
            pairs = [_pair_times(configuration, self.model) for configuration in self.measured]
            parts.append("Predicted and measured:\n" + format_table(pairs))
        return format_answer(self.sentence, "\n\n".join(parts), self.notes, verbose)

    def plot(self) -> altair.Chart:
        """Return a chart of the total times, with the measured ones."""
        frame = self.frame.rename(
            columns={"layout": "name", "total": "seconds", "measured total": "measured"}
        )
        return draw_times(
            frame, f"Computation and communication by {self.model}", measured=bool(self.measured)
        )


@dataclass(frozen=True)
class LayoutSearch:
    """Which layouts are ranked, for which kernel. Text has units; None: a default."""

    kernel: str
    blocks: int  # side of the matrix, in blocks or cells
    speeds: str | Path  # a file of speeds of each kind of process
    layouts: Sequence[str] = ()  # also folders of tables of processes
    cores: str | None = None  # numbers of cores of processes, of which tables are made
    bytes: int | str | None = None  # of a block or a cell
    iterations: int | None = None  # of the wave
    model: str | None = None  # whose predictions rank the layouts
    measure: int | None = None  # number of the best ones to measure
    out: str | Path | None = None  # folder for tables and partitions


def advise_layouts(
    kernel: str,
    blocks: int,
    speeds: str | Path,
    platform: str,
    *,
    layouts: str | Sequence[str] = (),
    cores: str | None = None,
    bytes: int | str | None = None,
    iterations: int | None = None,
    evidence: Source | Sequence[Source] = (),
    experiment: str | None = None,
    model: str | None = None,
    measure: int | None = None,
    out: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> LayoutRanking:
    """Rank layouts of processes for a kernel, `gemm` or `wave`, by computation plus communication.
    Printed, the result is what `commodel advise layouts` prints.

    Each layout is balanced by the `speeds` of its processes. `layouts` are tables of processes, or
    folders of such tables; with `cores`, such as `"1,2"`, tables are made. `measure` also measures
    the best N on the platform, and the one that computes fastest. `out` is a folder for the
    partitions.

    >>> advise_layouts("gemm", 8, "speeds.yaml", "mycluster", cores="1,2", evidence="loggp.yaml")  # doctest: +SKIP
    """
    chosen = [layouts] if isinstance(layouts, str) else layouts
    search = LayoutSearch(
        kernel, blocks, speeds, chosen, cores, bytes, iterations, model, measure, out
    )
    return rank_layouts(search, list_sources(evidence), platform, experiment, progress)


def rank_layouts(
    search: LayoutSearch,
    sources: Sequence[Source],
    platform: str,
    experiment: str | None,
    progress: Progress,
    watch: Callable[[str], None] = lambda text: None,
) -> LayoutRanking:
    """Return the ranking of a search. `progress` gets lines on measurements, `watch` one on each
    layout, since one of thousands of messages may take seconds."""
    if not (search.layouts or search.cores):
        raise UserError("give --layout processes:PATH or a folder of such tables, or --cores")
    if search.iterations and search.kernel == "gemm":
        raise UserError("--iterations: SUMMA has one for each block of a side; leave it out")
    declared = read_speeds(Path(search.speeds))
    curves = declared.of(search.kernel)
    evidence, _ = find_evidence(sources, platform, experiment)
    model = choose_ranking_family(evidence, search.model)
    unit = parse_bytes(search.bytes) if search.bytes else 8 * curves.block**2
    problem = Problem(search.kernel, search.blocks, unit, search.iterations)

    def describe(best: Configuration) -> None:
        watch(f"{_name_layout(best)}: {best.division}, {format_seconds(best.total(model))}")

    with _open_output_folder(search.out) as folder:
        tables = [table for layout in search.layouts for table in list_process_tables(layout)]
        if search.cores:
            numbers = expand_axis(search.cores, parse_count)
            tables += write_core_layouts(evidence.resources, numbers, curves.kinds, folder)
        configurations = rank_configurations(
            problem, tables, declared, evidence, model, folder, describe
        )
        if search.measure:
            configurations = measure_best(
                configurations, search.measure, problem, evidence.resources, platform, progress
            )
    provenance = [
        {"model": fitted.model, "platform": fitted.platform or "", "source": fitted.source}
        for fitted in evidence.sets
    ]
    provenance.append({"model": "", "platform": declared.platform, "source": str(search.speeds)})
    return LayoutRanking(configurations, model, declared.simulated, provenance)


@contextmanager
def _open_output_folder(out: str | Path | None) -> Iterator[Path]:
    """Yield the user's folder for tables and partitions, or a temporary one."""
    if out:
        folder_path = Path(out)
        folder_path.mkdir(parents=True, exist_ok=True)
        yield folder_path
        return
    with TemporaryDirectory(prefix="commodel-") as folder:
        yield Path(folder)


def _make_configuration_row(configuration: Configuration, model: str) -> dict[str, Any]:
    seconds_by_model = {
        name: seconds for name, seconds in configuration.communication.items() if name != model
    }
    return {
        "layout": _name_layout(configuration),
        "ranks": configuration.ranks,
        "nodes": configuration.nodes,
        "partition": configuration.division,
        "computation": configuration.computation,
        f"communication {model}": configuration.communication[model],
        "validity": configuration.validity[model],
        "total": configuration.total(model),
        # A model that cannot predict a configuration has NaN.
        **{
            f"communication {name}": None if isnan(seconds) else seconds
            for name, seconds in seconds_by_model.items()
        },
    }


def _make_measured_columns(configuration: Configuration) -> dict[str, float | None]:
    return {
        f"measured {name}": getattr(configuration.measured, name, None)
        for name in ("computation", "communication", "total")
    }


def _get_measured_total(configuration: Configuration) -> float:
    """Return the total time of a configuration that was measured."""
    assert configuration.measured is not None
    return configuration.measured.total


def _pair_times(configuration: Configuration, model: str) -> dict[str, str | None]:
    """Return each predicted time, followed by the measured one."""
    predicted = (
        configuration.computation,
        configuration.communication[model],
        configuration.total(model),
    )
    cells: dict[str, str | None] = {"layout": _name_layout(configuration)}
    for predicted_seconds, (name, seconds) in zip(
        predicted, _make_measured_columns(configuration).items(), strict=True
    ):
        for title, value in ((name.removeprefix("measured "), predicted_seconds), (name, seconds)):
            cells[title] = None if value is None else format_seconds(value)
    return cells | {
        "measured/predicted": f"{_get_measured_total(configuration) / configuration.total(model):.2f}"
    }


def _name_layout(configuration: Configuration) -> str:
    return Path(configuration.layout.partition(":")[2]).stem


def _describe_fastest(configurations: Sequence[Configuration], model: str) -> list[str]:
    """Return sentences on the fastest configuration, and on the one that computes fastest, with the
    ratio of their times."""
    best, computing = configurations[0], find_fastest(configurations)

    def format_sum(configuration: Configuration) -> str:
        parts = configuration.computation, configuration.communication[model]
        return (
            f"{format_seconds(configuration.total(model))} = "
            f"{' + '.join(format_seconds(part) for part in parts)}"
        )

    lines = [
        f"Fastest, communication included: {_name_layout(best)}, {format_sum(best)} (by {model})."
    ]
    flags = Counter(
        row.validity[model]
        for row in configurations
        if row.validity[model] != ValidityKind.VALID.value
    )
    if flags:
        (flag, _), number = flags.most_common(1)[0], flags.total()
        named = f": {flag}" if len(flags) == 1 else f", such as {flag}"
        lines.append(
            f"{number} of {len(configurations)} predictions of {model} are flagged{named}."
        )
    if computing is best:
        return [*lines, "It computes fastest, too."]
    ratio = computing.total(model) / best.total(model)
    name = _name_layout(computing)
    return [
        *lines,
        f"Fastest computation: {name}, {format_sum(computing)}: {ratio:.2f} times as long.",
    ]


def _describe_regrets(measured: Sequence[Configuration]) -> list[str]:
    """Return the measured times of the chosen configuration and of the one that computes fastest,
    compared with the fastest measured one."""
    shortest = min(measured, key=_get_measured_total)
    choices = {
        "Communication included": measured[0],
        "By computation alone": find_fastest(measured),
    }

    lines = []
    for label, choice in choices.items():
        time = _get_measured_total(choice)
        excess = 100 * (time / _get_measured_total(shortest) - 1)
        comparison = f"{excess:.2g} % longer than {_name_layout(shortest)}"
        comparison = "the fastest of these" if choice is shortest else comparison
        lines.append(
            f"{label}: {_name_layout(choice)}, measured to take {format_seconds(time)}, {comparison}."
        )
    return lines


REAL_MEASURE = Measure("window", 0.05, 6, 100, 5.0, 1, 1, 600.0)
# simulated samples are equal
SIMULATED_MEASURE = replace(REAL_MEASURE, min_samples=1, max_samples=1, warmup=0)


def measure_best(
    configurations: Sequence[Configuration],
    count: int,
    problem: Problem,
    resources: PlatformResources,
    platform: str,
    progress: Progress,
) -> list[Configuration]:
    """Measure the first `count` configurations and the one that computes fastest. Return all
    configurations."""
    chosen = list(dict.fromkeys([*configurations[:count], find_fastest(configurations)]))
    points = {configuration: configuration.point(problem, resources) for configuration in chosen}
    with TemporaryDirectory(prefix="commodel-") as folder:
        raw = SafePath.at(Path(folder).resolve()) / "raw"
        raw.mkdir()
        simulated = load_named_platform(platform).simulated
        settings = SIMULATED_MEASURE if simulated else REAL_MEASURE
        measure_now("configurations", tuple(points.values()), platform, settings, raw, progress)
        return [
            replace(
                configuration,
                measured=_read_measured_times(configuration, problem, points[configuration], raw),
            )
            if configuration in points
            else configuration
            for configuration in configurations
        ]


def _read_measured_times(
    configuration: Configuration, problem: Problem, point: Point, raw: SafePath
) -> IterationTimes:
    marker = read_marker(raw, point.id)
    if marker:
        raise UserError(f"{configuration.layout} was not measured: {', '.join(marker)}")
    samples = [
        sample for sample in read_samples(raw / f"{point.id}.csv", point.id) if sample["valid"]
    ]
    repeats = problem.repeats(configuration.tiling)
    computed = [sample["computation"] for sample in samples if "computation" in sample]
    return IterationTimes(
        repeats * median(computed) if computed else configuration.computation,
        repeats * median(sample["seconds"] for sample in samples),
    )
