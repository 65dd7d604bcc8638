"""The one `Report` that every writer renders. `build_report` makes it from the outputs of a
campaign's stages, and `list_commands` lists commands that answer further questions."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from commodel.compare.comparison import STREAM
from commodel.compare.recommended import split_recommended
from commodel.parameters import ParameterSet
from commodel.records import RECOMMENDED
from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.elements import (
    MICRO,
    FirstScreen,
    Report,
    make_simulation_banner,
    to_plain_value,
)
from commodel.reports.evaluated_campaign import evaluate_campaign
from commodel.reports.glossary import make_glossary_section
from commodel.reports.report_inputs import ReportInputs
from commodel.reports.sections import (
    evidence,
    measurement_conditions,
    memory,
    network,
    overhead,
    provenance_tables,
    rankings,
    summary,
    trees,
)
from commodel.reports.sections.first_screen import make_first_screens
from commodel.units import format_bytes


def build_report(inputs: ReportInputs) -> Report:
    """Return the report of a campaign."""
    # Text columns of pyarrow take a third of a report's time in many small tables.
    with pd.option_context("mode.string_storage", "python"):
        prepared = prepare_comparison(inputs.comparison)
        # Frees the memory, if the caller has no reference.
        inputs = replace(inputs, comparison=prepared.iloc[:0])
        frame, _ = split_recommended(prepared)
        simulated = inputs.find_simulated(frame)
        raw = inputs.raw
        containers = overhead.select_containers(inputs.containers)
        native_pairs = overhead.pair_with_native(frame, containers)
        unmeasured = measurement_conditions.prepare_unmeasured(inputs.unmeasured)
        probes = measurement_conditions.describe_unmeasured_probes(unmeasured, raw, inputs.passes)
        pictures, distances = network.make_sections(inputs.networks)
        paired = {learned_network.platform for learned_network in inputs.networks}
        anomalies = network.describe_slow_nodes(inputs.networks)
        anomalies += measurement_conditions.list_anomalies(frame, inputs.provenance, paired)
        settings = measurement_conditions.describe_settings(inputs.drift)
        campaign = evaluate_campaign(
            prepared,
            sets=inputs.parameter_sets,
            networks=inputs.networks,
            provenance=inputs.provenance,
            simulated=simulated,
            anomalies=anomalies,
            settings=settings,
        )
        overhead_sentences = overhead.describe_overhead(native_pairs, containers, simulated)
        answers = summary.make_sections(campaign, probes, overhead_sentences)
        errors = rankings.make_error_section(campaign.held_out_with_recommended)
        choices = rankings.build_selection(frame)
        latencies = evidence.make_latency_section(inputs.distributions, raw, simulated)
        (trips,) = latencies.tables
        screens = make_first_screens(campaign, trips)
        brought = inputs.make_brought_sections(frame, simulated)
        recommended_rows = campaign.recommended_rows
        del campaign, prepared
        sections = (
            *inputs.paper_sections,
            *pictures,
            *answers,
            *brought["answers"],
            *trees.make_sections(inputs.tree_predictions, simulated),
            # the last section that needs all rows, and stores them
            evidence.make_prediction_section(evidence.put_first(recommended_rows, frame)),
            errors,
            *choices,
            *overhead.make_sections(native_pairs, containers, simulated),
            *measurement_conditions.list_settings(inputs.drift),
            *measurement_conditions.list_unmeasured(unmeasured),
            *([evidence.make_model_section(inputs.models)] if inputs.models else []),
            evidence.make_parameter_section(inputs.parameter_sets, inputs.definitions),
            latencies,
            *distances,
            *memory.make_sections(inputs.parameter_sets),
            evidence.make_fit_section(inputs.parameter_sets),
            evidence.make_raw_section(raw, simulated),
            *brought["evidence"],
            *provenance_tables.make_sections(inputs.provenance, inputs.run_provenance, simulated),
            make_glossary_section(),
        )
        return Report(
            experiment=to_plain_value(inputs.experiment),
            title=to_plain_value(inputs.title or inputs.experiment),
            banner=make_simulation_banner(simulated),
            sections=sections,
            measured=provenance_tables.format_dates(inputs.provenance, inputs.run_provenance),
            results=inputs.run_provenance.tools.get(provenance_tables.RESULTS_KEY, ""),
            sets=tuple(inputs.parameter_sets),
            screens=screens,
            samples=inputs.samples,
        )


MAX_NAME_LENGTH = 60  # letters of an experiment's name in a command
EXAMPLE_SIZE = 3072  # bytes; an example of a size that a matrix does not have
LATENCY_QUESTION = "What if L doubles?"


def list_commands(report: Report, screen: FirstScreen) -> list[tuple[str, str]]:
    name = report.experiment if len(report.experiment) <= MAX_NAME_LENGTH else "EXPERIMENT"
    commands = [
        (
            "Is it better than last month?",
            f"commodel diff results/EARLIER results/{name} --out changes.xlsx",
        )
    ]
    workloads = _make_workload_options(screen)
    for _, workload in workloads[-1:]:
        command = f"commodel advise --experiment {name} --platform {screen.platform} {workload}"
        commands.append(("What to use for another workload?", command))
    sets = [
        parameters
        for parameters in report.sets
        if to_plain_value(parameters.platform) == screen.platform
    ]
    with_latency = _choose_latency_model(sets, screen)
    if with_latency:
        parameters, latencies = with_latency
        doubled = " ".join(
            f"--set {name}={2 * value * MICRO:.3g}us" for name, value in latencies.items()
        )
        probed = parameters.bytes_range[1] if parameters.bytes_range else math.inf
        workloads = _make_workload_options(screen, probed)
        for workload in [workload for extent, workload in workloads if extent == "ranks"][-1:]:
            file = f"results/{name}/validated/{screen.platform}/{parameters.model}.yaml"
            command = (
                f"commodel predict --params {file} --platform {screen.platform} {doubled} "
                f"{workload}"
            )
            commands.append((LATENCY_QUESTION, command))
    return commands


def _make_workload_options(
    screen: FirstScreen, max_bytes: float = math.inf
) -> list[tuple[str, str]]:
    """Return, for each row of the map, `ranks` or `leaves`, and the options of a command. Its size
    is at most `max_bytes`, where a smaller one was measured."""
    workloads = []
    for row, (operation, label) in enumerate(screen.fastest.rows):
        if operation in screen.errors.columns:
            extent = "leaves" if "leaves" in label else "ranks"
            number = label[: len(label) - len(label.lstrip("0123456789"))]
            sizes = [
                int(dict(cell.filters)["bytes"]) for cell in screen.fastest.cells if cell.row == row
            ]
            size = _choose_size([size for size in sizes if size <= max_bytes] or sizes)
            workload = (
                f"--operation {operation.removeprefix(STREAM)} --{extent} {number} --bytes {size}"
            )
            workloads.append((extent, workload))
    return workloads


def _choose_size(measured: Sequence[int]) -> str:
    """Return a message size within the measured range that was not measured; the only measured one
    if there is one."""
    sizes = [EXAMPLE_SIZE, max(measured) * 3 // 4, max(measured)]
    within = (
        size for size in sizes if min(measured) < size < max(measured) and size not in measured
    )
    return format_bytes(next(within, max(measured))).replace(" ", "")


def _choose_latency_model(
    sets: Sequence[ParameterSet], screen: FirstScreen
) -> tuple[ParameterSet, dict[str, float]] | None:
    """Return the parameters of the best model with a latency L, of the better half, and its
    latencies in seconds."""
    ranked = [family for _, family in screen.errors.rows if family != RECOMMENDED]
    better_half = ranked[: (len(ranked) + 1) // 2]
    candidates = (parameters for parameters in sets if parameters.model in better_half)
    for parameters in sorted(
        candidates, key=lambda parameters: better_half.index(parameters.model)
    ):
        is_determined = all(
            estimate.known for name, estimate in parameters.values.items() if name.startswith("L")
        )
        latencies = {
            name: value
            for name, value in parameters.numbers.items()
            if re.fullmatch(r"L(\.[a-z]+)?", name)
        }
        if is_determined and "L" in latencies and all(value > 0 for value in latencies.values()):
            return parameters, latencies
    return None
