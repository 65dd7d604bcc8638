"""What `--set` means wherever prices are asked for, and where prices of such sets may not be written."""

from pathlib import Path

from commodel.errors import UserError
from commodel.files.results_folder import PLAN

SET_HELP = (
    "What if: a parameter in place of the sets', e.g. L=2.5us or G=6ns, or a setting, e.g. posting=list; "
    "FAMILY:NAME=VALUE of that family alone; repeated."
)


def refuse_campaign(out: Path) -> None:
    """What was asked by hand is not for a folder of results, where it would pass for what was fitted there."""
    for folder in out.absolute().parents:
        if (folder / PLAN).exists():
            raise UserError(f"--set: these prices would lie among the results in {folder}; wanted another --out")
