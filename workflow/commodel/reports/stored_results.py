"""The report of a folder of results (`build_stored_report`), from nothing but the files that the
stages left there. `commodel report` writes it.

Names of machines are shortened to ranges (`shorten_to_ranges`), or replaced by numbers
(`make_anonymizer`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from commodel.compare.alternatives import find_fastest_trees
from commodel.compare.network import find_recorded_nodes, make_networks
from commodel.compare.recalibration import measure_drift
from commodel.compare.recommended import split_recommended
from commodel.files.atomic import read_json
from commodel.files.cache import use_archived_inputs
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath
from commodel.files.tables import COMPARISON, DISTRIBUTIONS, SUMMARY, read_table
from commodel.files.yaml import Document, read_yaml
from commodel.models.families import find_family, list_meanings
from commodel.models.parameter_sets import read_set
from commodel.parameters import ParameterSet
from commodel.plan.planning import load_plan
from commodel.predictions.papers import PaperEvidence, find_paper
from commodel.records import Plan
from commodel.reports.elements import RESULTS_PATH, Chart, Remark, Report, Section
from commodel.reports.report_builder import build_report
from commodel.reports.report_inputs import ReportInputs
from commodel.reports.sections import measurement_conditions, network, papers
from commodel.reports.sections.evidence import make_fit_section, make_samples_section
from commodel.reports.sections.provenance_tables import RESULTS_KEY
from commodel.results.provenance import (
    ExperimentProvenance,
    compute_digests,
    list_attempts,
    list_versions,
    read_input_texts,
    read_program,
)
from commodel.results.raw_samples import read_unmeasured
from commodel.results.recalibrations import read_calibrations
from commodel.units import format_ranges, show_value

WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def shorten_to_ranges(names: Iterable[str]) -> list[str]:
    """Return names as ranges in Slurm's notation: `n1 n2 n3 login` as `login n[1-3]`."""
    stems: dict[str, list[int]] = {}
    texts = []
    for name in names:
        match = re.fullmatch(r"(.*?)(0|[1-9][0-9]{0,8})", name)
        if match:
            stems.setdefault(match[1], []).append(int(match[2]))
        else:
            texts.append(name)
    for stem, numbers in stems.items():
        parts = format_ranges(sorted(numbers))
        texts.append(f"{stem}[{','.join(parts)}]" if len(numbers) > 1 else f"{stem}{parts[0]}")
    return sorted(texts)


def shorten_machine_names(provenance: Mapping) -> dict[str, list[str]]:
    """Return the hosts and nodes of a batch, as ranges."""
    return {
        key: shorten_to_ranges(map(str, provenance[key]))
        for key in ("hosts", "nodes")
        if _list_or_empty(provenance.get(key))
    }


def list_machines(
    provenance: Mapping[str, dict], run_provenance: ExperimentProvenance, results: Results
) -> set[str]:
    """Return all names of machines in the results and the inputs, except nodes that SimGrid
    simulates."""
    names = {str(record.get("machine", "")) for record in provenance.values()}
    for attempt in run_provenance.attempts:
        names |= {attempt["host"], *attempt["nodes"]}
    for record in provenance.values():
        if not record.get("simulated"):
            names |= {*map(str, record["hosts"]), *map(str, _list_or_empty(record.get("nodes")))}
    for path in results.inputs():
        if path.parent.name == "platforms" and path.suffix in (".yaml", ".yml"):
            names |= {str(name) for name in _list_hosts(read_yaml(path))}
    return names - {""}


def _list_or_empty(value: object) -> list:
    return value if isinstance(value, list) else []


def _list_hosts(platform: Document) -> list:
    """Return the machines that a platform file names."""

    def wanted(value: object, kind: type, wanted_text: str, *key_path: str):
        if not isinstance(value, kind):
            raise platform.error(key_path, f"found {show_value(value)}, wanted {wanted_text}")
        return value

    section = wanted(platform.data, dict, "a mapping").get("hosts") or {}
    names = wanted(section, dict, "a mapping", "hosts").get("names") or []
    return wanted(names, list, "a list", "hosts", "names")


