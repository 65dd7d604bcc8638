"""What a report is made of (`ReportInputs`): the outputs of the stages of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from commodel.compare.alternatives import PredictedTree
from commodel.compare.network import MeasuredNetwork
from commodel.extensions import list_sections, load_function
from commodel.files.results_folder import Results
from commodel.parameters import ParameterSet
from commodel.records import Plan
from commodel.reports.elements import Section, select_columns, to_plain_value
from commodel.reports.sections.evidence import OPTIONAL_TIMES
from commodel.results.provenance import NO_PROVENANCE, ExperimentProvenance


def _make_empty_raw() -> pd.DataFrame:
    return pd.DataFrame(
        columns=[column.key for column in select_columns("Raw", without=OPTIONAL_TIMES)]
    )


def _make_empty_drift() -> pd.DataFrame:
    return pd.DataFrame(columns=["compared_with"])


@dataclass(frozen=True, eq=False)
class SectionInputs:
    """What sections of extensions are made of."""

    plan: Plan
    results: Results
    # as `comparison_frame.prepare_comparison` returns it, without recommended predictions
    comparison: pd.DataFrame
    raw: pd.DataFrame  # the summary of the samples
    simulated: set[str]  # platforms whose measurements come from a simulator


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """The outputs of the stages. Only the comparison and the name of the experiment are needed."""

    comparison: pd.DataFrame
    experiment: str
    title: str = ""
    parameter_sets: Sequence[ParameterSet] = ()
    raw: pd.DataFrame = field(default_factory=_make_empty_raw)  # the summary of the samples
    provenance: Mapping[str, Mapping] = field(default_factory=dict)  # by batch
    run_provenance: ExperimentProvenance = NO_PROVENANCE
    distributions: pd.DataFrame | None = None  # of the round trips
    unmeasured: pd.DataFrame | None = None
    drift: pd.DataFrame = field(default_factory=_make_empty_drift)  # between allocations
    networks: Sequence[MeasuredNetwork] = ()
    # Of the models: title, equation, citation and neglected effects, and the meaning of each
    # parameter.
    models: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # by model and parameter
    definitions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # Of the platforms: passes over all points, and container images.
    passes: Mapping[str, int] = field(default_factory=dict)
    containers: Mapping[str, Mapping] = field(default_factory=dict)
    tree_predictions: Sequence[PredictedTree] = ()
    # Sections that other modules make: figures of a paper, and all samples.
    paper_sections: Sequence[Section] = ()
    samples: Section | None = None
    # Of sections that extensions make; without them there are none.
    plan: Plan | None = None
    results: Results | None = None

    def make_brought_sections(
        self, frame: pd.DataFrame, simulated: set[str]
    ) -> dict[str, list[Section]]:
        """Return the sections of extensions by their place. `frame` is the prepared comparison."""
        places: dict[str, list[Section]] = {"answers": [], "evidence": []}
        if self.plan is None or self.results is None:
            return places
        inputs = SectionInputs(
            plan=self.plan,
            results=self.results,
            comparison=frame,
            raw=self.raw,
            simulated=simulated,
        )
        for section in list_sections().values():
            places[section.place] += load_function(section.function)(inputs)
        return places

    def find_simulated(self, frame: pd.DataFrame) -> set[str]:
        """Return the platforms whose measurements come from a simulator. `frame` is the prepared
        comparison."""
        names = set(frame.loc[frame["simulated"], "platform"])
        return names | {
            to_plain_value(fitted.platform) for fitted in self.parameter_sets if fitted.simulated
        }
