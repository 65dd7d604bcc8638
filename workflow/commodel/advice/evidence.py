"""Where advice gets its evidence from: parameter sets in files, or what an experiment fitted and measured on a
platform."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from commodel.advice.ground import Evidence
from commodel.compare.table import named_streams
from commodel.errors import UserError
from commodel.files.columns import COMPARISON, needed
from commodel.files.results import Results
from commodel.files.tables import read_table
from commodel.models.byhand import by_hand
from commodel.models.sets import read_set
from commodel.patterns.points import Setting

JUDGED = needed(  # what families are judged by
    COMPARISON,
    "point platform operation algorithm choice layout ranks leaves bytes group simulated"
    " family predicted status measured measured_low measured_high mu held_out",
) + needed(COMPARISON, "nodes reach waves batch", optional=True)


def of_files(files: Sequence[Path], setting: Setting | None = None) -> Evidence:
    """Sets from files; without a setting there is room for everything, one rank a node."""
    sets = [read_set(path) for path in files]
    doubles = {family for family, count in Counter(parameters.family for parameters in sets).items() if count > 1}
    if doubles:
        raise UserError(f"found two sets of family {min(doubles)}; give one set a family, all of one platform")
    return Evidence(sets, setting or Setting.unlimited())


def of_platform(setting: Setting, results: Path, experiment: str | None = None) -> tuple[Evidence, Path]:
    """What was fitted and measured on a platform, and in which folder of results: of the experiment given, else of the
    one that was compared last."""
    platform = setting.name
    fitted = _fitted(results, platform)
    folders = sorted((entry for entry in fitted if experiment in (None, entry.folder.name)), key=_compared)
    if not folders:
        ran = [entry.folder.name for entry in fitted]
        hint = f"these have: {', '.join(ran)}" if ran else "run an experiment there (`commodel run`), or give --params"
        of = f" of experiment '{experiment}'" if experiment else ""
        raise UserError(f"found no fitted values{of} on platform '{platform}'; {hint}")
    chosen = folders[-1]
    sets = [read_set(path) for path in chosen.sets(platform)]
    return Evidence(sets, setting, held_out(chosen, platform)), chosen.folder.root


def what_if(evidence: Evidence, texts: Sequence[str]) -> Evidence:
    """The same with values by hand in some of the sets."""
    with_values = [parameters for parameters in evidence.sets if parameters.values]
    return replace(evidence, sets=by_hand(with_values, texts)) if texts else evidence


def _fitted(results: Path, platform: str) -> list[Results]:
    """The results that have values of a platform."""
    folders = [Results.of(path) for path in sorted(results.glob("*")) if path.is_dir()]
    return [folder for folder in folders if platform in folder.platforms()]


def _compared(results: Results) -> float:
    table = results.table("comparison")
    return table.stat().st_mtime if table.exists() else 0.0


def held_out(results: Results, platform: str) -> pd.DataFrame:
    """The points of a platform that were measured and that no fit has seen; none where nothing has been compared."""
    table = results.table("comparison")
    if not table.exists():
        return pd.DataFrame()
    rows = named_streams(read_table(table, JUDGED))
    return rows[(rows["platform"] == platform) & rows["held_out"] & rows["measured"].notna()]


def only_platform(experiment: str, results: Path) -> str:
    """The platform of an experiment's results, where there is but one."""
    platforms = Results.of(results / experiment).platforms()
    if not platforms:
        raise UserError(f"found no results of experiment '{experiment}'; run it first: commodel run {experiment}")
    if len(platforms) > 1:
        raise UserError(f"found results of {experiment} on {', '.join(platforms)}; say which by --platform")
    return platforms[0]
