"""Intervals of a comparison's prices: what each family was off at the other jobs of the platform."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from commodel.parameters import Errors
from commodel.predictions.prediction_intervals import (
    PARAMETERS,
    Interval,
    Workload,
    apply_residuals,
    cross_validate,
    find_residuals,
    fit_bands,
)
from commodel.predictions.predictions import Prices
from commodel.predictions.residuals import BYTES, NODES, RANKS, Residuals, operation_class
from commodel.predictions.validity import PriceStatus, Validity

MAJORITY = 0.5  # of the weights: what less of them say is no common price


def with_bands(frame: pd.DataFrame) -> pd.DataFrame:
    """The interval of every price from what its family was off at other jobs, never at its own; that of the parameters
    alone in columns of its own."""
    frame = frame.reset_index(drop=True)
    ends = {"parameters_low": frame["predicted_low"], "parameters_high": frame["predicted_high"]}
    frame = frame.assign(interval=np.where(frame["predicted"].notna(), PARAMETERS, ""), **ends)
    for key, rows in _families(frame):
        judges = _judging(rows)
        if key is None or not judges.any():
            continue
        seen, unmeasured = rows[judges], rows[~judges & rows["predicted"].gt(0) & rows["held_out"]]
        interval = cross_validate(residuals(seen))
        unknown = np.array([not basis.of_residuals for basis in interval.bases])
        for name, ends in (("predicted_low", interval.low), ("predicted_high", interval.high)):
            frame.loc[seen.index, name] = seen[name].where(unknown, expected(seen) * np.exp(ends))
        frame.loc[seen.index, "interval"] = [basis.text for basis in interval.bases]
        if len(unmeasured):
            _unmeasured(frame, unmeasured, fit_bands(residuals(seen)))
    return frame


def _families(frame: pd.DataFrame) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """Group the rows by platform and model. Predictions that ignore message size are groups of their own: their
    residuals do not inform others."""
    frame = frame[frame["family"] != ""]
    yield from frame.groupby(["platform", "family", _votes(frame)], sort=False)


def _votes(rows: pd.DataFrame) -> pd.Series:
    return rows["status"].map(PriceStatus.votes).astype(bool)


def _judging(rows: pd.DataFrame) -> pd.Series:
    """Return which rows have a residual of a held-out point."""
    finite = np.isfinite(rows["predicted"]) & np.isfinite(rows["measured"])
    return finite & (rows["predicted"] > 0) & (rows["measured"] > 0) & rows["held_out"]


def _unmeasured(frame: pd.DataFrame, rows: pd.DataFrame, bands: dict[str, Errors]) -> None:
    for row in rows.assign(expected=expected(rows)).itertuples():
        ends = row.predicted_low, row.predicted_high
        times = np.array([row.predicted, *ends, row.expected / row.predicted])[:, None]
        prices = Prices(*times, [Validity.parse(row.status)])
        named, where = (
            operation_class(row.operation, _waves(row)),
            (getattr(row, NODES, None), getattr(row, "reach", "")),
        )
        workload = Workload(named, float(row.leaves or row.ranks), np.array([row.bytes], dtype=float), *where)
        interval = apply_residuals(prices, find_residuals(bands, workload))
        ends = interval.low[0], interval.high[0], interval.bases[0].text
        frame.loc[row.Index, ["predicted_low", "predicted_high", "interval"]] = ends


def expected(rows: pd.DataFrame) -> pd.Series:
    """What prices become where each message takes what it takes alone; older tables do not say."""
    return rows["predicted"] * (rows["alone"].fillna(1.0) if "alone" in rows else 1.0)


def _waves(row: object) -> float:
    waves = getattr(row, "waves", 1)
    return float(waves) if waves == waves else 1.0


def residuals(rows: pd.DataFrame, logs: np.ndarray | None = None) -> Residuals:
    """Of rows of one family with a price and a time, or the given logarithms of others at these points."""
    waves = rows["waves"] if "waves" in rows else pd.Series(1, index=rows.index)
    names = zip(rows["operation"], waves.fillna(1), strict=True)
    over = rows["leaves"].where(rows["leaves"] > 0, rows["ranks"]) if "leaves" in rows else rows["ranks"]
    axes = {RANKS: over, BYTES: rows["bytes"]} | ({NODES: rows["nodes"]} if "nodes" in rows else {})
    return Residuals(
        np.log(rows["measured"] / expected(rows)).to_numpy(float) if logs is None else logs,
        np.array([operation_class(name, wave) for name, wave in names]),
        rows["group"].to_numpy(str),
        _allocations(rows),
        {name: column.to_numpy(float) for name, column in axes.items()},
        job=rows["setting"].to_numpy(str) if "setting" in rows else None,
        seconds=rows["measured"].to_numpy(float),
        reach=rows["reach"].to_numpy(str) if "reach" in rows and rows["reach"].ne("").any() else None,
    )


def _allocations(rows: pd.DataFrame) -> np.ndarray:
    """A batch is measured in one, and in one setting."""
    columns = [rows[name].astype(str) for name in ("batch", "setting") if name in rows]
    return (columns[0].str.cat(columns[1:], " ") if columns else pd.Series("", index=rows.index)).to_numpy(str)


def errors_of(comparison: pd.DataFrame, platform: str, family: str) -> dict[str, Errors]:
    """Return the residuals that a parameter set of a model on a platform keeps."""
    rows = comparison[(comparison["platform"] == platform) & (comparison["family"] == family)]
    rows = rows[_judging(rows) & _votes(rows)]
    return fit_bands(residuals(rows)) if len(rows) else {}


def voted(rows: pd.DataFrame, shares: Mapping[str, float]) -> Residuals | None:
    """What the common price of a vote was off at the points that families with most of the weight price; None where
    nothing was measured. `rows` are of single waves on one platform; as in a vote a family has no say about sizes that
    it is blind to."""
    rows = rows[rows["family"].isin([name for name, share in shares.items() if share > 0])]
    rows = rows[_votes(rows)]
    if rows.empty or (rows := rows[_judging(rows)]).empty:
        return None
    share = rows["family"].map(shares)
    weighed = (np.log(rows["measured"] / expected(rows)) * share).groupby(rows["point"]).sum()
    total = share.groupby(rows["point"]).sum()
    common = (weighed / total)[total > MAJORITY * sum(shares.values())]
    once = rows.drop_duplicates("point").set_index("point", drop=False)
    return residuals(once.loc[common.index], common.to_numpy(float)) if len(common) else None


def weighed(bands: Mapping[str, Mapping[str, Errors]], shares: Mapping[str, float], workload: Workload) -> Interval:
    """Return what `find_residuals` does, for a vote of families whose sets carry their errors: these add up, as
    families err alike. Parameters only where one of them carries none."""
    intervals = {name: find_residuals(bands[name], workload) for name, share in shares.items() if share > 0}
    if lacking := [interval for interval in intervals.values() if not interval.bases[0].of_residuals]:
        return lacking[0]
    low, high = (
        sum(shares[name] * getattr(interval, end) for name, interval in intervals.items()) for end in ("low", "high")
    )
    return Interval(low, high, intervals[max(intervals, key=shares.__getitem__)].bases)
