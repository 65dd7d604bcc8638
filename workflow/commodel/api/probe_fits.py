"""Fits that need no table of collectives: to the probes of a platform (`fit_probes`), or from a
data sheet (`fit_sheet`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from commodel.api.fits import Fit, read_data_sheet
from commodel.api.result import Answer, describe_sources
from commodel.api.stages import FitStage, Watch, note_kept, watch_nothing
from commodel.files.parameter_sets import write_parameters
from commodel.files.results_folder import PLAN
from commodel.files.safe_paths import SafePath
from commodel.models.parameter_sets import read_set
from commodel.parallel import map_in_processes
from commodel.parameters import ParameterSet
from commodel.plan.config import find_config_file
from commodel.results.stage_files import StageFiles
from commodel.units import format_count


@dataclass(frozen=True, eq=False, repr=False)
class ProbeFits(Answer):
    """Models fitted to the probes of a platform. `rows` has each model with its number of values
    and its file."""

    parts: Sequence[ParameterSet | SafePath]  # in memory, or in files

    @cached_property
    def sets(self) -> list[ParameterSet]:
        """The parameter sets of all models."""
        return [read_set(part) if isinstance(part, SafePath) else part for part in self.parts]

    def text(self, verbose: bool = True) -> str:
        """Return the sentence and the notes."""
        return "\n".join([self.sentence, *self.notes])


def fit_probes(
    plan: str | Path,
    platform: str,
    models: str | Sequence[str],
    out: str | Path | None = None,
    *,
    samples: str | Path | None = None,
) -> ProbeFits:
    """Fit models to the probes of a platform, as a run does. Printed, the result is what `commodel
    fit probes` prints.

    `plan` is results/NAME/plan.json, or its folder. `out` is a file for the set of one model, or an
    existing folder for the set of each; sets there whose inputs have not changed are kept.
    `samples` is a table of samples, `observations.csv` beside the plan by default.

    >>> fit_probes("results/demo", "local", "loggp").sets[0].values  # doctest: +SKIP
    """
    names = [models] if isinstance(models, str) else list(models)
    folder = Path(plan)
    file = folder / PLAN if folder.is_dir() else folder
    request = ProbeFitRequest.of(file, Path(samples) if samples else None, platform, names)
    return request.fit(Path(out) if out else None)


def fit_sheet(model: str, platform: str, out: str | Path | None = None) -> Fit:
    """Derive a model's values from the data sheet of a platform, without measuring. Printed, the
    result is what `commodel fit sheet` prints.

    `platform` is the name of a platform, or its file. `out` is a file for the values.

    >>> fit_sheet("shares", "fat-tree-64").parameters  # doctest: +SKIP
    """
    parameters = read_data_sheet(model, find_config_file("platform", platform))
    if out:
        write_parameters(Path(out), parameters)
    return Fit([parameters], parameters.source)


@dataclass(frozen=True)
class ProbeFitRequest:
    """What is fitted: models, to the probes of a plan on a platform."""

    plan_file: SafePath
    samples: SafePath
    platform: str
    models: Sequence[str]

    @classmethod
    def of(
        cls, plan_file: Path, samples: Path | None, platform: str, models: Sequence[str]
    ) -> ProbeFitRequest:
        table = samples or plan_file.with_name("observations.csv")
        files = [SafePath.of_argument(path, plan_file.parent) for path in (plan_file, table)]
        return cls(files[0], files[1], platform, models)

    def fit(self, out: Path | None, watch: Watch = watch_nothing) -> ProbeFits:
        """Return the fits. `watch` is the context in which a model is fitted; it has a function
        that prints a note."""
        if out is not None and (out.is_dir() or len(self.models) > 1):
            return self._fit_in_folder(out, watch)
        folder = self.plan_file.parent
        stage = FitStage(self.plan_file, self.samples, self.platform, StageFiles(folder))
        sets = []
        for model in self.models:
            with watch(model):
                sets.append(stage.make_set(model))
        if out is not None:
            write_parameters(SafePath.of_argument(out, Path(str(folder))), sets[0])
        return self._describe(sets, sets, [out] * len(sets), [])

    def _fit_in_folder(self, out: Path, watch: Watch) -> ProbeFits:
        """Write a set for each model. Sets whose inputs have not changed are kept."""
        folder = SafePath.of_argument(out, Path(str(self.plan_file.parent)))
        stage = FitStage(self.plan_file, self.samples, self.platform, StageFiles(folder))
        changed = stage.find_changes(self.models)
        kept = [model for model in self.models if model not in changed]
        notes = note_kept(kept, f"the set in {out} is kept", watch)

        def write(model: str) -> ParameterSet:
            with watch(model) as show:
                parameters = stage.write(model)
                missing = describe_missing_fit(parameters)
                if missing:
                    show(f"commodel: {missing}")
                return parameters

        if changed:
            stage.load()
        fitted: dict[str, ParameterSet] = {}
        for model, parameters in zip(changed, map_in_processes(write, list(changed)), strict=True):
            stage.files.record(f"{model}.yaml", changed[model])
            fitted[model] = parameters
        stage.files.publish()
        files = {model: folder / f"{model}.yaml" for model in self.models}
        sets = [fitted.get(model) or read_set(files[model]) for model in self.models]
        paths = [out / f"{model}.yaml" for model in self.models]
        return self._describe(sets, list(files.values()), paths, notes)

    def _describe(
        self,
        sets: Sequence[ParameterSet],
        parts: Sequence[ParameterSet | SafePath],
        files: Sequence[Path | None],
        notes: Sequence[str],
    ) -> ProbeFits:
        rows: list[Mapping[str, Any]] = [
            {"model": fitted.model, "values": len(fitted.values), "file": str(file or "")}
            for fitted, file in zip(sets, files, strict=True)
        ]
        missing = [describe_missing_fit(fitted) for fitted in sets]
        count = sum(1 for text in missing if not text)
        place = files[0] if len(files) == 1 else files[0] and files[0].parent
        sentence = (
            f"{f'{place}: ' if place else ''}{format_count(count, 'model')} fitted to the probes of "
            f"{self.platform}."
        )
        all_notes = [*notes, *(text for text in missing if text)]
        return ProbeFits(rows, sentence, all_notes, describe_sources(sets), parts)


def describe_missing_fit(parameters: ParameterSet) -> str:
    """Return why a model has no values; empty if it has some."""
    if parameters.values:
        return ""
    reason = next(iter(parameters.missing.values()))
    return f"no fit of {parameters.model} on platform '{parameters.platform}': {reason}"
