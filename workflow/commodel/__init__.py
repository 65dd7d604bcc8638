"""What communication will cost on a cluster: predicted by published models, and measured.

>>> import commodel
>>> run = commodel.load("results/demo")  # doctest: +SKIP
>>> run.comparison, run.parameters("local", "loggp"), run.plot("predicted")  # doctest: +SKIP
>>> commodel.predict("bcast", 64, "1KiB", model="hockney", alpha="2us", beta="1ns/B").frame  # doctest: +SKIP
>>> commodel.advise("allreduce", 64, "64KiB", evidence=run, platform="local")  # doctest: +SKIP

The functions are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # type checkers and editors find the functions here
    from commodel.api.advice import Advice, Decisions
    from commodel.api.advice_scores import AdviceScore, advise_score
    from commodel.api.calibration import Recalibration, calibrate
    from commodel.api.campaigns import ReportFiles, Run, load, report, run
    from commodel.api.catalogues import Shown, show
    from commodel.api.differences import Difference, History, diff
    from commodel.api.exports import Exported, export
    from commodel.api.fits import Fit, fit
    from commodel.api.imports import Imported, ImportedFolder, import_, import_folder
    from commodel.api.installation import Programs, SlurmStart, check_slurm, doctor
    from commodel.api.matrices import MatrixPredictions, predict_matrix
    from commodel.api.measured_batches import MeasuredBatch, measure_batch
    from commodel.api.plan_predictions import PlanPredictions, predict_plan
    from commodel.api.plans import PlannedWork, plan_
    from commodel.api.predicted_times import Predictions
    from commodel.api.predictions import predict
    from commodel.api.probe_fits import ProbeFits, fit_probes, fit_sheet
    from commodel.api.projects import Project, init
    from commodel.api.recommendations import advise, decide
    from commodel.errors import UserError
    from commodel.parameters import ParameterSet

__version__ = "0.1.0"

_MODULES = {
    "Run": "api.campaigns",
    "ReportFiles": "api.campaigns",
    "load": "api.campaigns",
    "report": "api.campaigns",
    "run": "api.campaigns",
    "Predictions": "api.predicted_times",
    "predict": "api.predictions",
    "Fit": "api.fits",
    "fit": "api.fits",
    "ProbeFits": "api.probe_fits",
    "fit_probes": "api.probe_fits",
    "fit_sheet": "api.probe_fits",
    "Difference": "api.differences",
    "History": "api.differences",
    "diff": "api.differences",
    "Exported": "api.exports",
    "export": "api.exports",
    "Imported": "api.imports",
    "import_": "api.imports",
    "ImportedFolder": "api.imports",
    "import_folder": "api.imports",
    "Advice": "api.advice",
    "Decisions": "api.advice",
    "advise": "api.recommendations",
    "decide": "api.recommendations",
    "Shown": "api.catalogues",
    "show": "api.catalogues",
    "AdviceScore": "api.advice_scores",
    "advise_score": "api.advice_scores",
    "MeasuredBatch": "api.measured_batches",
    "measure_batch": "api.measured_batches",
    "MatrixPredictions": "api.matrices",
    "predict_matrix": "api.matrices",
    "PlanPredictions": "api.plan_predictions",
    "predict_plan": "api.plan_predictions",
    "PlannedWork": "api.plans",
    "plan_": "api.plans",
    "Recalibration": "api.calibration",
    "calibrate": "api.calibration",
    "Project": "api.projects",
    "init": "api.projects",
    "Programs": "api.installation",
    "doctor": "api.installation",
    "SlurmStart": "api.installation",
    "check_slurm": "api.installation",
    "ParameterSet": "parameters",
    "UserError": "errors",
}
__all__ = [
    "Advice",
    "AdviceScore",
    "Decisions",
    "Difference",
    "Exported",
    "Fit",
    "History",
    "Imported",
    "ImportedFolder",
    "MatrixPredictions",
    "MeasuredBatch",
    "ParameterSet",
    "PlanPredictions",
    "PlannedWork",
    "Predictions",
    "ProbeFits",
    "Programs",
    "Project",
    "Recalibration",
    "ReportFiles",
    "Run",
    "Shown",
    "SlurmStart",
    "UserError",
    "__version__",
    "advise",
    "advise_score",
    "calibrate",
    "check_slurm",
    "decide",
    "diff",
    "doctor",
    "export",
    "fit",
    "fit_probes",
    "fit_sheet",
    "import_",
    "import_folder",
    "init",
    "load",
    "measure_batch",
    "plan_",
    "predict",
    "predict_matrix",
    "predict_plan",
    "report",
    "run",
    "show",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f"commodel.{_MODULES[name]}"), name)
    if not name.startswith("_"):
        from commodel.extensions import list_functions, load_function

        functions = list_functions()
        if name in functions:
            return load_function(functions[name])
    raise AttributeError(f"module 'commodel' has no attribute '{name}'")


def __dir__() -> list[str]:
    from commodel.extensions import list_functions

    return sorted([*__all__, *list_functions()])
