"""Stages of the workflow that make a file for each model (`FitStage`, `PredictionStage`).

One process fits, or predicts with, all models of a stage. A model whose inputs and code have not
changed since its file was made is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from commodel.api.predictions import choose_sets
from commodel.files.cache import use_archived_inputs
from commodel.files.parameter_sets import write_parameters
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.tables import OBSERVATIONS, read_table, write_table
from commodel.fits.probe_fits import collect_evidence, fit_to_evidence
from commodel.models.families import find_family
from commodel.models.fitting.observed import Observed
from commodel.models.parameter_sets import BY_HAND_KEY, describe_changes
from commodel.parameters import ParameterSet
from commodel.plan.planning import load_plan
from commodel.predictions.predictions import predict_all, tabulate
from commodel.records import Plan
from commodel.results.stage_files import (
    StageFiles,
    digest_files,
    digest_inputs,
    list_fit_code,
    list_prediction_code,
)

# The context in which the work for a model is done. It yields a function that prints a note.
Watch = Callable[[str], AbstractContextManager[Callable[[str], None]]]


@contextmanager
def watch_nothing(model: str) -> Iterator[Callable[[str], None]]:
    yield lambda text: None


def note_kept(models: Sequence[str], what: str, watch: Watch) -> list[str]:
    """Return a note for each model whose files are kept, and show it where the model is watched."""
    notes = []
    for model in models:
        notes.append(f"{model}: its inputs have not changed, so {what}")
        with watch(model) as show:
            show(notes[-1])
    return notes


@dataclass(frozen=True)
class FitStage:
    """Fits of models to the probes of a platform, each written to MODEL.yaml in a folder."""

    plan_file: SafePath
    observations_file: SafePath
    platform: str
    files: StageFiles

    @cached_property
    def plan(self) -> Plan:
        return load_plan(self.plan_file)

    @cached_property
    def evidence(self) -> Observed:
        return collect_evidence(
            self.plan, read_table(self.observations_file, OBSERVATIONS), self.platform
        )

    @cached_property
    def _data_digest(self) -> str:
        return digest_files([self.plan_file, self.observations_file])

    def load(self) -> None:
        """Read what all models need, before processes share it."""
        _ = self.plan, self.evidence

    def make_set(self, model: str) -> ParameterSet:
        """Return the fitted set of a model."""
        return fit_to_evidence(self.plan, self.evidence, find_family(model).name, self.platform)

    def find_changes(self, models: Iterable[str]) -> dict[str, str]:
        """Return the models whose sets in the folder are not up to date, each with a digest of its
        inputs."""
        digests = {
            name: digest_inputs(list_fit_code(name), self._data_digest, self.platform)
            for name in (find_family(model).name for model in models)
        }
        return {
            name: digest
            for name, digest in digests.items()
            if not self.files.is_current(f"{name}.yaml", digest)
        }

    def write(self, model: str) -> ParameterSet:
        """Fit a model, and write its set beside that of the folder."""
        parameters = self.make_set(model)
        write_parameters(self.files.prepare(f"{model}.yaml"), parameters)
        return parameters


@dataclass(frozen=True)
class PredictionStage:
    """Predictions of the points of a plan, a table MODEL.csv for each model in a folder."""

    plan_file: SafePath
    files: StageFiles

    @cached_property
    def plan(self) -> Plan:
        return load_plan(self.plan_file)

    @cached_property
    def _plan_digest(self) -> str:
        return digest_files([self.plan_file])

    def load(self) -> None:
        """Read what all models need, before processes share it."""
        _ = self.plan

    def find_changes(self, sets: Mapping[str, Sequence[AnyPath]]) -> dict[str, str]:
        """Return the models whose tables in the folder are not up to date, each with a digest of
        its inputs. `sets` are the files of each model's sets."""
        digests = {
            name: digest_inputs(list_prediction_code(name), self._plan_digest, digest_files(files))
            for name, files in sets.items()
        }
        return {
            name: digest
            for name, digest in digests.items()
            if not self.files.is_current(f"{name}.csv", digest)
        }

    def write(self, model: str, sets: Sequence[AnyPath]) -> int:
        """Predict with a model's sets, write the table beside that of the folder, and return the
        number of its rows."""
        table = predict_points(
            self.plan, Results.of(self.plan_file.parent), choose_sets(sets, model, ())
        )
        write_table(self.files.prepare(f"{model}.csv"), table)
        return len(table)


def predict_points(
    plan: Plan, results: Results, sets: Sequence[ParameterSet], by_hand: bool = False
) -> pd.DataFrame:
    """Return the predictions of each platform's points under the sets of that platform and those of
    none; `by_hand`: with a column that names the values that were set by hand."""
    tables = []
    with use_archived_inputs(results, plan.files):
        for parameters in sets:
            points = [point for point in plan.points if parameters.platform in ("", point.platform)]
            rows = tabulate(predict_all(parameters, points))
            tables.append(
                rows.assign(**{BY_HAND_KEY: describe_changes(parameters)}) if by_hand else rows
            )
    return pd.concat(tables) if tables else tabulate([])
