"""Evidence that advice rests on: measured points, fitted models, and their held-out errors.

The ground that advice stands on: parameter sets of one platform, and what was measured there; how far a job lies
beyond it, and what a reader should be told of that.

Where advice gets its evidence from: parameter sets in files, or what an experiment fitted and measured on a
platform.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.compare.combined_prediction import FEWEST_POINTS, of_operation
from commodel.compare.comparison import STREAM, named_streams
from commodel.errors import UserError
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, needed, read_table
from commodel.models.parameter_sets import by_hand, note, read_set
from commodel.parameters import SHEETS, ParameterSet, origins
from commodel.patterns.operations import base
from commodel.patterns.points import Setting
from commodel.predictions.prediction_intervals import IntervalBasis
from commodel.predictions.residuals import NODES, SIDES, WITHOUT
from commodel.records import LIBRARY, Point
from commodel.stats import NEGLIGIBLE
from commodel.units import format_bytes

NO_ROWS = {"family": str, "operation": str, "group": str, "status": str, "ranks": int, "bytes": int}
NO_ROWS |= {"predicted": float, "measured": float, "mu": float}
WORTH_TELLING = 0.05  # doublings


@dataclass(frozen=True, eq=False)
class Evidence:
    """`held_out` are rows of a comparison on the platform: points that were measured and that no fit has seen."""

    sets: Sequence[ParameterSet]
    setting: Setting
    held_out: pd.DataFrame = field(default_factory=pd.DataFrame)

    def by_family(self) -> dict[str, ParameterSet]:
        """The sets that have values."""
        sets = {parameters.family: parameters for parameters in self.sets if parameters.values}
        if not sets:
            raise UserError("no family has values: give --params, or a platform that an experiment has run on")
        return sets


def on_platform(evidence: Evidence, streams: bool = False) -> pd.DataFrame:
    """What was measured and priced, of single waves or of streams; a table without rows where nothing was."""
    rows = evidence.held_out
    if rows.empty:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in NO_ROWS.items()})
    rows = rows[rows["operation"].str.startswith(STREAM).astype(bool) == streams]
    return rows[rows["family"].ne("") & rows.get("algorithm", pd.Series("", index=rows.index)).ne(LIBRARY)]


def side_of(point: Point) -> str:
    return SIDES[point.nodes > WITHOUT[NODES]]


def telling(rows: pd.DataFrame, sides: Iterable[str]) -> pd.DataFrame:
    """Return the held-out rows measured at the given placements: within a node, between nodes, or both. Older tables
    have no column of nodes."""
    if NODES not in rows:
        return rows
    return rows[(rows[NODES] > WITHOUT[NODES]).map(SIDES).isin(set(sides))]


def deciding(held_out: pd.DataFrame, operation: str) -> pd.DataFrame:
    """The rows that say how far to trust anyone: those of the operation if there are enough points, else all."""
    same = of_operation(held_out, operation)
    return same if len(same) and same.groupby("family").size().max() >= FEWEST_POINTS else held_out


def doublings(points: Sequence[Point], ground: pd.DataFrame) -> np.ndarray:
    """How many times the ranks or the bytes of each candidate double, or halve, outside of what was measured."""
    times = np.zeros(len(points))
    if ground.empty:
        return times
    for name in ("ranks", "bytes"):
        asked = np.array([max(getattr(point, name), 1) for point in points], dtype=float)
        low, high = max(ground[name].min(), 1), max(ground[name].max(), 1)
        times += np.maximum(np.log2(asked / high), 0) + np.maximum(np.log2(low / asked), 0)
    return times


def remarks(evidence: Evidence, operation: str, ground: pd.DataFrame, beyond: float) -> list[str]:
    notes = []
    if ground.empty:
        unweighted = "nothing measured here says how far off these families are"
        notes.append(f"{unweighted}: all count alike, and no interval holds their errors unless the sets carry some")
    elif other := sorted(set(ground["operation"].map(base)) - {base(operation)}):
        notes.append(f"too little of {operation} was measured here: the weights come from {', '.join(other)}")
    if beyond > WORTH_TELLING:
        ranks, sizes = ((int(ground[name].min()), int(ground[name].max())) for name in ("ranks", "bytes"))
        reach = f"{_span(*ranks)} ranks and {_span(*map(format_bytes, sizes))}"
        notes.append(f"EXTRAPOLATED by {beyond:.1f} doublings: measured were {reach}; intervals are wider for that")
    if changed := hands(evidence):
        rest = "" if ground.empty else "; weights are by the errors of what was fitted"
        notes.append(f"SET BY HAND: {changed}, all else as in the sets{rest}")
    if sheets := sorted(parameters.family for parameters in evidence.sets if SHEETS in parameters.provenance):
        notes.append(f"FROM DATA SHEETS: values of {', '.join(sheets)} that nobody has measured")
    return notes + origins(evidence.sets, evidence.setting.name)


def without_errors(intervals: Sequence[str]) -> list[str]:
    """Of which choices nobody knows how far off their prices are, though others were measured."""
    lacking = Counter(filter(None, (IntervalBasis.parse(text).unmeasured for text in intervals)))
    return [
        f"NO INTERVAL OF ERRORS for {number} of {len(intervals)} choices: nothing was measured {where}, "
        f"{'families count alike there' if where in SIDES.values() else 'weights come from nearer ranks'}, "
        "and low and high are what the parameters leave open"
        for where, number in lacking.items()
    ]


def hands(evidence: Evidence) -> str:
    """What was set by hand, family by family."""
    notes = {parameters.family: note(parameters) for parameters in evidence.sets}
    return "; ".join(f"{name} {text}" for name, text in notes.items() if text)


def beside_library(held_out: pd.DataFrame, operation: str, ranks: int, leaves: int, size: int) -> tuple[float, int]:
    """How many times as long as the fastest of ours the MPI library's own choice took where it was measured at the same
    job or at that of the nearest size, and that size; NaN where it was not."""
    if held_out.empty or "algorithm" not in held_out:
        return np.nan, size
    over = held_out["leaves"] == leaves if leaves else (held_out["ranks"] == ranks) & (held_out["leaves"] == 0)
    rows = held_out[(held_out["operation"] == operation) & over].drop_duplicates("point")
    libraries = (
        rows[rows["algorithm"] == LIBRARY].groupby("group").agg(own=("measured", "min"), bytes=("bytes", "first"))
    )
    best = rows[rows["algorithm"] != LIBRARY].groupby("group")["measured"].min().rename("best")
    both = libraries.join(best, how="inner")
    if both.empty:
        return np.nan, size
    near = both.iloc[int(np.argmin(np.abs(np.log2((both["bytes"] + 1) / (size + 1)))))]
    return float(near["own"] / near["best"]), int(near["bytes"])


def library_note(times: float, size: int) -> list[str]:
    if np.isnan(times):
        return []
    own, best = f"at {format_bytes(size)} the MPI library's own choice", "the fastest of these that were measured"
    if times < 1 - NEGLIGIBLE:
        return [f"{own} was measured {1 / times:.2f} times as fast as {best}: LEAVE IT TO THE LIBRARY"]
    return [f"{own} was measured to take {times:.2f} times as long as {best}"]


def _span(low: object, high: object) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


JUDGED = needed(  # what families are judged by
    COMPARISON,
    "point platform operation algorithm choice layout ranks leaves bytes group simulated"
    " family predicted status measured measured_low measured_high mu held_out",
) + needed(COMPARISON, "nodes reach waves batch", optional=True)


def of_files(files: Sequence[Path], setting: Setting | None = None) -> Evidence:
    """Sets from files, or from all that lie in folders; without a setting there is room for everything, one rank a
    node."""
    sets = [read_set(path) for named in files for path in _sets_in(named)]
    doubles = {family for family, count in Counter(parameters.family for parameters in sets).items() if count > 1}
    if doubles:
        raise UserError(f"found two sets of family {min(doubles)}; give one set a family, all of one platform")
    return Evidence(sets, setting or Setting.unlimited())


def _sets_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not (inside := sorted(path.glob("*.yaml"))):
        raise UserError("found no parameter set (.yaml) in this folder", file=path)
    return inside


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
