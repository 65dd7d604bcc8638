"""Where advice gets its evidence from: parameter sets in files, or what an experiment fitted and measured on a
platform."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from commodel.advice.ground import Evidence
from commodel.compare import TEXT
from commodel.config import find, load_platform
from commodel.errors import UserError
from commodel.families import read_set
from commodel.points import Setting
from commodel.tables import read_table


def of_files(files: Sequence[Path], platform: str | None) -> Evidence:
    """Sets from files; without a platform there is room for everything, one rank a node."""
    sets = [read_set(path) for path in files]
    doubles = {one.family for one in sets if sum(other.family == one.family for other in sets) > 1}
    if doubles:
        raise UserError(f"found two sets of family {min(doubles)}; give one set a family, all of one platform")
    return Evidence(sets, setting(platform) if platform else Setting.unlimited())


def of_platform(platform: str, results: Path, experiment: str | None = None) -> tuple[Evidence, Path]:
    """What was fitted and measured there, and in which folder of results: of the experiment given, else of the one that
    was compared last."""
    folders = sorted(results.glob(f"{experiment or '*'}/fitted/{platform}"), key=_compared)
    if not folders:
        setting(platform)  # a platform that is none is said so
        ran = sorted(path.parents[1].name for path in results.glob(f"*/fitted/{platform}"))
        known = f"these have: {', '.join(ran)}" if ran else "run an experiment there (`commodel run`), or give --params"
        of = f" of experiment '{experiment}'" if experiment else ""
        raise UserError(f"found no fitted values{of} on platform '{platform}'; {known}")
    folder = folders[-1]
    sets = [read_set(path) for path in sorted(folder.glob("*.yaml"))]
    return Evidence(sets, setting(platform), held_out(folder.parents[1], platform)), folder.parents[1]


def _compared(folder: Path) -> float:
    table = folder.parents[1] / "comparison.csv"
    return table.stat().st_mtime if table.exists() else 0.0


def held_out(folder: Path, platform: str) -> pd.DataFrame:
    """The points of a platform that were measured and that no fit has seen; none where nothing has been compared."""
    table = folder / "comparison.csv"
    if not table.exists():
        return pd.DataFrame()
    rows = read_table(table, TEXT)
    return rows[(rows["platform"] == platform) & rows["held_out"] & rows["measured"].notna()]


def setting(platform: str) -> Setting:
    file = find("platform", platform)
    return Setting.of(file.stem, load_platform(file))


def only_platform(experiment: str, results: Path) -> str:
    """The platform of an experiment's results, where there is but one."""
    found = sorted(path.name for path in (results / experiment).glob("fitted/*"))
    if len(found) != 1:
        raise UserError(
            f"found results of {experiment} on {', '.join(found) or 'no platform'}; say which by --platform"
        )
    return found[0]
