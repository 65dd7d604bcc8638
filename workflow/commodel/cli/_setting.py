"""What `--set` means wherever prices are asked for, and where prices of such sets may not be written; and which setting
a job measures in."""

import os
from pathlib import Path

from commodel.errors import UserError
from commodel.files.results import PLAN
from commodel.files.settings import VARIABLE, parse_setting

SET_HELP = (
    "What if: a parameter in place of the sets', e.g. L=2.5us or G=6ns, or a setting, e.g. posting=list; "
    "FAMILY:NAME=VALUE of that family alone; repeated."
)


def job_setting(given: str | None) -> str:
    """As asked for, else as the environment of the job says; blank: nobody says any."""
    called = "--setting" if given is not None else VARIABLE
    try:
        return parse_setting(os.environ.get(VARIABLE, "") if given is None else given)
    except UserError as error:
        raise UserError(error.found, key=called) from None


def refuse_campaign(out: Path) -> None:
    """What was asked by hand is not for a folder of results, where it would pass for what was fitted there."""
    for folder in out.absolute().parents:
        if (folder / PLAN).exists():
            raise UserError(f"--set: these prices would lie among the results in {folder}; wanted another --out")
