"""Evidence for advice from what a user names: files of parameters, a platform, or an experiment."""

from collections.abc import Sequence
from pathlib import Path

from commodel.advice.evidence import Evidence, of_files, of_platform, only_platform
from commodel.errors import UserError
from commodel.plan.planning import setting_on


def find_evidence(
    files: Sequence[Path], platform: str | None, experiment: str | None, results: Path = Path("results")
) -> tuple[Evidence, Path | None]:
    """Return the evidence in files, else that of a platform or an experiment, and its folder of results."""
    if files:
        return of_files(files, setting_on(platform) if platform else None), None
    if not (platform or experiment):
        raise UserError("give --params FILE…, or --platform or --experiment of a run")
    return of_platform(setting_on(platform or only_platform(experiment, results)), results, experiment)
