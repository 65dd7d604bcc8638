"""Predictions of the points of a plan (`predict_plan`): in one table, or in a folder with a table
of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from commodel.api.predictions import choose_sets
from commodel.api.result import Answer, describe_sources
from commodel.api.stages import (
    PredictionStage,
    Watch,
    note_kept,
    predict_points,
    watch_nothing,
)
from commodel.errors import UserError
from commodel.files.results_folder import PLAN, Results
from commodel.files.safe_paths import SafePath
from commodel.files.tables import PREDICTIONS, read_table, write_table
from commodel.models.families import find_family
from commodel.models.parameter_sets import list_sets
from commodel.parallel import map_in_processes
from commodel.plan.planning import load_plan
from commodel.results.stage_files import StageFiles
from commodel.units import format_count


@dataclass(frozen=True, eq=False, repr=False)
class PlanPredictions(Answer):
    """Predictions of the points of a plan. `rows` has each model with its number of predictions and
    its file."""

    tables: Sequence[pd.DataFrame | SafePath]  # in memory, or in files

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions: a row for each point and model."""
        read = [
            read_table(table, PREDICTIONS) if isinstance(table, SafePath) else table
            for table in self.tables
        ]
        return pd.concat(read, ignore_index=True)

    def text(self, verbose: bool = True) -> str:
        """Return the sentence and the notes."""
        return "\n".join([self.sentence, *self.notes])


def predict_plan(
    plan: str | Path,
    parameters: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    model: str | None = None,
    values: Mapping[str, str] | None = None,
) -> PlanPredictions:
    """Predict the points of a plan under sets of `parameters`, as a run does. Printed, the result
    is what `commodel predict plan` prints.

    `plan` is results/NAME/plan.json, or its folder. `out` is a table to write, or a folder for a
    table of each model; tables there whose inputs have not changed are kept. `model` is the only
    one of the sets to use, `values` replace fitted ones.

    >>> predict_plan("results/demo", "loggp.yaml").predictions  # doctest: +SKIP
    """
    files = [parameters] if isinstance(parameters, str | Path) else parameters
    settings = [f"{name}={value}" for name, value in (values or {}).items()]
    request = PlanRequest.of(Path(plan), [Path(file) for file in files], model, settings)
    return request.predict(Path(out) if out else None)


class ModelFailedError(UserError):
    """A model failed in its context, which may have shown the error."""


@dataclass(frozen=True)
class PlanRequest:
    """What is predicted: the points of a plan, under the sets of some files, of one model or of
    all."""

    plan_file: SafePath
    sources: Sequence[Path]  # files of sets, or folders of them
    model: str | None
    settings: Sequence[str]  # NAME=VALUE

    @property
    def results(self) -> Path:
        """The folder of the plan."""
        return Path(str(self.plan_file.parent))

    @classmethod
    def of(
        cls, plan: Path, files: Sequence[Path], model: str | None, settings: Sequence[str]
    ) -> PlanRequest:
        file = plan / PLAN if plan.is_dir() else plan
        return cls(SafePath.of_argument(file, file.parent), files, model, settings)

    def find_set(self, file: Path) -> SafePath:
        return SafePath.of_argument(file, self.results)

    def predict(self, out: Path | None, watch: Watch = watch_nothing) -> PlanPredictions:
        """Return the predictions. `watch` is the context in which a model predicts; it has a
        function that prints a note."""
        if out is None or not out.is_dir():
            return self._predict_together(out)
        if self.settings:
            raise UserError("--set: --out is a folder, wanted a file")
        return self._predict_models(out, watch)

    def _predict_together(self, out: Path | None) -> PlanPredictions:
        """Predict by all sets, and write one table."""
        sources = [path if path.is_dir() else self.find_set(path) for path in self.sources]
        parameters = choose_sets(sources, self.model, self.settings)
        plan = load_plan(self.plan_file)
        platforms = [fitted.platform for fitted in parameters]
        if not {"", *plan.platforms}.intersection(platforms):
            found = f"found parameters of platform {' and '.join(dict.fromkeys(platforms))}"
            raise UserError(f"{found}, wanted {' or '.join(plan.platforms)}", file=self.plan_file)
        table = predict_points(
            plan, Results.of(self.results), parameters, by_hand=bool(self.settings)
        )
        if out:
            write_table(SafePath.of_argument(out, self.results), table)
        counts = table["model"].value_counts(sort=False).to_dict()
        rows = [_make_row(name, count, out) for name, count in counts.items()]
        return PlanPredictions(
            rows, _describe(rows, out), [], describe_sources(parameters), [table]
        )

    def _predict_models(self, out: Path, watch: Watch) -> PlanPredictions:
        """Write a table for each model, whose sets have its name. Tables whose inputs have not
        changed are kept. If a model fails, the others are predicted, and the next call has to
        predict only this one."""
        folder = SafePath.of_argument(out, self.results)
        stage = PredictionStage(self.plan_file, StageFiles(folder))
        sets = [self.find_set(file) for path in self.sources for file in list_sets(path)]
        names = [self.model] if self.model else dict.fromkeys(path.stem for path in sets)
        sets_of = {
            find_family(name).name: [path for path in sets if path.stem == name] for name in names
        }
        changed = stage.find_changes(sets_of)
        kept = [name for name in sets_of if name not in changed]
        notes = note_kept(kept, f"its predictions in {out} are kept", watch)

        def write(name: str) -> int | UserError:
            try:
                with watch(name):
                    return stage.write(name, sets_of[name])
            except UserError as error:
                return error

        if changed:
            stage.load()
        counts: dict[str, int] = {}
        failures: list[UserError] = []
        for name, answer in zip(changed, map_in_processes(write, list(changed)), strict=True):
            if isinstance(answer, UserError):
                failures.append(answer)
                continue
            stage.files.record(f"{name}.csv", changed[name])
            counts[name] = answer
        if failures:
            raise ModelFailedError(failures[0].message)
        stage.files.publish()
        tables = {name: folder / f"{name}.csv" for name in sets_of}
        counts |= {name: _count_rows(table) for name, table in tables.items() if name not in counts}
        rows = [_make_row(name, counts[name], out / f"{name}.csv") for name in sets_of]
        sources = [{"model": path.stem, "source": str(path)} for path in sets]
        return PlanPredictions(rows, _describe(rows, out), notes, sources, list(tables.values()))


def _make_row(model: str, count: int, file: Path | None) -> dict[str, Any]:
    return {"model": model, "predictions": count, "file": str(file or "")}


def _count_rows(table: SafePath) -> int:
    with table.open("rb") as stream:
        return sum(1 for _ in stream) - 1


def _describe(rows: Sequence[Mapping[str, Any]], out: Path | None) -> str:
    count = format_count(sum(row["predictions"] for row in rows), "prediction")
    names = rows[0]["model"] if len(rows) == 1 else format_count(len(rows), "model")
    return f"{f'{out}: ' if out else ''}{count} by {names}."