def find_similar_names(names: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Return the words of some texts that differ from these names only by numbers or a domain. An
    error message may name a machine on which nothing was measured."""
    shapes = {_replace_digits(name) for name in names if re.search(r"[0-9]", name)}
    words = {word for text in texts for word in WORD.findall(text)}
    return {word for word in words if _replace_digits(word) in shapes}


def _replace_digits(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name.partition(".")[0])


def make_anonymizer(names: set[str]) -> Callable:
    """Return a function that replaces these names by numbers anywhere in nested texts."""
    replacement_of = {name: f"machine-{index}" for index, name in enumerate(sorted(names), 1)}
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    names_pattern = (
        re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")
        if names
        else re.compile(r"(?!)")
    )

    def anonymize(value):
        if isinstance(value, str):
            return names_pattern.sub(lambda match: replacement_of[match[0]], value)
        if isinstance(value, Mapping):
            return {key: anonymize(entry) for key, entry in value.items()}
        return [anonymize(entry) for entry in value] if isinstance(value, list) else value

    return anonymize


def find_relative_results(report: Path, results: str) -> str:
    """Return the path of the results, relative to the report; empty if they are not in one project,
    because the names of folders in between are private."""
    path = Path(os.path.relpath(results, report)).as_posix()
    return path if RESULTS_PATH.fullmatch(path) else ""


PROGRAM_KEYS = ("mpi", "compiler", "flags", "clock")
# seconds; the largest of a batch's programs is shown
CLOCK_KEYS = ("clock_resolution", "clock_uncertainty")
ANONYMOUS_KEY, SAMPLES_KEY = "anonymous", "samples"


def build_stored_report(
    folder: AnyPath,
    anonymous: bool = False,
    output_folder: Path | None = None,
    samples: bool = False,
    draw_fits: Callable[[Sequence[Chart]], None] = lambda charts: None,
) -> Report:
    """Return the report of a folder of results. `anonymous` replaces the names of machines by
    numbers, for reports that are passed on; these have no links. Others have links from
    `output_folder` to the results. `samples` adds a sheet of all samples. `draw_fits` gets the
    charts of fits, which are most of all charts, before the rest of the report is built."""
    results = Results.of(folder)
    plan = load_plan(results.plan)
    with use_archived_inputs(results, plan.files):
        sets = [
            read_set(results.fitted(platform, name))
            for platform in plan.platforms
            for name in plan.models
        ]
        draw_fits(make_fit_section(sets).charts)
        return _build_report(plan, results, sets, anonymous, output_folder, samples)


def list_anomalies(results: Results, comparison: pd.DataFrame) -> list[Remark]:
    """Return the report's anomalies of measurement, for the terminal."""
    plan = load_plan(results.plan)
    provenance = _read_batch_provenance(plan, results)
    learned = make_networks(
        read_table(results.table("summary"), SUMMARY), find_recorded_nodes(plan, provenance)
    )
    paired = {fitted.platform for fitted in learned}
    return [
        *network.describe_slow_nodes(learned),
        *measurement_conditions.list_anomalies(comparison, _add_ranges(provenance), paired),
    ]


@dataclass(frozen=True, eq=False)
class _StoredTables:
    """What a report tells of a results folder: its measurements, and where they are from."""

    compared: pd.DataFrame  # the recommended prediction and the models
    raw: pd.DataFrame
    unmeasured: pd.DataFrame
    provenance: dict[str, dict]  # of each batch
    run_provenance: ExperimentProvenance

    @classmethod
    def read(cls, plan: Plan, results: Results) -> _StoredTables:
        return cls(
            compared=read_table(results.table("comparison"), COMPARISON),
            raw=read_table(results.table("summary"), SUMMARY),
            unmeasured=read_unmeasured(results.table("unmeasured")),
            provenance=_read_batch_provenance(plan, results),
            run_provenance=_read_provenance(plan, results),
        )

    def anonymized(self, results: Results) -> _StoredTables:
        """Return the same with numbers for the names of machines."""
        names = list_machines(self.provenance, self.run_provenance, results)
        messages = [attempt["outcome"] for attempt in self.run_provenance.attempts]
        messages += self.unmeasured["reason"].tolist()
        anonymize = make_anonymizer(names | find_similar_names(names, messages))

        def anonymize_columns(frame: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
            replaced = {}
            for column in columns:
                new_texts = {text: anonymize(text) for text in frame[column].unique()}
                replaced[column] = frame[column].map(new_texts)
            return frame.assign(**replaced)

        run_provenance = replace(
            self.run_provenance,
            attempts=tuple(anonymize(list(self.run_provenance.attempts))),
            texts=anonymize(self.run_provenance.texts),
        )
        return _StoredTables(
            compared=anonymize_columns(self.compared, ["batch", "raw"]),
            raw=anonymize_columns(self.raw, ["batch", "raw"]),
            unmeasured=anonymize_columns(self.unmeasured, ["reason"]),
            provenance=anonymize(self.provenance),
            run_provenance=run_provenance,
        )

    def with_versions(self, versions: dict[str, str]) -> _StoredTables:
        """Return the same with further versions, and names of machines as ranges."""
        attempts = []
        for attempt in self.run_provenance.attempts:
            nodes = ", ".join(shorten_to_ranges(attempt["nodes"]))
            attempts.append(dict(attempt) | {"nodes": nodes})
        run_provenance = replace(
            self.run_provenance,
            attempts=tuple(attempts),
            tools=dict(self.run_provenance.tools) | versions,
        )
        provenance = _add_ranges(self.provenance)
        return replace(self, provenance=provenance, run_provenance=run_provenance)


def _build_report(
    plan: Plan,
    results: Results,
    sets: list[ParameterSet],
    anonymous: bool,
    output_folder: Path | None,
    samples: bool,
) -> Report:
    versions = {}
    tables = _StoredTables.read(plan, results)
    if anonymous:
        versions[ANONYMOUS_KEY] = "machines have numbers for names"
        tables = tables.anonymized(results)
    elif output_folder is not None:
        results_path = find_relative_results(output_folder, str(results.folder))
        if results_path:
            versions[RESULTS_KEY] = results_path
    if samples:
        versions[SAMPLES_KEY] = "every sample has a row of its own"
    learned = make_networks(tables.raw, find_recorded_nodes(plan, tables.provenance))
    tables = tables.with_versions(versions)
    comparison, _ = split_recommended(tables.compared)
    distributions = read_table(results.table("distributions"), DISTRIBUTIONS)
    containers = {}
    for name, platform in plan.platforms.items():
        if platform.container:
            containers[name] = platform.container
    inputs = ReportInputs(
        tables.compared,
        plan.experiment,
        title=plan.title,
        parameter_sets=sets,
        raw=tables.raw,
        provenance=tables.provenance,
        run_provenance=tables.run_provenance,
        distributions=distributions,
        unmeasured=tables.unmeasured,
        drift=measure_drift(plan, comparison, sets, read_calibrations(results)),
        networks=learned,
        models={name: _describe_model(name) for name in plan.models},
        definitions=list_meanings(plan.models),
        passes={name: plan.passes(name) for name in plan.platforms},
        containers=containers,
        tree_predictions=find_fastest_trees(plan, comparison, sets),
        paper_sections=_make_paper_sections(plan, sets, tables, comparison, distributions),
        samples=make_samples_section(plan, results, tables.raw) if samples else None,
        plan=plan,
        results=results,
    )
    del tables, comparison
    references = [inputs]
    del inputs
    # passes the only reference, so that `build_report` can free the memory
    return build_report(references.pop())


def _make_paper_sections(
    plan: Plan,
    sets: Sequence[ParameterSet],
    tables: _StoredTables,
    comparison: pd.DataFrame,
    distributions: pd.DataFrame,
) -> Sequence[Section]:
    """Return what the paper of an experiment has beside other reports."""
    if not plan.paper:
        return ()
    evidence = PaperEvidence(
        comparison=comparison,
        summary=tables.raw,
        sets=tuple(sets),
        kinds={name: platform.kind for name, platform in plan.platforms.items()},
        distributions=distributions,
    )
    oversubscribed = measurement_conditions.describe_oversubscription(comparison, tables.provenance)
    return papers.make_sections(find_paper(plan.paper), evidence, oversubscribed)


def _describe_model(name: str) -> dict[str, str]:
    return {
        key: getattr(find_family(name), key) for key in ("title", "citation", "equation", "ignores")
    }


def _read_provenance(plan: Plan, results: Results) -> ExperimentProvenance:
    return ExperimentProvenance(
        files=compute_digests(plan, results.folder),
        attempts=tuple(
            attempt for batch in plan.batches for attempt in list_attempts(batch, results.all_raw)
        ),
        texts=read_input_texts(results.folder, plan.files),
        tools=list_versions(("xlsxwriter", "vl-convert-python")),
        inputs=plan.files,
    )


def _add_ranges(provenance: Mapping[str, Mapping]) -> dict[str, dict]:
    return {
        batch: {**record, **shorten_machine_names(record)} for batch, record in provenance.items()
    }


def _read_batch_provenance(plan: Plan, results: Results) -> dict[str, dict]:
    """Return the provenance of each batch, by the driver and by its programs. A batch that never
    ran has empty texts."""
    batches = {}
    for batch in plan.batches:
        path = results.provenance(batch.name)
        record: dict[str, Any] = {"platform": batch.platform, "date": ""}
        record = read_json(path) if path.exists() else record
        programs = [read_program(path) for path in results.programs(batch.name)]
        for key in PROGRAM_KEYS:
            record[key] = ", ".join(sorted({getattr(program, key) for program in programs}))
        for key in CLOCK_KEYS:
            values = [getattr(program, key) for program in programs]
            numbers = [value for value in values if value is not None]
            record[key] = f"{max(numbers):.3g}" if numbers else ""
        # Reports are passed on, so paths of users' folders are removed.
        record["compiler"] = re.sub(r"\S*/", "", record["compiler"])
        computing = {re.sub(r"\S*/", "", program.computing) for program in programs} - {""}
        if computing:
            record["computing"] = ", ".join(sorted(computing))
        record["hosts"] = sorted({host for program in programs for host in program.hosts})
        if "measure" in record:
            record["measure"] = json.dumps(record["measure"], sort_keys=True)
        batches[batch.name] = record
    return batches
