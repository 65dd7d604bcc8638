"""What prices and choices have to beat: rules that know no model of communication. They are no families, have no
parameters, and stand apart from families wherever both are shown.

`nearest point`: the time of the measured point of the same operation and choice whose ranks and bytes are nearest, in
doublings; of the same setting where there is one. `pmnf per algorithm`: a regression in the performance model normal
form of each operation and choice alone; strong within what was measured, poor beyond it. `always one`: in every job of
an operation the choice that was best in the jobs that were seen, in geometric mean. `library`: the MPI library's own.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from commodel.compare.comparison import with_errors
from commodel.compare.held_out import NAMES, Split
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured
from commodel.fits.settings import in_setting, settings_of
from commodel.fits.table_fits import regression
from commodel.predictions.predictions import predict
from commodel.records import Point

NEAREST, REGRESSION = "nearest point", "pmnf per algorithm"
ALWAYS, LIBRARY = "always one", "library"
BASELINE = "baseline"  # in place of a price's status
BASELINES = (NEAREST, REGRESSION, ALWAYS, LIBRARY)
OTHER_SETTING = 1e3  # doublings: another setting is farther than any point of the same


def judged_baselines(parts: Split, reference: str) -> pd.DataFrame:
    """A row for each held-out point and baseline that has a time for it, as of a family's. What is regressed are the
    points of the setting `reference`, as they are for families."""
    rows = []
    seen = in_setting(parts.seen, reference)
    for name, times in ((NEAREST, nearest(parts.seen, parts.unseen)), (REGRESSION, regressed(seen, parts.unseen))):
        timed = zip(parts.unseen.points, settings_of(parts.unseen), parts.unseen.seconds, times.tolist(), strict=True)
        for point, setting, seconds, time in timed:
            about = {key: getattr(point, key) for key in NAMES} | {"group": f"{point.group} {setting}"}
            rows.append({"family": name, **about, "measured": seconds, "predicted": time, "status": BASELINE})
    return with_errors(pd.DataFrame(rows).assign(predicted_low=np.nan, predicted_high=np.nan)).assign(
        held_out=True, inside=np.nan
    )


def nearest(seen: Measured, unseen: Measured) -> np.ndarray:
    """Seconds of each unseen point; NaN where nothing of its operation and choice was seen."""
    like: dict[tuple, list[int]] = {}
    for number, point in enumerate(seen.points):
        like.setdefault(_algorithm(point), []).append(number)
    places, seconds = _places(seen.points), np.array(seen.seconds)
    there = np.array(settings_of(seen))
    times = np.full(len(unseen.points), np.nan)
    both = zip(unseen.points, _places(unseen.points), settings_of(unseen), strict=True)
    for number, (point, place, setting) in enumerate(both):
        if alike := like.get(_algorithm(point)):
            away = np.abs(places[alike] - place).sum(axis=1) + OTHER_SETTING * (there[alike] != setting)
            times[number] = seconds[alike[int(np.argmin(away))]]
    return times


def regressed(seen: Measured, unseen: Measured) -> np.ndarray:
    """Seconds of each unseen point by a regression over those of its operation and choice; NaN where too few were."""
    prices = np.full(len(unseen.points), np.nan)
    for algorithm in dict.fromkeys(map(_algorithm, unseen.points)):
        with_it = [number for number, point in enumerate(seen.points) if _algorithm(point) == algorithm]
        asked = [number for number, point in enumerate(unseen.points) if _algorithm(point) == algorithm]
        try:
            fitted = regression([seen.points[n] for n in with_it], [seen.seconds[n] for n in with_it])
        except UserError:
            continue
        prices[asked] = [row.seconds for row in predict(fitted, [unseen.points[n] for n in asked], draws=0)]
    return prices


def _algorithm(point: Point) -> tuple[str, str, str]:
    return point.operation, point.kind, point.choice


def _places(points: Sequence[Point]) -> np.ndarray:
    return np.log2([(point.leaves or point.ranks, max(point.bytes, 1)) for point in points]).reshape(-1, 2)


def choices(rows: pd.DataFrame, seen: Measured, unseen: Measured) -> pd.DataFrame:
    """Who chooses how well in the unseen jobs that have alternatives, families and baselines: in how many, how often
    the fastest, and how long the choice takes beside the fastest. `rows` are judged ones of both."""
    table = [
        {"family": name, "baseline": name in BASELINES, **figures}
        for name, ratios in [*_by_price(rows), *_by_rule(seen, unseen)]
        if (figures := _figures(ratios))
    ]
    return pd.DataFrame(table, columns=["family", "baseline", "jobs", "fastest", "over_fastest", "over_fastest_worst"])


def _figures(ratios: Sequence[float]) -> dict[str, float]:
    if not len(ratios):
        return {}
    times = np.array(ratios)
    mean, worst = float(np.exp(np.log(times).mean())), float(times.max())
    return {
        "jobs": len(times),
        "fastest": float(np.mean(times <= 1)),
        "over_fastest": mean,
        "over_fastest_worst": worst,
    }


def _by_price(rows: pd.DataFrame) -> Iterator[tuple[str, list[float]]]:
    once = rows.drop_duplicates(["group", "choice", "kind", "layout"])
    fastest = once.groupby("group")["measured"].min()[once.groupby("group").size() > 1]
    for name, own in rows[rows["group"].isin(fastest.index)].dropna(subset=["predicted"]).groupby("family", sort=False):
        chosen = own.loc[own.groupby("group")["predicted"].idxmin()]
        yield str(name), (chosen["measured"] / chosen["group"].map(fastest)).tolist()


def _by_rule(seen: Measured, unseen: Measured) -> Iterator[tuple[str, list[float]]]:
    before, jobs = _jobs(seen), {key: times for key, times in _jobs(unseen).items() if len(times) > 1}
    usual = {operation: _usual(before, operation) for operation in {key[0] for key in jobs}}
    yield ALWAYS, [times[usual[key[0]]] / min(times.values()) for key, times in jobs.items() if usual[key[0]] in times]
    library = unseen.library
    yield LIBRARY, [library[key[1:]] / min(times.values()) for key, times in jobs.items() if key[1:] in library]


def _jobs(measured: Measured) -> dict[tuple[str, str, str], dict[tuple[str, str], float]]:
    """Of each operation, job and setting the time of each choice, at the layout that suits it best."""
    jobs: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for point, seconds, setting in zip(measured.points, measured.seconds, settings_of(measured), strict=True):
        times = jobs.setdefault((point.operation, point.group, setting), {})
        choice = point.kind, point.choice
        times[choice] = min(seconds, times.get(choice, np.inf))
    return jobs


def _usual(jobs: Mapping[tuple, Mapping[tuple, float]], operation: str) -> tuple[str, str] | None:
    """The choice that was best in the jobs that all have in common with another, in geometric mean over the fastest."""
    losses: dict[tuple[str, str], list[float]] = {}
    for (name, _, _), times in jobs.items():
        for choice, seconds in times.items() if name == operation and len(times) > 1 else ():
            losses.setdefault(choice, []).append(float(np.log(seconds / min(times.values()))))
    most = max(map(len, losses.values()), default=0)
    often = {choice: np.mean(values) for choice, values in losses.items() if 2 * len(values) >= most}
    return min(often, key=often.get) if often else None
