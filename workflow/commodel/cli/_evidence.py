"""What a verb rests on: files of parameters, or what a run left, of which the terminal is told."""

from collections.abc import Sequence
from pathlib import Path

import click

from commodel.advice.evidence import of_files, of_platform, only_platform
from commodel.advice.ground import Evidence
from commodel.errors import UserError
from commodel.plan.setting import setting_on


def evidence_of(files: Sequence[Path], platform: str | None, experiment: str | None) -> Evidence:
    if files:
        return of_files(files, setting_on(platform) if platform else None)
    if not (platform or experiment):
        raise UserError("give --params FILE…, or --platform or --experiment of a run")
    results = Path("results")
    setting = setting_on(platform or only_platform(experiment, results))
    evidence, folder = of_platform(setting, results, experiment)
    click.echo(f"evidence: {folder}, platform {evidence.setting.name}", err=True)
    return evidence
