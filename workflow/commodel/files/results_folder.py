"""The layout of a results folder (`Results`): every file name below results/<experiment> is defined
here once.

The folder may come from an unknown source. All its paths are therefore safe ones, and only files
with known names are listed or removed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path

from commodel.files.safe_paths import AnyPath, SafePath

PLAN = "plan.json"
PROVENANCE = "provenance.json"
STATE = "state.json"
DONE = "done"
CALIBRATED = "calibrated"
CALIBRATION = "calibration.json"
RAW_FOLDER = "raw"  # has a folder for each batch
WORK_FOLDER = ".work"  # input and output of programs, in a batch's folder while it is measured
TABLES = ("observations", "summary", "distributions", "unmeasured", "comparison")
COPIES_FOLDER = "files"  # of the files that a plan depends on besides its experiment and platforms
INPUT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.(yaml|yml|xml)")
COPY_NAME = re.compile(r"[0-9a-f]{12}-[A-Za-z0-9._-]{1,100}")
# inputs of a plan, by kind
INPUTS = {"experiments": INPUT_NAME, "platforms": INPUT_NAME, COPIES_FOLDER: COPY_NAME}
# report of a native program about itself and its ranks
PROGRAM_NAME = re.compile(r"[a-z]+(-[a-z]+)?-[0-9]+r-.+\.json")
SAMPLES_NAME = re.compile(r"(?!\.).+\.csv")


@dataclass(frozen=True)
class Results:
    folder: SafePath

    @classmethod
    def of(cls, folder: Path | SafePath) -> "Results":
        return cls(SafePath.at(folder))

    def check(self) -> None:
        """Refuse a folder that contains links: Snakemake would follow them."""
        if self.folder.exists():
            self.folder.check()

    @property
    def plan(self) -> SafePath:
        return self.folder / PLAN

    def table(self, name: str) -> SafePath:
        return self.folder / f"{name}.csv"

    def cases(self, batch: str) -> SafePath:
        """Return the file with the ids of a batch. If it is newer than the results, the workflow
        measures again."""
        return self.folder / "batches" / f"{batch}.txt"

    @property
    def all_raw(self) -> SafePath:
        return self.folder / RAW_FOLDER

    def raw(self, batch: str) -> SafePath:
        return self.all_raw / batch

    def state(self, batch: str) -> SafePath:
        """Return the state file of a batch, which has the attempts at it."""
        return self.raw(batch) / STATE

    def done(self, batch: str) -> SafePath:
        return self.raw(batch) / DONE

    def fitted(self, platform: str, model: str) -> SafePath:
        return self.folder / "fitted" / platform / f"{model}.yaml"

    def validated(self, platform: str, model: str) -> SafePath:
        """Return the file of a fitted set with its errors at held-out points."""
        return self.folder / "validated" / platform / f"{model}.yaml"

    def find_set(self, platform: str, model: str) -> SafePath:
        """Return the file of a validated set, else that of the fitted set."""
        validated = self.validated(platform, model)
        return validated if validated.exists() else self.fitted(platform, model)

    def calibrated(self, name: str) -> SafePath:
        """Return the folder of a recalibration: the recalibrated sets, and the measurements in the
        new setting."""
        return self.folder / CALIBRATED / name

    def calibrations(self) -> list[SafePath]:
        """Return the folders of the completed recalibrations: those with a record, which is written
        last."""
        return [
            path for path in list_folder(self.folder / CALIBRATED) if (path / CALIBRATION).exists()
        ]

    def platforms(self) -> list[str]:
        """Return the names of the platforms with fitted sets."""
        return [path.name for path in list_folder(self.folder / "fitted")]

    def sets(self, platform: str) -> list[SafePath]:
        return [
            path
            for path in list_folder(self.folder / "fitted" / platform)
            if path.suffix == ".yaml"
        ]

    def predictions(self, model: str) -> SafePath:
        return self.folder / "predictions" / f"{model}.csv"

    def log(self, name: str) -> SafePath:
        """Return the log file of a verb or of Snakemake."""
        return self.folder / f"{name}.log"

    def job_log(self, job: str) -> SafePath:
        """Return the log file of the last run of a workflow job."""
        return self.folder / "logs" / f"{job}.log"

    def input(self, kind: str, name: str) -> SafePath:
        return self.folder / "inputs" / kind / name

    def copy(self, name: str) -> SafePath:
        return self.input(COPIES_FOLDER, name)

    def inputs(self) -> Iterator[SafePath]:
        """Yield the copies of the inputs of the plan, unchanged: the experiment, its platforms,
        then other files."""
        for kind, names in INPUTS.items():
            yield from (
                path
                for path in list_folder(self.folder / "inputs" / kind)
                if names.fullmatch(path.name)
            )

    def provenance(self, batch: str) -> SafePath:
        return self.raw(batch) / PROVENANCE

    def learned(self, batch: str) -> SafePath:
        """Return the copy of the network that was learned from a survey."""
        return self.raw(batch) / "network.yaml"

    def programs(self, batch: str) -> list[SafePath]:
        return [path for path in list_folder(self.raw(batch)) if PROGRAM_NAME.fullmatch(path.name)]

    def measured(self, batch: str) -> list[SafePath]:
        """Return all files of measurements in a batch, except its state file, which changes with
        every attempt."""
        tables = (
            path
            for path in list_folder(self.raw(batch))
            if path.suffix in (".csv", ".json", ".levels")
        )
        return [path for path in tables if path.name != STATE and not path.name.startswith(".")]

    def stages(self, platforms: Iterable[str], models: Iterable[str]) -> Iterator[SafePath]:
        """Yield all files that a report depends on, whether they exist or not, except raw files."""
        yield self.plan
        yield from self.inputs()
        yield from map(self.table, TABLES)
        yield from starmap(self.fitted, product(platforms, models))
        yield from map(self.predictions, models)
        yield from (folder / CALIBRATION for folder in self.calibrations())


def pass_folder_name(number: int) -> str:
    """Return the name of the folder, in a batch's folder, with the samples of one pass over its
    cases."""
    return f".pass-{number + 1}"


def list_folder(folder: AnyPath) -> list[SafePath]:
    """Return the content of a folder in order; empty if there is no folder."""
    safe_folder = SafePath.at(folder)
    return sorted(safe_folder.iterdir()) if safe_folder.exists() else []
